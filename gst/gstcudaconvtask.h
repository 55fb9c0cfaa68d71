// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The task of a pad, and the gate before an element that starts.
#pragma once

#include <gst/gst.h>

#include <condition_variable>
#include <mutex>

namespace cudaconv::gst {

// gst_pad_start_task(), after which the pad has no task where the system has no thread for it: to wait for its end
// would take for ever.
bool start_task(GstPad *pad, GstTaskFunction function, gpointer data);

// Lets the sink pad's streaming thread in once the element has started: GstPad calls it before. Any thread may call.
class StartGate {
 public:
  void await_start() { set(State::Awaited); }
  // Undone by close(), also while the element starts: a handler may stop it.
  void open() { set(State::Open); }
  void close() { set(State::Closed); }
  // Waits while the start is awaited. False where the element cannot start, or has stopped: queries reach inactive
  // pads, too.
  bool enter();

 private:
  enum class State { Closed, Awaited, Open };
  void set(State state);

  std::mutex lock_;  // guards state_
  std::condition_variable changed_;
  State state_ = State::Closed;
};

}  // namespace cudaconv::gst
