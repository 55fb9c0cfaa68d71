// SPDX-License-Identifier: LGPL-2.1-or-later
#include "controls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "settings.h"

namespace tune {

namespace {

constexpr double kWidestSlider = 1e4;  // wider ranges have no slider
constexpr double kWidestLinear = 20;   // wider ranges have most of their slider for small values

// Sets the property from a widget. The element's answer does not come back to the widget as a change.
class Setter {
 public:
  Setter(GstElement *element, GParamSpec *spec) : element_(element), spec_(spec) {}
  template <typename T>
  void set(T value) const {
    if (!showing_) g_object_set(element_, spec_->name, value, nullptr);
  }
  void set_value(const GValue *value) const {
    if (!showing_) g_object_set_property(G_OBJECT(element_), spec_->name, value);
  }
  template <typename F>
  void show(const F &f) {
    showing_ = true;
    f();
    showing_ = false;
  }
  GParamSpec *spec() const { return spec_; }

 private:
  GstElement *const element_;
  GParamSpec *const spec_;
  bool showing_ = false;
};

class Choice : public Control {
 public:
  explicit Choice(Setter setter) : setter_(setter), combo_(gtk_combo_box_text_new()) {
    auto *box = GTK_COMBO_BOX_TEXT(combo_);
    for (const GEnumValue *v = G_PARAM_SPEC_ENUM(setter.spec())->enum_class->values; v->value_nick; v++)
      gtk_combo_box_text_append(box, v->value_nick, v->value_nick);
    g_signal_connect(combo_, "changed", G_CALLBACK(+[](GtkComboBox *combo, Choice *self) {
                       if (const gchar *nick = gtk_combo_box_get_active_id(combo))
                         self->setter_.set(g_enum_get_value_by_nick(self->enums(), nick)->value);
                     }),
                     this);
  }
  GtkWidget *widget() const override { return combo_; }
  void show(const GValue *value) override {
    const GEnumValue *chosen = g_enum_get_value(enums(), g_value_get_enum(value));
    if (!chosen) return;
    setter_.show([&] { gtk_combo_box_set_active_id(GTK_COMBO_BOX(combo_), chosen->value_nick); });
    const std::string text =
        std::string(g_param_spec_get_blurb(setter_.spec())) + "\n\n" + chosen->value_nick + ": " + chosen->value_name;
    gtk_widget_set_tooltip_text(combo_, text.c_str());
  }

 private:
  GEnumClass *enums() const { return G_PARAM_SPEC_ENUM(setter_.spec())->enum_class; }

  Setter setter_;
  GtkWidget *const combo_;
};

class Switch : public Control {
 public:
  explicit Switch(Setter setter) : setter_(setter), switch_(gtk_switch_new()) {
    gtk_widget_set_halign(switch_, GTK_ALIGN_START);
    g_signal_connect(switch_, "notify::active", G_CALLBACK(+[](GtkSwitch *widget, GParamSpec *, Switch *self) {
                       self->setter_.set(gtk_switch_get_active(widget));
                     }),
                     this);
  }
  GtkWidget *widget() const override { return switch_; }
  void show(const GValue *value) override {
    setter_.show([&] { gtk_switch_set_active(GTK_SWITCH(switch_), g_value_get_boolean(value)); });
  }

 private:
  Setter setter_;
  GtkWidget *const switch_;
};

// Takes effect at Enter, or when the entry is left: half a matrix is none.
class Text : public Control {
 public:
  explicit Text(Setter setter) : setter_(setter), entry_(gtk_entry_new()) {
    g_signal_connect(entry_, "activate", G_CALLBACK(+[](GtkEntry *, Text *self) { self->take(); }), this);
    g_signal_connect(entry_, "focus-out-event", G_CALLBACK(+[](GtkWidget *, GdkEvent *, Text *self) -> gboolean {
                       self->take();
                       return GDK_EVENT_PROPAGATE;
                     }),
                     this);
  }
  GtkWidget *widget() const override { return entry_; }
  void show(const GValue *value) override {
    shown_ = g_value_get_string(value) ? g_value_get_string(value) : "";
    setter_.show([&] { gtk_entry_set_text(GTK_ENTRY(entry_), shown_.c_str()); });
  }

