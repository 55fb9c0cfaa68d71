// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops of Op::Bilateral: a part of vector_loops.h, included there and so compiled for each target.

namespace cudaconv {

namespace {

// The sums of a block of samples, from the sample in the middle on.
struct BilateralSums {
  uint64_t n[kVectorBlock], d[kVectorBlock];

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

template <typename T>
void bilateral_of(const BilateralRing<T> *rings, int count, const T *middle, const BilateralRange &range, T *out,
                  int n) {
#if CUDACONV_VECTOR >= 32
  if constexpr (sizeof(T) == 1)
    return range.weight[128] ? bilateral_bytes<true>(rings, count, middle, range, out, n)
                             : bilateral_bytes<false>(rings, count, middle, range, out, n);
#elif defined(__AARCH64EL__)
  if constexpr (sizeof(T) == 1)
    if (!range.weight[128]) return bilateral_bytes(rings, count, middle, range, out, n);
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
