// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Drives the window of cudaconv-tune by events, and compares the pixels that it shows with the element's own output:
// tune CLIP FIRST_NUMBER
//
// The element's output is computed by a pipeline apart. Output is in the Test Anything Protocol, without the plan.
#include <gst/app/gstappsink.h>
#include <gst/video/video.h>
#include <gtk/gtk.h>

#include <algorithm>
#include <atomic>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "../../pipelines/media.h"
#include "../../pipelines/tune/window.h"
#include "tunesupport.h"

namespace {

using namespace media;

constexpr char kCommas[] = "de_DE.UTF-8";  // a locale that writes 1,5

std::string clip;
tune::Window *window;
int number, failed;

GtkWidget *widget(const char *name) {
  GtkWidget *found = find_widget(name, window->widget());
  if (!found) throw Failure(std::string("there is no widget ") + name);
  return found;
}

void click(const char *name) {
  gtk_button_clicked(GTK_BUTTON(widget(name)));
}

void choose(const char *name, const char *value) {
  gtk_combo_box_set_active_id(GTK_COMBO_BOX(widget(name)), value);
}

void write_text(const char *name, const char *text) {
  gtk_entry_set_text(GTK_ENTRY(widget(name)), text);
  gtk_widget_activate(widget(name));
}

std::string property(const char *name) {
  gchar *text = nullptr;
  g_object_get(window->element(), name, &text, nullptr);
  const Owned<gchar> owned(text);
  return text ? text : "";
}

// ---- The mouse ------------------------------------------------------------------------------------------------------

// A point of the picture as a point of its widget.
GdkPoint in_view(double x, double y) {
  const auto at = window->view().placement();
  return {static_cast<gint>(std::lround(at.x + x * at.scale_x)), static_cast<gint>(std::lround(at.y + y * at.scale_y))};
}

void mouse(GdkEventType type, GdkPoint p) {
  GtkWidget *area = widget("picture");
  GdkEvent *event = gdk_event_new(type);
  const bool motion = type == GDK_MOTION_NOTIFY;
  gint root_x, root_y;
  gdk_window_get_root_coords(gtk_widget_get_window(area), p.x, p.y, &root_x, &root_y);
  event->any.window = GDK_WINDOW(g_object_ref(gtk_widget_get_window(area)));
  event->any.send_event = TRUE;
  gdk_event_set_device(event, gdk_seat_get_pointer(gdk_display_get_default_seat(gtk_widget_get_display(area))));
  (motion ? event->motion.x : event->button.x) = p.x;
  (motion ? event->motion.y : event->button.y) = p.y;
  (motion ? event->motion.x_root : event->button.x_root) = root_x;
  (motion ? event->motion.y_root : event->button.y_root) = root_y;
  if (!motion) event->button.button = GDK_BUTTON_PRIMARY;
  gtk_main_do_event(event);
  gdk_event_free(event);
}

void click_at(GdkPoint p) {
  mouse(GDK_MOTION_NOTIFY, p);
  mouse(GDK_BUTTON_PRESS, p);
  mouse(GDK_BUTTON_RELEASE, p);
}

void drag(GdkPoint from, GdkPoint to) {
  mouse(GDK_BUTTON_PRESS, from);
  mouse(GDK_MOTION_NOTIFY, {(from.x + to.x) / 2, (from.y + to.y) / 2});
  mouse(GDK_MOTION_NOTIFY, to);
  mouse(GDK_BUTTON_RELEASE, to);
}

// ---- Pixels ---------------------------------------------------------------------------------------------------------

// A frame of the clip as BGRx, from a pipeline apart.
const std::vector<uint8_t> &frame_of(const std::string &settings, GstClockTime time) {
  static std::map<std::pair<std::string, GstClockTime>, std::vector<uint8_t>> known;
  std::vector<uint8_t> &bytes = known[{settings, time}];
  if (!bytes.empty()) return bytes;
  const Owned<GstElement> pipeline =
      make_pipeline("filesrc name=file ! decodebin ! videoconvert ! videoflip video-direction=auto ! cudaconv " +
                    settings + " ! videoconvert ! video/x-raw,format=BGRx ! appsink name=sink sync=false");
  g_object_set(find(pipeline.get(), "file").get(), "location", clip.c_str(), nullptr);
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const Owned<GstElement> sink = find(pipeline.get(), "sink");
  while (bytes.empty()) {
    const Owned<GstSample> sample(gst_app_sink_pull_sample(GST_APP_SINK(sink.get())));
    if (!sample) throw Failure("the clip has no such frame, or settings are wrong: " + settings);
    GstBuffer *buffer = gst_sample_get_buffer(sample.get());
    if (GST_BUFFER_PTS(buffer) != time) continue;
    bytes.resize(gst_buffer_get_size(buffer));
    gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  }
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  return bytes;
}

// Whether the window shows the frame, left of the divider as it is and right of it with the settings. Divider, handle,
// outlines and a message cover pixels, which are left out.
bool shows(const std::string &settings, const std::vector<tune::Region> &outlines) {
  const tune::Picture *picture = window->view().picture();
  const auto at = window->view().placement();
  if (at.scale_x != 1 || at.scale_y != 1) throw Failure("the picture is scaled");
  const std::vector<uint8_t> before = frame_of("mask=identity", picture->time),
                             after = frame_of(settings, picture->time);
  GdkPixbuf *shot = gdk_pixbuf_get_from_window(gtk_widget_get_window(widget("picture")), static_cast<int>(at.x),
                                               static_cast<int>(at.y), picture->width, picture->height);
  const int channels = gdk_pixbuf_get_n_channels(shot), stride = gdk_pixbuf_get_rowstride(shot);
  const guchar *pixels = gdk_pixbuf_read_pixels(shot);
  const int divider = window->view().divider() - static_cast<int>(at.x);
  const auto near_outline = [&](int x, int y) {
    for (const tune::Region &region : outlines)
      for (size_t i = 0; i < region.size(); i++) {
        const tune::Point &a = region[i], &b = region[(i + 1) % region.size()];
        const double dx = b.x - a.x, dy = b.y - a.y, length = std::hypot(dx, dy);
        const double along = std::clamp(((x - a.x) * dx + (y - a.y) * dy) / (length * length), 0.0, 1.0);
        if (std::hypot(x - a.x - along * dx, y - a.y - along * dy) < 4) return true;
      }
    return false;
  };
  int compared[2] = {}, wrong[2] = {}, drawn = 0, height = picture->height;
  if (gtk_widget_get_mapped(widget("message"))) {
    gint top;
    gtk_widget_translate_coordinates(widget("message"), widget("picture"), 0, 0, nullptr, &top);
    height = std::min(height, top - static_cast<int>(at.y) - 40);  // the space around the text
  }
  for (int y = 0; y < height; y++)
    for (int x = 0; x < picture->width; x++) {
      const bool on_handle = std::abs(x - divider) < 16 && std::abs(y - picture->height / 2) < 18;
      if (std::abs(x - divider) < 2 || on_handle) continue;
      const bool right = x >= divider;
      const uint8_t *want = (right ? after : before).data() + 4 * (y * picture->width + x);
      const guchar *got = pixels + y * stride + x * channels;
      const bool same = got[0] == want[2] && got[1] == want[1] && got[2] == want[0];
      if (near_outline(x, y)) {
        drawn += !same;
      } else {
        compared[right]++;
        wrong[right] += !same;
      }
    }
  g_object_unref(shot);
  why = std::to_string(wrong[0]) + " of " + std::to_string(compared[0]) + " pixels before and " +
        std::to_string(wrong[1]) + " of " + std::to_string(compared[1]) + " after are wrong with " + settings + "; " +
        std::to_string(drawn) + " are drawn over";
  return compared[0] > 1000 && compared[1] > 1000 && !wrong[0] && !wrong[1] && before != after &&
         drawn >= 200 * static_cast<int>(outlines.size());
}

bool will_show(const std::string &settings, const std::vector<tune::Region> &outlines = {}) {
  gint64 next = 0;
  return pump_until([&] {
    const gint64 now = g_get_monotonic_time();
    if (now < next) return false;
    const bool good = shows(settings, outlines);
    next = g_get_monotonic_time() + 30000;
    return good;
  });
}

GstClockTime shown_time() {
  return window->view().picture()->time;
}

bool equal(const std::string &want, const std::string &got) {
  if (want != got) why = "expected " + want + "\n# but got  " + got;
  return want == got;
}

// The number of pixels that are not black.
int lit(const tune::Surface &surface) {
  if (!surface) return -1;
  const unsigned char *data = cairo_image_surface_get_data(surface.get());
  int count = 0;
  for (int y = 0; y < cairo_image_surface_get_height(surface.get()); y++)
    for (int x = 0; x < cairo_image_surface_get_width(surface.get()); x++) {
      const unsigned char *p = data + y * cairo_image_surface_get_stride(surface.get()) + 4 * x;
      count += p[0] || p[1] || p[2];
    }
  return count;
}

std::string joined(const tune::Words &words) {
  std::string text;
  for (const std::string &word : words) text += word + " ";
  return text;
}

std::string line_of(const tune::Window &of) {
  return gtk_entry_get_text(GTK_ENTRY(find_widget("launch-line", of.widget())));
}

// ---- The tests ------------------------------------------------------------------------------------------------------

tune::Region in_per_cent(double x, double y, double w, double h) {
  tune::Region region = {{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}};
  for (tune::Point &p : region)
    p = {p.x * window->view().picture()->width / 100, p.y * window->view().picture()->height / 100};
  return region;
}

// The window opens with a setting of the command line. Then its width gives the picture its own size.
bool opens() {
  if (!pump_until([] { return window->view().picture() != nullptr; })) return false;
  click("play");
  gint width, height;
  gtk_window_get_size(GTK_WINDOW(window->widget()), &width, &height);
  const tune::Picture *picture = window->view().picture();
  GtkWidget *area = widget("picture");
  gtk_window_resize(GTK_WINDOW(window->widget()), width + picture->width - gtk_widget_get_allocated_width(area),
                    height + picture->height + 40 - gtk_widget_get_allocated_height(area));
  return pump_until([] { return window->view().placement().scale_x == 1; }) &&
         will_show("roi=60%,20%,25%,40%", {in_per_cent(60, 20, 25, 40)});
}

bool changes_mask() {
  click("clear");
  choose("mask", "sobel");
  return will_show("mask=sobel") && !gtk_widget_get_visible(widget("sigma")) &&
         gtk_widget_get_visible(widget("magnitude"));
}

bool moves_slider() {
  choose("mask", "gauss");
  if (!will_show("mask=gauss")) return false;
  if (!gtk_widget_get_visible(widget("sigma")) || gtk_widget_get_visible(widget("magnitude"))) return false;
  GtkWidget *scale = widget("sigma-scale");
  gtk_widget_grab_focus(scale);
  gtk_range_set_value(GTK_RANGE(scale), 0.2);
  gdouble sigma;
  g_object_get(window->element(), "sigma", &sigma, nullptr);
  if (std::abs(sigma - 1.01) > 1e-9 || gtk_spin_button_get_value(GTK_SPIN_BUTTON(widget("sigma-spin"))) != sigma)
    return false;
  return will_show("mask=gauss sigma=1.01");
}

double sigma() {
  gdouble value;
  g_object_get(window->element(), "sigma", &value, nullptr);
  return value;
}

// A number keeps its value and shows all of it, whether steps or a text have made it. The button of a step also reads
// the text.
bool counts_in_steps() {
  auto *spin = GTK_SPIN_BUTTON(widget("sigma-spin"));
  const auto shows = [&](double value, const char *text) {
    gtk_spin_button_update(spin);  // as a click on the widget does
    return equal(text, gtk_entry_get_text(GTK_ENTRY(spin))) && equal(std::to_string(value), std::to_string(sigma()));
  };
  g_object_set(window->element(), "sigma", 1.0, nullptr);
  for (int i = 0; i < 5; i++) {
    gtk_spin_button_update(spin);
    gtk_spin_button_spin(spin, GTK_SPIN_STEP_FORWARD, 0);
  }
  if (!shows(1.5, "1.5") || sigma() != 1.5) return false;
  g_object_set(window->element(), "sigma", 1.23456789, nullptr);
  if (!shows(1.23456789, "1.23456789") || sigma() != 1.23456789) return false;
  g_object_set(window->element(), "sigma", 2e-5, nullptr);
  if (!shows(2e-5, "2e-05") || sigma() != 2e-5) return false;
  gtk_entry_set_text(GTK_ENTRY(spin), "1,5x");
  if (!shows(2e-5, "2e-05")) return false;
  gtk_entry_set_text(GTK_ENTRY(spin), "0.75");
  return shows(0.75, "0.75") && will_show("mask=gauss sigma=0.75");
}

bool counts_with_commas() {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  std::setlocale(LC_NUMERIC, kCommas);
  const bool good = counts_in_steps();
  std::setlocale(LC_NUMERIC, before.c_str());
  return good;
}

bool switches_and_colours() {
  choose("mask", "fill");
  const GdkRGBA color = {1, 0.2, 0, 1};
  gtk_color_chooser_set_rgba(GTK_COLOR_CHOOSER(widget("fill-color")), &color);
  g_signal_emit_by_name(widget("fill-color"), "color-set");
  return will_show("mask=fill fill-color=0xffff3300");
}

bool reads_coefficients() {
  choose("mask", "custom");
  write_text("coefficients", "0 -1 0; -1 5 -1; 0 -1 0");
  return will_show("mask=custom coefficients=\"0 -1 0; -1 5 -1; 0 -1 0\"");
}

// The element refuses it, and the window says so. The picture stays as it was.
bool says_what_is_wrong() {
  write_text("coefficients", "1 2; x");
  const auto *label = GTK_LABEL(widget("message"));
  const bool said = pump_until(
      [label] { return std::strstr(gtk_label_get_text(const_cast<GtkLabel *>(label)), "\"x\" is not a number"); });
  why = gtk_label_get_text(const_cast<GtkLabel *>(label));
  pump(7000);  // it is said for as long as the picture does not follow the settings
  return said && gtk_widget_get_mapped(widget("message")) &&
         will_show("mask=custom coefficients=\"0 -1 0; -1 5 -1; 0 -1 0\"");
}

bool resets() {
  click("reset");
  return pump_until([] { return !gtk_widget_get_mapped(widget("message")); }) && will_show("mask=gauss5");
}

const std::vector<tune::Region> kRectangle = {{{450, 40}, {600, 40}, {600, 130}, {450, 130}}};

bool draws_rectangle() {
  choose("mask", "mosaic");
  click("rectangle");
  drag(in_view(600, 130), in_view(450, 40));
  return equal("450,40,150,90", property("roi")) && will_show("mask=mosaic roi=450,40,150,90", kRectangle);
}

bool draws_polygon() {
  click("polygon");
  for (const auto &[x, y] : {std::pair{420, 200}, {560, 180}, {640, 300}}) click_at(in_view(x, y));
  click_at(in_view(421, 201));  // closes it
  const std::string roi = "450,40,150,90; 420,200 560,180 640,300";
  if (!equal(roi, property("roi"))) return false;
  std::vector<tune::Region> outlines = kRectangle;
  outlines.push_back({{420, 200}, {560, 180}, {640, 300}});
  return will_show("mask=mosaic roi=\"" + roi + "\"", outlines);
}

// Regions are read as the element reads them: a polygon may cross itself, a semicolon may be the last character, and a
// newline separates as a semicolon does.
bool writes_regions() {
  const tune::Region crossing = {{0, 0}, {60, 60}, {60, 0}, {0, 60}}, line = {{0, 0}, {20, 20}, {60, 60}, {0, 0}};
  return equal("0,0 60,60 60,0 0,60", tune::with_region("", crossing, 64, 64)) &&
         equal("1,2,3,4; 0,0,60,50", tune::with_region("1,2,3,4; ;", {{0, 0}, {60, 50}}, 64, 64)) &&
         equal("1,2,3,4", tune::with_region("1,2,3,4", line, 64, 64)) &&
         equal("2 regions", std::to_string(tune::regions_of("1,2,3,4\r\n5,6,7,8", 64, 64).size()) + " regions");
}

bool moves_divider() {
  click("compare");
  const int divider = window->view().divider();
  const int y = in_view(0, 350).y;
  drag({divider, y}, {in_view(500, 0).x, y});
  std::vector<tune::Region> outlines = kRectangle;
  outlines.push_back({{420, 200}, {560, 180}, {640, 300}});
  return window->view().divider() == in_view(500, 0).x &&
         will_show("mask=mosaic roi=\"450,40,150,90; 420,200 560,180 640,300\"", outlines);
}

// Whether the line can be run, and its first frame has the pixels of the element.
bool runs(const std::string &line, const std::string &settings) {
  const std::string end = "! autovideosink";
  std::string run =
      line.substr(0, line.size() - end.size()) + "! video/x-raw,format=BGRx ! filesink location=launched.raw";
  char shell[] = "bash", option[] = "-c";
  gchar *words[] = {shell, option, run.data(), nullptr};
  gint status = -1;
  gchar *output = nullptr;  // belongs to no test
  if (!g_spawn_sync(nullptr, words, nullptr, G_SPAWN_SEARCH_PATH, nullptr, nullptr, &output, nullptr, &status,
                    nullptr) ||
      status != 0)
    return false;
  g_free(output);
  gchar *bytes = nullptr;
  gsize size = 0;
  g_file_get_contents("launched.raw", &bytes, &size, nullptr);
  const Owned<gchar> owned(bytes);
  const auto &frame = frame_of(settings, 0);
  return size > frame.size() && !std::memcmp(bytes, frame.data(), frame.size());
}

bool copies_launch_line() {
  g_object_set(window->element(), "sigma", 2.0, nullptr);  // which mask=mosaic does not use
  pump(20);
  click("copy");
  const Owned<gchar> copied(gtk_clipboard_wait_for_text(gtk_clipboard_get(GDK_SELECTION_CLIPBOARD)));
  const std::string line = copied ? copied.get() : "";
  const std::string want = "gst-launch-1.0 filesrc location=" + clip +
                           " ! decodebin ! videoconvert ! videoflip video-direction=auto ! cudaconv mask=mosaic "
                           "roi='450,40,150,90; 420,200 560,180 640,300' ! videoconvert ! autovideosink";
  return equal(want, line) && runs(line, "mask=mosaic roi=\"450,40,150,90; 420,200 560,180 640,300\"");
}

// GStreamer's parser would end a value at a newline, and drop a backslash.
bool quotes_values() {
  const Owned<GstElement> element(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("cudaconv", nullptr))));
  g_object_set(element.get(), "coefficients", "1 2 1\n2\t4 2\n1 2 1", "roi-type", "the \"7\\8\" o'clock", "roi-meta",
               TRUE, nullptr);
  gst_util_set_object_arg(G_OBJECT(element.get()), "mask", "custom");
  const tune::Words words = tune::settings_of(element.get());
  std::vector<const gchar *> argv = {"cudaconv"};
  for (const std::string &word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  const Owned<GstElement> again(GST_ELEMENT(gst_object_ref_sink(gst_parse_launchv(argv.data(), nullptr))));
  for (const char *name : {"coefficients", "roi-type"}) {
    gchar *want, *got;
    g_object_get(element.get(), name, &want, nullptr);
    g_object_get(again.get(), name, &got, nullptr);
    const Owned<gchar> owned_want(want), owned_got(got);
    if (!equal(want, got ? got : "nothing")) return false;
  }
  return true;
}

