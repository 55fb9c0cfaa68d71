// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The picture: before the filter left of the divider, after it on the right, with the outlines of the regions that are
// set, and of those in the metas of the frame.
#pragma once

#include <gtk/gtk.h>

#include <functional>
#include <memory>

#include "picture.h"
#include "regions.h"

namespace tune {

enum class Tool { Divider, Rectangle, Polygon };

class View {
 public:
  // Calls `drawn` with the corners of each region that the mouse has drawn: two of a rectangle, more of a polygon.
  explicit View(std::function<void(const Region &)> drawn);

  GtkWidget *widget() const { return area_; }
  void show(std::shared_ptr<const Picture> picture);
  const Picture *picture() const { return picture_.get(); }
  void set_regions(std::vector<Region> regions);
  // Whether the outlines are drawn; at first they are.
  void show_outlines(bool shown);
  void set_tool(Tool tool);
  // Where the picture begins in the widget, and how large a pixel is there.
  struct Placement {
    double x, y, scale_x, scale_y;
  };
  Placement placement() const;
  // The column of the widget at which the picture after the filter begins.
  int divider() const;

 private:
  static gboolean draw(GtkWidget *area, cairo_t *cr, gpointer self);
  static gboolean press(GtkWidget *area, GdkEventButton *event, gpointer self);
  static gboolean release(GtkWidget *area, GdkEventButton *event, gpointer self);
  static gboolean move(GtkWidget *area, GdkEventMotion *event, gpointer self);
  static gboolean press_key(GtkWidget *area, GdkEventKey *event, gpointer self);
  void draw_pictures(cairo_t *cr, const Placement &at) const;
  void draw_divider(cairo_t *cr, const Placement &at) const;
  void draw_regions(cairo_t *cr, const Placement &at) const;
  Point to_picture(double x, double y) const;
  void set_divider(double x);
  void finish();
  void redraw() { gtk_widget_queue_draw(area_); }

  GtkWidget *const area_;
  const std::function<void(const Region &)> drawn_;
  std::shared_ptr<const Picture> picture_;
  std::vector<Region> regions_;
  bool outlines_ = true;
  Tool tool_ = Tool::Divider;
  double divider_ = 0.5;  // as a part of the picture's width
  bool dragging_ = false;
  Region points_;  // of the region being drawn; the last one follows the mouse
};

}  // namespace tune
