// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Operations of sliding.cuh that compare samples: extrema, as extremum() of methods/operations.cuh makes them, and
// the 3x3 median, as median() does. median5.cuh has the 5x5 median.
#pragma once

#include "cuda/sliding/operation.cuh"

namespace cudaconv::sliding {

// The 3x3 median: the median of the largest of the columns' minima, the median of their medians, and the smallest of
// their maxima. Columns are sorted as rows enter, once for the three windows that contain them.
struct SlidingMedian3 : SlidingOperation {
  static constexpr WordSamples kWords = WordSamples::Compared;
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 7, kWarps = 2;

  template <typename Swar>
  struct State {
    // The median of three is a + b + c - min - max. FP16 additions, two at a time, issue on another pipe than integer
    // comparisons.
    template <bool kFloats>
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c, uint32_t least, uint32_t largest) {
      if constexpr (kFloats && Swar::kSampleBytes == 1)
        return (HalfPair{a} - HalfPair{least} + (HalfPair{b} - HalfPair{largest}) + HalfPair{c}).bits;
      return a + b + c - least - largest;
    }
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
      return middle<true>(a, b, c, Swar::vmin(a, b, c), Swar::vmax(a, b, c));
    }

    uint32_t last[2][Swar::kSplit][4];  // the previous two rows: [age][part][word]

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> least, mid, largest;
      each<4, Swar::kSplit>([&](int i, int h) {
        const uint32_t a = Swar::part(k, row[i], h), b = last[0][h][i], c = last[1][h][i];
        if (j >= 2) {
          const int word = least.kWords + i;
          const uint32_t low = Swar::vmin(a, b, c), high = Swar::vmax(a, b, c);
          least.part[h][word] = low;
          largest.part[h][word] = high;
          mid.part[h][word] = middle<false>(a, b, c, low, high);
        }
        last[1][h][i] = b;
        last[0][h][i] = a;
      });
      if (j < 2) return;
      least.exchange();
      mid.exchange();
      largest.exchange();
      const auto sample = [&](int n) {
        constexpr int c = Swar::kChannels;
        return middle(Swar::vmax(least.at(n - c), least.at(n), least.at(n + c)),
                      middle(mid.at(n - c), mid.at(n), mid.at(n + c)),
                      Swar::vmin(largest.at(n - c), largest.at(n), largest.at(n + c)));
      };
      each<4>([&](int i) { out[i] = make_word<Swar>(k, i, sample); });
    }
  };
};

// The maximum of a square window; samples and results are xored with k.flip, which makes it the minimum.
template <int kSize>
struct SlidingExtremum : SlidingOperation {
  static constexpr WordSamples kWords = WordSamples::Compared;
  static constexpr int kRadius = kSize / 2, kStripRows = 4, kMinBlocks = 8, kFewerBlocks = kSize > 3;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    SquareRows<Swar, kRadius> square;

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Order::split(k, row, k.flip, square.rows[j % kSize]);
      if (j < 2 * kRadius) return;
      typename Order::Row greatest;
      square.template extrema<false>(greatest);
      Order::join(k, greatest, k.flip, out);
    }
  };
};

