// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts a fuzzer's bytes to the values that a target needs. After the last byte all values are 0.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

namespace cudaconv::fuzz {

// Ends the program. This reports a fault to the fuzzer.
[[noreturn]] inline void fault(const std::string &what) {
  std::fprintf(stderr, "FAULT: %s\n", what.c_str());
  std::abort();
}

class Bytes {
 public:
  Bytes(const uint8_t *data, size_t size) : at_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  // An integer in little endian.
  template <typename T>
  T raw() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); i++) value |= static_cast<uint64_t>(next()) << 8 * i;
    return static_cast<T>(value);
  }
  uint8_t byte() { return raw<uint8_t>(); }
  bool flag() { return byte() & 1; }
  int below(int n) { return byte() % n; }

  // An integer, mostly small, sometimes any.
  int32_t integer() {
    const int8_t small = raw<int8_t>();
    return small == -128 ? raw<int32_t>() : small;
  }

  // A number: a multiple of 1/64, a special value, or any bits of a double.
  double number() {
    static constexpr double kNamed[] = {0.0,        -0.0,       1,           -1,       DBL_MIN,   DBL_TRUE_MIN,
                                        DBL_MAX,    -DBL_MAX,   DBL_EPSILON, INFINITY, -INFINITY, NAN,
                                        2147483647, 2147483648, 4294967296,  1e-9};
    const uint8_t kind = byte();
    if (kind < 0xd0) return raw<int16_t>() / 64.0;
    if (kind < 0xf0) return kNamed[kind % 16];
    const uint64_t bits = raw<uint64_t>();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  // A text of up to 255 bytes.
  std::string text() {
    const size_t size = std::min<size_t>(byte(), left_);
    std::string result(reinterpret_cast<const char *>(at_), size);
    at_ += size;
    left_ -= size;
    return result;
  }

 private:
  uint8_t next() {
    if (left_ == 0) return 0;
    left_--;
    return *at_++;
  }

  const uint8_t *at_;
  size_t left_;
};

}  // namespace cudaconv::fuzz
