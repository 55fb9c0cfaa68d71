// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "filter.h"

namespace cudaconv {

// Reads a mask as the user writes it: rows end in ';' or a newline, numbers are separated by blanks or a comma. One row
// of 9, 25 or 49 numbers is taken as a square. Both sides are odd, at most 31. The decimal point is '.' in every
// locale. Throws Error{Settings} that names the row and column, both counted from 1.
Coefficients parse_coefficients(const std::string &text);

}  // namespace cudaconv
