// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the test vectors try: every mask with its variants, at every border, over and over on other frames.
#pragma once

#include <vector>

#include "vector.h"

namespace cudaconv::verify {

// Without results; the same list each time.
std::vector<Vector> make_cases();

}  // namespace cudaconv::verify
