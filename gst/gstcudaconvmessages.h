// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The debug categories, and C++ exceptions as messages of the element.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "error.h"

GST_DEBUG_CATEGORY_EXTERN(gst_cuda_conv_debug);
GST_DEBUG_CATEGORY_EXTERN(gst_cuda_conv_performance);
#define GST_CAT_DEFAULT gst_cuda_conv_debug

namespace cudaconv::gst {

// Makes the debug categories. May be called several times.
void init_debug();

// Posts an error message for an exception; for an Error with the file and line that threw it. Nothing for
// Error{Cancelled}.
void post_error(GstElement *element, const std::exception &e);

// Posts an error where downstream refused a frame that had waited in the element, as queue does: at EOS, since upstream
// sends no other frame that would return it. An element that returns GST_FLOW_ERROR has posted an error itself.
// `told`: what upstream got last. It accepts that, as a tee may accept GST_FLOW_NOT_LINKED.
void post_last_flow(GstElement *element, GstFlowReturn flow, GstFlowReturn told);

// Messages that wait until they can be posted with nothing held: a handler may call into the element. Any thread may
// call.
class Messages {
 public:
  explicit Messages(GstElement *element) : element_(element) {}
  ~Messages() { g_async_queue_unref(messages_); }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;

  // Transfer full. Throws nothing.
  void add(GstMessage *message) { g_async_queue_push(messages_, message); }
  // Adds a warning about settings. `debug`: for the log of gst-launch-1.0.
  void warn(const std::string &text, const std::string &debug);
  // Adds a warning of `text` and `more`, once since restart() for each thing that it is about. Left out if there is no
  // memory for it. An empty text: the thing needs no warning until the next restart().
  void warn_once(std::string_view about, std::string_view text, const char *more = "");
  // Adds a warning in a text whose numbers may change with each frame, as a slider, a controller or a region that moves
  // makes them: at most once a second where only the numbers of `about` change, and not twice with the same text unless
  // it `repeats`. The log has the others.
  void warn_of_numbers(const std::string &about, const std::string &text, const char *debug, bool repeats);
  // Adds a LATENCY message if the latency that the element adds has changed since the last one.
  void announce_latency(GstClockTime latency);
  // Forgets what the element has warned of and announced, since it starts: the pipeline may have forgotten the latency.
  void restart();
  // Posts all, in their order. To be called at the end of each function that GStreamer calls.
  void post();

 private:
  struct Warning {
    std::string text;
    gint64 at;  // microseconds
  };

  GstElement *const element_;
  GAsyncQueue *const messages_ = g_async_queue_new_full(reinterpret_cast<GDestroyNotify>(gst_message_unref));
  std::mutex lock_;  // guards the members below
  std::set<std::string> passed_over_;
  std::map<std::string, Warning> numbers_;  // by what they are about, without numbers
  GstClockTime latency_ = 0;                // that was announced last
};

// Calls `f` and returns what it returns. No exception may reach GStreamer, which is C: it is posted as an error
// message, and `otherwise` is returned.
template <typename T, typename F>
T guarded(gpointer element, T otherwise, const F &f) {
  try {
    return f();
  } catch (const std::exception &e) {
    post_error(GST_ELEMENT_CAST(element), e);
  }
  return otherwise;
}
template <typename F>
void guarded(gpointer element, const F &f) {
  guarded(element, false, [&] { return f(), true; });
}

}  // namespace cudaconv::gst
