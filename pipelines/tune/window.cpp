// SPDX-License-Identifier: LGPL-2.1-or-later
#include "window.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace tune {

using namespace media;

namespace {

constexpr char kStyle[] =
    "spinbutton button { min-width: 16px; padding: 0 3px; }"
    "#stats, #roihold-stats { opacity: 0.75; }"
    ".heading { font-weight: bold; }"
    "#launch-line { font-family: monospace; font-size: 85%; }"
    "#time { font-feature-settings: 'tnum'; }";

std::string clock(gint64 time) {
  char text[32];
  const gint64 ms = time / GST_MSECOND;
  std::snprintf(text, sizeof text, "%" PRId64 ":%02d.%03d", ms / 60000, static_cast<int>(ms / 1000 % 60),
                static_cast<int>(ms % 1000));
  return text;
}

// The caps that the filter takes in system memory.
Owned<GstCaps> filter_caps(GstElement *element) {
  const Owned<GstPad> pad(gst_element_get_static_pad(element, "sink"));
  const Owned<GstCaps> all(gst_pad_get_pad_template_caps(pad.get())), plain(gst_caps_new_empty_simple("video/x-raw"));
  return Owned<GstCaps>(gst_caps_intersect_full(all.get(), plain.get(), GST_CAPS_INTERSECT_FIRST));
}

void style() {
  GtkCssProvider *provider = gtk_css_provider_new();
  gtk_css_provider_load_from_data(provider, kStyle, -1, nullptr);
  gtk_style_context_add_provider_for_screen(gdk_screen_get_default(), GTK_STYLE_PROVIDER(provider),
                                            GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
  g_object_unref(provider);
  g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", TRUE, nullptr);
}

}  // namespace

Window::Window(const Input &input, const std::vector<std::string> &settings)
    : input_(input),
      player_(std::make_unique<Player>(
          input, filter_caps(element()).get(), [this](Owned<GstSample> sample) { worker_->take(std::move(sample)); },
          [this](const std::string &text) { take_error(text); },
          [this](const std::string &text) { show_message(text, true); })),
      roihold_(GST_ELEMENT(gst_object_ref(player_->roihold()))),
      view_([this](const Region &points) { take_region(points); }),
      presets_({element(), roihold()}, [this](const std::string &text) { show_message(text); }),
      controls_(
          {element(), roihold()},
          [this](GstElement *of, const char *property) {
            return of == roihold() ? needs_roihold(input_, roihold()) : has_effect(of, property);
          },
          [this] { show_settings(); }),
      window_(gtk_window_new(GTK_WINDOW_TOPLEVEL)) {
  style();
  gtk_window_set_default_size(GTK_WINDOW(window_), 1120, 650);
  GtkWidget *header = gtk_header_bar_new();
  gtk_header_bar_set_show_close_button(GTK_HEADER_BAR(header), TRUE);
  const Owned<gchar> base(g_filename_display_basename(input.name.c_str()));
  gtk_header_bar_set_title(GTK_HEADER_BAR(header), input.name.empty() ? "test picture" : base.get());
  gtk_header_bar_pack_start(GTK_HEADER_BAR(header), make_tools());
  gtk_window_set_titlebar(GTK_WINDOW(window_), header);

  GtkWidget *left = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6);
  gtk_box_pack_start(GTK_BOX(left), make_picture(), TRUE, TRUE, 0);
  for (GtkWidget *widget : {make_transport(), make_launch_line()})
    gtk_box_pack_start(GTK_BOX(left), widget, FALSE, FALSE, 0);
  GtkWidget *all = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_box_pack_start(GTK_BOX(all), left, TRUE, TRUE, 0);
  gtk_box_pack_start(GTK_BOX(all), make_side(), FALSE, FALSE, 0);
  gtk_container_add(GTK_CONTAINER(window_), all);
  g_signal_connect(window_, "key-press-event", G_CALLBACK(take_key), this);

  worker_ = std::make_unique<Worker>(filter_, [this](auto picture) { show_picture(std::move(picture)); });
  for (const std::string &setting : settings) set_property({element(), roihold()}, setting);
  gst_bus_add_watch(filter_.bus(), take_message, this);
  timers_ = {g_timeout_add(500, show_stats, this), g_timeout_add(100, show_position, this),
             g_timeout_add(100, show_held, this)};
  show_settings();
  gtk_widget_show_all(window_);
  gtk_widget_grab_focus(view_.widget());
  player_->play();
  show_playing();
}

