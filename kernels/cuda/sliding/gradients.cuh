// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Operations of sliding.cuh for gradients: magnitudes, as gradient() of methods/operations.cuh makes them, and compass
// responses, as compass3x3() does.
#pragma once

#include "cuda/sliding/operation.cuh"

namespace cudaconv::sliding {

__device__ inline float approximate_root(float v) {
#ifdef __CUDA_ARCH__
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
  return root;
#else
  return __builtin_sqrtf(v);
#endif
}

// a - b; the differences of pairs are 16-bit floats.
template <typename Swar>
__device__ inline uint32_t minus(uint32_t a, uint32_t b) {
  if constexpr (Swar::kPairs) return (HalfPair{a} - HalfPair{b}).bits;
  return a - b;
}

// Magnitudes of a pair of samples, at most `white`, which is at most 1023. The approximate root rounds to the right
// integer: squares of integers are at most n^2 + n or at least n^2 + n + 1. So a root up to
// n = 1022 differs from n + 1/2 by more than 1 / (8n + 4). The instruction's error is less, 2^-23 times the root.
template <bool kEuclidean>
__device__ inline uint32_t magnitude_pair(HalfPair x, HalfPair y, uint32_t white) {
  if constexpr (!kEuclidean) return vmin(absolute(x) + absolute(y), HalfPair{white}).bits;
  const auto root = [](float a, float b) { return approximate_root(a * a + b * b); };
  return __vminu2(round_to_pair(root(low_float(x), low_float(y)), root(high_float(x), high_float(y))).bits, white);
}

// sqrt(x^2 + y^2) rounded to an integer, for |x| and |y| below 2^22. The float estimate is at most one off. The
// difference of the squares says whether it is; 32 bits hold it even where they do not hold the squares.
__device__ inline uint32_t rounded_magnitude(int x, int y) {
  constexpr uint32_t kMagic = 0x4b400000u;  // 1.5 * 2^23: the last bits of a float between 2^23 and 2^24 count units
  const float fx = __uint_as_float(kMagic + static_cast<uint32_t>(x)) - 12582912.0f;
  const float fy = __uint_as_float(kMagic + static_cast<uint32_t>(y)) - 12582912.0f;
  const int root = static_cast<int>(__float_as_uint(approximate_root(fx * fx + fy * fy) + 12582912.0f) - kMagic);
  const uint32_t ux = static_cast<uint32_t>(x), uy = static_cast<uint32_t>(y), r = static_cast<uint32_t>(root);
  const int difference = static_cast<int>(ux * ux + uy * uy - r * r);
  return r + (difference > root) - (difference <= -root && root > 0);
}

// The magnitude of signed x and y as samples.
template <bool kEuclidean, typename Swar>
__device__ inline uint32_t magnitude_sample(const SwarParams &k, uint32_t x, uint32_t y) {
  if constexpr (Swar::kPairs) {
    return magnitude_pair<kEuclidean>(HalfPair{x}, HalfPair{y}, Swar::white(k));
  } else {
    const int sx = static_cast<int>(x), sy = static_cast<int>(y);
    return Swar::vmin(kEuclidean ? rounded_magnitude(sx, sy) : static_cast<uint32_t>(abs(sx) + abs(sy)), k.sample_mask);
  }
}

// The magnitude of a gradient, sqrt(x^2 + y^2) or |x| + |y|: a smoothing column [a b a] with a difference row [-1 0 1],
// and the transpose, as in sobel, scharr and prewitt.
//
// Pairs of samples are 16-bit floats. Sums of three are stored minus 2048 where they may exceed 2047. A difference is
// rounded only where it is beyond all samples, and then so is the result.
struct SlidingGradient : SlidingOperation {
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 8, kWarps = 2;

  template <typename Swar>
  struct State {
    static constexpr int kChannels = Swar::kChannels, kSplit = Swar::kSplit;
    uint32_t last[2][kSplit][4];  // the previous two rows: [age][part][word]

    __device__ static uint32_t smooth(const SwarParams &k, uint32_t first, uint32_t middle, uint32_t last,
                                      uint32_t init) {
      if constexpr (!Swar::kPairs) return (first + last) * k.column[0] + middle * k.column[1];
      const HalfPair ends = multiply_add(HalfPair{first} + HalfPair{last}, k.column[0], HalfPair{init});
      return multiply_add(HalfPair{middle}, k.column[1], ends).bits;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> sum, delta;
      each<4, kSplit>([&](int i, int h) {
        const uint32_t a = Swar::part(k, row[i], h), b = last[0][h][i], c = last[1][h][i];
        if (j >= 2) {
          sum.part[h][sum.kWords + i] = smooth(k, a, b, c, kHalfMinus2048);
          delta.part[h][sum.kWords + i] = minus<Swar>(a, c);
        }
        last[1][h][i] = b;
        last[0][h][i] = a;
      });
      if (j < 2) return;
      sum.exchange();
      delta.exchange();
      const auto finish = [&](auto euclidean) {
        const auto sample = [&](int n) {
          return magnitude_sample<decltype(euclidean)::value, Swar>(
              k, minus<Swar>(sum.at(n + kChannels), sum.at(n - kChannels)),
              smooth(k, delta.at(n - kChannels), delta.at(n), delta.at(n + kChannels), 0));
        };
        each<4>([&](int i) { out[i] = make_word<Swar>(k, i, sample); });
      };
      if (p.norm == Norm::L1)
        finish(std::false_type());
      else
        finish(std::true_type());
    }
  };
};

// Any function of the 3x3 samples around a pixel. Function::sample<Swar>(p, at) computes a register of results; at(dx,
// dy) returns the samples dx pixels to the right and dy rows down.
template <typename Function>
struct SlidingWindow3 : SlidingOperation {
  static constexpr bool kRowByRow = true;
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = Function::kMinBlocks, kFewerBlocks = 1, kWarps = 2;

