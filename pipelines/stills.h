// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Pictures in files, through a filter.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "media.h"

namespace media {

// Prints a line where a file is an animated PNG: GStreamer decodes its first picture. Throws Failure where it is an
// animated WebP.
void check_animation(const std::string &file);

// The video-direction of the videoflip before the filter, by the Exif data of a PNG or JPEG, which their decoders do
// not read. Other files have tags.
const char *direction_of(const std::string &file);

// Filters pictures, one after the other, in a pipeline that stays while they have the same kind.
class Stills {
 public:
  // Sets up the elements of the filter in a pipeline, and returns its cudaconv.
  using SetUp = std::function<Owned<GstElement>(GstElement *pipeline)>;
  // Is called when the first picture is filtered.
  using Report = std::function<void(GstElement *cudaconv, const Runner &runner)>;
  // `filter`: a launch line from the decoded picture to cudaconv, with a videoflip named `flip`.
  Stills(std::string filter, SetUp set_up, Report report);

  // Reads a PNG or JPEG, of any name, and writes what the name of the output asks for. A line on stderr says where it
  // has fewer bits. Throws Failure; after an interruption the output is not written.
  void filter(const std::string &input, const std::string &output);

  bool interrupted() const { return runner_ && runner_->interrupted(); }
  // Throws Interrupted if it was.
  void check_interruption();

 private:
  std::string line_for(const std::string &decoder, bool to_png) const;
  void make(const std::string &line);
  Owned<GstCaps> caps_of(const char *element, const char *pad);

  const std::string middle_;
  const SetUp set_up_;
  Report report_;
  Owned<GstElement> filter_;
  std::unique_ptr<Runner> runner_;
  std::string line_;
};

}  // namespace media
