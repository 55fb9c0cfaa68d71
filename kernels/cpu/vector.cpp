// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/vector.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cudaconv {

static bool make_rounding16(const MaskEpilogue &epilogue, SumRange range, Rounding16 *result) {
  Rounding16 r;
  if (epilogue.divisor > 1 << 15 || !epilogue.fit_16_bits(range, &r)) return false;
  const int log = ceil_log2(epilogue.divisor);
  if (epilogue.is_power()) {
    r.magic = static_cast<uint16_t>(1 << (16 - log));
  } else {
    // The reciprocal is too large by error / 2^power in units of 1 / divisor; quotients are exact while dividend *
    // error stays below 2^power.
    const int power = 15 + log;
    const int64_t magic = epilogue.reciprocal(power);
    const int64_t error = magic * epilogue.divisor - (int64_t{1} << power);
    const int64_t most = std::min<int64_t>(r.limit, epilogue.largest(range));
    if (magic > UINT16_MAX || most * error >= int64_t{1} << power) return false;
    r.magic = static_cast<uint16_t>(magic);
    r.shift = power - 16;
  }
  *result = r;
  return true;
}

bool make_rounding16(const Rounding &r, SumRange range, Rounding16 *result) {
  return !r.wide && r.max <= UINT8_MAX && make_rounding16(MaskEpilogue(r), range, result);
}

bool make_halved_rounding16(const Rounding &r, SumRange range, Rounding16 *result) {
  if (r.wide || r.max > UINT8_MAX || r.absolute) return false;
  MaskEpilogue halved(r);
  std::vector<int32_t> twos = {2};
  halved.reduce(twos, 2);
  return halved.divisor == r.half && make_rounding16(halved, range, result);
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