Window::~Window() {
  for (const guint timer : timers_) g_source_remove(timer);
  gst_bus_remove_watch(filter_.bus());
  player_.reset();
  worker_.reset();
  gtk_widget_destroy(window_);
}

// ---- The parts ------------------------------------------------------------------------------------------------------

void Window::add_button(GtkWidget *box, const char *icon, const char *tooltip, const char *name,
                        void (*clicked)(GtkButton *, Window *)) {
  GtkWidget *button = gtk_button_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON);
  gtk_widget_set_tooltip_text(button, tooltip);
  gtk_widget_set_name(button, name);
  g_signal_connect(button, "clicked", G_CALLBACK(clicked), this);
  gtk_box_pack_start(GTK_BOX(box), button, FALSE, FALSE, 0);
}

GtkWidget *Window::make_tools() {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0), *first = nullptr;
  gtk_style_context_add_class(gtk_widget_get_style_context(box), "linked");
  const struct {
    Tool tool;
    const char *label, *name, *tooltip;
  } tools[] = {
      {Tool::Divider, "Compare", "compare", "Drag the line: left of it is the input, right of it the output."},
      {Tool::Rectangle, "Rectangle", "rectangle", "Drag a rectangle: only regions are filtered."},
      {Tool::Polygon, "Polygon", "polygon", "Click the corners of a region; a double click or Enter closes it."},
  };
  for (const auto &tool : tools) {
    GtkWidget *button = gtk_radio_button_new_with_label_from_widget(GTK_RADIO_BUTTON(first), tool.label);
    if (!first) first = button;
    gtk_toggle_button_set_mode(GTK_TOGGLE_BUTTON(button), FALSE);
    gtk_widget_set_name(button, tool.name);
    gtk_widget_set_tooltip_text(button, tool.tooltip);
    g_object_set_data(G_OBJECT(button), "tool", GINT_TO_POINTER(static_cast<int>(tool.tool)));
    g_signal_connect(
        button, "toggled", G_CALLBACK(+[](GtkToggleButton *toggled, Window *self) {
          if (gtk_toggle_button_get_active(toggled))
            self->view_.set_tool(static_cast<Tool>(GPOINTER_TO_INT(g_object_get_data(G_OBJECT(toggled), "tool"))));
        }),
        this);
    gtk_box_pack_start(GTK_BOX(box), button, FALSE, FALSE, 0);
  }
  GtkWidget *clear = gtk_button_new_with_label("Clear");
  gtk_widget_set_name(clear, "clear");
  gtk_widget_set_tooltip_text(clear, "Removes all regions.");
  g_signal_connect(
      clear, "clicked",
      G_CALLBACK(+[](GtkButton *, Window *self) { g_object_set(self->element(), "roi", nullptr, nullptr); }), this);
  gtk_box_pack_start(GTK_BOX(box), clear, FALSE, FALSE, 0);
  GtkWidget *outlines = gtk_toggle_button_new_with_label("Outlines");
  gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(outlines), TRUE);
  gtk_widget_set_name(outlines, "outlines");
  gtk_widget_set_tooltip_text(outlines,
                              "Shows where regions are. Yellow: regions of the property roi. Pink: regions that came "
                              "with the frame; dashed: regions that roihold has added.");
  g_signal_connect(outlines, "toggled", G_CALLBACK(+[](GtkToggleButton *toggled, Window *self) {
                     self->view_.show_outlines(gtk_toggle_button_get_active(toggled));
                   }),
                   this);
  gtk_box_pack_start(GTK_BOX(box), outlines, FALSE, FALSE, 0);
  return box;
}

// The picture, and over its lower end what the element says, so that the picture stays where it is.
GtkWidget *Window::make_picture() {
  message_text_ = gtk_label_new(nullptr);
  gtk_widget_set_name(message_text_, "message");
  gtk_label_set_line_wrap(GTK_LABEL(message_text_), TRUE);
  gtk_label_set_xalign(GTK_LABEL(message_text_), 0);
  message_ = gtk_info_bar_new();
  gtk_info_bar_set_message_type(GTK_INFO_BAR(message_), GTK_MESSAGE_WARNING);
  gtk_container_add(GTK_CONTAINER(gtk_info_bar_get_content_area(GTK_INFO_BAR(message_))), message_text_);
  gtk_widget_set_valign(message_, GTK_ALIGN_END);
  gtk_widget_show_all(message_);
  gtk_widget_set_no_show_all(message_, TRUE);
  gtk_widget_hide(message_);
  GtkWidget *overlay = gtk_overlay_new();
  gtk_container_add(GTK_CONTAINER(overlay), view_.widget());
  gtk_overlay_add_overlay(GTK_OVERLAY(overlay), message_);
  gtk_overlay_set_overlay_pass_through(GTK_OVERLAY(overlay), message_, TRUE);
  return overlay;
}

