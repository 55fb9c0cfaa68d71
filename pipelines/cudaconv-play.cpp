// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plays a file through cudaconv, and shows how an application embeds the element.
//
//   cudaconv-play clip.mp4 mask=sobel                                 in a window
//   cudaconv-play -o sobel.webm clip.mp4 mask=sobel                   into a video file
//   cudaconv-play -o sobel.png --at=2.5 clip.mp4 mask=sobel           a picture of one frame, before and after
//   cudaconv-play -o none clip.mp4 mask=sobel                         into nothing, as fast as it goes
//   cudaconv-play --animate=sigma=0.5:8 clip.mp4 mask=gauss           a property that changes while it plays
#include <gst/app/gstappsink.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gst/gst.h>
#include <gst/pbutils/pbutils.h>
#include <gst/video/video.h>

#include <glib-unix.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Release {
  void operator()(GstElement *element) const { gst_object_unref(element); }
  void operator()(GstObject *object) const { gst_object_unref(object); }
  void operator()(GstPad *pad) const { gst_object_unref(pad); }
  void operator()(GstBus *bus) const { gst_object_unref(bus); }
  void operator()(GstSample *sample) const { gst_sample_unref(sample); }
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstStructure *structure) const { gst_structure_free(structure); }
  void operator()(GMainLoop *loop) const { g_main_loop_unref(loop); }
  void operator()(GOptionContext *context) const { g_option_context_free(context); }
  void operator()(GError *error) const { g_error_free(error); }
  void operator()(gchar *text) const { g_free(text); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;

using Failure = std::runtime_error;

// An argument for GLib functions that report a GError; check() throws what they have reported.
class ErrorSlot {
 public:
  ~ErrorSlot() { g_clear_error(&error_); }
  operator GError **() { return &error_; }
  void check(const std::string &what) const {
    if (error_) throw Failure(what + ": " + error_->message);
  }

 private:
  GError *error_ = nullptr;
};

struct Options {
  std::string input, output;
  std::vector<std::string> properties;  // each as "name=value"
  std::string animate;                  // "name=from:to"
  double at = -1;                       // seconds; negative: the middle of the clip
  int width = 0;                        // pixels; 0: the clip's own
  bool quiet = false;                   // prints neither notes nor progress
};

Options parse_options(int &argc, char **&argv) {
  gchar *output = nullptr, *animate = nullptr;
  gchar **rest = nullptr;
  gdouble at = -1;
  gint width = 0;
  gboolean quiet = FALSE;
  const GOptionEntry entries[] = {
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "a video (.webm), a before/after picture (.png), or none",
       "FILE"},
      {"at", 0, 0, G_OPTION_ARG_DOUBLE, &at, "which moment the picture shows (default: the middle)", "SECONDS"},
      {"width", 0, 0, G_OPTION_ARG_INT, &width, "scale the clip to this width before it is filtered", "PIXELS"},
      {"animate", 0, 0, G_OPTION_ARG_STRING, &animate, "move a number from the start to the end", "PROPERTY=FROM:TO"},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no notes and no progress", nullptr},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, nullptr, "INPUT [PROPERTY=VALUE...]"},
      {nullptr, 0, 0, G_OPTION_ARG_NONE, nullptr, nullptr, nullptr},
  };
  Owned<GOptionContext> context(g_option_context_new("- play a video file through cudaconv"));
  g_option_context_add_main_entries(context.get(), entries, nullptr);
  g_option_context_add_group(context.get(), gst_init_get_option_group());
  ErrorSlot error;
  g_option_context_parse(context.get(), &argc, &argv, error);

  Options options;
  options.at = at;
  options.width = width;
  options.quiet = quiet;
  if (output) options.output = Owned<gchar>(output).get();
  if (animate) options.animate = Owned<gchar>(animate).get();
  for (gchar **word = rest; word && *word; word++) {
    if (word == rest)
      options.input = *word;
    else
      options.properties.push_back(*word);
  }
  g_strfreev(rest);
  error.check("the command line");
  if (options.input.empty()) throw Failure("no input file; cudaconv-play --help explains the arguments");
  return options;
}

