// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvworkers.h"

#include <gst/gst.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

namespace cudaconv::gst {

namespace {

constexpr int kMostThreads = 16;

// One call of a ParallelFor. Threads take the next index until none is left. A thread that wakes up late finds none,
// when the call has returned.
class Job {
 public:
  Job(int count, const std::function<void(int)> &function, int users) : n_(count), body_(function), users_(users) {}

  void work() {
    for (int i; (i = next_++) < n_;) {
      std::exception_ptr why;
      try {
        body_(i);
      } catch (...) {
        why = std::current_exception();
      }
      std::lock_guard<std::mutex> guard(lock_);
      if (!exception_) exception_ = why;
      if (++done_ == n_) all_done_.notify_one();
    }
  }
  void wait() {
    std::unique_lock<std::mutex> guard(lock_);
    all_done_.wait(guard, [this] { return done_ >= n_; });
    if (exception_) std::rethrow_exception(exception_);
  }
  // To be called once by each user, the caller or a helper thread. Deletes the job after the last one.
  void leave() {
    if (--users_ == 0) delete this;
  }

 private:
  const int n_;
  const std::function<void(int)> &body_;
  std::atomic<int> next_{0}, users_;
  std::mutex lock_;  // guards the members below
  std::condition_variable all_done_;
  int done_ = 0;  // bodies
  std::exception_ptr exception_;
};

void help(gpointer data, gpointer) {
  auto *const job = static_cast<Job *>(data);
  job->work();
  job->leave();
}

// The threads that help one ParallelFor, which its first call starts. Where the system refuses a thread, there are
// fewer, down to none: the caller works too.
struct Helpers {
  ~Helpers() {
    if (pool) g_thread_pool_free(pool, FALSE, TRUE);
  }
  std::once_flag once;
  GThreadPool *pool = nullptr;
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
  return [helpers = std::make_shared<Helpers>(), threads](int n, const std::function<void(int)> &body) {
    std::call_once(helpers->once, [&] {
      // Threads are added afterwards: where one is refused, g_thread_pool_new() of GLib 2.84 and newer frees the pool
      // under those that it got.
      helpers->pool = g_thread_pool_new(help, nullptr, 0, TRUE, nullptr);
      g_thread_pool_set_max_threads(helpers->pool, threads - 1, nullptr);
    });
    const int helping = std::clamp(n - 1, 0, static_cast<int>(g_thread_pool_get_num_threads(helpers->pool)));
    const std::unique_ptr<Job, void (*)(Job *)> job(new Job(n, body, 1 + helping), [](Job *left) { left->leave(); });
    for (int i = 0; i < helping; i++) g_thread_pool_push(helpers->pool, job.get(), nullptr);
    job->work();
    job->wait();
  };
}

}  // namespace cudaconv::gst
