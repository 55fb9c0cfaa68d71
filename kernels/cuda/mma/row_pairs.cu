// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of pairs of rows.
#include "cuda/mma/row_pairs.cuh"

#include <algorithm>

#include "cuda/cuda_resources.h"
#include "cuda/device/u8x4_tile.h"
#include "cuda/mma/row_pairs.h"

namespace cudaconv {

namespace {

template <int kPairs, Samples kSamples>
bool enqueue_shape(const PassRun &run, RowPairMmaParams &p) {
  using Shape = RowPairShape<kPairs, kSamples>;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileCount{row_pair_columns<kSamples>(part), (part.height + rows - 1) / rows};
    });
  };
  constexpr int kLeast = 8, kMost = 256, kMoreRows = 2 * kPairs + 6;
  const unsigned at_once = Shape::kMinBlocks * current_limits().multiprocessors;
  int best = kLeast;
  uint64_t best_time = UINT64_MAX;
  for (int rows = kLeast; rows <= kMost; rows += 2) {
    const uint64_t time = uint64_t{(cut(rows) + at_once - 1) / at_once} * (rows + kMoreRows);
    if (time <= best_time) {
      best = rows;
      best_time = time;
    }
  }
  const unsigned blocks = cut(best);
  enqueue("pairs", row_pair_kernel<Shape>, dim3(blocks), dim3(kRowPairThreads), Shape::shared_bytes(best), run.stream,
          p);
  return true;
}

template <int kPairs>
bool enqueue_row_pairs(const PassRun &run, Samples samples, RowPairMmaParams &p) {
  if (samples == Samples::U8) return enqueue_shape<kPairs, Samples::U8>(run, p);
  if (samples == Samples::U16) return enqueue_shape<kPairs, Samples::U16>(run, p);
  // With six or seven rows, the kernels of dense.cuh, which take rows by fours, are faster in large frames.
  if constexpr (kPairs == 4)
    return false;
  else
    return enqueue_shape<kPairs, Samples::U16x4>(run, p);
}

}  // namespace

bool enqueue_row_pairs(const PassRun &run, Samples samples, RowPairMmaParams &p) {
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Words that wrap have to be words at the other end too, which 16 bytes at that end do not touch.
    if (p.border == Border::Wrap && (!part.row_is_multiple_of_16 || part.width < kRowPairRadius)) return false;
  }
  if (p.height <= 5) return enqueue_row_pairs<3>(run, samples, p);
  if (p.height <= 7) return enqueue_row_pairs<4>(run, samples, p);
  return enqueue_row_pairs<5>(run, samples, p);
}

}  // namespace cudaconv
