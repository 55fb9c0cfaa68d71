// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The vector loops. Every vector_*.cpp includes this file last and compiles it for its target. Compilers turn these
// plain loops over blocks of constant length into vector code without a remainder. Everything here must be in the
// anonymous namespace: code that files share must not be compiled for one of the targets.

#ifdef __clang__
#define CUDACONV_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CUDACONV_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define CUDACONV_INLINE __attribute__((always_inline))

namespace cudaconv {

namespace {

// Calls body(s) for the samples of a row. The last block may overlap the block before it, so body(s) may run twice for
// a sample.
template <typename Body>
CUDACONV_INLINE inline void for_samples(int n, Body body) {
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = block < n - kVectorBlock ? block : n - kVectorBlock;
    CUDACONV_INDEPENDENT
    for (int s = begin; s < begin + kVectorBlock; s++) body(s);
  }
}

// Calls body(s) once for each sample; n is a whole number of blocks.
template <typename Body>
CUDACONV_INLINE inline void for_blocks(int n, Body body) {
  for (int begin = 0; begin < n; begin += kVectorBlock) {
    CUDACONV_INDEPENDENT
    for (int s = begin; s < begin + kVectorBlock; s++) body(s);
  }
}

template <typename V>
CUDACONV_INLINE inline V smaller(V a, V b) {
  return a < b ? a : b;
}
template <typename V>
CUDACONV_INLINE inline V larger(V a, V b) {
  return a > b ? a : b;
}

// Unsigned type for sums modulo a power of two, since overflow of signed integers is undefined; sums of doubles are
// exact.
template <typename Acc>
using Modular = std::conditional_t<std::is_same_v<Acc, double>, double,
                                   std::conditional_t<sizeof(Acc) == sizeof(uint64_t), uint64_t, uint32_t>>;

// sum + a * b. Doubles are exact integers, so that a fused multiply-add, where it is fast, gives the same.
template <typename Unsigned>
CUDACONV_INLINE inline Unsigned add_product(Unsigned sum, Unsigned a, Unsigned b) {
  return sum + a * b;
}
#if CUDACONV_VECTOR >= 32 || defined(__FP_FAST_FMA)
CUDACONV_INLINE inline double add_product(double sum, double a, double b) {
  return __builtin_fma(a, b, sum);
}
#endif

// Items of a list that are processed at a time, so that their pointers stay in registers.
constexpr int kGroup = 9;

template <int N>
struct Number {
  static constexpr int value = N;
};

template <typename F, int N = kGroup>
CUDACONV_INLINE inline void with_number(int n, F f, Number<N> = {}) {
  if (n == N) return f(Number<N>{});
  if constexpr (N > 1) with_number(n, f, Number<N - 1>{});
}

template <int kCount, bool kFirst, typename In, typename Out>
void sum_group(const Tap<In> *taps, Out start, Out *out, int n) {
  using Unsigned = Modular<Out>;
  const In *in[kCount];
  Out coefficient[kCount];
  for (int k = 0; k < kCount; k++) {
    in[k] = taps[k].in;
    coefficient[k] = static_cast<Out>(taps[k].coefficient);
  }
  for_blocks(n, [=](int s) CUDACONV_INLINE {
    Out v = kFirst ? start : out[s];
    for (int k = 0; k < kCount; k++)
      v = static_cast<Out>(add_product(static_cast<Unsigned>(v), static_cast<Unsigned>(coefficient[k]),
                                       static_cast<Unsigned>(in[k][s])));
    out[s] = v;
  });
}

template <typename In, typename Out>
void sum_taps(const Tap<In> *taps, int count, Out start, Out *out, int n) {
  if (count == 0) return for_blocks(n, [=](int s) CUDACONV_INLINE { out[s] = start; });
  constexpr int kStrip = 16 * kVectorBlock;  // samples whose sums stay in the first-level cache
  for (int begin = 0; begin < n; begin += kStrip) {
    const int length = smaller(kStrip, n - begin);
    for (int k = 0; k < count; k += kGroup) {
      const int size = smaller(kGroup, count - k);
      Tap<In> group[kGroup] = {};
      for (int i = 0; i < size; i++) group[i] = {taps[k + i].in + begin, taps[k + i].coefficient};
      with_number(size, [&](auto number) {
        if (k == 0)
          sum_group<decltype(number)::value, true>(group, start, out + begin, length);
        else
          sum_group<decltype(number)::value, false>(group, start, out + begin, length);
      });
    }
  }
}

template <typename Sum>
void shift_rounded_sums(const Sum *in, int shift, Sum *out, int n) {
  using Unsigned = Modular<Sum>;
  const Unsigned half = Unsigned{1} << (shift - 1);
  for_blocks(n,
             [=](int s) CUDACONV_INLINE { out[s] = static_cast<Sum>(static_cast<Unsigned>(in[s]) + half) >> shift; });
}

// Adding this rounds doubles up to kExactInDouble to integers. From 2 to 4 times kExactInDouble, integers are the only
// doubles, and their bit patterns are consecutive.
constexpr double kRounder = 3.0 * (int64_t{1} << 51);

template <typename T>
void convert_samples(const T *in, double *out, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE { out[s] = in[s]; });
}

