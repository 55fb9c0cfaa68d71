// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Helpers for error texts.
#pragma once

#include <string>

#include "error.h"

namespace cudaconv {

// The shortest decimal number that reads back as `v`, with a decimal point in every locale: 2000000000, 50.5, 1e-09.
std::string number_text(double v);

// The user's text in quotes, cut off after 40 characters. Invalid UTF-8 and characters that cannot be printed become
// "?".
std::string quoted(const std::string &text);

// Throws Error{Settings} with this text.
[[noreturn]] void refuse(const std::string &text, const char *file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace cudaconv
