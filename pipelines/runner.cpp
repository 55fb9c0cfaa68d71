// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gst/pbutils/pbutils.h>
#include <gst/video/gstvideofilter.h>

#include <glib-unix.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "decoders.h"
#include "ending.h"
#include "media.h"

namespace media {

namespace {

// Where an error comes from: the file that cannot be written, or the element.
std::string origin_of(GstObject *source) {
  if (GST_IS_PIPELINE(source)) return "";  // see post_failure()
  gchar *raw = nullptr;
  if (g_object_class_find_property(G_OBJECT_GET_CLASS(source), "location"))
    g_object_get(source, "location", &raw, nullptr);
  const Owned<gchar> location(raw);
  const std::string name = location ? name_of_part(location.get()) : "";
  if (!name.empty()) return "cannot write " + name + ": ";
  return std::string(GST_OBJECT_NAME(source)) + ": ";
}

}  // namespace

std::string message_text(GstMessage *message, void (*parse)(GstMessage *, GError **, gchar **), bool with_debug) {
  GError *error = nullptr;
  gchar *debug = nullptr;
  parse(message, &error, &debug);
  std::string text = origin_of(GST_MESSAGE_SRC(message)) + (error ? error->message : "");
  if (debug && with_debug) text += std::string("\n  ") + debug;
  g_clear_error(&error);
  g_free(debug);
  return text;
}

namespace {

bool has_code(GstMessage *message, void (*parse)(GstMessage *, GError **, gchar **), GstCoreError code) {
  GError *error = nullptr;
  parse(message, &error, nullptr);
  const bool has = g_error_matches(error, GST_CORE_ERROR, code);
  g_clear_error(&error);
  return has;
}

// Whether no stream of the file has a decoder to raw video.
bool lacks_video(GstMessage *error) {
  return has_code(error, gst_message_parse_error, GST_CORE_ERROR_MISSING_PLUGIN);
}

// Whether a GstVideoFilter could not read a frame, such as one with a palette from avidemux: it warns, and the frame
// that it pushes is not written.
bool is_unread_frame(GstMessage *warning) {
  return has_code(warning, gst_message_parse_warning, GST_CORE_ERROR_NOT_IMPLEMENTED) &&
         GST_IS_VIDEO_FILTER(GST_MESSAGE_SRC(warning));
}

}  // namespace

Runner::Runner(Owned<GstElement> pipeline, GstElement *filter, bool quiet)
    : loop_(g_main_loop_new(nullptr, FALSE)),
      pipeline_(std::move(pipeline)),
      bus_(gst_element_get_bus(pipeline_.get())),
      quiet_(quiet) {
  avoid_gifdec();
  g_signal_connect(pipeline_.get(), "deep-element-added", G_CALLBACK(on_element), this);
  const Owned<GstPad> sink(gst_element_get_static_pad(filter, "sink")), src(gst_element_get_static_pad(filter, "src"));
  gst_pad_add_probe(sink.get(), GST_PAD_PROBE_TYPE_BUFFER, drop_late, this, nullptr);
  gst_pad_add_probe(src.get(), GST_PAD_PROBE_TYPE_BUFFER, count_frame, this, nullptr);
  gst_bus_add_watch(bus_.get(), on_message, this);
  for (const int number : interruptions()) {
    handlers_.push_back({this, number});
    signals_.push_back(g_unix_signal_add(number, on_interrupt, &handlers_.back()));
  }
  std::signal(SIGPIPE, SIG_IGN);  // what is printed may be lost, not the file
  if (isatty(STDERR_FILENO) && !quiet && g_strcmp0(g_getenv("TERM"), "dumb"))
    progress_ = g_timeout_add(200, show_progress, this);
}

Runner::~Runner() {
  end_progress();
  for (const guint signal : signals_) g_source_remove(signal);
  for (const int number : interruptions()) std::signal(number, leave);  // stopping takes time
  gst_bus_remove_watch(bus_.get());
  const std::string last_words = std::string(g_get_prgname()) + ": " + words() + "\n";
  if (leaving_) {  // its input may be stuck
    say_at_end(last_words.c_str());
    leave_in(200);
  }
  gst_element_set_state(pipeline(), GST_STATE_NULL);
  leave_in(0);
  say_at_end(nullptr);
  g_signal_handlers_disconnect_by_data(pipeline_.get(), this);
}

GstStateChangeReturn Runner::change(GstState state) {
  const AtOnce opening;
  return gst_element_set_state(pipeline(), state);
}

void Runner::preroll() {
  playing_ = false;
  switch (change(GST_STATE_PAUSED)) {
    case GST_STATE_CHANGE_FAILURE:
      check_failure();
      throw Failure("the pipeline does not start");
    case GST_STATE_CHANGE_NO_PREROLL:  // a live source gives nothing before PLAYING
      change(GST_STATE_PLAYING);
      break;
    default:
      wait();
  }
  if (!gst_element_query_duration(pipeline(), GST_FORMAT_TIME, &duration_)) duration_ = -1;
}

void Runner::wait() {
  g_main_loop_run(loop_.get());
  if (!failure_.empty()) throw Failure(failure_);
  if (given_up_) check_interruption();
}

void Runner::play() {
  playing_ = true;
  change(GST_STATE_PLAYING);
  wait();
  ended_ = g_get_monotonic_time();
  end_progress();
  if (!frames_) throw Failure("no frame came through the filter" + decoders());
}

void Runner::stop() {
  std::optional<AtOnce> closing;
  if (interrupted_) closing.emplace();
  if (!interrupted_) gst_element_set_state(pipeline(), GST_STATE_READY);
  GstIterator *sinks = gst_bin_iterate_sinks(GST_BIN(pipeline()));
  const auto close = [](const GValue *value, gpointer) {
    auto *const sink = GST_ELEMENT(g_value_get_object(value));
    if (!GST_IS_BIN(sink)) gst_element_set_state(sink, GST_STATE_NULL);  // no file is in a bin
  };
  gst_iterator_foreach(sinks, close, nullptr);
  gst_iterator_free(sinks);
  check_failure();
}

void Runner::check_failure() {
  while (g_main_context_iteration(nullptr, FALSE)) continue;
  if (!failure_.empty()) throw Failure(failure_);
}

void Runner::end_progress() {
  if (!progress_) return;
  g_source_remove(progress_);
  progress_ = 0;
  std::fprintf(stderr, "\r\033[K");
}

double Runner::rate() const {
  const gint64 end = ended_ ? ended_ : g_get_monotonic_time();
  // The first frame does not count: plugins and the device start up for it.
  return frames_ < 2 || end <= first_frame_ ? 0 : static_cast<double>(frames_ - 1) * 1e6 / (end - first_frame_);
}

GstPadProbeReturn Runner::count_frame(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
  auto *self = static_cast<Runner *>(data);
  if (self->frames_++ == 0) self->first_frame_ = g_get_monotonic_time();
  const GstClockTime time = time_at(pad, GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)), gst_segment_to_stream_time);
  if (GST_CLOCK_TIME_IS_VALID(time)) self->position_ = static_cast<gint64>(time);
  return GST_PAD_PROBE_OK;
}