inline void convert_samples(const double *in, int64_t *out, int n) {
  int64_t zero;
  __builtin_memcpy(&zero, &kRounder, sizeof zero);
  for_samples(n, [=](int s) CUDACONV_INLINE {
    const double v = in[s] + kRounder;
    __builtin_memcpy(out + s, &v, sizeof v);
    out[s] -= zero;
  });
}

// Half of the smallest fraction is added first. Then no number is midway between two integers; numbers that were round
// up.
inline void shift_rounded_sums(const double *in, int shift, double *out, int n) {
  const double factor = 1.0 / static_cast<double>(int64_t{1} << shift), half = factor / 2;
  for_blocks(n, [=](int s) CUDACONV_INLINE { out[s] = in[s] * factor + half + kRounder - kRounder; });
}

inline void add_shifted_sums(const int32_t *in, int shift, int64_t *out, int n) {
  // Unsigned, since sums may overflow behind the row's end, where values of its last block are undefined.
  for_blocks(n, [=](int s) CUDACONV_INLINE {
    out[s] = static_cast<int64_t>(static_cast<uint64_t>(out[s]) + (static_cast<uint64_t>(int64_t{in[s]}) << shift));
  });
}

inline void sum_products_of(const int32_t *const *in, const int32_t *const *weight, int32_t *out, int n) {
  const int32_t *const a = in[0], *const b = in[1], *const c = in[2], *const d = in[3];
  const int32_t *const u = weight[0], *const v = weight[1], *const w = weight[2], *const x = weight[3];
  // Unsigned, since sums may overflow behind the row's end, where values of its last block are undefined.
  const auto product = [](int32_t sum, int32_t weight)
                           CUDACONV_INLINE { return static_cast<uint32_t>(sum) * static_cast<uint32_t>(weight); };
  for_blocks(n, [=](int s) CUDACONV_INLINE {
    out[s] =
        static_cast<int32_t>(product(a[s], u[s]) + product(b[s], v[s]) + product(c[s], w[s]) + product(d[s], x[s]));
  });
}

template <typename T, typename Acc>
void slide_sums(const T *enters, const T *leaves, Acc *sums, int n) {
  for_blocks(n, [=](int s) CUDACONV_INLINE {
    sums[s] = static_cast<Acc>(static_cast<uint32_t>(sums[s]) + enters[s] - leaves[s]);
  });
}

template <int kCount, typename Out>
void add_group(const uint16_t *const *rows, Out start, Out coefficient, Out *out, int n) {
  using Unsigned = Modular<Out>;
  const uint16_t *in[kCount];
  for (int k = 0; k < kCount; k++) in[k] = rows[k];
  for_blocks(n, [=](int s) CUDACONV_INLINE {
    Out v = static_cast<Out>(in[0][s]);
    for (int k = 1; k < kCount; k++) v = static_cast<Out>(static_cast<Unsigned>(v) + in[k][s]);
    out[s] =
        static_cast<Out>(static_cast<Unsigned>(start) + static_cast<Unsigned>(coefficient) * static_cast<Unsigned>(v));
  });
}

