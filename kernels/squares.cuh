// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for larger linear masks of 8-bit samples without a row and a column, up to 17 pixels wide
// and 15 high: sums of products by matrix instructions as in tensor.cuh, of squares of 4x4 results.
//
// A warp goes down a strip of 32 pixels' width, four rows a step. The 8 columns of the matrix of samples are as many
// squares side by side, whose windows reach five words of a row. Of each of a step's four rows the first four words are
// a chunk, lane t's the t-th; the fifth words of the four rows are one more, lane t's that of row t. Masks of up to 13
// pixels do with four words that begin between two. The 16 rows of the matrix of coefficients are the square's results,
// rows g and g + 8 pixels 2 * (g % 2) and the next, of row g / 2.
//
// A step is part of the windows of a few squares below each other. The instructions that add it to what the steps
// before have made of a square leave the sums where those of the square above have been: so sums move up without a
// move, and all steps are the same code.
#pragma once

#include <algorithm>

#include "tensor.cuh"

namespace cudaconv {

constexpr int kSquareThreads = 128, kSquareWarps = kSquareThreads / 32;  // of a block, whose strips lie side by side
constexpr int kSquareWidth = 32;                                         // pixels of a strip
constexpr int kSquareLineWords = 5;

// Pixels between where a strip's rows begin and windows of so many chunks a step do.
CUDACONV_HOST_DEVICE constexpr int square_margin(int chunks) {
  return chunks == 4 ? 2 : 0;
}

// Of a tile, in pixels.
CUDACONV_HOST_DEVICE constexpr int square_tile_width(int channels) {
  return kSquareWarps * kSquareWidth * subtiles(channels);
}

// The rows of a warp's strips, which lie side by side, as many as make four planes of bytes: those of a few steps, in
// shared memory. They are copied there in the background, as they lie in memory, and take no registers before they are
// needed; what windows reach beyond an edge is made of them once they have arrived. Lanes 8n ... 8n + 7 do that for row
// n of a step. Methods are for the whole warp.
template <int kChannels>
class SquareWindow {
 public:
  static constexpr int kStrips = subtiles(kChannels), kWidth = kSquareWidth * kStrips;
  static constexpr int kStages = 4;  // steps that are there or on their way

 private:
  // Rows begin at a multiple of 16 bytes, this many before the first pixel. Words of four rows at the same place, of
  // two columns of samples each, lie in different banks.
  static constexpr int kLead = kChannels % 2 * 8;
  static constexpr int kPieces = (kLead + (kWidth + 2 * kSquareRadius) * kChannels + 15) / 16, kRowBytes = 16 * kPieces;
  static constexpr int kPitch = (kRowBytes + 31) / 32 % 2 ? (kRowBytes + 31) / 32 * 32 : kRowBytes / 32 * 32 + 32;
  static constexpr int kStepBytes = 4 * kPitch;
  static_assert(kPieces <= 16, "two pieces a lane");

  // Pixels consist of them, and are aligned to them.
  using Unit = std::conditional_t<kChannels == 4, uint32_t, std::conditional_t<kChannels == 2, uint16_t, uint8_t>>;
  static constexpr int kUnitBytes = static_cast<int>(sizeof(Unit)), kPixelUnits = kChannels / kUnitBytes;
  static constexpr int kLaneUnits = kSquareRadius * kPixelUnits / 8;  // beyond an edge

 public:
  static constexpr size_t kMemory = kStages * kStepBytes;  // bytes

