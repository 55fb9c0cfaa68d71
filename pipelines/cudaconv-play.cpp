// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plays or converts a file through cudaconv, and shows how an application embeds the element.
//
//   cudaconv-play clip.mp4 mask=sobel                                 in a window, with sound
//   cudaconv-play -o sobel.webm clip.mp4 mask=sobel                   into a video file (.webm, .mkv, .mp4), with sound
//   cudaconv-play -o sobel.png --at=2.5 clip.mp4 mask=sobel           a picture of one frame, before and after
//   cudaconv-play -o sobel.png photo.jpg mask=sobel                   a picture
//   cudaconv-play -o filtered photos mask=sobel                       all pictures of a folder
//   cudaconv-play -o none clip.mp4 mask=sobel                         into nothing, as fast as it goes
//   cudaconv-play --preset="Sharpen scans" -o sharp.png scan.png      by a preset, of cudaconv and of roihold
//   cudaconv-play --animate=sigma=0:8 clip.mp4 mask=gauss             a property that changes while it plays
#include <gst/app/gstappsink.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gst/video/video.h>

#include <glib/gstdio.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "media.h"
#include "stills.h"

namespace {

using namespace media;

struct Options {
  std::string input, output, preset;
  std::vector<std::string> properties;  // each as "name=value"; they are set after the preset
  std::vector<std::string> animations;  // each as "name=from:to"
  double at = -1;                       // seconds; negative: the middle of the clip
  int width = 0;                        // pixels; 0: the clip's own
  bool quiet = false;                   // prints neither notes nor progress
};

constexpr char kSummary[] =
    "Inputs are videos that GStreamer decodes, PNG and JPEG pictures, and folders of pictures. A video may be a URI, "
    "such as rtsp://HOST/PATH, or v4l2:///dev/video0 for a camera.\n"
    "Videos are encoded by the encoders that are installed. Sound, subtitles and tags are kept where the container "
    "takes them. The program prints what it leaves out. Ctrl-C finishes the file early.\n"
    "PROPERTY is of cudaconv: mask selects the filter, and size, sigma, amount and roi are among the others. "
    "gst-inspect-1.0 cudaconv lists all properties and masks.";
constexpr char kExamples[] =
    "Examples:\n"
    "  cudaconv-play -o blurred.webm clip.mp4 mask=gauss sigma=3\n"
    "  cudaconv-play -o sharp.png photo.jpg mask=unsharp amount=1.5\n"
    "  cudaconv-play -o scans-sharp --preset='Sharpen scans' scans";

Options parse_options(int &argc, char **&argv) {
  gchar *output = nullptr, *preset = nullptr;
  gchar **animations = nullptr, **rest = nullptr;
  gdouble at = -1;
  gint width = 0;
  gboolean quiet = FALSE;
  const GOptionEntry entries[] = {
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
       "write a video (.webm, .mkv, .mp4), a picture (.png, .jpg), a folder if INPUT is a folder, or none (default: a "
       "window)",
       "FILE"},
      {"at", 0, 0, G_OPTION_ARG_DOUBLE, &at, "the moment of a video that a picture shows (default: the middle)",
       "SECONDS"},
      {"width", 0, 0, G_OPTION_ARG_INT, &width, "scale to this width before the filter", "PIXELS"},
      {"preset", 'p', 0, G_OPTION_ARG_STRING, &preset, "set what a preset says, and then the properties", "NAME"},
      {"animate", 0, 0, G_OPTION_ARG_STRING_ARRAY, &animations,
       "change a number from the start of the video to its end; may be repeated", "PROPERTY=FROM:TO"},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "print no notes and no progress", nullptr},
      version_option(),
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, nullptr, "INPUT [PROPERTY=VALUE...]"},
      {nullptr, 0, 0, G_OPTION_ARG_NONE, nullptr, nullptr, nullptr},
  };
  Owned<GOptionContext> context(g_option_context_new("- play or convert a file through cudaconv"));
  g_option_context_set_summary(context.get(), kSummary);
  g_option_context_set_description(context.get(), kExamples);
  g_option_context_add_main_entries(context.get(), entries, nullptr);
  g_option_context_add_group(context.get(), gst_init_get_option_group());
  ErrorSlot error;
  g_option_context_parse(context.get(), &argc, &argv, error);

  check_value("--output", output);
  check_value("--preset", preset);
  Options options;
  options.at = at;
  options.width = width;
  options.quiet = quiet;
  if (output) options.output = Owned<gchar>(output).get();
  if (preset) options.preset = Owned<gchar>(preset).get();
  for (gchar **text = animations; text && *text; text++) options.animations.push_back(*text);
  g_strfreev(animations);
  for (gchar **word = rest; word && *word; word++) {
    if (word == rest)
      options.input = *word;
    else
      options.properties.push_back(*word);
  }
  g_strfreev(rest);
  error.check("the command line");
  constexpr double kFarthest = 1e9;  // seconds, which are nanoseconds in 64 bits
  if (at != -1 && !(at >= 0 && at < kFarthest)) throw Failure("--at takes seconds, from 0 on");
  if (width < 0 || width > 32767) throw Failure("--width takes pixels, from 1 to 32767");  // as videoscale does
  if (options.input.empty()) throw Failure("no input file; cudaconv-play --help explains the arguments");
  return options;
}

