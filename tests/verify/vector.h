// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Test vectors: what is filtered how, and what comes out. A line of their file each; the head of the file describes
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter.h"
#include "imageview.h"

namespace cudaconv::verify {

// What one sample of the result is.
struct Sample {
  int plane = 0, channel = 0, x = 0, y = 0;
  double value = 0;
  bool exact = true;  // false: a result may be a code from it
};

struct Vector {
  int line = 0;  // of the file, from 1; 0: of none
  FilterSettings settings;
  std::string format;
  int width = 0, height = 0;
  bool interlaced = false;
  Regions regions;  // whose masks have no members yet, see draw_picture()
  bool in_place = false, on_device = false;
  uint64_t seed = 0;
  // Of the visible bytes of the result; or, where that is not defined to the last bit, empty, and some of its samples.
  std::string sha256;
  std::vector<Sample> samples;

  FrameLayout layout() const;
};

// All words of a line but those of the result. Throws std::runtime_error that says what is wrong with a line.
std::string describe(const Vector &vector);
std::string to_line(const Vector &vector);
Vector parse_vector(const std::string &line);

// The text of a file, without comments.
std::vector<Vector> parse_vectors(const std::string &text);

// The words of the enumerations, in their order.
const std::vector<std::string> &mask_words();
const std::vector<std::string> &border_words();
const std::vector<std::string> &method_words();
const std::vector<std::string> &shape_words();
const std::vector<std::string> &negative_words();
const std::vector<std::string> &magnitude_words();
const std::vector<std::string> &chroma_words();
const std::vector<std::string> &alpha_words();

}  // namespace cudaconv::verify
