// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A part of cuda_fp16.h for the stand-in: pairs of 16-bit floats, computed in double precision and rounded once. NaN
// and infinity are left out, since no kernel makes them: numbers too large become the largest one.
#pragma once

#include "cuda_runtime.h"

struct __half2 {
  uint32_t bits;  // the lower number in the low half
};

namespace standin {

inline double half_to_double(uint32_t half) {
  const int exponent = static_cast<int>(half >> 10 & 31), mantissa = static_cast<int>(half & 0x3ff);
  const double v = exponent ? std::ldexp(0x400 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  return half & 0x8000 ? -v : v;
}

// Rounds to nearest, halves to even, like the host's nearbyint().
inline uint32_t double_to_half(double v) {
  int exponent = 0;
  std::frexp(v, &exponent);
  // The distance of neighbouring numbers is 2^(exponent - 11), for denormals 2^-24. A mantissa that is rounded up to
  // 0x800 carries into the exponent's bits.
  const int step = v == 0 || exponent < -13 ? -24 : exponent - 11;
  const int units = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(v), -step)));
  const int bits = units + (step + 24) * 0x400;
  return (std::signbit(v) ? 0x8000u : 0) | static_cast<uint32_t>(bits < 0x7bff ? bits : 0x7bff);
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
