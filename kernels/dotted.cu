// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of dot products.
#include "dotted.cuh"

#include "cuda_resources.h"
#include "launchers.h"
#include "packed.h"

namespace cudaconv {

namespace {

using DottedKernel = void (*)(DottedParams);

DottedKernel choose_kernel(int radius, int most_channels) {
  if (most_channels <= 2) return radius == 3 ? dotted_kernel<3, Channels::Planar> : dotted_kernel<4, Channels::Planar>;
  if (radius > 3) return nullptr;  // the matrix instructions are no slower with packed pixels and nine rows
  return most_channels == 3 ? dotted_kernel<3, Channels::Packed3> : dotted_kernel<3, Channels::Packed4>;
}

}  // namespace

int launch_dotted(const PassRun &run) {
  if (run.plan.method != Method::Auto || run.buffers.regions->active) return 0;
  DottedParams p = {};
  const int most_channels = make_dotted(run.plan, run.pass(), p);
  if (!most_channels) return 0;
  const int radius = run.pass().radius_x;
  const DottedKernel kernel = choose_kernel(radius, most_channels);
  if (!kernel) return 0;
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Reflections want as many pixels beyond the first one as the radius, of the 16 bytes at an edge.
    if (!part.whole_lanes || (p.border == Border::Reflect101 && (radius + 1) * part.channels > kLaneBytes)) return 0;
  }
  const auto tiles_of = [&](const PartParams &part) {
    const int row_bytes = part.width * part.channels, tile_rows = p.strip_rows * kSlidingWarps;
    return TileCount{(row_bytes + kWarpBytes - 1) / kWarpBytes, (part.height + tile_rows - 1) / tile_rows};
  };
  // The taller strips are, the fewer rows are loaded twice; but all multiprocessors are to be busy to the end, with as
  // many blocks as they hold.
  const int64_t wave = int64_t{current_limits().multiprocessors} * dotted_blocks(radius);
  for (p.strip_rows = 8;; p.strip_rows += 2) {
    int64_t blocks = 0;
    for (int i = 0; i < p.parts; i++) blocks += int64_t{tiles_of(p.part[i]).x} * tiles_of(p.part[i]).y;
    if (blocks <= wave || p.strip_rows >= 256) break;
  }
  const unsigned blocks = cut_tiles(p, tiles_of);
  check(launch("dotted", kernel, dim3(blocks), dim3(kSlidingThreads), 0, run.stream, p), "cudaLaunchKernel");
  return 1;
}

}  // namespace cudaconv
