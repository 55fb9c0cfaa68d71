// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernel for weighted means. They choose the types of its sums, of windows and along rows:
//
//    float, float            pixels of four bytes, sums of at most 24 bits, which floats hold
//    uint64_t, uint32_t      pixels of four bytes, larger sums
//    uint64_t, uint64_t      other frames
//    Uint128, Uint128        sums of more than 63 bits
//    Uint128, void           masks that are not separable, bilaterals, and method=constant: sample by sample
//
// Factors of a separable mask have zeros around them, so that windows beside a thread's need no check. Example, 1 2 1
// along rows and down columns: words 3 to 5 of `weight` are 1 2 1, words 12 to 14 are 1 2 1, the other 12 are 0.
#include "cuda/weighted/weighted.cuh"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/frame_launch.cuh"
#include "cuda/method_launchers.h"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace weighted;

namespace {

template <typename Factor>
Uint128 sum_of(const std::vector<Factor> &factors) {
  return std::accumulate(factors.begin(), factors.end(), Uint128{0});
}

// Fills in what depends on the mask and on where alpha is.
template <typename Sum>
void fill_weighted(const PassQuery &query, WeightedParams<Sum> &p) {
  const Pass &pass = query.pass();
  const IntegerMask &mask = pass.mask[0];
  p.alpha_channel = alpha_of(query.plan.layout).channel;
  for (size_t i = 0; i < query.plan.parts.size(); i++)
    p.alpha[i] = {static_cast<int32_t>(alpha_part(query.plan, query.plan.parts[i])),
                  alpha_grid(query.plan, query.plan.parts[i])};
  p.width = pass.width();
  p.height = pass.height();
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  p.separable = mask.separable();
  Uint128 all = 1;
  auto *to = p.weight;
  const auto append = [&](const auto &factors, int zeros) {
    to = std::copy(factors.begin(), factors.end(), to + zeros) + zeros;
    all *= sum_of(factors);
  };
  if (!p.separable) {
    append(mask.value, 0);
  } else if (pass.long_row.empty()) {
    append(mask.row, kRowZeros);
    append(mask.column, kColumnZeros);
  } else {
    append(pass.long_row, kRowZeros);
    append(pass.long_column, kColumnZeros);
  }
  p.all = static_cast<Sum>(all);
}

void fill_colours(const PassQuery &query, WeightedParams<Uint128> &p) {
  const BilateralTables &tables = *query.pass().bilateral;
  p.is_rgb = tables.is_rgb;
  for (size_t i = 0; p.is_rgb && i < query.plan.parts.size(); i++)
    for (int k = 0; k < kColours; k++) {
      const BilateralTables::Place &place = tables.colour[k];
      p.colours = tables.table[place.plane][place.channel];
      p.colour[i][k] = {static_cast<uint8_t>(part_of_plane(query.plan, place.plane, query.plan.parts[i])),
                        static_cast<uint8_t>(place.channel)};
    }
}

template <typename Sum, typename RowSum>
KernelLaunch<WeightedParams<Sum>> choose_tiles(const PassQuery &query, WeightedParams<Sum> &p) {
  fill_weighted(query, p);
  const unsigned blocks = cut_tiles(p, kWeightedWidth, kWeightedHeight);
  const size_t row_bytes =
      (product_pitch(p.radius_x) * sizeof(uint32_t) + kRowSumPitch * sizeof(RowSum)) * kWeightedSlots;
  // All rows at once, or half of them, a quarter, ..., so that several blocks fit a multiprocessor.
  p.batch = kWeightedHeight + 2 * p.radius_y;
  const size_t most_bytes = current_limits().multiprocessor_bytes / kWeightedBlocks<Sum, RowSum> - kReservedBytes;
  while (p.batch > 1 && p.batch * row_bytes > most_bytes) p.batch = (p.batch + 1) / 2;
  return {weighted_kernel<Sum, RowSum>, blocks, dim3(kWeightedThreads), p.batch * row_bytes};
}

}  // namespace

Prepared prepare_weighted(const PassQuery &query) {
  const Pass &pass = query.pass();
  if (pass.op != Op::WeightedMean || !pass.separable()) return {};
  const auto prepare = [&](auto sum, auto row_sum) {
    using Sum = decltype(sum);
    return prepare_chosen<WeightedParams<Sum>>(query, choose_tiles<Sum, decltype(row_sum)>);
  };
  const bool words = query.is_dense(Container::U8) && query.plan.layout.plane[0].channels == 4 &&
                     is_mean(pass.sum_gain, pass.rounding[0][0]);
  if (pass.sum_bits > 63) return prepare(Uint128{}, Uint128{});
  if (words && pass.sum_bits <= 24) return prepare(float{}, float{});
  if (words && sum_of(pass.mask[0].row) * 255 * 255 <= UINT32_MAX) return prepare(uint64_t{}, uint32_t{});
  return prepare(uint64_t{}, uint64_t{});
}

void launch_weighted_samples(const PassRun &run) {
  WeightedParams<Uint128> p = {};
  fill_frame(run, p);
  fill_weighted(run, p);
  if (run.pass().op == Op::Bilateral) {
    p.is_bilateral = true;
    p.sum_gain = 2;  // see is_mean()
    fill_range(run.pass(), p.bilateral.range);
    fill_colours(run, p);
  }
  const unsigned blocks = cut_tiles(p, kSamplesWidth, kSamplesHeight);
  enqueue(named(run, "weighted_samples"),
          KernelLaunch<WeightedParams<Uint128>>{weighted_kernel<Uint128, void>, blocks, dim3(kWeightedThreads), 0}, p);
}

}  // namespace cudaconv
