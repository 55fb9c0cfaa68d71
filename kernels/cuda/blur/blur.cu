// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for wide Gaussians.
#include "cuda/blur/blur.cuh"

#include <algorithm>
#include <climits>
#include <cmath>
#include <vector>

#include "cuda/blur/blur_mma.cuh"
#include "cuda/blur/reduce_mma.cuh"
#include "cuda/device/u8x4_tile.h"
#include "cuda/frame_launch.cuh"

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

// Fills in where the coarse samples are from which the pixels of `bounds` are made. `memory` is the part's.
void fill_coarse(const Pass &pass, const CoarseSize &size, const PixelRect &bounds, int16_t *memory,
                 CoarseBuffers &coarse) {
  coarse.reduced = coarse.blurred = memory;
  coarse.rows_blurred = memory + size.first();
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

struct BlurTuning {
  // Samples of a row that a block reduces: the least multiple of four that keeps all its threads busy.
  static constexpr int kReducedSamples = 4 * kBlurThreads;
  // Coarse rows of a block. Each block also reads 3 halo rows; kReducedRows + 3 is a multiple of the step of
  // kReduceAtOnce rows of samples. Blocks of 9 and 13 rows are too few to share the work well: kernel-bench
  // --table=sizes --only=sigma, H200.
  static constexpr int kReducedRows = 5;
  // Blocks of reduce_mma_kernel() that a multiprocessor holds, and the time that one takes to start, in coarse rows.
  static constexpr int kReduceMmaBlocks = 2, kStartRows = 4;
};

// Counts the tiles of a kernel; tiles_of(coarse, part) returns how many tiles a part has across and down.
template <typename TilesOf>
unsigned count_tiles(BlurParams &p, int kernel, TilesOf tiles_of) {
  int32_t blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    const auto [across, down] = tiles_of(p.coarse[i], p.part[i]);
    p.coarse[i].first_tile[kernel] = blocks;
    p.coarse[i].tiles_x[kernel] = across;
    if (p.part[i].has_filtered) blocks += across * down;
  }
  return static_cast<unsigned>(blocks);
}

struct Tiles {
  int across, down;
};

int share(int all, int tile) {
  return (all + tile - 1) / tile;
}

using BlurKernel = void (*)(BlurParams);

template <bool kWords>
BlurKernel reduce_by(int log_factor) {
  static constexpr BlurKernel kKernels[] = {reduce_kernel<kWords, 1>, reduce_kernel<kWords, 2>,
                                            reduce_kernel<kWords, 3>};
  return kKernels[log_factor - 1];
}

BlurKernel reduce_by_mma(int log_factor) {
  static constexpr BlurKernel kKernels[] = {reduce_mma_kernel<1>, reduce_mma_kernel<2>, reduce_mma_kernel<3>};
  return kKernels[log_factor - 1];
}

template <int kChannels, bool kDeep>
BlurKernel expand_by(int log_factor) {
  static constexpr BlurKernel kKernels[] = {expand_kernel<kChannels, kDeep, 1>, expand_kernel<kChannels, kDeep, 2>,
                                            expand_kernel<kChannels, kDeep, 3>};
  return kKernels[log_factor - 1];
}

BlurKernel choose_expand(const BlurParams &p, bool deep) {
  if (deep) return expand_by<0, true>(p.log_factor);
  const bool fours = std::all_of(p.part, p.part + p.parts, [](const PartParams &part) { return part.channels == 4; });
  return fours ? expand_by<4, false>(p.log_factor) : expand_by<0, false>(p.log_factor);
}

// Chooses how sums become samples.
void fill_finish(BlurParams &p) {
  const Rounding &r = p.rounding[0];
  p.finish = BlurFinish::Any;
  // Sums are clamped to samples after the shift.
  if (!p.has_gain && !r.absolute && r.half <= 1 << 29) p.result_shift = shift_of(r, 0);
  if (p.result_shift) {
    p.finish = BlurFinish::Shift;
    return;
  }
  // Sums fit 32 bits; the values to be shifted have to fit them, too.
  const int log = ceil_log2(2 * r.half);
  const double most = std::fabs(static_cast<double>(p.sum_gain)) * std::ldexp(1, 31 - p.sum_shift) +
                      std::fabs(static_cast<double>(p.center_gain)) * r.max + std::fabs(static_cast<double>(r.offset)) +
                      static_cast<double>(r.half);
  if (!p.has_gain || r.absolute || int64_t{1} << log != 2 * r.half || most >= std::ldexp(1, 30 + log)) return;
  p.finish = BlurFinish::Gain;
  p.result_shift = log;
  p.result_offset = r.offset + r.half;
}

