// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Openings, closings, hats and gradients of small squares, in one launch: two extrema in registers, as the sliding
// kernels do one of them, the second one of the first one's results or both of the samples.
//
// All of it is dilation first. An opening is the closing of the complements, complemented, and what it takes away from
// the samples is what the closing adds to their complements.
#pragma once

#include "sliding.cuh"

namespace cudaconv {

struct CompositeParams : SlidingParams {
  bool difference;  // between closing and samples, not the closing
};

// As the operations of sliding.cuh, but enter() has the whole strip, of which row j enters, and where it lies. kReach
// is the radius of both steps together.

// The closing of a square, or what it adds.
template <int kRadius>
struct CompositeClosing {
  static constexpr int kReach = 2 * kRadius, kStripRows = kRadius == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kReach;
  static constexpr int kMinBlocks = kRadius == 1 ? 6 : 4;

  template <typename Lanes>
  struct State {
    using Pairs = OrderedPairs<Lanes>;
    SquareRows<Lanes, kRadius> samples, dilated;

    // Dilated samples outside the frame are those that the border's rule makes of the ones inside. But for a constant,
    // which takes their place, every window that reaches them has their likes inside, and goes without them.
    __device__ static void extend(const CompositeParams &p, const PartParams &part, LaneStrip s, int y,
                                  uint32_t (&row)[2][4]) {
      const PackedParams &k = p.packed;
      const bool inside = y >= 0 && y < part.height && s.first_byte >= 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int bytes = inside ? part.width * kPixelBytes<Lanes> - s.first_byte - 4 * i : 0;
        const uint32_t kept = bytes <= 0 ? 0 : bytes < 4 ? (1u << 8 * bytes) - 1 : 0xffffffffu;
        const uint32_t border =
            p.border == Border::Constant ? border_word(part, s.first_byte, i) ^ k.flip : 0xffffffffu;
        row[0][i] = (row[0][i] & Pairs::even(k, kept)) | Pairs::even(k, border & ~kept);
        row[1][i] = (row[1][i] & Pairs::odd(k, kept)) | Pairs::odd(k, border & ~kept);
      }
    }

    // What a has over b, 0 where that is less.
    __device__ static uint32_t excess(const PackedParams &k, uint32_t a, uint32_t b) {
      const auto pair = [](uint32_t x, uint32_t y) { return Lanes::largest(x, y) - y; };
      return Lanes::join(k, pair(Lanes::even(k, a), Lanes::even(k, b)), pair(Lanes::odd(k, a), Lanes::odd(k, b)));
    }

    __device__ void enter(const CompositeParams &p, const PartParams &part, LaneStrip s, int j,
                          const uint32_t (&strip)[kRows][4], uint32_t (&out)[4]) {
      constexpr int kSize = 2 * kRadius + 1;
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = strip[j][i] ^ k.flip;
        samples.rows[j % kSize][0][i] = Pairs::even(k, word);
        samples.rows[j % kSize][1][i] = Pairs::odd(k, word);
      }
      if (j < 2 * kRadius) return;
      uint32_t(&row)[2][4] = dilated.rows[j % kSize];
      samples.template extrema<false>(row);
      const int y = s.y0 - kReach + j - kRadius;
      const bool beside = s.first_byte < 0 || s.first_byte + kLaneBytes > part.width * kPixelBytes<Lanes>;
      if (__any_sync(0xffffffffu, beside) || y < 0 || y >= part.height) extend(p, part, s, y, row);
      if (j < 4 * kRadius) return;
      uint32_t closed[2][4];
      dilated.template extrema<true>(closed);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = Pairs::join(k, closed[0][i], closed[1][i]);
        out[i] = p.difference ? excess(k, word, strip[j - kReach][i] ^ k.flip) : word ^ k.flip;
      }
    }
  };
};

// The largest samples of a square less the least.
template <int kRadius>
struct CompositeGradient {
  static constexpr int kReach = kRadius, kStripRows = kRadius == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kReach;
  static constexpr int kMinBlocks = kRadius == 1 ? 7 : 5;

  template <typename Lanes>
  struct State {
    using Pairs = OrderedPairs<Lanes>;
    SquareRows<Lanes, kRadius> samples;

    __device__ void enter(const CompositeParams &p, const PartParams &, LaneStrip, int j,
                          const uint32_t (&strip)[kRows][4], uint32_t (&out)[4]) {
      constexpr int kSize = 2 * kRadius + 1;
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        samples.rows[j % kSize][0][i] = Pairs::even(k, strip[j][i]);
        samples.rows[j % kSize][1][i] = Pairs::odd(k, strip[j][i]);
      }
      if (j < 2 * kRadius) return;
      uint32_t largest[2][4], least[2][4];
      samples.template extrema<false>(largest);
      samples.template extrema<true>(least);
      // No sample is less than 0, so that a word's borrow nothing from each other.
#pragma unroll
      for (int i = 0; i < 4; i++)
        out[i] = Pairs::join(k, largest[0][i], largest[1][i]) - Pairs::join(k, least[0][i], least[1][i]);
    }
  };
};