  // The strips begin at pixel x0. `rows` lists where rows are, see list_rows(), four a step, and `steps` counts those.
  // The part is aligned, and where the border wraps its rows are whole lanes.
  __device__ SquareWindow(const TensorParams &p, const PartParams &part, int x0, const int64_t *rows, int steps,
                          uint8_t *memory)
      : part_(part),
        rows_(rows + lane() / 8),
        steps_(steps),
        first_byte_((x0 - kSquareRadius) * kChannels - kLead),
        column_(part.source + (first_byte_ + 16 * piece(0))),
        memory_(memory) {
    const int row_bytes = part.width * kChannels, first_unit = first_byte_ / kUnitBytes;
    const bool before = first_byte_ < 0;
    const bool behind = first_byte_ + kRowBytes > row_bytes;
    const bool beside[2] = {before, behind};
    wraps_ = (before || behind) && p.border == Border::Wrap;
    plain_ = !wraps_ && (!behind || row_bytes % 16 == 0);
    constant_ = p.border == Border::Constant;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int byte = first_byte_ + 16 * piece(i);
      wanted_ |= (piece(i) < kPieces && (wraps_ || (byte >= 0 && byte < row_bytes))) << i;
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (beside[side] && !wraps_) edges_ |= 1 << side;
      const int first = side ? part.width * kPixelUnits - first_unit : kLead / kUnitBytes;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++) {
        const int pixel = lane_unit(k) / kPixelUnits, to = first + lane_unit(k);
        const int from = near_border_index(p.border, side ? part.width + pixel : pixel - kSquareRadius, part.width);
        mended_[side][k] = kNone;
        if (edges_ >> side & 1 && to < kRowBytes / kUnitBytes)
          mended_[side][k] =
              static_cast<uint32_t>((from * kPixelUnits + lane_unit(k) % kPixelUnits - first_unit) << 16 | to);
      }
    }
  }

  // Whether each piece of a row lies in the frame or beside it, so that rows are copied alike but for those that are
  // the border's value.
  __device__ bool plain() const {
    return plain_;
  }

  // Asks for the samples of a step, if there is such.
  __device__ void request(int step) const {
    if (step < steps_) {
      const int64_t offset = rows_[4 * step];
      uint8_t *const row = own_row(step);
      const int row_bytes = part_.width * kChannels;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (!(wanted_ >> i & 1)) continue;
        int byte = first_byte_ + 16 * piece(i);
        if (wraps_) byte = border_index(Border::Wrap, byte, row_bytes);
        if (offset == kNoRow)
          put_border(row + 16 * piece(i), byte / 4);
        else
          copy(row + 16 * piece(i), part_.source + offset + byte, min(row_bytes - byte, 16));
      }
    }
    commit();
  }

  // The same where plain(), of a step that there is, none of whose rows is the border's value.
  __device__ void request_plain(int step) const {
    const uint8_t *const from = column_ + rows_[4 * step];
    uint8_t *const row = own_row(step);
#pragma unroll
    for (int i = 0; i < 2; i++)
      if (wanted_ >> i & 1) copy(row + 16 * piece(i), from + 16 * 8 * i, 16);
    commit();
  }

  // Waits for the step that was asked for kStages - 1 requests ago; the warp is done with the one before it.
  __device__ void wait(int step) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
#endif
    __syncwarp();
    if (!edges_) return;  // the same for the whole warp
    Unit *const row = reinterpret_cast<Unit *>(own_row(step));
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (!(edges_ >> side & 1)) continue;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++)
        if (mended_[side][k] != kNone)
          row[mended_[side][k] & 0xffffu] =
              constant_ ? border_unit(lane_unit(k) % kPixelUnits) : row[mended_[side][k] >> 16];
    }
    __syncwarp();
  }

  // Four pixels of row `row` of a step, from the `pixel`th on, which is a multiple of 4 or, where kHalves, 2.
  template <bool kHalves>
  __device__ void read(int step, int row, int pixel, uint32_t (&words)[kChannels]) const {
    const uint8_t *from = memory_ + step % kStages * kStepBytes + row * kPitch + kLead + pixel * kChannels;
    if constexpr (kChannels == 3) {
#pragma unroll
      for (int i = 0; i < 3; i++) words[i] = reinterpret_cast<const uint32_t *>(from)[i];
    } else if constexpr (kHalves) {
#pragma unroll
      for (int i = 0; i < 2; i++) load_words<kChannels / 2>(from + 2 * i * kChannels, words + i * kChannels / 2);
    } else {
      load_words<kChannels>(from, words);
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  __device__ static void commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  __device__ static int piece(int i) {
    return lane() % 8 + 8 * i;
  }
  __device__ static int lane_unit(int k) {
    return lane() % 8 + 8 * k;
  }
  __device__ uint8_t *own_row(int step) const {
    return memory_ + step % kStages * kStepBytes + lane() / 8 * kPitch;
  }

  __device__ Unit border_unit(int i) const {
    const int byte = i * kUnitBytes;
    return static_cast<Unit>(part_.border_word[byte / 4] >> byte % 4 * 8);
  }

  // `word` is that of the part's row.
  __device__ void put_border(uint8_t *to, int word) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = part_.border_word[kChannels == 3 ? (word + i) % 3 : i % 2];
    store_words<4>(to, words);
  }

  // 16 bytes, of which only the first `bytes` are there. Strips side by side read some of them twice, so these are to
  // stay near.
  __device__ static void copy(uint8_t *to, const uint8_t *from, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    if (bytes == 16)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
#else
    for (int b = 0; b < bytes; b++) to[b] = __ldg(from + b);
#endif
  }

  const PartParams &part_;
  const int64_t *rows_;
  int steps_;
  int first_byte_;         // of the window, in a row of the part
  const uint8_t *column_;  // of the lane's first piece
  uint8_t *memory_;
  bool wraps_, plain_, constant_;
  int wanted_ = 0;  // pieces of the lane that are there to be copied, a bit each
  // The edges that the window reaches beyond, a bit each, left and right; and for either where in the row the lane's
  // units beyond it come from, in the high half, and go to.
  int edges_ = 0;
  uint32_t mended_[2][kLaneUnits];
};
constexpr size_t kSquareMemory =
    std::max({SquareWindow<1>::kMemory, SquareWindow<2>::kMemory, SquareWindow<3>::kMemory, SquareWindow<4>::kMemory});