template <typename Params>
void enqueue_step(const PassRun &run, const char *name, void (*kernel)(Params), unsigned blocks, size_t shared_bytes,
                  const Params &p) {
  enqueue_whole(run, name, kernel, blocks, dim3(kBlurThreads), shared_bytes, p);
}

// Fills in the blur of an axis.
void fill_axis(const Decimation &decimation, BlurParams &p) {
  p.radius = decimation.radius();
  std::copy(decimation.blur.begin(), decimation.blur.end(), p.blur);
}

// Fills in all parameters but the frame, the tiles of the results, and the blur of an axis.
void fill_blur(const PassRun &run, BlurParams &p) {
  const Decimation &decimation = *run.pass().decimation;
  p.log_factor = decimation.log_factor;
  p.rows_shift = decimation.reduce_rows_shift();
  p.columns_shift = decimation.reduce_columns_shift();
  p.expand_shift = decimation.expand_shift();
  std::copy(decimation.reduce.begin(), decimation.reduce.end(), p.reduce);
  for (size_t i = 0; i < decimation.reduce.size(); i++) {
    const auto weight = static_cast<uint32_t>(decimation.reduce[i]), first = std::min(weight, uint32_t{UINT8_MAX});
    p.reduce_bytes[0][i / 4] |= first << 8 * (i % 4);
    p.reduce_bytes[1][i / 4] |= (weight - first) << 8 * (i % 4);
  }
  p.offset = decimation.offset;
  p.offset_of_results = decimation.offset << (3 * decimation.log_factor);
  const ChannelLayout &sample = run.plan.layout.plane[0].channel[0];
  p.sample_shift = sample.shift;
  p.sample_mask = (1u << sample.depth) - 1;
  for (int phase = 0; phase < decimation.factor(); phase++)
    std::copy(decimation.expand[phase].begin(), decimation.expand[phase].end(), p.expand[phase]);
  auto *memory = static_cast<int16_t *>(run.buffers.scratch);
  for (int i = 0; i < p.parts; i++) {
    const CoarseSize size(run.plan, run.pass(), i);
    fill_coarse(run.pass(), size, tiled_bounds(p.part[i], p.host[i]), memory, p.coarse[i]);
    memory += size.all();
  }
}

// Cuts the frame into the tiles of the kernel `reduce` and enqueues it.
void enqueue_reduce(const PassRun &run, BlurKernel reduce, BlurParams &p) {
  int most_channels = 1;
  for (int i = 0; i < p.parts; i++) most_channels = std::max(most_channels, p.part[i].channels);
  const int factor = 1 << p.log_factor;
  p.tile_columns = BlurTuning::kReducedSamples / (factor * most_channels) - 3;
  const size_t row = ((p.tile_columns + 3) * factor * most_channels + 8) / 4 * 4;
  p.tile_rows = BlurTuning::kReducedRows;
  const unsigned blocks = count_tiles(p, 0, [&](const CoarseBuffers &coarse, const PartParams &) {
    return Tiles{share(coarse.x.count, p.tile_columns), share(coarse.y.count, p.tile_rows)};
  });
  const size_t bytes = row * p.tile_rows * sizeof(int16_t) +
                       (kReduceBefore + reduce_rows_read(p.log_factor, p.tile_rows)) * sizeof(int32_t);
  enqueue_step(run, "reduce", reduce, blocks, bytes, p);
}

// The same for the kernels on the matrix instructions. Picks the height of tiles that takes least time: the most
// tiles that a multiprocessor gets, times the rows of a tile with three rows of halo and BlurTuning::kStartRows.
void enqueue_reduce_mma(const PassRun &run, BlurParams &p) {
  const auto count = [&](int tile_rows) {
    p.tile_rows = tile_rows;
    return count_tiles(p, 0, [&](const CoarseBuffers &coarse, const PartParams &part) {
      const int columns = reduced_columns(p.border, p.log_factor, part.channels);
      return Tiles{share(coarse.x.count, columns), share(coarse.y.count, tile_rows)};
    });
  };
  const auto at_once = static_cast<unsigned>(BlurTuning::kReduceMmaBlocks * current_limits().multiprocessors);
  int best = 0;
  unsigned least = UINT_MAX;
  for (int rows = kReduceGroup; rows <= kTallestReduced; rows += kReduceGroup) {
    const unsigned rounds = (count(rows) + at_once - 1) / at_once;
    const unsigned time = rounds * static_cast<unsigned>(rows + 3 + BlurTuning::kStartRows);
    if (time < least) {
      least = time;
      best = rows;
    }
  }
  const unsigned blocks = count(best);
  enqueue_step(run, "reduce_mma", reduce_by_mma(p.log_factor), blocks, sizeof(ReduceMemory), p);
}

