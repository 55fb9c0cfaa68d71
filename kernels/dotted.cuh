// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks of 7x7 and 9x9 by dot products of small integers.
//
// A lane owns 16 bytes of a row and a warp 30 such columns, as in sliding.cuh, but here it walks down a long strip, two
// rows a step. Bytes are put in groups of four neighbours of a channel: a sum along a row is two or three dot products
// of four bytes. Sums of both rows, of 16 bits, share a register, and a dot product adds the two of them to a column's
// sum, with coefficients of its own for the even row of results and for the odd one.
#pragma once

#include "sliding.cuh"

namespace cudaconv {

// The dot product of four bytes and four signed ones, added to a sum.
__device__ inline uint32_t dot_bytes(uint32_t bytes, uint32_t coefficients, uint32_t sum) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(bytes), "r"(coefficients), "r"(sum));
  return result;
#else
  for (int i = 0; i < 32; i += 8)
    sum += (bytes >> i & 0xff) * static_cast<uint32_t>(static_cast<int8_t>(coefficients >> i));
  return sum;
#endif
}

// The same of two halves of 16 bits, without a sign, and the lower or the higher two of four signed bytes.
template <bool kHigh>
__device__ inline uint32_t dot_halves(uint32_t halves, uint32_t coefficients, uint32_t sum) {
#ifdef __CUDA_ARCH__
  uint32_t result;
  if constexpr (kHigh)
    asm("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(halves), "r"(coefficients), "r"(sum));
  else
    asm("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(halves), "r"(coefficients), "r"(sum));
  return result;
#else
  for (int i = 0; i < 2; i++)
    sum += (halves >> 16 * i & 0xffff) *
           static_cast<uint32_t>(static_cast<int8_t>(coefficients >> (kHigh ? 16 : 0) >> 8 * i));
  return sum;
#endif
}

// The bytes of a lane's row and of its neighbours', kPixel of them a pixel. Byte i of group[c][1 + g] is number
// c + (4 * g + i) * kPixel, counted from the lane's first.
template <int kPixel>
struct ByteGroups {
  static constexpr int kOwn = kPixel == 3 ? 2 : 4 / kPixel;
  uint32_t group[kPixel][kOwn + 2];

  // Every lane of the warp takes part.
  __device__ void load(const uint32_t (&row)[4]) {
    if constexpr (kPixel == 3) {
      uint32_t word[10];
#pragma unroll
      for (int i = 0; i < 4; i++) word[3 + i] = row[i];
#pragma unroll
      for (int i = 0; i < 3; i++) {
        word[i] = __shfl_up_sync(0xffffffffu, row[1 + i], 1);
        word[7 + i] = __shfl_down_sync(0xffffffffu, row[i], 1);
      }
      // Four bytes lie in three words; what is missing of the last ones is out of reach.
#pragma unroll
      for (int g = 0; g < 4; g++) {
        const uint32_t a = word[3 * g], b = g < 3 ? word[3 * g + 1] : 0, c = g < 3 ? word[3 * g + 2] : 0;
        group[0][g] = permute_bytes(permute_bytes(a, b, 0x0630), c, 0x5210);
        group[1][g] = permute_bytes(permute_bytes(a, b, 0x0741), c, 0x6210);
        group[2][g] = permute_bytes(permute_bytes(a, b, 0x0052), c, 0x7410);
      }
    } else {
      if constexpr (kPixel == 1) {
#pragma unroll
        for (int i = 0; i < 4; i++) group[0][1 + i] = row[i];
      } else if constexpr (kPixel == 2) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          group[0][1 + i] = permute_bytes(row[2 * i], row[2 * i + 1], 0x6420);
          group[1][1 + i] = permute_bytes(row[2 * i], row[2 * i + 1], 0x7531);
        }
      } else {
        const uint32_t low01 = permute_bytes(row[0], row[1], 0x5140), low23 = permute_bytes(row[2], row[3], 0x5140);
        const uint32_t high01 = permute_bytes(row[0], row[1], 0x7362), high23 = permute_bytes(row[2], row[3], 0x7362);
        group[0][1] = permute_bytes(low01, low23, 0x5410);
        group[1][1] = permute_bytes(low01, low23, 0x7632);
        group[2][1] = permute_bytes(high01, high23, 0x5410);
        group[3][1] = permute_bytes(high01, high23, 0x7632);
      }
#pragma unroll
      for (int c = 0; c < kPixel; c++) {
        group[c][0] = __shfl_up_sync(0xffffffffu, group[c][kOwn], 1);
        group[c][kOwn + 1] = __shfl_down_sync(0xffffffffu, group[c][1], 1);
      }
    }
  }

  // The sum along the row around byte n of the lane.
  template <int kRadius>
  __device__ uint32_t row_sum(const DottedParams &p, int n) const {
    const int c = n % kPixel, g = n / kPixel / 4, i = n / kPixel % 4;
    uint32_t sum = p.row_init;
#pragma unroll
    for (int t = 0; t < 3; t++)
      if (4 * t + 3 >= 4 + i - kRadius && 4 * t <= 4 + i + kRadius) sum = dot_bytes(group[c][g + t], p.row[i][t], sum);
    return sum;
  }
};