template <typename Out>
void add_rows(const uint16_t *const *rows, int count, Out start, Out coefficient, Out *out, int n) {
  with_number(
      count, [=](auto number) { add_group<decltype(number)::value>(rows, start, coefficient, out, n); },
      Number<kMostAdded>{});
}

// Pixels that a step of scan_sums() adds up. With a step for each pixel, the time depends on where the linker puts the
// loop.
constexpr int kScanPixels = 4;

template <typename In, typename Acc>
void scan_sums(const In *in, int channels, Acc *out, int n) {
  with_number(
      channels,
      [=](auto number) {
        constexpr int kChannels = decltype(number)::value;
        Acc sum[kChannels] = {};
        using Unsigned = Modular<Acc>;
        for (int begin = 0; begin < n + kChannels; begin += kScanPixels * kChannels)
          for (int s = begin; s < begin + kScanPixels * kChannels; s += kChannels)
            for (int c = 0; c < kChannels; c++) {
              out[s + c] = sum[c];
              sum[c] = static_cast<Acc>(static_cast<Unsigned>(sum[c]) + static_cast<Unsigned>(in[s + c]));
            }
      },
      Number<kMaxChannels>{});
}

// The dividend that Rounding16 derives from a sum.
template <bool kAbsolute>
CUDACONV_INLINE inline uint16_t dividend(uint16_t t, const Rounding16 &r) {
  const uint16_t v =
      static_cast<uint16_t>(kAbsolute ? larger(t, r.zero) - smaller(t, r.zero) + r.half : larger(t, r.low) - r.low);
  return smaller(v, r.limit);
}

CUDACONV_INLINE inline uint16_t quotient(uint16_t v, const Rounding16 &r) {
  return static_cast<uint16_t>(uint32_t{v} * r.magic >> 16);
}

template <bool kAbsolute>
void round_16(const uint16_t *sum, const Rounding16 &rounding, uint8_t *out, int n) {
  const Rounding16 r = rounding;
  // A shift by a constant stays in 16-bit lanes, and so does the upper half of a product; other shifts go through 32
  // bits.
  with_number(
      r.shift + 1,
      [=](auto number) {
        for_samples(n, [=](int s) CUDACONV_INLINE {
          out[s] = static_cast<uint8_t>(quotient(dividend<kAbsolute>(sum[s], r), r) >> (decltype(number)::value - 1));
        });
      },
      Number<15>{});
}

inline void round_sums(const uint16_t *sum, const Rounding16 &r, uint8_t *out, int n) {
  r.absolute ? round_16<true>(sum, r, out, n) : round_16<false>(sum, r, out, n);
}

template <bool kAbsolute, int kCount, typename In>
void sum_rounded_group(const Tap<In> *taps, const Rounding16 &rounding, uint8_t *out, int n) {
  const Rounding16 r = rounding;
  const In *in[kCount];
  uint16_t coefficient[kCount];
  for (int k = 0; k < kCount; k++) {
    in[k] = taps[k].in;
    coefficient[k] = static_cast<uint16_t>(taps[k].coefficient);
  }
  for_samples(n, [=](int s) CUDACONV_INLINE {
    uint16_t v = r.start;
    for (int k = 0; k < kCount; k++) v = static_cast<uint16_t>(add_product<uint32_t>(v, coefficient[k], in[k][s]));
    out[s] = static_cast<uint8_t>(quotient(dividend<kAbsolute>(v, r), r));
  });
}

template <typename In>
void sum_rounded_taps(const Tap<In> *taps, int count, const Rounding16 &r, uint8_t *out, int n) {
  with_number(
      count,
      [=, &r](auto number) {
        constexpr int kCount = decltype(number)::value;
        r.absolute ? sum_rounded_group<true, kCount>(taps, r, out, n)
                   : sum_rounded_group<false, kCount>(taps, r, out, n);
      },
      Number<kMostRounded>{});
}

inline bool is_power_of_two(int64_t v) {
  return (v & (v - 1)) == 0;
}

