// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for long Gaussians: they make planes of the samples, sum along rows, extend the planes of
// these sums beyond the frame, and sum along columns.
#include "cuda/long/long_mma.cuh"

#include <algorithm>

#include "cuda/device/read_bounds.h"
#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace long_masks;

namespace {

struct LongMmaTuning {
  // With five taps, unsharp of RGBA64_LE takes three quarters of the time of the methods: kernel-bench --table=formats
  // --only=unsharp, H100.
  static constexpr int kLeastTaps = 5;
  // Groups of lines of a block, and times: of a group, and of the start of a block.
  static constexpr int kMostGroups = 8, kGroupTime = 2, kBlockTime = 1;
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

// Bytes that a number takes, from two on.
int bytes_of_number(int64_t largest) {
  return largest < 1 << 16 ? 2 : largest < 1 << 24 ? 3 : 4;
}
int bytes_of_line(const std::vector<int32_t> &line) {
  return bytes_of_number(*std::max_element(line.begin(), line.end()));
}

int64_t largest_row_sum(const Pass &pass) {
  return row_sum(pass.mask[0], pass.rounding[0][0].max);
}

// How many bytes the numbers of a pass take; kernels for sums along columns have weights and row sums of as many.
struct LongMmaBytes {
  int row_weights, sums;

  explicit LongMmaBytes(const Pass &pass)
      : row_weights(bytes_of_line(pass.mask[0].row)),
        sums(std::max(bytes_of_number(largest_row_sum(pass)), bytes_of_line(pass.mask[0].column))) {}
};

// Device memory: the weights, then the planes of each part.
struct LongMmaMemory {
  size_t bytes = 0;

  template <typename T>
  T *take(void *memory, size_t count) {
    T *const at = memory ? reinterpret_cast<T *>(static_cast<uint8_t *>(memory) + bytes) : nullptr;
    bytes += (count * sizeof(T) + 31) / 32 * 32;
    return at;
  }
  LongPlanes planes(void *memory, int bytes_of_value, int lines, int count, int taps) {
    const int pitch = line_bytes(count, taps);
    return {take<uint8_t>(memory, static_cast<size_t>(bytes_of_value) * lines * pitch), lines, pitch};
  }
};

// Fills in where weights and planes are. Returns how much memory they take.
size_t place(const Plan &plan, const Pass &pass, void *memory, LongMmaParams &p) {
  const LongMmaBytes bytes(pass);
  LongMmaMemory taken;
  p.taps[0] = pass.width();
  p.taps[1] = pass.height();
  p.sum_bytes = bytes.sums;
  p.weights[0] = taken.take<uint32_t>(memory, bytes.row_weights * weight_words(p.taps[0]));
  p.weights[1] = taken.take<uint32_t>(memory, bytes.sums * weight_words(p.taps[1]));
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const PlaneLayout &layout = plan.layout.plane[plan.parts[i].plane];
    const int height = plan.parts[i].height;
    p.samples[i] = taken.planes(memory, 2, layout.channels * height, layout.width, p.taps[0]);
    p.sums[i] = taken.planes(memory, bytes.sums, layout.channels * layout.width, height, p.taps[1]);
  }
  return taken.bytes;
}

int share(int all, int tile) {
  return (all + tile - 1) / tile;
}

// The chunks of a stage: as few stages as let kMinBlocks blocks have a multiprocessor's shared memory. 0 if a block has
// not enough for a chunk.
template <typename Shape>
int choose_stage(int taps) {
  const DeviceLimits device = current_limits();
  const size_t bytes =
      std::min<size_t>(device.block_bytes, device.multiprocessor_bytes / Shape::kMinBlocks - kReservedBytes);
  const int all = chunks_read(taps);
  for (int stages = 1; stages <= all; stages++)
    if (long_mma_bytes<Shape>(taps, share(all, stages)) <= bytes) return share(all, stages);
  return long_mma_bytes<Shape>(taps, 1) <= device.block_bytes ? 1 : 0;
}

// Chooses how many groups of lines a block sums, so that all blocks take least time. blocks_of(groups) returns their
// number.
template <typename Shape, typename BlocksOf>
int choose_groups(int most, size_t bytes, BlocksOf blocks_of) {
  return choose_tile_height(
             1, 1, most, Shape::kMinBlocks, [=](int) { return bytes; }, blocks_of,
             [](int groups) { return LongMmaTuning::kGroupTime * groups + LongMmaTuning::kBlockTime; })
      .height;
}

struct LongMmaLaunches {
  KernelLaunch<LongMmaParams> rows;
  KernelLaunch<LongMmaParams, int32_t> columns;
  int32_t pixels;  // across a tile of the latter

