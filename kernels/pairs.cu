// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of pairs of rows.
#include "pairs.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "pairs.h"
#include "quads.h"

namespace cudaconv {

namespace {

template <int kPairs, Samples kSamples>
bool enqueue_shape(const PassRun &run, PairTensorParams &p) {
  using Shape = PairShape<kPairs, kSamples>;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileCount{pair_columns<kSamples>(part), (part.height + rows - 1) / rows};
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
  enqueue("pairs", pair_kernel<Shape>, dim3(blocks), dim3(kPairThreads), Shape::shared_bytes(best), run.stream, p);
  return true;
}

template <int kPairs>
bool enqueue_pairs(const PassRun &run, Samples samples, PairTensorParams &p) {
  if (samples == Samples::Bytes) return enqueue_shape<kPairs, Samples::Bytes>(run, p);
  if (samples == Samples::Words) return enqueue_shape<kPairs, Samples::Words>(run, p);
  // With six or seven rows, the kernels of dense.cuh, which take rows by fours, are faster in large frames.
  if constexpr (kPairs == 4)
    return false;
  else
    return enqueue_shape<kPairs, Samples::FourWords>(run, p);
}

}  // namespace

bool enqueue_pairs(const PassRun &run, Samples samples, PairTensorParams &p) {
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Words that wrap have to be words at the other end too, which 16 bytes at that end do not touch.
    if (p.border == Border::Wrap && (!part.whole_lanes || part.width < kPairRadius)) return false;
  }
  if (p.height <= 5) return enqueue_pairs<3>(run, samples, p);
  if (p.height <= 7) return enqueue_pairs<4>(run, samples, p);
  return enqueue_pairs<5>(run, samples, p);
}

}  // namespace cudaconv