// ---- The filter -----------------------------------------------------------------------------------------------------

// Whether the preset or a property is of roihold.
bool needs_roihold(const Options &options) {
  const Owned<GstElement> filter = make_pipeline("cudaconv"), hold = make_pipeline("roihold");
  const auto has = [](const Owned<GstElement> &element, const std::string &name) {
    return g_object_class_find_property(G_OBJECT_GET_CLASS(element.get()), name.c_str()) != nullptr;
  };
  return has_preset(hold.get(), options.preset) ||
         std::any_of(options.properties.begin(), options.properties.end(), [&](const std::string &setting) {
           const std::string name = setting.substr(0, setting.find('='));
           return has(hold, name) && !has(filter, name);
         });
}

// The filter and the elements before it: they turn pictures as the orientation tag says, and scale them.
std::string filter_line(const Options &options) {
  std::string line = std::string("videoconvert name=entry ! videoflip name=flip video-direction=") +
                     direction_of(path_of(options.input)) + " ! ";
  if (options.width > 0)
    line += "videoscale ! video/x-raw,pixel-aspect-ratio=1/1,width=" + std::to_string(options.width) + " ! ";
  if (needs_roihold(options)) line += "roihold name=roihold ! ";
  return line + "cudaconv name=cudaconv";
}

struct End {
  GstTimedValueControlSource *const points;
  const double value;
};

// With the first frame the length is known.
GstPadProbeReturn set_end(GstPad *pad, GstPadProbeInfo *, gpointer data) {
  const auto *end = static_cast<const End *>(data);
  gint64 duration = -1;
  if (gst_pad_peer_query_duration(pad, GST_FORMAT_TIME, &duration) && duration > 0)
    gst_timed_value_control_source_set(end->points, duration, end->value);
  else
    post_failure(GST_ELEMENT(GST_OBJECT_PARENT(pad)),
                 "the length of the input is not known: nothing can be animated over it");
  return GST_PAD_PROBE_REMOVE;
}