 private:
  void take() {
    const std::string text = gtk_entry_get_text(GTK_ENTRY(entry_));
    if (text != shown_) setter_.set(text.c_str());
  }

  Setter setter_;
  GtkWidget *const entry_;
  std::string shown_;
};

class Color : public Control {
 public:
  explicit Color(Setter setter) : setter_(setter), button_(gtk_color_button_new()) {
    gtk_color_chooser_set_use_alpha(GTK_COLOR_CHOOSER(button_), TRUE);
    g_signal_connect(button_, "color-set", G_CALLBACK(+[](GtkColorChooser *chooser, Color *self) {
                       GdkRGBA c;
                       gtk_color_chooser_get_rgba(chooser, &c);
                       guint argb = 0;
                       for (const double part : {c.alpha, c.red, c.green, c.blue})
                         argb = argb << 8 | static_cast<guint>(std::lround(part * 255));
                       self->setter_.set(argb);
                     }),
                     this);
  }
  GtkWidget *widget() const override { return button_; }
  void show(const GValue *value) override {
    const guint argb = g_value_get_uint(value);
    const auto part = [argb](int shift) { return (argb >> shift & 255) / 255.0; };
    const GdkRGBA color = {part(16), part(8), part(0), part(24)};
    setter_.show([&] { gtk_color_chooser_set_rgba(GTK_COLOR_CHOOSER(button_), &color); });
  }

 private:
  Setter setter_;
  GtkWidget *const button_;
};

struct Range {
  double min, max;
  bool whole;  // integers
};

Range range_of(GParamSpec *spec) {
  if (G_IS_PARAM_SPEC_INT(spec))
    return {double(G_PARAM_SPEC_INT(spec)->minimum), double(G_PARAM_SPEC_INT(spec)->maximum), true};
  if (G_IS_PARAM_SPEC_UINT(spec))
    return {double(G_PARAM_SPEC_UINT(spec)->minimum), double(G_PARAM_SPEC_UINT(spec)->maximum), true};
  if (G_IS_PARAM_SPEC_UINT64(spec)) return {0, 9007199254740992.0, true};  // a spin button counts in doubles
  return {G_PARAM_SPEC_DOUBLE(spec)->minimum, G_PARAM_SPEC_DOUBLE(spec)->maximum, false};
}

// A spin button and, unless the range is too wide, a slider.
class Number : public Control {
 public:
  explicit Number(Setter setter) : setter_(setter), range_(range_of(setter.spec())) {
    const double span = range_.max - range_.min;
    const bool is_time = G_IS_PARAM_SPEC_UINT64(setter.spec());  // in nanoseconds
    const double step = is_time ? 1e8 : range_.whole ? 1 : span <= kWidestLinear ? 0.01 : 0.1;
    spin_ = gtk_spin_button_new_with_range(range_.min, range_.max, step);
    // Or it refuses exponents, many digits, and the point where a locale has a comma.
    gtk_spin_button_set_numeric(GTK_SPIN_BUTTON(spin_), FALSE);
    g_signal_connect(spin_, "input", G_CALLBACK(+[](GtkSpinButton *spin, gdouble *value, gpointer) -> gint {
                       const gchar *text = gtk_entry_get_text(GTK_ENTRY(spin));
                       gchar *end;
                       *value = g_strtod(text, &end);
                       if (end == text || *end) *value = gtk_spin_button_get_value(spin);
                       return TRUE;
                     }),
                     nullptr);
    g_signal_connect(spin_, "output", G_CALLBACK(+[](GtkSpinButton *spin, Number *self) -> gboolean {
                       gtk_entry_set_text(GTK_ENTRY(spin), self->text_of(gtk_spin_button_get_value(spin)).c_str());
                       return TRUE;
                     }),
                     this);
    gtk_entry_set_width_chars(GTK_ENTRY(spin_), 7);
    gtk_entry_set_max_width_chars(GTK_ENTRY(spin_), 7);
    g_signal_connect(spin_, "value-changed", G_CALLBACK(+[](GtkSpinButton *spin, Number *self) {
                       self->set(g_ascii_strtod(gtk_entry_get_text(GTK_ENTRY(spin)), nullptr));
                     }),
                     this);
    box_ = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
    if (span <= kWidestSlider) {
      scale_ = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 1, 0.01);
      gtk_scale_set_draw_value(GTK_SCALE(scale_), FALSE);
      gtk_box_pack_start(GTK_BOX(box_), scale_, TRUE, TRUE, 0);
      g_signal_connect(
          scale_, "value-changed",
          G_CALLBACK(+[](GtkRange *range, Number *self) { self->set(self->at(gtk_range_get_value(range))); }), this);
    }
    gtk_box_pack_start(GTK_BOX(box_), spin_, !scale_, TRUE, 0);
    const std::string name = setter.spec()->name;
    gtk_widget_set_name(spin_, (name + "-spin").c_str());
    if (scale_) gtk_widget_set_name(scale_, (name + "-scale").c_str());
  }
  GtkWidget *widget() const override { return box_; }
  void show(const GValue *value) override {
    GValue number = G_VALUE_INIT;
    g_value_init(&number, G_TYPE_DOUBLE);
    g_value_transform(value, &number);
    const double v = g_value_get_double(&number);
    setter_.show([&] {
      gtk_spin_button_set_value(GTK_SPIN_BUTTON(spin_), v);
      // A slider that is being dragged stays where the mouse is.
      if (scale_ && at(gtk_range_get_value(GTK_RANGE(scale_))) != v)
        gtk_range_set_value(GTK_RANGE(scale_), place_of(v));
    });
  }

