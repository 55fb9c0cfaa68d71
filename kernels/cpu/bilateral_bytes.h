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
// With RGB, kCount is 3: there are samples and middles of each colour, and one weight, of the sum of the differences.
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
// The differences with weights other than 0: all are below 128, below 255, or any.
enum class Reach { Below128, Below255, All };

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
  template <int kCount>
  class Ring {
   public:
    CUDACONV_INLINE Bytes weights(int) const { return (Bytes)((Unsigned32)low_ + ((Unsigned32)high_ << 8)); }
    CUDACONV_INLINE Bytes products(int c) const {
      const Unsigned32 less = (Unsigned32)low_products_[c] + ((Unsigned32)high_products_[c] << 8);
      return (Bytes)(less + ((Unsigned32)weights(0) << 7));
    }

   private:
    friend class ByteWeights;
    Bytes low_ = {}, high_ = {}, low_products_[kCount] = {}, high_products_[kCount] = {};
  };

  explicit ByteWeights(const BilateralRange &range) {
    uint8_t low[kByteDifferences], high[kByteDifferences];
    for (int i = 0; i < kByteDifferences; i++) {
      low[i] = static_cast<uint8_t>(range.weight[i]);
      high[i] = static_cast<uint8_t>(range.weight[i] >> 8);
    }
    for (int i = 0; i < kByteDifferences / 64; i++) {
      low_[i] = load_bytes(low + 64 * i);
      high_[i] = load_bytes(high + 64 * i);
    }
  }

  template <Reach kReach, int kCount>
  CUDACONV_INLINE void add(const Bytes (&in)[kCount][kTogether], const Bytes (&middle)[kCount], bool high,
                           Ring<kCount> (&ring)[2]) const {
    Bytes samples[kCount][2], differences[2][kCount];
    for (int c = 0; c < kCount; c++) {
      const Bytes twice = interleave(middle[c], middle[c], high);
      Bytes middles[2];
      interleave_words(interleave(in[c][0], in[c][1], high), interleave(in[c][2], in[c][3], high), samples[c]);
      interleave_words(twice, twice, middles);
      for (int i = 0; i < 2; i++) differences[i][c] = difference(samples[c][i], middles[i]);
    }
    const Bytes ones = _mm512_set1_epi8(1);
    for (int i = 0; i < 2; i++) {
      const Index index = sum_of<kReach>(differences[i]);
      const Bytes low = look_up<kReach, kCount>(low_, index), upper = look_up<kReach, kCount>(high_, index);
      ring[i].low_ = _mm512_dpbusd_epi32(ring[i].low_, low, ones);
      ring[i].high_ = _mm512_dpbusd_epi32(ring[i].high_, upper, ones);
      for (int c = 0; c < kCount; c++) {
        const Bytes less = samples[c][i] ^ _mm512_set1_epi8(-128);
        ring[i].low_products_[c] = _mm512_dpbusd_epi32(ring[i].low_products_[c], low, less);
        ring[i].high_products_[c] = _mm512_dpbusd_epi32(ring[i].high_products_[c], upper, less);
      }
    }
  }

 private:
  // Sums of differences: their low bytes and, with Reach::All, which of them are 256 or more, and 512 or more. Else
  // sums from 255 on are 255, which has no weight.
  struct Index {
    Bytes low;
    __mmask64 from_256 = 0, from_512 = 0;
  };

  template <Reach kReach>
  CUDACONV_INLINE static Index sum_of(const Bytes (&differences)[1]) {
    return {differences[0]};
  }
  template <Reach kReach>
  CUDACONV_INLINE static Index sum_of(const Bytes (&differences)[3]) {
    const auto &[a, b, c] = differences;
    if (kReach != Reach::All) return {_mm512_adds_epu8(_mm512_adds_epu8(a, b), c)};
    const Bytes two = _mm512_add_epi8(a, b), three = _mm512_add_epi8(two, c);
    const __mmask64 first = _mm512_cmplt_epu8_mask(two, a), second = _mm512_cmplt_epu8_mask(three, c);
    return {three, first | second, first & second};
  }

  template <Reach kReach, int kCount>
  CUDACONV_INLINE static Bytes look_up(const Bytes *table, const Index &index) {
    const __mmask64 above = _mm512_movepi8_mask(index.low);
    // Most neighbours differ by less than 128.
    if (kReach == Reach::Below128 || (kCount > 1 && !(above | index.from_256)))
      return _mm512_maskz_permutex2var_epi8(~above, table[0], index.low, table[1]);
    const auto of = [&](const Bytes *part) CUDACONV_INLINE {
      return _mm512_mask_blend_epi8(above, _mm512_permutex2var_epi8(part[0], index.low, part[1]),
                                    _mm512_permutex2var_epi8(part[2], index.low, part[3]));
    };
    if (kReach == Reach::Below255 || kCount == 1 || !index.from_256) return of(table);
    return _mm512_mask_blend_epi8(index.from_512, _mm512_mask_blend_epi8(index.from_256, of(table), of(table + 4)),
                                  of(table + 8));
  }

  Bytes low_[kByteDifferences / 64], high_[kByteDifferences / 64];
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
  template <int kCount>
  class Ring {
   public:
    // `count`: how many were added.
    CUDACONV_INLINE Bytes weights(int count) const {
      return (Bytes)((Unsigned32)weights_ + (static_cast<uint32_t>(count) << 15));
    }
    CUDACONV_INLINE Bytes products(int c) const {
      return (Bytes)((Unsigned32)products_[c] + ((Unsigned32)samples_[c] << 15));
    }

   private:
    friend class ByteWeights;
    Bytes weights_ = {}, products_[kCount] = {}, samples_[kCount] = {};
  };

  explicit ByteWeights(const BilateralRange &range) {
    for (; count_ < kRegisters && range.weight[16 * count_]; count_++) {
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

  template <Reach kReach, int kCount>
  CUDACONV_INLINE void add(const Bytes (&in)[kCount][kTogether], const Bytes (&middle)[kCount], bool high,
                           Ring<kCount> (&ring)[2]) const {
    Bytes samples[kCount], differences[kCount], low = {}, upper = {};
    for (int c = 0; c < kCount; c++) {
      samples[c] = interleave(in[c][0], in[c][1], high);
      differences[c] = difference(samples[c], interleave(middle[c], middle[c], high));
    }
    look_up_sums<kReach>(differences, &low, &upper);
    upper = upper ^ _mm256_set1_epi8(-128);
    const Bytes zero = {}, ones = _mm256_set1_epi16(1);
    for (int i = 0; i < 2; i++) {
      const auto unpack = [i](Bytes a, Bytes b)
                              CUDACONV_INLINE { return i ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b); };
      const Bytes weights = unpack(low, upper);
      ring[i].weights_ = _mm256_add_epi32(ring[i].weights_, _mm256_madd_epi16(weights, ones));
      for (int c = 0; c < kCount; c++) {
        const Bytes words = unpack(samples[c], zero);
        ring[i].products_[c] = _mm256_add_epi32(ring[i].products_[c], _mm256_madd_epi16(weights, words));
        ring[i].samples_[c] = _mm256_add_epi32(ring[i].samples_[c], _mm256_madd_epi16(words, ones));
      }
    }
  }

 private:
  static constexpr int kRegisters = kByteDifferences / 16;

  template <Reach kReach>
  CUDACONV_INLINE void look_up_sums(const Bytes (&differences)[1], Bytes *low, Bytes *high) const {
    look_up(differences[0], low, high);
  }
  // Unless kReach is Reach::All, sums from 255 on become 255, which has no weight.
  template <Reach kReach>
  CUDACONV_INLINE void look_up_sums(const Bytes (&differences)[3], Bytes *low, Bytes *high) const {
    const auto &[a, b, c] = differences;
    const Bytes most = _mm256_adds_epu8(_mm256_adds_epu8(a, b), c), all = _mm256_set1_epi8(-1);
    if (kReach != Reach::All || _mm256_movemask_epi8(_mm256_cmpeq_epi8(most, all)) == 0)
      return look_up(most, low, high);
    const Bytes two = _mm256_add_epi8(a, b), three = _mm256_add_epi8(two, c);
    const Bytes first = _mm256_cmpeq_epi8(_mm256_max_epu8(two, a), two) ^ all;
    const Bytes second = _mm256_cmpeq_epi8(_mm256_max_epu8(three, c), three) ^ all;
    look_up(0, 16, three, first | second, low, high);
    look_up(16, 32, three, (first ^ second) ^ all, low, high);
    look_up(32, 48, three, (first & second) ^ all, low, high);
  }

  // Differences up to 255. Most neighbours differ by less than 32: the first two registers have all their weights.
  CUDACONV_INLINE void look_up(Bytes index, Bytes *low, Bytes *high) const {
    look_up(0, all_below<32>(index) ? 2 : all_below<64>(index) ? 4 : 16, index, Bytes{}, low, high);
  }

  // Looks differences up in registers `first` to `end` - 1. `others`: all bits of bytes that have no weight there.
  CUDACONV_INLINE void look_up(int first, int end, Bytes index, Bytes others, Bytes *low, Bytes *high) const {
    const int last = smaller(count_, end);
    for (int i = first; i < last; i++) {
      // An index from 0 to 15 keeps its low half; others get the bit that makes the result 0.
      const Bytes offset = _mm256_set1_epi8(static_cast<char>(16 * i));
      const Bytes here = others | _mm256_adds_epu8(_mm256_sub_epi8(index, offset), _mm256_set1_epi8(0x70));
      *low = *low | _mm256_shuffle_epi8(low_[i], here);
      *high = *high | _mm256_shuffle_epi8(high_[i], here);
    }
  }

  // kLimit: a power of two.
  template <int kLimit>
  CUDACONV_INLINE static bool all_below(Bytes index) {
    return _mm256_testz_si256(index, _mm256_set1_epi8(-kLimit));
  }

  Bytes low_[kRegisters], high_[kRegisters];
  int count_ = 0;  // of registers with weights
};