// Makes a property follow a straight line over the length of the clip. The element itself reads the value for the time
// of each frame.
void animate(GstElement *element, const std::string &line) {
  const size_t equals = line.find('='), colon = line.find(':');
  if (equals == std::string::npos || colon == std::string::npos || colon < equals)
    throw Failure("expected --animate=PROPERTY=FROM:TO, not " + line);
  const std::string name = line.substr(0, equals);
  GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name.c_str());
  if (!spec || !(spec->flags & GST_PARAM_CONTROLLABLE)) throw Failure("the property " + name + " cannot be animated");
  auto *filter = GST_OBJECT(element);
  if (Owned<GstObject>(GST_OBJECT_CAST(gst_object_get_control_binding(filter, name.c_str()))))
    throw Failure("--animate names the property " + name + " twice");
  // As if set: this refuses what is no number, and numbers that the property does not take.
  for (const std::string &value : {line.substr(colon + 1), line.substr(equals + 1, colon - equals - 1)})
    set_property({element}, name + "=" + value);

  GstControlSource *source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
  auto *points = GST_TIMED_VALUE_CONTROL_SOURCE(source);
  gst_timed_value_control_source_set(points, 0, g_ascii_strtod(line.c_str() + equals + 1, nullptr));
  gst_object_add_control_binding(filter, gst_direct_control_binding_new_absolute(filter, name.c_str(), source));
  gst_object_unref(source);  // the binding keeps it
  const Owned<GstPad> pad(gst_element_get_static_pad(element, "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, set_end,
                    new End{points, g_ascii_strtod(line.c_str() + colon + 1, nullptr)},
                    [](gpointer end) { delete static_cast<End *>(end); });
}

// Returns the cudaconv in a bin or pipeline. It and the roihold before it, if there is one, get the preset, the
// properties and the animation of the command line.
Owned<GstElement> set_up(GstElement *bin, const Options &options) {
  Owned<GstElement> filter = find(bin, "cudaconv");
  const Owned<GstElement> hold(gst_bin_get_by_name(GST_BIN(bin), "roihold"));
  Filters both = {filter.get()};
  if (hold) both.push_back(hold.get());
  if (!options.preset.empty()) load_preset(both, options.preset);
  for (const std::string &setting : options.properties) set_property(both, setting);
  for (const std::string &animation : options.animations) animate(filter.get(), animation);
  return filter;
}

// A line that tells what did the work, and how fast.
void print_report(GstElement *filter, const Runner &runner, const char *as) {
  GstStructure *raw = nullptr;
  g_object_get(filter, "stats", &raw, nullptr);
  const Owned<GstStructure> stats(raw);
  const auto text = [&](const char *name) {
    const gchar *value = gst_structure_get_string(stats.get(), name);
    return value ? value : "none";
  };
  guint64 time = 0, frames = 0;
  gst_structure_get_uint64(stats.get(), "device-time", &time);
  gst_structure_get_uint64(stats.get(), "frames", &frames);
  std::printf("backend %s, method %s", text("backend"), text("method"));
  if (runner.rate() > 0 && *as)
    std::printf(", %llu frames, %.1f frames/s %s", static_cast<unsigned long long>(runner.frames()), runner.rate(), as);
  if (time > 0)
    std::printf(", %.3f ms a frame on the GPU", static_cast<double>(time) / static_cast<double>(frames) / 1e6);
  std::printf("\n");
}

// ---- Videos ---------------------------------------------------------------------------------------------------------

// Plays to the end.
void play(Owned<GstElement> pipeline, GstElement *filter, const Options &options, const char *as,
          OutputFile *file = nullptr) {
  Runner runner(std::move(pipeline), filter, options.quiet);
  runner.preroll();  // tells the duration
  runner.play();
  print_report(filter, runner, as);  // in READY the element forgets its backend
  runner.stop();
  if (file) file->complete();
  runner.check_interruption();
}

void show(const Options &options) {
  Owned<GstElement> pipeline = make_pipeline("playbin name=player"), bin = make_bin(filter_line(options));
  const Owned<GstElement> filter = set_up(bin.get(), options);
  check_display();
  g_object_set(pipeline.get(), "video-filter", bin.get(), "uri", uri_of(options.input).c_str(), nullptr);
  play(std::move(pipeline), filter.get(), options, "as the clip has it");
}

void measure(const Options &options) {
  Owned<GstElement> pipeline = make_pipeline("queue name=decoded ! " + filter_line(options) + " ! fakesink sync=false");
  add_source(pipeline.get(), options.input);
  const Owned<GstElement> filter = set_up(pipeline.get(), options);
  play(std::move(pipeline), filter.get(), options, "with decoding");
}