// The third byte of each sum.
__device__ inline uint32_t finish_dots(const uint32_t (&sum)[4]) {
  return permute_bytes(permute_bytes(sum[0], sum[1], 0x0062), permute_bytes(sum[2], sum[3], 0x0062), 0x5410);
}

template <int kRadius, typename Lanes>
class DottedStrip {
 public:
  // Of results from row y0 up to before `end`; first_byte of a row is the lane's.
  __device__ DottedStrip(const DottedParams &p, const PartParams &part, int first_byte, int y0, int end)
      : p_(p), part_(part), first_byte_(first_byte), y_(y0), end_(end), next_y_(y0 - kRadius) {
    const int row_bytes = part.width * kPixel, lane = static_cast<int>(threadIdx.x % 32);
    left_ = first_byte < 0;
    right_ = first_byte >= row_bytes;
    edge_ = __any_sync(0xffffffffu, left_ || right_);
    int byte = first_byte;
    if (left_ || right_) byte = left_ == (p.border == Border::Wrap) ? row_bytes - kLaneBytes : 0;
    column_ = part.source + byte;
    next_ = column_ + next_y_ * part.source_pitch;
    target_ = part.target + y0 * part.target_pitch + first_byte;
    stores_ = lane >= 1 && lane <= kWarpLanes && !right_;
    row_of_lane_ = border_index(p.border, lane < 16 ? lane - kRadius : part.height + lane - 16, part.height);
  }

  __device__ void run() {
    const int steps = (end_ - y_ + 1) / 2 + kRadius;
    uint32_t rows[2][4];
    load(rows);
    for (int step = 0;; step += kPairs)
#pragma unroll
      for (int s = 0; s < kPairs; s++) {
        if (step + s >= steps) return;
        if (edge_) mirror<Lanes, kRadius>(p_, part_, first_byte_, left_, right_, rows);
        ByteGroups<kPixel> groups[2];
        groups[0].load(rows[0]);
        groups[1].load(rows[1]);
        // Those of the next step, now that these have arrived: a wait is for all loads under way.
        load(rows);
#pragma unroll
        for (int n = 0; n < kLaneBytes; n++)
          pairs_[s][n] = permute_bytes(groups[0].template row_sum<kRadius>(p_, n),
                                       groups[1].template row_sum<kRadius>(p_, n), 0x5410);
        if (step + s >= kRadius) finish(s);
      }
  }

 private:
  static constexpr int kPixel = kPixelBytes<Lanes>;
  static constexpr int kPairs = kRadius + 1;  // of rows that a window reaches into