template <int kWindowRows, bool kNarrowMasks>
struct SquareShape {
  static constexpr int kRows = kWindowRows;      // that windows of a square reach, even
  static constexpr bool kNarrow = kNarrowMasks;  // of 13 pixels, where four words do
  static constexpr int kSteps = (kRows + 3) / 4;
  static constexpr int kMinBlocks = kSteps > 4 ? 2 : 3;
  static constexpr int kLine = padded_words(kSquareLineWords),
                       kLines = 4 * kSteps + 3;  // three before the mask

  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return (rows + 3) / 4 * 4 + 4 * (kSteps - 1); }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kSquareWarps * kSquareMemory + source_rows(tile_height) * sizeof(int64_t) +
           (4 + kLines * kLine) * sizeof(uint32_t);
  }
};

// The matrices of coefficients of the steps that windows reach, from the first.
template <typename Shape, int kChunks>
struct SquareOperands {
  uint32_t chunk[Shape::kSteps][kChunks][2];

  __device__ SquareOperands(const uint32_t *lines) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < Shape::kSteps; j++)
#pragma unroll
      for (int c = 0; c < kChunks; c++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int row = 4 * j + (c < 4 ? c : t) - g / 2, sample = (c < 4 ? 4 * t : 16) + square_margin(kChunks);
          chunk[j][c][i] = four_bytes(lines + (row + 3) * Shape::kLine, sample - (g % 2 * 2 + i));
        }
  }
};

