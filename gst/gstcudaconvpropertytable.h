// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tables of properties, and their values. One row defines a property: its texts, its range, and the member of a
// structure that has its value. The type of the member decides the type of the property.
#pragma once

#include <gst/gst.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "filter.h"
#include "gstcudaconvmessages.h"

namespace cudaconv::gst {

constexpr auto kReady = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
constexpr auto kPlaying =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
constexpr auto kAnimated = static_cast<GParamFlags>(kPlaying | GST_PARAM_CONTROLLABLE);

// The part of a property that does not depend on the structure with the values.
struct PropertyText {
  const char *name, *nick, *blurb;
  GParamFlags flags;
  double min, max;  // of numbers; integers whose least value is not below 0 are unsigned
};

// A property of an element whose values are in a `Values`.
template <typename Values>
struct Property : PropertyText {
  GParamSpec *(*make)(const PropertyText &, const char *element);
  void (*set)(const PropertyText &, Values &, const GValue *);
  bool (*copy)(const Values &, Values &);  // returns whether the value changes
  void (*get)(const Values &, GValue *);
};

template <typename Values>
inline const Values kDefaults{};

// The member at the end of a path of pointers to members.
template <auto kFirst, auto... kRest, typename T>
auto &member(T &whole) {
  if constexpr (sizeof...(kRest) == 0)
    return whole.*kFirst;
  else
    return member<kRest...>(whole.*kFirst);
}

// Registers the values of an enumeration. The type is named after the element's type and the property: roi-shape is a
// GstCudaConvRoiShape.
template <typename Enum, size_t n>
GType register_enum(const char *element, const char *property, const Named<Enum> (&names)[n]) {
  static GEnumValue values[n + 1] = {};  // the last one is the end
  for (size_t i = 0; i < n; i++) values[i] = {static_cast<gint>(names[i].value), names[i].text, names[i].nick};
  std::string name = element;
  for (const char *c = property; *c; c++)
    if (*c != '-') name += c == property || c[-1] == '-' ? g_ascii_toupper(*c) : *c;
  const GType type = g_enum_register_static(name.c_str(), values);
  gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
  return type;
}

template <typename T>
GParamSpec *make_spec(const PropertyText &p, const T &initial) {
  if constexpr (std::is_same_v<T, std::string>) {
    return g_param_spec_string(p.name, p.nick, p.blurb, nullptr, p.flags);
  } else if constexpr (std::is_same_v<T, bool>) {
    return g_param_spec_boolean(p.name, p.nick, p.blurb, initial, p.flags);
  } else if constexpr (std::is_same_v<T, double>) {
    return g_param_spec_double(p.name, p.nick, p.blurb, p.min, p.max, initial, p.flags);
  } else if constexpr (std::is_same_v<T, guint64>) {
    return g_param_spec_uint64(p.name, p.nick, p.blurb, 0, G_MAXUINT64, initial, p.flags);
  } else if (p.min < 0) {
    return g_param_spec_int(p.name, p.nick, p.blurb, static_cast<gint>(p.min), static_cast<gint>(p.max),
                            static_cast<gint>(initial), p.flags);
  } else {
    return g_param_spec_uint(p.name, p.nick, p.blurb, static_cast<guint>(p.min), static_cast<guint>(p.max),
                             static_cast<guint>(initial), p.flags);
  }
}

// Reads a property's value; a string that is not set reads as an empty one. gst_parse_launch() leaves single quotes in
// strings, which a shell removes from the same line: "'!staff'" would be a type of its own. GLib lets numbers pass that
// exceed the range by a rounding error, as controllers and sums of steps make them. It converts integers, enumerations
// and booleans to and from gint64.
template <typename T>
T read(const PropertyText &p, const GValue *value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string text = g_value_get_string(value) ? g_value_get_string(value) : "";
    const bool quoted = text.size() > 1 && text.front() == '\'' && text.find('\'', 1) == text.size() - 1;
    return quoted ? text.substr(1, text.size() - 2) : text;
  } else if constexpr (std::is_same_v<T, double>) {
    return std::clamp(g_value_get_double(value), p.min, p.max);
  } else {
    GValue number = G_VALUE_INIT;
    g_value_transform(value, g_value_init(&number, G_TYPE_INT64));
    return static_cast<T>(g_value_get_int64(&number));
  }
}

template <typename T>
void write(const T &field, GValue *value) {
  if constexpr (std::is_same_v<T, std::string>) {
    g_value_set_string(value, field.empty() ? nullptr : field.c_str());
  } else if constexpr (std::is_same_v<T, double>) {
    g_value_set_double(value, field);
  } else {
    GValue number = G_VALUE_INIT;
    g_value_set_int64(g_value_init(&number, G_TYPE_INT64), static_cast<gint64>(field));
    g_value_transform(&number, value);
  }
}

// A number, a string or a boolean. `min` and `max`: of numbers but guint64.
template <typename Values, auto... kPath>
constexpr Property<Values> property(const char *name, const char *nick, const char *blurb, GParamFlags flags,
                                    double min = 0, double max = 0) {
  using T = std::decay_t<decltype(member<kPath...>(std::declval<Values &>()))>;
  return {{name, nick, blurb, flags, min, max},
          [](const PropertyText &p, const char *) { return make_spec<T>(p, member<kPath...>(kDefaults<Values>)); },
          [](const PropertyText &p, Values &to, const GValue *value) { member<kPath...>(to) = read<T>(p, value); },
          [](const Values &from, Values &to) {
            const T before = std::exchange(member<kPath...>(to), member<kPath...>(from));
            return member<kPath...>(to) != before;
          },
          [](const Values &from, GValue *value) { write<T>(member<kPath...>(from), value); }};
}

