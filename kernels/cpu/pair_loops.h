// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of pairs of samples; a part of vector_loops.h.

namespace cudaconv {

namespace {

// Vectors of pairs, see pair_of(). They are explicit, since compilers do not turn plain loops over pairs into the
// multiply-add instruction.
constexpr int kLanes = CUDACONV_VECTOR / sizeof(int32_t);
using Vector = uint32_t __attribute__((vector_size(CUDACONV_VECTOR)));

CUDACONV_INLINE inline Vector load(const int32_t *in) {
  Vector v;
  __builtin_memcpy(&v, in, sizeof v);
  return v;
}
CUDACONV_INLINE inline void store(Vector v, int32_t *out) {
  __builtin_memcpy(out, &v, sizeof v);
}

#ifdef __AARCH64EL__
// Sums of pairs of samples times pairs of coefficients. The instructions add four products each, so that the two
// products of a lane stay apart until the end.
class PairSums {
 public:
  CUDACONV_INLINE void add(Vector a, Vector b) {
    const int16x8_t pairs = vreinterpretq_s16_u32((uint32x4_t)a), coefficients = vreinterpretq_s16_u32((uint32x4_t)b);
    low_ = vmlal_s16(low_, vget_low_s16(pairs), vget_low_s16(coefficients));
    high_ = vmlal_high_s16(high_, pairs, coefficients);
  }
  CUDACONV_INLINE void shift() {
    low_ = vshlq_n_s32(low_, 16);
    high_ = vshlq_n_s32(high_, 16);
  }
  CUDACONV_INLINE Vector sums() const { return (Vector)vpaddq_s32(low_, high_); }

 private:
  int32x4_t low_ = {}, high_ = {};
};
#else
// In each 32-bit lane, the sum of the products of the first halves and of the second halves.
class PairSums {
 public:
  CUDACONV_INLINE void add(Vector a, Vector b) {
#if CUDACONV_VECTOR == 64
    sum_ = (Vector)_mm512_dpwssd_epi32((__m512i)sum_, (__m512i)a, (__m512i)b);
#elif CUDACONV_VECTOR == 32
    sum_ += (Vector)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    sum_ += (Vector)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    using Signed = int32_t __attribute__((vector_size(CUDACONV_VECTOR)));
    sum_ += (Vector)(((Signed)(a << 16) >> 16) * ((Signed)(b << 16) >> 16)) +
            (Vector)(((Signed)a >> 16) * ((Signed)b >> 16));
#endif
  }
  CUDACONV_INLINE void shift() {
    sum_ <<= 16;
  }
  CUDACONV_INLINE Vector sums() const {
    return sum_;
  }

 private:
  Vector sum_ = {};
};
#endif

// Sums all taps for a few vectors at a time. The sums stay in registers until finish(row of results, first sample, sum)
// gets them.
template <int kRows, typename Finish>
CUDACONV_INLINE inline void sum_of_pairs(const PairTap<kRows> *taps, int high, int count, uint32_t start, int n,
                                         Finish finish) {
  constexpr int kMost = 8 / kRows;
  constexpr int kVectors = kVectorBlock / kLanes < kMost ? kVectorBlock / kLanes : kMost, kStep = kVectors * kLanes;
  for (int begin = 0; begin < n; begin += kStep) {
    PairSums sum[kRows][kVectors];
    const auto add = [&](const PairTap<kRows> &tap) CUDACONV_INLINE {
      for (int v = 0; v < kVectors; v++) {
        const Vector pairs = load(tap.in + begin + v * kLanes);
        for (int r = 0; r < kRows; r++) sum[r][v].add(pairs, Vector{} + static_cast<uint32_t>(tap.coefficients[r]));
      }
    };
    for (int k = 0; k < high; k++) add(taps[k]);
    for (auto &row : sum)
      for (PairSums &v : row) v.shift();
    for (int k = high; k < count; k++) add(taps[k]);
    for (int r = 0; r < kRows; r++)
      for (int v = 0; v < kVectors; v++) finish(r, begin + v * kLanes, sum[r][v].sums() + start);
  }
}

template <int kRows>
void sum_pairs_of(const PairTap<kRows> *taps, int high, int count, uint32_t start, int32_t *const *out, int n) {
  int32_t *row[kRows];
  for (int r = 0; r < kRows; r++) row[r] = out[r];
  sum_of_pairs(taps, high, count, start, n, [&](int r, int s, Vector sum) CUDACONV_INLINE { store(sum, row[r] + s); });
}

inline void sum_pairs_to_half_of(const PairTap<1> *taps, int high, int count, uint32_t start, int shift, bool second,
                                 int32_t *out, int n) {
  if (second)
    sum_of_pairs(taps, high, count, start, n, [=](int, int s, Vector sum) CUDACONV_INLINE {
      store((load(out + s) & 0xffff) | (sum >> shift << 16), out + s);
    });
  else
    sum_of_pairs(taps, high, count, start, n,
                 [=](int, int s, Vector sum) CUDACONV_INLINE { store(sum >> shift & 0xffff, out + s); });
}

inline void put_half_of(const uint16_t *in, bool second, int32_t *out, int n) {
  if (second)
    for_blocks(n, [=](int s) CUDACONV_INLINE { out[s] = pair_of(out[s], in[s]); });
  else
    for_blocks(n, [=](int s) CUDACONV_INLINE { out[s] = in[s]; });
}

template <typename T>
void pair_samples(const T *in, int distance, int32_t *out, int n) {
  const T *const second = in + distance;
  const int zero = pair_zero(T{});
  for_samples(n, [=](int s) CUDACONV_INLINE { out[s] = pair_of(in[s] - zero, second[s] - zero); });
}

}  // namespace

}  // namespace cudaconv
