// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/vector.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cudaconv {

namespace {

bool fit_rounding16(int64_t offset, int64_t half, int64_t divisor, int64_t limit, bool absolute, SumRange range,
                    Rounding16 *result) {
  constexpr int64_t kLaneMax = 0xffff;
  if (divisor > 1 << 15) return false;
  const int64_t start = std::max<int64_t>({-range.low, absolute ? offset : offset + half, 0});
  const int64_t zero = start - offset, low = start - offset - half;
  const int64_t largest =
      absolute ? std::max(range.high + offset, -(range.low + offset)) + half : range.high + offset + half;
  if (start + range.high > kLaneMax || largest > kLaneMax || zero > kLaneMax) return false;
  limit = std::min(limit, kLaneMax);

  Rounding16 r;
  r.start = static_cast<uint16_t>(start);
  r.half = static_cast<uint16_t>(half);
  r.limit = static_cast<uint16_t>(limit);
  r.absolute = absolute;
  (r.absolute ? r.zero : r.low) = static_cast<uint16_t>(r.absolute ? zero : low);
  const int log = ceil_log2(divisor);
  if (int64_t{1} << log == divisor) {
    r.magic = static_cast<uint16_t>(1 << (16 - log));
  } else {
    // The reciprocal is too large by error / 2^power in units of 1 / divisor; quotients are exact while dividend *
    // error stays below 2^power.
    const int power = 15 + log;
    const int64_t magic = ((int64_t{1} << power) + divisor - 1) / divisor;
    const int64_t error = magic * divisor - (int64_t{1} << power);
    if (magic > kLaneMax || std::min(limit, largest) * error >= int64_t{1} << power) return false;
    r.magic = static_cast<uint16_t>(magic);
    r.shift = power - 16;
  }
  *result = r;
  return true;
}

}  // namespace

bool make_rounding16(const Rounding &r, SumRange range, Rounding16 *result) {
  if (r.wide || r.max > 255) return false;
  return fit_rounding16(r.offset, r.half, 2 * r.half, r.limit, r.absolute, range, result);
}

bool make_halved_rounding16(const Rounding &r, SumRange range, Rounding16 *result) {
  if (r.wide || r.max > 255 || r.absolute || r.half == 1) return false;
  return fit_rounding16(floor_div(r.offset + r.half, 2), 0, r.half, (int64_t{r.max} + 1) * r.half - 1, false, range,
                        result);
}

const std::vector<const VectorLoops *> &vector_levels() {
  static const std::vector<const VectorLoops *> levels = [] {
    std::vector<const VectorLoops *> list = {&vector_loops_baseline()};
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list.push_back(&vector_loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vnni"))
      list.push_back(&vector_loops_avx512());
#endif
    return list;
  }();
  return levels;
}

const VectorLoops &vector_loops() {
  static const VectorLoops *const loops = [] {
    const char *wanted = std::getenv("CUDACONV_VECTORS");
    for (const VectorLoops *level : vector_levels())
      if (wanted && !std::strcmp(wanted, level->level)) return level;
    return vector_levels().back();
  }();
  return *loops;
}

}  // namespace cudaconv
