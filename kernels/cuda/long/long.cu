// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for long separable masks.
#include "cuda/long/long.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/device/read_bounds.h"

namespace cudaconv {

using namespace long_masks;

namespace {

struct LongTuning {
  static constexpr int kLeastTaps = 33;  // with fewer taps the methods are as fast
  // Rows of a strip: the first window of each strip is summed from scratch, but a GPU needs many strips. kernel-bench
  // --table=sizes --only=box, H200.
  static constexpr int kLeastStrip = 32, kMostStrip = 128;
};

// Number of row sums of a part.
int64_t sums_of(const Plan &plan, const Plan::Part &part) {
  const PlaneLayout &layout = plan.layout.plane[part.plane];
  return int64_t{layout.width} * part.height * layout.channels;
}

bool is_long(const Pass &pass) {
  return pass.op == Op::Linear && pass.separable() && std::max(pass.width(), pass.height()) >= LongTuning::kLeastTaps;
}

size_t sum_bytes(const Plan &plan) {
  int64_t sums = 0;
  for (const Plan::Part &part : plan.parts) sums += sums_of(plan, part);
  return static_cast<size_t>(sums) * sizeof(int32_t);
}

void launch_long(const PassRun &run) {
  const Pass &pass = run.pass();
  const IntegerMask &mask = pass.mask[0];
  LongParams p = {};
  fill_frame(run, p);
  p.sums = static_cast<int32_t *>(run.buffers.scratch);
  p.row_taps = pass.width();
  p.column_taps = pass.height();
  p.row_shift = mask.row_shift;
  p.strip = std::clamp(pass.height() / 4, LongTuning::kLeastStrip, LongTuning::kMostStrip);
  std::copy(mask.row.begin(), mask.row.end(), p.row);
  std::copy(mask.column.begin(), mask.column.end(), p.column);
  int32_t segments = 0;
  int64_t sums = 0;
  for (int i = 0; i < p.parts; i++) {
    p.first_segment[i] = segments;
    p.first_sum[i] = sums;
    const PixelRect rows = read_bounds(p.part[i], p.host[i], run.plan.border, 0, p.column_taps / 2);
    p.summed[i] = rows;
    if (!rows.empty()) segments += (rows.x1 - rows.x0 + kLongSegment - 1) / kLongSegment * (rows.y1 - rows.y0);
    sums += sums_of(run.plan, run.plan.parts[i]);
  }
  const bool uniform = mask.uniform();
  const size_t bytes = sizeof(int32_t) * (kLongSegment + kMostLongTaps + 2 * kLongThreads);
  enqueue_whole(run, "long_rows", uniform ? long_rows_kernel<true> : long_rows_kernel<false>,
                static_cast<unsigned>(segments), dim3(kLongThreads), bytes, p);
  const unsigned blocks = cut_tiles(p, kLongColumns, kLongThreads / kLongColumns * (uniform ? p.strip : kLongResults));
  enqueue(run,
          KernelLaunch<LongParams>{uniform ? long_columns_kernel<true> : long_columns_kernel<false>, blocks,
                                   kLongThreads, 0},
          p);
}

}  // namespace

Prepared prepare_long(const PassQuery &query) {
  if (!is_long(query.pass())) return {};
  return {1, launch_long, sum_bytes(query.plan)};
}

}  // namespace cudaconv