#endif

// Sums of windows in 64 bits, even and odd lanes apart.
template <int kCount>
struct LaneSums {
  Bytes n[kCount][2], d[2];

  // samples[c][lane]: the middles of the windows, of each colour.
  CUDACONV_INLINE LaneSums(uint64_t weight, const Bytes (&samples)[kCount][2], int lane) {
    const Bytes low = all_qwords(weight), high = all_qwords(weight >> 32);
    for (int odd = 0; odd < 2; odd++) {
      d[odd] = low;
      for (int c = 0; c < kCount; c++) {
        const Bytes v = odd ? odd_lanes(samples[c][lane]) : samples[c][lane];
        n[c][odd] = add64(even_products(v, low), shift_up(even_products(v, high)));
      }
    }
  }
  CUDACONV_INLINE void add(const ByteWeights::Ring<kCount> &ring, int added, uint64_t space) {
    const Bytes s = all_qwords(space), weights = ring.weights(added);
    d[0] = add64(d[0], even_products(weights, s));
    d[1] = add64(d[1], even_products(odd_lanes(weights), s));
    for (int c = 0; c < kCount; c++) {
      const Bytes products = ring.products(c);
      n[c][0] = add64(n[c][0], even_products(products, s));
      n[c][1] = add64(n[c][1], even_products(odd_lanes(products), s));
    }
  }
  CUDACONV_INLINE Bytes results(int c) const {
    const Bytes rounded[2] = {add64(n[c][0], half_of(d[0])), add64(n[c][1], half_of(d[1]))};
    return quotients(rounded, d);
  }
};

