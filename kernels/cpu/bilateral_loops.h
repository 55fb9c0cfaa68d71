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

// Adds a ring to the sums of a block of windows. With RGB, kCount is 3: the sums of each colour have the same d.
template <int kCount, typename T>
void add_ring(const BilateralRing<T> &ring, int begin, const T *const *middle, const BilateralRange &range,
              BilateralSums (&sums)[kCount]) {
  // Sums of a ring, before they are multiplied by the weight of its distance: at most 961 * 65535 * 255 for bytes.
  using Sum = std::conditional_t<sizeof(T) == 1, uint32_t, uint64_t>;
  uint32_t weights[kVectorBlock] = {};
  Sum products[kCount][kVectorBlock] = {};
  for (int k = 0; k < ring.count; k++) {
    const T *in[kCount], *at[kCount];
    for (int c = 0; c < kCount; c++) {
      in[c] = ring.in[kCount * k + c] + begin;
      at[c] = middle[c] + begin;
    }
    CUDACONV_INDEPENDENT
    for (int s = 0; s < kVectorBlock; s++) {
      int difference = 0;
      for (int c = 0; c < kCount; c++) {
        const int v = in[c][s], m = at[c][s];
        difference += larger(v, m) - smaller(v, m);
      }
      uint32_t r;
      if constexpr (sizeof(T) == 1)
        r = range.weight[difference];
      else
        r = range_weight(range.entry, range.shift, range.last, difference);
      weights[s] += r;
      for (int c = 0; c < kCount; c++) products[c][s] += r * static_cast<Sum>(in[c][s]);
    }
  }
  for (int c = 0; c < kCount; c++)
    for (int s = 0; s < kVectorBlock; s++) {
      sums[c].d[s] += uint64_t{ring.space} * weights[s];
      sums[c].n[s] += uint64_t{ring.space} * products[c][s];
    }
}

template <int kCount, typename T>
void bilateral_of(const BilateralRing<T> *rings, int count, const T *const *middle, const BilateralRange &range,
                  T *const *out, int n) {
#if CUDACONV_VECTOR >= 32
  if constexpr (sizeof(T) == 1) return bilateral_bytes<kCount>(rings, count, middle, range, out, n);
#elif defined(__AARCH64EL__)
  if constexpr (sizeof(T) == 1)
    if (!range.weight[128]) return bilateral_bytes<kCount>(rings, count, middle, range, out, n);
#endif
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    BilateralSums sums[kCount];
    for (int c = 0; c < kCount; c++) sums[c] = BilateralSums(middle[c] + begin);
    for (int k = 0; k < count; k++) add_ring(rings[k], begin, middle, range, sums);
    for (int c = 0; c < kCount; c++)
      for (int s = 0; s < kVectorBlock; s++)
        out[c][begin + s] = static_cast<T>(rounded_mean(sums[c].n[s], sums[c].d[s]));
  }
}

template <typename T>
void bilateral_of(const BilateralRing<T> *rings, int count, int components, const T *const *middle,
                  const BilateralRange &range, T *const *out, int n) {
  components == 1 ? bilateral_of<1>(rings, count, middle, range, out, n)
                  : bilateral_of<kColours>(rings, count, middle, range, out, n);
}

}  // namespace

}  // namespace cudaconv
