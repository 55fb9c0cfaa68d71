// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A list of the presets, to load, save and delete. A preset has a part for each element, under the same name.
#pragma once

#include <gtk/gtk.h>
#include <gst/gst.h>

#include <functional>
#include <string>

#include "../media.h"

namespace tune {

class Presets {
 public:
  // The list is of the first element. Calls `failed` with a sentence where a preset cannot be loaded, saved or deleted.
  Presets(const media::Filters &elements, std::function<void(const std::string &)> failed);
  Presets(const Presets &) = delete;

  // Null where the element has no presets.
  GtkWidget *widget() const { return box_; }

 private:
  std::string name() const;
  void list();
  void load(const std::string &name);
  void save();
  void remove();

  GstPreset *first() const { return GST_PRESET(elements_.front()); }

  const media::Filters elements_;
  const std::function<void(const std::string &)> failed_;
  GtkWidget *box_ = nullptr, *combo_ = nullptr;
};

}  // namespace tune
