// SPDX-License-Identifier: LGPL-2.1-or-later
#include "media.h"

#include <gst/pbutils/pbutils.h>
#include <gst/video/gstvideofilter.h>
#include <gst/video/video.h>

#include <glib-unix.h>
#include <glib/gstdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "decoders.h"

#ifndef CUDACONV_VERSION  // compiled without Meson
#define CUDACONV_VERSION "(version unknown)"
#endif

namespace media {

namespace {

bool is_refusal(GstQuery *query) {
  GstCaps *caps = nullptr;
  gboolean accepted = TRUE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) gst_query_parse_caps_result(query, &caps);
  if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) gst_query_parse_accept_caps_result(query, &accepted);
  return !accepted || (caps && gst_caps_is_empty(caps));
}

// videoflip turns its caps when a tag tells the orientation. If a query of another thread comes at that moment, half of
// the answer is of before, and no caps are left: the query is answered again.
GstPadProbeReturn answer_again(GstPad *pad, GstPadProbeInfo *info, gpointer) {
  GstQuery *const query = GST_PAD_PROBE_INFO_QUERY(info);
  for (int i = 0; i < 3 && is_refusal(query); i++) GST_PAD_QUERYFUNC(pad)(pad, GST_OBJECT_PARENT(pad), query);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn mend_caps(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(event, &caps);
  GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_caps(mended(caps).get());
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

Owned<GstElement> parsed(GstElement *element, const ErrorSlot &error) {
  Owned<GstElement> owned(element);
  error.check("cannot make the pipeline");
  gst_object_ref_sink(owned.get());
  const auto probe = [element](const char *name, guint kinds, GstPadProbeCallback callback) {
    const Owned<GstElement> named(GST_IS_BIN(element) ? gst_bin_get_by_name(GST_BIN(element), name) : nullptr);
    if (named)
      gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(named.get(), "sink")).get(), GstPadProbeType(kinds),
                        callback, nullptr, nullptr);
  };
  probe("flip", GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PULL, answer_again);
  probe("entry", GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, mend_caps);
  return owned;
}

GstClockTime stream_time(GstPad *pad, GstBuffer *buffer) {
  GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
  if (!event) return GST_CLOCK_TIME_NONE;
  const GstSegment *segment;
  gst_event_parse_segment(event, &segment);
  const GstClockTime time = gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  gst_event_unref(event);
  return time;
}

gboolean print_version(const gchar *, const gchar *, gpointer, GError **) {
  std::printf("%s %s\n", g_get_prgname(), CUDACONV_VERSION);
  std::exit(0);
}

}  // namespace

void check_value(const char *option, const gchar *value) {
  if (value && !*value) throw Failure(std::string(option) + " has an empty value");
}

GOptionEntry version_option() {
  const auto print = reinterpret_cast<gpointer>(print_version);
  return {"version", 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, print, "print the version", nullptr};
}

void post_failure(GstElement *element, const std::string &text, GQuark domain, gint code) {
  GError *error = g_error_new_literal(domain, code, text.c_str());
  gst_element_post_message(element, gst_message_new_error(GST_OBJECT(element), error, nullptr));
  g_error_free(error);
}

