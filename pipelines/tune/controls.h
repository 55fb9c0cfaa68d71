// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A widget for each setting of the elements, made from its GParamSpec.
#pragma once

#include <gtk/gtk.h>
#include <gst/gst.h>

#include <functional>
#include <memory>
#include <vector>

#include "../media.h"

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
  // Whether a property of an element is of use.
  using Used = std::function<bool(GstElement *element, const char *property)>;
  // Shows the controls that are of use. Calls `changed` after properties have changed, by controls or not: once for all
  // changes of a moment.
  Controls(const media::Filters &elements, Used used, std::function<void()> changed);
  ~Controls();
  Controls(const Controls &) = delete;

  GtkWidget *widget() const { return grid_; }

 private:
  struct Row {
    GstElement *element;
    GParamSpec *spec;
    GtkWidget *label;
    std::unique_ptr<Control> control;
  };
  struct Heading {
    GstElement *element;
    GtkWidget *label;
  };

  void add_heading(GstElement *element);
  void add_row(GstElement *element, GParamSpec *spec);
  void show(const Row &row);
  // Shows the rows that are of use, and the headings above them.
  void choose();
  static void take_change(GObject *element, GParamSpec *spec, gpointer self);
  static gboolean tell(gpointer self);

  const media::Filters elements_;
  const Used used_;
  const std::function<void()> changed_;
  GtkWidget *const grid_;
  int lines_ = 0;
  std::vector<Heading> headings_;
  std::vector<Row> rows_;
  std::vector<gulong> handlers_;  // of the elements
  guint idle_ = 0;
};

}  // namespace tune
