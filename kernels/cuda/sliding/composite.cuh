// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Openings, closings, hats and gradients of small squares in one launch: two extrema in registers, computed as in the
// sliding kernels. The second one is made of the first one's results, or of the same samples. Two or three
// passes make the same bytes.
//
// Dilation always comes first. An opening is the complement of the closing of complements. A hat is the difference of
// both: the closing adds to complements what the opening removes from samples.
#pragma once

#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

// kRadius is the radius of both steps together, kStep the radius of one.
struct CompositeOperation : SlidingOperation {
  static constexpr WordSamples kWords = WordSamples::Compared;
  static constexpr bool kSeesStrip = true;
};

// The closing of a square, or what it adds to the samples.
template <int kStep>
struct CompositeClosing : CompositeOperation {
  static constexpr int kRadius = 2 * kStep, kStripRows = kStep == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kRadius;
  static constexpr int kMinBlocks = kStep == 1 ? 6 : 4;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    using Row = typename Order::Row;
    SquareRows<Swar, kStep> samples, dilated;

    // Sets dilated samples outside the frame as the border mode requires. With every mode but Constant, each outside
    // value also occurs inside every window that reaches it. So it is set to 0xff, which is neutral for the minimum.
    __device__ static void extend(const SlidingParams &p, const PartParams &part, LaneStrip s, int y, Row &row) {
      const SwarParams &k = p.swar;
      const bool inside = y >= 0 && y < part.height && s.first_byte >= 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int bytes = inside ? row_bytes<Swar>(part) - s.first_byte - 4 * i : 0;
        const uint32_t kept = bytes <= 0 ? 0 : bytes < 4 ? (1u << 8 * bytes) - 1 : 0xffffffffu;
        const uint32_t border = p.border == Border::Constant ? part.border_word[i % 2] ^ k.flip : 0xffffffffu;
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++)
          row[h][i] = (row[h][i] & Order::part(k, kept, h)) | Order::part(k, border & ~kept, h);
      }
    }

    // max(a - b, 0)
    __device__ static uint32_t excess(const SwarParams &k, uint32_t a, uint32_t b) {
      return join_parts<Swar>(k, [&](int h) {
        const uint32_t subtrahend = Swar::part(k, b, h);
        return Swar::vmax(Swar::part(k, a, h), subtrahend) - subtrahend;
      });
    }

    __device__ void enter(const SlidingParams &p, const PartParams &part, LaneStrip s, int j,
                          const uint32_t (&strip)[kRows][4], uint32_t (&out)[4]) {
      constexpr int kSize = 2 * kStep + 1;
      const SwarParams &k = p.swar;
      Order::split(k, strip[j], k.flip, samples.rows[j % kSize]);
      if (j < 2 * kStep) return;
      Row &row = dilated.rows[j % kSize];
      samples.template extrema<false>(row);
      const int y = s.y0 - kRadius + j - kStep;
      const bool beside = s.first_byte < 0 || s.first_byte + kVectorBytes > row_bytes<Swar>(part);
      if (__any_sync(0xffffffffu, beside) || y < 0 || y >= part.height) extend(p, part, s, y, row);
      if (j < 4 * kStep) return;
      Row closed;
      dilated.template extrema<true>(closed);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = Order::join(k, closed, i);
        out[i] = p.difference ? excess(k, word, strip[j - kRadius][i] ^ k.flip) : word ^ k.flip;
      }
    }
  };
};

// The largest sample of a square minus the smallest.
template <int kStep>
struct CompositeGradient : CompositeOperation {
  static constexpr int kRadius = kStep, kStripRows = kStep == 1 ? 4 : 6;
  static constexpr int kRows = kStripRows + 2 * kRadius;
  static constexpr int kMinBlocks = kStep == 1 ? 7 : 5;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    SquareRows<Swar, kRadius> samples;

    __device__ void enter(const SlidingParams &p, const PartParams &, LaneStrip, int j,
                          const uint32_t (&strip)[kRows][4], uint32_t (&out)[4]) {
      constexpr int kSize = 2 * kRadius + 1;
      const SwarParams &k = p.swar;
      Order::split(k, strip[j], 0, samples.rows[j % kSize]);
      if (j < 2 * kRadius) return;
      typename Order::Row largest, least;
      samples.template extrema<false>(largest);
      samples.template extrema<true>(least);
      // No difference is below 0, so the samples of a word do not borrow from each other.
      each<4>([&](int i) { out[i] = Order::join(k, largest, i) - Order::join(k, least, i); });
    }
  };
};

}  // namespace cudaconv::sliding
