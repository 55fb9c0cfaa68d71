// SPDX-License-Identifier: LGPL-2.1-or-later
//
// roi-scale: a plan for each strength that the sizes of regions ask for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "gstcudaconvroi.h"

namespace cudaconv::gst {

// The thread of upstream's alone. Strengths go in steps of 2^(1/4), which bounds the number of plans, made when regions
// first ask for them. Sides are those of regions after roi-grow, as far as frame edges do not matter.
class RoiStrength {
 public:
  // `scale` above 0; the mask is one with a strength, see unused().
  RoiStrength(const FilterSettings &filter, double scale);

  // Why roi-scale has no effect with the mask, as a sentence; nothing where it has.
  static std::string unused(const FilterSettings &filter);

  // The regions by their strength, the strongest last. `as_set` is the plan of the settings, whose layout and number of
  // iterations all plans have.
  std::vector<PlannedRegions> plan(const std::shared_ptr<const Plan> &as_set, RoiSelection selection);

  // Where a strength cannot be had with these settings though the mask has it: which, why, and what is taken in its
  // place. Else empty.
  const std::string &complaint() const { return complaint_; }

 private:
  struct Entry {
    double value = 0;  // sigma or size; 0: as set
    std::shared_ptr<const Plan> plan;
  };

  double value_of(int step) const;
  int step_for(double wanted) const;
  std::shared_ptr<const Plan> try_plan(double value, Method method, std::string *why = nullptr) const;
  Entry make_entry(int step);
  double largest_between(double works, double fails) const;

  const FilterSettings filter_;
  const double scale_;
  const bool by_sigma_;
  bool takes_even_ = false;
  std::shared_ptr<const Plan> as_set_;  // of the frame at hand
  // By the plan as set, of which there are two where frames are progressive or interlaced.
  std::map<const Plan *, std::map<int, Entry>> entries_;
  std::string complaint_;
};

}  // namespace cudaconv::gst
