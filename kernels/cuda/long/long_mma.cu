// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for long Gaussians. A frame takes four launches, with planes of bytes in between:
//
//    split      samples  ->  planes of samples, which reach as far beyond the frame as windows do; lines are rows
//    rows       planes of samples  ->  planes of row sums; lines are columns
//    extend     row sums at the edges  ->  row sums above and below the frame
//    columns    planes of row sums  ->  results
//
// Example, GRAY16_LE of 1920x1080, 101 taps: two planes of 1080 lines of 2080 bytes, see line_bytes(), then two to four
// planes of 1920 lines of 1312 bytes.
#include "cuda/long/long_mma.cuh"

#include <algorithm>
#include <climits>
#include <numeric>

#include "cuda/frame_launch.cuh"
#include "plan/epilogue.h"

namespace cudaconv {

using namespace long_masks;

namespace {

// With five taps, unsharp of RGBA64_LE takes three quarters of the time of the methods: kernel-bench --table=formats
// --only=unsharp, H100.
constexpr int kLeastTaps = 5;

// Only Gaussians have row sums that are rounded.
bool is_long_gaussian(const Plan &plan, const Pass &pass) {
  const PlaneLayout &plane = plan.layout.plane[0];
  const IntegerMask &mask = pass.mask[0];
  return pass.op == Op::Linear && pass.separable() && mask.row_shift > 0 &&
         std::max(pass.width(), pass.height()) >= kLeastTaps && plan.layout.uniform_dense() &&
         (plane.container == Container::U16 || (plane.container == Container::U8 && plane.channel[0].depth == 8)) &&
         all_within(mask.row, 0, INT_MAX) && all_within(mask.column, 0, INT_MAX);
}

// Whether an int holds the number of every word that threads make. In narrow frames most words are beside the frame.
bool can_number_words(const Plan &plan, const Pass &pass) {
  return std::all_of(plan.parts.begin(), plan.parts.end(), [&](const Plan::Part &part) {
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    const int64_t split = int64_t{words_of_line(layout.width, pass.width())} * part.height;
    const int64_t extended = int64_t{extended_words(pass.height())} * layout.width;
    return std::max(split, extended) * layout.channels < INT_MAX - kLongMmaThreads;
  });
}

// Bytes that a number takes, from two on.
int bytes_of_number(int64_t largest) {
  return largest < 1 << 16 ? 2 : largest < 1 << 24 ? 3 : 4;
}
int bytes_of_line(const std::vector<int32_t> &line) {
  return bytes_of_number(*std::max_element(line.begin(), line.end()));
}

int64_t largest_row_sum(const Pass &pass) {
  return pass.mask[0].row_sum(pass.rounding[0][0].max);
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

using LongMmaLaunch = KernelLaunch<LongMmaParams>;

// A kernel of a shape, without one if a block has no room for the weights.
template <typename Shape>
LongMmaLaunch launch_of(void (*kernel)(LongMmaParams), int taps) {
  const size_t bytes = long_mma_bytes<Shape>(taps);
  return {bytes <= current_limits().block_bytes ? kernel : nullptr, 0, kLongMmaThreads, bytes};
}

// Chooses the launch of the sums along columns, without a kernel if the pass is not for this structure, and fills in
// how they become samples. The frame has been filled in.
template <int kBytes>
LongMmaLaunch choose_columns(const Pass &pass, LongMmaParams &p) {
  using Shape = LongMmaShape<kBytes, kBytes>;
  // All samples of the frame have the same form, so that they share a rounding.
  const int64_t weights = std::accumulate(pass.mask[0].column.begin(), pass.mask[0].column.end(), int64_t{0});
  if (!p.has_gain) p.result_shift = shift_of(p.rounding[0], weights * largest_row_sum(pass));
  if (p.result_shift < 8 * Shape::kColumnBytesDropped) p.result_shift = 0;
  p.start = p.result_shift ? 1 << (p.result_shift - 9) : 0;
  LongMmaLaunch launch = launch_of<Shape>(long_mma_columns_kernel<Shape>, pass.height());
  launch.blocks = cut_tiles(p, TileCorners::Multiples, [](const PartParams &part) {
    return TileSize{kLongMmaLines, part.width * part.channels, kLongMmaOutputs};
  });
  return launch;
}
LongMmaLaunch choose_columns(const Pass &pass, LongMmaParams &p) {
  const int bytes = LongMmaBytes(pass).sums;
  return bytes == 2 ? choose_columns<2>(pass, p) : bytes == 3 ? choose_columns<3>(pass, p) : choose_columns<4>(pass, p);
}

// The same for the sums along rows.
template <int kBytes>
LongMmaLaunch choose_rows(const Pass &pass, LongMmaParams &p) {
  using Shape = LongMmaShape<2, kBytes>;
  if (pass.mask[0].row_shift < 8 * Shape::kRowBytesDropped) return {};
  LongMmaLaunch launch = launch_of<Shape>(long_mma_rows_kernel<Shape>, pass.width());
  launch.blocks = number_blocks(p, [&](int i) {
    return BlockCount{pieces_of(p.range[i].width(), kLongMmaOutputs) * p.part[i].channels,
                      pieces_of(p.range[i].height(), kLongMmaLines)};
  });
  return launch;
}
LongMmaLaunch choose_rows(const Pass &pass, LongMmaParams &p) {
  const int bytes = LongMmaBytes(pass).row_weights;
  return bytes == 2 ? choose_rows<2>(pass, p) : bytes == 3 ? choose_rows<3>(pass, p) : choose_rows<4>(pass, p);
}

// Fills in the other parameters.
void fill_sums(const PassRun &run, LongMmaParams &p) {
  const Pass &pass = run.pass();
  const IntegerMask &mask = pass.mask[0];
  place(run.plan, pass, run.buffers.scratch, p);
  p.row_shift = mask.row_shift;
  for (int i = 0; i < p.parts; i++)
    for (int c = 0; c < p.part[i].channels; c++)
      p.outside[i][c] = static_cast<int32_t>(mask.row_sum(p.part[i].channel[c].border_value));
}

BlockCount blocks_for(int64_t threads) {
  return {pieces_of(threads, kLongMmaThreads), 1};
}

// Enqueues the kernel that makes the planes of samples and lays out the weights.
void enqueue_split(const PassRun &run, const LongMmaParams &params) {
  const IntegerMask &mask = run.pass().mask[0];
  const LongMmaBytes bytes(run.pass());
  LongSplitParams p = {params, {bytes.row_weights, bytes.sums}, {}};
  std::copy(mask.row.begin(), mask.row.end(), p.line[0]);
  std::copy(mask.column.begin(), mask.column.end(), p.line[1]);
  const int words = p.weight_bytes[0] * weight_words(p.taps[0]) + p.weight_bytes[1] * weight_words(p.taps[1]);
  const auto count_of = [&](int i) {
    const PixelRect &range = p.range[i];
    return blocks_for(int64_t{words_of_line(range.width(), p.taps[0])} * range.height() * p.part[i].channels);
  };
  const unsigned blocks = number_blocks(p, count_of, blocks_for(words).columns);
  enqueue("long_mma_split", long_mma_split_kernel, blocks, kLongMmaThreads, 0, *run.launches, p);
}

// Enqueues the kernel that extends the lines of row sums.
void enqueue_extend(const PassRun &run, LongMmaParams p) {
  const unsigned blocks = number_blocks(p, [&](int i) {
    return blocks_for(int64_t{extended_words(p.taps[1])} * p.range[i].width() * p.part[i].channels);
  });
  enqueue("long_mma_extend", long_mma_extend_kernel, blocks, kLongMmaThreads, 0, *run.launches, p);
}

void launch_long_mma(const PassRun &run) {
  LongMmaParams p = {};
  fill_frame(run, p);
  const LongMmaLaunch columns = choose_columns(run.pass(), p);
  for (int i = 0; i < p.parts; i++) {
    p.range[i] = read_bounds(p.part[i], p.host[i], p.border, 0, run.pass().radius_y);
    p.range[i].x0 = p.range[i].x0 / kLongMmaLines * kLongMmaLines;
    p.range[i].y0 = p.range[i].y0 / kLongMmaLines * kLongMmaLines;
  }
  fill_sums(run, p);
  enqueue_split(run, p);
  LongMmaParams of_rows = p;
  const LongMmaLaunch rows = choose_rows(run.pass(), of_rows);
  enqueue("long_mma_rows", rows.kernel, rows.blocks, rows.threads, rows.shared_bytes, *run.launches, of_rows);
  enqueue_extend(run, p);
  enqueue(run, columns, p);
}

}  // namespace

Prepared prepare_long_mma(const PassQuery &query) {
  if (!query.kernels.mma || !is_long_gaussian(query.plan, query.pass()) || !can_number_words(query.plan, query.pass()))
    return {};
  LongMmaParams p = {};
  fill_frame(query, p);
  if (!choose_columns(query.pass(), p).kernel || !choose_rows(query.pass(), p).kernel) return {};
  return {1, launch_long_mma, place(query.plan, query.pass(), nullptr, p)};
}

}  // namespace cudaconv
