// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Prints which methods do which masks, as the table of gst/README.md. Sizes are the masks' defaults but for dilate and
// erode, of which method=cascade does size 5.
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
  for (const Named<Mask> &mask : kMaskNames) {
    FilterSettings settings;
    settings.mask = mask.value;
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