bool has_suffix(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Plays one file through one filter to one destination.
class Player {
 public:
  explicit Player(const Options &options) : options_(options), loop_(g_main_loop_new(nullptr, FALSE)) {
    // Each queue gives decoding, filtering and encoding a thread of its own.
    std::string source = "uridecodebin name=source ! videoconvert ! ";
    if (options.width > 0)
      source += "videoscale ! video/x-raw,pixel-aspect-ratio=1/1,width=" + std::to_string(options.width) + " ! ";
    source += "queue ! ";
    if (has_suffix(options.output, ".webm")) {
      create(source +
             "cudaconv name=cudaconv ! queue ! videoconvert"
             " ! vp8enc deadline=1 cpu-used=-10 end-usage=cq cq-level=16 min-quantizer=4 max-quantizer=40"
             " target-bitrate=20000000 keyframe-max-dist=50"
             " ! webmmux ! filesink name=sink");
      g_object_set(get("sink").get(), "location", part().c_str(), nullptr);
    } else if (has_suffix(options.output, ".png")) {
      create(
          source +
          "tee name=both"
          " ! queue ! videoconvert ! video/x-raw,format=RGB ! appsink name=before sync=false"
          " both."
          " ! queue ! cudaconv name=cudaconv ! videoconvert ! video/x-raw,format=RGB ! appsink name=after sync=false");
    } else if (options.output.empty()) {
      create(source + "cudaconv name=cudaconv ! queue ! videoconvert ! autovideosink name=sink");
    } else if (options.output == "none") {
      create(source + "cudaconv name=cudaconv ! fakesink sync=false");
    } else {
      throw Failure("the output is none, or a file that ends in .webm or .png, not as " + options.output + " does");
    }

    ErrorSlot error;
    Owned<gchar> uri(gst_uri_is_valid(options.input.c_str()) ? g_strdup(options.input.c_str())
                                                             : gst_filename_to_uri(options.input.c_str(), error));
    error.check(options.input);
    g_object_set(get("source").get(), "uri", uri.get(), nullptr);

    filter_ = get("cudaconv");
    for (const std::string &setting : options.properties) set_property(setting);
    if (options.output.empty() && !g_getenv("DISPLAY") && !g_getenv("WAYLAND_DISPLAY"))
      throw Failure("there is no display to show a window on; -o FILE.webm writes a video instead");

    Owned<GstPad> pad(gst_element_get_static_pad(filter_.get(), "src"));
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, count_frame, this, nullptr);
    bus_.reset(gst_element_get_bus(pipeline_.get()));
    gst_bus_add_watch(bus_.get(), on_message, this);
  }

  ~Player() {
    gst_bus_remove_watch(bus_.get());
    gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
    if (writes_file()) g_unlink(part().c_str());  // only exists after a failure
  }

  Player(const Player &) = delete;
  Player &operator=(const Player &) = delete;

  void run() {
    // In PAUSED the duration is known, and the first frame has gone through the filter.
    switch (gst_element_set_state(pipeline_.get(), GST_STATE_PAUSED)) {
      case GST_STATE_CHANGE_FAILURE:
        while (g_main_context_iteration(nullptr, FALSE)) continue;  // the reason is on the bus
        throw Failure(failure_.empty() ? "the pipeline does not start" : failure_);
      case GST_STATE_CHANGE_NO_PREROLL:  // a live source gives nothing before PLAYING
        break;
      default:
        wait();
    }
    if (!gst_element_query_duration(pipeline_.get(), GST_FORMAT_TIME, &duration_)) duration_ = -1;
    if (!options_.animate.empty()) animate();
    if (has_suffix(options_.output, ".png"))
      save_picture();
    else
      play();
    const std::string report = describe();                    // in READY the element forgets its backend
    gst_element_set_state(pipeline_.get(), GST_STATE_READY);  // closes the file
    if (writes_file() && g_rename(part().c_str(), options_.output.c_str()) != 0)
      throw Failure("cannot write " + options_.output + ": " + g_strerror(errno));
    std::printf("%s\n", report.c_str());
  }

 private:
  void create(const std::string &description) {
    ErrorSlot error;
    pipeline_.reset(gst_parse_launch_full(description.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error));
    error.check("cannot make the pipeline");
    gst_object_ref_sink(pipeline_.get());
  }

  Owned<GstElement> get(const char *name) const {
    return Owned<GstElement>(gst_bin_get_by_name(GST_BIN(pipeline_.get()), name));
  }

  bool writes_file() const { return !options_.output.empty() && options_.output != "none"; }

  // The file that is written, which gets the name of the output when it is complete.
  std::string part() const { return options_.output + ".part"; }

  void set_property(const std::string &setting) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) throw Failure("expected PROPERTY=VALUE, not " + setting);
    const std::string name = setting.substr(0, equals);
    GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(filter_.get()), name.c_str());
    if (!spec) throw Failure("cudaconv has no property " + name + "; gst-inspect-1.0 cudaconv lists them");
    GValue value = G_VALUE_INIT;
    g_value_init(&value, spec->value_type);
    const bool understood = gst_value_deserialize_with_pspec(&value, setting.c_str() + equals + 1, spec);
    if (understood) g_object_set_property(G_OBJECT(filter_.get()), name.c_str(), &value);
    g_value_unset(&value);
    if (!understood) throw Failure(setting + " is not a value of that property" + names_of(spec));
  }

  // The values to choose from, where the property is an enumeration.
  static std::string names_of(GParamSpec *spec) {
    if (!G_IS_PARAM_SPEC_ENUM(spec)) return "";
    std::string text = "; these are:";
    for (const GEnumValue *v = G_PARAM_SPEC_ENUM(spec)->enum_class->values; v->value_nick; v++)
      text += std::string(" ") + v->value_nick;
    return text;
  }

  // Makes a property follow a straight line over the length of the clip. The element itself reads the value for the
  // time of each frame.
  void animate() {
    const std::string &line = options_.animate;
    const size_t equals = line.find('='), colon = line.find(':');
    if (equals == std::string::npos || colon == std::string::npos || colon < equals)
      throw Failure("expected --animate=PROPERTY=FROM:TO, not " + line);
    const std::string name = line.substr(0, equals);
    GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(filter_.get()), name.c_str());
    if (!spec || !(spec->flags & GST_PARAM_CONTROLLABLE)) throw Failure("the property " + name + " cannot be animated");
    if (duration_ <= 0) throw Failure("the length of the input is not known: nothing can be animated over it");

    GstControlSource *source = gst_interpolation_control_source_new();
    g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
    auto *points = GST_TIMED_VALUE_CONTROL_SOURCE(source);
    gst_timed_value_control_source_set(points, 0, g_ascii_strtod(line.c_str() + equals + 1, nullptr));
    gst_timed_value_control_source_set(points, duration_, g_ascii_strtod(line.c_str() + colon + 1, nullptr));
    auto *filter = GST_OBJECT(filter_.get());
    gst_object_add_control_binding(filter, gst_direct_control_binding_new_absolute(filter, name.c_str(), source));
    gst_object_unref(source);
  }

  void save_picture() {
    gint64 at = options_.at >= 0 ? static_cast<gint64>(options_.at * GST_SECOND) : duration_ / 2;
    // A still picture has no duration, and its only frame is there already.
    if (duration_ > 0) {
      at = std::clamp<gint64>(at, 0, duration_ - 1);
      if (gst_element_seek_simple(pipeline_.get(), GST_FORMAT_TIME,
                                  GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE), at))
        wait();
    }
    // Each sink holds the first frame that has reached it.
    Owned<GstSample> picture = side_by_side(preroll("before").get(), preroll("after").get());
    Owned<GstCaps> caps(gst_caps_new_empty_simple("image/png"));
    ErrorSlot error;
    Owned<GstSample> png(gst_video_convert_sample(picture.get(), caps.get(), 10 * GST_SECOND, error));
    error.check("cannot make a PNG");
    GstMapInfo map;
    if (!gst_buffer_map(gst_sample_get_buffer(png.get()), &map, GST_MAP_READ)) throw Failure("cannot read the PNG");
    g_file_set_contents(part().c_str(), reinterpret_cast<const gchar *>(map.data), map.size, error);
    gst_buffer_unmap(gst_sample_get_buffer(png.get()), &map);
    error.check(options_.output);
  }

  Owned<GstSample> preroll(const char *name) const {
    Owned<GstElement> sink = get(name);
    Owned<GstSample> sample(gst_app_sink_pull_preroll(GST_APP_SINK(sink.get())));
    if (!sample) throw Failure("there is no frame at that moment");
    return sample;
  }

  // Joins two frames of the same size to one RGB frame.
  static Owned<GstSample> side_by_side(GstSample *left, GstSample *right) {
    GstVideoInfo half, whole;
    if (!gst_video_info_from_caps(&half, gst_sample_get_caps(left)) ||
        !gst_video_info_set_format(&whole, GST_VIDEO_FORMAT_RGB, 2 * half.width, half.height))
      throw Failure("the frame is too large for a picture");
    GstBuffer *buffer = gst_buffer_new_allocate(nullptr, whole.size, nullptr);
    GstVideoFrame target, source;
    gst_video_frame_map(&target, &whole, buffer, GST_MAP_WRITE);
    const size_t row = 3 * half.width;  // bytes a row
    size_t offset = 0;
    for (GstSample *sample : {left, right}) {
      gst_video_frame_map(&source, &half, gst_sample_get_buffer(sample), GST_MAP_READ);
      for (int y = 0; y < half.height; y++)
        std::memcpy(static_cast<uint8_t *>(target.data[0]) + y * target.info.stride[0] + offset,
                    static_cast<const uint8_t *>(source.data[0]) + y * source.info.stride[0], row);
      gst_video_frame_unmap(&source);
      offset += row;
    }
    gst_video_frame_unmap(&target);
    Owned<GstCaps> caps(gst_video_info_to_caps(&whole));
    Owned<GstSample> sample(gst_sample_new(buffer, caps.get(), nullptr, nullptr));
    gst_buffer_unref(buffer);
    return sample;
  }

  void play() {
    const guint progress = isatty(STDERR_FILENO) && !options_.quiet ? g_timeout_add(200, show_progress, this) : 0;
    const guint interrupt = g_unix_signal_add(SIGINT, on_interrupt, this);
    playing_ = true;
    gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
    wait();
    seconds_ = (g_get_monotonic_time() - first_frame_) / 1e6;
    g_source_remove(interrupt);
    if (progress) {
      g_source_remove(progress);
      std::fprintf(stderr, "\r\033[K");
    }
  }

  // Waits until the bus reports that the state or position is reached, or that the stream has ended.
  void wait() {
    g_main_loop_run(loop_.get());
    if (!failure_.empty()) throw Failure(failure_);
  }

  // A line that tells what did the work, and how fast.
  std::string describe() const {
    GstStructure *raw = nullptr;
    g_object_get(filter_.get(), "stats", &raw, nullptr);
    Owned<GstStructure> stats(raw);
    const auto number = [&](const char *name) {
      guint64 value = 0;
      gst_structure_get_uint64(stats.get(), name, &value);
      return static_cast<double>(value);
    };
    const auto text = [&](const char *name) {
      const gchar *value = gst_structure_get_string(stats.get(), name);
      return std::string(value ? value : "none");
    };
    std::string line = "backend " + text("backend") + ", method " + text("method");
    gchar rate[100];
    if (playing_ && frames_ > 1) {
      // The rate leaves out the first frame, for which plugins and the device start up.
      const double frames = static_cast<double>(frames_);
      g_snprintf(rate, sizeof rate, ", %.0f frames, %.1f frames/s ", frames, (frames - 1) / seconds_);
      line += rate;
      line += options_.output.empty() ? "as the clip has it"
              : writes_file()         ? "with decoding and encoding"
                                      : "with decoding";
    }
    if (number("device-time") > 0) {
      g_snprintf(rate, sizeof rate, ", %.3f ms a frame on the GPU", number("device-time") / number("frames") / 1e6);
      line += rate;
    }
    return line;
  }

  static GstPadProbeReturn count_frame(GstPad *, GstPadProbeInfo *, gpointer data) {
    auto *self = static_cast<Player *>(data);
    if (self->frames_++ == 0) self->first_frame_ = g_get_monotonic_time();
    return GST_PAD_PROBE_OK;
  }

  static gboolean show_progress(gpointer data) {
    auto *self = static_cast<Player *>(data);
    gint64 position = 0;
    if (self->duration_ > 0 && gst_element_query_position(self->pipeline_.get(), GST_FORMAT_TIME, &position))
      std::fprintf(stderr, "\r%3d %%", static_cast<int>(std::min(100.0, 100.0 * position / self->duration_)));
    std::fprintf(stderr, "  frame %llu ", static_cast<unsigned long long>(self->frames_));
    if (self->duration_ <= 0) std::fprintf(stderr, "\r");
    return G_SOURCE_CONTINUE;
  }

  // Ends the stream with EOS, so that the file written so far can be played. A second interrupt ends the program at
  // once.
  static gboolean on_interrupt(gpointer data) {
    gst_element_send_event(static_cast<Player *>(data)->pipeline_.get(), gst_event_new_eos());
    return G_SOURCE_REMOVE;
  }

  static gboolean on_message(GstBus *, GstMessage *message, gpointer data) {
    auto *self = static_cast<Player *>(data);
    switch (GST_MESSAGE_TYPE(message)) {
      case GST_MESSAGE_ERROR:
        self->fail(message_text(message, gst_message_parse_error));
        break;
      case GST_MESSAGE_WARNING:
        std::fprintf(stderr, "warning: %s\n", message_text(message, gst_message_parse_warning).c_str());
        break;
      case GST_MESSAGE_INFO:
        if (!self->options_.quiet)
          std::fprintf(stderr, "%s\n", message_text(message, gst_message_parse_info, false).c_str());
        break;
      case GST_MESSAGE_ELEMENT:
        if (gst_is_missing_plugin_message(message))
          std::fprintf(stderr, "missing: %s\n",
                       Owned<gchar>(gst_missing_plugin_message_get_description(message)).get());
        break;
      case GST_MESSAGE_ASYNC_DONE:
        if (!self->playing_) g_main_loop_quit(self->loop_.get());
        break;
      case GST_MESSAGE_EOS:
        g_main_loop_quit(self->loop_.get());
        break;
      case GST_MESSAGE_LATENCY:
        gst_bin_recalculate_latency(GST_BIN(self->pipeline_.get()));
        break;
      default:
        break;
    }
    return G_SOURCE_CONTINUE;
  }

  // The text of a message by the element. An error also has its debug text, which often holds the reason.
  static std::string message_text(GstMessage *message, void (*parse)(GstMessage *, GError **, gchar **),
                                  bool with_debug = true) {
    GError *error = nullptr;
    gchar *debug = nullptr;
    parse(message, &error, &debug);
    std::string text = GST_OBJECT_NAME(GST_MESSAGE_SRC(message));
    text += std::string(": ") + (error ? error->message : "");
    if (debug && with_debug) text += std::string("\n  ") + debug;
    g_clear_error(&error);
    g_free(debug);
    return text;
  }

  void fail(const std::string &text) {
    if (failure_.empty()) failure_ = text;  // the first error is the cause
    g_main_loop_quit(loop_.get());
  }

  const Options options_;
  Owned<GMainLoop> loop_;
  Owned<GstElement> pipeline_, filter_;
  Owned<GstBus> bus_;
  std::string failure_;
  bool playing_ = false;
  gint64 duration_ = -1;                // nanoseconds; -1: not known
  double seconds_ = 0;                  // from the first frame out of the filter to the end
  std::atomic<gint64> first_frame_{0};  // the time of the first frame, in microseconds of the monotonic clock
  std::atomic<uint64_t> frames_{0};     // number of frames that have left the filter
};

}  // namespace

int main(int argc, char **argv) {
  std::setlocale(LC_ALL, "");
  try {
    const Options options = parse_options(argc, argv);  // also initialises GStreamer
    Player(options).run();
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cudaconv-play: %s\n", error.what());
    return 1;
  }
}
