// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/types.h"

#include <algorithm>

namespace cudaconv::gst {

namespace {

constexpr char kBlanks[] = " \t\n\v\f\r";

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> types;
  for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const std::string word = trimmed(text.substr(begin, end - begin));
    if (!word.empty()) types.push_back(word);
  }
  return types;
}

}  // namespace

std::string trimmed(const std::string &label) {
  const size_t begin = label.find_first_not_of(kBlanks);
  return begin == std::string::npos ? std::string() : label.substr(begin, label.find_last_not_of(kBlanks) + 1 - begin);
}

std::string type_of(const Detected &found) {
  return !found.labels || found.labels->empty() ? std::string() : trimmed(found.labels->front());
}

TypeFilter::TypeFilter(const std::string &types) : text_(types) {
  bool any = false;
  for (const std::string &type : split(types)) {
    const bool excludes = type[0] == '!' || type[0] == '-';
    const std::string name = excludes ? trimmed(type.substr(1)) : type;
    any |= type == "*";
    if (!name.empty()) (excludes ? but_ : only_).push_back(name);
  }
  if (any) only_.clear();
}

bool TypeFilter::wants(const Labels &labels, bool background) const {
  const auto is_in = [](const std::vector<std::string> &types) {
    return [&types](const std::string &part) { return std::find(types.begin(), types.end(), part) != types.end(); };
  };
  const auto end = std::find(labels.begin(), labels.end(), "");
  if (end != labels.end() && wants(Labels(end + 1, labels.end()), background)) return true;
  bool selected = only_.empty() && !background, excluded = false;
  for (auto label = labels.begin(); label != end; ++label) {
    const std::vector<std::string> parts = split(*label);
    selected |= std::any_of(parts.begin(), parts.end(), is_in(only_));
    excluded |= !parts.empty() && std::all_of(parts.begin(), parts.end(), is_in(but_));
  }
  return selected && !excluded;
}

}  // namespace cudaconv::gst
