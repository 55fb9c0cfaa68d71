// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops over the samples of a row. They are compiled for each kind of vector unit and chosen at run time. All
// levels give the same numbers: integer arithmetic is exact, or exact modulo 2^16 if the final result fits.
#pragma once

#include <cfloat>
#include <cstdint>
#include <vector>

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

// Rounding in 16-bit lanes. With t = start + sum, the sample
//
//   clamp(floor((sum + offset [absolute value] + half) / divisor), 0, max)
//
// is computed as v = absolute ? |t - zero| + half : max(t - low, 0), limited to `limit`, and then v >> shift or, with a
// magic number, (v * magic >> 16) >> shift. Without a magic number, shift is from 1 to 15.
struct Rounding16 {
  uint16_t start = 0, zero = 0, half = 0, low = 0, limit = 0, magic = 0;
  int shift = 0;
  bool absolute = false;
};

struct Gain {
  int64_t sum, centre;
  int shift;    // right shift of the sum before it is multiplied, see apply_gain()
  bool narrow;  // everything computed from 32-bit sums fits 32 bits
};

// The most pixels of a BilateralRing: the sum of 16-bit weights times bytes then fits 32 bits.
constexpr int kMostInRing = 256;

// Pixels of a bilateral window at the same distance from its middle: in[k][s] is pixel k of window s.
template <typename T>
struct BilateralRing {
  const T *const *in;
  int count;
  uint32_t space;  // the weight of their distance
};

// The weights of differences, see RangeTable.
struct BilateralRange {
  const uint32_t *entry;
  int shift, last;
  const uint32_t *weight;  // 8-bit samples: the weight of each difference
};

// Whether 16 bits hold all values on the way from a sum in the range to a sample; if so, fills in *result.
bool make_rounding16(const Rounding &rounding, SumRange range, Rounding16 *result);

// In all functions, n is the number of samples: a whole number of blocks if the comment says "n: blocks", else any
// number from kVectorBlock on. `out` overlaps no input unless the comment says so. Sums of type uint16_t are modulo
// 2^16.
class VectorLoops {
 public:
  virtual const char *level() const = 0;

  // out[s] = start + the sum of coefficient * in[s] over the taps. n: blocks
  virtual void sum(const Tap<uint8_t> *taps, int count, uint16_t start, uint16_t *out, int n) const = 0;
  virtual void sum(const Tap<uint8_t> *taps, int count, int32_t start, int32_t *out, int n) const = 0;
  virtual void sum(const Tap<uint8_t> *taps, int count, int64_t start, int64_t *out, int n) const = 0;
  virtual void sum(const Tap<uint16_t> *taps, int count, uint16_t start, uint16_t *out, int n) const = 0;
  virtual void sum(const Tap<uint16_t> *taps, int count, int32_t start, int32_t *out, int n) const = 0;
  virtual void sum(const Tap<uint16_t> *taps, int count, int64_t start, int64_t *out, int n) const = 0;
  virtual void sum(const Tap<int32_t> *taps, int count, int32_t start, int32_t *out, int n) const = 0;
  virtual void sum(const Tap<int64_t> *taps, int count, int64_t start, int64_t *out, int n) const = 0;
  // All values are integers. No sum of any of the products exceeds kExactInDouble.
  virtual void sum(const Tap<double> *taps, int count, double start, double *out, int n) const = 0;

  // out[s] = pair_of(in[s] - zero, in[s + distance] - zero) with the pair_zero of the samples.
  virtual void pair(const uint8_t *in, int distance, int32_t *out, int n) const = 0;
  virtual void pair(const uint16_t *in, int distance, int32_t *out, int n) const = 0;

  // out[s] = start + the sum over the taps of: first half of in[s] * first half of the coefficient + second half *
  // second half. The first `high` taps are multiplied by 2^16. All arithmetic is modulo 2^32. n: blocks
  virtual void sum_pairs(const PairTap<1> *taps, int high, int count, uint32_t start, int32_t *out, int n) const = 0;
  virtual void sum_pairs(const PairTap<kRowsAtATime> *taps, int high, int count, uint32_t start,
                         int32_t *const out[kRowsAtATime], int n) const = 0;