void convert(const Options &options) {
  OutputFile file(options.output, options.input);
  Owned<GstElement> bin = make_bin(filter_line(options));
  const Owned<GstElement> filter = set_up(bin.get(), options);
  play(make_converter(options.input, file.part(), options.output, std::move(bin), Covers::kKeep), filter.get(), options,
       "with decoding and encoding", &file);
}

// ---- A picture of a video -------------------------------------------------------------------------------------------

// Waits for the first frame of a live source: the others have prerolled.
Owned<GstSample> preroll_of(Runner &runner, const char *name) {
  const Owned<GstElement> element = find(runner.pipeline(), name);
  auto *sink = GST_APP_SINK(element.get());
  Owned<GstSample> sample;
  while (!sample && !gst_app_sink_is_eos(sink)) {
    runner.check_failure();
    sample.reset(gst_app_sink_try_pull_preroll(sink, 100 * GST_MSECOND));
  }
  if (!sample) throw Failure("there is no frame at that moment");
  return sample;
}

// Joins two frames of the same size to one RGB frame.
Owned<GstSample> side_by_side(GstSample *left, GstSample *right) {
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

bool is_png(const std::string &name) {
  return has_suffix(name, ".png");
}

// Lets no frame pass before a moment of an input whose parts may begin their time anew.
struct From {
  gint64 moment;  // nanoseconds from the beginning; -1: the middle
  GstClockTime last = 0, begin = 0;

  static GstPadProbeReturn wait(GstPad *pad, GstPadProbeInfo *info, gpointer from) {
    auto *self = static_cast<From *>(from);
    gint64 duration = -1;
    if (self->moment < 0 && gst_pad_query_duration(pad, GST_FORMAT_TIME, &duration)) self->moment = duration / 2;
    GstBuffer *const frame = GST_PAD_PROBE_INFO_BUFFER(info);
    const GstClockTime end =
        GST_BUFFER_PTS(frame) + (GST_BUFFER_DURATION_IS_VALID(frame) ? GST_BUFFER_DURATION(frame) : 1);
    const GstClockTime time = time_at(pad, end);
    if (self->begin + time < self->last) self->begin = self->last;
    self->last = self->begin + time;
    return static_cast<gint64>(self->last) > self->moment ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
  }
};

// A demuxer that has told all streams gets another one, or loses one, which then has no parent.
void stop_seeking(GstElement *demuxer, GstPad *pad, gpointer reads) {
  const bool told =
      g_object_get_data(G_OBJECT(demuxer), "no-more-pads") || GST_OBJECT_PARENT(pad) != GST_OBJECT(demuxer);
  if (!told || GST_STATE_TARGET(demuxer) <= GST_STATE_READY) return;  // it is stopped
  *static_cast<std::atomic<bool> *>(reads) = true;
  post_failure(demuxer, "its streams are replaced");
}

void watch_demuxer(GstBin *, GstBin *, GstElement *element, gpointer reads) {
  GstElementFactory *const factory = gst_element_get_factory(element);
  if (!factory || !gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DEMUXER)) return;
  const auto note =
      +[](GstElement *demuxer, gpointer) { g_object_set_data(G_OBJECT(demuxer), "no-more-pads", demuxer); };
  g_signal_connect(element, "no-more-pads", G_CALLBACK(note), nullptr);
  for (const char *signal : {"pad-added", "pad-removed"})
    g_signal_connect(element, signal, G_CALLBACK(stop_seeking), reads);
}

