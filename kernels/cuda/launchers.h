// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers have in common, each of which owns a structure of kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cuda/dispatch.h"
#include "cuda/launch_params.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace cudaconv {

struct MosaicTiledBox;
struct MosaicTiles;

// The frames in device memory that the passes of a plan work on.
struct FrameBuffers {
  FrameView source, target;
  std::vector<FrameView> temporary;

  // Of a mosaic: its tiles, by part, and where to find the boxes of those that have several, once they are launched.
  const std::vector<MosaicTiles> *mosaic = nullptr;
  const MosaicTiledBox *const *mosaic_boxes = nullptr;

  void *scratch = nullptr;  // as much as any launch of the plan needs
};

// What of a part is worked on, and the sums of what its rectangles measure.
struct PartArea {
  explicit PartArea(const Area &area);
  int width;  // of the part, pixels
  std::vector<PixelRect> rectangles;
  PixelRect bounds;
  double pixels = 0, widths = 0, heights = 0;
};

class DeferredLaunches;

// A frame that a pass of a plan, or several from that pass on, are to be enqueued for.
struct PassRun : PassQuery {
  const FrameBuffers &buffers;
  cudaStream_t stream;
  const MaskParams *masks;     // in device memory, one a pass; nullptr but for method=global
  const char *name = nullptr;  // of the structure, for messages
  // Where regions are in force: what of each part the last pass makes, and where launches go until the tiles that they
  // work on are on the device.
  const std::vector<const PartArea *> *areas = nullptr;
  DeferredLaunches *deferred = nullptr;
};

// Enqueues any pass by the plan's method. Pixels that are to stay as they were stay.
void launch_method(const PassRun &run);

// launch_method() of a mosaic, of weighted means and of a wide Gaussian.
void launch_mosaic_samples(const PassRun &run);
void launch_weighted_any(const PassRun &run);
void launch_blur_samples(const PassRun &run);

// After a pass has filtered all pixels: puts those back that it keeps. Planes are dense. Throws Error{Device}.
void launch_restore(const PassRun &run);

// The method that launch_method() carries out a pass with.
Method resolve_method(const Plan &plan, const Pass &pass);

// The masks that the kernels of method=global read in place of a parameter, one a pass.
std::vector<MaskParams> global_masks(const Plan &plan);

// One of a source's kernels, to find out what they were compiled for.
const void *any_method();
const void *any_sliding();
const void *any_mma();

// The tiles of a part: `width`, of a unit of which `row` make a row of the part, by `height` rows.
struct TileSize {
  int width, row, height;
};

// Fills in a pass, all but addresses, areas, and how its parts are cut into tiles.
void fill_frame(const PassQuery &query, FrameParams &p);

// The same with addresses and areas. `last`, after run.index, is the pass whose target is written, where a launch
// carries out several.
void fill_frame(const PassRun &run, size_t last, FrameParams &p);
inline void fill_frame(const PassRun &run, FrameParams &p) {
  fill_frame(run, run.index, p);
}

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

// About how many tiles hold the area of a part.
int64_t blocks_of_area(const FrameParams::Host &host);

// Cuts each part into tiles; `size_of` gives their size. Returns the number of blocks, about, where only a part of them
// is worked on. A launch has one dimension of them, because the other two end at 65,535.
template <typename SizeOf>
unsigned cut_tiles(FrameParams &p, SizeOf size_of) {
  int64_t tiles = 0, blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    const TileSize size = size_of(p.part[i]);
    const int columns = (size.row + size.width - 1) / size.width;
    const int64_t all = int64_t{columns} * ((p.part[i].height + size.height - 1) / size.height);
    FrameParams::Host &host = p.host[i];
    host.tile_width = size.width;
    host.row = size.row;
    host.tile_height = size.height;
    p.first_block[i] = static_cast<int32_t>(tiles);
    p.part[i].tiles_x = columns;
    p.part[i].tiles_x_reciprocal = 0xffffffffu / static_cast<uint32_t>(columns);
    tiles += all;
    blocks += host.area ? std::min(all, blocks_of_area(host)) : all;
  }
  return static_cast<unsigned>(blocks);
}

// Cuts each part into tiles of one size, in pixels.
inline unsigned cut_tiles(FrameParams &p, int tile_width, int tile_height) {
  return cut_tiles(p, [&](const PartParams &part) { return TileSize{tile_width, part.width, tile_height}; });
}

// Launches of a frame with regions, kept until the numbers of their tiles are on the device.
class DeferredLaunches {
 public:
  // Gets the copy of tiles() on the device.
  using Launch = std::function<void(const uint32_t *tiles)>;

  // Adds the numbers of the tiles that hold what p.host says to tiles(), and returns how many they are.
  size_t list_tiles(const FrameParams &p);
  void add(Launch launch) { launches_.push_back(std::move(launch)); }

  const std::vector<uint32_t> &tiles() const { return tiles_; }
  const std::vector<Launch> &launches() const { return launches_; }

 private:
  std::vector<uint32_t> tiles_;
  std::vector<Launch> launches_;
};

}  // namespace cudaconv