// Dividends of 8-bit samples are below 256 * divisor, here below 2^22, so that floats hold them plus 1/2. Their
// quotients are 1/2 / divisor from an integer at least, more than 2^-15, and are off by 2 roundings, less than 2^-15.
constexpr int64_t kMostByFloat = 1 << 14;

// Applies round_to_sample() to value(s); divisors that are powers of two need no multiplication.
template <typename Acc, typename T, typename Value>
CUDACONV_INLINE inline void round_values(const Rounding &rounding, T *out, int n, Value value) {
  const Rounding r = rounding;
  const Acc offset = static_cast<Acc>(r.offset), half = static_cast<Acc>(r.half), limit = static_cast<Acc>(r.limit);
  if (is_power_of_two(2 * r.half)) {
    const int shift = __builtin_ctzll(static_cast<uint64_t>(2 * r.half));
    const auto round = [=](auto absolute) {
      for_samples(n, [=](int s) CUDACONV_INLINE {
        Acc v = static_cast<Acc>(value(s) + offset);
        if (decltype(absolute)::value) v = v < 0 ? -v : v;
        v = smaller(larger(static_cast<Acc>(v + half), Acc{0}), limit);
        out[s] = static_cast<T>(v >> shift);
      });
    };
    r.absolute ? round(std::true_type{}) : round(std::false_type{});
  } else if (sizeof(T) == 1 && sizeof(Acc) == 4 && 2 * r.half < kMostByFloat) {
    const float inverse = 1 / static_cast<float>(2 * r.half);
    for_samples(n, [=](int s) CUDACONV_INLINE {
      Acc v = static_cast<Acc>(value(s) + offset);
      v = smaller(larger(static_cast<Acc>((r.absolute && v < 0 ? -v : v) + half), Acc{0}), limit);
      out[s] = static_cast<T>(static_cast<int>((static_cast<float>(v) + 0.5f) * inverse));
    });
  } else {
    for_samples(
        n, [=](int s) CUDACONV_INLINE { out[s] = static_cast<T>(round_to_sample(static_cast<Acc>(value(s)), r)); });
  }
}

template <typename Acc, typename T>
void round_sums(const Acc *sum, const Rounding &rounding, T *out, int n) {
  round_values<Acc>(rounding, out, n, [=](int s) CUDACONV_INLINE { return sum[s]; });
}

template <typename Acc, typename T>
void round_sums(const Acc *sum, const Gain &gain, const T *centre, const Rounding &rounding, T *out, int n) {
  const Gain g = gain;
  if (sizeof(Acc) == 4 && g.narrow) {
    const int32_t sums_gain = static_cast<int32_t>(g.sum), centres_gain = static_cast<int32_t>(g.centre);
    // The rounding bit is added before the last bit is shifted out, so that the sum cannot overflow 32 bits.
    const int first = g.shift ? g.shift - 1 : 0, last = g.shift ? 1 : 0;
    return round_values<int32_t>(rounding, out, n, [=](int s) CUDACONV_INLINE {
      const int32_t v = static_cast<int32_t>(((sum[s] >> first) + last) >> last);
      return sums_gain * v + centres_gain * centre[s];
    });
  }
  round_values<int64_t>(rounding, out, n,
                        [=](int s) CUDACONV_INLINE { return apply_gain(sum[s], g.shift, g.sum, g.centre, centre[s]); });
}

template <typename Lane>
struct Root;

// floor(sqrt(square)); comparisons correct the estimate.
template <>
struct Root<int16_t> {
  using Square = int32_t;
  CUDACONV_INLINE static int32_t floor(int32_t square) {
    int32_t r = static_cast<int32_t>(__builtin_sqrtf(static_cast<float>(square)));
    r -= r * r > square;
    r += (r + 1) * (r + 1) <= square;
    return r;
  }
};

// Squares below 2^52 are exact in double precision, and so is the integer part of their correctly rounded root.
template <>
struct Root<int32_t> {
  using Square = double;
  CUDACONV_INLINE static int32_t floor(double square) { return static_cast<int32_t>(__builtin_sqrt(square)); }
};

