// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the conformance test tries. A case is everything but backend and method, and follows from its number and the
// seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter.h"
#include "formats.h"
#include "guarded_frame.h"

namespace cudaconv::test {

// EveryTwo: of a frame with twice as many rows and columns as samples have values, each square of 2x2 begins with two
// of them, all there are, above zeros.
enum class Content { Random, NearZero, NearFull, Checkerboard, Impulse, Extremes, EveryTwo };
constexpr int kContents = 6;  // that cases take in turn: all but the last

struct Size {
  int width, height;
};

struct Case {
  uint64_t number = 0;
  FilterSettings settings;  // all but the method
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

// As on a launch line, with only what differs from the defaults, the mask and the border apart.
std::string describe(const FilterSettings &settings);
std::string describe(const Case &c);

// Same sequence for the same number and seed.
Random random_for(uint64_t seed, uint64_t number);

// The cases in which every mask with its variants meets every border, `rounds` times each: case n takes format n mod
// 23, size n mod the number of sizes, content n mod 6, placement n mod 5, which have no common factor, so that any two
// of them meet in all combinations. Chroma, alpha, interlacing, regions and the colour of the border are drawn. A size
// that would keep the reference busy for too long is replaced with the next in the list.
class Cases {
 public:
  // Whole: every mask with its variants meets every border, format and size. Random: everything is drawn.
  enum class Kind { Thinned, Whole, Random };

  // `small`: only frames that an emulated GPU does quickly.
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
