// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops over the samples of a row. They are compiled for each kind of vector unit and chosen at run time. All
// levels give the same numbers: integer arithmetic is exact, or exact modulo 2^16 if the final result fits.
#pragma once

#include <cfloat>
#include <cstdint>
#include <vector>

#include "plan/bilateral.h"
#include "plan/epilogue.h"
#include "plan/plan.h"

namespace cudaconv {

// Samples of a block, the unit of loops. Every row that a loop reads or writes has room for at least one block.
constexpr int kVectorBlock = 64;

// Bins of a histogram of 8-bit samples by their high four bits, and by their low four.
constexpr int kMedianBins = 16;

constexpr int whole_blocks(int samples) {
  return (samples + kVectorBlock - 1) / kVectorBlock * kVectorBlock;
}

// Two signed 16-bit numbers in a 32-bit word, the form that multiply-add instructions take.
constexpr int32_t pair_of(int32_t first, int32_t second) {
  return static_cast<int32_t>((static_cast<uint32_t>(first) & 0xffff) | static_cast<uint32_t>(second) << 16);
}

// Subtracted from samples so that they fit signed 16 bits.
constexpr int pair_zero(uint8_t) {
  return 0;
}
constexpr int pair_zero(uint16_t) {
  return 1 << 15;
}

// Largest magnitude of the integers that are summed in doubles. Doubles hold them exactly, with one spare bit for a
// fraction and one for the conversion to integers, see vector_loops.h. 32-bit x86 has no operations in double
// precision, so nothing is summed there.
constexpr int64_t kExactInDouble = FLT_EVAL_METHOD == 0 ? int64_t{1} << 51 : 0;

template <typename In>
struct Tap {
  const In *in;
  int32_t coefficient;
};

// Rows of results that masks that are not separable sum at a time. Their windows share most rows, so that pairs are
// loaded once for all of them.
constexpr int kRowsAtATime = 2;

// A row of pairs, and its coefficients in the sums of kRows rows of results.
template <int kRows>
struct PairTap {
  const int32_t *in;
  int32_t coefficients[kRows];
};

// Rounding in 16-bit lanes: v / divisor is (v * magic >> 16) >> shift. The shift is at most 14; it is 0 for divisors
// that are powers of two.
struct Rounding16 : Epilogue16 {
  uint16_t magic = 0;
  int shift = 0;
};

struct Gain {
  int64_t sum, centre;
  int shift;    // right shift of the sum before it is multiplied, see apply_gain()
  bool narrow;  // everything computed from 32-bit sums fits 32 bits
};

// The most pixels of a BilateralRing: the sum of 16-bit weights times bytes then fits 32 bits.
constexpr int kMostInRing = 256;

// The weight of the middle of a bilateral window.
constexpr uint64_t kMiddleWeight = uint64_t{kBilateralOne} * kBilateralOne;

// Sums of differences of three bytes are less.
constexpr int kByteDifferences = 3 * 256;

// Pixels of a bilateral window at the same distance from its middle: in[k][s] is pixel k of window s. With RGB it is
// colour k % 3 of pixel k / 3.
template <typename T>
struct BilateralRing {
  const T *const *in;
  int count;       // of pixels
  uint32_t space;  // the weight of their distance
};

// The weights of differences, see RangeTable.
struct BilateralRange {
  const uint32_t *entry;
  int shift, last;
  const uint32_t *weight;  // 8-bit samples: the weight of each difference, kByteDifferences of them
};

// Whether 16 bits hold all values on the way from a sum in the range to a sample; if so, fills in *result.
bool make_rounding16(const Rounding &rounding, SumRange range, Rounding16 *result);

// Whether this holds for half of a sum, where all coefficients of the mask are 2, as where its divisor was odd, see
// MaskEpilogue::reduce(). `range`: of the half.
bool make_halved_rounding16(const Rounding &rounding, SumRange range, Rounding16 *result);

// The most taps that VectorLoops::sum_rounded takes, and the most rows that VectorLoops::add takes.
constexpr int kMostRounded = 9;
constexpr int kMostAdded = 8;

// A loop for several types of samples; the arguments choose one.
template <typename Signature>
struct Loop;
template <typename... Args>
struct Loop<void(Args...)> {
  void (*run)(Args...);
  void operator()(Args... args) const { run(args...); }
};
template <typename... Signatures>
struct Loops : Loop<Signatures>... {
  // `f`: a function object without state that takes the arguments of all signatures.
  template <typename F>
  constexpr Loops(F f) : Loop<Signatures>{f}... {}
  using Loop<Signatures>::operator()...;
};

// The loops of a level. In all loops, n is the number of samples: a whole number of blocks if the comment says "n:
// blocks", else any number from kVectorBlock on. `out` overlaps no input unless the comment says so. Sums of type
// uint16_t are modulo 2^16.
struct VectorLoops {
  const char *level;

