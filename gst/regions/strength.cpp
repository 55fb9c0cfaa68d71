// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/strength.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/masks.h"
#include "plan/messages.h"

namespace cudaconv::gst {

namespace {

// Step n is 2^(n/4): from a sigma of 0.5 and a size of 2, the weakest that have an effect, to beyond the size of any
// mask.
constexpr int kFirstSigma = -4, kFirstSize = 4, kLast = 48;
constexpr double kRounding = 1e-9;  // tolerance for powers of two that should be whole numbers

}  // namespace

RoiStrength::RoiStrength(const FilterSettings &filter, double scale)
    : filter_(filter), scale_(scale), by_sigma_(mask_has_size_from_sigma(filter.mask)) {
  if (by_sigma_) {
    const Sigmas sigma = sigmas_of(filter);
    // Without a blur along rows, use the columns' sigma.
    if (sigma.x > 0 || sigma.y > 0) of_x_ = sigma.x > 0;
    if (sigma.x > 0) of_y_ = sigma.y / sigma.x;
  } else {
    const WindowSize size = window_size_of(filter);
    of_y_ = static_cast<double>(size.height) / size.width;
  }
}

std::string RoiStrength::unused(const FilterSettings &filter) {
  // The size alone tells: every mask that has a sigma has a size.
  std::string text = why_unused("size", filter);
  return text.empty() ? text : text.replace(0, sizeof("size") - 1, "roi-scale");
}

// The least size of the mask from `value` on.
int RoiStrength::size_from(double value) const {
  const int size = std::max(1, static_cast<int>(std::ceil(value - kRounding)));
  return takes_even_ || size % 2 ? size : size + 1;
}

double RoiStrength::value_of(int step) const {
  const double value = std::exp2(step / 4.0);
  return by_sigma_ ? value : size_from(value);
}

int RoiStrength::step_for(double wanted) const {
  int step = by_sigma_ ? kFirstSigma : kFirstSize;
  while (step < kLast && value_of(step) < wanted - kRounding) step++;
  return step;
}

// A plan with `value` for sigma or size. nullptr, with the reason in `*why`, where the settings do not allow it.
std::shared_ptr<const Plan> RoiStrength::try_plan(double value, Method method, std::string *why) const {
  FilterSettings filter = filter_;
  filter.method = method;
  filter.size = by_sigma_ ? 0 : static_cast<int>(value);
  filter.size_y = by_sigma_ ? 0 : size_from(value * of_y_);
  filter.sigma = by_sigma_ ? value * of_x_ : kAutoSigma;
  filter.sigma_y = by_sigma_ ? value * of_y_ : kSigmaYAsX;
  if (*cancelled_) throw Error(Error::Kind::Cancelled, "the plans of regions were cancelled");
  try {
    return make_plan(filter, as_set_->layout);
  } catch (const Error &e) {
    if (e.kind() != Error::Kind::Settings) throw;
    if (why) *why = e.what();
  }
  return nullptr;
}

// The largest value that has a plan, from `works` on and below `fails`: limits of masks need not be steps. A sigma is
// tried in thirds, since the side of its mask, 2*ceil(3*sigma)+1, changes with each.
double RoiStrength::largest_between(double works, double fails) const {
  const double unit = by_sigma_ ? 1.0 / 3 : takes_even_ ? 1 : 2;
  int low = 0, high = static_cast<int>(std::ceil((fails - works) / unit));  // units above `works`
  const auto value = [&](int units) { return by_sigma_ ? std::floor(works * 3 + units) / 3 : works + units * unit; };
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (try_plan(value(middle), filter_.method) ? low : high) = middle;
  }
  return low ? value(low) : works;
}

const char *RoiStrength::setting() const {
  return !by_sigma_ ? "size=" : of_x_ > 0 ? "sigma=" : "sigma-y=";
}

RoiStrength::Entry RoiStrength::make_entry(int step) {
  std::string why;
  if (auto plan = try_plan(value_of(step), filter_.method, &why)) return {value_of(step), std::move(plan)};
  const int first = by_sigma_ ? kFirstSigma : kFirstSize;
  int below = step - 1;
  while (below >= first && !try_plan(value_of(below), filter_.method)) below--;
  Entry entry = {0, as_set_};
  if (below >= first) {
    entry.value = largest_between(value_of(below), value_of(below + 1));
    entry.plan = try_plan(entry.value, filter_.method);
  }
  if (complaint_.empty() && filter_.method != Method::Auto && try_plan(value_of(below + 1), Method::Auto))
    complaint_ = std::string("roi-scale asks for ") + setting() + number_text(value_of(step)) + ", but " + why + "; " +
                 (entry.value > 0 ? setting() + number_text(entry.value) + " is used instead"
                                  : "the strength as set is used instead");
  return entry;
}

std::vector<PlannedRegions> RoiStrength::plan(const std::shared_ptr<const Plan> &as_set, RoiSelection selection,
                                              const std::atomic<bool> &cancelled) {
  if (selection.regions.invert ||
      (selection.regions.region.empty() && selection.regions.mask.empty() && selection.regions.pixels.empty()))
    return {{as_set, std::move(selection.regions)}};
  as_set_ = as_set;
  cancelled_ = &cancelled;
  if (entries_.empty()) takes_even_ = !by_sigma_ && try_plan(2, Method::Auto);
  std::map<int, Entry> &entries = entries_[as_set.get()];

  std::map<double, PlannedRegions> groups;
  Regions &all = selection.regions;
  const auto group_of = [&](int side) -> Regions & {
    const int step = step_for(scale_ * side);
    auto entry = entries.find(step);
    if (entry == entries.end()) entry = entries.emplace(step, make_entry(step)).first;
    PlannedRegions &group = groups[entry->second.value];
    if (!group.plan) {
      group.plan = entry->second.plan;
      group.regions.active = true;
      group.regions.ellipse = all.ellipse;
      group.regions.feather = all.feather;
      group.regions.first_row = all.first_row;
      group.regions.row_step = all.row_step;
    }
    return group.regions;
  };
  for (const Region &r : all.region) group_of(std::min(r.width, r.height)).region.push_back(r);
  for (size_t i = 0; i < all.mask.size(); i++) group_of(selection.mask_side[i]).mask.push_back(std::move(all.mask[i]));
  for (auto &pixels : all.pixels)
    group_of(std::min(pixels->box.width, pixels->box.height)).pixels.push_back(std::move(pixels));
  std::vector<PlannedRegions> planned;
  for (auto &[value, group] : groups) planned.push_back(std::move(group));
  return planned;
}

}  // namespace cudaconv::gst