GtkWidget *Window::make_transport() {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *buttons = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_set_margin_start(box, 6);
  gtk_widget_set_margin_end(box, 6);
  gtk_style_context_add_class(gtk_widget_get_style_context(buttons), "linked");
  add_button(buttons, "media-skip-backward-symbolic", "The frame before (,)", "back",
             [](GtkButton *, Window *self) { self->player_->step(false), self->show_playing(); });
  play_ = gtk_button_new_from_icon_name("media-playback-pause-symbolic", GTK_ICON_SIZE_BUTTON);
  gtk_widget_set_name(play_, "play");
  gtk_widget_set_tooltip_text(play_, "Play or pause (space)");
  g_signal_connect(play_, "clicked", G_CALLBACK(+[](GtkButton *, Window *self) { self->toggle(); }), this);
  gtk_box_pack_start(GTK_BOX(buttons), play_, FALSE, FALSE, 0);
  add_button(buttons, "media-skip-forward-symbolic", "The next frame (.)", "forward",
             [](GtkButton *, Window *self) { self->player_->step(true), self->show_playing(); });
  seek_ = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 1, 0.01);
  gtk_scale_set_draw_value(GTK_SCALE(seek_), FALSE);
  gtk_widget_set_name(seek_, "seek");
  // Only the user's changes: the position is shown without this signal.
  g_signal_connect(seek_, "change-value",
                   G_CALLBACK(+[](GtkRange *, GtkScrollType, gdouble value, Window *self) -> gboolean {
                     self->player_->seek(static_cast<gint64>(value * static_cast<double>(self->player_->duration())));
                     return FALSE;
                   }),
                   this);
  time_ = gtk_label_new(nullptr);
  gtk_widget_set_name(time_, "time");
  gtk_box_pack_start(GTK_BOX(box), buttons, FALSE, FALSE, 0);
  gtk_box_pack_start(GTK_BOX(box), seek_, TRUE, TRUE, 0);
  gtk_box_pack_start(GTK_BOX(box), time_, FALSE, FALSE, 0);
  return box;
}

GtkWidget *Window::make_launch_line() {
  GtkWidget *all = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6), *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_container_set_border_width(GTK_CONTAINER(all), 6);
  stats_ = gtk_label_new(" ");
  gtk_widget_set_name(stats_, "stats");
  held_stats_ = gtk_label_new(nullptr);
  gtk_widget_set_name(held_stats_, "roihold-stats");
  gtk_widget_set_no_show_all(held_stats_, TRUE);
  line_ = gtk_entry_new();
  gtk_widget_set_name(line_, "launch-line");
  gtk_editable_set_editable(GTK_EDITABLE(line_), FALSE);
  for (GtkWidget *label : {stats_, held_stats_}) {
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_ellipsize(GTK_LABEL(label), PANGO_ELLIPSIZE_END);
    gtk_box_pack_start(GTK_BOX(all), label, FALSE, FALSE, 0);
  }
  GtkWidget *copy = gtk_button_new_with_label("Copy");
  gtk_widget_set_name(copy, "copy");
  gtk_widget_set_tooltip_text(copy, "Copies the line that does the same in a terminal.");
  g_signal_connect(copy, "clicked", G_CALLBACK(+[](GtkButton *, Window *self) {
                     gtk_clipboard_set_text(gtk_clipboard_get(GDK_SELECTION_CLIPBOARD),
                                            gtk_entry_get_text(GTK_ENTRY(self->line_)), -1);
                   }),
                   this);
  gtk_box_pack_start(GTK_BOX(box), line_, TRUE, TRUE, 0);
  gtk_box_pack_start(GTK_BOX(box), copy, FALSE, FALSE, 0);
  gtk_box_pack_start(GTK_BOX(all), box, FALSE, FALSE, 0);
  return all;
}

