// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Hides faces: a detector marks them on each frame, and cudaconv makes a mosaic of what is marked.
//
//   cudaconv-privacy clip.mp4                                          in a window
//   cudaconv-privacy -o hidden.webm clip.mp4                           into a video file, without its sound
//   cudaconv-privacy -o hidden.rgb clip.mp4 mask=gauss roi-scale=0.2   bare RGB frames, with other settings
//   cudaconv-privacy --region=40,60,120,90 clip.mp4                    a rectangle, marked by hand, instead of faces
//
// cudaconv-privacy.py is the same program in Python.
#include <gst/gst.h>
#include <gst/video/video.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

constexpr char kCascade[] = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml";
// The settings that gst/README.md recommends. A face that the detector misses stays hidden for half a second.
const char *const kSettings[] = {"roi-meta=true", "mask=mosaic", "roi-scale=0.125", "roi-grow=0.2",
                                 "roi-hold=500000000"};

using Failure = std::runtime_error;

struct Options {
  gchar *output = nullptr, *cascade = nullptr;
  gchar **regions = nullptr, **rest = nullptr;
};

struct Rectangle {
  guint x, y, width, height;
};

Rectangle rectangle_of(const char *text) {
  Rectangle r;
  char end;
  if (std::sscanf(text, "%u,%u,%u,%u%c", &r.x, &r.y, &r.width, &r.height, &end) != 4 || !r.width || !r.height)
    throw Failure(std::string("--region is X,Y,WIDTH,HEIGHT in pixels, such as 40,60,120,90, not ") + text);
  return r;
}

// Marks regions on a buffer as any element upstream may do; an application with a detector of its own calls that here.
GstPadProbeReturn mark(GstPad *, GstPadProbeInfo *info, gpointer regions) {
  // Metas may be added only to a writable buffer. A buffer that others hold is copied, without its pixels.
  GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  for (gchar **text = static_cast<gchar **>(regions); *text; text++) {
    const Rectangle r = rectangle_of(*text);
    gst_buffer_add_video_region_of_interest_meta(buffer, "by-hand", r.x, r.y, r.width, r.height);
  }
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

void set_property(GstElement *hider, const std::string &setting) {
  const size_t at = setting.find('=');
  const std::string name = setting.substr(0, at);
  if (at == std::string::npos || !g_object_class_find_property(G_OBJECT_GET_CLASS(hider), name.c_str()))
    throw Failure(setting + " is not PROPERTY=VALUE of cudaconv; gst-inspect-1.0 cudaconv lists its properties");
  gst_util_set_object_arg(G_OBJECT(hider), name.c_str(), setting.c_str() + at + 1);
}

void set_file(GstElement *pipeline, const char *element, const char *property, const std::string &value) {
  GstElement *found = gst_bin_get_by_name(GST_BIN(pipeline), element);
  if (!found) return;
  g_object_set(found, property, value.c_str(), nullptr);
  gst_object_unref(found);
}

GstElement *make_pipeline(const Options &options) {
  const std::string output = options.output ? options.output : "", cascade = options.cascade;
  // Without a cascade facedetect would find no faces, and they would not be hidden.
  if (!options.regions && !g_file_test(cascade.c_str(), G_FILE_TEST_EXISTS))
    throw Failure("there is no " + cascade + ", which finds faces: install opencv-data, or name one by --cascade");
  std::string line = "uridecodebin name=source expose-all-streams=false caps=video/x-raw ! videoconvert ! ";
  // facedetect marks faces by GstVideoRegionOfInterestMetas of type "face", and by default also draws circles around
  // them.
  if (!options.regions) line += "facedetect name=detector display=false updates=none ! videoconvert ! ";
  line += "cudaconv name=hider ! videoconvert ! ";
  if (output.empty())
    line += "autovideosink";
  else if (g_str_has_suffix(options.output, ".webm"))
    line += "queue ! vp8enc deadline=1 target-bitrate=4000000 ! webmmux ! filesink name=file";
  else
    line += "video/x-raw,format=RGB ! filesink name=file";
  GError *error = nullptr;
  GstElement *pipeline = gst_parse_launch(line.c_str(), &error);
  if (error) throw Failure(error->message);
  gchar *uri = gst_filename_to_uri(options.rest[0], nullptr);
  set_file(pipeline, "source", "uri", uri ? uri : "");
  set_file(pipeline, "detector", "profile", cascade);
  set_file(pipeline, "file", "location", output);
  g_free(uri);

  GstElement *hider = gst_bin_get_by_name(GST_BIN(pipeline), "hider");
  for (const char *setting : kSettings) set_property(hider, setting);
  for (gchar **setting = options.rest + 1; *setting; setting++) set_property(hider, *setting);
  if (options.regions) {
    for (gchar **text = options.regions; *text; text++) rectangle_of(*text);
    GstPad *pad = gst_element_get_static_pad(hider, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, mark, options.regions, nullptr);
    gst_object_unref(pad);
  }
  gst_object_unref(hider);
  return pipeline;
}

void play(GstElement *pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
                                                   static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  GError *error = nullptr;
  gchar *details = nullptr;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, &details);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  if (error) throw Failure(std::string(error->message) + (details ? std::string("\n") + details : ""));
}

}  // namespace

int main(int argc, char **argv) {
  Options options;
  const GOptionEntry entries[] = {
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Write .webm, or else bare RGB frames", "FILE"},
      {"region", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.regions, "Hide this instead of faces", "X,Y,W,H"},
      {"cascade", 0, 0, G_OPTION_ARG_FILENAME, &options.cascade, "What OpenCV is to find", "FILE"},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.rest, nullptr, "FILE [PROPERTY=VALUE...]"},
      {}};
  GOptionContext *context = g_option_context_new("- hides faces in a video");
  g_option_context_add_main_entries(context, entries, nullptr);
  g_option_context_add_group(context, gst_init_get_option_group());
  g_setenv("OPENCV_LOG_LEVEL", "OFF", FALSE);  // keeps OpenCV from warning of cascades that are not used
  try {
    GError *error = nullptr;
    if (!g_option_context_parse(context, &argc, &argv, &error)) throw Failure(error->message);
    if (!options.rest) throw Failure("which file? --help says more");
    if (!options.cascade) options.cascade = g_strdup(kCascade);
    play(make_pipeline(options));
  } catch (const Failure &e) {
    std::fprintf(stderr, "cudaconv-privacy: %s\n", e.what());
    return 1;
  }
  return 0;
}
