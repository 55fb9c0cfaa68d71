// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plans as the CUDA backend carries them out.
#pragma once

#include <memory>
#include <vector>

#include "cuda/dispatch.h"
#include "cuda/unpack.h"

namespace cudaconv {

struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const UnpackedPlan> unpacked;  // nullptr: frames are filtered as they are
  std::shared_ptr<const Plan> divided;   // one of these two with squares divided that are too large; nullptr: none is
  std::vector<PreparedLaunch> launches;  // for filter()

  const Plan &dense() const { return unpacked ? unpacked->plan : *plan; }
  const Plan &filter() const { return divided ? *divided : dense(); }
};

// Keeps the plans that were used last prepared for a device.
class PreparedPlans {
 public:
  explicit PreparedPlans(const KernelSets &kernels) : kernels_(kernels) {}

  // Throws Error{Device}.
  std::shared_ptr<const PreparedPlan> get(const std::shared_ptr<const Plan> &plan);
  const KernelSets &kernels() const { return kernels_; }

 private:
  const KernelSets kernels_;
  std::vector<std::shared_ptr<const PreparedPlan>> plans_;  // most recently used first
};

}  // namespace cudaconv
