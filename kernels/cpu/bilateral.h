// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral without alpha on the CPU.
#pragma once

#include <map>
#include <vector>

#include "cpu/row_context.h"

namespace cudaconv {

// The results of a row, all windows at once, as an operation, see cpu_operations.h.
template <typename T>
class BilateralOp {
 public:
  explicit BilateralOp(const RowContext<T> &context);
  void enter(int) {}
  void filter(int y, T *out);

 private:
  // The table of a depth, and a mask of the row's samples that have this depth; no mask: all have.
  struct Depth {
    BilateralRange range;
    const T *samples = nullptr;
  };
  void add_depth(int depth);

  const RowContext<T> &context_;
  std::map<int32_t, std::vector<std::pair<int, int>>> offsets_;  // of the pixels with each weight of distance
  std::vector<Depth> depths_;
  std::vector<const T *> in_;
  std::vector<BilateralRing<T>> rings_;
  T *row_ = nullptr;  // results of one of several depths
};

}  // namespace cudaconv
