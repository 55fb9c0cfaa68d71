// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The cases of the test vectors: every mask with its variants, with every border, on several frames.
#pragma once

#include <vector>

#include "vector.h"

namespace cudaconv::verify {

// All cases without results. The list is always the same.
std::vector<Vector> make_cases();

}  // namespace cudaconv::verify
