// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels on bytes as they lie in memory.
#include "interleaved.cuh"

#include <algorithm>
#include <vector>

#include "cuda_resources.h"
#include "launchers.h"
#include "quads.h"

namespace cudaconv {

namespace {

struct InterleavedLaunch {
  void (*kernel)(SeparableTensorParams) = nullptr;
  size_t (*shared_bytes)(int tile_height) = nullptr;
  int resident = 0;  // blocks of a multiprocessor
};

template <Weights kWeights, bool kPlain>
InterleavedLaunch interleaved_launch() {
  return {interleaved_kernel<kWeights, kPlain>, interleaved_bytes<kWeights>, byte_blocks(kWeights, kPlain)};
}

InterleavedLaunch choose_kernel(Weights weights, const SeparableTensorParams &p) {
  const bool shifts = p.finish.how == SumRounding::Shift;
  if (weights == Weights::Rounded && shifts) return interleaved_launch<Weights::Rounded, true>();
  if (weights == Weights::Word) return interleaved_launch<Weights::Word, false>();
  if (weights != Weights::Byte) return {};
  return shifts && p.row_start == 0 ? interleaved_launch<Weights::Byte, true>()
                                    : interleaved_launch<Weights::Byte, false>();
}

}  // namespace

int launch_interleaved(const PassRun &run) {
  const Pass &pass = run.pass();
  const int radius = pass.radius_x;
  if (!run.kernels.matrix || pass.op != Op::Linear || std::max(radius, pass.radius_y) > kByteRadius) return 0;
  SeparableTensorParams p = {};
  DenseTensorParams dense = {};
  const TensorKind kind = make_fragments(run.plan, pass, p, dense);
  if (kind.structure != Tensor::Separable || kind.samples != Samples::Bytes || p.finish.how == SumRounding::Sharpen)
    return 0;
  // Columns' coefficients are sums of two signed bytes.
  constexpr int kMost = 127 * 257;
  const std::vector<int32_t> &column = pass.mask[0].column;
  if (std::any_of(column.begin(), column.end(), [](int32_t c) { return c > kMost; })) return 0;
  const InterleavedLaunch launch_as = choose_kernel(kind.weights, p);
  if (!launch_as.kernel) return 0;

  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Reflections want as many pixels beyond the first one as the radius, of the 16 bytes at an edge.
    if (!part.whole_lanes || (p.border == Border::Reflect101 && (radius + 1) * part.channels > kLaneBytes)) return 0;
  }
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      constexpr int kWidth = kByteWarps * kWarpResults;
      return TileCount{(part.width * part.channels + kWidth - 1) / kWidth, (part.height + rows - 1) / rows};
    });
  };
  constexpr int kLeast = 16, kMostRows = 1024, kMoreRows = 16;
  const int rows =
      choose_tile_height(8, kLeast, kMostRows, launch_as.resident, launch_as.shared_bytes, cut, [](int rows) {
        return static_cast<uint64_t>(rows + kMoreRows);
      }).height;
  if (!rows) return 0;
  const unsigned blocks = cut(rows);
  check(launch("interleaved", launch_as.kernel, dim3(blocks), dim3(kByteThreads), launch_as.shared_bytes(rows),
               run.stream, p),
        "cudaLaunchKernel");
  return 1;
}

}  // namespace cudaconv
