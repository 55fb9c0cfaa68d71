// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops of vector_loops.h, as compiled by each vector_*.cpp. Call one only if the processor supports its level.
#pragma once

namespace cudaconv {

class VectorLoops;

const VectorLoops &vector_loops_baseline();
const VectorLoops &vector_loops_avx2();
const VectorLoops &vector_loops_avx512();

}  // namespace cudaconv
