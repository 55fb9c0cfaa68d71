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

// As the operations of sliding.cuh, but enter() has the whole strip, of which row j enters, and where it lies. kRadius
// is that of both steps together, kStep of one.
struct CompositeOperation {
  using Params = CompositeParams;
  static constexpr int kFewer = 0;
  static constexpr bool kGeneral = true, kRowByRow = false, kHoldsMiddle = false;
};

// The closing of a square, or what it adds.
template <int kStep>
struct CompositeClosing : CompositeOperation {
  using General = CompositeClosing;
  static constexpr int kRadius = 2 * kStep, kStripRows = kStep == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kRadius;
  static constexpr int kMinBlocks = kStep == 1 ? 6 : 4;

  template <typename Lanes>
  struct State {
    using Pairs = OrderedPairs<Lanes>;
    SquareRows<Lanes, kStep> samples, dilated;

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
            p.border == Border::Constant ? border_word<Lanes::kChannels>(part, s.first_byte, i) ^ k.flip : 0xffffffffu;
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
      constexpr int kSize = 2 * kStep + 1;
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = strip[j][i] ^ k.flip;
        samples.rows[j % kSize][0][i] = Pairs::even(k, word);
        samples.rows[j % kSize][1][i] = Pairs::odd(k, word);
      }
      if (j < 2 * kStep) return;
      uint32_t(&row)[2][4] = dilated.rows[j % kSize];
      samples.template extrema<false>(row);
      const int y = s.y0 - kRadius + j - kStep;
      const bool beside = s.first_byte < 0 || s.first_byte + kLaneBytes > part.width * kPixelBytes<Lanes>;
      if (__any_sync(0xffffffffu, beside) || y < 0 || y >= part.height) extend(p, part, s, y, row);
      if (j < 4 * kStep) return;
      uint32_t closed[2][4];
      dilated.template extrema<true>(closed);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = Pairs::join(k, closed[0][i], closed[1][i]);
        out[i] = p.difference ? excess(k, word, strip[j - kRadius][i] ^ k.flip) : word ^ k.flip;
      }
    }
  };
};

// The largest samples of a square less the least.
template <int kStep>
struct CompositeGradient : CompositeOperation {
  using General = CompositeGradient;
  static constexpr int kRadius = kStep, kStripRows = kStep == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kRadius;
  static constexpr int kMinBlocks = kStep == 1 ? 7 : 5;

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

}  // namespace cudaconv
