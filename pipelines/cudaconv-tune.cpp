// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Shows a picture before and after cudaconv, and a control for each setting of it and of the roihold before it.
//
//   cudaconv-tune                                      a test picture
//   cudaconv-tune clip.mp4                             a video or a picture
//   cudaconv-tune /dev/video0                          a camera
//   cudaconv-tune clip.mp4 mask=gauss sigma=3          with settings to begin with
//   cudaconv-tune --detector='videoscale ! video/x-raw,width=[16,32752,16] ! facedetect display=false'
//     clip.mp4 roi-meta=true mask=mosaic hold=500000000
#include <gtk/gtk.h>

#include <clocale>
#include <cstdio>
#include <exception>

#include "media.h"
#include "tune/window.h"

namespace {

using namespace media;

struct Options {
  tune::Input input;
  std::vector<std::string> settings;
};

Options parse_options(int &argc, char **&argv) {
  gchar *detector = nullptr, **rest = nullptr;
  const GOptionEntry entries[] = {
      {"detector", 0, 0, G_OPTION_ARG_STRING, &detector,
       "elements before roihold and the filter that mark regions, for roi-meta=true", "ELEMENTS"},
      version_option(),
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, nullptr, "[INPUT] [PROPERTY=VALUE...]"},
      {nullptr, 0, 0, G_OPTION_ARG_NONE, nullptr, nullptr, nullptr},
  };
  Owned<GOptionContext> context(g_option_context_new("- choose the settings of cudaconv by eye"));
  g_option_context_set_summary(
      context.get(),
      "INPUT is a video, a picture, a URI or a camera such as /dev/video0; without it there is "
      "a test picture.\nSpace plays and pauses; comma and full stop go frame by frame.");
  g_option_context_add_main_entries(context.get(), entries, nullptr);
  g_option_context_add_group(context.get(), gst_init_get_option_group());
  g_option_context_add_group(context.get(), gtk_get_option_group(FALSE));
  ErrorSlot error;
  g_option_context_parse(context.get(), &argc, &argv, error);
  Options options;
  if (detector) options.input.detector = Owned<gchar>(detector).get();
  for (gchar **word = rest; word && *word; word++) {
    const std::string text = *word;
    const size_t equals = text.find('=');
    const bool is_setting = equals != std::string::npos && text.find_first_of("/.") > equals;
    if (word == rest && !is_setting)
      options.input.name = text;
    else
      options.settings.push_back(text);
  }
  g_strfreev(rest);
  error.check("the command line");
  return options;
}

}  // namespace

int main(int argc, char **argv) {
  std::setlocale(LC_ALL, "");
  g_setenv("OPENCV_LOG_LEVEL", "OFF", FALSE);  // keeps detectors from warning of cascades that are not used
  try {
    const Options options = parse_options(argc, argv);  // which also initialises GStreamer
    if (!gtk_init_check(&argc, &argv)) throw Failure("there is no display to show a window on");
    tune::Window window(options.input, options.settings);
    g_signal_connect(window.widget(), "delete-event", G_CALLBACK(+[](GtkWidget *, GdkEvent *, gpointer) -> gboolean {
                       gtk_main_quit();
                       return TRUE;  // the window is destroyed by its owner
                     }),
                     nullptr);
    gtk_main();
    if (!window.failure().empty()) throw Failure(window.failure());
  } catch (const std::exception &e) {
    std::fprintf(stderr, "cudaconv-tune: %s\n", e.what());
    return 1;
  }
  return 0;
}
