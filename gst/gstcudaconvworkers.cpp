// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvworkers.h"

#include <gst/gst.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace cudaconv::gst {

namespace {

constexpr int kMostThreads = 16;

// One call of a ParallelFor, on the stack of its caller. Threads take the next index until none is left.
struct Job {
  Job(int count, const std::function<void(int)> &function) : n(count), body(function) {}

  const int n;
  const std::function<void(int)> &body;
  std::atomic<int> next{0};
  // The pool's lock guards the members below.
  Job *other = nullptr;  // the next job in the pool's list
  int helpers = 0;       // helper threads that call the body
  std::exception_ptr exception;

  int take() { return next.fetch_add(1, std::memory_order_relaxed); }
  bool is_taken() const { return next.load(std::memory_order_relaxed) >= n; }
};

// Helper threads, started by the first call. Where the system refuses one, there are fewer, down to none: the caller
// works too. A call allocates nothing. It waits for the bodies, not for threads that wake up late.
class Workers {
 public:
  explicit Workers(int threads) : helpers_(threads - 1) { threads_.reserve(helpers_); }
  ~Workers() {
    {
      std::lock_guard<std::mutex> guard(lock_);
      ends_ = true;
    }
    wake_.notify_all();
    for (GThread *thread : threads_) g_thread_join(thread);
  }
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  void run(int n, const std::function<void(int)> &body) {
    Job job(n, body);
    {
      std::lock_guard<std::mutex> guard(lock_);
      start_threads();
      job.other = std::exchange(jobs_, &job);
    }
    for (int i = 1; i < std::min(helpers_ + 1, n); i++) wake_.notify_one();
    work(job, job.take());
    std::unique_lock<std::mutex> guard(lock_);
    Job **link = &jobs_;
    while (*link != &job) link = &(*link)->other;
    *link = job.other;
    left_.wait(guard, [&] { return job.helpers == 0; });
    if (job.exception) std::rethrow_exception(job.exception);
  }

 private:
  void start_threads() {
    while (threads_.size() < static_cast<size_t>(helpers_)) {
      const auto help = [](gpointer workers) -> gpointer {
        static_cast<Workers *>(workers)->help();
        return nullptr;
      };
      GThread *thread = g_thread_try_new("cudaconv", help, this, nullptr);
      if (!thread) return;
      threads_.push_back(thread);
    }
  }

  void help() {
    std::unique_lock<std::mutex> guard(lock_);
    while (!ends_) {
      Job *job = jobs_;
      while (job && job->is_taken()) job = job->other;
      if (!job) {
        wake_.wait(guard);
        continue;
      }
      const int first = job->take();
      job->helpers++;
      guard.unlock();
      work(*job, first);
      guard.lock();
      if (--job->helpers == 0) left_.notify_all();
    }
  }

  // Calls the body for index `i` and for those that it then takes.
  void work(Job &job, int i) {
    for (; i < job.n; i = job.take()) {
      try {
        job.body(i);
      } catch (...) {
        std::lock_guard<std::mutex> guard(lock_);
        if (!job.exception) job.exception = std::current_exception();
      }
    }
  }

  const int helpers_;  // threads wanted
  std::mutex lock_;    // guards the members below
  std::condition_variable wake_, left_;
  std::vector<GThread *> threads_;
  Job *jobs_ = nullptr;
  bool ends_ = false;
};

}  // namespace

int worker_count() {
  return std::clamp(static_cast<int>(g_get_num_processors()), 1, kMostThreads);
}

ParallelFor make_parallel_for(int threads) {
  if (threads <= 1)
    return [](int n, const std::function<void(int)> &body) {
      for (int i = 0; i < n; i++) body(i);
    };
  return [workers = std::make_shared<Workers>(threads)](int n, const std::function<void(int)> &body) {
    if (n > 0) workers->run(n, body);
  };
}

}  // namespace cudaconv::gst
