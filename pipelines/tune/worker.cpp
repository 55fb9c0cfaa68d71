// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker.h"

#include <utility>

namespace tune {

using namespace media;

Worker::Worker(Filter &filter, Shown shown) : filter_(filter), shown_(std::move(shown)), thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    end_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (idle_) g_source_remove(idle_);
}

void Worker::take(Owned<GstSample> sample) {
  const std::lock_guard<std::mutex> guard(lock_);
  current_ = std::shared_ptr<GstSample>(std::move(sample));
  is_new_ = true;
  changed_.notify_one();
}

void Worker::refresh() {
  const std::lock_guard<std::mutex> guard(lock_);
  again_ = true;
  changed_.notify_one();
}

Worker::Counts Worker::counts() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return counts_;
}

std::shared_ptr<const Picture> Worker::make(GstSample *sample) {
  auto picture = std::make_shared<Picture>();
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample))) return {};
  const gint64 start = g_get_monotonic_time();
  const Owned<GstSample> filtered = filter_.filter(sample);
  const gint64 time = g_get_monotonic_time() - start;
  picture->before = converter_.convert(sample);
  if (filtered) picture->after = converter_.convert(filtered.get());
  picture->width = info.width;
  picture->height = info.height;
  picture->pixel_aspect = static_cast<double>(info.par_n) / info.par_d;
  picture->format = GST_VIDEO_INFO_NAME(&info);
  GstBuffer *const buffer = gst_sample_get_buffer(sample);
  picture->time = GST_BUFFER_PTS(buffer);
  picture->outlines = outlines_of(buffer, info.width, info.height);
  const std::lock_guard<std::mutex> guard(lock_);
  counts_.filtering += time;
  counts_.runs++;
  return picture;
}

void Worker::run() {
  std::unique_lock<std::mutex> guard(lock_);
  while (!end_) {
    changed_.wait(guard, [this] { return end_ || is_new_ || (again_ && current_); });
    if (end_) return;
    if (is_new_) counts_.frames++;
    is_new_ = again_ = false;
    const std::shared_ptr<GstSample> sample = current_;
    guard.unlock();
    std::shared_ptr<const Picture> picture = make(sample.get());
    guard.lock();
    if (!picture) continue;
    ready_ = std::move(picture);
    if (!idle_ && !end_) idle_ = g_idle_add_full(G_PRIORITY_DEFAULT, show, this, nullptr);
  }
}

gboolean Worker::show(gpointer data) {
  auto *self = static_cast<Worker *>(data);
  std::shared_ptr<const Picture> picture;
  {
    const std::lock_guard<std::mutex> guard(self->lock_);
    self->idle_ = 0;
    picture = std::move(self->ready_);
  }
  self->shown_(std::move(picture));
  return G_SOURCE_REMOVE;
}

}  // namespace tune
