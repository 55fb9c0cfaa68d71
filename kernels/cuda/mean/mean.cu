// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for means over large windows.
#include "cuda/mean/mean.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"

namespace cudaconv {

using namespace mean;

namespace {

struct MeanTuning {
  static constexpr int kLeastSide = 33;  // smaller windows are left to the methods
  // Rows of a strip: the first window of each strip is summed from scratch, but a GPU needs many strips. kernel-bench
  // --table=sizes --only=box, H200.
  static constexpr int kLeastStrip = 32, kMostStrip = 128;
};

// Sums from one row of a part to the next.
int64_t sums_pitch(const PlaneLayout &layout) {
  return (int64_t{layout.width} * layout.channels + 3) / 4 * 4;
}

// Shared memory for the sums of `width` pixels of a row.
size_t row_bytes(const MeanParams &p, const PartParams &part, int width) {
  const size_t pixels = static_cast<size_t>(width) + p.width + kMeanThreads / 32;
  return pixels * part.channels * (part.container == Container::U8 ? sizeof(WindowSum<1>) : sizeof(WindowSum<2>));
}

// How many pixels of a row a block makes results for: all, or the most that shared memory has room for. A multiple of
// 16, so that words of results are whole.
int pixels_of_block(const MeanParams &p, const PartParams &part) {
  constexpr int kUnit = 16;
  int blocks = 1, width = part.width;
  while (width > kUnit && row_bytes(p, part, width) > current_limits().block_bytes)
    width = (part.width / ++blocks + kUnit) / kUnit * kUnit;
  return width;
}

// Fills in the parameters of the pass, but for where sums lie; the frame has been filled in. False if the pass is not
// for this structure.
bool fill_mean(const PassQuery &query, MeanParams &p) {
  const Pass &pass = query.pass();
  if (pass.op != Op::Linear || pass.has_gain() || !pass.separable() || !pass.mask[0].uniform() ||
      pass.mask[0].row_shift || std::max(pass.width(), pass.height()) < MeanTuning::kLeastSide ||
      pass.copy_source != pass.source || !(query.is_dense(Container::U8) || query.is_dense(Container::U16)))
    return false;
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  p.width = pass.width();
  p.height = pass.height();
  p.factor = pass.mask[0].row[0] * pass.mask[0].column[0];
  p.sample_shift = sample.shift;
  p.sample_mask = (1u << sample.depth) - 1;
  p.strip = std::clamp(p.height / 2, MeanTuning::kLeastStrip, MeanTuning::kMostStrip);
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    return row_bytes(p, part, pixels_of_block(p, part)) <= current_limits().block_bytes;
  });
}

template <int kBytes>
void enqueue_columns(const PassRun &run, MeanParams &p) {
  int64_t sums = 0;
  for (int i = 0; i < p.parts; i++) {
    const PlaneLayout &layout = run.plan.layout.plane[run.plan.parts[i].plane];
    p.first_sum[i] = sums;
    p.sums_pitch[i] = static_cast<int32_t>(sums_pitch(layout));
    sums += sums_pitch(layout) * p.part[i].height;
    // Sums beside these are not made: they are in both prefix sums of a window, or in none.
    const PixelRect columns = read_bounds(p.part[i], p.host[i], run.plan.border, p.width / 2, 0);
    const int pixel_bytes = layout.channels * kBytes;
    p.summed[i] = {columns.x0 * pixel_bytes / 4, columns.y0, (columns.x1 * pixel_bytes + 3) / 4, columns.y1};
  }
  const unsigned blocks = number_blocks(p, [&](int i) {
    const int rows = p.part[i].has_filtered ? p.summed[i].height() : 0;
    return BlockCount{pieces_of(p.summed[i].width(), kMeanThreads), pieces_of(rows, p.strip)};
  });
  enqueue("mean_columns", mean_columns_kernel<kBytes>, blocks, kMeanThreads, sizeof(int32_t) * (p.strip + p.height),
          *run.launches, p);
}

template <int kBytes>
void enqueue_rows(const PassRun &run, MeanParams &p) {
  const unsigned blocks = cut_tiles(p, TileCorners::Multiples, [&](const PartParams &part) {
    return TileSize{pixels_of_block(p, part), part.width, 1};
  });
  size_t bytes = 0;
  for (int i = 0; i < p.parts; i++) bytes = std::max(bytes, row_bytes(p, p.part[i], p.host[i].tile_width));
  enqueue(run, KernelLaunch<MeanParams>{mean_rows_kernel<kBytes>, blocks, kMeanThreads, bytes}, p);
}

template <int kBytes>
void launch_mean(const PassRun &run) {
  MeanParams p = {};
  fill_frame(run, p);
  fill_mean(run, p);
  p.sums = static_cast<uint32_t *>(run.buffers.scratch);
  enqueue_columns<kBytes>(run, p);
  enqueue_rows<kBytes>(run, p);
}

}  // namespace

Prepared prepare_mean(const PassQuery &query) {
  MeanParams p = {};
  fill_frame(query, p);
  if (!fill_mean(query, p)) return {};
  int64_t sums = 0;
  for (const Plan::Part &part : query.plan.parts) sums += sums_pitch(query.plan.layout.plane[part.plane]) * part.height;
  return {1, query.is_dense(Container::U8) ? launch_mean<1> : launch_mean<2>,
          static_cast<size_t>(sums) * sizeof(uint32_t)};
}

}  // namespace cudaconv