template <typename In>
void magnitudes_of(Norm norm, bool large, const In *x, const In *y, int32_t *out, int n) {
  using Lane = std::conditional_t<sizeof(In) == 2, int16_t, int32_t>;
  if (sizeof(In) == 4 && large)
    return for_samples(
        n, [=](int s) CUDACONV_INLINE { out[s] = magnitude(norm, static_cast<Lane>(x[s]), static_cast<Lane>(y[s])); });
  using Square = typename Root<Lane>::Square;
  if (norm == Norm::L1)
    return for_samples(n, [=](int s) CUDACONV_INLINE {
      const int32_t a = static_cast<Lane>(x[s]), b = static_cast<Lane>(y[s]);
      out[s] = (a < 0 ? -a : a) + (b < 0 ? -b : b);
    });
  const int32_t fraction = norm == Norm::L2Fraction;
  for_samples(n, [=](int s) CUDACONV_INLINE {
    const Square a = static_cast<Lane>(x[s]), b = static_cast<Lane>(y[s]), square = a * a + b * b;
    const int32_t root = Root<Lane>::floor(square);
    const Square exact = static_cast<Square>(root) * static_cast<Square>(root);
    out[s] = (root << fraction) + (fraction & static_cast<int32_t>(exact != square));
  });
}

template <typename T, typename Acc>
void compass_of(const T *const *row, int channels, int32_t three_gain, int32_t all_gain, Acc start, Acc *out, int n) {
  const T *a = row[0], *b = row[1], *d = row[2];
  const Acc three = static_cast<Acc>(three_gain), all = static_cast<Acc>(all_gain);
  const int c = channels;
  for_samples(n, [=](int s) CUDACONV_INLINE {
    const Acc ring[8] = {a[s], a[s + c], a[s + 2 * c], b[s + 2 * c], d[s + 2 * c], d[s + c], d[s], b[s]};
    Acc pair[8];  // sums of neighbours in the ring
    for (int k = 0; k < 8; k++) pair[k] = static_cast<Acc>(ring[k] + ring[(k + 1) % 8]);
    Acc largest = 0;
    for (int k = 0; k < 8; k++) largest = larger(largest, static_cast<Acc>(pair[k] + ring[(k + 2) % 8]));
    const Acc sum = static_cast<Acc>(pair[0] + pair[2] + pair[4] + pair[6]);
    out[s] = static_cast<Acc>(start + three * largest + all * sum);
  });
}

template <bool kLargest, int kCount, typename T>
void extremum_group(const T *const *rows, bool first, T *out, int n) {
  const T *in[kCount];
  for (int k = 0; k < kCount; k++) in[k] = rows[k];
  const T *start = first ? in[0] : out;
  for_samples(n, [=](int s) CUDACONV_INLINE {
    T v = start[s];
    for (int k = 0; k < kCount; k++) v = kLargest ? larger(v, in[k][s]) : smaller(v, in[k][s]);
    out[s] = v;
  });
}

template <bool kLargest, typename T>
void extremum_of(const T *const *in, int count, T *out, int n) {
  for (int k = 0; k < count; k += kGroup)
    with_number(smaller(kGroup, count - k),
                [=](auto number) { extremum_group<kLargest, decltype(number)::value>(in + k, k == 0, out, n); });
}

template <typename T>
void extremum_of(bool largest, const T *const *in, int count, T *out, int n) {
  largest ? extremum_of<true>(in, count, out, n) : extremum_of<false>(in, count, out, n);
}

}  // namespace

}  // namespace cudaconv

#if CUDACONV_VECTOR >= 32
#include "cpu/bilateral_bytes.h"
#endif
#include "cpu/bilateral_loops.h"
#include "cpu/median_loops.h"
#include "cpu/pair_loops.h"

namespace cudaconv {

namespace {

template <typename T>
void subtract_samples(const T *a, const T *b, T *out, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE { out[s] = static_cast<T>(larger(a[s], b[s]) - b[s]); });
}

template <typename T>
void select_changed_samples(const T *a, const T *b, const T *threshold, T *out, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE {
    out[s] = static_cast<T>(larger(a[s], b[s]) - smaller(a[s], b[s])) > threshold[s] ? a[s] : b[s];
  });
}

