// SPDX-License-Identifier: LGPL-2.1-or-later
#include "failingnew.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<long> left{0};  // allocations up to the one that fails; 0 or less: none fails
std::atomic<const std::function<void()> *> instead{nullptr};  // if set, called in place of the failure

}  // namespace

void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  if (left > 0 && --left == 0) {
    const std::function<void()> *const call = instead;
    if (!call) return nullptr;
    (*call)();
  }
  return std::malloc(size ? size : 1);
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

bool with_call_in_new(long n, const std::function<void()> &call, const std::function<void()> &f) {
  std::atomic<bool> ended{false};
  const std::function<void()> calls = [&] {
    call();
    ended = true;
  };
  instead = &calls;
  const bool called = with_failing_new(n, f);
  while (called && !ended) std::this_thread::yield();  // another thread may be calling
  instead = nullptr;
  return called;
}

}  // namespace cudaconv::test
