// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The memory layout of samples in every pixel format that the element supports. It is independent of the element's:
// written by hand, from the definitions of the formats.
#pragma once

#include <string>
#include <vector>

#include "imageview.h"

namespace cudaconv::verify {

// The names of all formats, as in GStreamer.
const std::vector<std::string> &format_names();

// The layout of a frame of width x height pixels. Sizes of subsampled planes are rounded up. Throws std::runtime_error
// for an unknown name.
FrameLayout layout_of(const std::string &format, int width, int height);

}  // namespace cudaconv::verify
