// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How the samples of every pixel format that the element takes lie in memory, written down a second time: from the
// definitions of the formats, by hand.
#pragma once

#include <string>
#include <vector>

#include "imageview.h"

namespace cudaconv::verify {

// GStreamer's names.
const std::vector<std::string> &format_names();

// Of a frame of width x height pixels; subsampled planes are rounded up. Throws std::runtime_error for another name.
FrameLayout layout_of(const std::string &format, int width, int height);

}  // namespace cudaconv::verify
