// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for medians by histograms. It takes the widest tile that shared memory holds, and strips
// of it as high as fills the device best.
//
// Example, 31x31 of bytes: 8 warps of 32 pixels make a tile of 256, whose windows reach 286 columns. Their histograms
// take 286 * 256 bytes, 71.5 KiB.
#include "cuda/median/median_histogram.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace median;

namespace {

template <typename Shape>
KernelLaunch<HistogramMedianParams> launch_of(int warps, HistogramMedianParams &p) {
  const int width = warps * Shape::kPixels;
  p.columns = width + p.width - 1;
  p.pitch = (p.columns + 1) / 4 * 4 + 2;  // the least that holds the columns and is an odd number of words
  const size_t bytes = HistogramMedianMemory<Shape>::bytes(warps, p.columns, p.height, p.pitch);
  const DeviceLimits device = current_limits();
  if (bytes > device.block_bytes) return {};
  const auto blocks_of = [&](int height) { return cut_tiles(p, width, height); };
  const int resident =
      std::clamp<int>(static_cast<int>(device.multiprocessor_bytes / (bytes + kReservedBytes)), 1, Shape::kMinBlocks);
  // Making the first histograms takes about as long as this many rows.
  const int first = 2 + p.height / 16;
  p.tile_height = choose_strip_height(8, 8, resident, first, blocks_of);
  return {histogram_median_kernel<Shape>, blocks_of(p.tile_height), 32 * warps, bytes};
}

// Chooses wide tiles, or narrow ones if shared memory does not hold wide ones.
template <bool kWords>
KernelLaunch<HistogramMedianParams> choose_width(HistogramMedianParams &p) {
  using Shape = HistogramMedianShape<kWords>;
  const KernelLaunch<HistogramMedianParams> wide = launch_of<Shape>(Shape::kWarps, p);
  return wide.kernel ? wide : launch_of<Shape>(Shape::kWarps / 2, p);
}

KernelLaunch<HistogramMedianParams> choose(const PassQuery &query, HistogramMedianParams &p) {
  const Pass &pass = query.pass();
  const FrameLayout &layout = query.plan.layout;
  const PlaneLayout &plane = layout.plane[0];
  // With fewer samples in the window, a row of 9 say, the methods take less time.
  constexpr int kLeastSamples = 121;
  const bool small = pass.width() == pass.height() ? pass.width() < 3 : pass.width() * pass.height() < kLeastSamples;
  if (pass.op != Op::Median || small || std::max(pass.width(), pass.height()) > kLargestHistogramMedian ||
      !layout.uniform_dense() || plane.channel[0].depth < 8)
    return {};
  p.width = pass.width();
  p.height = pass.height();
  return plane.container == Container::U8 ? choose_width<false>(p) : choose_width<true>(p);
}

}  // namespace

Prepared prepare_median_histogram(const PassQuery &query) {
  return prepare_chosen<HistogramMedianParams>(query, choose);
}

}  // namespace cudaconv