GtkWidget *Window::make_side() {
  GtkWidget *side = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *top = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_set_size_request(side, 400, -1);
  gtk_widget_set_hexpand(side, FALSE);  // the controls in it expand, but not at the cost of the picture
  gtk_container_set_border_width(GTK_CONTAINER(top), 12);
  if (presets_.widget()) gtk_box_pack_start(GTK_BOX(top), presets_.widget(), TRUE, TRUE, 0);
  GtkWidget *button = gtk_button_new_with_label("Reset");
  gtk_widget_set_name(button, "reset");
  gtk_widget_set_tooltip_text(button, "Sets everything but the regions to its default.");
  g_signal_connect(button, "clicked", G_CALLBACK(+[](GtkButton *, Window *self) {
                     for (GstElement *element : {self->element(), self->roihold()}) reset(element);
                   }),
                   this);
  gtk_box_pack_end(GTK_BOX(top), button, FALSE, FALSE, 0);
  GtkWidget *scrolled = gtk_scrolled_window_new(nullptr, nullptr);
  gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_container_add(GTK_CONTAINER(scrolled), controls_.widget());
  gtk_box_pack_start(GTK_BOX(side), top, FALSE, FALSE, 0);
  gtk_box_pack_start(GTK_BOX(side), scrolled, TRUE, TRUE, 0);
  return side;
}

// ---- What happens ---------------------------------------------------------------------------------------------------

void Window::show_picture(std::shared_ptr<const Picture> picture) {
  const bool first =
      !view_.picture() || view_.picture()->width != picture->width || view_.picture()->height != picture->height;
  view_.show(std::move(picture));
  if (first) show_settings();  // the regions in per cent follow the size
}

// The settings have changed: filters the frame again, and shows what follows from them.
void Window::show_settings() {
  if (!worker_) return;
  worker_->refresh();
  if (Words held = settings_of(roihold()); held != held_) {
    held_ = std::move(held);
    player_->refresh();
  }
  gtk_entry_set_text(GTK_ENTRY(line_), launch_line(input_, roihold(), element()).c_str());
  gtk_editable_set_position(GTK_EDITABLE(line_), -1);  // the settings are near its end
  gchar *text = nullptr;
  g_object_get(element(), "roi", &text, nullptr);
  const Owned<gchar> roi(text);
  if (const Picture *picture = view_.picture())
    view_.set_regions(regions_of(text ? text : "", picture->width, picture->height));
}

void Window::show_message(const std::string &text, bool stays) {
  gtk_label_set_text(GTK_LABEL(message_text_), text.c_str());
  gtk_widget_show(message_);
  message_until_ = g_get_monotonic_time() + 6 * G_USEC_PER_SEC;
  message_stays_ = stays;
}

void Window::show_playing() {
  const char *icon = player_->playing() ? "media-playback-pause-symbolic" : "media-playback-start-symbolic";
  gtk_button_set_image(GTK_BUTTON(play_), gtk_image_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON));
}

void Window::toggle() {
  if (player_->playing())
    player_->pause();
  else
    player_->play();
  show_playing();
}

void Window::take_region(const Region &points) {
  gchar *text = nullptr;
  g_object_get(element(), "roi", &text, nullptr);
  const Owned<gchar> roi(text);
  const Picture *picture = view_.picture();
  g_object_set(element(), "roi", with_region(text ? text : "", points, picture->width, picture->height).c_str(),
               nullptr);
}

void Window::take_error(const std::string &text) {
  if (view_.picture()) return show_message(text);
  failure_ = (input_.name.empty() ? "" : input_.name + ": ") + text;
  gtk_window_close(GTK_WINDOW(window_));
}

gboolean Window::take_key(GtkWidget *window, GdkEventKey *event, gpointer data) {
  auto *self = static_cast<Window *>(data);
  // The widget that has the focus comes first.
  if (gtk_window_propagate_key_event(GTK_WINDOW(window), event)) return GDK_EVENT_STOP;
  switch (event->keyval) {
    case GDK_KEY_space:
      self->toggle();
      return GDK_EVENT_STOP;
    case GDK_KEY_comma:
    case GDK_KEY_period:
      self->player_->step(event->keyval == GDK_KEY_period);
      self->show_playing();
      return GDK_EVENT_STOP;
    default:
      return GDK_EVENT_PROPAGATE;
  }
}

gboolean Window::take_message(GstBus *, GstMessage *message, gpointer data) {
  auto *self = static_cast<Window *>(data);
  switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
      self->show_message(message_text(message, gst_message_parse_error, false), true);
      break;
    case GST_MESSAGE_WARNING:
      self->show_message(message_text(message, gst_message_parse_warning, false), true);
      break;
    case GST_MESSAGE_INFO:
      self->show_message(message_text(message, gst_message_parse_info, false));
      break;
    default:
      break;
  }
  return G_SOURCE_CONTINUE;
}

