// SPDX-License-Identifier: LGPL-2.1-or-later
#include "failingnew.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> left{0};  // allocations up to the one that fails; 0 or less: none fails

}  // namespace

void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  return left > 0 && --left == 0 ? nullptr : std::malloc(size ? size : 1);
}

void *operator new(std::size_t size) {
  if (void *memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept {
  std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept {
  std::free(memory);
}

namespace cudaconv::test {

bool with_failing_new(long n, const std::function<void()> &f) {
  left = n;
  f();
  return left.exchange(0) <= 0;
}

}  // namespace cudaconv::test