// The maximum or minimum of a structuring element that is symmetric in both directions and has no gaps; squares are a
// special case. k.column[distance] is 1 + how many pixels the element's column at this distance from the middle one has
// above its middle row, and as many below; 0: the element has no such column.
template <int kRadius_>
struct SlidingElement : SlidingOperation {
  static constexpr WordSamples kWords = WordSamples::Compared;
  static constexpr int kRadius = kRadius_, kStripRows = 4;
  static constexpr int kMinBlocks = kRadius == 2 ? 6 : 4;
  static constexpr int kFewerBlocks = 1;
  static constexpr bool kRowByRow = true;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    using Row = typename Order::Row;
    static constexpr int kSize = 2 * kRadius + 1;
    Row rows[kSize];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Order::split(k, row, k.flip, rows[j % kSize]);
      if (j < 2 * kRadius) return;
      // columns[n] is the maximum of each column's middle pixel and of n pixels above and n below it.
      Row columns[kRadius + 1];
#pragma unroll
      for (int above = 0; above <= kRadius; above++)
        each<Swar::kSplit, 4>([&](int h, int i) {
          const uint32_t first = rows[(j - kRadius - above) % kSize][h][i];
          const uint32_t last = rows[(j - kRadius + above) % kSize][h][i];
          columns[above][h][i] = above ? Swar::vmax(columns[above ? above - 1 : 0][h][i], first, last) : first;
        });
      Row greatest = {};
      add_columns<0>(k, columns, greatest);
      Order::join(k, greatest, k.flip, out);
    }

    // Updates `greatest` with the maxima of the columns at distance kDistance from the middle and beyond.
    template <int kDistance>
    __device__ static void add_columns(const SwarParams &k, const Row (&columns)[kRadius + 1], Row &greatest) {
      if constexpr (kDistance <= kRadius) {
        if (k.column[kDistance]) {
          Row column;
          each<Swar::kSplit, 4>([&](int h, int i) {
            column[h][i] = columns[0][h][i];
#pragma unroll
            for (int above = 1; above <= kRadius; above++)
              if (k.column[kDistance] > static_cast<uint32_t>(above)) column[h][i] = columns[above][h][i];
          });
          LaneRow<Swar, kDistance> line;
          line.set(column);
          line.exchange();
          each<Swar::kSplit, 4>([&](int h, int i) {
            const int n = Swar::kPerWord * i + h, far = kDistance * Swar::kChannels;
            greatest[h][i] = Swar::vmax(greatest[h][i], line.at(n - far), line.at(n + far));
          });
        }
        add_columns<kDistance + 1>(k, columns, greatest);
      }
    }
  };
};

// The maximum of 7x7 samples (kApart = 2) or of 9x9 bytes (3), as SlidingExtremum makes it of smaller squares: in both
// directions, the maximum of three maxima of three samples each, kApart pixels apart.
template <int kApart>
struct SlidingThrees : SlidingOperation {
  static constexpr WordSamples kWords = kApart == 2 ? WordSamples::Compared : WordSamples::None;
  static constexpr bool kRowByRow = true;
  static constexpr int kRadius = kApart + 1, kStripRows = 6, kMinBlocks = 5;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    using Row = typename Order::Row;
    static constexpr int kThrees = 2 * kApart + 1;
    uint32_t rows[3][4], threes[kThrees][4];  // the last rows, and the maxima of three rows each; words

    __device__ static void down(const SwarParams &k, const uint32_t (&a)[4], const uint32_t (&b)[4],
                                const uint32_t (&c)[4], Row &result) {
      each<4, Swar::kSplit>([&](int i, int h) {
        result[h][i] = Swar::vmax(Order::part(k, a[i], h), Order::part(k, b[i], h), Order::part(k, c[i], h));
      });
    }

    // Maxima of three samples of a row, kStep pixels apart.
    template <int kStep>
    __device__ static void along(Row &row) {
      LaneRow<Swar, kStep> samples;
      samples.set(row);
      samples.exchange();
      each<4, Swar::kSplit>([&](int i, int h) {
        const int n = Swar::kPerWord * i + h, far = kStep * Swar::kChannels;
        row[h][i] = Swar::vmax(samples.at(n - far), samples.at(n), samples.at(n + far));
      });
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      each<4>([&](int i) { rows[j % 3][i] = row[i] ^ k.flip; });
      if (j < 2) return;
      Row result;
      down(k, rows[0], rows[1], rows[2], result);
      Order::join(k, result, 0, threes[j % kThrees]);
      if (j < 2 * kRadius) return;
      down(k, threes[j % kThrees], threes[(j + kApart + 1) % kThrees], threes[(j + 1) % kThrees], result);
      along<1>(result);
      along<kApart>(result);
      Order::join(k, result, k.flip, out);
    }
  };
};

}  // namespace cudaconv::sliding