template <typename T>
void blend_samples(const T *in, const T *mask, T *out, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE { out[s] = static_cast<T>((in[s] & mask[s]) | (out[s] & ~mask[s])); });
}

// Calls body(s) once for each of any number of pixels.
template <typename Body>
CUDACONV_INLINE inline void for_pixels(int n, Body body) {
  const int whole = n / kVectorBlock * kVectorBlock;
  for_blocks(whole, body);
  for (int s = whole; s < n; s++) body(s);
}

template <int kChannels, typename T>
void split_pixels(const T *in, T *const *out, int n) {
  T *to[kChannels];
  for (int c = 0; c < kChannels; c++) to[c] = out[c];
  for_pixels(n, [=](int s) CUDACONV_INLINE {
    for (int c = 0; c < kChannels; c++) to[c][s] = in[kChannels * s + c];
  });
}
template <typename T>
void split_pixels(const T *in, int channels, T *const *out, int n) {
  with_number(
      channels, [=](auto number) { split_pixels<decltype(number)::value>(in, out, n); }, Number<kMaxChannels>{});
}

template <int kChannels, typename T>
void join_pixels(const T *const *in, T *out, int n) {
  const T *from[kChannels];
  for (int c = 0; c < kChannels; c++) from[c] = in[c];
  for_pixels(n, [=](int s) CUDACONV_INLINE {
    for (int c = 0; c < kChannels; c++) out[kChannels * s + c] = from[c][s];
  });
}
template <typename T>
void join_pixels(const T *const *in, int channels, T *out, int n) {
  with_number(
      channels, [=](auto number) { join_pixels<decltype(number)::value>(in, out, n); }, Number<kMaxChannels>{});
}

inline uint16_t swapped(uint16_t v) {
  return static_cast<uint16_t>(v << 8 | v >> 8);
}

inline void unpack_words(const uint8_t *words, bool swap, int shift, int largest, uint16_t *samples, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE {
    uint16_t v;
    __builtin_memcpy(&v, words + 2 * s, 2);
    samples[s] = static_cast<uint16_t>((swap ? swapped(v) : v) >> shift & largest);
  });
}

inline void pack_words(const uint16_t *samples, bool swap, int shift, uint8_t *words, int n) {
  for_samples(n, [=](int s) CUDACONV_INLINE {
    const uint16_t v = static_cast<uint16_t>(samples[s] << shift), word = swap ? swapped(v) : v;
    __builtin_memcpy(words + 2 * s, &word, 2);
  });
}

// A function object of all overloads of a function.
#define CUDACONV_ALL(function) [](auto... args) { function(args...); }

const VectorLoops kLoops = {CUDACONV_LEVEL,
                            CUDACONV_ALL(sum_taps),
                            CUDACONV_ALL(sum_rounded_taps),
                            CUDACONV_ALL(pair_samples),
                            CUDACONV_ALL(sum_pairs_of),
                            sum_pairs_to_half_of,
                            put_half_of,
                            CUDACONV_ALL(shift_rounded_sums),
                            CUDACONV_ALL(convert_samples),
                            add_shifted_sums,
                            sum_products_of,
                            CUDACONV_ALL(slide_sums),
                            CUDACONV_ALL(add_rows),
                            CUDACONV_ALL(scan_sums),
                            CUDACONV_ALL(round_sums),
                            CUDACONV_ALL(magnitudes_of),
                            CUDACONV_ALL(compass_of),
                            CUDACONV_ALL(extremum_of),
                            CUDACONV_ALL(median_of),
                            count_column_samples,
                            median_of_columns,
                            CUDACONV_ALL(bilateral_of),
                            CUDACONV_ALL(split_pixels),
                            CUDACONV_ALL(join_pixels),
                            CUDACONV_ALL(subtract_samples),
                            CUDACONV_ALL(blend_samples),
                            CUDACONV_ALL(select_changed_samples),
                            unpack_words,
                            pack_words};

#undef CUDACONV_ALL

}  // namespace

}  // namespace cudaconv
