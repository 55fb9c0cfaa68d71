// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Hides faces: a detector marks them on each frame, roihold keeps the marks for half a second, or moves them to the
// next ones, and cudaconv makes a mosaic of what is marked.
//
//   cudaconv-privacy clip.mp4                                    in a window
//   cudaconv-privacy clip.mp4 -o hidden.mp4                      into a video file (.webm, .mkv, .mp4), with sound
//   cudaconv-privacy photo.jpg -o hidden.png                     a picture
//   cudaconv-privacy clip.mp4 -o hidden.rgb mask=gauss           bare RGB frames, with other settings
//   cudaconv-privacy clip.mp4 -o hidden.mp4 lookahead=500000000  half a second before each face too
//   cudaconv-privacy clip.mp4 --region=40,60,120,90              a rectangle, marked by hand, instead of faces
//
// At the end it says how many faces were found in how many frames. Settings that would hide nothing are an error.
// cudaconv-privacy.py is the same program in Python.
#include <gst/video/video.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <regex>

#include "media.h"
#include "stills.h"

namespace {

using namespace media;

constexpr char kCascade[] = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml";
// The settings that gst/README.md recommends. In a PNG alpha may be all that shows a text or an outline.
const char *const kSettings[] = {"roi-meta=true", "mask=mosaic", "roi-scale=0.125", "roi-grow=0.2", "alpha=filter"};
// Settings for videos. A face that the detector misses stays hidden for half a second, also where it moves on until it
// is found again.
const char *const kSettingsInTime[] = {"hold=500000000", "interpolate=true"};
// The filter: the settings are of both elements.
constexpr char kFilter[] = "roihold name=holder ! cudaconv name=hider";
// The side of the smallest face that the detector looks for, in pixels: facedetect's own default.
constexpr guint kSmallestFace = 30;

struct Rectangle {
  guint x, y, width, height;
};

struct Marks {
  const char *type;  // of the metas
  std::vector<Rectangle> regions;
  mutable guint width = 0, height = 0;  // of the first frame; 0 before it
};

struct Options {
  std::string input, output, cascade = kCascade;
  Marks by_hand = {"by-hand", {}};
  std::vector<std::string> properties;  // each as "name=value"
  bool quiet = false;
};

Rectangle rectangle_of(const char *text) {
  static const std::regex form(" *(\\d{1,9}) *, *(\\d{1,9}) *, *(\\d{1,9}) *, *(\\d{1,9}) *");
  std::cmatch match;
  Rectangle r = {};
  if (std::regex_match(text, match, form)) {
    guint *const to[] = {&r.x, &r.y, &r.width, &r.height};
    for (int i = 0; i < 4; i++) *to[i] = static_cast<guint>(std::stoul(match[i + 1]));
  }
  if (!r.width || !r.height)
    throw Failure(std::string("--region is X,Y,WIDTH,HEIGHT in pixels, such as 40,60,120,90, not ") + text);
  return r;
}

// Without the detector and a whole cascade no faces are found, and they are not hidden.
void check_detector(const std::string &cascade) {
  if (!g_file_test(cascade.c_str(), G_FILE_TEST_EXISTS))
    throw Failure("there is no " + cascade + ", which finds faces: install opencv-data, or name one by --cascade");
  if (!Owned<GstElementFactory>(gst_element_factory_find("facedetect")))
    throw Failure("there is no element facedetect, which finds faces: install gstreamer1.0-opencv, or use --region");
  gchar *read = nullptr;
  g_file_get_contents(cascade.c_str(), &read, nullptr, nullptr);
  const Owned<gchar> text(read);
  if (!text || !std::strstr(text.get(), "<stages>") || !std::strstr(text.get(), "</opencv_storage>"))
    throw Failure(cascade + " is no cascade of OpenCV, or not the whole file");
}

bool is_still(const Options &options) {
  return is_picture_file(options.output) && is_picture_file(options.input);
}

Options parse_options(int &argc, char **&argv) {
  gchar *output = nullptr, *cascade = nullptr;
  gchar **regions = nullptr, **rest = nullptr;
  gboolean quiet = FALSE;
  const GOptionEntry entries[] = {
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
       "write a video (.webm, .mkv, .mp4), for a picture .png or .jpg, or bare RGB frames (.rgb, a pipe; "
       "default: a window)",
       "FILE"},
      {"region", 0, 0, G_OPTION_ARG_STRING_ARRAY, &regions, "hide this rectangle instead of faces", "X,Y,W,H"},
      {"cascade", 0, 0, G_OPTION_ARG_FILENAME, &cascade, "a cascade file of OpenCV: what to find", "FILE"},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "print no progress and no counts", nullptr},
      version_option(),
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, nullptr, "FILE [PROPERTY=VALUE...]"},
      {}};
  Owned<GOptionContext> context(g_option_context_new("- hides faces in a video or a picture"));
  g_option_context_set_summary(
      context.get(),
      "No detector finds every face: look at the result before you publish it. PROPERTY is of cudaconv or of roihold. "
      "gst-inspect-1.0 cudaconv and gst-inspect-1.0 roihold list them.");
  g_option_context_set_description(context.get(),
                                   "Examples:\n"
                                   "  cudaconv-privacy clip.mp4 -o hidden.mp4\n"
                                   "  cudaconv-privacy clip.mp4 -o hidden.mp4 mask=fill lookahead=500000000\n"
                                   "  cudaconv-privacy photo.jpg -o hidden.jpg --region=40,60,120,90");
  g_option_context_add_main_entries(context.get(), entries, nullptr);
  g_option_context_add_group(context.get(), gst_init_get_option_group());
  ErrorSlot error;
  g_option_context_parse(context.get(), &argc, &argv, error);
  error.check("the command line");
  check_value("--output", output);
  check_value("--cascade", cascade);
  if (!rest) throw Failure("no input file; cudaconv-privacy --help explains the arguments");
  Options options;
  options.input = rest[0];
  for (gchar **text = regions; text && *text; text++) options.by_hand.regions.push_back(rectangle_of(*text));
  if (output) options.output = output;
  options.properties.assign(std::begin(kSettings), std::end(kSettings));
  if (!is_still(options))
    options.properties.insert(options.properties.end(), std::begin(kSettingsInTime), std::end(kSettingsInTime));
  for (gchar **word = rest + 1; *word; word++) options.properties.push_back(*word);
  if (cascade) options.cascade = cascade;
  options.quiet = quiet;
  g_free(output);
  g_free(cascade);
  g_strfreev(regions);
  g_strfreev(rest);
  if (options.by_hand.regions.empty()) check_detector(options.cascade);
  return options;
}

