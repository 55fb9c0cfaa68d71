// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for weighted means.
#include "cuda/weighted/weighted.cuh"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"
#include "cuda/weighted/weighted_strips.cuh"

namespace cudaconv {

using namespace weighted;

namespace {

template <typename Sum>
using WeightedKernel = void (*)(WeightedParams<Sum>);

template <typename Sum, typename Factor>
void fill_weights(const std::vector<Factor> &factors, int zeros, int *at, WeightedParams<Sum> &p) {
  std::copy(factors.begin(), factors.end(), p.weight + *at + zeros);
  *at += static_cast<int>(factors.size()) + 2 * zeros;
}

template <typename Factor>
Uint128 sum_of(const std::vector<Factor> &factors) {
  return std::accumulate(factors.begin(), factors.end(), Uint128{0});
}

// Fills in what depends on the mask and on where alpha is. `p` has the frame's addresses.
template <typename Sum>
void fill_weighted(const PassQuery &query, WeightedParams<Sum> &p) {
  const Pass &pass = query.pass();
  const IntegerMask &mask = pass.mask[0];
  p.alpha_channel = alpha_of(query.plan.layout).channel;
  for (size_t i = 0; i < query.plan.parts.size(); i++)
    p.alpha[i] = {p.part[alpha_part(query.plan, i)], alpha_grid(query.plan, i)};
  p.width = pass.width();
  p.height = pass.height();
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  p.separable = mask.separable();
  Uint128 all;
  int at = 0;
  const auto fill = [&](const auto &row, const auto &column) {
    fill_weights(row, kRowZeros, &at, p);
    fill_weights(column, kColumnZeros, &at, p);
    all = sum_of(row) * sum_of(column);
  };
  if (!mask.separable()) {
    fill_weights(mask.value, 0, &at, p);
    all = sum_of(mask.value);
  } else if (pass.long_row.empty()) {
    fill(mask.row, mask.column);
  } else {
    fill(pass.long_row, pass.long_column);
  }
  p.all[0] = static_cast<uint64_t>(all);
  p.all[1] = static_cast<uint64_t>(all >> 64);
}

// Launches the kernel that does any mask, sample by sample.
void launch_samples(const PassRun &run) {
  using Sum = Uint128;
  WeightedParams<Sum> p = {};
  fill_frame(run, p);
  fill_weighted(run, p);
  const unsigned blocks = cut_tiles(p, kSamplesWidth, kSamplesHeight);
  enqueue(run, KernelLaunch<WeightedParams<Sum>>{weighted_samples_kernel<Sum>, blocks, dim3(kWeightedThreads), 0}, p);
}

template <typename Sum, typename Product>
void launch_tiles(const PassRun &run) {
  WeightedParams<Sum> p = {};
  fill_frame(run, p);
  fill_weighted(run, p);
  const unsigned blocks = cut_tiles(p, kWeightedWidth, kWeightedHeight);
  p.words = has_words(run.plan.layout);
  const size_t row_bytes = (product_pitch(p.radius_x) * sizeof(Product) + kRowSumPitch * sizeof(Sum)) * kWeightedSlots;
  p.batch = 32;
  while (p.batch > 1 && p.batch * row_bytes > current_limits().block_bytes / 2) p.batch /= 2;
  enqueue(run,
          KernelLaunch<WeightedParams<Sum>>{weighted_kernel<Sum, Product>, blocks, dim3(kWeightedThreads),
                                            p.batch * row_bytes},
          p);
}

template <int kTaps>
void launch_strips(const PassRun &run) {
  using Tuning = WeightedStripTuning;
  WeightedStripParams p = {};
  fill_frame(run, p);
  const IntegerMask &mask = run.pass().mask[0];
  const bool alpha_first = alpha_of(run.plan.layout).channel == 0;
  // Alpha comes last in the kernel's order of channels.
  for (uint32_t c = 0; c < 4; c++) p.unpack[c] = 0x7440 | (alpha_first ? (c + 1) % 4 : c);
  p.pack = alpha_first ? 0x4105 : 0x5410;
  p.all = static_cast<float>(sum_of(mask.row) * sum_of(mask.column));
  std::copy(mask.row.begin(), mask.row.end(), p.row + (kTaps - mask.row.size()) / 2);
  std::copy(mask.column.begin(), mask.column.end(), p.column + (kTaps - mask.column.size()) / 2);
  const auto cut = [&](int rows) {
    p.rows = rows;
    return cut_tiles(p, Tuning::kStrips * kWeightedStripWidth, rows);
  };
  const unsigned blocks =
      cut(choose_strip_height(Tuning::kLeastRows, 1, Tuning::kMinBlocks, kTaps / 2 * 2 + Tuning::kMoreRows, cut));
  enqueue(run, KernelLaunch<WeightedStripParams>{weighted_strips_kernel<kTaps>, blocks, dim3(32 * Tuning::kStrips), 0},
          p);
}

}  // namespace

Prepared prepare_weighted_strips(const PassQuery &query) {
  const Pass &pass = query.pass();
  const Rounding &rounding = pass.rounding[0][0];
  const bool takes = pass.op == Op::WeightedMean && pass.separable() && has_words(query.plan.layout) &&
                     std::max(pass.width(), pass.height()) <= kMostStripTaps && pass.sum_bits <= kMostStripBits &&
                     !pass.keep_x && !pass.keep_y && is_mean(pass.sum_gain, rounding) && rounding.max == 255;
  if (!takes) return {};
  return {1, std::max(pass.width(), pass.height()) <= 3 ? launch_strips<3> : launch_strips<5>};
}

static void launch_weighted(const PassRun &run) {
  const Pass &pass = run.pass();
  if (pass.sum_bits > 63) return launch_tiles<Uint128, uint32_t>(run);
  if (pass.sum_bits > 32 || run.plan.layout.plane[0].container != Container::U8)
    return launch_tiles<uint64_t, uint32_t>(run);
  launch_tiles<uint32_t, uint16_t>(run);
}

Prepared prepare_weighted(const PassQuery &query) {
  if (query.pass().op != Op::WeightedMean || !query.pass().separable() || !query.plan.layout.uniform_dense()) return {};
  return {1, launch_weighted};
}

void launch_weighted_any(const PassRun &run) {
  PassRun named = run;
  named.name = "weighted";
  if (run.plan.method == Method::Auto && run.pass().separable()) return launch_weighted(named);
  named.name = "weighted_samples";
  launch_samples(named);
}

}  // namespace cudaconv