// After an interrupt, frames that wait before the filter are not filtered any more.
GstPadProbeReturn Runner::drop_late(GstPad *, GstPadProbeInfo *, gpointer data) {
  return static_cast<Runner *>(data)->interrupted_ ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

gboolean Runner::show_progress(gpointer data) {
  auto *self = static_cast<Runner *>(data);
  const double part =
      self->duration_ > 0 ? std::clamp(static_cast<double>(self->position_) / self->duration_, 0.0, 1.0) : 0;
  char text[120];
  int length = self->duration_ > 0 ? std::snprintf(text, sizeof text, "%3d %%  ", static_cast<int>(100 * part)) : 0;
  length += std::snprintf(text + length, sizeof text - length, "frame %llu  %.1f frames/s",
                          static_cast<unsigned long long>(self->frames_), self->rate());
  if (part > 0) {
    const double seconds = (g_get_monotonic_time() - self->first_frame_) / 1e6 * (1 - part) / part;
    std::snprintf(text + length, sizeof text - length, "  %d:%02d left", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  }
  winsize terminal = {};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &terminal);
  if (terminal.ws_col > 1 && terminal.ws_col < sizeof text) text[terminal.ws_col - 1] = 0;  // a line that wraps stays
  std::fprintf(stderr, "\r%s\033[K", text);
  return G_SOURCE_CONTINUE;
}

std::string Runner::words() const {
  return "interrupted after " + std::to_string(frames_) + " frames";
}

void Runner::check_interruption() {
  if (!interrupted_) return;
  leaving_ = true;
  throw Interrupted(words());
}

int exit_code(const std::exception &e) {
  return dynamic_cast<const Interrupted *>(&e) ? kExitInterrupted : 1;
}

gboolean Runner::on_interrupt(gpointer data) {
  const auto [self, number] = *static_cast<const Handler *>(data);
  if (self->interrupted_) {
    // timeout(1) sends its signal twice: to its child, and to the group of processes.
    if (number == self->signal_ && g_get_monotonic_time() < self->interruption_ + G_USEC_PER_SEC / 2)
      return G_SOURCE_CONTINUE;
    leave(0);
  }
  self->signal_ = number;
  self->interruption_ = g_get_monotonic_time();
  self->interrupted_ = true;
  if (self->frames_ && finish_conversion(self->pipeline())) {
    std::fprintf(stderr, "\ninterrupted: finishing the file\n");
    return G_SOURCE_CONTINUE;
  }
  self->given_up_ = !self->frames_ || !self->playing_;  // there is nothing to keep
  g_main_loop_quit(self->loop_.get());
  return G_SOURCE_CONTINUE;
}

void Runner::on_element(GstBin *, GstBin *bin, GstElement *element, gpointer data) {
  auto *self = static_cast<Runner *>(data);
  mend_gif(element);
  mend_avi(element);
  mend_durations(element);
  mend_range(element);
  keep_errors(bin, element);
  GstElementFactory *const factory = gst_element_get_factory(element);
  if (!factory || !gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DECODER) ||
      !gst_element_factory_list_is_type(factory,
                                        GST_ELEMENT_FACTORY_TYPE_MEDIA_VIDEO | GST_ELEMENT_FACTORY_TYPE_MEDIA_IMAGE))
    return;
  const std::lock_guard guard(self->lock_);
  self->decoders_.insert(GST_OBJECT_NAME(factory));
}

