// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The cases of the test vectors: every mask with its variants, at every border, several times with other frames.
#pragma once

#include <vector>

#include "vector.h"

namespace cudaconv::verify {

// All cases without their results; the list is always the same.
std::vector<Vector> make_cases();

}  // namespace cudaconv::verify