namespace {

// The file that is being written, and the name that it will have.
struct {
  std::string part, name;
} written;

// Where an error comes from: the file that cannot be written, or the element.
std::string origin_of(GstObject *source) {
  if (GST_IS_PIPELINE(source)) return "";  // see post_failure()
  gchar *raw = nullptr;
  if (g_object_class_find_property(G_OBJECT_GET_CLASS(source), "location"))
    g_object_get(source, "location", &raw, nullptr);
  const Owned<gchar> location(raw);
  if (location && !written.part.empty() && written.part == location.get()) return "cannot write " + written.name + ": ";
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

bool has_suffix(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() &&
         g_ascii_strcasecmp(text.c_str() + text.size() - suffix.size(), suffix.c_str()) == 0;
}

std::string uri_of(const std::string &file) {
  if (gst_uri_is_valid(file.c_str()) && !g_file_test(file.c_str(), G_FILE_TEST_EXISTS)) return file;
  ErrorSlot error;
  const Owned<gchar> uri(gst_filename_to_uri(file.c_str(), error));
  error.check(file);
  return uri.get();
}

std::string path_of(const std::string &file_or_uri) {
  const Owned<gchar> path(g_filename_from_uri(uri_of(file_or_uri).c_str(), nullptr, nullptr));
  return path ? path.get() : "";
}

Owned<GstElement> find(GstElement *bin, const char *name) {
  Owned<GstElement> element(gst_bin_get_by_name(GST_BIN(bin), name));
  if (!element) throw Failure(std::string("there is no element ") + name);
  return element;
}

Owned<GstElement> make_pipeline(const std::string &line) {
  ErrorSlot error;
  GstElement *element = gst_parse_launch_full(line.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error);
  return parsed(element, error);
}

Owned<GstElement> make_bin(const std::string &line) {
  ErrorSlot error;
  GstElement *element =
      gst_parse_bin_from_description_full(line.c_str(), TRUE, nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error);
  return parsed(element, error);
}

void watch_streams(GstElement *uridecodebin, void (*tell)(gpointer), gpointer data) {
  struct Watch {
    void (*tell)(gpointer);
    gpointer data;
    std::atomic<bool> complete{true};  // the source element has all of its pads
  };
  auto *const watch = new Watch{tell, data};
  // A source such as rtspsrc gets pads for its streams one after the other, and uridecodebin a decoder for each: it
  // tells that it has no more pads also where the next stream has not come.
  const auto wait_for = +[](GstElement *, GstElement *source, gpointer of) {
    bool later = false;
    for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(source)); pads;
         pads = pads->next) {
      auto *pad = GST_PAD_TEMPLATE(pads->data);
      later |= GST_PAD_TEMPLATE_DIRECTION(pad) == GST_PAD_SRC && GST_PAD_TEMPLATE_PRESENCE(pad) == GST_PAD_SOMETIMES;
    }
    if (!later) return;
    static_cast<Watch *>(of)->complete = false;
    const auto complete = +[](GstElement *, gpointer of) { static_cast<Watch *>(of)->complete = true; };
    g_signal_connect(source, "no-more-pads", G_CALLBACK(complete), of);  // before uridecodebin is told
  };
  const auto pass_on = +[](GstElement *, gpointer of) {
    const auto *const self = static_cast<Watch *>(of);
    if (self->complete) self->tell(self->data);
  };
  g_signal_connect(uridecodebin, "source-setup", G_CALLBACK(wait_for), watch);
  g_signal_connect_data(
      uridecodebin, "no-more-pads", G_CALLBACK(pass_on), watch,
      [](gpointer of, GClosure *) { delete static_cast<Watch *>(of); }, GConnectFlags(0));
}

namespace {

// Whether to decode a stream further: sound would be decoded in vain. A demuxer may find video in it.
gboolean decodes(GstElement *, GstPad *, GstCaps *caps, gpointer) {
  if (!g_str_has_prefix(gst_structure_get_name(gst_caps_get_structure(caps, 0)), "audio/")) return TRUE;
  GList *all = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_DEMUXER, GST_RANK_MARGINAL);
  GList *able = gst_element_factory_list_filter(all, caps, GST_PAD_SINK, FALSE);
  const bool taken_apart = able != nullptr;
  for (GList *list : {all, able}) gst_plugin_feature_list_free(list);
  return taken_apart;
}

// Links the video. Where files are joined, for example, another stream takes its place.
void take_stream(GstElement *, GstPad *pad, gpointer decoded) {
  const Owned<GstPad> sink(gst_element_get_static_pad(GST_ELEMENT(decoded), "sink"));
  Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  if (!caps) caps.reset(gst_pad_query_caps(pad, nullptr));
  const bool video = !gst_caps_is_empty(caps.get()) && !gst_caps_is_any(caps.get()) &&
                     gst_structure_has_name(gst_caps_get_structure(caps.get(), 0), "video/x-raw");
  const auto drop = +[](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_DROP; };
  if (!video)
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_DATA_DOWNSTREAM, drop, nullptr, nullptr);
  else if (!gst_pad_is_linked(sink.get()))
    gst_pad_link(pad, sink.get());
}

// A part of the input has no more streams.
void check_video(gpointer decoded) {
  auto *const queue = GST_ELEMENT(decoded);
  const Owned<GstPad> sink(gst_element_get_static_pad(queue, "sink"));
  if (gst_pad_is_linked(sink.get())) return;
  if (!Owned<GstCaps>(gst_pad_get_current_caps(sink.get())))  // the error of decoders that are missing: see Runner
    return post_failure(GST_ELEMENT(GST_OBJECT_PARENT(queue)), "there is no decoder for its video", GST_CORE_ERROR,
                        GST_CORE_ERROR_MISSING_PLUGIN);
  std::fprintf(stderr, "warning: the input goes on without the video\n");
  gst_element_call_async(
      queue, [](GstElement *, gpointer to) { gst_pad_send_event(GST_PAD(to), gst_event_new_eos()); },
      gst_object_ref(sink.get()), gst_object_unref);
}

}  // namespace

