// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for long separable masks.
#include "cuda/long/long.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"

namespace cudaconv {

using namespace long_masks;

namespace {

constexpr int kLeastLongTaps = 33;  // with fewer taps the methods are as fast

// Number of row sums of a part.
int64_t sums_of(const Plan &plan, const Plan::Part &part) {
  const PlaneLayout &layout = plan.layout.plane[part.plane];
  return int64_t{layout.width} * part.height * layout.channels;
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
  std::copy(mask.row.begin(), mask.row.end(), p.row);
  std::copy(mask.column.begin(), mask.column.end(), p.column);
  int64_t sums = 0;
  for (int i = 0; i < p.parts; i++) {
    p.first_sum[i] = sums;
    p.summed[i] = read_bounds(p.part[i], p.host[i], run.plan.border, 0, p.column_taps / 2);
    sums += sums_of(run.plan, run.plan.parts[i]);
    for (int c = 0; c < p.part[i].channels; c++)
      p.outside[i][c] = static_cast<int32_t>(mask.row_sum(p.part[i].channel[c].border_value));
  }
  const unsigned segments = number_blocks(p, [&](int i) {
    return BlockCount{pieces_of(p.summed[i].width(), kLongSegment), p.summed[i].height()};
  });
  enqueue("long_rows", long_rows_kernel, segments, kLongThreads, sizeof(int32_t) * (kLongSegment + kMostTaps),
          *run.launches, p);
  const unsigned blocks = cut_tiles(p, kLongColumns, kLongRows);
  enqueue(run, KernelLaunch<LongParams>{long_columns_kernel, blocks, kLongThreads, 0}, p);
}

}  // namespace

Prepared prepare_long(const PassQuery &query) {
  const Pass &pass = query.pass();
  if (pass.op != Op::Linear || !pass.separable() || std::max(pass.width(), pass.height()) < kLeastLongTaps) return {};
  int64_t sums = 0;
  for (const Plan::Part &part : query.plan.parts) sums += sums_of(query.plan, part);
  return {1, launch_long, static_cast<size_t>(sums) * sizeof(int32_t)};
}

}  // namespace cudaconv
