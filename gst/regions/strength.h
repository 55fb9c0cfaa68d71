// SPDX-License-Identifier: LGPL-2.1-or-later
//
// roi-scale: the strength of the filter follows the size of each region, with a plan for each strength.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "regions/selector.h"

namespace cudaconv::gst {

// For the sink pad's streaming thread alone. Strengths go in steps of 2^(1/4), which bounds the number of plans; these
// are made when a region first needs them. The side of a region is its side after roi-grow, not clipped at the frame's
// edges.
class RoiStrength {
 public:
  // `scale` is above 0, and the mask has a strength: see unused().
  RoiStrength(const FilterSettings &filter, double scale);

  // Why roi-scale has no effect with the mask, as a sentence; empty where it has.
  static std::string unused(const FilterSettings &filter);

  // Groups the regions by strength, the strongest last, since later ones win where regions overlap. `as_set` is the
  // plan of the settings; all plans have its layout and number of iterations. Some plans take 30 ms to make: throws
  // Error{Cancelled} where `cancelled` is true before one is made.
  std::vector<PlannedRegions> plan(const std::shared_ptr<const Plan> &as_set, RoiSelection selection,
                                   const std::atomic<bool> &cancelled);

  // A warning if the method set does not support a strength: the strength, the reason, and the replacement. Otherwise
  // empty.
  const std::string &complaint() const { return complaint_; }

 private:
  struct Entry {
    double value = 0;  // sigma or size; 0: as set
    std::shared_ptr<const Plan> plan;
  };

  int size_from(double value) const;
  double value_of(int step) const;
  int step_for(double wanted) const;
  std::shared_ptr<const Plan> try_plan(double value, Method method, std::string *why = nullptr) const;
  Entry make_entry(int step);
  double largest_between(double works, double fails) const;
  const char *setting() const;

  const FilterSettings filter_;
  const double scale_;
  const bool by_sigma_;
  // Factors of the value for the width and for the height: sigmas, or sides.
  double of_x_ = 1, of_y_ = 1;
  bool takes_even_ = false;
  std::shared_ptr<const Plan> as_set_;            // the plan of the settings for the present frame
  const std::atomic<bool> *cancelled_ = nullptr;  // set during plan()
  // By the plan of the settings: there are two where frames are progressive or interlaced. Then by step.
  std::map<const Plan *, std::map<int, Entry>> entries_;
  std::string complaint_;
};

}  // namespace cudaconv::gst
