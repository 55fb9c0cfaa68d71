// SPDX-License-Identifier: LGPL-2.1-or-later
#include "coverage.h"

#include <algorithm>
#include <set>

#include "layouts.h"

namespace cudaconv::verify {

namespace {

using Words = std::vector<std::string>;

std::string depth_of(const PlaneLayout &plane, int channel) {
  const std::string bits = std::to_string(plane.channel[channel].depth) + " bits";
  const int shift = plane.channel[channel].shift;
  switch (plane.container) {
    case Container::U8:
      return bits;
    case Container::U16:
      return bits + " in 16, little endian" + (shift ? ", shifted up" : "");
    case Container::U16BE:
      return bits + " in 16, big endian" + (shift ? ", shifted up" : "");
    case Container::Packed32:
      return bits + " in 32";
  }
  return {};
}

// The classes of a vector's frame size.
Words sizes_of(const Vector &v) {
  const FilterSettings &s = v.settings;
  const int side = !s.coefficients.value.empty() ? std::max(s.coefficients.width, s.coefficients.height)
                   : s.size || s.size_y          ? std::max(s.size, s.size_y)
                   : s.sigma >= 0                ? 6 * static_cast<int>(std::max(s.sigma, s.sigma_y)) + 1
                                                 : 3;
  Words list;
  const auto add = [&](bool is, const char *name) {
    if (is) list.push_back(name);
  };
  add(v.width == 1 && v.height == 1, "1x1");
  add(v.width > 1 && v.height == 1, "one row");
  add(v.width == 1 && v.height > 1, "one column");
  add(v.width < side && v.height < side, "smaller than the window");
  add(v.width >= side && v.height >= side, "as large as the window");
  add(v.width % 2 && v.height % 2, "odd");
  add(v.width > 16 && v.width % 16, "width no multiple of 16");
  add(v.width % 16 == 0, "width a multiple of 16");
  add(v.width > 32 && v.height > 16, "larger than a tile of 32x16");
  add(v.width > 256, "wider than 256");
  return list;
}

const Words &size_classes() {
  static const Words classes = {"1x1",
                                "one row",
                                "one column",
                                "smaller than the window",
                                "as large as the window",
                                "odd",
                                "width no multiple of 16",
                                "width a multiple of 16",
                                "larger than a tile of 32x16",
                                "wider than 256"};
  return classes;
}

// The kinds of a vector's regions.
Words regions_of(const Vector &v) {
  const Regions &r = v.regions;
  if (!r.active) return {"none"};
  Words list;
  for (const Region &region : r.region)
    list.push_back(std::string(region.rotation != 0 ? "turned " : "") + (r.ellipse ? "ellipse" : "rect"));
  if (!r.mask.empty()) list.push_back("mask");
  if (list.empty()) list.push_back("empty");
  if (r.invert) list.push_back("inverted");
  if (r.feather) list.push_back("soft");
  if (r.row_step > 1) list.push_back("field");
  list.push_back(v.in_place ? "in place" : "to another frame");
  return list;
}

const Words &region_kinds() {
  static const Words kinds = {"none",     "rect", "ellipse", "turned rect", "turned ellipse",   "mask",
                              "inverted", "soft", "field",   "in place",    "to another frame", "empty"};
  return kinds;
}

Words depths_of(const Vector &v) {
  const FrameLayout layout = v.layout();
  std::set<std::string> depths;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) depths.insert(depth_of(layout.plane[p], c));
  return {depths.begin(), depths.end()};
}

bool is_morphology(Mask mask) {
  return mask >= Mask::Dilate && mask <= Mask::Blackhat;
}

class Counter {
 public:
  explicit Counter(const std::vector<Vector> &vectors) : vectors_(vectors) {}

  // values_of(vector) lists a vector's values of the category.
  template <typename F>
  void add(const std::string &category, const Words &all, F values_of) {
    std::map<std::string, int> counts;
    for (const std::string &value : all) counts[value] = 0;
    for (const Vector &v : vectors_) {
      const Words list = values_of(v);
      for (const std::string &value : std::set<std::string>(list.begin(), list.end())) counts[value]++;
    }
    coverage.emplace_back(category, counts);
  }

  Coverage coverage;

 private:
  const std::vector<Vector> &vectors_;
};

}  // namespace

Coverage coverage_of(const std::vector<Vector> &vectors) {
  Counter counter(vectors);
  const auto word = [](auto v, const Words &words) { return Words{words.at(static_cast<size_t>(v))}; };
  counter.add("mask", mask_words(), [&](const Vector &v) { return word(v.settings.mask, mask_words()); });
  counter.add("border", border_words(), [&](const Vector &v) { return word(v.settings.border, border_words()); });
  counter.add("format", format_names(), [](const Vector &v) { return Words{v.format}; });
  counter.add("samples", {}, depths_of);
  counter.add("size", size_classes(), sizes_of);
  counter.add("method", method_words(), [&](const Vector &v) { return word(v.settings.method, method_words()); });
  counter.add("shape of morphology", shape_words(), [&](const Vector &v) {
    return is_morphology(v.settings.mask) ? word(v.settings.shape, shape_words()) : Words();
  });
  counter.add("negative", negative_words(),
              [&](const Vector &v) { return word(v.settings.negative, negative_words()); });
  counter.add("magnitude", magnitude_words(),
              [&](const Vector &v) { return word(v.settings.magnitude, magnitude_words()); });
  counter.add("chroma", chroma_words(), [&](const Vector &v) { return word(v.settings.chroma, chroma_words()); });
  counter.add("alpha", alpha_words(), [&](const Vector &v) { return word(v.settings.alpha, alpha_words()); });
  counter.add("threshold", {"0", "above 0"},
              [](const Vector &v) { return Words{v.settings.threshold > 0 ? "above 0" : "0"}; });
  counter.add("iterations", {"1", "2", "3"},
              [](const Vector &v) { return Words{std::to_string(v.settings.iterations)}; });
  counter.add("regions", region_kinds(), regions_of);
  counter.add("rows", {"progressive", "interlaced"},
              [](const Vector &v) { return Words{v.interlaced ? "interlaced" : "progressive"}; });
  counter.add("memory", {"host", "device"}, [](const Vector &v) { return Words{v.on_device ? "device" : "host"}; });
  counter.add("result", {"sha256", "samples"},
              [](const Vector &v) { return Words{v.sha256.empty() ? "samples" : "sha256"}; });
  return counter.coverage;
}

std::vector<std::string> gaps_in(const std::vector<Vector> &vectors) {
  std::vector<std::string> gaps;
  for (const auto &[category, counts] : coverage_of(vectors))
    for (const auto &[value, count] : counts)
      if (count == 0) gaps.push_back(category + ": " + value);
  std::set<std::pair<Mask, Border>> pairs;
  for (const Vector &v : vectors) pairs.insert({v.settings.mask, v.settings.border});
  for (size_t m = 0; m < mask_words().size(); m++)
    for (size_t b = 0; b < border_words().size(); b++)
      if (!pairs.count({static_cast<Mask>(m), static_cast<Border>(b)}))
        gaps.push_back("mask and border: " + mask_words()[m] + ", " + border_words()[b]);
  return gaps;
}

}  // namespace cudaconv::verify
