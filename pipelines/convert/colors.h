// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts frames of one YUV colorimetry to another.
#pragma once

#include <gst/video/video.h>

#include <array>

namespace media {

// videoconvert does this too, but it ignores the range where the matrix stays, and is up to 4 codes off with 8 bits. By
// way of RGB of 16 bits it takes longer than the encoder.
class Colors {
 public:
  // Both matrices have to be known: convertible().
  Colors(const GstVideoColorimetry &from, const GstVideoColorimetry &to);
  // Converts a frame of I420 or NV12, whose planes are mapped for writing. Right to within half a code on each plane
  // where the chroma is even; the luma beside an edge gets the chroma sample that covers it.
  void convert(GstVideoFrame *frame) const;

  static bool convertible(const GstVideoColorimetry &colors);
  static bool differ(const GstVideoColorimetry &a, const GstVideoColorimetry &b);

 private:
  std::array<int, 3> luma_, blue_, red_;  // factors of Y, U and V, in 1/65536
  int black_, new_black_;                 // codes
};

}  // namespace media