  // out[s] = start + the sum of coefficient * in[s] over the taps. Doubles are integers; no sum of any of the products
  // exceeds kExactInDouble. n: blocks
  template <typename In, typename Out>
  using Sum = void(const Tap<In> *taps, int count, Out start, Out *out, int n);
  Loops<Sum<uint8_t, uint16_t>, Sum<uint8_t, int32_t>, Sum<uint8_t, int64_t>, Sum<uint16_t, uint16_t>,
        Sum<uint16_t, int32_t>, Sum<uint16_t, int64_t>, Sum<int32_t, int32_t>, Sum<int64_t, int64_t>,
        Sum<double, double>>
      sum;

  // The same sums, rounded with a shift of 0, for at most kMostRounded taps.
  template <typename In>
  using SumRounded = void(const Tap<In> *taps, int count, const Rounding16 &rounding, uint8_t *out, int n);
  Loops<SumRounded<uint8_t>, SumRounded<uint16_t>> sum_rounded;

  // out[s] = pair_of(in[s] - zero, in[s + distance] - zero) with the pair_zero of the samples.
  template <typename T>
  using Pair = void(const T *in, int distance, int32_t *out, int n);
  Loops<Pair<uint8_t>, Pair<uint16_t>> pair;

  // out[row][s] = start + the sum over the taps of: first half of in[s] * first half of the row's coefficient + second
  // half * second half. The first `high` taps are multiplied by 2^16. All arithmetic is modulo 2^32. n: blocks
  template <int kRows>
  using SumPairs = void(const PairTap<kRows> *taps, int high, int count, uint32_t start, int32_t *const *out, int n);
  Loops<SumPairs<1>, SumPairs<kRowsAtATime>> sum_pairs;

  // The same, but sums are shifted right and stored as one half of out[s], as put_half() does. n: blocks
  void (*sum_pairs_to_half)(const PairTap<1> *taps, int high, int count, uint32_t start, int shift, bool second,
                            int32_t *out, int n);

  // Stores in[s] as the first half of out[s] and clears the second half; with `second`, stores it as the second half
  // only. n: blocks
  void (*put_half)(const uint16_t *in, bool second, int32_t *out, int n);

  // out[s] = floor(in[s] / 2^shift + 1 / 2), for shifts from 1 on and doubles up to kExactInDouble; `out` may be `in`.
  // n: blocks
  template <typename V>
  using Shift = void(const V *in, int shift, V *out, int n);
  Loops<Shift<int32_t>, Shift<int64_t>, Shift<double>> shift_rounded;

  // Converts integers up to kExactInDouble.
  template <typename In, typename Out>
  using Convert = void(const In *in, Out *out, int n);
  Loops<Convert<uint8_t, double>, Convert<uint16_t, double>, Convert<double, int64_t>> convert;

  // out[s] += in[s] * 2^shift. n: blocks
  void (*add_shifted)(const int32_t *in, int shift, int64_t *out, int n);

  // out[s] = the sum of weight[k][s] * in[k][s], k from 0 to 3. n: blocks
  void (*sum_products)(const int32_t *const *in, const int32_t *const *weight, int32_t *out, int n);

  // sums[s] += enters[s] - leaves[s]. n: blocks
  template <typename T, typename Acc>
  using Slide = void(const T *enters, const T *leaves, Acc *sums, int n);
  Loops<Slide<uint8_t, uint16_t>, Slide<uint8_t, int32_t>, Slide<uint16_t, int32_t>> slide;

  // out[s] = start + coefficient * the sum of rows[k][s], k from 0 to count - 1, count from 1 to kMostAdded. n: blocks
  template <typename Out>
  using Add = void(const uint16_t *const *rows, int count, Out start, Out coefficient, Out *out, int n);
  Loops<Add<uint16_t>, Add<int32_t>> add;

  // out[s] is the sum of in[s - channels], in[s - 2 * channels], ... for s < n + channels. n: whole pixels;
  // up to five pixels more are read and written
  template <typename In, typename Acc>
  using Scan = void(const In *in, int channels, Acc *out, int n);
  Loops<Scan<int32_t, int32_t>, Scan<int32_t, int64_t>> scan;

  // Rounds sums to samples; with a gain, which is applied first, from the windows' centre samples too.
  template <typename Acc, typename T>
  using Round = void(const Acc *sum, const Rounding &rounding, T *out, int n);
  template <typename Acc, typename T>
  using RoundGained = void(const Acc *sum, const Gain &gain, const T *centre, const Rounding &rounding, T *out, int n);
  Loops<void(const uint16_t *sum, const Rounding16 &rounding, uint8_t *out, int n), Round<int32_t, uint8_t>,
        Round<int32_t, uint16_t>, Round<int64_t, uint8_t>, Round<int64_t, uint16_t>, RoundGained<int32_t, uint8_t>,
        RoundGained<int32_t, uint16_t>, RoundGained<int64_t, uint8_t>, RoundGained<int64_t, uint16_t>>
      round;

