// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What GStreamer does not read of a file.
#pragma once

#include <string>

namespace media {

// What an MP4 or QuickTime file has that qtdemux does not give, up to 1.28 at least.
struct Mp4Extras {
  bool chapters = false, timecodes = false;
};
Mp4Extras mp4_extras(const std::string &file);

}  // namespace media
