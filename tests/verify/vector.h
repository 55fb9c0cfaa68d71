// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Test vectors: a frame, settings, and the result. Each is a line of vectors.txt, whose head describes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/regions.h"

namespace cudaconv::verify {

// The value of one sample of the result.
struct Sample {
  int plane = 0, channel = 0, x = 0, y = 0;
  double value = 0;
  bool exact = true;  // false: results may be one code off
};

struct Vector {
  int line = 0;  // line of the file, from 1; 0: not from a file
  FilterSettings settings;
  std::string format;
  int width = 0, height = 0;
  bool interlaced = false;
  Regions regions;  // masks have no members yet, see draw_picture()
  bool in_place = false, on_device = false;
  uint64_t seed = 0;
  // The hash of the visible bytes of the result. If the result is not exact, it is empty, and `samples` has some
  // samples.
  std::string sha256;
  std::vector<Sample> samples;

  FrameLayout layout() const;
};

// describe() returns the words of a line without the result, to_line() all words. parse_vector() throws
// std::runtime_error with the fault of a line.
std::string describe(const Vector &vector);
std::string to_line(const Vector &vector);
Vector parse_vector(const std::string &line);

// Parses the text of a file, and skips its comments.
std::vector<Vector> parse_vectors(const std::string &text);

// The words of the enumerations, in the order of their values.
const std::vector<std::string> &mask_words();
const std::vector<std::string> &border_words();
const std::vector<std::string> &method_words();
const std::vector<std::string> &shape_words();
const std::vector<std::string> &negative_words();
const std::vector<std::string> &magnitude_words();
const std::vector<std::string> &chroma_words();
const std::vector<std::string> &alpha_words();

}  // namespace cudaconv::verify
