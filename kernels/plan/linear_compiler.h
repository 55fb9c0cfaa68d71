// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compiles real masks to integers, for passes that compute sums.
#pragma once

#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

// Largest divisor: up to it, sums of 16-bit samples fit 63 bits at every scale in use.
constexpr double kLargestDivisor = 0x1p32;

// The bias in units of 1 / divisor codes, rounded to the nearest integer: exact integer arithmetic, since machines
// differ in long double. `bias`: -1 to 1.
int64_t bias_offset(double bias, int depth, int64_t divisor);

// Rounds sums with this divisor to samples of `depth` bits. `wide`: sums take 64 bits.
Rounding make_rounding(int64_t divisor, int depth, double bias, bool absolute, bool wide);

// Finds integer factors with value = column x row, if there are any. Divides the first non-zero row by the greatest
// common divisor of its coefficients; the quotient must divide every other row.
void factorise(IntegerMask &mask, int width, int height);

// Fills in operation, masks, gains and roundings of a pass for a linear mask, a magnitude or kirsch. Throws
// Error{Settings}.
void compile_linear(const FilterSettings &settings, const FrameLayout &layout, Pass &pass);

}  // namespace cudaconv