bool clears_regions() {
  g_object_set(window->element(), "sigma", -1.0, nullptr);
  click("clear");
  return property("roi").empty() && will_show("mask=mosaic");
}

// A region in per cent, as a user writes it.
bool takes_written_region() {
  write_text("roi", "60%,50%,25%,40%");
  const bool good = will_show("mask=mosaic roi=60%,50%,25%,40%", {in_per_cent(60, 50, 25, 40)});
  click("clear");
  return good;
}

bool steps() {
  choose("mask", "sobel");
  bool good = true;
  GstClockTime time = shown_time();
  const GstClockTime frame = 40 * GST_MSECOND;
  const auto goes = [&](const char *button, GstClockTime to) {
    click(button);
    const bool there =
        pump_until([to] { return std::abs(GST_CLOCK_DIFF(to, shown_time())) <= GstClockTimeDiff(15 * GST_MSECOND); });
    if (!there)
      why = "the frame is at " + std::to_string(shown_time() / GST_MSECOND) + " ms, not " +
            std::to_string(to / GST_MSECOND);
    return there;
  };
  for (int i = 0; i < 3 && good; i++) good = goes("forward", time += frame);
  good = good && will_show("mask=sobel");
  for (int i = 0; i < 2 && good; i++) good = goes("back", time -= frame);
  for (int i = 0; i < 2 && good; i++) good = goes("forward", time += frame);
  return good && will_show("mask=sobel");
}

