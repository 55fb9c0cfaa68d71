// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Turns an exact integer accumulator into a sample. CPU and GPU share these few functions. All arithmetic is in
// integers, so that no order of work and no device can change a byte. kernels/numbers.md derives the formulas.
#pragma once

#include <cstdint>

#include "plan/border.h"

namespace cudaconv {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// The rounding is out = clamp(floor((v + offset [absolute value] + half) / divisor), 0, max), divisor = 2 * half.
//
// Masks are scaled so that the divisor is even: half is then exact, and the rounding is to the nearest, halves up. The
// division is a multiplication by the rounded-up reciprocal magic = ceil(2^(bits+shift) / divisor). It is exact for
// every dividend below 2^(bits-1): see Granlund and Montgomery, "Division by invariant integers using multiplication",
// 1994. bits is 32 if 32-bit accumulators hold every possible value, else 64.
struct Rounding {
  int64_t offset = 0;  // bias in units of 1/divisor codes
  int64_t half = 1;
  int64_t limit = 0;  // largest useful dividend: (max + 1) * divisor - 1
  uint64_t magic = 0;
  int32_t shift = 0;
  int32_t max = 255;  // largest sample value
  bool absolute = false;
  bool wide = false;       // 64-bit accumulators
  uint16_t threshold = 0;  // Op::Threshold: the largest difference, in codes, that changes nothing
};

// Integer division of 64 or 128 bits, rounded down and rounded up; `by` is above 0.
template <typename V, typename By>
constexpr int64_t floor_div(V v, By by) {
  return static_cast<int64_t>(v >= 0 ? v / by : -((-v + by - 1) / by));
}
template <typename V, typename By>
constexpr int64_t ceil_div(V v, By by) {
  return -floor_div(-v, by);
}

// The least n with 2^n >= v; v is at most 2^62.
inline int ceil_log2(int64_t v) {
  int n = 0;
  while (int64_t{1} << n < v) n++;
  return n;
}

CUDACONV_HOST_DEVICE inline uint32_t high_product(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
#endif
}

CUDACONV_HOST_DEVICE inline uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<Uint128>(a) * b) >> 64);
#endif
}

// Rounds a sum to a sample. `v` is int32_t, or int64_t if Rounding::wide.
template <typename Acc>
CUDACONV_HOST_DEVICE inline int round_to_sample(Acc v, const Rounding &r) {
  v += static_cast<Acc>(r.offset);
  if (r.absolute && v < 0) v = -v;
  v += static_cast<Acc>(r.half);
  if (v < 0) v = 0;
  if (v > static_cast<Acc>(r.limit)) v = static_cast<Acc>(r.limit);
  if constexpr (sizeof(Acc) == 4)
    return static_cast<int>(high_product(static_cast<uint32_t>(v), static_cast<uint32_t>(r.magic)) >> r.shift);
  else
    return static_cast<int>(high_product(static_cast<uint64_t>(v), r.magic) >> r.shift);
}

// n if the rounding is (v + 2^(n - 1)) >> n for sums from 0 to `largest`, else 0.
inline int shift_of(const Rounding &r, int64_t largest) {
  const int64_t divisor = 2 * r.half;
  const bool shifts = !r.offset && (divisor & (divisor - 1)) == 0 && largest + r.half <= r.limit;
  return shifts ? ceil_log2(divisor) : 0;
}

// floor(sqrt(x)), exact below 2^62; with kSmall below 2^46, and faster. The estimate is at most one off: it is a float
// below 2^46, a double from there on. The comparisons correct it.
template <bool kSmall = false>
CUDACONV_HOST_DEVICE inline uint32_t integer_sqrt(uint64_t x) {
  const bool large = !kSmall && x >> 46;
#ifdef __CUDA_ARCH__
  auto r = static_cast<uint32_t>(large ? __dsqrt_rn(__ull2double_rn(x)) : __fsqrt_rn(__ull2float_rn(x)));
#else
  auto r =
      static_cast<uint32_t>(large ? __builtin_sqrt(static_cast<double>(x)) : __builtin_sqrtf(static_cast<float>(x)));
#endif
  if (static_cast<uint64_t>(r) * r > x) r--;
  if (static_cast<uint64_t>(r + 1) * (r + 1) <= x) r++;
  return r;
}

}  // namespace cudaconv
