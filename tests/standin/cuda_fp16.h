// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A part of cuda_fp16.h for the stand-in: pairs of 16-bit floats, computed in double precision and rounded once. NaN
// and infinity are left out, since no kernel makes them: numbers too large become the largest one.
#pragma once

#include <algorithm>

#include "cuda_runtime.h"

struct __half2 {
  uint32_t bits;  // the lower number in the low half
};

namespace standin {

inline uint64_t bits_of(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}

// The double with the same bits of exponent and mantissa has an exponent that counts from -1023 instead of -15.
inline double half_to_double(uint32_t half) {
  const uint64_t bits = uint64_t{half & 0x7fff} << 42;
  double v;
  std::memcpy(&v, &bits, sizeof v);
  v *= 0x1p1008;
  return half & 0x8000 ? -v : v;
}

// Rounds to nearest, halves to even.
inline uint32_t double_to_half(double v) {
  const double size = std::fabs(v);
  uint64_t bits = bits_of(size);
  if (size < 0x1p-14)  // neighbouring numbers are 2^-24 apart, as doubles are from 2^28 on
    bits = bits_of(size + 0x1p28) - bits_of(0x1p28);
  else  // a mantissa that is rounded up to 0x800 carries into the exponent's bits
    bits = ((bits + (uint64_t{1} << 41) - 1 + (bits >> 42 & 1)) >> 42) - (1008 << 10);
  return (std::signbit(v) ? 0x8000u : 0) | static_cast<uint32_t>(std::min<uint64_t>(bits, 0x7bff));
}

// Applies op to both numbers of pairs.
template <typename Op, typename... Pairs>
__half2 by_halves(Op op, Pairs... pairs) {
  return {double_to_half(op(half_to_double(pairs.bits & 0xffff)...)) |
          double_to_half(op(half_to_double(pairs.bits >> 16)...)) << 16};
}

}  // namespace standin

inline __half2 __hadd2(__half2 a, __half2 b) {
  return standin::by_halves([](double x, double y) { return x + y; }, a, b);
}
inline __half2 __hsub2(__half2 a, __half2 b) {
  return standin::by_halves([](double x, double y) { return x - y; }, a, b);
}
inline __half2 __hmin2(__half2 a, __half2 b) {
  return standin::by_halves([](double x, double y) { return std::fmin(x, y); }, a, b);
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return standin::by_halves([](double x, double y, double z) { return x * y + z; }, a, b, c);
}
inline __half2 __hfma2_relu(__half2 a, __half2 b, __half2 c) {
  return standin::by_halves([](double x, double y, double z) { return std::fmax(x * y + z, 0.0); }, a, b, c);
}
inline __half2 __hneg2(__half2 a) {
  return {a.bits ^ 0x80008000u};
}
inline __half2 __habs2(__half2 a) {
  return {a.bits & 0x7fff7fffu};
}
inline float __low2float(__half2 a) {
  return static_cast<float>(standin::half_to_double(a.bits & 0xffff));
}
inline float __high2float(__half2 a) {
  return static_cast<float>(standin::half_to_double(a.bits >> 16));
}
inline __half2 __floats2half2_rn(float low, float high) {
  return {standin::double_to_half(low) | standin::double_to_half(high) << 16};
}
