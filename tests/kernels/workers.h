// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A minimal ParallelFor on a few threads, for tests.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cudaconv::test {

class Workers {
 public:
  // `threads` includes the calling thread, which works, too.
  explicit Workers(int threads) {
    for (int i = 1; i < threads; i++) threads_.emplace_back([this] { serve(); });
  }
  Workers(const Workers &) = delete;

  ~Workers() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread &t : threads_) t.join();
  }

  void operator()(int n, const std::function<void(int)> &body) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      body_ = &body;
      n_ = n;
      next_ = 0;
      busy_ = static_cast<int>(threads_.size());
      round_++;
    }
    wake_.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve() {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
      lock.unlock();
      work();
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  void work() {
    for (int i; (i = next_++) < n_;) (*body_)(i);
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)> *body_ = nullptr;
  std::atomic<int> next_{0};
  int n_ = 0, busy_ = 0;
  uint64_t round_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cudaconv::test
