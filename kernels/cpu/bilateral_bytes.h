// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral of bytes by vector instructions that look weights up in registers: a part of vector_loops.h.
//
// kTogether neighbours a, b, ... at the same distance are interleaved, so that a 32-bit lane has the neighbours of one
// window. The bytes of their weights are looked up in this order, and one instruction adds the products of a lane:
//
//   in[0]     a0 a1 a2 a3 ...
//   in[1]     b0 b1 b2 b3 ...    ->  samples  a0 b0 c0 d0 | a1 b1 c1 d1 | ...
//   ...                              middles  m0 m0 m0 m0 | m1 m1 m1 m1 | ...
//                                    weights  r(|a0 - m0|) r(|b0 - m0|) ... | ...
//
// A ring's sums fit 32 bits. They are multiplied by the weight of the distance and added in 64 bits, even and odd lanes
// apart. Quotients are computed in doubles. Sums are below 2^51, so doubles hold them exactly. A quotient n / d that is
// not an integer differs from the next one by 1 / d at least. Since d is below 2^42 and quotients are below 256, that
// is more than a double's rounding.

namespace cudaconv {

namespace {

#if CUDACONV_VECTOR == 64
using Bytes = __m512i;
#define CUDACONV_MM(name) _mm512_##name
#else
using Bytes = __m256i;
#define CUDACONV_MM(name) _mm256_##name
#endif
// In place of intrinsics for shifts and masks, since GCC 12 warns of its own header.
using Unsigned32 = uint32_t __attribute__((vector_size(CUDACONV_VECTOR)));
using Unsigned64 = uint64_t __attribute__((vector_size(CUDACONV_VECTOR)));

CUDACONV_INLINE inline Bytes add64(Bytes a, Bytes b) {
  return (Bytes)((Unsigned64)a + (Unsigned64)b);
}
CUDACONV_INLINE inline Bytes shift_up(Bytes v) {
  return (Bytes)((Unsigned64)v << 32);
}
CUDACONV_INLINE inline Bytes odd_lanes(Bytes v) {
  return (Bytes)((Unsigned64)v >> 32);
}
CUDACONV_INLINE inline Bytes half_of(Bytes v) {
  return (Bytes)((Unsigned64)v >> 1);
}
CUDACONV_INLINE inline Bytes all_qwords(uint64_t v) {
  return (Bytes)(Unsigned64{} + v);
}
CUDACONV_INLINE inline Bytes load_bytes(const uint8_t *from) {
  Bytes v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
CUDACONV_INLINE inline void store_bytes(uint8_t *to, Bytes v) {
  __builtin_memcpy(to, &v, sizeof v);
}
CUDACONV_INLINE inline Bytes difference(Bytes a, Bytes b) {
  return CUDACONV_MM(subs_epu8)(a, b) | CUDACONV_MM(subs_epu8)(b, a);
}
CUDACONV_INLINE inline Bytes even_products(Bytes a, Bytes b) {
#if CUDACONV_VECTOR == 64
  return _mm512_maskz_mul_epu32(0xff, a, b);  // without a mask GCC 12 warns of its own header
#else
  return _mm256_mul_epu32(a, b);
#endif
}
CUDACONV_INLINE inline Bytes pack(Bytes a, Bytes b, bool dwords) {
  return dwords ? CUDACONV_MM(packus_epi32)(a, b) : CUDACONV_MM(packus_epi16)(a, b);
}
// Interleaves the bytes in the lower or, with `high`, the upper half of each 128 bits.
CUDACONV_INLINE inline Bytes interleave(Bytes a, Bytes b, bool high) {
  return high ? CUDACONV_MM(unpackhi_epi8)(a, b) : CUDACONV_MM(unpacklo_epi8)(a, b);
}
// Interleaves the words of the lower halves of each 128 bits, then the words of the upper halves.
CUDACONV_INLINE inline void interleave_words(Bytes a, Bytes b, Bytes (&out)[2]) {
  out[0] = CUDACONV_MM(unpacklo_epi16)(a, b);
  out[1] = CUDACONV_MM(unpackhi_epi16)(a, b);
}

#if CUDACONV_VECTOR == 64

constexpr int kTogether = 4;

// floor(n / d) in each 32-bit lane, from even and from odd lanes.
CUDACONV_INLINE inline Bytes quotients(const Bytes (&n)[2], const Bytes (&d)[2]) {
  const Bytes even = _mm512_cvttpd_epi64(_mm512_div_pd(_mm512_cvtepi64_pd(n[0]), _mm512_cvtepi64_pd(d[0])));
  const Bytes odd = _mm512_cvttpd_epi64(_mm512_div_pd(_mm512_cvtepi64_pd(n[1]), _mm512_cvtepi64_pd(d[1])));
  return even | shift_up(odd);
}

// The weights of differences: their low bytes and their high bytes, in registers of 64.
class ByteWeights {
 public:
  // The sums of a ring in 32-bit lanes. Products are of samples less 128, since one factor is signed.
  class Ring {
   public:
    CUDACONV_INLINE Bytes weights(int) const { return (Bytes)((Unsigned32)low_ + ((Unsigned32)high_ << 8)); }
    CUDACONV_INLINE Bytes products() const {
      const Unsigned32 less = (Unsigned32)low_products_ + ((Unsigned32)high_products_ << 8);
      return (Bytes)(less + ((Unsigned32)weights(0) << 7));
    }

   private:
    friend class ByteWeights;
    Bytes low_ = {}, high_ = {}, low_products_ = {}, high_products_ = {};
  };

  explicit ByteWeights(const BilateralRange &range) {
    uint8_t low[256], high[256];
    for (int i = 0; i < 256; i++) {
      low[i] = static_cast<uint8_t>(range.weight[i]);
      high[i] = static_cast<uint8_t>(range.weight[i] >> 8);
    }
    for (int i = 0; i < 4; i++) {
      low_[i] = load_bytes(low + 64 * i);
      high_[i] = load_bytes(high + 64 * i);
    }
  }

  // kWide: differences of 128 or more have weights.
  template <bool kWide>
  CUDACONV_INLINE void add(const Bytes (&in)[kTogether], Bytes middle, bool high, Ring (&ring)[2]) const {
    const Bytes twice = interleave(middle, middle, high);
    Bytes samples[2], middles[2];
    interleave_words(interleave(in[0], in[1], high), interleave(in[2], in[3], high), samples);
    interleave_words(twice, twice, middles);
    for (int i = 0; i < 2; i++) add<kWide>(samples[i], middles[i], &ring[i]);
  }

 private:
  template <bool kWide>
  CUDACONV_INLINE void add(Bytes samples, Bytes middles, Ring *ring) const {
    const Bytes index = difference(samples, middles), ones = _mm512_set1_epi8(1);
    const Bytes less = samples ^ _mm512_set1_epi8(-128);
    const Bytes low = look_up<kWide>(low_, index), high = look_up<kWide>(high_, index);
    ring->low_ = _mm512_dpbusd_epi32(ring->low_, low, ones);
    ring->high_ = _mm512_dpbusd_epi32(ring->high_, high, ones);
    ring->low_products_ = _mm512_dpbusd_epi32(ring->low_products_, low, less);
    ring->high_products_ = _mm512_dpbusd_epi32(ring->high_products_, high, less);
  }

  template <bool kWide>
  CUDACONV_INLINE static Bytes look_up(const Bytes (&table)[4], Bytes index) {
    const __mmask64 above = _mm512_movepi8_mask(index);
    if (!kWide) return _mm512_maskz_permutex2var_epi8(~above, table[0], index, table[1]);
    return _mm512_mask_blend_epi8(above, _mm512_permutex2var_epi8(table[0], index, table[1]),
                                  _mm512_permutex2var_epi8(table[2], index, table[3]));
  }

  Bytes low_[4], high_[4];
};

#else

constexpr int kTogether = 2;  // weights and samples are multiplied as words, which fill two registers

// Integers below 2^52 as doubles: the lowest bits of a double from 2^52 on are its distance from 2^52.
CUDACONV_INLINE inline __m256d to_doubles(Bytes v) {
  const Bytes exponent = all_qwords(0x4330000000000000);
  return _mm256_sub_pd(_mm256_castsi256_pd(v | exponent), _mm256_castsi256_pd(exponent));
}

// floor(n / d) in each 32-bit lane, from even and from odd lanes.
CUDACONV_INLINE inline Bytes quotients(const Bytes (&n)[2], const Bytes (&d)[2]) {
  const __m128i even = _mm256_cvttpd_epi32(_mm256_div_pd(to_doubles(n[0]), to_doubles(d[0])));
  const __m128i odd = _mm256_cvttpd_epi32(_mm256_div_pd(to_doubles(n[1]), to_doubles(d[1])));
  return _mm256_set_m128i(_mm_unpackhi_epi32(even, odd), _mm_unpacklo_epi32(even, odd));
}

// The weights of differences: their low bytes and their high bytes, in registers of 16, twice.
class ByteWeights {
 public:
  // The sums of a ring in 32-bit lanes. Weights are less 2^15, since words are signed.
  class Ring {
   public:
    // `count`: how many were added.
    CUDACONV_INLINE Bytes weights(int count) const {
      return (Bytes)((Unsigned32)weights_ + (static_cast<uint32_t>(count) << 15));
    }
    CUDACONV_INLINE Bytes products() const { return (Bytes)((Unsigned32)products_ + ((Unsigned32)samples_ << 15)); }

   private:
    friend class ByteWeights;
    Bytes weights_ = {}, products_ = {}, samples_ = {};
  };

  explicit ByteWeights(const BilateralRange &range) {
    for (; count_ < 16 && range.weight[16 * count_]; count_++) {
      uint8_t low[32], high[32];
      for (int i = 0; i < 32; i++) {
        const uint32_t weight = range.weight[16 * count_ + i % 16];
        low[i] = static_cast<uint8_t>(weight);
        high[i] = static_cast<uint8_t>(weight >> 8);
      }
      low_[count_] = load_bytes(low);
      high_[count_] = load_bytes(high);
    }
  }

  template <bool>
  CUDACONV_INLINE void add(const Bytes (&in)[kTogether], Bytes middle, bool high, Ring (&ring)[2]) const {
    const Bytes samples = interleave(in[0], in[1], high);
    const Bytes index = difference(samples, interleave(middle, middle, high));
    // Most neighbours differ by less than 32: the first two registers have all their weights.
    const int count = smaller(count_, all_below<32>(index) ? 2 : all_below<64>(index) ? 4 : 16);
    Bytes low = {}, upper = {};
    for (int i = 0; i < count; i++) {
      // An index from 0 to 15 keeps its low half; others get the bit that makes the result 0.
      const Bytes here =
          _mm256_adds_epu8(_mm256_sub_epi8(index, _mm256_set1_epi8(static_cast<char>(16 * i))), _mm256_set1_epi8(0x70));
      low = low | _mm256_shuffle_epi8(low_[i], here);
      upper = upper | _mm256_shuffle_epi8(high_[i], here);
    }
    upper = upper ^ _mm256_set1_epi8(-128);
    const Bytes zero = {};
    add(_mm256_unpacklo_epi8(low, upper), _mm256_unpacklo_epi8(samples, zero), &ring[0]);
    add(_mm256_unpackhi_epi8(low, upper), _mm256_unpackhi_epi8(samples, zero), &ring[1]);
  }

 private:
  // kLimit: a power of two.
  template <int kLimit>
  CUDACONV_INLINE static bool all_below(Bytes index) {
    return _mm256_testz_si256(index, _mm256_set1_epi8(-kLimit));
  }

  CUDACONV_INLINE static void add(Bytes weights, Bytes samples, Ring *ring) {
    const Bytes ones = _mm256_set1_epi16(1);
    ring->weights_ = _mm256_add_epi32(ring->weights_, _mm256_madd_epi16(weights, ones));
    ring->products_ = _mm256_add_epi32(ring->products_, _mm256_madd_epi16(weights, samples));
    ring->samples_ = _mm256_add_epi32(ring->samples_, _mm256_madd_epi16(samples, ones));
  }

  Bytes low_[16], high_[16];
  int count_ = 0;  // of registers with weights
};

#endif

// Sums of windows in 64 bits, even and odd lanes apart.
struct LaneSums {
  Bytes n[2], d[2];

  CUDACONV_INLINE LaneSums(uint64_t weight, Bytes samples) {
    const Bytes low = all_qwords(weight), high = all_qwords(weight >> 32);
    for (int odd = 0; odd < 2; odd++) {
      const Bytes v = odd ? odd_lanes(samples) : samples;
      d[odd] = low;
      n[odd] = add64(even_products(v, low), shift_up(even_products(v, high)));
    }
  }
  CUDACONV_INLINE void add(Bytes weights, Bytes products, uint64_t space) {
    const Bytes s = all_qwords(space);
    d[0] = add64(d[0], even_products(weights, s));
    d[1] = add64(d[1], even_products(odd_lanes(weights), s));
    n[0] = add64(n[0], even_products(products, s));
    n[1] = add64(n[1], even_products(odd_lanes(products), s));
  }
  CUDACONV_INLINE Bytes results() const {
    const Bytes rounded[2] = {add64(n[0], half_of(d[0])), add64(n[1], half_of(d[1]))};
    return quotients(rounded, d);
  }
};

// The results of half of a register's windows, as words.
template <bool kWide>
CUDACONV_INLINE inline Bytes bilateral_half(const BilateralRing<uint8_t> *rings, int count, const uint8_t *middle,
                                            ptrdiff_t at, const ByteWeights &weights, uint64_t start, bool high) {
  const Bytes m = load_bytes(middle + at), zero = {};
  Bytes lanes[2];
  interleave_words(interleave(m, zero, high), zero, lanes);
  LaneSums sums[2] = {{start, lanes[0]}, {start, lanes[1]}};
  for (int k = 0; k < count; k++) {
    ByteWeights::Ring ring[2];
    const int added = (rings[k].count + kTogether - 1) / kTogether * kTogether;
    for (int i = 0; i < added; i += kTogether) {
      Bytes in[kTogether];
      for (int j = 0; j < kTogether; j++)
        in[j] = load_bytes((i + j < rings[k].count ? rings[k].in[i + j] : middle) + at);
      weights.add<kWide>(in, m, high, ring);
    }
    for (int i = 0; i < 2; i++) sums[i].add(ring[i].weights(added), ring[i].products(), rings[k].space);
  }
  return pack(sums[0].results(), sums[1].results(), true);
}

template <bool kWide>
void bilateral_bytes(const BilateralRing<uint8_t> *rings, int count, const uint8_t *middle, const BilateralRange &range,
                     uint8_t *out, int n) {
  const ByteWeights weights(range);
  // The middle fills the lanes that a ring leaves free. Its part is subtracted here.
  uint64_t start = kMiddleWeight;
  for (int k = 0; k < count; k++)
    start -= uint64_t{kBilateralOne} * rings[k].space * ((kTogether - rings[k].count % kTogether) % kTogether);
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    for (int at = begin; at < begin + kVectorBlock; at += static_cast<int>(sizeof(Bytes))) {
      const Bytes low = bilateral_half<kWide>(rings, count, middle, at, weights, start, false);
      const Bytes high = bilateral_half<kWide>(rings, count, middle, at, weights, start, true);
      store_bytes(out + at, pack(low, high, false));
    }
  }
}

}  // namespace

}  // namespace cudaconv

#undef CUDACONV_MM
