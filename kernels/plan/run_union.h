// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/regions.h"

namespace cudaconv {

// The union of runs of a row; runs can be added and removed. For each pixel x, stores the number of runs on x minus the
// number on x - 1. A bit for each nonzero value makes these quick to find.
class RunUnion {
 public:
  explicit RunUnion(int width) : change_(width + 1), set_(width / 64 + 1), first_(set_.size()) {}

  void add(PixelRun run) { add(run, 1); }
  void remove(PixelRun run) { add(run, -1); }

  // Appends the union of the runs.
  void list(std::vector<PixelRun> *runs) {
    for_each([&, depth = 0](int x, int change) mutable {
      if (depth == 0) runs->push_back({x, x});
      depth += change;
      if (depth == 0) runs->back().end = x;
    });
  }

  void clear() {
    for_each([&](int x, int) { change_[x] = 0; });
    for (size_t i = first_; i < end_; i++) set_[i] = 0;
    first_ = set_.size();
    end_ = 0;
  }

 private:
  void add(PixelRun run, int count) {
    if (run.begin >= run.end) return;
    change_[run.begin] += count;
    change_[run.end] -= count;
    for (const int x : {run.begin, run.end}) set_[x / 64] |= uint64_t{1} << x % 64;
    first_ = std::min<size_t>(first_, run.begin / 64);
    end_ = std::max<size_t>(end_, run.end / 64 + 1);
  }

  template <typename F>
  void for_each(F f) {
    for (size_t i = first_; i < end_; i++)
      for (uint64_t left = set_[i]; left; left &= left - 1) {
        const int bit = __builtin_ctzll(left), x = static_cast<int>(i) * 64 + bit;
        if (change_[x])
          f(x, change_[x]);
        else
          set_[i] &= ~(uint64_t{1} << bit);
      }
  }

  std::vector<int32_t> change_;
  std::vector<uint64_t> set_;
  size_t first_, end_ = 0;  // the words of set_ that may have a bit
};

}  // namespace cudaconv