// The decoders that have given nothing.
std::string Runner::decoders() {
  const std::lock_guard guard(lock_);
  std::string text;
  for (const std::string &name : decoders_) text += (text.empty() ? ": its decoder is " : ", ") + name;
  return text;
}

gboolean Runner::on_message(GstBus *, GstMessage *message, gpointer data) {
  auto *self = static_cast<Runner *>(data);
  switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
      self->fail(lacks_video(message) && !self->missing_ ? "there is no video in it"
                                                         : message_text(message, gst_message_parse_error));
      break;
    case GST_MESSAGE_WARNING:
      if (is_unread_frame(message)) {
        self->fail("a frame cannot be read: it has less data than its format needs" + self->decoders());
        break;
      }
      std::fprintf(stderr, "warning: %s\n", message_text(message, gst_message_parse_warning).c_str());
      break;
    case GST_MESSAGE_INFO:
      if (!self->quiet_) std::fprintf(stderr, "%s\n", message_text(message, gst_message_parse_info, false).c_str());
      break;
    case GST_MESSAGE_ELEMENT:
      if (gst_is_missing_plugin_message(message)) {
        const Owned<gchar> what(gst_missing_plugin_message_get_description(message));
        const gchar *type = gst_structure_get_string(gst_message_get_structure(message), "type");
        std::fprintf(stderr, "warning: there is no %s%s\n", what.get(),
                     g_strcmp0(type, "decoder") ? "" : "; gstreamer1.0-libav has most decoders");
        self->missing_ = true;
      }
      break;
    case GST_MESSAGE_ASYNC_DONE:
      if (!self->playing_) g_main_loop_quit(self->loop_.get());
      break;
    case GST_MESSAGE_EOS:
      g_main_loop_quit(self->loop_.get());
      break;
    case GST_MESSAGE_LATENCY:
      gst_bin_recalculate_latency(GST_BIN(self->pipeline()));
      break;
    default:
      break;
  }
  return G_SOURCE_CONTINUE;
}

void Runner::fail(const std::string &text) {
  if (failure_.empty()) failure_ = text;  // the first error is the cause
  g_main_loop_quit(loop_.get());
}

}  // namespace media
