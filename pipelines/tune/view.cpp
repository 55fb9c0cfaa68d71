// SPDX-License-Identifier: LGPL-2.1-or-later
#include "view.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tune {

namespace {

constexpr double kNear = 8;  // pixels of the window within which the mouse hits a point

void trace(cairo_t *cr, const Region &points, const View::Placement &at, bool closed) {
  for (const Point &p : points) cairo_line_to(cr, at.x + p.x * at.scale_x, at.y + p.y * at.scale_y);
  if (closed) cairo_close_path(cr);
}

struct Style {
  double red, green, blue;
  bool dashed;  // on black, which shows on every picture
};

constexpr Style kSet = {1, 0.85, 0.1, true};  // a region of the property `roi`, or one that is being drawn
constexpr Style kFound = {1, 0.2, 0.8, false}, kHeld = {1, 0.2, 0.8, true};  // in the metas of the frame

void stroke(cairo_t *cr, const Style &style) {
  const double dashes[] = {5, 5};
  cairo_set_line_width(cr, 2);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  if (style.dashed) {
    cairo_set_source_rgb(cr, 0, 0, 0);
    cairo_stroke_preserve(cr);
    cairo_set_dash(cr, dashes, 2, 0);
  }
  cairo_set_source_rgb(cr, style.red, style.green, style.blue);
  cairo_stroke(cr);
  cairo_set_dash(cr, nullptr, 0, 0);
}

}  // namespace

View::View(std::function<void(const Region &)> drawn) : area_(gtk_drawing_area_new()), drawn_(std::move(drawn)) {
  gtk_widget_set_name(area_, "picture");
  gtk_widget_set_can_focus(area_, TRUE);
  gtk_widget_add_events(area_, GDK_BUTTON_PRESS_MASK | GDK_BUTTON_RELEASE_MASK | GDK_POINTER_MOTION_MASK);
  g_signal_connect(area_, "draw", G_CALLBACK(draw), this);
  g_signal_connect(area_, "button-press-event", G_CALLBACK(press), this);
  g_signal_connect(area_, "button-release-event", G_CALLBACK(release), this);
  g_signal_connect(area_, "motion-notify-event", G_CALLBACK(move), this);
  g_signal_connect(area_, "key-press-event", G_CALLBACK(press_key), this);
}

void View::show(std::shared_ptr<const Picture> picture) {
  picture_ = std::move(picture);
  redraw();
}

void View::set_regions(std::vector<Region> regions) {
  regions_ = std::move(regions);
  redraw();
}

void View::show_outlines(bool shown) {
  outlines_ = shown;
  redraw();
}

void View::set_tool(Tool tool) {
  tool_ = tool;
  points_.clear();
  redraw();
}

View::Placement View::placement() const {
  if (!picture_) return {0, 0, 1, 1};
  const double width = gtk_widget_get_allocated_width(area_), height = gtk_widget_get_allocated_height(area_);
  const double aspect = picture_->pixel_aspect;
  const double scale = std::min(width / (picture_->width * aspect), height / picture_->height);
  return {std::floor((width - scale * aspect * picture_->width) / 2),
          std::floor((height - scale * picture_->height) / 2), scale * aspect, scale};
}

int View::divider() const {
  const Placement at = placement();
  return static_cast<int>(std::lround(at.x + divider_ * (picture_ ? picture_->width * at.scale_x : 0)));
}

Point View::to_picture(double x, double y) const {
  const Placement at = placement();
  const double width = picture_ ? picture_->width : 0, height = picture_ ? picture_->height : 0;
  return {std::clamp((x - at.x) / at.scale_x, 0.0, width), std::clamp((y - at.y) / at.scale_y, 0.0, height)};
}

void View::set_divider(double x) {
  if (picture_) divider_ = to_picture(x, 0).x / picture_->width;
  redraw();
}

// ---- Drawing --------------------------------------------------------------------------------------------------------

void View::draw_pictures(cairo_t *cr, const Placement &at) const {
  const double split = divider(), width = gtk_widget_get_allocated_width(area_),
               height = gtk_widget_get_allocated_height(area_);
  const auto paint = [&](cairo_surface_t *surface, double from, double to) {
    if (!surface || to <= from) return;
    cairo_save(cr);
    cairo_rectangle(cr, from, 0, to - from, height);
    cairo_clip(cr);
    cairo_translate(cr, at.x, at.y);
    cairo_scale(cr, at.scale_x, at.scale_y);
    cairo_set_source_surface(cr, surface, 0, 0);
    const bool exact = at.scale_x == 1 && at.scale_y == 1;
    cairo_pattern_set_filter(cairo_get_source(cr), exact ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_BILINEAR);
    cairo_rectangle(cr, 0, 0, picture_->width, picture_->height);
    cairo_fill(cr);
    cairo_restore(cr);
  };
  paint(picture_->before.get(), 0, split);
  paint(picture_->after.get(), split, width);
}