  // sum_pairs() whose sums are shifted right and stored as one half of out[s], as put_half() does. n: blocks
  virtual void sum_pairs(const PairTap<1> *taps, int high, int count, uint32_t start, int shift, bool second,
                         int32_t *out, int n) const = 0;

  // Stores in[s] as the first half of out[s] and clears the second half; with `second`, stores it as the second half
  // only. n: blocks
  virtual void put_half(const uint16_t *in, bool second, int32_t *out, int n) const = 0;

  // out[s] = in[s] >> shift; `out` may be `in`. n: blocks
  virtual void shift(const int32_t *in, int shift, int32_t *out, int n) const = 0;
  virtual void shift(const int64_t *in, int shift, int64_t *out, int n) const = 0;

  // Converts integers up to kExactInDouble.
  virtual void convert(const uint8_t *in, double *out, int n) const = 0;
  virtual void convert(const uint16_t *in, double *out, int n) const = 0;
  virtual void convert(const double *in, int64_t *out, int n) const = 0;

  // out[s] = floor(in[s] / 2^shift + 1 / 2) for integers up to kExactInDouble and shifts from 1 on; `out` may be `in`.
  // n: blocks
  virtual void shift_rounded(const double *in, int shift, double *out, int n) const = 0;

  // out[s] += in[s] * 2^shift. n: blocks
  virtual void add_shifted(const int32_t *in, int shift, int64_t *out, int n) const = 0;

  // out[s] = the sum of weight[k][s] * in[k][s], k from 0 to 3. n: blocks
  virtual void sum_products(const int32_t *const in[4], const int32_t *const weight[4], int32_t *out, int n) const = 0;

  // sums[s] += enters[s] - leaves[s]. n: blocks
  virtual void slide(const uint8_t *enters, const uint8_t *leaves, uint16_t *sums, int n) const = 0;
  virtual void slide(const uint8_t *enters, const uint8_t *leaves, int32_t *sums, int n) const = 0;
  virtual void slide(const uint16_t *enters, const uint16_t *leaves, int32_t *sums, int n) const = 0;

  // out[s] is the sum of in[s - channels], in[s - 2 * channels], ... for s < n + channels. n: whole pixels
  virtual void scan(const uint16_t *in, int channels, uint16_t *out, int n) const = 0;
  virtual void scan(const int32_t *in, int channels, int32_t *out, int n) const = 0;
  virtual void scan(const int32_t *in, int channels, int64_t *out, int n) const = 0;

  // Rounds sums to samples.
  virtual void round(const uint16_t *sum, const Rounding16 &rounding, uint8_t *out, int n) const = 0;
  virtual void round(const int32_t *sum, const Rounding &rounding, uint8_t *out, int n) const = 0;
  virtual void round(const int32_t *sum, const Rounding &rounding, uint16_t *out, int n) const = 0;
  virtual void round(const int64_t *sum, const Rounding &rounding, uint8_t *out, int n) const = 0;
  virtual void round(const int64_t *sum, const Rounding &rounding, uint16_t *out, int n) const = 0;

  // Rounds sums to which a gain is applied, with the windows' centre samples.
  virtual void round(const int32_t *sum, const Gain &gain, const uint8_t *centre, const Rounding &rounding,
                     uint8_t *out, int n) const = 0;
  virtual void round(const int32_t *sum, const Gain &gain, const uint16_t *centre, const Rounding &rounding,
                     uint16_t *out, int n) const = 0;
  virtual void round(const int64_t *sum, const Gain &gain, const uint8_t *centre, const Rounding &rounding,
                     uint8_t *out, int n) const = 0;
  virtual void round(const int64_t *sum, const Gain &gain, const uint16_t *centre, const Rounding &rounding,
                     uint16_t *out, int n) const = 0;

