// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One for each vector_*.cpp that is compiled with vector_loops.h. To be called only where the processor has the level.
#pragma once

namespace cudaconv {

class VectorLoops;

const VectorLoops &vector_loops_baseline();
const VectorLoops &vector_loops_avx2();
const VectorLoops &vector_loops_avx512();

}  // namespace cudaconv
