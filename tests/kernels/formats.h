// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Layouts for tests: all ways in which a pixel format can store samples, by GStreamer's names.
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

// The format of that name. Ends the program if there is none.
const Format &format_named(std::string_view name);

// The interlaced layout for a progressive `layout`: each field has its own rows in subsampled planes. `room`: whether
// memory has room for one row more than in progressive frames. GStreamer 1.22 has no room in P010_10LE, so that the
// last lines of a field may have no chroma.
FrameLayout with_fields(FrameLayout layout, bool room = true);

}  // namespace cudaconv::test