  // out[s] = magnitude(norm, x[s], y[s]). The uint16_t hold signed numbers. `large`: the sum of some squares is 2^52 or
  // more.
  template <typename In>
  using Magnitudes = void(Norm norm, bool large, const In *x, const In *y, int32_t *out, int n);
  Loops<Magnitudes<uint16_t>, Magnitudes<int32_t>> magnitudes;

  // The response of the kirsch mask, see Op::Compass. row[]: the rows above, at and below the results, each from the
  // pixel to the left of the first result on; pixels are `channels` apart.
  template <typename T, typename Acc>
  using Compass = void(const T *const *row, int channels, int32_t three_gain, int32_t all_gain, Acc start, Acc *out,
                       int n);
  Loops<Compass<uint8_t, uint16_t>, Compass<uint8_t, int32_t>, Compass<uint16_t, int32_t>> compass;

  // The largest or smallest of in[0][s] ... in[count - 1][s]; `out` may be one of them.
  template <typename T>
  using Extremum = void(bool largest, const T *const *in, int count, T *out, int n);
  Loops<Extremum<uint8_t>, Extremum<uint16_t>> extremum;

  // The median of in[0][s] ... in[count - 1][s], samples of `depth` bits; count is odd and fits a sample's type.
  template <typename T>
  using Median = void(const T *const *in, int count, int depth, T *out, int n);
  Loops<Median<uint8_t>, Median<uint16_t>> median;

  // Updates histograms of columns of samples: adds enters[s] to column s and, unless `leaves` is nullptr, removes
  // leaves[s]. From coarse[s * kMedianBins] on, column s has kMedianBins bins by the high four bits of samples. From
  // fine[s * kMedianBins^2] on, it has kMedianBins^2 bins by the high, then the low four bits. Bins are cumulative:
  // each includes the counts of the bins before it. Counts are below 256. Any n.
  void (*count_columns)(const uint8_t *enters, const uint8_t *leaves, uint8_t *coarse, uint8_t *fine, int n);
  // out[s] is the median of the window of `width` pixels of columns from s on: the value that at most `rank` samples
  // are less than. n: any number of whole pixels
  void (*median_of_columns)(const uint8_t *coarse, const uint8_t *fine, int channels, int width, int rank, uint8_t *out,
                            int n);

  // The results of Op::Bilateral without alpha, of one component, or of the three colours of RGB: middle[c] and out[c]
  // are rows of component c. middle[c][s]: the sample in the middle of window s, in no ring.
  template <typename T>
  using Bilateral = void(const BilateralRing<T> *rings, int count, int components, const T *const *middle,
                         const BilateralRange &range, T *const *out, int n);
  Loops<Bilateral<uint8_t>, Bilateral<uint16_t>> bilateral;

  // Splits pixels of interleaved channels into a row for each channel, and the inverse. n: any number of pixels
  template <typename T>
  using Split = void(const T *in, int channels, T *const *out, int n);
  Loops<Split<uint8_t>, Split<uint16_t>> split;
  template <typename T>
  using Join = void(const T *const *in, int channels, T *out, int n);
  Loops<Join<uint8_t>, Join<uint16_t>> join;

  // subtract: out = max(a - b, 0). blend: out = b ? a : out, bit by bit.
  template <typename T>
  using Combine = void(const T *a, const T *b, T *out, int n);
  Loops<Combine<uint8_t>, Combine<uint16_t>> subtract, blend;
  // out = |a - b| > threshold ? a : b
  template <typename T>
  using SelectChanged = void(const T *a, const T *b, const T *threshold, T *out, int n);
  Loops<SelectChanged<uint8_t>, SelectChanged<uint16_t>> select_changed;

  // Converts 16-bit words to samples and back; `swap`: exchanges the two bytes of each word.
  void (*unpack)(const uint8_t *words, bool swap, int shift, int largest, uint16_t *samples, int n);
  void (*pack)(const uint16_t *samples, bool swap, int shift, uint8_t *words, int n);
};

// The loops of vector_loops.h, as compiled by each vector_*.cpp. Use one only if the processor supports its level.
const VectorLoops &vector_loops_baseline();
const VectorLoops &vector_loops_avx2();
const VectorLoops &vector_loops_avx512();

// The levels that this machine can run, the fastest last. The first one is for no vector unit in particular.
const std::vector<const VectorLoops *> &vector_levels();

// The fastest level, or, for tests, the one that the environment variable CUDACONV_VECTORS names.
const VectorLoops &vector_loops();

}  // namespace cudaconv
