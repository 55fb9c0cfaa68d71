// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Settings of the command line: properties and presets.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "media.h"

namespace media {

namespace {

// The least and the largest number that the property takes.
std::optional<std::pair<double, double>> limits_of(GParamSpec *spec) {
  const auto pair = [](auto *s) { return std::pair(static_cast<double>(s->minimum), static_cast<double>(s->maximum)); };
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) return pair(G_PARAM_SPEC_DOUBLE(spec));
  if (G_IS_PARAM_SPEC_INT(spec)) return pair(G_PARAM_SPEC_INT(spec));
  if (G_IS_PARAM_SPEC_UINT(spec)) return pair(G_PARAM_SPEC_UINT(spec));
  if (G_IS_PARAM_SPEC_UINT64(spec)) return pair(G_PARAM_SPEC_UINT64(spec));
  return {};
}

// The letters to change, add and take away between two words.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); i++) {
    size_t corner = i;
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); j++) {
      const size_t changed = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, corner + 1, row[j] + 1});
    }
  }
  return row.back();
}

// Offers the name that is most like a word; empty where none is near.
std::string offer(const std::string &word, const std::vector<std::string> &names) {
  const std::string lower = Owned<gchar>(g_ascii_strdown(word.c_str(), -1)).get();
  const std::string *best = nullptr;
  std::pair least((word.size() + 3) / 2, size_t{0});  // letters, and of equal ones the shortest name
  for (const std::string &name : names) {
    const std::pair d(distance(lower, name), name.size());
    if (d < least && name[0] == lower[0]) best = &name, least = d;
  }
  return best ? "; did you mean " + *best + "?" : "";
}

// The values to choose from, where the property is an enumeration or a number.
std::string values_of(GParamSpec *spec, const std::string &value) {
  std::string text;
  if (G_IS_PARAM_SPEC_ENUM(spec)) {
    text = "; these are:";
    std::vector<std::string> names;
    for (const GEnumValue *v = G_PARAM_SPEC_ENUM(spec)->enum_class->values; v->value_nick; v++)
      text += " " + names.emplace_back(v->value_nick);
    text += offer(value, names);
  } else if (const auto limits = limits_of(spec)) {
    gchar least[G_ASCII_DTOSTR_BUF_SIZE], most[G_ASCII_DTOSTR_BUF_SIZE];
    text = std::string("; it takes ") + g_ascii_formatd(least, sizeof least, "%g", limits->first) + " to " +
           g_ascii_formatd(most, sizeof most, "%g", limits->second);
  }
  return text;
}

// Reads a value. GStreamer alone takes an empty text for 0, lets large numbers wrap around, and ignores numbers beyond
// the limits.
bool read_value(GValue *value, const std::string &text, GParamSpec *spec) {
  if (G_IS_PARAM_SPEC_STRING(spec)) return gst_value_deserialize_with_pspec(value, text.c_str(), spec);
  if (text.empty() || !gst_value_deserialize_with_pspec(value, text.c_str(), spec)) return false;
  gchar *end;
  const double number = g_ascii_strtod(text.c_str(), &end);
  const auto limits = limits_of(spec);
  return !limits || *end || (number >= limits->first && number <= limits->second);
}

// Sets the properties that may change while the element plays to their defaults.
void set_defaults(GstElement *element) {
  guint count = 0;
  GParamSpec **const specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
  for (GParamSpec **spec = specs; spec != specs + count; spec++)
    if ((*spec)->owner_type == G_OBJECT_TYPE(element) && (*spec)->flags & G_PARAM_WRITABLE &&
        (*spec)->flags & GST_PARAM_MUTABLE_PLAYING)
      g_object_set_property(G_OBJECT(element), (*spec)->name, g_param_spec_get_default_value(*spec));
  g_free(specs);
}

}  // namespace

void set_property(const Filters &elements, const std::string &setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos) throw Failure("expected PROPERTY=VALUE, not " + setting);
  const std::string name = setting.substr(0, equals);
  const auto spec_of = [&](GstElement *element) {
    return g_object_class_find_property(G_OBJECT_GET_CLASS(element), name.c_str());
  };
  const auto owner = std::find_if(elements.begin(), elements.end(), spec_of);
  if (owner == elements.end()) {
    std::string text = setting + ": ", listed;
    std::vector<std::string> names;
    for (GstElement *element : elements) {
      guint count = 0;
      GParamSpec **const specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
      for (GParamSpec **spec = specs; spec != specs + count; spec++) names.push_back((*spec)->name);
      g_free(specs);
      const std::string type = GST_OBJECT_NAME(gst_element_get_factory(element));
      text += (element == elements.front() ? "" : " and ") + type;
      listed += (element == elements.front() ? "gst-inspect-1.0 " : " and gst-inspect-1.0 ") + type;
    }
    throw Failure(text + (elements.size() > 1 ? " have" : " has") + " no property " + name + "; " + listed +
                  (elements.size() > 1 ? " list them" : " lists them") + offer(name, names));
  }
  GstElement *const filter = *owner;
  GParamSpec *const spec = spec_of(filter);
  if (!(spec->flags & G_PARAM_WRITABLE)) throw Failure("the property " + name + " can only be read");
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  const std::string text = setting.substr(equals + 1);
  const bool understood = read_value(&value, text, spec);
  if (understood) g_object_set_property(G_OBJECT(filter), name.c_str(), &value);
  g_value_unset(&value);
  if (!understood) throw Failure(setting + " is not a value of that property" + values_of(spec, text));
}

bool has_preset(GstElement *element, const std::string &name) {
  gchar **names = GST_IS_PRESET(element) ? gst_preset_get_preset_names(GST_PRESET(element)) : nullptr;
  const bool found = names && g_strv_contains(names, name.c_str());
  g_strfreev(names);
  return found;
}

void load_preset(const Filters &elements, const std::string &name) {
  GstPreset *preset = GST_PRESET(elements.front());
  if (gst_preset_load_preset(preset, name.c_str())) {
    for (auto element = elements.begin() + 1; element != elements.end(); ++element)
      if (!has_preset(*element, name) || !gst_preset_load_preset(GST_PRESET(*element), name.c_str()))
        set_defaults(*element);
    return;
  }
  gchar **names = gst_preset_get_preset_names(preset);
  const Owned<gchar> list(names ? g_strjoinv(", ", names) : nullptr);
  g_strfreev(names);
  throw Failure("there is no preset " + name +
                (list ? std::string("; these are: ") + list.get() : "; GStreamer finds none: is GST_PRESET_PATH set?"));
}

}  // namespace media