  explicit operator bool() const { return rows.kernel && columns.kernel; }
};

template <typename Shape>
void choose_rows(const Pass &pass, LongMmaParams &p, LongMmaLaunches &launches) {
  p.stage_chunks[0] = choose_stage<Shape>(pass.width());
  if (!p.stage_chunks[0] || pass.mask[0].row_shift < 8 * Shape::kRowBytesDropped) return;
  const size_t bytes = long_mma_bytes<Shape>(pass.width(), p.stage_chunks[0]);
  const auto blocks_of = [&](int groups) {
    int32_t blocks = 0;
    for (int i = 0; i < p.parts; i++) {
      p.first_tile[i] = blocks;
      const PixelRect &range = p.range[i];
      blocks += share(range.x1 - range.x0, kLongMmaOutputs) * share(range.y1 - range.y0, kLongMmaLines * groups) *
                p.part[i].channels;
    }
    return static_cast<unsigned>(blocks);
  };
  p.row_groups = choose_groups<Shape>(LongMmaTuning::kMostGroups, bytes, blocks_of);
  launches.rows = {long_mma_rows_kernel<Shape>, blocks_of(p.row_groups), kLongMmaThreads, bytes};
}

template <typename Shape>
void choose_columns(const Pass &pass, LongMmaParams &p, LongMmaLaunches &launches) {
  p.stage_chunks[1] = choose_stage<Shape>(pass.height());
  if (!p.stage_chunks[1]) return;
  if (p.result_shift < 8 * Shape::kColumnBytesDropped) p.result_shift = 0;
  p.start = p.result_shift ? 1 << (p.result_shift - 9) : 0;
  const size_t bytes = long_mma_bytes<Shape>(pass.height(), p.stage_chunks[1]);
  // Where only some tiles are worked on, they are small.
  const int most = p.host[0].area ? 1 : std::max(1, LongMmaTuning::kMostGroups / p.part[0].channels);
  const auto blocks_of = [&](int groups) {
    return cut_tiles(p, kLongMmaLines * groups, kLongMmaOutputs, TileCorners::Multiples);
  };
  const int groups = choose_groups<Shape>(most, bytes, blocks_of);
  launches.pixels = kLongMmaLines * groups;
  launches.columns = {long_mma_columns_kernel<Shape>, blocks_of(groups), kLongMmaThreads, bytes};
}

// Chooses the launches of the sums, without kernels if the pass is not for this structure. The frame has been filled
// in.
LongMmaLaunches choose(const PassQuery &query, LongMmaParams &p) {
  LongMmaLaunches launches = {};
  const Pass &pass = query.pass();
  if (!query.kernels.mma || !is_long_gaussian(query.plan, pass)) return launches;
  const LongMmaBytes bytes(pass);
  // All samples of the frame have the same form, so that they share a rounding.
  if (!p.has_gain) {
    int64_t largest = 0;
    for (int32_t v : pass.mask[0].column) largest += v * largest_row_sum(pass);
    p.result_shift = shift_of(p.rounding[0], largest);
  }
  if (bytes.sums == 2)
    choose_columns<LongMmaShape<2, 2>>(pass, p, launches);
  else if (bytes.sums == 3)
    choose_columns<LongMmaShape<3, 3>>(pass, p, launches);
  else
    choose_columns<LongMmaShape<4, 4>>(pass, p, launches);
  for (int i = 0; i < p.parts; i++) {
    p.range[i] = read_bounds(p.part[i], p.host[i], p.border, 0, pass.radius_y);
    p.range[i].x0 = p.range[i].x0 / kLongMmaLines * kLongMmaLines;
    p.range[i].y0 = p.range[i].y0 / kLongMmaLines * kLongMmaLines;
  }
  if (bytes.row_weights == 2)
    choose_rows<LongMmaShape<2, 2>>(pass, p, launches);
  else if (bytes.row_weights == 3)
    choose_rows<LongMmaShape<2, 3>>(pass, p, launches);
  else
    choose_rows<LongMmaShape<2, 4>>(pass, p, launches);
  return launches;
}

// Fills in the other parameters.
void fill_sums(const PassRun &run, LongMmaParams &p) {
  const Pass &pass = run.pass();
  const IntegerMask &mask = pass.mask[0];
  place(run.plan, pass, run.buffers.scratch, p);
  p.row_shift = mask.row_shift;
  for (int i = 0; i < p.parts; i++)
    for (int c = 0; c < p.part[i].channels; c++)
      p.outside[i][c] = static_cast<int32_t>(row_sum(mask, p.part[i].channel[c].border_value));
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kLongMmaThreads - 1) / kLongMmaThreads);
}

