// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Prints which methods support which masks, as in the table of gst/README.md. Masks have their default size, but dilate
// and erode have size 5, the only size that method=cascade supports.
#include <cstdio>
#include <string>

#include "cases.h"
#include "error.h"
#include "plan/plan.h"

using namespace cudaconv;

namespace {

bool does_it(const FilterSettings &settings, const FrameLayout &layout) {
  try {
    make_plan(settings, layout);
  } catch (const Error &) {
    return false;
  }
  return true;
}

}  // namespace

int main() {
  FrameLayout layout;
  for (const test::Format &format : test::formats())
    if (std::string(format.name) == "GRAY8") layout = format.layout(64, 64);
  std::printf("| `method` | masks |\n|---|---|\n");
  for (Method method : test::methods()) {
    std::string does, does_not;
    int more = 0;
    for (const Named<Mask> &mask : kMaskNames) {
      FilterSettings settings;
      settings.mask = mask.value;
      settings.method = method;
      if (settings.mask == Mask::Dilate || settings.mask == Mask::Erode) settings.size = 5;
      settings.coefficients = {3, 3, {1, 2, 1, 2, 4, 2, 1, 2, 1}};
      const bool can = does_it(settings, layout);
      (can ? does : does_not) += std::string(" `") + mask.nick + "`";
      more += can ? 1 : -1;
    }
    const std::string text = does_not.empty() ? " all" : more > 0 ? " all but" + does_not : does;
    std::printf("| `%s` |%s |\n", method_nick(method), text.c_str());
  }
  return 0;
}
