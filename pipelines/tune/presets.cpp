// SPDX-License-Identifier: LGPL-2.1-or-later
#include "presets.h"

namespace tune {

using namespace media;

namespace {

constexpr char kHelp[] = "Choose a preset to load it, or write a name and save the settings under it.";

}  // namespace

Presets::Presets(const Filters &elements, std::function<void(const std::string &)> failed)
    : elements_(elements), failed_(std::move(failed)) {
  if (!GST_IS_PRESET(elements.front())) return;
  combo_ = gtk_combo_box_text_new_with_entry();
  gtk_widget_set_name(combo_, "presets");
  gtk_widget_set_tooltip_text(combo_, kHelp);
  gtk_entry_set_placeholder_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(combo_))), "Preset");
  box_ = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_box_pack_start(GTK_BOX(box_), combo_, TRUE, TRUE, 0);
  const auto add = [this](const char *icon, const char *name, const char *tooltip,
                          void (*clicked)(GtkButton *, Presets *)) {
    GtkWidget *button = gtk_button_new_from_icon_name(icon, GTK_ICON_SIZE_BUTTON);
    gtk_widget_set_name(button, name);
    gtk_widget_set_tooltip_text(button, tooltip);
    g_signal_connect(button, "clicked", G_CALLBACK(clicked), this);
    gtk_box_pack_start(GTK_BOX(box_), button, FALSE, FALSE, 0);
  };
  add("document-save-symbolic", "save-preset", "Save the preset", [](GtkButton *, Presets *self) { self->save(); });
  add("user-trash-symbolic", "delete-preset", "Delete the preset", [](GtkButton *, Presets *self) { self->remove(); });
  g_signal_connect(combo_, "changed", G_CALLBACK(+[](GtkComboBox *combo, Presets *self) {
                     if (gtk_combo_box_get_active(combo) < 0) return;
                     self->load(self->name());
                     gtk_combo_box_set_active(combo, -1);  // the same preset can be chosen again
                   }),
                   this);
  list();
}

std::string Presets::name() const {
  return gtk_entry_get_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(combo_))));
}

void Presets::list() {
  auto *combo = GTK_COMBO_BOX_TEXT(combo_);
  gtk_combo_box_text_remove_all(combo);
  gchar **names = gst_preset_get_preset_names(first());
  for (gchar **name = names; name && *name; name++) gtk_combo_box_text_append_text(combo, *name);
  g_strfreev(names);
}

void Presets::load(const std::string &name) {
  try {
    load_preset(elements_, name);
  } catch (const Failure &) {
    failed_("The preset " + name + " cannot be loaded.");
  }
  gchar *comment = nullptr;
  gst_preset_get_meta(first(), name.c_str(), "comment", &comment);
  gtk_widget_set_tooltip_text(combo_, comment ? comment : kHelp);
  g_free(comment);
}

void Presets::save() {
  const std::string wanted = name();
  if (wanted.empty()) return failed_("Write a name for the preset, then save it.");
  bool saved = true;
  for (GstElement *element : elements_) saved &= gst_preset_save_preset(GST_PRESET(element), wanted.c_str()) != FALSE;
  if (!saved) failed_("The preset " + wanted + " cannot be saved.");
  list();
  gtk_entry_set_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(combo_))), wanted.c_str());
}

void Presets::remove() {
  const std::string wanted = name();
  bool deleted = false;
  for (GstElement *element : elements_)
    deleted |= gst_preset_delete_preset(GST_PRESET(element), wanted.c_str()) != FALSE;
  if (!deleted) failed_("There is no preset " + wanted + " of yours to delete.");
  gtk_entry_set_text(GTK_ENTRY(gtk_bin_get_child(GTK_BIN(combo_))), "");
  list();
}

}  // namespace tune
