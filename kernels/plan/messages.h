// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Parts of the texts of errors.
#pragma once

#include <string>

#include "error.h"

namespace cudaconv {

// The shortest decimal number that reads back as `v`, with a decimal point in every locale: 2000000000, 50.5, 1e-09.
std::string number_text(double v);

// What the user wrote, in quotes: its first 40 characters, each that is no valid UTF-8 or cannot be printed as "?".
std::string quoted(const std::string &text);

// Throws Error{Settings}.
[[noreturn]] void refuse(const std::string &text, const char *file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace cudaconv