// Marks regions on a buffer as any element upstream may do; an application with a detector of its own calls that here.
// The regions are of the first frame. If a broadcast changes its size, they hide the same part of the picture.
GstPadProbeReturn mark(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
  const auto *marks = static_cast<const Marks *>(data);
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  GstVideoInfo video;
  if (!caps || !gst_video_info_from_caps(&video, caps.get())) return GST_PAD_PROBE_OK;
  const auto width = static_cast<guint>(video.width), height = static_cast<guint>(video.height);
  if (!marks->width) marks->width = width, marks->height = height;
  // Metas may be added only to a writable buffer. A buffer that others hold is copied, without its pixels.
  GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  const auto down = [](guint v, guint by, guint of) { return static_cast<guint>(guint64{v} * by / of); };
  const auto up = [](guint v, guint by, guint of) { return static_cast<guint>((guint64{v} * by + of - 1) / of); };
  for (const Rectangle &r : marks->regions) {
    const guint x = down(r.x, width, marks->width), y = down(r.y, height, marks->height);
    gst_buffer_add_video_region_of_interest_meta(buffer, marks->type, x, y, up(r.x + r.width, width, marks->width) - x,
                                                 up(r.y + r.height, height, marks->height) - y);
  }
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

// Refuses frames that a region does not touch: a mistake in its numbers would show what is to be hidden. The caps alone
// do not tell: a clip that is turned has another size before its first frame.
GstPadProbeReturn check_regions(GstPad *pad, GstPadProbeInfo *, gpointer by_hand) {
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  GstVideoInfo video;
  if (!caps || !gst_video_info_from_caps(&video, caps.get())) return GST_PAD_PROBE_OK;
  for (const Rectangle &r : static_cast<const Marks *>(by_hand)->regions) {
    if (r.x < static_cast<guint>(video.width) && r.y < static_cast<guint>(video.height)) continue;
    const Owned<gchar> text(g_strdup_printf("--region=%u,%u,%u,%u is outside the picture of %dx%d", r.x, r.y, r.width,
                                            r.height, video.width, video.height));
    post_failure(GST_ELEMENT(GST_OBJECT_PARENT(pad)), text.get());
    return GST_PAD_PROBE_DROP;
  }
  return GST_PAD_PROBE_REMOVE;  // for later frames the regions are scaled
}

// facedetect takes three bytes for each pixel of a row for the stride, as do readers of bare frames. Where rows are
// padded, as RGB is at widths that 4 does not divide, they see a slanted picture, facedetect without a face. They get a
// copy without padding, whose stride is in its GstVideoMeta: the elements behind read it right, and nothing is cut off
// or scaled.
GstPadProbeReturn pack_rows(GstPad *pad, GstPadProbeInfo *info, gpointer) {
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  GstBuffer *const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  GstVideoInfo video;
  GstVideoFrame frame;
  if (!caps || !gst_video_info_from_caps(&video, caps.get()) ||
      !gst_video_frame_map(&frame, &video, buffer, GST_MAP_READ)) {
    post_failure(GST_ELEMENT(GST_OBJECT_PARENT(pad)), "cannot read a frame");
    return GST_PAD_PROBE_DROP;
  }
  gint stride[GST_VIDEO_MAX_PLANES] = {3 * video.width};
  gsize offset[GST_VIDEO_MAX_PLANES] = {};
  if (GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0) != stride[0]) {
    const gsize row = stride[0];
    GstBuffer *packed = gst_buffer_new_allocate(nullptr, row * video.height, nullptr);
    const auto *from = static_cast<const guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
    for (int y = 0; y < video.height; y++, from += GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0))
      gst_buffer_fill(packed, y * row, from, row);
    gst_buffer_copy_into(packed, buffer,
                         GstBufferCopyFlags(GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS | GST_BUFFER_COPY_META),
                         0, -1);  // metas of the memory, such as the old strides, stay behind
    gst_buffer_add_video_meta_full(packed, frame.flags, GST_VIDEO_FORMAT_RGB, video.width, video.height, 1, offset,
                                   stride);
    GST_PAD_PROBE_INFO_DATA(info) = packed;
  }
  gst_video_frame_unmap(&frame);
  if (GST_PAD_PROBE_INFO_BUFFER(info) != buffer) gst_buffer_unref(buffer);
  return GST_PAD_PROBE_OK;
}

