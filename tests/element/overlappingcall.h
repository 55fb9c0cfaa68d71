// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A g_object_set() that another one overlaps.
#pragma once

#include <gst/gst.h>

#include <future>
#include <string>
#include <thread>

namespace cudaconv::test {

// A second thread's g_object_set(), of which a part is set when it begins. It begins in the next g_object_set() of the
// test, after GObject has found that no other is under way, before the element's class is told. One at a time.
class OverlappingCall {
 public:
  OverlappingCall(GstElement *element, std::string first, std::string rest);
  ~OverlappingCall();
  OverlappingCall(const OverlappingCall &) = delete;

  void end();  // sets the rest

 private:
  static void dispatch(GObject *object, guint count, GParamSpec **specs);
  void begin();

  GstElement *const element_;
  const std::string first_, rest_;
  std::promise<void> begun_, ending_;
  std::thread thread_;
};

}  // namespace cudaconv::test
