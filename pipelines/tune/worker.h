// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The thread that filters each new frame, and filters the current one again when a setting has changed.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "filter.h"
#include "picture.h"

namespace tune {

class Worker {
 public:
  // Calls `shown` on the main thread, with the newest picture.
  using Shown = std::function<void(std::shared_ptr<const Picture>)>;
  Worker(Filter &filter, Shown shown);
  ~Worker();
  Worker(const Worker &) = delete;

  // Takes a frame, in place of one that still waits. Any thread may call.
  void take(media::Owned<GstSample> sample);
  // Filters the current frame again.
  void refresh();

  struct Counts {
    guint64 frames;    // that came and were filtered
    gint64 filtering;  // microseconds that the filter took for all frames, the repeated ones too
    guint64 runs;      // how often it filtered
  };
  Counts counts() const;

 private:
  void run();
  std::shared_ptr<const Picture> make(GstSample *sample);
  static gboolean show(gpointer self);

  Filter &filter_;
  const Shown shown_;
  Converter converter_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::shared_ptr<GstSample> current_;
  bool is_new_ = false, again_ = false, end_ = false;
  std::shared_ptr<const Picture> ready_;
  guint idle_ = 0;
  Counts counts_ = {};
  std::thread thread_;
};

}  // namespace tune
