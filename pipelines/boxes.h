// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The boxes that MP4 and QuickTime files consist of.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace media {

// The data of a box.
struct Box {
  guint8 *data, *end;

  // The boxes of a type that are in this one.
  std::vector<Box> inside(const char *type) const;
  // Whether these four letters are in the data, at a distance in bytes from the beginning.
  bool has(ptrdiff_t distance, const char *letters) const;
};

// A number in a box, of 32 or 64 bits.
struct Number {
  guint8 *at = nullptr;
  bool wide = false;

  guint64 get() const;
  void set(guint64 number) const;
};

// The duration in a box `mvhd` or `mdhd`.
struct Length : Number {
  guint32 scale = 0;  // units a second; 0: unknown

  explicit Length(const std::vector<Box> &boxes);
};

// A part of the media of a track that is shown.
struct Edit {
  Number duration;  // in units of the whole
  gint64 entry;     // in units of the media; negative: nothing is shown
};
std::vector<Edit> edits_of(const Box &track);

// Calls `look` with the box `moov`, which describes all streams, before it passes the pad. It may change the data in
// their place. A file that comes piece by piece, as from a network, waits until the box is whole.
void watch_movie(GstPad *pad, std::function<void(const Box &movie)> look);

}  // namespace media