// How many frames came with how many regions.
struct Counts {
  std::mutex lock;
  std::map<guint, uint64_t> frames;
  bool hides_without = false;   // something is hidden, or left out, also where no region came
  bool drops_unmarked = false;  // frames for which no region is in force

  static GstPadProbeReturn count(GstPad *, GstPadProbeInfo *info, gpointer data) {
    auto *self = static_cast<Counts *>(data);
    const std::lock_guard<std::mutex> guard(self->lock);
    self->frames[gst_buffer_get_n_meta(GST_PAD_PROBE_INFO_BUFFER(info), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)]++;
    return GST_PAD_PROBE_OK;
  }

  void print(FILE *to, const char *what) const {
    uint64_t all = 0;
    for (const auto &[regions, count] : frames) all += count;
    std::fprintf(to, "%llu frames", static_cast<unsigned long long>(all));
    for (const auto &[regions, count] : frames) {
      const std::string number = regions ? std::to_string(regions) : "no";
      std::fprintf(to, "%s %s %s%s in %llu", &count == &frames.begin()->second ? ":" : ",", number.c_str(), what,
                   regions > 1 ? "s" : "", static_cast<unsigned long long>(count));
    }
    std::fprintf(to, "\n");
  }

  bool found_none() const { return frames.size() == 1 && frames.count(0); }
  void warn(const char *what) const {
    if (found_none())
      std::fprintf(stderr, "warning: no %s was found in the whole file%s\n", what,
                   hides_without ? "" : ": nothing is hidden");
  }
};

