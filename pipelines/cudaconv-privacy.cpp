// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Hides faces: a detector marks them on each frame, and cudaconv makes a mosaic of what is marked.
//
//   cudaconv-privacy clip.mp4                                    in a window
//   cudaconv-privacy clip.mp4 -o hidden.mp4                      into a video file (.webm, .mkv, .mp4), with sound
//   cudaconv-privacy clip.mp4 -o hidden.rgb mask=gauss           bare RGB frames, with other settings
//   cudaconv-privacy clip.mp4 --region=40,60,120,90              a rectangle, marked by hand, instead of faces
//
// At the end it says how many faces were found in how many frames. cudaconv-privacy.py is the same program in Python.
#include <gst/video/video.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <regex>

#include "media.h"

namespace {

using namespace media;

constexpr char kCascade[] = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml";
// The settings that gst/README.md recommends. A face that the detector misses stays hidden for half a second.
const char *const kSettings[] = {"roi-meta=true", "mask=mosaic", "roi-scale=0.125", "roi-grow=0.2",
                                 "roi-hold=500000000"};

struct Rectangle {
  guint x, y, width, height;
};

struct Options {
  std::string input, output, cascade = kCascade;
  std::vector<Rectangle> regions;
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

Options parse_options(int &argc, char **&argv) {
  gchar *output = nullptr, *cascade = nullptr;
  gchar **regions = nullptr, **rest = nullptr;
  gboolean quiet = FALSE;
  const GOptionEntry entries[] = {
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
       "write a video (.webm, .mkv, .mp4); other names get bare RGB frames (default: a window)", "FILE"},
      {"region", 0, 0, G_OPTION_ARG_STRING_ARRAY, &regions, "hide this rectangle instead of faces", "X,Y,W,H"},
      {"cascade", 0, 0, G_OPTION_ARG_FILENAME, &cascade, "a cascade file of OpenCV: what to find", "FILE"},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "print no progress and no counts", nullptr},
      version_option(),
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, nullptr, "FILE [PROPERTY=VALUE...]"},
      {}};
  Owned<GOptionContext> context(g_option_context_new("- hides faces in a video"));
  g_option_context_add_main_entries(context.get(), entries, nullptr);
  g_option_context_add_group(context.get(), gst_init_get_option_group());
  ErrorSlot error;
  g_option_context_parse(context.get(), &argc, &argv, error);
  error.check("the command line");
  if (!rest) throw Failure("no input file; cudaconv-privacy --help explains the arguments");
  Options options;
  options.input = rest[0];
  options.properties.assign(std::begin(kSettings), std::end(kSettings));
  for (gchar **word = rest + 1; *word; word++) options.properties.push_back(*word);
  for (gchar **text = regions; text && *text; text++) options.regions.push_back(rectangle_of(*text));
  if (output) options.output = output;
  if (cascade) options.cascade = cascade;
  options.quiet = quiet;
  g_free(output);
  g_free(cascade);
  g_strfreev(regions);
  g_strfreev(rest);
  if (options.regions.empty()) check_detector(options.cascade);
  return options;
}

// Marks regions on a buffer as any element upstream may do; an application with a detector of its own calls that here.
GstPadProbeReturn mark(GstPad *, GstPadProbeInfo *info, gpointer regions) {
  // Metas may be added only to a writable buffer. A buffer that others hold is copied, without its pixels.
  GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  for (const Rectangle &r : *static_cast<const std::vector<Rectangle> *>(regions))
    gst_buffer_add_video_region_of_interest_meta(buffer, "by-hand", r.x, r.y, r.width, r.height);
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

// Refuses frames that a region does not touch: a mistake in its numbers would show what is to be hidden. The caps alone
// do not tell: a clip that is turned has another size before its first frame.
GstPadProbeReturn check_regions(GstPad *pad, GstPadProbeInfo *, gpointer regions) {
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  GstVideoInfo video;
  if (!caps || !gst_video_info_from_caps(&video, caps.get())) return GST_PAD_PROBE_OK;
  for (const Rectangle &r : *static_cast<const std::vector<Rectangle> *>(regions)) {
    if (r.x < static_cast<guint>(video.width) && r.y < static_cast<guint>(video.height)) continue;
    const Owned<gchar> text(g_strdup_printf("--region=%u,%u,%u,%u is outside the picture of %dx%d", r.x, r.y, r.width,
                                            r.height, video.width, video.height));
    post_failure(GST_ELEMENT(GST_OBJECT_PARENT(pad)), text.get());
    return GST_PAD_PROBE_DROP;
  }
  return GST_PAD_PROBE_OK;
}

// How many frames came with how many regions.
struct Counts {
  std::mutex lock;
  std::map<guint, uint64_t> frames;

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
    if (frames.size() == 1 && frames.count(0))
      std::fprintf(stderr, "warning: no %s was found in the whole file: nothing is hidden\n", what);
  }
};

