// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which types and labels of detections count, and how these are named.
#pragma once

#include <string>
#include <vector>

#include "regions/shapes.h"

namespace cudaconv::gst {

// The types that a text selects: "face,plate", or "!staff" for all but that one. Empty: all types.
class TypeFilter {
 public:
  TypeFilter() = default;
  explicit TypeFilter(const std::string &types);

  const std::string &text() const { return text_; }

  // Whether it selects a detection with these labels, or one of several. The text cannot name a label with commas as a
  // whole: one of its parts selects it, and only all of them exclude it. The background of a segmentation mask has to
  // be named.
  bool wants(const Labels &labels, bool background = false) const;
  // Whether it names types that count, rather than types that do not.
  bool names_some() const { return !only_.empty(); }

 private:
  std::string text_;
  std::vector<std::string> only_, but_;  // `only_` empty: any
};

// Labels often come from files of other systems, with blanks or a carriage return at their ends.
std::string trimmed(const std::string &label);

// The name that a detection is counted under; empty where it has none.
std::string type_of(const Detected &found);

}  // namespace cudaconv::gst
