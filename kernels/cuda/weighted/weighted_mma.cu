// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for weighted means.
#include "cuda/weighted/weighted_mma.cuh"

#include <algorithm>
#include <numeric>

#include "cuda/device/mma/launch_tiles.h"

namespace cudaconv {

using namespace weighted;

namespace {

template <int kRadius>
KernelLaunch<WeightedMmaParams> cut_strips(WeightedMmaParams &p) {
  using Shape = WeightedMmaShape<kRadius>;
  MmaLaunch<WeightedMmaParams> strips;
  strips.kernel = weighted_mma_kernel<Shape>;
  strips.threads = kStripThreads;
  strips.shared_bytes = Shape::shared_bytes;
  strips.tile_width = kStripThreads / 2;
  strips.least_rows = WeightedMmaTuning::kLeastRows;
  strips.resident = Shape::kMinBlocks;
  strips.more_rows = kRadius + WeightedMmaTuning::kMoreRows;
  strips.strips = true;
  return cut_frame(strips, 1, 0, p);
}

bool takes_pass(const PassQuery &query) {
  const Pass &pass = query.pass();
  const IntegerMask &mask = pass.mask[0];
  const Rounding &rounding = pass.rounding[0][0];
  const int radius = std::max(pass.radius_x, pass.radius_y);
  return query.kernels.mma && pass.op == Op::WeightedMean && pass.separable() && pass.long_row.empty() &&
         has_words(query.plan.layout) && radius <= kMostMmaRadius && !pass.keep_x && !pass.keep_y &&
         is_mean(pass.sum_gain, rounding) && rounding.max == 255 && all_within(mask.row, 0, kMostRowFactor) &&
         all_within(mask.column, 0, kMostColumnFactor) &&
         std::accumulate(mask.row.begin(), mask.row.end(), uint64_t{0}) <= kMostRowFactors;
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<WeightedMmaParams> choose(const PassQuery &query, WeightedMmaParams &p) {
  if (!takes_pass(query)) return {};
  const Pass &pass = query.pass();
  const IntegerMask &mask = pass.mask[0];
  const int radius = std::max(pass.radius_x, pass.radius_y), radius_class = radius <= 4 ? 4 : radius <= 8 ? 8 : 16;
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  p.alpha_first = alpha_of(query.plan.layout).channel == 0;
  p.all = std::accumulate(mask.row.begin(), mask.row.end(), uint64_t{0}) *
          std::accumulate(mask.column.begin(), mask.column.end(), uint64_t{0});
  put_factors(mask.row, mask.column, radius_class, kMostWeightBytes, p);
  return radius <= 4 ? cut_strips<4>(p) : radius <= 8 ? cut_strips<8>(p) : cut_strips<16>(p);
}

}  // namespace

Prepared prepare_weighted_mma(const PassQuery &query) {
  return prepare_chosen<WeightedMmaParams>(query, choose);
}

}  // namespace cudaconv
