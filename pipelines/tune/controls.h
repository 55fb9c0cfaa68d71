// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A widget for each setting of the element, made from its GParamSpec.
#pragma once

#include <gtk/gtk.h>
#include <gst/gst.h>

#include <functional>
#include <memory>
#include <vector>

namespace tune {

// One setting. The widget that holds its value has the name of the property.
class Control {
 public:
  virtual ~Control() = default;
  virtual GtkWidget *widget() const = 0;
  virtual void show(const GValue *value) = 0;  // makes the widget show the value
};

class Controls {
 public:
  // Calls `changed` after properties have changed, by controls or not: once for all changes of a moment.
  Controls(GstElement *element, std::function<void()> changed);
  ~Controls();
  Controls(const Controls &) = delete;

  GtkWidget *widget() const { return grid_; }

 private:
  struct Row {
    GParamSpec *spec;
    GtkWidget *label;
    std::unique_ptr<Control> control;
  };

  void add_row(GParamSpec *spec);
  void show(const Row &row);
  // Shows the rows that the mask uses.
  void choose();
  static void take_change(GObject *element, GParamSpec *spec, gpointer self);
  static gboolean tell(gpointer self);

  GstElement *const element_;
  const std::function<void()> changed_;
  GtkWidget *const grid_;
  std::vector<Row> rows_;
  gulong handler_;
  guint idle_ = 0;
};

}  // namespace tune