bool seeks() {
  gboolean handled;
  g_signal_emit_by_name(widget("seek"), "change-value", GTK_SCROLL_JUMP, 0.5, &handled);
  return pump_until([] { return shown_time() > GST_SECOND && shown_time() < 2 * GST_SECOND; });
}

bool plays_and_pauses() {
  gboolean handled;
  g_signal_emit_by_name(widget("seek"), "change-value", GTK_SCROLL_JUMP, 0.8, &handled);
  pump_until([] { return shown_time() > 2400 * GST_MSECOND; });
  const GstClockTime paused = shown_time();
  pump(300);
  if (shown_time() != paused) return false;
  click("play");
  if (!pump_until([paused] { return shown_time() > paused + 100 * GST_MSECOND; })) return false;
  // At the end it begins again.
  if (!pump_until([paused] { return shown_time() < paused; })) return false;
  click("play");
  pump(200);
  const GstClockTime again = shown_time();
  pump(300);
  return shown_time() == again && will_show("mask=sobel");
}

bool counts() {
  const auto *label = GTK_LABEL(widget("stats"));
  why = gtk_label_get_text(const_cast<GtkLabel *>(label));
  return std::strstr(why.c_str(), "frames/s") && std::strstr(why.c_str(), "backend cpu, method") &&
         std::strstr(why.c_str(), "720x405 I420");
}