GstElement *add_source(GstElement *pipeline, const std::string &input) {
  const Owned<GstElement> decoded = find(pipeline, "decoded");
  GstElement *const source = gst_element_factory_make("uridecodebin", nullptr);
  if (!source) throw Failure("there is no element uridecodebin");
  // All streams, also those that are dropped: between parts of its input decodebin waits for the end of each one.
  g_object_set(source, "uri", uri_of(input).c_str(), nullptr);
  gst_bin_add(GST_BIN(pipeline), source);
  g_signal_connect(source, "autoplug-continue", G_CALLBACK(decodes), nullptr);
  g_signal_connect(source, "pad-added", G_CALLBACK(take_stream), decoded.get());  // both live with the pipeline
  watch_streams(source, check_video, decoded.get());
  return source;
}

Owned<GstCaps> mended(GstCaps *caps) {
  GstVideoInfo info;
  Owned<GstCaps> result(gst_caps_copy(caps));
  GstStructure *const video = gst_caps_get_structure(result.get(), 0);
  int n = 1, d = 1;
  if (!gst_caps_is_fixed(caps) || !gst_structure_has_name(video, "video/x-raw")) return result;
  // avidemux gives pixels a negative width where a header has a negative height: bare RGB whose rows go from top to
  // bottom. Scalers refuse it.
  gst_structure_get_fraction(video, "pixel-aspect-ratio", &n, &d);
  if (n < 0) gst_structure_set(video, "pixel-aspect-ratio", GST_TYPE_FRACTION, -n, d, nullptr);
  // Decoders name a range without a matrix. For YUV GStreamer then forgets the range, and it garbles grey.
  GstVideoColorimetry colors;
  const gchar *const text = gst_structure_get_string(video, "colorimetry");
  if (!text || !gst_video_colorimetry_from_string(&colors, text) || colors.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN ||
      !gst_video_info_from_caps(&info, result.get()))
    return result;
  constexpr int kMostRows = 576;  // of standard definition
  colors.matrix = info.height > kMostRows ? GST_VIDEO_COLOR_MATRIX_BT709 : GST_VIDEO_COLOR_MATRIX_BT601;
  const Owned<gchar> known(gst_video_colorimetry_to_string(&colors));
  if (known) gst_structure_set(video, "colorimetry", G_TYPE_STRING, known.get(), nullptr);
  return result;
}

int depth_of(const GstCaps *video) {
  GstVideoInfo info;
  return gst_caps_is_fixed(video) && gst_video_info_from_caps(&info, video) ? GST_VIDEO_INFO_COMP_DEPTH(&info, 0) : 0;
}

bool has_alpha(const GstCaps *video) {
  GstVideoInfo info;
  return gst_caps_is_fixed(video) && gst_video_info_from_caps(&info, video) && GST_VIDEO_INFO_HAS_ALPHA(&info);
}

void warn_of_rgb(GstElement *decoded, const std::string &reason) {
  const Owned<GstPad> pad(gst_element_get_static_pad(decoded, "src"));
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
  const int depth = caps ? depth_of(caps.get()) : 0;
  if (depth > 8) std::fprintf(stderr, "warning: of the video's %d bits 8 are kept: %s\n", depth, reason.c_str());
  if (caps && has_alpha(caps.get())) std::fprintf(stderr, "warning: the video has alpha, which is left out\n");
}

void check_display() {
  const auto is_set = [](const char *name) { return g_getenv(name) && *g_getenv(name); };
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
    throw Failure("there is no display to show a window on; -o FILE.webm writes a video instead");
  GList *sinks = gst_element_factory_list_get_elements(
      GST_ELEMENT_FACTORY_TYPE_SINK | GST_ELEMENT_FACTORY_TYPE_MEDIA_VIDEO, GST_RANK_MARGINAL);
  const bool have_sink = sinks != nullptr;
  gst_plugin_feature_list_free(sinks);
  if (!have_sink) throw Failure("no element here shows a window: install gstreamer1.0-x");
}

// ---- OutputFile -----------------------------------------------------------------------------------------------------