gboolean Window::show_stats(gpointer data) {
  auto *self = static_cast<Window *>(data);
  const gint64 now = g_get_monotonic_time();
  const Worker::Counts counts = self->worker_->counts();
  const guint64 runs = counts.runs - self->counts_.runs;
  if (self->message_until_ && now > self->message_until_ && (runs || !self->message_stays_))
    gtk_widget_hide(self->message_);
  const Picture *picture = self->view_.picture();
  if (!picture) return G_SOURCE_CONTINUE;
  GstStructure *raw = nullptr;
  g_object_get(self->element(), "stats", &raw, nullptr);
  const Owned<GstStructure> stats(raw);
  const auto text = [&](const char *name) {
    const gchar *value = gst_structure_get_string(stats.get(), name);
    return std::string(value ? value : "none");
  };
  guint64 device_time = 0, device_frames = 0;
  gst_structure_get_uint64(stats.get(), "device-time", &device_time);
  gst_structure_get_uint64(stats.get(), "frames", &device_frames);
  char numbers[96] = "";
  const double seconds = static_cast<double>(now - self->counted_) / 1e6;
  if (self->counted_ && runs > 0) {
    const bool timed = device_frames > self->device_frames_ && device_time > self->device_time_;
    const double ms =
        timed ? static_cast<double>(device_time - self->device_time_) / 1e6 /
                    static_cast<double>(device_frames - self->device_frames_)
              : static_cast<double>(counts.filtering - self->counts_.filtering) / 1e3 / static_cast<double>(runs);
    std::snprintf(numbers, sizeof numbers, "%.1f frames/s, %.2f ms a frame on the %s   ",
                  static_cast<double>(counts.frames - self->counts_.frames) / seconds, ms, timed ? "GPU" : "CPU");
  } else if (self->counted_) {
    std::snprintf(numbers, sizeof numbers, "0.0 frames/s   ");
  }
  const std::string line = std::string(numbers) + "backend " + text("backend") + ", method " + text("method") + "   " +
                           std::to_string(picture->width) + "x" + std::to_string(picture->height) + " " +
                           picture->format;
  gtk_label_set_text(GTK_LABEL(self->stats_), line.c_str());
  self->counts_ = counts;
  self->counted_ = now;
  self->device_time_ = device_time;
  self->device_frames_ = device_frames;
  return G_SOURCE_CONTINUE;
}

gboolean Window::show_position(gpointer data) {
  auto *self = static_cast<Window *>(data);
  const gint64 duration = self->player_->duration(), position = self->player_->position();
  const bool seekable = self->player_->seekable();
  gtk_widget_set_sensitive(self->seek_, seekable);
  if (seekable) {
    const double part = static_cast<double>(position) / static_cast<double>(duration);
    gtk_range_set_value(GTK_RANGE(self->seek_), part);
  }
  const std::string text = clock(position) + (seekable ? " / " + clock(duration) : "");
  gtk_label_set_text(GTK_LABEL(self->time_), text.c_str());
  return G_SOURCE_CONTINUE;
}

gboolean Window::show_held(gpointer data) {
  auto *self = static_cast<Window *>(data);
  const Picture *picture = self->view_.picture();
  const bool used = needs_roihold(self->input_, self->roihold());
  gtk_widget_set_visible(self->held_stats_, used);
  if (!used) return G_SOURCE_CONTINUE;
  GstStructure *raw = nullptr;
  g_object_get(self->roihold(), "stats", &raw, nullptr);
  const Owned<GstStructure> stats(raw);
  guint64 marked = 0, unmarked = 0;
  gst_structure_get_uint64(stats.get(), "frames-marked", &marked);
  gst_structure_get_uint64(stats.get(), "frames-unmarked", &unmarked);
  const std::vector<Outline> outlines = picture ? picture->outlines : std::vector<Outline>();
  const auto added = std::count_if(outlines.begin(), outlines.end(), [](const Outline &o) { return o.is_held; });
  const auto found = static_cast<std::ptrdiff_t>(outlines.size()) - added;
  const std::string text = "roihold: regions found in this frame " + std::to_string(found) + ", added " +
                           std::to_string(added) + "   frames marked " + std::to_string(marked) + ", unmarked " +
                           std::to_string(unmarked);
  gtk_label_set_text(GTK_LABEL(self->held_stats_), text.c_str());
  return G_SOURCE_CONTINUE;
}

}  // namespace tune