// Enqueues the blur along rows, or the blur down columns, in `blocks` blocks.
template <bool kRows, bool kFine>
void enqueue_blur(const PassRun &run, unsigned blocks, const BlurParamsOf<kFine> &p) {
  const bool mma = run.kernels.mma;
  const size_t bytes = mma ? 4 * blur_weight_bytes(kFine) * blur_line_words(p.radius) * sizeof(uint32_t) : 0;
  const auto plain = kRows ? blur_rows_kernel<kFine> : blur_columns_kernel<kFine>;
  enqueue_step(run, kRows ? "blur_rows" : "blur_columns", mma ? blur_mma_kernel<kRows, kFine> : plain, blocks, bytes,
               p);
}

template <bool kRows>
void enqueue_blur(const PassRun &run, unsigned blocks, const Decimation &decimation, BlurParams &p) {
  fill_axis(decimation, p);
  if (decimation.fine.empty()) return enqueue_blur<kRows, false>(run, blocks, p);
  FineBlurParams with_fine = {p, {}};
  std::copy(decimation.fine.begin(), decimation.fine.end(), with_fine.fine);
  enqueue_blur<kRows, true>(run, blocks, with_fine);
}

// Enqueues the steps from reduced to blurred coarse samples.
void enqueue_coarse(const PassRun &run, BlurParams &p) {
  const bool mma = run.kernels.mma;
  const int samples = mma ? kBlurLines : 32, along = mma ? kBlurTile : kBlurThreads / 32 * kLineResults;
  const unsigned rows = count_tiles(p, 1, [&](const CoarseBuffers &coarse, const PartParams &part) {
    return Tiles{share(coarse.y.count * part.channels, samples), share(coarse.columns, along)};
  });
  const unsigned columns = count_tiles(p, 2, [&](const CoarseBuffers &coarse, const PartParams &part) {
    return Tiles{share(coarse.columns * part.channels, samples), share(coarse.rows, along)};
  });
  enqueue_blur<true>(run, rows, *run.pass().decimation, p);
  enqueue_blur<false>(run, columns, *run.pass().decimation_y, p);
}

}  // namespace

size_t coarse_bytes(const Plan &plan, const Pass &pass) {
  if (!pass.decimation) return 0;
  int64_t samples = 0;
  for (size_t i = 0; i < plan.parts.size(); i++) samples += CoarseSize(plan, pass, i).all();
  return static_cast<size_t>(samples) * sizeof(int16_t);
}

static void launch_blur(const PassRun &run) {
  BlurParams p = {};
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(
      p,
      [](const PartParams &part) {
        return TileSize{4 * kExpandWidth, part.width * part.channels, kExpandRows};
      },
      TileCorners::Multiples);
  fill_blur(run, p);
  const bool deep = run.plan.layout.plane[0].container == Container::U16;
  if (deep)
    enqueue_reduce(run, reduce_by<true>(p.log_factor), p);
  else if (run.kernels.mma)
    enqueue_reduce_mma(run, p);
  else
    enqueue_reduce(run, reduce_by<false>(p.log_factor), p);
  enqueue_coarse(run, p);
  // The most samples of a tile's row of expanded columns: a tile may begin within a pixel and within a cell.
  int most = 0;
  for (int i = 0; i < p.parts; i++)
    most = std::max(most, ((4 * kExpandWidth / p.part[i].channels >> p.log_factor) + 6) * p.part[i].channels);
  fill_finish(p);
  const BlurKernel kernel = choose_expand(p, deep);
  enqueue(run, KernelLaunch<BlurParams>{kernel, blocks, kBlurThreads, sizeof(int32_t) * most * kExpandRows}, p);
}

Prepared prepare_blur(const PassQuery &query) {
  const Pass &pass = query.pass();
  const FrameLayout &layout = query.plan.layout;
  if (pass.op != Op::Blur || pass.copy_source != pass.source || !layout.uniform_dense() ||
      (layout.plane[0].container != Container::U8 && !is_uniform_dense(query, Container::U16)))
    return {};
  return {1, launch_blur, coarse_bytes(query.plan, pass)};
}

void launch_blur_samples(const PassRun &run) {
  BlurParams p = {};
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(p, kSampleTile, kSampleTile, TileCorners::Multiples);
  fill_blur(run, p);
  enqueue_reduce(run, reduce_by<false>(p.log_factor), p);
  enqueue_coarse(run, p);
  PassRun named = run;
  named.name = "expand_samples";
  enqueue(named, KernelLaunch<BlurParams>{expand_samples_kernel, blocks, kBlurThreads, 0}, p);
}

}  // namespace cudaconv
