// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Coverage of a set of vectors.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vector.h"

namespace cudaconv::verify {

// For each category, in order, the number of vectors with each of its values. Includes values that no vector has.
using Coverage = std::vector<std::pair<std::string, std::map<std::string, int>>>;

Coverage coverage_of(const std::vector<Vector> &vectors);

// Lists uncovered values, and uncovered pairs of a mask and a border, one per line.
std::vector<std::string> gaps_in(const std::vector<Vector> &vectors);

}  // namespace cudaconv::verify
