// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Layouts to test with: all ways in which the samples of a pixel format can lie in memory, by GStreamer's names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "imageview.h"

namespace cudaconv::test {

struct Format {
  const char *name;
  // The layout of a frame of width x height pixels; odd sizes of subsampled planes are rounded up.
  FrameLayout (*layout)(int width, int height);
};

const std::vector<Format> &formats();

// The format of that name. Ends the program where there is none.
const Format &format_named(std::string_view name);

// The layout of interlaced frames that `layout` is the progressive one of: each field has rows of its own in subsampled
// planes. `room`: whether there is any for a row more than progressive frames have. GStreamer 1.22 has none in
// P010_10LE, so that the last lines of a field may have no chroma.
FrameLayout with_fields(FrameLayout layout, bool room = true);

}  // namespace cudaconv::test
