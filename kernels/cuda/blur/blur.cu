// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for wide Gaussians. A frame takes four launches, with coarse samples in between:
//
//    reduce          samples       ->  reduced
//    blur_rows       reduced       ->  rows_blurred
//    blur_columns    rows_blurred  ->  blurred, in the memory of `reduced`
//    expand          blurred       ->  results
//
// Example, D = 8, GRAY8 of 1920x1080: `blurred` has 243 columns, -1 to 241, and 138 rows, with a pitch of 248 samples.
#include "cuda/blur/blur.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/method_launchers.h"
#include "cuda/tile_height.h"
#include "plan/area.h"

namespace cudaconv {

using namespace blur;

namespace {

// Sizes of the coarse frames of a complete part, in samples.
struct CoarseSize {
  CoarseLine x, y;           // lines that samples are reduced to
  CoarseLine columns, rows;  // lines that results are expanded from
  int64_t reduced_pitch, pitch;

  CoarseSize(const Plan &plan, const Pass &pass, size_t part) {
    const PlaneLayout &layout = plan.layout.plane[plan.parts[part].plane];
    const Border border = plan.border == Border::Keep ? Border::Replicate : plan.border;
    x = coarse_line(*pass.decimation, border, layout.width);
    y = coarse_line(*pass.decimation_y, border, plan.parts[part].height);
    columns = expanded_line(*pass.decimation, layout.width);
    rows = expanded_line(*pass.decimation_y, plan.parts[part].height);
    const auto whole = [](int64_t samples) { return (samples + 7) / 8 * 8; };
    reduced_pitch = whole(int64_t{y.count} * layout.channels);
    pitch = whole(int64_t{columns.count} * layout.channels);
  }
  // Samples of the memory that `reduced` and later `blurred` use: `reduced` is not needed once it is blurred along
  // rows.
  int64_t first() const { return std::max(x.count * reduced_pitch, rows.count * pitch); }
  int64_t all() const { return first() + y.count * pitch; }
};

CoarseSpan span_of(const CoarseLine &line, int first, int last) {
  const int begin = line.index(first);
  return {line, begin, line.index(last) + 1 - begin};
}

// Fills in where the coarse samples are from which the pixels of `bounds` are made. `memory`: the part's; nullptr:
// not known yet.
void fill_coarse(const Pass &pass, const CoarseSize &size, const PixelRect &bounds, int16_t *memory,
                 CoarseBuffers &coarse) {
  coarse.reduced = coarse.blurred = memory;
  coarse.rows_blurred = memory ? memory + size.first() : nullptr;
  coarse.reduced_pitch = size.reduced_pitch;
  coarse.pitch = size.pitch;
  if (bounds.empty()) return;
  const auto cells = [&](int begin, int end, int32_t *first, int32_t *count) {
    *first = (begin >> pass.decimation->log_factor) - 1;
    *count = ((end - 1) >> pass.decimation->log_factor) + 3 - *first;
  };
  cells(bounds.x0, bounds.x1, &coarse.first_column, &coarse.columns);
  cells(bounds.y0, bounds.y1, &coarse.first_row, &coarse.rows);
  const int of_x = pass.decimation->radius(), of_y = pass.decimation_y->radius();
  coarse.x = span_of(size.x, coarse.first_column - of_x, coarse.first_column + coarse.columns - 1 + of_x);
  coarse.y = span_of(size.y, coarse.first_row - of_y, coarse.first_row + coarse.rows - 1 + of_y);
}

// The blocks of a kernel for coarse samples of a part.
BlockCount count_blocks(const PartParams &part, int columns, int of_block, int rows, int rows_of_block) {
  return {pieces_of(columns, of_block), part.has_filtered ? pieces_of(rows, rows_of_block) : 0};
}

// Fills in all parameters but the frame, the tiles of the results, and the blur of an axis. `memory`: coarse_bytes() in
// device memory; nullptr: not known yet.
void fill_blur(const PassQuery &query, int16_t *memory, BlurParams &p) {
  const Decimation &decimation = *query.pass().decimation;
  const PlaneLayout &plane = query.plan.layout.plane[0];
  p.log_factor = decimation.log_factor;
  p.rows_shift = decimation.reduce_rows_shift();
  p.columns_shift = decimation.reduce_columns_shift();
  p.expand_shift = decimation.expand_shift();
  // Sums are clamped to samples after the shift.
  const Rounding &r = p.rounding[0];
  if (!p.has_gain && !r.absolute && r.half <= 1 << 29) p.result_shift = shift_of(r, 0);
  std::copy(decimation.reduce.begin(), decimation.reduce.end(), p.reduce);
  p.offset = decimation.offset;
  p.offset_of_results = decimation.offset << (3 * decimation.log_factor);
  p.sample_shift = plane.channel[0].shift;
  p.sample_mask = (1u << plane.channel[0].depth) - 1;
  p.deep = plane.container == Container::U16;
  for (int phase = 0; phase < decimation.factor(); phase++)
    std::copy(decimation.expand[phase].begin(), decimation.expand[phase].end(), p.expand[phase]);
  for (int i = 0; i < p.parts; i++) {
    const CoarseSize size(query.plan, query.pass(), i);
    fill_coarse(query.pass(), size, tiled_bounds(p.part[i], p.host[i]), memory, p.coarse[i]);
    if (memory) memory += size.all();
  }
}

// Shared memory of a block of reduce_kernel() that makes `rows` coarse rows.
size_t reduce_bytes(int rows) {
  return sizeof(int32_t) * reduce_rows_read(rows) + sizeof(int16_t) * kReducedSamples * rows;
}

// Cuts the frame into the tiles of these blocks, and returns how many there are.
unsigned cut_reduce_tiles(BlurParams &p, int rows) {
  p.tile_rows = rows;
  return number_blocks(p, [&](int i) {
    const CoarseBuffers &c = p.coarse[i];
    return count_blocks(p.part[i], c.x.count, reduced_columns(p.log_factor, p.part[i].channels), c.y.count, rows);
  });
}

// The coarse rows of a block with which reduce_kernel() takes the least time for the frame.
int choose_reduced_rows(BlurParams p) {
  constexpr int kStartRows = 4;  // the time that a block takes to start, in coarse rows; it reads three more, too
  return choose_tile_height(
      kLeastReducedRows - 1, kLeastReducedRows, kMostReducedRows, kReduceBlocks, reduce_bytes,
      [&](int rows) { return cut_reduce_tiles(p, rows); }, [](int rows) { return rows + 3 + kStartRows; });
}

// Fills in what only reduce_kernel() reads, and enqueues it. `dense`: of dense planes.
void enqueue_reduce(const PassRun &run, bool dense, int rows, BlurParams p) {
  const std::vector<int32_t> &reduce = run.pass().decimation->reduce;
  const int factor = 1 << p.log_factor, weights = static_cast<int>(reduce.size());
  for (int i = 0; i < 2 * 4 * 4; i++) {
    const int g = i / 16, k = i / 4 % 4, at = factor == 2 ? 4 - 2 * k + i % 4 : (3 - k) * factor + 4 * g + i % 4;
    const uint32_t weight = at >= 0 && at < weights ? reduce[at] : 0, first = std::min(weight, uint32_t{UINT8_MAX});
    p.reduce_bytes[0][g][k] |= first << 8 * (i % 4);
    p.reduce_bytes[1][g][k] |= (weight - first) << 8 * (i % 4);
  }
  p.words = dense;
  p.reduce_shift = dense && p.deep ? p.sample_shift : 0;
  p.reduce_mask = dense && p.deep ? (p.sample_mask << p.sample_shift) * 0x10001 : UINT32_MAX;
  constexpr void (*kKernels[])(BlurParams) = {reduce_kernel<1>, reduce_kernel<2>, reduce_kernel<3>};
  const unsigned blocks = cut_reduce_tiles(p, rows);
  enqueue("reduce", kKernels[p.log_factor - 1], blocks, kBlurThreads, reduce_bytes(rows), *run.launches, p);
}

// Enqueues the blur along rows, or the blur down columns.
void enqueue_blur(const PassRun &run, const BlurParams &params, bool along_rows) {
  const Decimation &decimation = along_rows ? *run.pass().decimation : *run.pass().decimation_y;
  const bool fine = !decimation.fine.empty();
  const int shift = Decimation::kBlurBits + (fine ? Decimation::kFineBits : 0);
  BlurLineParams p = {params, {}, along_rows, decimation.radius(), shift, {}};
  for (int i = 0; i <= p.radius; i++)
    p.weight[i] = fine ? decimation.blur[i] * (1 << Decimation::kFineBits) + decimation.fine[i] : decimation.blur[i];
  const unsigned blocks = number_blocks(p, [&](int i) {
    const CoarseBuffers &c = p.coarse[i];
    BlurredLines &lines = p.lines[i];
    lines.from = along_rows ? c.reduced : c.rows_blurred;
    lines.to = along_rows ? c.rows_blurred : c.blurred;
    lines.pitch = static_cast<int32_t>(along_rows ? c.reduced_pitch : c.pitch);
    lines.to_pitch = c.pitch;
    const CoarseSpan &span = along_rows ? c.x : c.y;
    lines.samples = span.count;
    lines.first = (along_rows ? c.first_column : c.first_row) - span.line.first - span.first;
    lines.outputs = along_rows ? c.columns : c.rows;
    lines.count = (along_rows ? c.y.count : c.columns) * p.part[i].channels;
    return count_blocks(p.part[i], lines.count, kBlurLines, lines.outputs, kBlurTile);
  });
  const auto kernel = fine ? blur_kernel<int64_t> : blur_kernel<int32_t>;
  enqueue(along_rows ? "blur_rows" : "blur_columns", kernel, blocks, kLineThreads, 0, *run.launches, p);
}

// Fills in the parameters, and enqueues the steps from samples to blurred coarse samples. The tiles of the results have
// been cut. `dense`: of dense planes. `rows`: see choose_reduced_rows(); 0: chooses them.
void enqueue_coarse(const PassRun &run, bool dense, int rows, BlurParams &p) {
  fill_blur(run, static_cast<int16_t *>(run.buffers.scratch), p);
  enqueue_reduce(run, dense, rows ? rows : choose_reduced_rows(p), p);
  for (const bool along_rows : {true, false}) enqueue_blur(run, p, along_rows);
}

// Cuts the frame into the tiles of expand_kernel(), and returns how many there are.
unsigned cut_results(BlurParams &p) {
  return cut_tiles(p, TileCorners::Multiples, [](const PartParams &part) {
    return TileSize{4 * kExpandWidth, part.width * part.channels, kExpandRows};
  });
}

}  // namespace

size_t coarse_bytes(const Plan &plan, const Pass &pass) {
  if (!pass.decimation) return 0;
  int64_t samples = 0;
  for (size_t i = 0; i < plan.parts.size(); i++) samples += CoarseSize(plan, pass, i).all();
  return static_cast<size_t>(samples) * sizeof(int16_t);
}

static void launch_blur(const PassRun &run, int rows) {
  BlurParams p = {};
  fill_frame(run, p);
  const unsigned blocks = cut_results(p);
  enqueue_coarse(run, true, rows, p);
  // The most samples of a tile's row of expanded columns: a tile may begin within a pixel and within a cell.
  int most = 0;
  for (int i = 0; i < p.parts; i++)
    most = std::max(most, ((4 * kExpandWidth / p.part[i].channels >> p.log_factor) + 6) * p.part[i].channels);
  const bool fours =
      !p.deep && std::all_of(p.part, p.part + p.parts, [](const auto &part) { return part.channels == 4; });
  const auto kernel = !fours ? expand_kernel<1> : p.log_factor == 1 ? expand_kernel<2> : expand_kernel<4>;
  enqueue(run, KernelLaunch<BlurParams>{kernel, blocks, kBlurThreads, sizeof(int32_t) * most * kExpandRows}, p);
}

Prepared prepare_blur(const PassQuery &query) {
  const Pass &pass = query.pass();
  const FrameLayout &layout = query.plan.layout;
  if (pass.op != Op::Blur || pass.copy_source != pass.source || !layout.uniform_dense() ||
      (layout.plane[0].container != Container::U8 && !query.is_dense(Container::U16)))
    return {};
  BlurParams p = {};
  fill_frame(query, p);
  cut_results(p);
  fill_blur(query, nullptr, p);
  return {1, [rows = choose_reduced_rows(p)](const PassRun &run) { launch_blur(run, rows); },
          coarse_bytes(query.plan, pass)};
}

void launch_blur_samples(const PassRun &run) {
  BlurParams p = {};
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(p, kSampleTile, kSampleTile, TileCorners::Multiples);
  enqueue_coarse(run, false, 0, p);
  enqueue(named(run, "expand_samples"), KernelLaunch<BlurParams>{expand_kernel<0>, blocks, kBlurThreads, 0}, p);
}

}  // namespace cudaconv
