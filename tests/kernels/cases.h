// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The cases of the conformance test. A case is a frame and all its settings, without backend and method. Its number and
// the seed determine it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/regions.h"

namespace cudaconv::test {

// Patterns of samples. EveryTwo: squares of 2x2 samples, each a pair of values above two zeros, with every pair of
// values. The frame has twice as many rows and columns as samples have values.
enum class Content { Random, NearZero, NearFull, Checkerboard, Impulse, Extremes, EveryTwo };
constexpr int kContents = 6;  // contents that cases use in turn: all but EveryTwo

struct Size {
  int width, height;
};

struct Case {
  uint64_t number = 0;
  FilterSettings settings;  // without the method
  Regions regions;
  const Format *format = nullptr;
  Size size{};
  bool interlaced = false;
  Content content = Content::Random;
  int source_placement = 0, target_placement = 0;
  bool in_place = false;  // source and target are one frame; regions are active
};

const char *content_name(Content content);
const std::vector<Placement> &placements();
const std::vector<Border> &borders();
const std::vector<Method> &methods();

// The settings or the case in the notation of gst-launch: mask, border, and settings other than the defaults.
std::string describe(const FilterSettings &settings);
std::string describe(const Case &c);

// A random generator with the same sequence for the same seed and number.
Random random_for(uint64_t seed, uint64_t number);

// Lists of cases. In a thinned list every mask with its variants meets every border, `rounds` times each. Case n takes
// format, size, content and placement n modulo the lengths of their lists. These lengths have no common factor, so that
// any two of them meet in all combinations. Chroma, alpha, interlacing, regions and border colour are drawn at random.
// If a size would take the reference too long, the next size in the list replaces it.
class Cases {
 public:
  // Thinned: see above. Whole: every mask with its variants meets every border, format and size. Random: everything is
  // drawn at random.
  enum class Kind { Thinned, Whole, Random };

  // `small`: only frames that the stand-in filters quickly.
  Cases(Kind kind, uint64_t seed, bool small, uint64_t count_or_rounds);

  uint64_t count() const;
  Case operator[](uint64_t number) const;
  std::string rule() const;

  const std::vector<FilterSettings> &variants() const { return variants_; }
  const std::vector<Size> &sizes() const { return sizes_; }

 private:
  Case in_order(uint64_t number) const;
  Case at_random(uint64_t number) const;
  void limit_work(Case &c) const;

  Kind kind_;
  uint64_t seed_, rounds_, count_;
  bool small_;
  std::vector<FilterSettings> variants_;
  std::vector<Size> sizes_;
};

}  // namespace cudaconv::test