// Sets up the elements in a bin or pipeline, and returns its cudaconv.
Owned<GstElement> set_up(GstElement *bin, const Options &options, Counts *counts) {
  Owned<GstElement> hider = find(bin, "hider");
  for (const std::string &setting : options.properties) set_property(hider.get(), setting);
  const Owned<GstPad> pad(gst_element_get_static_pad(hider.get(), "sink"));
  if (options.regions.empty())
    g_object_set(find(bin, "detector").get(), "profile", options.cascade.c_str(), nullptr);
  else
    for (const auto probe : {check_regions, mark})
      gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe,
                        const_cast<std::vector<Rectangle> *>(&options.regions), nullptr);
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, Counts::count, counts, nullptr);
  return hider;
}

void hide(const Options &options) {
  std::string line = "videoconvert ! videoflip name=flip video-direction=auto ! ";  // detectors find upright faces
  // facedetect marks faces by GstVideoRegionOfInterestMetas of type "face", and by default also draws circles around
  // them.
  if (options.regions.empty()) line += "facedetect name=detector display=false updates=none ! videoconvert ! ";
  line += "cudaconv name=hider";
  Counts counts;
  if (options.output.empty()) check_display();
  for (const char *picture : {".png", ".jpg", ".jpeg"})
    if (has_suffix(options.output, picture))
      throw Failure("this program writes videos and bare RGB frames, no pictures");
  OutputFile file(options.output, options.input);
  Owned<GstElement> pipeline, hider;
  if (options.output.empty() || is_video_file(options.output)) {
    Owned<GstElement> filter = make_bin(line);
    hider = set_up(filter.get(), options, &counts);
    if (options.output.empty()) {
      pipeline = make_pipeline("playbin name=player");
      g_object_set(pipeline.get(), "video-filter", filter.get(), "uri", uri_of(options.input).c_str(), nullptr);
    } else {
      pipeline = make_converter(options.input, file.part(), options.output, std::move(filter), Covers::kDrop);
    }
  } else {
    pipeline = make_pipeline("uridecodebin name=source expose-all-streams=false caps=video/x-raw(ANY) ! queue ! " +
                             line + " ! videoconvert ! video/x-raw,format=RGB ! filesink name=file");
    hider = set_up(pipeline.get(), options, &counts);
    g_object_set(find(pipeline.get(), "source").get(), "uri", uri_of(options.input).c_str(), nullptr);
    g_object_set(find(pipeline.get(), "file").get(), "location", file.part().c_str(), nullptr);
  }
  Runner runner(std::move(pipeline), hider.get(), options.quiet);
  runner.preroll();  // tells the duration
  runner.play();
  runner.stop();
  if (!options.output.empty()) file.complete();
  if (!options.quiet) counts.print(file.report(), options.regions.empty() ? "face" : "region");
  runner.check_interruption();
}

}  // namespace

int main(int argc, char **argv) {
  std::setlocale(LC_ALL, "");
  g_setenv("OPENCV_LOG_LEVEL", "OFF", FALSE);  // keeps OpenCV from warning of cascades that are not used
  try {
    hide(parse_options(argc, argv));  // which also initialises GStreamer
  } catch (const std::exception &e) {
    std::fprintf(stderr, "cudaconv-privacy: %s\n", e.what());
    return exit_code(e);
  }
  return 0;
}
