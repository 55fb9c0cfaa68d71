// SPDX-License-Identifier: LGPL-2.1-or-later
//
// From a real mask to integers, for passes that add.
#pragma once

#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

// Divisors up to here leave a sum of 16-bit samples its 63 bits, with every scale below.
constexpr double kLargestDivisor = 0x1p32;

// The rounding to samples of `depth` bits of sums with this divisor; `wide`: they take 64 bits.
Rounding make_rounding(int64_t divisor, int depth, double bias, bool absolute, bool wide);

// Finds value = column x row in integers, where there are such: the first row with a non-zero coefficient, divided by
// the greatest common divisor of its coefficients, has to divide every other row.
void factorise(IntegerMask &mask, int width, int height);

// Fills in the operation, the masks, the gains and the roundings of a pass for a linear mask, a magnitude or kirsch.
// Throws Error{Settings}.
void compile_linear(const FilterSettings &settings, const FrameLayout &layout, Pass &pass);

}  // namespace cudaconv