  // out[s] = magnitude(norm, x[s], y[s]). The uint16_t hold signed numbers.
  virtual void magnitudes(Norm norm, const uint16_t *x, const uint16_t *y, int32_t *out, int n) const = 0;
  virtual void magnitudes(Norm norm, const int32_t *x, const int32_t *y, int32_t *out, int n) const = 0;

  // The response of the kirsch mask, see Op::Compass. row[]: the rows above, at and below the results, each from the
  // pixel to the left of the first result on; pixels are `channels` apart.
  virtual void compass(const uint8_t *const row[3], int channels, int32_t three_gain, int32_t all_gain, uint16_t start,
                       uint16_t *out, int n) const = 0;
  virtual void compass(const uint8_t *const row[3], int channels, int32_t three_gain, int32_t all_gain, int32_t start,
                       int32_t *out, int n) const = 0;
  virtual void compass(const uint16_t *const row[3], int channels, int32_t three_gain, int32_t all_gain, int32_t start,
                       int32_t *out, int n) const = 0;

  // The largest or smallest of in[0][s] ... in[count - 1][s]; `out` may be one of them.
  virtual void extremum(bool largest, const uint8_t *const *in, int count, uint8_t *out, int n) const = 0;
  virtual void extremum(bool largest, const uint16_t *const *in, int count, uint16_t *out, int n) const = 0;

  // The median of in[0][s] ... in[count - 1][s], samples of `depth` bits; count is odd and fits a sample's type.
  virtual void median(const uint8_t *const *in, int count, int depth, uint8_t *out, int n) const = 0;
  virtual void median(const uint16_t *const *in, int count, int depth, uint16_t *out, int n) const = 0;

  // Updates histograms of columns of samples: adds enters[s] to column s and, unless `leaves` is nullptr, removes
  // leaves[s]. From coarse[s * kMedianBins] on, column s has kMedianBins bins by the high four bits of samples. From
  // fine[s * kMedianBins^2] on, it has kMedianBins^2 bins by the high, then the low four bits. Bins are cumulative:
  // each includes the counts of the bins before it. Counts are below 256. Any n.
  virtual void count_columns(const uint8_t *enters, const uint8_t *leaves, uint8_t *coarse, uint8_t *fine,
                             int n) const = 0;
  // out[s] is the median of the window of `width` pixels of columns from s on: the value that at most `rank` samples
  // are less than. n: any number of whole pixels
  virtual void median_of_columns(const uint8_t *coarse, const uint8_t *fine, int channels, int width, int rank,
                                 uint8_t *out, int n) const = 0;

  // The results of Op::Bilateral without alpha. middle[s]: the sample in the middle of window s, in no ring.
  virtual void bilateral(const BilateralRing<uint8_t> *rings, int count, const uint8_t *middle,
                         const BilateralRange &range, uint8_t *out, int n) const = 0;
  virtual void bilateral(const BilateralRing<uint16_t> *rings, int count, const uint16_t *middle,
                         const BilateralRange &range, uint16_t *out, int n) const = 0;

  // max(a - b, 0)
  virtual void subtract(const uint8_t *a, const uint8_t *b, uint8_t *out, int n) const = 0;
  virtual void subtract(const uint16_t *a, const uint16_t *b, uint16_t *out, int n) const = 0;

  // out = mask ? in : out, bit by bit.
  virtual void blend(const uint8_t *in, const uint8_t *mask, uint8_t *out, int n) const = 0;
  virtual void blend(const uint16_t *in, const uint16_t *mask, uint16_t *out, int n) const = 0;

  // Converts 16-bit words to samples and back; `swap`: exchanges the two bytes of each word.
  virtual void unpack(const uint8_t *words, bool swap, int shift, int largest, uint16_t *samples, int n) const = 0;
  virtual void pack(const uint16_t *samples, bool swap, int shift, uint8_t *words, int n) const = 0;

 protected:
  ~VectorLoops() = default;
};

// The levels that this machine can run, the fastest last. The first one is for no vector unit in particular.
const std::vector<const VectorLoops *> &vector_levels();

// The fastest level, or the one that the environment variable CUDACONV_VECTORS names.
const VectorLoops &vector_loops();

}  // namespace cudaconv
