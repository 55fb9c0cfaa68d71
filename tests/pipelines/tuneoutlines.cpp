// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The outlines that cudaconv-tune draws over the picture, for the regions that metas bring.
#include <gst/video/video.h>

#include <cmath>
#include <memory>

#include "../../pipelines/media.h"
#include "tunesupport.h"

namespace {

using namespace media;

struct Rectangle {
  int x, y, width, height;
};

constexpr int kFrame = 25;  // the first one with a region; the next region comes two frames later
constexpr Rectangle kFirst = {100, 80, 120, 90}, kMoved = {110, 80, 120, 90}, kNext = {120, 80, 120, 90};
constexpr GstClockTime kLasts = 40 * GST_MSECOND;  // a frame of the clip

// Stands for a detector.
GstPadProbeReturn detect(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *const buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  const auto frame = static_cast<int>(GST_BUFFER_PTS(buffer) / kLasts);
  const auto add = [buffer](const Rectangle &r) {
    gst_buffer_add_video_region_of_interest_meta(buffer, "face", static_cast<guint>(r.x), static_cast<guint>(r.y),
                                                 static_cast<guint>(r.width), static_cast<guint>(r.height));
  };
  if (frame == kFrame) add(kFirst);
  if (frame == kFrame + 2) add(kNext);
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

// A paused window with a detector before its roihold.
class Paused {
 public:
  explicit Paused(const std::string &clip)
      : window_({clip, "identity"}, {"mask=identity", "roi-meta=true", "roi=20,200,60,50"}) {
    const Owned<GstPad> pad(gst_element_get_static_pad(roihold(), "sink")), before(gst_pad_get_peer(pad.get()));
    gst_pad_add_probe(before.get(), GST_PAD_PROBE_TYPE_BUFFER, detect, nullptr, nullptr);
    if (!pump_until([this] { return window_.view().picture() && length_of(window_) > 0; })) throw Failure("no picture");
    gtk_button_clicked(GTK_BUTTON(widget("play")));
  }

  GtkWidget *widget(const char *name) const { return find_widget(name, window_.widget()); }
  GstElement *roihold() const { return window_.roihold(); }
  const tune::Window &window() const { return window_; }
  std::string line() const { return gtk_label_get_text(GTK_LABEL(widget("roihold-stats"))); }

  // Shows a frame, and then sets for how many frames a region is kept. The window follows at once.
  bool show(int frame, int hold, int lookahead, bool interpolate) const {
    gboolean handled;
    g_signal_emit_by_name(widget("seek"), "change-value", GTK_SCROLL_JUMP, (0.04 * frame + 0.01) / length_of(window_),
                          &handled);
    why = "frame " + std::to_string(frame) + " is not shown";
    if (!pump_until([&] { return is_at(frame); })) return false;
    g_object_set(roihold(), "hold", hold * kLasts, "lookahead", lookahead * kLasts, "interpolate", interpolate,
                 nullptr);
    return true;
  }
  bool is_at(int frame) const { return static_cast<int>(window_.view().picture()->time / kLasts) == frame; }

 private:
  tune::Window window_;
};

struct Shot {
  explicit Shot(const Paused &of) {
    GtkWidget *area = of.widget("picture");
    pixels.reset(gdk_pixbuf_get_from_window(gtk_widget_get_window(area), 0, 0, gtk_widget_get_allocated_width(area),
                                            gtk_widget_get_allocated_height(area)));
    at = of.window().view().placement();
  }
  int width() const { return gdk_pixbuf_get_width(pixels.get()); }
  int height() const { return gdk_pixbuf_get_height(pixels.get()); }
  bool has(int x, int y, int red, int green, int blue) const {
    const guchar *p = gdk_pixbuf_read_pixels(pixels.get()) + y * gdk_pixbuf_get_rowstride(pixels.get()) +
                      x * gdk_pixbuf_get_n_channels(pixels.get());
    return p[0] == red && p[1] == green && p[2] == blue;
  }
  bool is_pink(int x, int y) const { return has(x, y, 255, 51, 204); }
  bool is_black(int x, int y) const { return has(x, y, 0, 0, 0); }
  int pink() const {
    int count = 0;
    for (int y = 0; y < height(); y++)
      for (int x = 0; x < width(); x++) count += is_pink(x, y);
    return count;
  }
  // The yellow pixels of the region of the property.
  int yellow() const {
    int count = 0;
    for (int y = 0; y < height(); y++)
      for (int x = 0; x < width(); x++) count += has(x, y, 255, 217, 25);
    return count;
  }

  std::unique_ptr<GdkPixbuf, void (*)(gpointer)> pixels{nullptr, g_object_unref};
  tune::View::Placement at;
};

// Whether pink lines are where the edges of the rectangle are in the window, and nowhere else: with black between the
// dashes, or without gaps.
bool is_outline(const Shot &shot, const Rectangle &r, bool dashed) {
  const double left = shot.at.x + r.x * shot.at.scale_x, right = left + r.width * shot.at.scale_x,
               top = shot.at.y + r.y * shot.at.scale_y, bottom = top + r.height * shot.at.scale_y;
  // The line is two pixels wide: it covers all of the pixel in which an edge is.
  const auto pixel = [](double v) { return static_cast<int>(std::floor(v)); };
  int count = 0, pink = 0, black = 0, elsewhere = 0;
  const auto look = [&](int x, int y) {
    count++;
    pink += shot.is_pink(x, y);
    black += shot.is_black(x, y);
  };
  for (int x = pixel(left) + 2; x < pixel(right) - 2; x++) look(x, pixel(top)), look(x, pixel(bottom));
  for (int y = pixel(top) + 2; y < pixel(bottom) - 2; y++) look(pixel(left), y), look(pixel(right), y);
  for (int y = 0; y < shot.height(); y++)
    for (int x = 0; x < shot.width(); x++) {
      const bool outside = x < left - 2 || x > right + 2 || y < top - 2 || y > bottom + 2;
      const bool inside = x > left + 2 && x < right - 2 && y > top + 2 && y < bottom - 2;
      elsewhere += (outside || inside) && shot.is_pink(x, y);
    }
  why = "of " + std::to_string(count) + " pixels " + std::to_string(pink) + " are pink and " + std::to_string(black) +
        " black, and " + std::to_string(elsewhere) + " elsewhere are pink; expected " +
        (dashed ? "dashes" : "no gaps") + " around " + std::to_string(r.x) + "," + std::to_string(r.y);
  if (elsewhere || count < 200) return false;
  return dashed ? pink > count / 3 && pink < 2 * count / 3 && black > count / 3 : pink == count;
}

}  // namespace

// In the window's first size and in another one.
bool draws_outlines(const std::string &clip) {
  const Paused paused(clip);
  const struct {
    int frame, hold, lookahead;
    bool interpolate;
    Rectangle expected;
    bool dashed;
  } cases[] = {
      {kFrame, 0, 0, false, kFirst, false},     // found
      {kFrame + 1, 1, 0, false, kFirst, true},  // held
      {kFrame - 1, 0, 1, false, kFirst, true},  // early
      {kFrame + 1, 1, 1, true, kMoved, true},   // between two
      {kFrame + 2, 0, 0, false, kNext, false},  // found
  };
  for (const int width : {1120, 1350}) {
    gtk_window_resize(GTK_WINDOW(paused.window().widget()), width, width * 650 / 1120);
    const auto is_wide = [&] {
      gint now;
      gtk_window_get_size(GTK_WINDOW(paused.window().widget()), &now, nullptr);
      return now == width;
    };
    if (!pump_until(is_wide)) return why = "the window has another size", false;
    for (const auto &c : cases) {
      if (!paused.show(c.frame, c.hold, c.lookahead, c.interpolate)) return false;
      if (!pump_until([&] { return paused.is_at(c.frame) && is_outline(Shot(paused), c.expected, c.dashed); })) {
        why += " in frame " + std::to_string(c.frame) + ", " + std::to_string(width) + " pixels wide";
        return false;
      }
    }
  }
  return true;
}

bool hides_outlines(const std::string &clip) {
  const Paused paused(clip);
  if (!paused.show(kFrame, 0, 0, false)) return false;
  const auto shown = [&](bool wanted) {
    return pump_until([&] {
      const Shot shot(paused);
      const int pink = shot.pink(), yellow = shot.yellow();
      why = std::to_string(pink) + " pixels are pink, and " + std::to_string(yellow) + " yellow";
      return paused.is_at(kFrame) && (wanted ? pink > 400 && yellow > 100 : pink == 0 && yellow == 0);
    });
  };
  if (!shown(true)) return false;
  auto *button = GTK_TOGGLE_BUTTON(paused.widget("outlines"));
  for (const bool on : {false, true}) {
    gtk_toggle_button_set_active(button, on);
    if (!shown(on)) return false;
  }
  return true;
}

// The line has the numbers of the frame, and of the stats of roihold.
bool counts_held(const std::string &clip) {
  const Paused paused(clip);
  const auto says = [&](const char *regions) {
    return pump_until([&] {
      GstStructure *raw = nullptr;
      g_object_get(paused.roihold(), "stats", &raw, nullptr);
      const Owned<GstStructure> stats(raw);
      guint64 marked = 0, unmarked = 0;
      gst_structure_get(stats.get(), "frames-marked", G_TYPE_UINT64, &marked, "frames-unmarked", G_TYPE_UINT64,
                        &unmarked, nullptr);
      const std::string want = std::string("roihold: regions ") + regions + "   frames marked " +
                               std::to_string(marked) + ", unmarked " + std::to_string(unmarked);
      why = "expected " + want + "\n# but got  " + paused.line();
      return marked > 0 && unmarked > 0 && paused.line() == want;
    });
  };
  return paused.show(kFrame, 0, 0, false) && says("found in this frame 1, added 0") &&
         paused.show(kFrame + 1, 1, 0, false) && says("found in this frame 0, added 1") &&
         paused.show(kFrame + 2, 2, 0, false) && says("found in this frame 1, added 1") &&
         gtk_widget_get_mapped(paused.widget("roihold-stats"));
}