  // The next two rows.
  __device__ void load(uint32_t (&rows)[2][4]) {
    if (next_y_ >= 0 && next_y_ + 1 < part_.height) {
      split_words(__ldg(reinterpret_cast<const uint4 *>(next_)), rows[0]);
      split_words(__ldg(reinterpret_cast<const uint4 *>(next_ + part_.source_pitch)), rows[1]);
    } else {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int y = next_y_ + h;
        if (y < 0 || y >= part_.height)
          y = __shfl_sync(0xffffffffu, row_of_lane_, y < 0 ? y + kRadius : y - part_.height + 16);
        split_words(__ldg(reinterpret_cast<const uint4 *>(column_ + max(y, 0) * part_.source_pitch)), rows[h]);
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (y < 0) rows[h][i] = border_word(part_, first_byte_, i);
      }
    }
    next_ += 2 * part_.source_pitch;
    next_y_ += 2;
  }

  // Two rows of results, where the last two rows of sums are pairs_[s].
  __device__ void finish(int s) {
    uint32_t out[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t sum[4];
#pragma unroll
        for (int b = 0; b < 4; b++) {
          sum[b] = p_.init;
#pragma unroll
          for (int t = 0; t < kPairs; t++) {
            const uint32_t pair = pairs_[(s + 1 + t) % kPairs][4 * i + b];
            sum[b] = t % 2 ? dot_halves<true>(pair, p_.column[h][t / 2], sum[b])
                           : dot_halves<false>(pair, p_.column[h][t / 2], sum[b]);
          }
        }
        out[h][i] = finish_dots(sum);
      }
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (stores_ && y_ + h < end_) {
        if (part_.merges)
          merge_channels<Lanes>(part_, first_byte_, part_.source + (y_ + h) * part_.source_pitch + first_byte_, out[h]);
        *reinterpret_cast<uint4 *>(target_ + h * part_.target_pitch) =
            make_uint4(out[h][0], out[h][1], out[h][2], out[h][3]);
      }
    target_ += 2 * part_.target_pitch;
    y_ += 2;
  }

  const DottedParams &p_;
  const PartParams &part_;
  const uint8_t *column_, *next_;
  uint8_t *target_;
  int first_byte_, y_, end_, next_y_;
  int row_of_lane_;  // for rows above the frame, from lane 0 on, and below it, from lane 16 on: the rows that they are
  bool left_, right_, edge_, stores_;
  uint32_t pairs_[kPairs][kLaneBytes];
};

// That a multiprocessor is to hold: as many as registers without spills allow.
CUDACONV_HOST_DEVICE constexpr int dotted_blocks(int radius) {
  return radius == 3 ? 4 : 3;
}

template <int kRadius, Channels kChannels>
__global__ void __launch_bounds__(kSlidingThreads, dotted_blocks(kRadius))
    dotted_kernel(const __grid_constant__ DottedParams p) {
  const Tile tile = locate_tile(p, 1, p.strip_rows * kSlidingWarps);
  // From one lane to all: the compiler sees that the warp branches together.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int y0 = tile.y0 + warp * p.strip_rows, end = min(y0 + p.strip_rows, tile.part.height);
  if (y0 >= end) return;  // the whole warp
  const int first_byte = (tile.x0 * kWarpLanes + static_cast<int>(threadIdx.x % 32) - 1) * kLaneBytes;
  if constexpr (kChannels == Channels::Packed3) {
    DottedStrip<kRadius, ByteLanes<3>>(p, tile.part, first_byte, y0, end).run();
  } else if constexpr (kChannels == Channels::Packed4) {
    DottedStrip<kRadius, ByteLanes<4>>(p, tile.part, first_byte, y0, end).run();
  } else {
    if (tile.part.channels == 1)
      DottedStrip<kRadius, ByteLanes<1>>(p, tile.part, first_byte, y0, end).run();
    else
      DottedStrip<kRadius, ByteLanes<2>>(p, tile.part, first_byte, y0, end).run();
  }
}

}  // namespace cudaconv