void View::draw_divider(cairo_t *cr, const Placement &at) const {
  const double x = divider() + 0.5, top = at.y, bottom = at.y + picture_->height * at.scale_y,
               middle = (top + bottom) / 2;
  cairo_set_line_width(cr, 1);
  cairo_set_source_rgb(cr, 1, 1, 1);
  cairo_move_to(cr, x, top);
  cairo_line_to(cr, x, bottom);
  cairo_stroke(cr);
  cairo_arc(cr, x, middle, 13, 0, 2 * G_PI);
  cairo_set_source_rgba(cr, 0, 0, 0, 0.6);
  cairo_fill_preserve(cr);
  cairo_set_source_rgb(cr, 1, 1, 1);
  cairo_stroke(cr);
  for (const double side : {-1, 1}) {
    cairo_move_to(cr, x + side * 8, middle);
    cairo_line_to(cr, x + side * 3, middle - 4);
    cairo_line_to(cr, x + side * 3, middle + 4);
    cairo_fill(cr);
  }
}

void View::draw_regions(cairo_t *cr, const Placement &at) const {
  if (outlines_) {
    for (const Region &region : regions_) {
      trace(cr, region, at, true);
      stroke(cr, kSet);
    }
    for (const Outline &outline : picture_->outlines) {
      trace(cr, outline.region, at, true);
      stroke(cr, outline.is_held ? kHeld : kFound);
    }
  }
  if (points_.empty()) return;
  if (tool_ == Tool::Rectangle)
    trace(cr, {points_[0], {points_[1].x, points_[0].y}, points_[1], {points_[0].x, points_[1].y}}, at, true);
  else
    trace(cr, points_, at, false);
  stroke(cr, kSet);
}

gboolean View::draw(GtkWidget *, cairo_t *cr, gpointer data) {
  const auto *self = static_cast<View *>(data);
  cairo_set_source_rgb(cr, 0.08, 0.08, 0.08);
  cairo_paint(cr);
  if (!self->picture_) return TRUE;
  const Placement at = self->placement();
  self->draw_pictures(cr, at);
  self->draw_regions(cr, at);
  self->draw_divider(cr, at);
  return TRUE;
}

// ---- Mouse and keys -------------------------------------------------------------------------------------------------

void View::finish() {
  const Region points = std::exchange(points_, {});
  dragging_ = false;
  redraw();
  drawn_(points);
}

gboolean View::press(GtkWidget *area, GdkEventButton *event, gpointer data) {
  auto *self = static_cast<View *>(data);
  gtk_widget_grab_focus(area);
  if (event->button != GDK_BUTTON_PRIMARY || !self->picture_) return GDK_EVENT_PROPAGATE;
  const Point point = self->to_picture(event->x, event->y);
  Region &points = self->points_;
  if (self->tool_ == Tool::Divider || self->tool_ == Tool::Rectangle) {
    if (event->type != GDK_BUTTON_PRESS) return GDK_EVENT_STOP;
    self->dragging_ = true;
    if (self->tool_ == Tool::Divider)
      self->set_divider(event->x);
    else
      points = {point, point};
  } else if (event->type == GDK_2BUTTON_PRESS) {
    // Both of its clicks have set a corner.
    if (points.size() >= 5) {
      points.resize(points.size() - 2);
      self->finish();
    }
  } else if (event->type == GDK_BUTTON_PRESS) {
    const Placement at = self->placement();
    const bool closes = points.size() >= 4 &&
                        std::hypot((point.x - points[0].x) * at.scale_x, (point.y - points[0].y) * at.scale_y) < kNear;
    if (points.empty()) points.push_back(point);
    points.back() = point;
    if (closes) {
      points.pop_back();
      self->finish();
    } else {
      points.push_back(point);
    }
  }
  self->redraw();
  return GDK_EVENT_STOP;
}

gboolean View::move(GtkWidget *, GdkEventMotion *event, gpointer data) {
  auto *self = static_cast<View *>(data);
  if (self->tool_ == Tool::Divider) {
    if (self->dragging_) self->set_divider(event->x);
  } else if (!self->points_.empty()) {
    self->points_.back() = self->to_picture(event->x, event->y);
    self->redraw();
  }
  return GDK_EVENT_STOP;
}

gboolean View::release(GtkWidget *, GdkEventButton *event, gpointer data) {
  auto *self = static_cast<View *>(data);
  if (event->button != GDK_BUTTON_PRIMARY || !self->dragging_) return GDK_EVENT_PROPAGATE;
  self->dragging_ = false;
  if (self->tool_ == Tool::Rectangle && !self->points_.empty()) {
    self->points_.back() = self->to_picture(event->x, event->y);
    self->finish();
  }
  return GDK_EVENT_STOP;
}

gboolean View::press_key(GtkWidget *, GdkEventKey *event, gpointer data) {
  auto *self = static_cast<View *>(data);
  if (self->points_.empty()) return GDK_EVENT_PROPAGATE;
  if (event->keyval == GDK_KEY_Escape) {
    self->points_.clear();
    self->redraw();
  } else if (event->keyval == GDK_KEY_Return && self->points_.size() >= 4) {
    self->points_.pop_back();  // follows the mouse
    self->finish();
  } else {
    return GDK_EVENT_PROPAGATE;
  }
  return GDK_EVENT_STOP;
}

}  // namespace tune
