// SPDX-License-Identifier: LGPL-2.1-or-later
// GstPreset of the elements.
#include <cstring>

#include "gstcudaconvpropertytable.h"

namespace cudaconv::gst {

namespace {

const GstPresetInterface *defaults;

gboolean exists(GstPreset *preset, const gchar *name) {
  g_auto(GStrv) presets = gst_preset_get_preset_names(preset);
  return presets && g_strv_contains(presets, name);
}

// GstPreset claims to save presets of all names, but its file has no place for these.
bool is_name(const gchar *name) {
  for (const gchar *c = name; *c; c++)
    if (g_ascii_iscntrl(*c) || *c == '[' || *c == ']') return false;
  return *name && std::strcmp(name, "_presets_");
}

// Presets hold the settings of the filter. Properties that need READY, such as the GPU index, depend on the machine.
gchar **get_property_names(GstPreset *preset) {
  g_autofree GParamSpec **specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(preset), nullptr);
  g_autoptr(GStrvBuilder) names = g_strv_builder_new();
  for (GParamSpec **spec = specs; *spec; spec++)
    if ((*spec)->flags & GST_PARAM_MUTABLE_PLAYING) g_strv_builder_add(names, (*spec)->name);
  return g_strv_builder_end(names);
}

// GstPreset escapes texts twice when it saves a preset, and undoes this only once when it loads one.
void unescape(GObject *object, const gchar *property) {
  g_autofree gchar *text = nullptr;
  g_object_get(object, property, &text, nullptr);
  if (!text || !std::strchr(text, '\\')) return;
  g_autofree gchar *plain = g_strcompress(text);
  g_object_set(object, property, plain, nullptr);
}

// All properties take effect together, since notifications wait. A property that the preset does not name gets its
// default: earlier settings do not change what a preset does.
gboolean load_preset(GstPreset *preset, const gchar *name) {
  if (!exists(preset, name)) return FALSE;
  GObject *object = G_OBJECT(preset);
  GObjectClass *klass = G_OBJECT_GET_CLASS(object);
  g_auto(GStrv) properties = get_property_names(preset);
  g_object_freeze_notify(object);
  for (gchar **property = properties; *property; property++)
    g_object_set_property(object, *property,
                          g_param_spec_get_default_value(g_object_class_find_property(klass, *property)));
  const gboolean loaded = defaults->load_preset(preset, name);
  for (gchar **property = properties; *property; property++)
    if (g_object_class_find_property(klass, *property)->value_type == G_TYPE_STRING) unescape(object, *property);
  g_object_thaw_notify(object);
  return loaded;
}

// A preset of this name goes first, apart from its comment: GstPreset would keep its texts where they are unset now.
gboolean save_preset(GstPreset *preset, const gchar *name) {
  if (!is_name(name)) return FALSE;
  g_autofree gchar *comment = nullptr;
  if (exists(preset, name)) {
    defaults->get_meta(preset, name, "comment", &comment);
    defaults->delete_preset(preset, name);
  }
  const gboolean saved = defaults->save_preset(preset, name);
  if (saved && comment) defaults->set_meta(preset, name, "comment", comment);
  return saved;
}

// GstPreset would lose a preset that gets no name or its own, and mix it with one that has the new name.
gboolean rename_preset(GstPreset *preset, const gchar *name, const gchar *new_name) {
  if (!exists(preset, name) || !is_name(new_name)) return FALSE;
  if (!std::strcmp(name, new_name)) return TRUE;
  if (exists(preset, new_name)) defaults->delete_preset(preset, new_name);
  return defaults->rename_preset(preset, name, new_name);
}

// With a second line, the file could not be read any more, or would have other presets.
gboolean set_meta(GstPreset *preset, const gchar *name, const gchar *tag, const gchar *value) {
  if (!exists(preset, name) || (value && std::strpbrk(value, "\r\n"))) return FALSE;
  return defaults->set_meta(preset, name, tag, value);
}

}  // namespace

void init_presets(gpointer iface, gpointer) {
  auto *presets = static_cast<GstPresetInterface *>(iface);
  defaults = static_cast<const GstPresetInterface *>(g_type_default_interface_peek(GST_TYPE_PRESET));
  presets->load_preset = load_preset;
  presets->save_preset = save_preset;
  presets->rename_preset = rename_preset;
  presets->set_meta = set_meta;
  presets->get_property_names = get_property_names;
}

}  // namespace cudaconv::gst
