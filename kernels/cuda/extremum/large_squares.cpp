// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/extremum/large_squares.h"

#include <algorithm>
#include <utility>

#include "cuda/dispatch.h"
#include "plan/border.h"

namespace cudaconv {

// The bytes are the same as in a single pass. Two pixels of the frame are at most a + b columns and rows apart if and
// only if a pixel between them is at most a from one and b from the other. This holds beside constant samples, too, and
// on the ring that Wrap makes of a row. With the other border modes outside samples equal inside samples of the same
// window. Methods do the passes with modes that differ.
std::shared_ptr<const Plan> divide_squares(const Plan &plan) {
  const int most = kLargestSquareRadius;
  const auto too_large = [most](const Pass &pass) {
    return (pass.op == Op::Minimum || pass.op == Op::Maximum) && pass.element.empty() &&
           pass.radius_x == pass.radius_y && pass.radius_x > most;
  };
  const bool can_be_divided = reads_within_window(plan.border) || plan.border == Border::Wrap;
  const bool is_dense = is_uniform_dense(plan.layout, Container::U8) || is_uniform_dense(plan.layout, Container::U16);
  if (plan.method != Method::Auto || !can_be_divided || !is_dense ||
      std::none_of(plan.passes.begin(), plan.passes.end(), too_large))
    return nullptr;
  auto divided = std::make_shared<Plan>(plan);
  divided->passes.clear();
  int buffers[2] = {0, 0};
  for (const Pass &whole : plan.passes) {
    if (!too_large(whole)) {
      divided->passes.push_back(whole);
      continue;
    }
    // Windows of the largest size take the least time for their reach.
    int left = whole.radius_x, source = whole.source;
    for (int i = 0; left > 0; i++) {
      const int radius = std::min(left, most);
      left -= radius;
      Pass pass = whole;
      pass.radius_x = pass.radius_y = radius;
      pass.source = source;
      if (left > 0) {
        int &buffer = buffers[i % 2];
        if (!buffer) buffer = ++divided->temporaries;
        pass.target = buffer;
        pass.keep_x = pass.keep_y = 0;
        pass.in_regions = false;
      }
      if (!pass.keep_x) pass.copy_source = source;
      source = pass.target;
      divided->passes.push_back(std::move(pass));
    }
  }
  return divided;
}

}  // namespace cudaconv
