// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/prepared_plan.h"

#include <algorithm>

namespace cudaconv {

namespace {

// With roi-scale a frame has several plans, and frames take turns with others.
constexpr size_t kMostPrepared = 64;

}  // namespace

std::shared_ptr<const PreparedPlan> PreparedPlans::get(const std::shared_ptr<const Plan> &plan) {
  auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto &p) { return p->plan == plan; });
  if (found == plans_.end()) {
    auto made = std::make_shared<PreparedPlan>(PreparedPlan{plan, lower(*plan), {}});
    made->launches = prepare(made->lowered, kernels_);
    if (plans_.size() == kMostPrepared) plans_.pop_back();
    found = plans_.insert(plans_.end(), std::move(made));
  }
  std::rotate(plans_.begin(), found, found + 1);
  return plans_.front();
}

}  // namespace cudaconv