// Writes the picture. Its moment is found by a seek. Where that fails, `reads` is set: decodebin does not seek in an
// input whose streams are replaced, for example. If `reads` is set, the input is read from its beginning.
void write_comparison(const Options &options, OutputFile *file, std::atomic<bool> *reads) {
  const std::string line = filter_line(options), rgb = " ! videoconvert ! video/x-raw,format=RGB ! appsink sync=false ";
  const size_t cut = line.rfind("cudaconv ");
  Owned<GstElement> pipeline =
      make_pipeline("queue name=decoded ! " + line.substr(0, cut) + "tee name=both ! queue" + rgb +
                    "name=before both. ! queue ! " + line.substr(cut) + rgb + "name=after");
  GstElement *const source = add_source(pipeline.get(), options.input);
  const Owned<GstElement> filter = set_up(pipeline.get(), options), decoded = find(pipeline.get(), "decoded");
  const std::string path = path_of(options.input);
  const bool rereads = path.empty() ? !g_str_has_prefix(options.input.c_str(), "fd:")
                                    : g_file_test(path.c_str(), G_FILE_TEST_IS_REGULAR);
  const bool seeks = !*reads, again = seeks && rereads;
  From from = {options.at >= 0 ? static_cast<gint64>(options.at * GST_SECOND) : -1};
  if (seeks) {
    g_signal_connect(source, "deep-element-added", G_CALLBACK(watch_demuxer), reads);
  } else {
    gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(decoded.get(), "src")).get(), GST_PAD_PROBE_TYPE_BUFFER,
                      From::wait, &from, nullptr);
  }
  Runner runner(std::move(pipeline), filter.get(), options.quiet);
  runner.preroll();
  const auto wanted = options.at >= 0 ? static_cast<gint64>(options.at * GST_SECOND) : runner.duration() / 2;
  if (seeks && runner.duration() > 0 && wanted > runner.duration()) throw Failure("there is no frame at that moment");
  const auto move_to = [&](gint64 time) {
    if (!gst_element_seek_simple(runner.pipeline(), GST_FORMAT_TIME,
                                 GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE), time))
      return false;
    try {
      runner.wait();
    } catch (const Interrupted &) {
      throw;
    } catch (const Failure &) {  // y4mdec of GStreamer 1.22 seeks into the midst of a frame
      *reads = again;
      throw;
    }
    return true;
  };
  if (seeks && runner.duration() > 0 && move_to(std::clamp<gint64>(wanted, 0, runner.duration() - 1))) {
    // The demuxer of GIFs finds nothing but the beginning.
    if (options.at < 0 && gst_app_sink_is_eos(GST_APP_SINK(find(runner.pipeline(), "after").get()))) move_to(0);
  } else if (seeks && options.at > 0) {  // its only frame, or its first, is there already
    runner.check_failure();
    *reads = again;
    throw Failure("the input cannot be moved to that moment: leave --at out");
  }
  if (options.at >= 0 && gst_app_sink_is_eos(GST_APP_SINK(find(runner.pipeline(), "after").get()))) {
    *reads = *reads || again;
    throw Failure("there is no frame at that moment: leave --at out");
  }
  warn_of_rgb(decoded.get(), "a picture of a video has no more");
  const AtOnce writing;
  // Each sink holds the first frame that has reached it.
  const Owned<GstSample> picture = side_by_side(preroll_of(runner, "before").get(), preroll_of(runner, "after").get());
  const Owned<GstCaps> caps(gst_caps_new_empty_simple(is_png(options.output) ? "image/png" : "image/jpeg"));
  ErrorSlot error;
  const Owned<GstSample> coded(gst_video_convert_sample(picture.get(), caps.get(), 10 * GST_SECOND, error));
  error.check("cannot make a picture");
  GstMapInfo map;
  GstBuffer *const bytes = gst_sample_get_buffer(coded.get());
  if (!gst_buffer_map(bytes, &map, GST_MAP_READ)) throw Failure("cannot read the picture");
  FILE *const to = g_fopen(file->part().c_str(), "wb");
  bool written = to && std::fwrite(map.data, 1, map.size, to) == map.size;
  written &= to && std::fclose(to) == 0;
  gst_buffer_unmap(bytes, &map);
  if (!written) throw Failure("cannot write " + options.output + ": " + g_strerror(errno));
  print_report(filter.get(), runner, "");
  file->complete();
}

void compare(const Options &options) {
  OutputFile file(options.output, options.input);
  std::atomic<bool> reads{false};
  try {
    write_comparison(options, &file, &reads);
  } catch (const Interrupted &) {
    throw;
  } catch (const Failure &) {
    if (!reads) throw;
    write_comparison(options, &file, &reads);
  }
}

