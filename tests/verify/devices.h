// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace cudaconv::verify {

// Makes CUDA device `device`, counted from 0, current for the calling thread, and returns its name. Throws
// std::runtime_error.
std::string use_device(int device);

}  // namespace cudaconv::verify
