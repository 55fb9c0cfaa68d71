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
void enqueue_shape(const PassRun &run, PairTensorParams &p) {
  using Shape = PairShape<kPairs, kSamples>;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileCount{(part.height + rows - 1) / rows, pair_columns<kSamples>(part)};
    });
  };
  // Tiles at the edges take half as long again. They come first: where there are two rounds, that is hidden.
  constexpr int kLeast = 8, kMost = 256, kMoreRows = 2 * kPairs + 6;
  const unsigned at_once = Shape::kMinBlocks * current_limits().multiprocessors;
  int best = kLeast;
  uint64_t best_time = UINT64_MAX;
  for (int rows = kLeast; rows <= kMost; rows += 2) {
    const uint64_t rounds = (cut(rows) + at_once - 1) / at_once;
    const uint64_t time = std::max<uint64_t>(2 * rounds, 3) * (rows + kMoreRows);
    if (time <= best_time) {
      best = rows;
      best_time = time;
    }
  }
  const unsigned blocks = cut(best);
  enqueue("pairs", pair_kernel<Shape>, dim3(blocks), dim3(kPairThreads), Shape::shared_bytes(best), run.stream, p);
}

template <int kPairs>
void enqueue_pairs(const PassRun &run, Samples samples, PairTensorParams &p) {
  if (samples == Samples::FourWords)
    enqueue_shape<kPairs, Samples::FourWords>(run, p);
  else
    enqueue_shape<kPairs, Samples::Bytes>(run, p);
}

}  // namespace

bool enqueue_pairs(const PassRun &run, Samples samples, PairTensorParams &p) {
  // With samples in pairs, the kernels of tensor.cuh are faster: planes of two channels, and 16-bit ones of one or two.
  if (samples == Samples::Words) return false;
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++)
    if (!p.part[i].aligned || p.part[i].channels == 2) return false;
  if (p.height <= 5)
    enqueue_pairs<3>(run, samples, p);
  else if (p.height <= 7)
    enqueue_pairs<4>(run, samples, p);
  else
    enqueue_pairs<5>(run, samples, p);
  return true;
}

}  // namespace cudaconv
