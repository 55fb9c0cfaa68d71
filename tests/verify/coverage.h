// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a set of vectors covers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vector.h"

namespace cudaconv::verify {

// By category, in order, how many vectors have each of its values; values that no vector has are there too.
using Coverage = std::vector<std::pair<std::string, std::map<std::string, int>>>;

Coverage coverage_of(const std::vector<Vector> &vectors);

// What is not covered, a line each: values, and pairs of a mask and a border.
std::vector<std::string> gaps_in(const std::vector<Vector> &vectors);

}  // namespace cudaconv::verify
