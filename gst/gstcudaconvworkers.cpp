// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvworkers.h"

#include <gst/gst.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace cudaconv::gst {

namespace {

constexpr int kMostThreads = 16;

// One call of a ParallelFor. Threads take the next index until none is left. The caller waits for the bodies, not for
// the threads: a thread that the pool starts late finds nothing to do and delays nobody.
class Job {
 public:
  Job(int n, const std::function<void(int)> &body) : n_(n), body_(body) {}

  void work() {
    for (int i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) {
      std::exception_ptr exception;
      try {
        body_(i);
      } catch (...) {
        exception = std::current_exception();
      }
      std::lock_guard<std::mutex> guard(lock_);
      if (exception && !exception_) exception_ = exception;
      if (++done_ == n_) all_done_.notify_one();
    }
  }

  void wait() {
    std::unique_lock<std::mutex> guard(lock_);
    all_done_.wait(guard, [this] { return done_ == n_; });
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  const int n_;
  const std::function<void(int)> &body_;  // valid until all are done
  std::atomic<int> next_{0};
  std::mutex lock_;
  std::condition_variable all_done_;
  int done_ = 0;
  std::exception_ptr exception_;
};

class Workers {
 public:
  explicit Workers(int threads) : helpers_(threads - 1), pool_(gst_shared_task_pool_new()) {
    gst_shared_task_pool_set_max_threads(GST_SHARED_TASK_POOL(pool_), helpers_);
    gst_task_pool_prepare(pool_, nullptr);
  }
  ~Workers() {
    gst_task_pool_cleanup(pool_);
    gst_object_unref(pool_);
  }
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  void run(int n, const std::function<void(int)> &body) {
    const auto job = std::make_shared<Job>(n, body);
    for (int i = 0; i < std::min(helpers_, n - 1); i++) {
      const auto help = [](void *data) {
        std::unique_ptr<std::shared_ptr<Job>> reference(static_cast<std::shared_ptr<Job> *>(data));
        (*reference)->work();
      };
      auto reference = std::make_unique<std::shared_ptr<Job>>(job);
      gpointer handle = gst_task_pool_push(pool_, help, reference.get(), nullptr);
      if (!handle) break;
      reference.release();
      gst_task_pool_dispose_handle(pool_, handle);
    }
    job->work();
    job->wait();
  }

 private:
  const int helpers_;
  GstTaskPool *const pool_;
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