 private:
  double power() const { return range_.max - range_.min > kWidestLinear ? 3 : 1; }
  // The value at a place of the slider, from 0 to 1.
  double at(double place) const {
    const double value = range_.min + (range_.max - range_.min) * std::pow(place, power());
    if (!range_.whole) return std::round(value * 100) / 100;
    // Windows have odd sides, which the range does not say.
    const bool odd = g_str_has_prefix(setter_.spec()->name, "size") && value >= 0.5;
    return odd ? 2 * std::floor(value / 2) + 1 : std::round(value);
  }
  double place_of(double value) const {
    return std::pow((value - range_.min) / (range_.max - range_.min), 1 / power());
  }
  // Sums of steps have errors in their last digits.
  std::string text_of(double v) const {
    gchar text[G_ASCII_DTOSTR_BUF_SIZE];
    return range_.whole ? double_text(v) : g_ascii_formatd(text, sizeof text, "%.12g", v);
  }
  void set(double v) {
    GValue value = G_VALUE_INIT, number = G_VALUE_INIT;
    g_value_init(&value, setter_.spec()->value_type);
    g_value_init(&number, G_TYPE_DOUBLE);
    g_value_set_double(&number, v);
    g_value_transform(&number, &value);
    setter_.set_value(&value);
  }

  Setter setter_;
  const Range range_;
  GtkWidget *box_, *spin_, *scale_ = nullptr;
};

// The wheel moves the list of controls. It changes none of them.
void ignore_wheel(GtkWidget *widget, gpointer) {
  g_signal_connect(widget, "scroll-event", G_CALLBACK(+[](GtkWidget *self, GdkEvent *, gpointer) -> gboolean {
                     g_signal_stop_emission_by_name(self, "scroll-event");
                     return GDK_EVENT_PROPAGATE;
                   }),
                   nullptr);
  if (GTK_IS_BOX(widget)) gtk_container_foreach(GTK_CONTAINER(widget), ignore_wheel, nullptr);
}

std::unique_ptr<Control> make_control(GstElement *element, GParamSpec *spec) {
  const Setter setter(element, spec);
  if (G_IS_PARAM_SPEC_ENUM(spec)) return std::make_unique<Choice>(setter);
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) return std::make_unique<Switch>(setter);
  if (G_IS_PARAM_SPEC_STRING(spec)) return std::make_unique<Text>(setter);
  if (is_color(spec)) return std::make_unique<Color>(setter);
  return std::make_unique<Number>(setter);
}

}  // namespace

