// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops of vector_loops.h as each vector_*.cpp compiles them. Call one only where the processor has its level.
#pragma once

namespace cudaconv {

class VectorLoops;

const VectorLoops &vector_loops_baseline();
const VectorLoops &vector_loops_avx2();
const VectorLoops &vector_loops_avx512();

}  // namespace cudaconv