// Both elements keep their settings in a preset.
bool keeps_presets() {
  g_object_set(window->roihold(), "hold", 7 * GST_SECOND, nullptr);
  choose("mask", "gauss");
  gtk_spin_button_set_value(GTK_SPIN_BUTTON(widget("sigma-spin")), 2.5);
  auto *combo = GTK_COMBO_BOX(widget("presets"));
  GtkWidget *entry = gtk_bin_get_child(GTK_BIN(combo));
  gtk_entry_set_text(GTK_ENTRY(entry), "soft");
  click("save-preset");
  const int last = gtk_tree_model_iter_n_children(gtk_combo_box_get_model(combo), nullptr) - 1;
  for (int times = 0; times < 2; times++) {
    choose("mask", "dilate");
    if (!will_show("mask=dilate")) return false;
    g_object_set(window->roihold(), "hold", guint64{0}, nullptr);
    for (int i = times ? last : 0; i <= last; i++) gtk_combo_box_set_active(combo, i);
    if (!equal("hold=7000000000 ", joined(tune::settings_of(window->roihold())))) return false;
    if (!equal("soft", gtk_entry_get_text(GTK_ENTRY(entry))) || !will_show("mask=gauss sigma=2.5")) return false;
  }
  click("delete-preset");
  return !has_preset(window->element(), "soft") && !has_preset(window->roihold(), "soft");
}

