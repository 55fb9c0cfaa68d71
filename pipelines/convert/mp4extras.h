// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What GStreamer does not read of a file.
#pragma once

#include <string>

namespace media {

// Parts of an MP4 or QuickTime file. qtdemux gives neither, up to 1.28 at least.
struct Mp4Extras {
  bool chapters = false, timecodes = false;
};
Mp4Extras mp4_extras(const std::string &file);

}  // namespace media
