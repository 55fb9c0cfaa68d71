// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for long Gaussians.
#include "cuda/mma/long_separable.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/scratch.h"

namespace cudaconv {

namespace {

struct LongMmaTuning {
  // With fewer taps the methods are as fast: kernel-bench --table=sizes --format=GRAY16_LE --only=unsharp, H200.
  static constexpr int kLeastTaps = 13;
};

// Only Gaussians have row sums that are rounded.
bool is_long_gaussian(const Plan &plan, const Pass &pass) {
  const PlaneLayout &plane = plan.layout.plane[0];
  const IntegerMask &mask = pass.mask[0];
  const auto negative = [](int32_t v) { return v < 0; };
  return pass.op == Op::Linear && pass.separable() && mask.row_shift > 0 &&
         std::max(pass.width(), pass.height()) >= LongMmaTuning::kLeastTaps && plan.layout.uniform_dense() &&
         (plane.container == Container::U16 || (plane.container == Container::U8 && plane.channel[0].depth == 8)) &&
         std::none_of(mask.row.begin(), mask.row.end(), negative) &&
         std::none_of(mask.column.begin(), mask.column.end(), negative);
}

int sum_pitch(const Plan::Part &part) {
  return (part.height + 7) / 8 * 8;
}
int64_t sums_of(const Plan &plan, const Plan::Part &part) {
  const PlaneLayout &layout = plan.layout.plane[part.plane];
  return int64_t{layout.width} * layout.channels * sum_pitch(part);
}

template <typename Shape>
KernelLaunch<LongMmaParams> launch_of(void (*kernel)(LongMmaParams), unsigned blocks, int taps) {
  const size_t bytes = long_mma_bytes<Shape>(taps);
  if (bytes > current_limits().block_bytes) return {};
  return {kernel, blocks, kLongMmaThreads, bytes};
}

struct LongMmaLaunches {
  KernelLaunch<LongMmaParams> rows, columns;
};

// Chooses the launches, without kernels if the pass is not for this structure. The frame has been filled in.
LongMmaLaunches choose(const PassQuery &query, LongMmaParams &p) {
  const Pass &pass = query.pass();
  if (!query.kernels.mma || !is_long_gaussian(query.plan, pass)) return {};
  const IntegerMask &mask = pass.mask[0];
  p.taps[0] = pass.width();
  p.taps[1] = pass.height();
  p.row_shift = mask.row_shift;
  std::copy(mask.row.begin(), mask.row.end(), p.line[0]);
  std::copy(mask.column.begin(), mask.column.end(), p.line[1]);
  int32_t tiles = 0;
  int64_t sums = 0, largest = 0;
  for (int32_t v : mask.row) largest += int64_t{v} * pass.rounding[0][0].max;
  const auto round = [&](int64_t sum) { return (sum + (int64_t{1} << (mask.row_shift - 1))) >> mask.row_shift; };
  largest = round(largest);
  int64_t largest_result = 0;
  for (int32_t v : mask.column) largest_result += v * largest;
  // All samples of the frame have the same form, so that they share a rounding.
  if (!p.has_gain) p.result_shift = shift_of(p.rounding[0], largest_result);
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    p.first_tile[i] = tiles;
    p.first_sum[i] = sums;
    p.sum_pitch[i] = sum_pitch(query.plan.parts[i]);
    tiles += (part.width + kLongMmaOutputs - 1) / kLongMmaOutputs *
             ((part.height + kLongMmaLines - 1) / kLongMmaLines) * part.channels;
    sums += sums_of(query.plan, query.plan.parts[i]);
    for (int c = 0; c < part.channels; c++) {
      int64_t outside = 0;
      for (int32_t v : mask.row) outside += int64_t{v} * part.channel[c].border_value;
      p.outside[i][c] = static_cast<int32_t>(round(outside));
    }
  }
  const auto fits = [](const std::vector<int32_t> &line) {
    return *std::max_element(line.begin(), line.end()) < 1 << 24;
  };
  const auto rows_tiles = static_cast<unsigned>(tiles);
  const unsigned columns_tiles = cut_tiles(p, kLongMmaLines, kLongMmaOutputs, TileCorners::Multiples);
  LongMmaLaunches launches;
  if (fits(mask.row))
    launches.rows = launch_of<LongMmaShape<2, 3>>(long_mma_rows_kernel<LongMmaShape<2, 3>>, rows_tiles, p.taps[0]);
  else
    launches.rows = launch_of<LongMmaShape<2, 4>>(long_mma_rows_kernel<LongMmaShape<2, 4>>, rows_tiles, p.taps[0]);
  if (largest < 1 << 24 && fits(mask.column))
    launches.columns =
        launch_of<LongMmaShape<3, 3>>(long_mma_columns_kernel<LongMmaShape<3, 3>>, columns_tiles, p.taps[1]);
  else
    launches.columns =
        launch_of<LongMmaShape<4, 4>>(long_mma_columns_kernel<LongMmaShape<4, 4>>, columns_tiles, p.taps[1]);
  return launches;
}

}  // namespace

size_t long_mma_sum_bytes(const Plan &plan, const Pass &) {
  int64_t sums = 0;
  for (const Plan::Part &part : plan.parts) sums += sums_of(plan, part);
  return static_cast<size_t>(sums) * sizeof(int32_t);
}

int takes_long_separable(const PassQuery &query) {
  LongMmaParams p = {};
  fill_frame(query, p);
  const LongMmaLaunches launches = choose(query, p);
  return launches.rows.kernel && launches.columns.kernel;
}

void launch_long_separable(const PassRun &run) {
  LongMmaParams p = {};
  fill_frame(run, p);
  const LongMmaLaunches launches = choose(run, p);
  p.sums = static_cast<int32_t *>(run.buffers.scratch);
  // All rows are summed, whatever the regions, because columns are long.
  const auto rows = [=, name = run.name, stream = run.stream](const uint32_t *) {
    enqueue(name, Start::AfterAll, launches.rows.kernel, dim3(launches.rows.blocks), launches.rows.threads,
            launches.rows.shared_bytes, stream, p);
  };
  if (run.deferred)
    run.deferred->add(rows);
  else
    rows(nullptr);
  enqueue(run, launches.columns, p);
}

}  // namespace cudaconv
