// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plans as the CUDA backend carries them out.
#pragma once

#include <memory>
#include <vector>

#include "cuda/dispatch.h"
#include "plan/lower.h"

namespace cudaconv {

struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  LoweredPlan lowered;
  std::vector<PreparedLaunch> launches;  // of `lowered`

  bool unpacks() const { return !lowered.packed.empty(); }
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