// Enqueues the kernel that makes the planes of samples and lays out the weights.
void enqueue_split(const PassRun &run, const LongMmaParams &params) {
  const IntegerMask &mask = run.pass().mask[0];
  const LongMmaBytes bytes(run.pass());
  LongSplitParams p = {params, {bytes.row_weights, bytes.sums}, {}};
  std::copy(mask.row.begin(), mask.row.end(), p.line[0]);
  std::copy(mask.column.begin(), mask.column.end(), p.line[1]);
  unsigned blocks =
      blocks_for(p.weight_bytes[0] * weight_words(p.taps[0]) + p.weight_bytes[1] * weight_words(p.taps[1]));
  for (int i = 0; i < p.parts; i++) {
    p.first_tile[i] = static_cast<int32_t>(blocks);
    const PixelRect &range = p.range[i];
    blocks += blocks_for(int64_t{words_of_line(range.width(), p.taps[0])} * range.height() * p.part[i].channels);
  }
  enqueue_whole(run, "long_mma_split", long_mma_split_kernel, blocks, dim3(kLongMmaThreads), 0, p);
}

// Enqueues the kernel that extends the lines of row sums.
void enqueue_extend(const PassRun &run, LongMmaParams p) {
  unsigned blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    p.first_tile[i] = static_cast<int32_t>(blocks);
    blocks += blocks_for(int64_t{extended_words(p.taps[1])} * (p.range[i].x1 - p.range[i].x0) * p.part[i].channels);
  }
  enqueue_whole(run, "long_mma_extend", long_mma_extend_kernel, blocks, dim3(kLongMmaThreads), 0, p);
}

size_t sum_bytes(const Plan &plan, const Pass &pass) {
  LongMmaParams p = {};
  return place(plan, pass, nullptr, p);
}

void launch_long_mma(const PassRun &run) {
  LongMmaParams p = {};
  fill_frame(run, p);
  const LongMmaLaunches launches = choose(run, p);
  fill_sums(run, p);
  enqueue_split(run, p);
  enqueue_whole(run, "long_mma_rows", launches.rows.kernel, launches.rows.blocks, dim3(kLongMmaThreads),
                launches.rows.shared_bytes, p);
  enqueue_extend(run, p);
  enqueue(run, launches.columns, p, launches.pixels);
}

}  // namespace

Prepared prepare_long_mma(const PassQuery &query) {
  LongMmaParams p = {};
  fill_frame(query, p);
  if (!choose(query, p)) return {};
  return {1, launch_long_mma, sum_bytes(query.plan, query.pass())};
}

}  // namespace cudaconv
