// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Prints which methods do which masks, as in the table of gst/README.md. Masks have their default size, but dilate and
// erode have size 5, since that is the one that method=cascade does.
#include <cstdio>
#include <string>

#include "cases.h"
#include "error.h"
#include "plan/plan.h"

using namespace cudaconv;

int main() {
  FrameLayout layout;
  for (const test::Format &format : test::formats())
    if (std::string(format.name) == "GRAY8") layout = format.layout(64, 64);
  std::printf("| `mask` |");
  for (Method method : test::methods()) std::printf(" %s |", method_nick(method));
  std::printf("\n|---|");
  for (size_t i = 0; i < test::methods().size(); i++) std::printf("---|");
  std::printf("\n");
  for (int m = 0; m <= static_cast<int>(Mask::Custom); m++) {
    FilterSettings settings;
    settings.mask = static_cast<Mask>(m);
    if (settings.mask == Mask::Dilate || settings.mask == Mask::Erode) settings.size = 5;
    settings.coefficients = {3, 3, {1, 2, 1, 2, 4, 2, 1, 2, 1}};
    std::printf("| %s |", mask_nick(settings.mask));
    for (Method method : test::methods()) {
      settings.method = method;
      bool can = true;
      try {
        make_plan(settings, layout);
      } catch (const Error &) {
        can = false;
      }
      std::printf(can ? " x |" : " |");
    }
    std::printf("\n");
  }
  return 0;
}