Controls::Controls(const media::Filters &elements, Used used, std::function<void()> changed)
    : elements_(elements), used_(std::move(used)), changed_(std::move(changed)), grid_(gtk_grid_new()) {
  gtk_grid_set_row_spacing(GTK_GRID(grid_), 6);
  gtk_grid_set_column_spacing(GTK_GRID(grid_), 12);
  gtk_container_set_border_width(GTK_CONTAINER(grid_), 12);
  for (GstElement *element : elements_) {
    if (element != elements_.front()) add_heading(element);
    // Others cannot change while the element filters.
    for (GParamSpec *spec : own_properties(element))
      if (spec->flags & GST_PARAM_MUTABLE_PLAYING) add_row(element, spec);
    handlers_.push_back(g_signal_connect(element, "notify", G_CALLBACK(take_change), this));
  }
  choose();
}

Controls::~Controls() {
  for (size_t i = 0; i < elements_.size(); i++) g_signal_handler_disconnect(elements_[i], handlers_[i]);
  if (idle_) g_source_remove(idle_);
}

void Controls::add_heading(GstElement *element) {
  GstElementFactory *factory = gst_element_get_factory(element);
  GtkWidget *label = gtk_label_new(gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_LONGNAME));
  gtk_widget_set_name(label, GST_OBJECT_NAME(factory));
  gtk_widget_set_tooltip_text(label, gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_DESCRIPTION));
  gtk_style_context_add_class(gtk_widget_get_style_context(label), "heading");
  gtk_widget_set_halign(label, GTK_ALIGN_START);
  gtk_widget_set_margin_top(label, 12);
  gtk_widget_show(label);
  gtk_widget_set_no_show_all(label, TRUE);
  gtk_grid_attach(GTK_GRID(grid_), label, 0, lines_++, 2, 1);
  headings_.push_back({element, label});
}

void Controls::add_row(GstElement *element, GParamSpec *spec) {
  Row row{element, spec, gtk_label_new(g_param_spec_get_nick(spec)), make_control(element, spec)};
  GtkWidget *widget = row.control->widget();
  gtk_widget_set_name(widget, spec->name);
  ignore_wheel(widget, nullptr);
  gtk_widget_set_hexpand(widget, TRUE);
  gtk_widget_set_halign(row.label, GTK_ALIGN_END);
  for (GtkWidget *w : {row.label, widget}) {
    gtk_widget_set_tooltip_text(w, g_param_spec_get_blurb(spec));
    gtk_widget_show_all(w);
    gtk_widget_set_no_show_all(w, TRUE);
  }
  gtk_grid_attach(GTK_GRID(grid_), row.label, 0, lines_, 1, 1);
  gtk_grid_attach(GTK_GRID(grid_), widget, 1, lines_++, 1, 1);
  show(row);
  rows_.push_back(std::move(row));
}

void Controls::show(const Row &row) {
  GValue value = G_VALUE_INIT;
  g_object_get_property(G_OBJECT(row.element), row.spec->name, &value);
  row.control->show(&value);
  g_value_unset(&value);
}

void Controls::choose() {
  std::set<GstElement *> shown;
  for (const Row &row : rows_) {
    const bool used = used_(row.element, row.spec->name);
    gtk_widget_set_visible(row.label, used);
    gtk_widget_set_visible(row.control->widget(), used);
    if (used) shown.insert(row.element);
  }
  for (const Heading &heading : headings_) gtk_widget_set_visible(heading.label, shown.count(heading.element) > 0);
}

void Controls::take_change(GObject *, GParamSpec *spec, gpointer data) {
  auto *self = static_cast<Controls *>(data);
  for (const Row &row : self->rows_)
    if (row.spec == spec) self->show(row);
  if (!self->idle_) self->idle_ = g_idle_add_full(G_PRIORITY_DEFAULT, tell, self, nullptr);
}

gboolean Controls::tell(gpointer data) {
  auto *self = static_cast<Controls *>(data);
  self->idle_ = 0;
  self->choose();
  self->changed_();
  return G_SOURCE_REMOVE;
}

}  // namespace tune
