// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend as C++ for the stand-in of the CUDA runtime.
#include "backend_cuda.cu"