// ---- Pictures -------------------------------------------------------------------------------------------------------

Stills stills_for(const Options &options) {
  return Stills(
      filter_line(options), [&options](GstElement *pipeline) { return set_up(pipeline, options); },
      [](GstElement *filter, const Runner &runner) { print_report(filter, runner, ""); });
}

void filter_folder(const Options &options) {
  ErrorSlot error;
  GDir *folder = g_dir_open(options.input.c_str(), 0, error);
  error.check(options.input);
  std::vector<std::string> names;
  int others = 0;
  while (const gchar *name = g_dir_read_name(folder)) {
    const std::string path = options.input + "/" + name;
    const bool is_file = g_file_test(path.c_str(), G_FILE_TEST_IS_REGULAR);
    if (!is_picture_file(name))
      others += is_file;
    else if (is_file)
      names.push_back(name);
    else  // a pipe would be waited for
      std::fprintf(stderr, "warning: %s is no file, and is left out\n", path.c_str());
  }
  g_dir_close(folder);
  std::error_code none;
  if (std::filesystem::equivalent(options.input, options.output, none))
    throw Failure("the output is the input: name another folder");
  if (names.empty()) throw Failure("there is no .png, .jpg or .jpeg in " + options.input);
  if (others)
    std::fprintf(stderr, "warning: what is no .png, .jpg or .jpeg in %s is left out: %d files\n", options.input.c_str(),
                 others);
  std::sort(names.begin(), names.end());
  if (g_mkdir_with_parents(options.output.c_str(), 0777) != 0)
    throw Failure("cannot make the folder " + options.output);
  Stills pictures = stills_for(options);
  size_t done = 0, failed = 0;
  for (const std::string &name : names) {
    try {
      pictures.filter(options.input + "/" + name, options.output + "/" + name);
      done += !pictures.interrupted();
    } catch (const Failure &e) {
      std::fprintf(stderr, "warning: %s\n", e.what());
      failed++;
    }
    if (pictures.interrupted()) break;
  }
  std::printf("%zu of %zu pictures\n", done, names.size());
  pictures.check_interruption();
  if (failed) throw Failure(std::to_string(failed) + " pictures could not be filtered");
}

void run(const Options &options) {
  const bool folder = g_file_test(options.input.c_str(), G_FILE_TEST_IS_DIR);
  const bool of_pictures = folder || (is_picture_file(options.output) && is_picture_file(options.input));
  if (options.at >= 0 && (of_pictures || !is_picture_file(options.output)))
    throw Failure("--at is for a picture of a video: name a video, and -o FILE.png");
  if (of_pictures && !options.animations.empty()) throw Failure("--animate is for a video, not for pictures");
  if (!of_pictures) check_animation(path_of(options.input));
  if (folder) {
    if (options.output.empty() || options.output == "none" || is_picture_file(options.output) ||
        is_video_file(options.output))
      throw Failure("for a folder of pictures, -o names another folder");
    filter_folder(options);
  } else if (options.output.empty()) {
    show(options);
  } else if (options.output == "none") {
    measure(options);
  } else if (of_pictures) {
    Stills pictures = stills_for(options);
    const std::string path = path_of(options.input);
    if (path.empty()) throw Failure("a picture is read from a file, not from " + options.input);
    pictures.filter(path, options.output);
    pictures.check_interruption();
  } else if (is_picture_file(options.output)) {
    compare(options);
  } else if (is_video_file(options.output)) {
    convert(options);
  } else {
    throw Failure("the output is none, or a file that ends in .webm, .mkv, .mp4, .png or .jpg, not as " +
                  options.output + " does");
  }
}

}  // namespace

int main(int argc, char **argv) {
  std::setlocale(LC_ALL, "");
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error; GStreamer writes its registry at once
  try {
    run(parse_options(argc, argv));  // which also initialises GStreamer
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cudaconv-play: %s\n", error.what());
    return exit_code(error);
  }
}
