// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvtask.h"

#include <utility>

#include "gstcudaconvref.h"

namespace cudaconv::gst {

bool start_task(GstPad *pad, GstTaskFunction function, gpointer data) {
  if (gst_pad_start_task(pad, function, data, nullptr)) return true;
  GST_OBJECT_LOCK(pad);
  const Ref<GstTask> task(std::exchange(GST_PAD_TASK(pad), nullptr));
  GST_OBJECT_UNLOCK(pad);
  if (task) {  // a thread may take it later, and ends at once: after the pad, perhaps
    gst_task_set_leave_callback(task.get(), nullptr, nullptr, nullptr);
    gst_task_stop(task.get());
  }
  return false;
}

void StartGate::set(State state) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (state != State::Open || state_ == State::Awaited) state_ = state;
  }
  changed_.notify_all();
}

bool StartGate::enter() {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return state_ != State::Awaited; });
  return state_ == State::Open;
}

}  // namespace cudaconv::gst