bool is_visible(const char *name) {
  return gtk_widget_get_visible(widget(name));
}

// Without a detector the controls of roihold are there once its settings matter. A preset without a part for it sets
// the defaults.
bool loads_both_presets() {
  click("reset");
  pump(50);
  for (const char *name : {"roihold", "types", "hold", "lookahead", "interpolate", "unmarked", "report"})
    if (is_visible(name)) return why = std::string(name) + " is visible", false;
  if (!equal("", joined(tune::settings_of(window->roihold()))) || line_of(*window).find("roihold") != std::string::npos)
    return false;
  auto *combo = GTK_COMBO_BOX(widget("presets"));
  const auto load = [&](const char *name) {
    GtkTreeModel *const model = gtk_combo_box_get_model(combo);
    const int count = gtk_tree_model_iter_n_children(model, nullptr);
    for (int i = 0; i < count; i++) {
      GtkTreeIter iter;
      gchar *text = nullptr;
      gtk_tree_model_iter_nth_child(model, &iter, nullptr, i);
      gtk_tree_model_get(model, &iter, 0, &text, -1);
      const Owned<gchar> owned(text);
      if (text == std::string(name)) {
        gtk_combo_box_set_active(combo, i);
        return pump(50), true;
      }
    }
    return false;
  };
  if (!load("Portrait privacy strict")) return why = "there is no such preset", false;
  for (const char *name : {"roihold", "types", "hold", "lookahead", "interpolate", "unmarked", "report"})
    if (!is_visible(name)) return why = std::string(name) + " is not visible", false;
  const std::string want =
      "roihold types=face hold=500000000 lookahead=500000000 unmarked=mark ! cudaconv mask=fill roi-meta=true "
      "roi-type=face roi-grow=0.4 ! videoconvert ! autovideosink";
  const std::string line = line_of(*window);
  if (!equal(want, line.substr(std::min(line.find("roihold"), line.size())))) return false;
  // No frame of the clip is marked, so all of each is filtered.
  if (!will_show("mask=fill", {in_per_cent(0, 0, 100, 100)}) || !runs(line, "mask=fill")) return false;
  if (!load("Outlines") || !will_show("mask=sobel divisor=2")) return false;
  click("reset");
  return equal("", joined(tune::settings_of(window->roihold())));
}

// The element does not start without a matrix. It starts once there is one.
bool recovers() {
  if (!pump_until([] { return window->view().picture() && gtk_widget_get_mapped(widget("message")); })) return false;
  why = gtk_label_get_text(GTK_LABEL(widget("message")));
  if (why.find("needs the property coefficients") == std::string::npos || window->view().picture()->after) return false;
  write_text("coefficients", "1 2 1");
  return pump_until([] { return window->view().picture()->after != nullptr; });
}

// The controls of roihold, with a detector: they set its properties, and the line has them.
bool sets_roihold() {
  for (const char *name : {"roihold", "types", "hold", "lookahead", "interpolate", "unmarked", "report"})
    if (!is_visible(name)) return why = std::string(name) + " is not visible", false;
  write_text("types", "face, !staff");
  for (const char *name : {"hold-spin", "lookahead-spin"}) {
    gtk_entry_set_text(GTK_ENTRY(widget(name)), name[0] == 'h' ? "500000000" : "250000000");
    gtk_spin_button_update(GTK_SPIN_BUTTON(widget(name)));
  }
  choose("unmarked", "mark");
  for (const char *name : {"interpolate", "report"}) gtk_switch_set_active(GTK_SWITCH(widget(name)), TRUE);
  if (!equal("types=face, !staff hold=500000000 lookahead=250000000 interpolate=true unmarked=mark report=true ",
             joined(tune::settings_of(window->roihold()))))
    return false;
  pump(50);
  const std::string want =
      "! roihold types='face, !staff' hold=500000000 lookahead=250000000 interpolate=true unmarked=mark report=true "
      "! cudaconv mask=custom coefficients='1 2 1' ! videoconvert ! autovideosink";
  const std::string line = line_of(*window);
  if (!equal(want, line.substr(std::min(line.find("! roihold"), line.size())))) return false;
  click("reset");
  return equal("", joined(tune::settings_of(window->roihold())));
}

// A detector's place is before the filter. This one marks nothing, but takes away colours.
bool has_detector() {
  const tune::Picture *picture = window->view().picture();
  const unsigned char *data = cairo_image_surface_get_data(picture->before.get());
  const int stride = cairo_image_surface_get_stride(picture->before.get());
  int colourful = 0;
  for (int y = 0; y < picture->height; y++)
    for (int x = 0; x < picture->width; x++) {
      const unsigned char *p = data + y * stride + 4 * x;
      colourful += std::abs(p[0] - p[1]) > 3 || std::abs(p[1] - p[2]) > 3;
    }
  why = std::to_string(colourful) + " pixels have a colour";
  return colourful == 0 &&
         equal(
             "gst-launch-1.0 videotestsrc ! video/x-raw,format=I420,width=640,height=480 ! videoconvert ! videoflip "
             "video-direction=auto ! videobalance saturation=0 ! videoconvert ! roihold ! cudaconv mask=custom "
             "coefficients='1 2 1' ! videoconvert ! autovideosink",
             gtk_entry_get_text(GTK_ENTRY(widget("launch-line"))));
}

