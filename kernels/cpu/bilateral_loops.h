// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops of Op::Bilateral: a part of vector_loops.h, included there and so compiled for each target.

namespace cudaconv {

namespace {

// The sums of a block of samples, from the sample in the middle on.
struct BilateralSums {
  uint64_t n[kVectorBlock], d[kVectorBlock];

  BilateralSums() = default;
  template <typename T>
  explicit BilateralSums(const T *middle) {
    for (int s = 0; s < kVectorBlock; s++) {
      d[s] = kMiddleWeight;
      n[s] = kMiddleWeight * middle[s];
    }
  }
};

}  // namespace

}  // namespace cudaconv

#ifdef __AARCH64EL__
#include "cpu/bilateral_neon.h"
#endif

namespace cudaconv {

namespace {

template <typename T>
void add_ring(const BilateralRing<T> &ring, int begin, const T *middle, const BilateralRange &range,
              BilateralSums *sums) {
  // Sums of a ring, before they are multiplied by the weight of its distance: at most 961 * 65535 * 255 for bytes.
  using Sum = std::conditional_t<sizeof(T) == 1, uint32_t, uint64_t>;
  uint32_t weights[kVectorBlock] = {};
  Sum products[kVectorBlock] = {};
  for (int k = 0; k < ring.count; k++) {
    const T *const in = ring.in[k] + begin;
    CUDACONV_INDEPENDENT
    for (int s = 0; s < kVectorBlock; s++) {
      const int v = in[s], m = middle[s], difference = larger(v, m) - smaller(v, m);
      uint32_t r;
      if constexpr (sizeof(T) == 1)
        r = range.weight[difference];
      else
        r = range_weight(range.entry, range.shift, range.last, difference);
      weights[s] += r;
      products[s] += r * static_cast<Sum>(v);
    }
  }
  for (int s = 0; s < kVectorBlock; s++) {
    sums->d[s] += uint64_t{ring.space} * weights[s];
    sums->n[s] += uint64_t{ring.space} * products[s];
  }
}

// The same for RGB. The sums of each colour have the same d.
template <typename T>
void add_ring(const BilateralRing<T> &ring, int begin, const T *const *middle, const BilateralRange &range,
              BilateralSums (&sums)[kColours]) {
  using Sum = std::conditional_t<sizeof(T) == 1, uint32_t, uint64_t>;
  uint32_t weights[kVectorBlock] = {};
  Sum products[kColours][kVectorBlock] = {};
  const T *const m0 = middle[0] + begin, *const m1 = middle[1] + begin, *const m2 = middle[2] + begin;
  for (int k = 0; k < ring.count; k++) {
    const T *const *const in = ring.in + kColours * k;
    const T *const in0 = in[0] + begin, *const in1 = in[1] + begin, *const in2 = in[2] + begin;
    const auto difference = [](int a, int b) CUDACONV_INLINE { return larger(a, b) - smaller(a, b); };
    CUDACONV_INDEPENDENT
    for (int s = 0; s < kVectorBlock; s++) {
      const int sum = difference(in0[s], m0[s]) + difference(in1[s], m1[s]) + difference(in2[s], m2[s]);
      uint32_t r;
      if constexpr (sizeof(T) == 1)
        r = range.weight[sum];
      else
        r = range_weight(range.entry, range.shift, range.last, sum);
      weights[s] += r;
      products[0][s] += r * static_cast<Sum>(in0[s]);
      products[1][s] += r * static_cast<Sum>(in1[s]);
      products[2][s] += r * static_cast<Sum>(in2[s]);
    }
  }
  for (int c = 0; c < kColours; c++)
    for (int s = 0; s < kVectorBlock; s++) {
      sums[c].d[s] += uint64_t{ring.space} * weights[s];
      sums[c].n[s] += uint64_t{ring.space} * products[c][s];
    }
}

template <typename T>
void bilateral_rgb_of(const BilateralRing<T> *rings, int count, const T *const *middle, const BilateralRange &range,
                      T *const *out, int n) {
#if CUDACONV_VECTOR >= 32
  if constexpr (sizeof(T) == 1) return bilateral_bytes<kColours>(rings, count, middle, range, out, n);
#elif defined(__AARCH64EL__)
  if constexpr (sizeof(T) == 1)
    if (!range.weight[128]) return bilateral_bytes<kColours>(rings, count, middle, range, out, n);
#endif
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    BilateralSums sums[kColours] = {BilateralSums(middle[0] + begin), BilateralSums(middle[1] + begin),
                                    BilateralSums(middle[2] + begin)};
    for (int k = 0; k < count; k++) add_ring(rings[k], begin, middle, range, sums);
    for (int c = 0; c < kColours; c++)
      for (int s = 0; s < kVectorBlock; s++)
        out[c][begin + s] = static_cast<T>(rounded_mean(sums[c].n[s], sums[c].d[s]));
  }
}

template <typename T>
void bilateral_of(const BilateralRing<T> *rings, int count, const T *middle, const BilateralRange &range, T *out,
                  int n) {
#if CUDACONV_VECTOR >= 32
  if constexpr (sizeof(T) == 1) return bilateral_bytes<1>(rings, count, &middle, range, &out, n);
#elif defined(__AARCH64EL__)
  if constexpr (sizeof(T) == 1)
    if (!range.weight[128]) return bilateral_bytes<1>(rings, count, &middle, range, &out, n);
#endif
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    BilateralSums sums(middle + begin);
    for (int k = 0; k < count; k++) add_ring(rings[k], begin, middle + begin, range, &sums);
    for (int s = 0; s < kVectorBlock; s++) out[begin + s] = static_cast<T>(rounded_mean(sums.n[s], sums.d[s]));
  }
}

}  // namespace

}  // namespace cudaconv