void add_probe(GstElement *element, GstPadProbeCallback probe, gconstpointer data) {
  const Owned<GstPad> pad(gst_element_get_static_pad(element, "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, const_cast<gpointer>(data), nullptr);
}

// ---- A trial of the settings ----------------------------------------------------------------------------------------

// The picture of the trial: noise, which every filter that hides something changes.
constexpr guint kTrialWidth = 640, kTrialHeight = 480;

// The frame that a fakesink had last, mapped for reading.
class LastFrame {
 public:
  explicit LastFrame(GstElement *sink) {
    GstSample *sample = nullptr;
    g_object_get(sink, "last-sample", &sample, nullptr);
    sample_.reset(sample);
    GstVideoInfo video;
    mapped_ = sample && gst_video_info_from_caps(&video, gst_sample_get_caps(sample)) &&
              gst_video_frame_map(&frame_, &video, gst_sample_get_buffer(sample), GST_MAP_READ);
  }
  ~LastFrame() {
    if (mapped_) gst_video_frame_unmap(&frame_);
  }
  LastFrame(const LastFrame &) = delete;
  bool mapped() const { return mapped_; }
  gsize pixel() const { return GST_VIDEO_FRAME_COMP_PSTRIDE(&frame_, 0); }  // bytes
  const guint8 *at(guint x, guint y) const {
    return static_cast<const guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, 0)) +
           y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, 0) + x * pixel();
  }

 private:
  Owned<GstSample> sample_;
  GstVideoFrame frame_;
  bool mapped_;
};

bool differ(const LastFrame &a, const LastFrame &b, const Rectangle &r) {
  for (guint y = r.y; y < r.y + r.height; y++)
    if (std::memcmp(a.at(r.x, y), b.at(r.x, y), r.width * a.pixel())) return true;
  return false;
}

