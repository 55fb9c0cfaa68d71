// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The checks of a test program, and random numbers in a range.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "guarded_frame.h"

namespace cudaconv::test {

inline int failures = 0, checks = 0;

// Counts a check. Prints the first failures.
inline void expect(bool right, const std::string &what) {
  checks++;
  if (right) return;
  failures++;
  if (failures <= 20) std::printf("FAILED %s\n", what.c_str());
}

// Prints the counts and returns the exit code.
inline int report() {
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures != 0;
}

// A number from `from` to `to`.
inline int within(Random &random, int from, int to) {
  return from + static_cast<int>(random() % static_cast<uint64_t>(to - from + 1));
}

}  // namespace cudaconv::test