// kWhole: rows consist of whole lanes, else they go through shared memory.
template <typename Operation, typename Lanes, bool kWhole>
__device__ inline void slide_composite(const CompositeParams &p, const PartParams &part, LaneStrip s) {
  constexpr int kReach = Operation::kReach, kRows = Operation::kRows;
  const int lane = threadIdx.x % 32, bytes = part.width * kPixelBytes<Lanes> - s.first_byte;
  uint8_t *const staged = warp_memory(kRows), *const own = staged + lane * kLaneBytes;
  uint32_t strip[kRows][4];
  if constexpr (kWhole) {
    load_strip<Lanes, kReach>(p, part, s, strip);
  } else {
    gather_strip(p, part, s, kPixelBytes<Lanes>, kRows, kReach, staged);
#pragma unroll
    for (int j = 0; j < kRows; j++) split_words(*reinterpret_cast<const uint4 *>(own + j * kLanePitch), strip[j]);
  }
  const int rows = lane >= 1 && lane <= kWarpLanes && bytes > 0 ? part.height - s.y0 : 0;
  const uint8_t *source = part.source + s.y0 * part.source_pitch + s.first_byte;
  uint8_t *target = part.target + s.y0 * part.target_pitch + s.first_byte;
  typename Operation::template State<Lanes> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    state.enter(p, part, s, j, strip, out);
    const int r = j - 2 * kReach;
    if (r < 0) continue;
    if (r < rows) {
      if (part.merges)
        merge_channels<Lanes>(part, s.first_byte, kWhole ? source : own + (r + kReach) * kLanePitch, out);
      const uint4 words = make_uint4(out[0], out[1], out[2], out[3]);
      if constexpr (kWhole) {
        *reinterpret_cast<uint4 *>(target) = words;
      } else {
        // The strip's first row has been read.
        *reinterpret_cast<uint4 *>(own) = words;
        for (int b = 0; b < min(bytes, kLaneBytes); b++) target[b] = own[b];
      }
    }
    source += part.source_pitch;
    target += part.target_pitch;
  }
}

template <typename Operation, typename Lanes>
__device__ __noinline__ void slide_composite_gathered(const CompositeParams &p, const PartParams &part, LaneStrip s) {
  slide_composite<Operation, Lanes, false>(p, part, s);
}

template <typename Operation, typename Lanes>
__device__ inline void slide_composite(const CompositeParams &p, const PartParams &part, int column, int y0) {
  const LaneStrip s = {(column * kWarpLanes + static_cast<int>(threadIdx.x % 32) - 1) * kLaneBytes, y0};
  if (part.whole_lanes)
    slide_composite<Operation, Lanes, true>(p, part, s);
  else
    slide_composite_gathered<Operation, Lanes>(p, part, s);
}

// How many blocks a multiprocessor is to hold, see sliding.cuh. 16-bit samples take a register each, and chips that
// have no instruction for an extremum of three pairs take more of them.
template <typename Operation, typename Lanes>
__host__ __device__ constexpr int composite_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return Operation::kMinBlocks / 2;
#else
  return Operation::kMinBlocks - (Lanes::kPairs ? 0 : 1);
#endif
}

template <typename Operation, Channels kChannels, template <int> typename Lanes>
__global__ void __launch_bounds__(kSlidingThreads, composite_blocks<Operation, Lanes<1>>())
    composite_kernel(const __grid_constant__ CompositeParams p) {
  const Tile tile = locate_tile(p, 1, Operation::kStripRows * kSlidingWarps);
  // From one lane to all: the compiler sees that the warp branches together.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int column = tile.x0, y0 = tile.y0 + warp * Operation::kStripRows;
  if (y0 >= tile.part.height) return;  // the whole warp
  if constexpr (kChannels == Channels::Packed3) {
    slide_composite<Operation, Lanes<3>>(p, tile.part, column, y0);
  } else if constexpr (kChannels == Channels::Packed4) {
    slide_composite<Operation, Lanes<4>>(p, tile.part, column, y0);
  } else {
    if (tile.part.channels == 1)
      slide_composite<Operation, Lanes<1>>(p, tile.part, column, y0);
    else
      slide_composite<Operation, Lanes<2>>(p, tile.part, column, y0);
  }
}

}  // namespace cudaconv
