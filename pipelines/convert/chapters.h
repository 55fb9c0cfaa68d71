// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Chapters that GStreamer does not read.
#pragma once

#include <string>

namespace media {

// Whether the file is an MP4 or QuickTime with chapters: qtdemux gives none, up to 1.28 at least.
bool has_mp4_chapters(const std::string &file);

}  // namespace media
