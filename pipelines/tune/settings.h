// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element's properties as text, and the input as words of a launch line.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

namespace tune {

using Words = std::vector<std::string>;

// The properties of the element's own class that can be set, in the order of its manual.
std::vector<GParamSpec *> own_properties(GstElement *element);
// Whether the mask and the other settings use the property. An element without the signal has-effect uses all.
bool has_effect(GstElement *element, const char *property);
// Whether the property is a colour, as 0xAARRGGBB.
bool is_color(GParamSpec *spec);
// A number with the digits that it needs.
std::string double_text(double value);
// The value as a launch line has it.
std::string value_text(GParamSpec *spec, const GValue *value);
// Each setting that differs from its default and has an effect, as "name=value".
Words settings_of(GstElement *element);
// Sets all properties to their defaults, except the regions: they belong to the picture.
void reset(GstElement *element);

struct Input {
  std::string name;      // a file, a URI, a camera's device; empty: a test picture
  std::string detector;  // elements that mark regions, as a launch line has them, or empty
};

// The words of a launch line up to the filter. Throws media::Failure where there is no such file.
Words words_before_filter(const Input &input);
// Whether a launch line needs the roihold: with a detector, or if a setting differs from its default.
bool needs_roihold(const Input &input, GstElement *roihold);
// The line for a shell that shows the input through both elements as they are set.
std::string launch_line(const Input &input, GstElement *roihold, GstElement *cudaconv);

}  // namespace tune
