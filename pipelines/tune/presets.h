// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A list of the element's presets, to load, save and delete.
#pragma once

#include <gtk/gtk.h>
#include <gst/gst.h>

#include <functional>
#include <string>

namespace tune {

class Presets {
 public:
  // Calls `failed` with a sentence where a preset cannot be loaded, saved or deleted.
  Presets(GstElement *element, std::function<void(const std::string &)> failed);
  Presets(const Presets &) = delete;

  // Null where the element has no presets.
  GtkWidget *widget() const { return box_; }

 private:
  std::string name() const;
  void list();
  void load(const std::string &name);
  void save();
  void remove();

  GstElement *const element_;
  const std::function<void(const std::string &)> failed_;
  GtkWidget *box_ = nullptr, *combo_ = nullptr;
};

}  // namespace tune
