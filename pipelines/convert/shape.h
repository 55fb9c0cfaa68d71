// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Gives all frames of a video the caps of its first frame.
#pragma once

#include <gst/gst.h>

#include <optional>
#include <vector>

#include "../media.h"
#include "colors.h"
#include "encoders.h"

namespace media {

// A file has one header for all frames, but the frames of a broadcast change their size, aspect, rate, fields and
// colours. Later frames are scaled, with borders, and converted to the size and the colours of the first. VP8 and VP9
// keep a new size, since each key frame tells its own. VP8 cannot name its colours: it gets the ones that decoders
// expect. Frames of more than 8 bits keep their colours, also later ones.
class Shape {
 public:
  // `coding`: what the frames are encoded to.
  explicit Shape(const Coding &coding);
  Shape(const Shape &) = delete;
  // The elements, to be linked in this order. A bin takes them; the Shape outlives their data flow.
  std::vector<GstElement *> elements() const { return {fit_, pins_}; }
  // The first frame, as it comes and as the file has it; nullptr before it.
  const GstCaps *first() const { return first_.get(); }
  const GstCaps *written() const { return written_.get(); }

 private:
  static GstPadProbeReturn before(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  static GstPadProbeReturn after(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  void begin(const GstCaps *caps);
  static void keep_grey(const GstCaps *caps, GstCaps *pins);
  void go_on(const GstCaps *caps);
  GstVideoColorimetry written_as(const GstVideoColorimetry &colors) const;
  GstCaps *write_as(const GstCaps *caps);
  void report(const GstStructure *now, bool scaled);

  const bool vp8_, vp9_, h265_, one_size_, deep_;
  const Owned<GstCaps> frames_;  // that the encoder takes
  GstElement *const fit_, *const pins_;
  Owned<GstCaps> first_;    // as they come
  Owned<GstCaps> written_;  // as they go to the encoder
  GstVideoInfo info_;       // of the frames between the two
  std::optional<Colors> colors_;
  bool has_frame_ = false;
  bool told_size_ = false, told_fields_ = false, told_colors_ = false;
};

// Whether frames with these caps have fields.
bool is_interlaced(const GstCaps *video);

}  // namespace media