// Sends a picture with marked regions, all within it, through a filter with the settings. Returns whether they change
// at least a pixel of each region; or, with roi-invert and `by_hand`, of the rest.
bool change(const std::vector<std::string> &settings, const char *format, const Marks &marks, bool by_hand) {
  Owned<GstElement> pipeline = make_pipeline(
      "videotestsrc pattern=snow num-buffers=1 ! video/x-raw,width=" + std::to_string(kTrialWidth) +
      ",height=" + std::to_string(kTrialHeight) + ",format=" + format +
      " ! tee name=both ! queue ! fakesink name=before both. ! queue ! " + kFilter + " ! fakesink name=after");
  const Owned<GstElement> holder = find(pipeline.get(), "holder"), hider = find(pipeline.get(), "hider");
  for (const std::string &setting : settings) set_property({hider.get(), holder.get()}, setting);
  g_object_set(hider.get(), "iterations", 1, nullptr);  // what changes nothing once never does
  gboolean inverted = FALSE;
  g_object_get(hider.get(), "roi-invert", &inverted, nullptr);
  add_probe(holder.get(), mark, &marks);
  const AtOnce trying;
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const Owned<GstBus> bus(gst_element_get_bus(pipeline.get()));
  GstMessage *message =
      gst_bus_timed_pop_filtered(bus.get(), GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
  const std::string text = failed ? message_text(message, gst_message_parse_error) : "";
  gst_message_unref(message);
  bool changed = false;
  if (!failed) {
    const LastFrame before(find(pipeline.get(), "before").get()), after(find(pipeline.get(), "after").get());
    const auto changes = [&](const Rectangle &r) { return differ(before, after, r); };
    changed = !after.mapped() ||  // a frame that is dropped shows nothing
              (by_hand && inverted ? changes({0, 0, kTrialWidth, kTrialHeight})
                                   : std::all_of(marks.regions.begin(), marks.regions.end(), changes));
  }
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  if (failed) throw Failure(text);
  return changed;
}

// The settings in force: a later one replaces an earlier one of the same name.
std::vector<std::string> in_force(const Options &options) {
  std::vector<std::string> settings;
  for (const std::string &setting : options.properties) {
    const std::string name = setting.substr(0, setting.find('=') + 1);
    settings.erase(std::remove_if(settings.begin(), settings.end(),
                                  [&](const std::string &other) { return other.compare(0, name.size(), name) == 0; }),
                   settings.end());
    settings.push_back(setting);
  }
  return settings;
}

// Throws Failure where the settings would leave a face, or a region of the command line, as it is.
void check_settings(const Options &options) {
  const std::vector<std::string> settings = in_force(options);
  std::string with = " with";
  for (const std::string &setting : settings) with += " " + setting;
  if (options.by_hand.regions.empty()) {
    Marks faces = {"face", {}};  // the smallest ones, everywhere: corners, edges and middle
    for (const guint y : {0u, 1u, 2u})
      for (const guint x : {0u, 1u, 2u})
        faces.regions.push_back({x * (kTrialWidth - kSmallestFace) / 2, y * (kTrialHeight - kSmallestFace) / 2,
                                 kSmallestFace, kSmallestFace});
    if (!change(settings, "RGB", faces, false)) throw Failure("nothing would be hidden: faces stay as they are" + with);
    return;
  }
  // The format is not known yet. Grey is the one in which luma=copy leaves everything.
  for (const Rectangle &r : options.by_hand.regions) {
    const guint width = std::min(r.width, kTrialWidth / 2), height = std::min(r.height, kTrialHeight / 2);
    if (!change(settings, "GRAY8", {options.by_hand.type, {{kTrialWidth / 4, kTrialHeight / 4, width, height}}},
                true)) {
      const Owned<gchar> what(
          g_strdup_printf("nothing would be hidden: --region=%u,%u,%u,%u stays as it is", r.x, r.y, r.width, r.height));
      throw Failure(what.get() + with);
    }
  }
}

// ---- The program ----------------------------------------------------------------------------------------------------

// Takes back settings of the program that the others leave without effect: a warning would name what nobody has set.
void take_back_unused(GstElement *hider, const std::vector<std::string> &settings) {
  for (const std::string name : {"roi-scale", "roi-grow", "alpha"}) {
    const auto sets = [&](const std::string &setting) { return setting.compare(0, name.size() + 1, name + "=") == 0; };
    gboolean used = TRUE;
    g_signal_emit_by_name(hider, "has-effect", name.c_str(), &used);
    if (!used && std::count_if(settings.begin(), settings.end(), sets) == 1)
      gst_util_set_object_arg(G_OBJECT(hider), name.c_str(), "0");
  }
}

// Notes what happens to frames without a region.
void note_frames_without_regions(GstElement *holder, GstElement *hider, Counts *counts) {
  gint unmarked = 0;
  gboolean takes_metas = FALSE;
  gchar *roi = nullptr;
  g_object_get(holder, "unmarked", &unmarked, nullptr);
  g_object_get(hider, "roi-meta", &takes_metas, "roi", &roi, nullptr);
  const Owned<gchar> regions(roi);
  auto *const spec = G_PARAM_SPEC_ENUM(g_object_class_find_property(G_OBJECT_GET_CLASS(holder), "unmarked"));
  const std::string nick = g_enum_get_value(spec->enum_class, unmarked)->value_nick;
  counts->drops_unmarked = nick == "drop";
  counts->hides_without = nick != "pass" || !takes_metas || (roi && *roi);
}

// Sets up the elements in a bin or pipeline, and returns its cudaconv.
Owned<GstElement> set_up(GstElement *bin, const Options &options, Counts *counts) {
  const Owned<GstElement> holder = find(bin, "holder");
  Owned<GstElement> hider = find(bin, "hider");
  for (const std::string &setting : options.properties) set_property({hider.get(), holder.get()}, setting);
  take_back_unused(hider.get(), options.properties);
  if (options.by_hand.regions.empty()) {
    const Owned<GstElement> detector = find(bin, "detector");
    g_object_set(detector.get(), "profile", options.cascade.c_str(), "min-size-width", kSmallestFace, "min-size-height",
                 kSmallestFace, nullptr);
    add_probe(detector.get(), pack_rows, nullptr);
  } else {
    for (const auto probe : {check_regions, mark}) add_probe(holder.get(), probe, &options.by_hand);
  }
  add_probe(holder.get(), Counts::count, counts);
  note_frames_without_regions(holder.get(), hider.get(), counts);
  return hider;
}

// Throws Failure where the program does not write such a file.
void check_name(const Options &options) {
  if (options.output.empty() || is_still(options)) return;
  const std::string &name = options.output;
  const OutputFile file(name, options.input);
  const bool is_file = file.part() != name;  // not a pipe, a device or the standard output
  if (is_file && !is_video_file(name) && !has_suffix(name, ".rgb"))
    throw Failure(
        "the output is a file that ends in .webm, .mkv or .mp4, in .png or .jpg for a picture, or in .rgb for "
        "bare RGB frames, not as " +
        name + " does" + (is_picture_file(name) ? ": the input has to be a picture that ends in .png or .jpg" : ""));
}

// From the decoder to cudaconv.
std::string line_of(const Options &options) {
  std::string line = std::string("videoconvert name=entry ! videoflip name=flip video-direction=") +
                     direction_of(path_of(options.input)) + " ! ";  // detectors find upright faces
  // facedetect marks faces by GstVideoRegionOfInterestMetas of type "face", and by default also draws circles around
  // them. No converter is between it and the filter: that may ask for padded rows.
  if (options.by_hand.regions.empty()) line += "facedetect name=detector display=false updates=none ! ";
  return line + kFilter;
}

void print(const Counts &counts, const Options &options, FILE *to) {
  const char *const what = options.by_hand.regions.empty() ? "face" : "region";
  if (!options.quiet) counts.print(to, what);
  counts.warn(what);
}

// Calls `filter`, which fails where no frame is left.
template <typename F>
void or_explain(const Counts &counts, const F &filter) {
  try {
    filter();
  } catch (const Failure &) {
    if (counts.drops_unmarked && counts.found_none())
      throw Failure("no frame is left: none has a region, and unmarked=drop leaves these out");
    throw;
  }
}

void hide_in_picture(const Options &options) {
  Counts counts;
  const std::string path = path_of(options.input);
  if (path.empty()) throw Failure("a picture is read from a file, not from " + options.input);
  Stills stills(
      line_of(options), [&](GstElement *pipeline) { return set_up(pipeline, options, &counts); }, nullptr);
  or_explain(counts, [&] { stills.filter(path, options.output); });
  stills.check_interruption();
  print(counts, options, stdout);
}

void hide_in_video(const Options &options) {
  Counts counts;
  OutputFile file(options.output, options.input);
  const bool bare = !options.output.empty() && !is_video_file(options.output);
  Owned<GstElement> pipeline, hider;
  check_animation(path_of(options.input));
  if (bare) {
    pipeline = make_pipeline("queue name=decoded ! " + line_of(options) +
                             " ! videoconvert ! video/x-raw,format=RGB ! filesink name=file");
    hider = set_up(pipeline.get(), options, &counts);
    add_source(pipeline.get(), options.input);
    const Owned<GstElement> sink = find(pipeline.get(), "file");
    add_probe(sink.get(), pack_rows, nullptr);
    g_object_set(sink.get(), "location", file.part().c_str(), nullptr);
  } else {
    Owned<GstElement> filter = make_bin(line_of(options));
    hider = set_up(filter.get(), options, &counts);
    if (options.output.empty()) {
      pipeline = make_pipeline("playbin name=player");
      g_object_set(pipeline.get(), "video-filter", filter.get(), "uri", uri_of(options.input).c_str(), nullptr);
    } else {
      pipeline = make_converter(options.input, file.part(), options.output, std::move(filter), Covers::kDrop);
    }
  }
  Runner runner(std::move(pipeline), hider.get(), options.quiet);
  runner.preroll();  // tells the duration
  if (bare) warn_of_rgb(find(runner.pipeline(), "decoded").get(), "bare RGB frames have no more");
  or_explain(counts, [&] { runner.play(); });
  runner.stop();
  if (!options.output.empty()) file.complete();
  print(counts, options, file.report());
  runner.check_interruption();
}

void hide(const Options &options) {
  if (options.output.empty()) check_display();
  check_name(options);
  check_settings(options);
  if (is_still(options))
    hide_in_picture(options);
  else
    hide_in_video(options);
}

}  // namespace

int main(int argc, char **argv) {
  std::setlocale(LC_ALL, "");
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error; GStreamer writes its registry at once
  g_setenv("OPENCV_LOG_LEVEL", "OFF", FALSE);  // keeps OpenCV from warning of cascades that are not used
  try {
    hide(parse_options(argc, argv));  // which also initialises GStreamer
  } catch (const std::exception &e) {
    std::fprintf(stderr, "cudaconv-privacy: %s\n", e.what());
    return exit_code(e);
  }
  return 0;
}