// An enumeration, with the table of its values.
template <const auto &kNames, typename Values, auto... kPath>
constexpr Property<Values> enumeration(const char *name, const char *nick, const char *blurb,
                                       GParamFlags flags = kPlaying) {
  Property<Values> result = property<Values, kPath...>(name, nick, blurb, flags);
  result.make = [](const PropertyText &p, const char *element) {
    static const GType type = register_enum(element, p.name, kNames);
    const auto initial = static_cast<gint>(member<kPath...>(kDefaults<Values>));
    return g_param_spec_enum(p.name, p.nick, p.blurb, type, initial, p.flags);
  };
  return result;
}

// Installs the properties with ids from 1, and "stats", which `text` explains, with the next id.
template <typename Values, size_t n>
void install_properties(GObjectClass *klass, const Property<Values> (&table)[n], const char *text) {
  guint id = 1;
  for (const Property<Values> &property : table)
    g_object_class_install_property(klass, id++, property.make(property, G_OBJECT_CLASS_NAME(klass)));
  const auto flags = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_property(klass, id,
                                  g_param_spec_boxed("stats", "Statistics", text, GST_TYPE_STRUCTURE, flags));
}

// Sets the functions of GstPreset, the element's interface.
void init_presets(gpointer iface, gpointer);

// The values of one element's properties but "stats". Changes are staged, and published together at the end of a
// g_object_set(). So no frame meets a part of one call's changes. Any thread may call.
template <typename Values>
class PropertyValues {
 public:
  struct Published : Values {
    guint serial = 0;  // changes whenever a property does that may change while playing
  };

  template <size_t n>
  explicit PropertyValues(const Property<Values> (&table)[n]) : table_(table), count_(n) {}

  // For GObject's set_property and get_property. get() returns staged values too; false for "stats".
  void set(guint id, const GValue *value) {
    static std::atomic<guint64> changes{0};
    std::lock_guard<std::mutex> guard(lock_);
    table_[id - 1].set(table_[id - 1], staged_, value);
    seen_ = newest_ = ++changes;
  }
  bool get(guint id, GValue *value) const {
    if (id > count_) return false;
    std::lock_guard<std::mutex> guard(lock_);
    table_[id - 1].get(staged_, value);
    return true;
  }

  // Publishes the staged values of these properties, and returns true. For GObject's dispatch_properties_changed,
  // called once for each g_object_set() with what it has set; calls of several threads that overlap may share one. The
  // other properties may belong to a call that another thread has just begun.
  //
  // So may these: GObject calls this after it has found no call under way. Where another thread has set a property
  // since, it publishes nothing and returns false: it is to be called again when that thread's call is over.
  bool publish(guint count, GParamSpec *const *specs) {
    std::lock_guard<std::mutex> guard(lock_);
    if (std::exchange(seen_, newest_) != newest_) return false;
    auto next = std::make_shared<Published>(*published_);
    for (const Property<Values> *property = table_; property != table_ + count_; property++) {
      const auto is_named = [&](const GParamSpec *spec) { return !std::strcmp(spec->name, property->name); };
      if (std::any_of(specs, specs + count, is_named) && property->copy(staged_, *next) &&
          property->flags & GST_PARAM_MUTABLE_PLAYING)
        next->serial++;
    }
    published_ = std::move(next);
    return true;
  }

  std::shared_ptr<const Published> published() const {
    std::lock_guard<std::mutex> guard(lock_);
    return published_;
  }

 private:
  const Property<Values> *const table_;
  const guint count_;
  mutable std::mutex lock_;  // guards the next three members
  Values staged_;
  guint64 newest_ = 0;                           // the number of the newest staged change; no two objects share one
  static inline thread_local guint64 seen_ = 0;  // the newest change that this thread knows of
  std::shared_ptr<const Published> published_ = std::make_shared<const Published>();
};

// Sets the functions of a class of `Object`s for its properties, and the one that deletes their `priv`. That has the
// PropertyValues `properties`, stats() makes the value of "stats", transfer full, and take_properties() is called when
// values have been published. The class has no subclasses.
template <typename Object>
void set_object_functions(GObjectClass *klass) {
  klass->finalize = [](GObject *object) {
    delete reinterpret_cast<Object *>(object)->priv;
    G_OBJECT_CLASS(g_type_class_peek_parent(G_OBJECT_GET_CLASS(object)))->finalize(object);
  };
  klass->set_property = [](GObject *object, guint id, const GValue *value, GParamSpec *) {
    guarded(object, [&] { reinterpret_cast<Object *>(object)->priv->properties.set(id, value); });
  };
  klass->get_property = [](GObject *object, guint id, GValue *value, GParamSpec *) {
    auto *const priv = reinterpret_cast<Object *>(object)->priv;
    if (!priv->properties.get(id, value)) g_value_take_boxed(value, priv->stats());
  };
  klass->dispatch_properties_changed = [](GObject *object, guint count, GParamSpec **specs) {
    const bool published = guarded(object, true, [&] {
      auto *const priv = reinterpret_cast<Object *>(object)->priv;
      if (!priv->properties.publish(count, specs)) return false;
      priv->take_properties();
      return true;
    });
    if (published)
      return G_OBJECT_CLASS(g_type_class_peek_parent(G_OBJECT_GET_CLASS(object)))
          ->dispatch_properties_changed(object, count, specs);
    // GObject calls this again, at once or at the end of the calls that are under way.
    g_object_freeze_notify(object);
    for (guint i = 0; i < count; i++) g_object_notify_by_pspec(object, specs[i]);
    g_object_thaw_notify(object);
  };
}

}  // namespace cudaconv::gst
