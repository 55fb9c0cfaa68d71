// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <atomic>

#include "error.h"

namespace cudaconv {

// Tells the threads of a submit() whether to give up. Once requested() is true it stays true, even if the caller resets
// the flag: no thread does the work that another thread has skipped.
class Cancellation {
 public:
  // `flag`: the caller's request to give up; nullptr: none will come.
  explicit Cancellation(const std::atomic<bool> *flag) : flag_(flag) {}

  bool requested() const {
    if (flag_ && flag_->load(std::memory_order_relaxed)) seen_.store(true, std::memory_order_relaxed);
    return seen_.load(std::memory_order_relaxed);
  }

  // Throws Error{Cancelled} if submit() is to give up.
  void check(const char *file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (requested()) throw Error(Error::Kind::Cancelled, "the frame was cancelled", file, line);
  }

 private:
  const std::atomic<bool> *const flag_;
  mutable std::atomic<bool> seen_{false};
};

}  // namespace cudaconv