namespace {

// The name of the part that is being written. A signal handler may read it at any time.
std::atomic<const char *> unfinished{nullptr};

// The signals that end the program early. nohup has SIGHUP ignored.
std::vector<int> interruptions() {
  struct sigaction hangup;
  sigaction(SIGHUP, nullptr, &hangup);
  return hangup.sa_handler == SIG_IGN ? std::vector{SIGINT, SIGTERM} : std::vector{SIGINT, SIGTERM, SIGHUP};
}

// The last words of a program that ends at once.
std::atomic<const char *> farewell{"\ninterrupted\n"};

void leave(int) {
  if (const char *part = unfinished) unlink(part);
  [[maybe_unused]] const ssize_t length = write(STDERR_FILENO, farewell, std::strlen(farewell));
  _exit(kExitInterrupted);
}

// Ends the program after some milliseconds; 0: not any more.
void leave_in(int milliseconds) {
  std::fflush(stdout);
  std::signal(SIGALRM, leave);
  const itimerval timer = {{}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// The file that a link leads to, also where there is none yet.
std::string target_of(std::filesystem::path path) {
  std::error_code none;
  constexpr int kMost = 40;  // links, as for the kernel
  for (int i = 0; i < kMost && std::filesystem::is_symlink(path, none); i++)
    path = path.parent_path() / std::filesystem::read_symlink(path, none);  // an absolute one takes its place
  return path.string();
}

bool same(const struct stat &a, const struct stat &b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// NAME.PROCESS.part in the same folder, since another process may write a file of the same name. A long NAME is cut, so
// that the file system takes it.
std::string part_of(const std::string &name) {
  const std::filesystem::path path(name);
  const std::string suffix = "." + std::to_string(getpid()) + ".part";
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const long most = pathconf(folder.c_str(), _PC_NAME_MAX);  // bytes; -1: not known
  std::string last = path.filename().string();
  if (most > static_cast<long>(suffix.size()) && last.size() + suffix.size() > static_cast<size_t>(most)) {
    size_t length = static_cast<size_t>(most) - suffix.size();
    while (length > 0 && (last[length] & 0xc0) == 0x80) length--;  // not within a character
    last.resize(length);
  }
  return (path.parent_path() / (last + suffix)).string();
}

}  // namespace

AtOnce::AtOnce() {
  struct sigaction action = {}, before;
  action.sa_handler = leave;
  for (const int number : interruptions())
    if (sigaction(number, &action, &before) == 0) before_.emplace_back(number, before);
}

AtOnce::~AtOnce() {
  for (const auto &[number, before] : before_) sigaction(number, &before, nullptr);
}

OutputFile::OutputFile(const std::string &name, const std::string &input) : name_(name), part_(name) {
  if (g_file_test(name.c_str(), G_FILE_TEST_IS_DIR)) throw Failure(name + " is a folder, not a file to write");
  struct stat file, standard;
  const bool exists = !name.empty() && stat(name.c_str(), &file) == 0;
  written = {name, name};
  is_stdout_ = exists && fstat(STDOUT_FILENO, &standard) == 0 && same(file, standard);
  if (name.empty() || is_stdout_ || (exists && !S_ISREG(file.st_mode))) return;
  if (exists && access(name.c_str(), W_OK) != 0)
    throw Failure("cannot write " + name + ": " + g_strerror(errno));  // the folder would let it be replaced
  std::error_code none;
  name_ = target_of(name);  // a link stays one
  if (std::filesystem::equivalent(path_of(input), name_, none))
    throw Failure("the output is the input: name another file");
  part_ = part_of(name_);
  written = {part_, name_};
  unfinished = part_.c_str();
}

OutputFile::~OutputFile() {
  written = {};
  if (unfinished.exchange(nullptr)) g_unlink(part_.c_str());  // it has failed
}

void OutputFile::complete() {
  if (part_ == name_) return;
  struct stat before;
  if (stat(name_.c_str(), &before) == 0) chmod(part_.c_str(), before.st_mode);  // a private file stays private
  if (g_rename(part_.c_str(), name_.c_str()) != 0) throw Failure("cannot write " + name_ + ": " + g_strerror(errno));
  unfinished = nullptr;
}

// ---- Runner ---------------------------------------------------------------------------------------------------------

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
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error
  if (isatty(STDERR_FILENO) && !quiet && g_strcmp0(g_getenv("TERM"), "dumb"))
    progress_ = g_timeout_add(200, show_progress, this);
}

Runner::~Runner() {
  end_progress();
  for (const guint signal : signals_) g_source_remove(signal);
  for (const int number : interruptions()) std::signal(number, leave);  // stopping takes time
  gst_bus_remove_watch(bus_.get());
  const char *const before = farewell;
  const std::string farewell_words = std::string(g_get_prgname()) + ": " + words() + "\n";
  if (leaving_) {  // its input may be stuck
    farewell = farewell_words.c_str();
    leave_in(200);
  }
  gst_element_set_state(pipeline(), GST_STATE_NULL);
  leave_in(0);
  farewell = before;
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
  const GstClockTime time = stream_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
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
