// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Between the CUDA backend and the kernels: who enqueues which passes. Each launcher owns one structure of kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "cuda/launch_params.h"
#include "plan/plan.h"

namespace cudaconv {

// The frames in device memory that the passes of a plan work on, and the regions of each of its parts.
struct FrameBuffers {
  FrameView source, target;
  std::vector<FrameView> temporary;

  const Regions *regions = nullptr;
  const PartRegion *region = nullptr;  // in device memory, those of all parts, if regions are active
  struct PartRegions {
    int first, count;
  };
  std::vector<PartRegions> part_regions;
};

// Which sets of kernels were compiled for a device, which may be fewer than it could run.
struct KernelSets {
  bool mma = false;   // those on the matrix instructions are there
  bool sm90 = false;  // those that kHasSm90Kernels says are
};

// Throws Error{NoDevice} where the current device can run none.
KernelSets find_kernels();

// Where the plan of a frame has got to.
struct PassRun {
  const Plan &plan;
  size_t index;  // of the pass to enqueue next
  const FrameBuffers &buffers;
  cudaStream_t stream;
  const MaskParams *masks;  // in device memory, one a pass; nullptr but for method=global
  KernelSets kernels;       // of the current device

  const Pass &pass() const { return plan.passes[index]; }
};

// Each enqueues the pass at run.index, and maybe more after it in the same launch, and returns how many: 0 where that
// pass is not of its kind. Of the last one, all pixels are filtered. Throws Error{Device}.
int launch_composite(const PassRun &run);            // openings and the like of small squares, dense 8-bit planes
int launch_sliding(const PassRun &run);              // small windows, dense planes
int launch_van_herk(const PassRun &run);             // squares larger than those, dense planes
int launch_structuring_element(const PassRun &run);  // ellipses, crosses and the like, dense planes
int launch_box(const PassRun &run);                  // means, dense 8-bit planes
// The other linear masks, if there are kernels for the matrix instructions.
int launch_separable9(const PassRun &run);  // separable, up to 9x9, dense 8-bit planes, rows of 16n bytes
int launch_mma(const PassRun &run);         // dense planes

// Enqueues any pass by the plan's method, and returns how many: never 0. Pixels that are to stay as they were stay.
int launch_method(const PassRun &run);

// Whether a pass leaves pixels as they were: kept ones, or those outside the regions.
bool leaves_pixels(const PassRun &run, const Pass &pass);

// After that pass has filtered them all: puts them back. Planes are dense. Throws Error{Device}.
void launch_restore(const PassRun &run);

// Enqueues the pass at run.index, and maybe more, by the first launcher that takes it where the method is auto.
// `kernels` is the name of that launcher's, nullptr for launch_method()'s.
struct Launched {
  int passes;
  const char *kernels;
};
Launched launch_passes(const PassRun &run);

// The method that launch_method() carries out a pass with.
Method resolve_method(const Plan &plan, const Pass &pass);

// The masks that the kernels of method=global read in place of a parameter, one a pass.
std::vector<MaskParams> global_masks(const Plan &plan);

// One of a source's kernels, to find out what they were compiled for.
const void *any_method();
const void *any_sliding();
const void *any_mma();

struct TileCount {
  int x, y;
};

// Fills in a pass of the run, all but how its parts are cut into tiles. `last`, after `index`, is the pass whose target
// is written, where a launch carries out several.
void fill_frame(const PassRun &run, FrameParams &p);
void fill_frame(const PassRun &run, size_t last, FrameParams &p);

// Calls function(channel, word, shift) for each sample of three words of a dense part's row, after which rows repeat:
// `shift` is the sample's lowest bit in the word.
template <typename Function>
void for_samples_of_words(const PartParams &part, Function function) {
  const int sample_bytes = part.container == Container::U8 ? 1 : 2;
  for (int s = 0; s < 3 * 4 / sample_bytes; s++) {
    const ChannelParams &channel = part.channel[s % part.channels];
    function(channel, s * sample_bytes / 4, s * sample_bytes % 4 * 8 + channel.shift);
  }
}

// Cuts each part into tiles; `tiles_of` gives a part's. Returns the number of blocks: a launch has one dimension of
// them, because the other two end at 65,535.
template <typename TilesOf>
unsigned cut_tiles(FrameParams &p, TilesOf tiles_of) {
  int64_t blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    const TileCount tiles = tiles_of(p.part[i]);
    p.first_block[i] = static_cast<int32_t>(blocks);
    p.part[i].tiles_x = tiles.x;
    p.part[i].tiles_x_reciprocal = 0xffffffffu / static_cast<uint32_t>(tiles.x);
    blocks += int64_t{tiles.x} * tiles.y;
  }
  return static_cast<unsigned>(blocks);
}

// Cuts each part into tiles of one size, in pixels.
inline unsigned cut_tiles(FrameParams &p, int tile_width, int tile_height) {
  return cut_tiles(p, [&](const PartParams &part) {
    return TileCount{(part.width + tile_width - 1) / tile_width, (part.height + tile_height - 1) / tile_height};
  });
}

}  // namespace cudaconv