// Marks all of the frames from 1000 to 1200 ms, as a detector does.
GstPadProbeReturn mark_some(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *const buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  const GstClockTime time = GST_BUFFER_PTS(buffer);
  if (time >= GST_SECOND && time <= 1200 * GST_MSECOND)
    gst_buffer_add_video_region_of_interest_meta(buffer, "face", 0, 0, 9999, 9999);
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

// While the clip is paused, the frame follows each setting of roihold at once. So it does after a seek, from frames
// that are not shown.
bool follows_roihold() {
  tune::Window marked({clip, "identity"}, {"mask=fill", "roi-meta=true", "hold=300000000"});
  const Owned<GstPad> pad(gst_element_get_static_pad(marked.roihold(), "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, mark_some, nullptr, nullptr);
  const auto picture = [&] { return marked.view().picture(); };
  const auto is_at = [&](GstClockTime time, bool filled) {
    return pump_until([&] {
      if (!picture() || !picture()->after) return false;
      const int black = lit(picture()->after);
      why = "the frame at " + std::to_string(picture()->time / GST_MSECOND) + " ms has " + std::to_string(black) +
            " pixels that are lit; expected " + (filled ? "none" : "some") + " at " +
            std::to_string(time / GST_MSECOND) + " ms";
      return picture()->time / (40 * GST_MSECOND) == time / (40 * GST_MSECOND) && (black == 0) == filled;
    });
  };
  const auto seek = [&](double time) {
    gboolean handled;
    g_signal_emit_by_name(find_widget("seek", marked.widget()), "change-value", GTK_SCROLL_JUMP,
                          time / length_of(marked), &handled);
  };
  const auto set = [&](const char *name, GstClockTime time) { g_object_set(marked.roihold(), name, time, nullptr); };
  if (!pump_until([&] { return picture() && length_of(marked) > 0; })) return why = "no picture", false;
  gtk_button_clicked(GTK_BUTTON(find_widget("play", marked.widget())));
  seek(1.45);
  if (!is_at(1440 * GST_MSECOND, true)) return false;
  set("hold", 0);
  if (!is_at(1440 * GST_MSECOND, false)) return false;
  set("hold", 400 * GST_MSECOND);
  if (!is_at(1440 * GST_MSECOND, true)) return false;
  seek(1.85);
  set("hold", 300 * GST_MSECOND);  // while the seek is under way
  pump(300);
  if (!is_at(1840 * GST_MSECOND, false)) return false;
  seek(0.85);
  if (!is_at(840 * GST_MSECOND, false)) return false;
  set("lookahead", 300 * GST_MSECOND);
  if (!is_at(840 * GST_MSECOND, true)) return false;
  g_object_set(marked.roihold(), "types", "plate", nullptr);
  if (!is_at(840 * GST_MSECOND, false)) return false;
  gst_util_set_object_arg(G_OBJECT(marked.roihold()), "unmarked", "mark");
  if (!is_at(840 * GST_MSECOND, true)) return false;
  // It plays on from there.
  gtk_button_clicked(GTK_BUTTON(find_widget("play", marked.widget())));
  return pump_until([&] { return picture()->time > GST_SECOND; });
}

// Marks all of a picture at one second, and a corner 0.6 seconds later.
GstPadProbeReturn mark_two(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  const GstClockTime frame = GST_BUFFER_PTS(buffer) / (40 * GST_MSECOND);
  const guint side = frame == 25 ? 9999 : 16;
  if (frame == 25 || frame == 40) gst_buffer_add_video_region_of_interest_meta(buffer, "face", 0, 0, side, side);
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

// After a seek, the frame shown is between two detections, and the first one is farther back than `hold`.
bool interpolates_after_seek() {
  tune::Window marked({clip, "identity"},
                      {"mask=fill", "roi-meta=true", "hold=100000000", "lookahead=500000000", "interpolate=true"});
  const Owned<GstPad> pad(gst_element_get_static_pad(marked.roihold(), "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, mark_two, nullptr, nullptr);
  const auto picture = [&] { return marked.view().picture(); };
  if (!pump_until([&] { return picture() && length_of(marked) > 0; })) return why = "no picture", false;
  gtk_button_clicked(GTK_BUTTON(find_widget("play", marked.widget())));
  gboolean handled;
  g_signal_emit_by_name(find_widget("seek", marked.widget()), "change-value", GTK_SCROLL_JUMP, 1.45 / length_of(marked),
                        &handled);
  return pump_until([&] {
    if (!picture()->after || picture()->time / (40 * GST_MSECOND) != 36) return false;
    why = std::to_string(lit(picture()->after)) + " pixels are lit";
    return lit(picture()->after) == 0;
  });
}

// A picture, which has no time to seek to, follows them too.
bool refreshes_picture() {
  tune::Window photo({"photo.jpg", ""}, {"mask=fill", "roi-meta=true"});
  const auto is_black = [&](bool wanted) {
    return pump_until([&] {
      const tune::Picture *picture = photo.view().picture();
      if (!picture || !picture->after) return false;
      why = std::to_string(lit(picture->after)) + " pixels are lit; expected " + (wanted ? "none" : "some");
      return (lit(picture->after) == 0) == wanted;
    });
  };
  if (!is_black(false)) return false;
  for (const bool wanted : {true, false}) {
    gst_util_set_object_arg(G_OBJECT(photo.roihold()), "unmarked", wanted ? "mark" : "pass");
    if (!is_black(wanted)) return false;
  }
  return true;
}

// The window shows warnings of roihold too: nothing has this type.
bool says_what_roihold_says() {
  tune::Window marked({clip, "identity"}, {"mask=fill", "roi-meta=true", "types=plate"});
  const Owned<GstPad> pad(gst_element_get_static_pad(marked.roihold(), "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, mark_some, nullptr, nullptr);
  const auto *label = GTK_LABEL(find_widget("message", marked.widget()));
  return pump_until([label] {
    why = gtk_label_get_text(const_cast<GtkLabel *>(label));
    return why.find("types=plate matches none of the regions") != std::string::npos;
  });
}

// A launch line takes none of the first name's characters as they are. The second name looks like a URI.
bool takes_any_name() {
  gchar *bytes = nullptr;
  gsize size = 0;
  if (!g_file_get_contents(clip.c_str(), &bytes, &size, nullptr)) return false;
  const Owned<gchar> owned(bytes);
  for (const char *name : {"a \\ \"b\"\n\xdf.webm", "scene:1.webm"}) {
    if (!g_file_set_contents(name, bytes, static_cast<gssize>(size), nullptr)) return false;
    const tune::Window named({name, ""}, {"mask=sobel"});
    if (!pump_until([&named] { return named.view().picture() != nullptr; })) return false;
    const std::string line = gtk_entry_get_text(GTK_ENTRY(find_widget("launch-line", named.widget())));
    why = line;
    if (!runs(line, "mask=sobel")) return false;
  }
  return true;
}

bool is_filled(const tune::Window &filled, int width, int height) {
  const auto is_there = [&] {
    const tune::Picture *picture = filled.view().picture();
    if (picture)
      why = std::to_string(picture->width) + "x" + std::to_string(picture->height) + ", of which " +
            std::to_string(lit(picture->before)) + " pixels are lit before, and " +
            std::to_string(lit(picture->after)) + " after";
    return picture && picture->width == width && picture->height == height && lit(picture->before) > 0 &&
           lit(picture->after) == 0;
  };
  return pump_until(is_there);
}

bool takes_one_row() {
  const tune::Window row({"row.mkv", ""}, {"mask=fill"});
  return is_filled(row, 8, 1);
}

bool takes_new_sizes() {
  const tune::Window changing({"change.avi", ""}, {"mask=fill"});
  return is_filled(changing, 64, 48) && is_filled(changing, 32, 80) && is_filled(changing, 64, 48);
}

// A file that is overwritten while it plays has no frame any more. The player says so once, and waits.
bool says_when_frames_are_gone() {
  gchar *bytes = nullptr;
  gsize size = 0;
  if (!g_file_get_contents(clip.c_str(), &bytes, &size, nullptr)) return false;
  const Owned<gchar> owned(bytes);
  if (!g_file_set_contents("gone.webm", bytes, static_cast<gssize>(size), nullptr)) return false;
  std::atomic<int> frames{0};
  int said = 0;
  const Owned<GstCaps> caps(gst_caps_from_string("video/x-raw"));
  tune::Player player(
      {"gone.webm", ""}, caps.get(), [&](Owned<GstSample>) { frames++; },
      [&](const std::string &text) {
        why = text;
        said++;
      });
  player.play();
  if (!pump_until([&] { return frames > 5 && player.seekable(); })) return false;
  FILE *file = std::fopen("gone.webm", "r+b");  // the same file, which the player has open
  const std::string nothing(size, 'x');
  const bool written = file && std::fwrite(nothing.data(), 1, size, file) == size;
  if (file) std::fclose(file);
  if (!written || !pump_until([&] { return said > 0; })) return false;
  pump(500);
  return said == 1 && equal("no frame of it can be decoded", why);
}

// Back by one frame, where a frame lasts longer than the rate says: slow.mkv, whose frames a decoder cuts off at the
// time of a seek, and raw.mkv, whose frames nothing cuts off. Each frame lasts a fifth of a second.
bool goes_back() {
  for (const char *name : {"slow.mkv", "raw.mkv"}) {
    tune::Window slow({name, ""}, {});
    const auto press = [&](const char *button) { gtk_button_clicked(GTK_BUTTON(find_widget(button, slow.widget()))); };
    const auto time = [&] { return std::string(gtk_label_get_text(GTK_LABEL(find_widget("time", slow.widget())))); };
    const auto shows_frame = [&](int number) {
      const std::string start = "0:0" + std::to_string(number / 5) + "." + std::to_string(number % 5 * 2) + "00 /";
      return pump_until([&] {
        const tune::Picture *picture = slow.view().picture();
        why = std::string(name) + " shows " + time() + ", not frame " + std::to_string(number);
        return picture && picture->time / (200 * GST_MSECOND) == static_cast<GstClockTime>(number) &&
               time().compare(0, start.size(), start) == 0;
      });
    };
    why = "the duration is not known";
    if (!pump_until([&] { return time().find('/') != std::string::npos; })) return false;
    press("play");
    gboolean handled;
    g_signal_emit_by_name(find_widget("seek", slow.widget()), "change-value", GTK_SCROLL_JUMP, 0.75, &handled);
    bool good = shows_frame(7);
    for (const int number : {6, 5, 4}) {
      if (good) press("back");
      good = good && shows_frame(number);
    }
    if (good) press("forward");
    if (!good || !shows_frame(5)) return false;
  }
  return true;
}

// After a seek to frames of another size, while earlier frames are held. The sink says so where it cannot write.
bool plays_after_seeks() {
  std::mutex lock;
  std::atomic<size_t> count{0};
  std::vector<Owned<GstSample>> held;
  const Owned<GstCaps> caps(gst_caps_from_string("video/x-raw"));
  const auto take = [&](Owned<GstSample> sample) {
    GstVideoInfo info;
    const bool good = gst_video_info_from_caps(&info, gst_sample_get_caps(sample.get()));
    const std::lock_guard<std::mutex> guard(lock);
    if (!good || info.size != gst_buffer_get_size(gst_sample_get_buffer(sample.get())))
      why = "the caps are not those of the frame";
    held.push_back(std::move(sample));
    count++;
  };
  g_log_set_default_handler([](const gchar *, GLogLevelFlags, const gchar *text, gpointer) { why = text; }, nullptr);
  bool good = true;
  {
    tune::Player player({"change.avi", ""}, caps.get(), take, [](const std::string &text) { why = text; });
    player.pause();
    good = pump_until([&player] { return player.seekable(); });
    for (const gint64 parts : {1, 9, 7}) {
      const gint64 time = player.duration() * parts / 10;
      player.seek(time);
      good = good && pump_until([&] { return std::abs(player.position() - time) < gint64(50 * GST_MSECOND); });
      if (parts == 9) continue;
      const size_t before = count;
      player.play();
      good = good && pump_until([&] { return count > before + 2; });
      player.pause();
    }
  }
  g_log_set_default_handler(g_log_default_handler, nullptr);
  return good && why.empty();
}

// Before GStreamer 1.26 qtdemux says limited range.
bool keeps_full_range() {
  std::mutex lock;
  std::string colors;
  const Owned<GstCaps> caps(gst_caps_from_string("video/x-raw"));
  const auto take = [&](Owned<GstSample> sample) {
    const std::lock_guard<std::mutex> guard(lock);
    colors = gst_structure_get_string(gst_caps_get_structure(gst_sample_get_caps(sample.get()), 0), "colorimetry");
  };
  tune::Player player({"full.mp4", ""}, caps.get(), take, [](const std::string &text) { why = text; });
  player.pause();
  const auto taken = [&] {
    const std::lock_guard<std::mutex> guard(lock);
    return !colors.empty();
  };
  return pump_until(taken) && equal("1:3:5:1", colors);
}

bool closes_early() {
  for (int ms = 0; ms < 60; ms += 10) {
    const tune::Window closed({clip, ""}, {});
    pump(ms);
  }
  return true;
}

void expect(const char *name, bool (*test)(), const char *skip = nullptr) {
  bool good = true;
  why.clear();
  if (!skip) try {
      good = test();
    } catch (const std::exception &e) {
      good = false;
      why = e.what();
    }
  std::printf("%s %d - %s%s%s\n", good ? "ok" : "not ok", number++, name, skip ? " # SKIP " : "", skip ? skip : "");
  std::fflush(stdout);
  if (!good) std::fprintf(stderr, "# %s: %s\n", name, why.c_str());
  failed |= !good;
}

}  // namespace

int main(int argc, char **argv) {
  gtk_init(&argc, &argv);
  gst_init(&argc, &argv);
  clip = argv[1];
  number = std::atoi(argv[2]);
  try {
    tune::Window opened({clip, ""}, {"roi=60%,20%,25%,40%"});
    window = &opened;
    const char *no_presets = GST_IS_PRESET(opened.element()) ? nullptr : "the element has no presets";
    expect("the window shows the picture before and after", opens);
    expect("another mask, and its controls", changes_mask);
    expect("a slider", moves_slider);
    expect("a number in steps", counts_in_steps);
    const std::string locale = std::setlocale(LC_NUMERIC, nullptr);
    const bool has_commas = std::setlocale(LC_NUMERIC, kCommas);
    std::setlocale(LC_NUMERIC, locale.c_str());
    expect("numbers where a locale has commas", counts_with_commas, has_commas ? nullptr : "there is no locale de_DE");
    expect("a colour", switches_and_colours);
    expect("a matrix", reads_coefficients);
    expect("what is wrong is said", says_what_is_wrong);
    expect("defaults", resets);
    expect("a rectangle by the mouse", draws_rectangle);
    expect("a polygon by the mouse", draws_polygon);
    expect("regions as text", writes_regions);
    expect("the divider by the mouse", moves_divider);
    expect("the launch line", copies_launch_line);
    expect("a line with values in quotes", quotes_values);
    expect("no regions", clears_regions);
    expect("a region in per cent", takes_written_region);
    expect("frame by frame", steps);
    expect("a seek", seeks);
    expect("play, the end, pause", plays_and_pauses);
    expect("the line with numbers", counts);
    expect("a preset", keeps_presets, no_presets);
    expect("a preset of both elements", loads_both_presets, no_presets);

    tune::Window unready({"", "videobalance saturation=0"}, {"mask=custom"});
    window = &unready;
    expect("a start that fails", recovers);
    expect("a detector", has_detector);
    expect("the controls of roihold", sets_roihold);
    expect("a paused frame follows roihold", follows_roihold);
    expect("so does a picture", refreshes_picture);
    expect("a frame between two detections after a seek", interpolates_after_seek);
    expect("outlines of the regions in metas", [] { return draws_outlines(clip); });
    expect("the outlines switched off", [] { return hides_outlines(clip); });
    expect("the line with numbers of roihold", [] { return counts_held(clip); });
    expect("what roihold says", says_what_roihold_says);
    expect("any file name", takes_any_name);
    expect("a picture of one row", takes_one_row);
    expect("a size that changes", takes_new_sizes);
    expect("a seek, then play", plays_after_seeks);
    expect("a file that is overwritten", says_when_frames_are_gone);
    expect("back by one frame", goes_back);
    expect("a clip in full range", keeps_full_range,
           g_file_test("full.mp4", G_FILE_TEST_EXISTS) ? nullptr : "no element x264enc or avdec_h264");
    expect("a window that is closed at once", closes_early);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "# %s\n", e.what());
    return 1;
  }
  return failed;
}
