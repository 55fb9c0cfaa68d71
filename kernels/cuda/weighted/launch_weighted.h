// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the sources of the kernels for weighted means know of each other.
#pragma once

#include "cuda/launchers.h"

namespace cudaconv {

// Whether the kernels of weighted_mma.cuh can do a weighted mean by a row and a column, of pixels of four bytes.
bool takes_weighted_mma(const PassQuery &query);
void launch_weighted_mma(const PassRun &run);

}  // namespace cudaconv