// The results of half of a register's windows, as words: of each colour.
template <Reach kReach, int kCount>
CUDACONV_INLINE inline void bilateral_half(const BilateralRing<uint8_t> *rings, int count, const uint8_t *const *middle,
                                           ptrdiff_t at, const ByteWeights &weights, uint64_t start, bool high,
                                           Bytes (&results)[kCount]) {
  const Bytes zero = {};
  Bytes middles[kCount], lanes[kCount][2];
  for (int c = 0; c < kCount; c++) {
    middles[c] = load_bytes(middle[c] + at);
    interleave_words(interleave(middles[c], zero, high), zero, lanes[c]);
  }
  LaneSums<kCount> sums[2] = {{start, lanes, 0}, {start, lanes, 1}};
  for (int k = 0; k < count; k++) {
    ByteWeights::Ring<kCount> ring[2];
    const int added = (rings[k].count + kTogether - 1) / kTogether * kTogether;
    for (int i = 0; i < added; i += kTogether) {
      Bytes in[kCount][kTogether];
      for (int c = 0; c < kCount; c++)
        for (int j = 0; j < kTogether; j++)
          in[c][j] = load_bytes((i + j < rings[k].count ? rings[k].in[(i + j) * kCount + c] : middle[c]) + at);
      weights.add<kReach>(in, middles, high, ring);
    }
    for (int i = 0; i < 2; i++) sums[i].add(ring[i], added, rings[k].space);
  }
  for (int c = 0; c < kCount; c++) results[c] = pack(sums[0].results(c), sums[1].results(c), true);
}

template <Reach kReach, int kCount>
void bilateral_bytes(const BilateralRing<uint8_t> *rings, int count, const uint8_t *const *middle,
                     const BilateralRange &range, uint8_t *const *out, int n) {
  const ByteWeights weights(range);
  // The middle fills the lanes that a ring leaves free. Its part is subtracted here.
  uint64_t start = kMiddleWeight;
  for (int k = 0; k < count; k++)
    start -= uint64_t{kBilateralOne} * rings[k].space * ((kTogether - rings[k].count % kTogether) % kTogether);
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    for (int at = begin; at < begin + kVectorBlock; at += static_cast<int>(sizeof(Bytes))) {
      Bytes low[kCount], high[kCount];
      bilateral_half<kReach>(rings, count, middle, at, weights, start, false, low);
      bilateral_half<kReach>(rings, count, middle, at, weights, start, true, high);
      for (int c = 0; c < kCount; c++) store_bytes(out[c] + at, pack(low[c], high[c], false));
    }
  }
}

// kCount: 1, or 3 for RGB.
template <int kCount>
void bilateral_bytes(const BilateralRing<uint8_t> *rings, int count, const uint8_t *const *middle,
                     const BilateralRange &range, uint8_t *const *out, int n) {
  // Only registers of 64 look fewer weights up if none from 128 on count.
  if (kTogether == 4 && !range.weight[128])
    return bilateral_bytes<Reach::Below128, kCount>(rings, count, middle, range, out, n);
  if (kCount > 1 && !range.weight[255])
    return bilateral_bytes<Reach::Below255, kCount>(rings, count, middle, range, out, n);
  bilateral_bytes<Reach::All, kCount>(rings, count, middle, range, out, n);
}

}  // namespace

}  // namespace cudaconv

#undef CUDACONV_MM
