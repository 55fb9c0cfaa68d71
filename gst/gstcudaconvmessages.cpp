// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvmessages.h"

#include <algorithm>
#include <new>
#include <utility>

#include "gstcudaconvframe.h"

GST_DEBUG_CATEGORY(gst_cuda_conv_debug);
GST_DEBUG_CATEGORY(gst_cuda_conv_performance);

namespace cudaconv::gst {

namespace {

std::string without_numbers(std::string text) {
  const auto is_of_number = [](char c) { return g_ascii_isdigit(c) || c == '-' || c == '.'; };
  text.erase(std::remove_if(text.begin(), text.end(), is_of_number), text.end());
  return text;
}

}  // namespace

void init_debug() {
  GST_DEBUG_CATEGORY_INIT(gst_cuda_conv_debug, "cudaconv", 0, "2D convolution and morphology");
  GST_DEBUG_CATEGORY_GET(gst_cuda_conv_performance, "GST_PERFORMANCE");
}

void post_error(GstElement *element, const std::exception &e) {
  const auto *error = dynamic_cast<const Error *>(&e);
  const auto post = [&](GQuark domain, int code, const char *text) {
    gst_element_message_full(element, GST_MESSAGE_ERROR, domain, code, g_strdup(text), nullptr,
                             error ? error->file() : __FILE__, "", error ? error->line() : __LINE__);
  };
  if (dynamic_cast<const FrameError *>(&e)) return post(GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED, e.what());
  if (dynamic_cast<const std::bad_alloc *>(&e))
    return post(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT, "There is not enough memory.");
  if (!error) return post(GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, e.what());
  switch (error->kind()) {
    case Error::Kind::Settings:
      return post(GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, e.what());
    case Error::Kind::Format:
      return post(GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, e.what());
    case Error::Kind::NoDevice:
      return post(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, e.what());
    case Error::Kind::Device:
      return post(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, e.what());
    case Error::Kind::Cancelled:
      return;  // no failure: a flush or a change of state asked for it
  }
}

void post_last_flow(GstElement *element, GstFlowReturn flow, GstFlowReturn told) {
  if (flow == told) return;
  if (flow == GST_FLOW_NOT_LINKED || (flow < GST_FLOW_EOS && flow != GST_FLOW_ERROR))
    GST_ELEMENT_FLOW_ERROR(element, flow);
}

void Messages::warn(const std::string &text, const std::string &debug) {
  g_autoptr(GError) error = g_error_new_literal(GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, text.c_str());
  g_autofree gchar *path = gst_object_get_path_string(GST_OBJECT(element_));
  GST_WARNING_OBJECT(element_, "%s", text.c_str());
  add(gst_message_new_warning(GST_OBJECT(element_), error, (std::string(path) + ":\n" + debug).c_str()));
}

void Messages::warn_once(std::string_view about, std::string_view text, const char *more) {
  try {
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (!passed_over_.emplace(about).second || text.empty()) return;
    }
    warn(std::string(text) + more, "the stream goes on");
  } catch (const std::bad_alloc &) {
  }
}

void Messages::warn_of_numbers(const std::string &about, const std::string &text, const char *debug, bool repeats) {
  constexpr size_t kMost = 100;  // texts of settings may be new for ever
  const gint64 now = g_get_monotonic_time();
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (numbers_.size() >= kMost) numbers_.clear();
    const auto [last, is_new] = numbers_.try_emplace(without_numbers(about));
    if (!is_new && !repeats && last->second.text == text) return;
    if (!is_new && now - last->second.at < G_USEC_PER_SEC) {
      GST_WARNING_OBJECT(element_, "%s", text.c_str());
      return;
    }
    last->second = {text, now};
  }
  warn(text, debug);
}

void Messages::announce_latency(GstClockTime latency) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (std::exchange(latency_, latency) == latency) return;
  }
  GST_DEBUG_OBJECT(element_, "frames wait up to %" GST_TIME_FORMAT, GST_TIME_ARGS(latency));
  add(gst_message_new_latency(GST_OBJECT(element_)));
}

void Messages::restart() {
  std::lock_guard<std::mutex> guard(lock_);
  if (latency_) latency_ = GST_CLOCK_TIME_NONE;
  passed_over_.clear();
  numbers_.clear();
}

void Messages::post() {
  while (gpointer message = g_async_queue_try_pop(messages_))
    gst_element_post_message(element_, static_cast<GstMessage *>(message));
}

}  // namespace cudaconv::gst