  template <typename Swar>
  struct State {
    LaneRow<Swar, 1> rows[3];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      rows[j % 3].load(p.swar, row);
      if (j < 2) return;
      const auto sample = [&](int n) {
        return Function::template sample<Swar>(
            p, [&](int dx, int dy) { return rows[(j + 2 + dy) % 3].at(n + dx * Swar::kChannels); });
      };
      each<4>([&](int i) { out[i] = make_word<Swar>(p.swar, i, sample); });
    }
  };
};

struct RobertsFunction {
  static constexpr int kMinBlocks = 9;

  template <typename Swar, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const uint32_t x = minus<Swar>(at(0, 0), at(1, 1)), y = minus<Swar>(at(1, 0), at(0, 1));
    return p.norm == Norm::L1 ? magnitude_sample<false, Swar>(p.swar, x, y)
                              : magnitude_sample<true, Swar>(p.swar, x, y);
  }
};

// The magnitude of a smoothing column [a b a] with a difference row [-1 0 1], and of the transpose, for any norm and
// any rounding: with a bias or a divisor, for example.
struct MagnitudeFunction {
  static constexpr int kMinBlocks = 6;

  template <typename Swar, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const auto smooth = [&](uint32_t first, uint32_t middle, uint32_t last) {
      return (first + last) * p.swar.column[0] + middle * p.swar.column[1];
    };
    const uint32_t left = smooth(at(-1, -1), at(-1, 0), at(-1, 1)), right = smooth(at(1, -1), at(1, 0), at(1, 1));
    const uint32_t above = smooth(at(-1, -1), at(0, -1), at(1, -1)), below = smooth(at(-1, 1), at(0, 1), at(1, 1));
    if constexpr (Swar::kPairs) {
      uint32_t pair = 0;
#pragma unroll 1
      for (int shift = 0; shift < 32; shift += 16) {
        const auto half = [&](uint32_t v) { return v >> shift & 0xffffu; };
        pair |= round<true>(p, half(right) - half(left), half(below) - half(above)) << shift;
      }
      return pair;
    } else {
      return round<false>(p, right - left, below - above);
    }
  }

 private:
  // kFits32: 32 bits hold the squares, and the float estimate of the root of their sum is at most one off.
  template <bool kFits32>
  __device__ static uint32_t round(const SlidingParams &p, uint32_t x, uint32_t y) {
    int v;
    if (!kFits32 || p.norm == Norm::L1) {
      v = magnitude<true>(p.norm, static_cast<int>(x), static_cast<int>(y));
    } else {
      const uint32_t square = x * x + y * y;
      uint32_t root = static_cast<uint32_t>(approximate_root(static_cast<float>(square)));
      if (root * root > square) root--;
      if ((root + 1) * (root + 1) <= square) root++;
      v = static_cast<int>(p.norm == Norm::L2 ? root : 2 * root + (root * root != square));
    }
    return static_cast<uint32_t>(round_to_sample(v, p.rounding[0]));
  }
};

// The kirsch mask: a gain times the largest sum of three neighbours in the ring of eight, plus another gain times all
// eight.
struct KirschFunction {
  static constexpr int kMinBlocks = 6;

  template <typename Swar, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const SwarParams &k = p.swar;
    // Both corners on a side share the sample between them, so the larger of two pairs in a row is enough.
    const auto pair = [&](int dx) { return Swar::vmax(at(dx, -1) + at(dx + 1, -1), at(dx, 1) + at(dx + 1, 1)); };
    const uint32_t top = at(-1, -1) + at(0, -1) + at(1, -1), bottom = at(-1, 1) + at(0, 1) + at(1, 1);
    const uint32_t left = at(-1, -1) + at(-1, 0) + at(-1, 1), right = at(1, -1) + at(1, 0) + at(1, 1);
    const uint32_t edges = Swar::vmax(Swar::vmax(top, bottom), left, right);
    const uint32_t most = Swar::vmax(edges, pair(-1) + at(-1, 0), pair(0) + at(1, 0));
    const uint32_t t = k.init + k.dense[0] * most + k.dense[1] * (top + bottom + at(-1, 0) + at(1, 0));
    if constexpr (Swar::kPairs) return clamp_pair<Swar>(k, t, k.minus_low);
    return clamp_to_sample<Swar>(k, t);
  }
};

}  // namespace cudaconv::sliding
