// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The window: the picture, the controls, the position in the clip, and the messages of the element.
#pragma once

#include <gtk/gtk.h>

#include <memory>
#include <string>
#include <vector>

#include "controls.h"
#include "filter.h"
#include "player.h"
#include "presets.h"
#include "settings.h"
#include "view.h"
#include "worker.h"

namespace tune {

class Window {
 public:
  // `settings`: each as "name=value". Throws media::Failure.
  Window(const Input &input, const std::vector<std::string> &settings);
  ~Window();
  Window(const Window &) = delete;

  GtkWidget *widget() const { return window_; }
  GstElement *element() const { return filter_.element(); }  // cudaconv
  GstElement *roihold() const { return roihold_.get(); }
  const View &view() const { return view_; }
  // Why the input cannot be shown at all; empty: no such error. The window closes then.
  const std::string &failure() const { return failure_; }

 private:
  GtkWidget *make_tools();
  GtkWidget *make_picture();
  GtkWidget *make_transport();
  GtkWidget *make_launch_line();
  GtkWidget *make_side();
  void add_button(GtkWidget *box, const char *icon, const char *tooltip, const char *name,
                  void (*clicked)(GtkButton *, Window *));
  void show_picture(std::shared_ptr<const Picture> picture);
  void show_settings();
  void show_message(const std::string &text, bool stays = false);
  void show_playing();
  void take_region(const Region &points);
  void take_error(const std::string &text);
  void toggle();
  static gboolean take_key(GtkWidget *window, GdkEventKey *event, gpointer self);
  static gboolean take_message(GstBus *bus, GstMessage *message, gpointer self);
  static gboolean show_stats(gpointer self);
  static gboolean show_position(gpointer self);
  static gboolean show_held(gpointer self);

  const Input input_;
  Filter filter_;
  std::unique_ptr<Player> player_;
  const media::Owned<GstElement> roihold_;  // of the player
  Words held_;                              // its settings, when they were last shown
  View view_;
  Presets presets_;
  Controls controls_;
  GtkWidget *const window_;
  GtkWidget *play_, *seek_, *time_, *stats_, *held_stats_, *line_, *message_, *message_text_;
  std::string failure_;
  Worker::Counts counts_ = {};
  guint64 device_time_ = 0, device_frames_ = 0;
  gint64 counted_ = 0;
  gint64 message_until_ = 0;
  bool message_stays_ = false;  // until a frame is filtered: it says what is wrong with the settings
  std::vector<guint> timers_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tune