// The warp's strips, of which tile.x0 is the first pixel.
template <int kChannels, typename Shape>
__device__ inline void filter_squares(const DenseTensorParams &p, const Tile &tile, const volatile int32_t *start_of,
                                      const uint32_t *lines, const int64_t *rows, uint8_t *memory) {
  using Window = SquareWindow<kChannels>;
  constexpr int kSteps = Shape::kSteps, kStrips = Window::kStrips;
  // Windows of four words begin between words, which takes pixels of even sizes.
  constexpr int kChunks = Shape::kNarrow && kChannels % 2 == 0 ? 4 : 5;
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int bottom = min(tile.y0 + p.tile_height, part.height), squares = (bottom - tile.y0 + 3) / 4;
  const int steps = squares + kSteps - 1, first_row = tile.y0 - p.radius_y;
  const Window window(p, part, tile.x0, rows, steps, memory);
#pragma unroll 1
  for (int i = 0; i < Window::kStages - 1; i++) window.request(i);
  const SquareOperands<Shape, kChunks> operands(lines);
  const bool inside = tile.x0 + Window::kWidth <= part.width, merges = part.merges;
  const bool whole = inside && !merges && p.magic;
  const bool plain =
      window.plain() && (p.border != Border::Constant || (first_row >= 0 && first_row + 4 * steps <= part.height));
  const int64_t target_pitch = part.target_pitch;
  const int x = tile.x0 + 8 * t + g % 2 * 4;
  uint8_t *to = part.target + (tile.y0 + g / 2) * target_pitch + x * kChannels;
  PartialSums<1> sums[kSteps][kStrips][kChannels] = {};
  // What a step adds to the sums of squares, those whose windows have it at j if has(j).
  const auto add = [&](int step, auto has) {
    // Read anew each time: of a value that it knows the compiler makes four copies for each instruction.
    Sums start;
#pragma unroll
    for (int i = 0; i < 4; i++) start.v[i] = start_of[i];
    uint32_t words[kChunks][kStrips][kChannels];
    const auto read = [&](int c) {
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        uint32_t pixels[kChannels];
        window.template read<square_margin(kChunks) != 0>(
            step, c < 4 ? c : t, kSquareWidth * s + 4 * (g + (c < 4 ? t : 4)) + square_margin(kChunks), pixels);
        deinterleave<kChannels>(pixels, words[c][s]);
      }
    };
#pragma unroll
    for (int half = 0; half < 2; half++) {
      read(2 * half);
      read(2 * half + 1);
#pragma unroll
      for (int j = kSteps - 1; j >= 0; j--) {
        if (4 * j + 2 * half >= Shape::kRows || !has(j)) continue;
        const auto &a = operands.chunk[j];
#pragma unroll
        for (int s = 0; s < kStrips; s++)
#pragma unroll
          for (int c = 0; c < kChannels; c++)
            sums[j][s][c].part[0] =
                mma<true, false, 2>({a[2 * half][0], a[2 * half][1], a[2 * half + 1][0], a[2 * half + 1][1]},
                                    {words[2 * half][s][c], words[2 * half + 1][s][c]},
                                    half ? sums[j][s][c].part[0]
                                    : j  ? sums[j ? j - 1 : 0][s][c].part[0]
                                         : start);
      }
    }
    if constexpr (kChunks > 4) {
      read(4);
#pragma unroll
      for (int j = kSteps - 1; j >= 0; j--) {
        if (!has(j)) continue;
#pragma unroll
        for (int s = 0; s < kStrips; s++)
#pragma unroll
          for (int c = 0; c < kChannels; c++)
            sums[j][s][c].part[0] = mma<true, false, 1>(operands.chunk[j][4], {words[4][s][c]}, sums[j][s][c].part[0]);
      }
    }
  };
  const auto scaled = [&](int32_t v) { return __mulhi(v * p.factor, p.magic); };
  const auto scaled_size = [&](int32_t v) {
    return __mulhi(static_cast<int32_t>(static_cast<uint32_t>(abs(v) + p.scale.half) << p.scale.shift), p.scale.magic);
  };
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    window.wait(step);
    if (plain && step + Window::kStages - 1 < steps)
      window.request_plain(step + Window::kStages - 1);
    else
      window.request(step + Window::kStages - 1);
    const auto store = [&] {
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        uint32_t pixels[kChannels];
        pack_sums(sums[kSteps - 1][s], pixels, scaled);
        join_pairs<kChannels>(pixels);
        store_words<kChannels>(to + s * kSquareWidth * kChannels, pixels);
      }
    };
    if (whole && step >= kSteps - 1 && step < squares) {
      // Most steps: all squares are there, and nothing has to be asked, so that one instruction can hide behind
      // another.
      add(step, [](int) { return true; });
      store();
    } else {
      add(step, [&](int j) { return step - j >= 0 && step - j < squares; });
      if (step < kSteps - 1) continue;
      const int top = tile.y0 + 4 * (step - (kSteps - 1));
      if (whole && top + 4 <= bottom) {
        store();
      } else {
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
          uint32_t pixels[kChannels];
          if (p.magic)
            pack_sums(sums[kSteps - 1][s], pixels, scaled);
          else
            pack_sums(sums[kSteps - 1][s], pixels, scaled_size);
          join_pairs<kChannels>(pixels);
          put_pixels<4, kChannels, 1, 0, 0>(part, to + s * kSquareWidth * kChannels, x + s * kSquareWidth, top + g / 2,
                                            bottom, inside, merges, pixels);
        }
      }
    }
    to += 4 * target_pitch;
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kSquareThreads, Shape::kMinBlocks)
    square_kernel(const __grid_constant__ DenseTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    Tile tile = locate_tile(p, 1, p.tile_height);
    const PartParams &part = tile.part;
    const int width = square_tile_width(part.channels), first_row = tile.y0 - p.radius_y;
    tile.x0 *= width;
    if (!part.filters) return copy_tile<Samples::Bytes>(part, tile.x0, tile.y0, width, p.tile_height);
    uint8_t *const stages = shared_memory<uint8_t>();
    int32_t *const start = reinterpret_cast<int32_t *>(stages + kSquareWarps * kSquareMemory);
    int64_t *const rows = reinterpret_cast<int64_t *>(start + 4);
    const int count = Shape::source_rows(p.tile_height);
    uint32_t *const lines = reinterpret_cast<uint32_t *>(rows + count);
    if (threadIdx.x < 4) start[threadIdx.x] = p.finish.start;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kLines * Shape::kLine; i += kSquareThreads) {
      const int row = i / Shape::kLine - 3;
      constexpr int kSkipped = (16 - kSquareRadius) / 4;  // words of a line of the class
      lines[i] = row < 0 ? 0 : padded_word(p.line[0][row] + kSkipped, kSquareLineWords, i % Shape::kLine);
    }
    list_rows(p, part, first_row, count, rows, kSquareThreads);
    __syncthreads();
    // From one lane to all: the compiler sees that the warp branches together.
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    tile.x0 += width / kSquareWarps * warp;
    if (tile.x0 >= part.width) return;
    for_channels<Samples::Bytes>(part.channels, [&](auto channels) {
      filter_squares<decltype(channels)::value, Shape>(p, tile, start, lines, rows, stages + warp * kSquareMemory);
    });
  }
}

}  // namespace cudaconv
