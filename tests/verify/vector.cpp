// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vector.h"

#include <glib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "layouts.h"

namespace cudaconv::verify {

namespace {

using Words = std::vector<std::string>;

// ---- Numbers, with a point in every locale --------------------------------------------------------------------------

std::string format_number(const char *format, double v) {
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_ascii_formatd(text, sizeof text, format, v);
}

// A number with the fewest digits that identify it.
std::string number(double v) {
  for (int digits = 1; digits < 17; digits++) {
    const std::string text = format_number(("%." + std::to_string(digits) + "g").c_str(), v);
    if (g_ascii_strtod(text.c_str(), nullptr) == v) return text;
  }
  return format_number("%.17g", v);
}

double to_number(const std::string &text) {
  gchar *end = nullptr;
  const double v = g_ascii_strtod(text.c_str(), &end);
  if (text.empty() || *end) throw std::runtime_error("\"" + text + "\" is not a number");
  return v;
}

int to_integer(const std::string &text) {
  const double v = to_number(text);
  if (v != std::floor(v) || std::fabs(v) > 1e9) throw std::runtime_error("\"" + text + "\" is not an integer");
  return static_cast<int>(v);
}

Words split(const std::string &text, const std::string &separators) {
  Words words;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(separators, begin)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<double> numbers(const std::string &text, const std::string &separators, size_t count) {
  std::vector<double> list;
  for (const std::string &word : split(text, separators)) list.push_back(to_number(word));
  if (list.size() != count)
    throw std::runtime_error("\"" + text + "\" must have " + std::to_string(count) + " numbers");
  return list;
}

// ---- Words ----------------------------------------------------------------------------------------------------------

template <typename Enum, size_t n>
Words words_of(const Named<Enum> (&names)[n]) {
  Words words;
  for (const Named<Enum> &name : names) words.push_back(name.nick);
  return words;
}

template <typename Enum>
Enum to_enum(const std::string &word, const Words &words) {
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end()) throw std::runtime_error("unknown word \"" + word + "\"");
  return static_cast<Enum>(at - words.begin());
}

template <typename Enum>
const std::string &word_of(Enum v, const Words &words) {
  return words.at(static_cast<size_t>(v));
}

bool to_bool(const std::string &word) {
  if (word != "true" && word != "false") throw std::runtime_error("\"" + word + "\" is neither true nor false");
  return word == "true";
}

Coefficients to_coefficients(const std::string &text) {
  Coefficients c;
  for (const std::string &row : split(text, ";")) {
    const Words row_words = split(row, " ");
    c.width = static_cast<int>(row_words.size());
    c.height++;
    for (const std::string &word : row_words) c.value.push_back(to_number(word));
  }
  if (c.value.size() != static_cast<size_t>(c.width) * c.height)
    throw std::runtime_error("rows of coefficients differ in length");
  return c;
}

std::string quoted(const Coefficients &c) {
  std::string text = "\"";
  for (size_t i = 0; i < c.value.size(); i++) text += (i == 0 ? "" : i % c.width ? " " : "; ") + number(c.value[i]);
  return text + "\"";
}

Region to_region(const std::string &text, size_t count) {
  const std::vector<double> v = numbers(text, ", ", count);
  Region r = {static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2]), static_cast<int>(v[3])};
  if (count == 5) r.rotation = v[4];
  return r;
}

std::string to_text(const Region &r) {
  return std::to_string(r.x) + "," + std::to_string(r.y) + "," + std::to_string(r.width) + "," +
         std::to_string(r.height);
}

std::string to_text(const Sample &s) {
  char place[64];
  std::snprintf(place, sizeof place, "%d.%d.%d.%d:", s.plane, s.channel, s.x, s.y);
  return place + format_number(s.exact ? "%.0f" : "%.3f", s.value);
}

Sample to_sample(const std::string &text) {
  Sample s;
  const Words parts = split(text, ":");
  if (parts.size() != 2 || std::sscanf(parts[0].c_str(), "%d.%d.%d.%d", &s.plane, &s.channel, &s.x, &s.y) != 4)
    throw std::runtime_error("\"" + text + "\" is not a sample");
  s.value = to_number(parts[1]);
  s.exact = parts[1].find('.') == std::string::npos;
  return s;
}

// ---- Lines ----------------------------------------------------------------------------------------------------------

// Splits a line of key=value and key="value", separated by blanks.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::string &line) {
  std::vector<std::pair<std::string, std::string>> pairs;
  size_t at = 0;
  while ((at = line.find_first_not_of(' ', at)) != std::string::npos) {
    const size_t equals = line.find('=', at);
    if (equals == std::string::npos) throw std::runtime_error("a word without =: " + line.substr(at));
    const bool quote = equals + 1 < line.size() && line[equals + 1] == '"';
    const size_t begin = equals + 1 + quote;
    const size_t end = std::min(line.find(quote ? '"' : ' ', begin), line.size());
    pairs.emplace_back(line.substr(at, equals - at), line.substr(begin, end - begin));
    at = end + quote;
  }
  return pairs;
}

// Reads a setting. Returns false if `key` is not a setting.
bool read_setting(FilterSettings &s, const std::string &key, const std::string &value) {
  if (key == "mask")
    s.mask = to_enum<Mask>(value, mask_words());
  else if (key == "size")
    s.size = to_integer(value);
  else if (key == "size-y")
    s.size_y = to_integer(value);
  else if (key == "sigma")
    s.sigma = to_number(value);
  else if (key == "sigma-y")
    s.sigma_y = to_number(value);
  else if (key == "sigma-range")
    s.sigma_range = to_number(value);
  else if (key == "amount")
    s.amount = to_number(value);
  else if (key == "coefficients")
    s.coefficients = to_coefficients(value);
  else if (key == "shape")
    s.shape = to_enum<Shape>(value, shape_words());
  else if (key == "divisor")
    s.divisor = to_number(value);
  else if (key == "bias")
    s.bias = to_number(value);
  else if (key == "negative")
    s.negative = to_enum<Negative>(value, negative_words());
  else if (key == "magnitude")
    s.magnitude = to_enum<Magnitude>(value, magnitude_words());
  else if (key == "threshold")
    s.threshold = to_number(value);
  else if (key == "iterations")
    s.iterations = to_integer(value);
  else if (key == "border")
    s.border = to_enum<Border>(value, border_words());
  else if (key == "chroma")
    s.chroma = to_enum<Chroma>(value, chroma_words());
  else if (key == "alpha")
    s.alpha = to_enum<Alpha>(value, alpha_words());
  else if (key == "method")
    s.method = to_enum<Method>(value, method_words());
  else
    return false;
  return true;
}

// Reads a property of the regions. Returns false if `key` is not one.
bool read_regions(Regions &regions, const std::string &key, const std::string &value) {
  if (key == "roi") {
    regions.active = true;
    for (const std::string &r : split(value, ";")) regions.region.push_back(to_region(r, 4));
  } else if (key == "roi-turned") {
    for (const std::string &r : split(value, ";")) regions.region.push_back(to_region(r, 5));
  } else if (key == "roi-mask") {
    for (const std::string &r : split(value, ";")) {
      const std::vector<double> v = numbers(r, ", ", 6);
      RegionMask mask;
      mask.box = {static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2]), static_cast<int>(v[3])};
      mask.width = static_cast<int>(v[4]);
      mask.height = static_cast<int>(v[5]);
      regions.mask.push_back(mask);
    }
  } else if (key == "roi-shape") {
    regions.ellipse = value == "ellipse";
  } else if (key == "roi-feather") {
    regions.feather = static_cast<int>(std::lround(256 * to_number(value)));
  } else if (key == "roi-invert") {
    regions.invert = to_bool(value);
  } else if (key == "field") {
    regions.row_step = 2;
    regions.first_row = to_integer(value);
  } else {
    return false;
  }
  return true;
}

// Reads a property of the frame. Returns false if `key` is not one.
bool read_frame(Vector &v, const std::string &key, const std::string &value) {
  if (key == "format")
    v.format = value;
  else if (key == "frame" && std::sscanf(value.c_str(), "%dx%d", &v.width, &v.height) == 2)
    return v.width > 0 && v.height > 0;
  else if (key == "interlaced")
    v.interlaced = to_bool(value);
  else if (key == "in-place")
    v.in_place = to_bool(value);
  else if (key == "memory")
    v.on_device = value == "device";
  else if (key == "seed")
    v.seed = g_ascii_strtoull(value.c_str(), nullptr, 10);
  else if (key == "sha256")
    v.sha256 = value;
  else
    return false;
  return true;
}

std::string settings_text(const FilterSettings &s) {
  const FilterSettings d;
  std::string text = "mask=" + word_of(s.mask, mask_words());
  if (s.size != d.size) text += " size=" + std::to_string(s.size);
  if (s.size_y != d.size_y) text += " size-y=" + std::to_string(s.size_y);
  if (s.sigma != d.sigma) text += " sigma=" + number(s.sigma);
  if (s.sigma_y != d.sigma_y) text += " sigma-y=" + number(s.sigma_y);
  if (s.sigma_range != d.sigma_range) text += " sigma-range=" + number(s.sigma_range);
  if (s.amount != d.amount) text += " amount=" + number(s.amount);
  if (!s.coefficients.value.empty()) text += " coefficients=" + quoted(s.coefficients);
  if (s.shape != d.shape) text += " shape=" + word_of(s.shape, shape_words());
  if (s.divisor != d.divisor) text += " divisor=" + number(s.divisor);
  if (s.bias != d.bias) text += " bias=" + number(s.bias);
  if (s.negative != d.negative) text += " negative=" + word_of(s.negative, negative_words());
  if (s.magnitude != d.magnitude) text += " magnitude=" + word_of(s.magnitude, magnitude_words());
  if (s.threshold != d.threshold) text += " threshold=" + number(s.threshold);
  if (s.iterations != d.iterations) text += " iterations=" + std::to_string(s.iterations);
  text += " border=" + word_of(s.border, border_words());
  if (s.chroma != d.chroma) text += " chroma=" + word_of(s.chroma, chroma_words());
  if (s.alpha != d.alpha) text += " alpha=" + word_of(s.alpha, alpha_words());
  if (s.method != d.method) text += " method=" + word_of(s.method, method_words());
  return text;
}

std::string regions_text(const Regions &regions) {
  if (!regions.active) return {};
  std::string upright, turned, masks;
  for (const Region &r : regions.region) {
    std::string &list = r.rotation != 0 ? turned : upright;
    list += (list.empty() ? "" : "; ") + to_text(r);
    if (r.rotation != 0) list += "," + number(r.rotation);
  }
  for (const RegionMask &m : regions.mask)
    masks +=
        (masks.empty() ? "" : "; ") + to_text(m.box) + "," + std::to_string(m.width) + "," + std::to_string(m.height);
  std::string text = " roi=\"" + upright + "\"";
  if (!turned.empty()) text += " roi-turned=\"" + turned + "\"";
  if (!masks.empty()) text += " roi-mask=\"" + masks + "\"";
  if (regions.ellipse) text += " roi-shape=ellipse";
  if (regions.feather) text += " roi-feather=" + number(regions.feather / 256.0);
  if (regions.invert) text += " roi-invert=true";
  if (regions.row_step > 1) text += " field=" + std::to_string(regions.first_row);
  return text;
}

}  // namespace

FrameLayout Vector::layout() const {
  FrameLayout result = layout_of(format, width, height);
  result.interlaced = interlaced;
  return result;
}

std::string describe(const Vector &v) {
  std::string text = settings_text(v.settings) + " format=" + v.format + " frame=" + std::to_string(v.width) + "x" +
                     std::to_string(v.height);
  if (v.interlaced) text += " interlaced=true";
  text += regions_text(v.regions);
  if (v.in_place) text += " in-place=true";
  if (v.on_device) text += " memory=device";
  return text + " seed=" + std::to_string(v.seed);
}

std::string to_line(const Vector &v) {
  if (!v.sha256.empty()) return describe(v) + " sha256=" + v.sha256;
  std::string list;
  for (const Sample &s : v.samples) list += (list.empty() ? "" : " ") + to_text(s);
  return describe(v) + " samples=\"" + list + "\"";
}

Vector parse_vector(const std::string &line) {
  Vector v;
  for (const auto &[key, value] : pairs_of(line)) {
    if (key == "samples") {
      for (const std::string &s : split(value, " ")) v.samples.push_back(to_sample(s));
    } else if (!read_setting(v.settings, key, value) && !read_regions(v.regions, key, value) &&
               !read_frame(v, key, value)) {
      throw std::runtime_error("cannot read " + key + "=" + value);
    }
  }
  return v;
}

std::vector<Vector> parse_vectors(const std::string &text) {
  std::vector<Vector> vectors;
  std::istringstream in(text);
  int number_of_line = 0;
  for (std::string line; std::getline(in, line);) {
    number_of_line++;
    if (line.empty() || line[0] == '#') continue;
    try {
      vectors.push_back(parse_vector(line));
      vectors.back().layout();
    } catch (const std::exception &error) {
      throw std::runtime_error("line " + std::to_string(number_of_line) + " of the vectors: " + error.what());
    }
    vectors.back().line = number_of_line;
  }
  return vectors;
}

const Words &mask_words() {
  static const Words words = words_of(kMaskNames);
  return words;
}

const Words &border_words() {
  static const Words words = words_of(kBorderNames);
  return words;
}

const Words &method_words() {
  static const Words words = words_of(kMethodNames);
  return words;
}

const Words &shape_words() {
  static const Words words = words_of(kShapeNames);
  return words;
}

const Words &negative_words() {
  static const Words words = words_of(kNegativeNames);
  return words;
}

const Words &magnitude_words() {
  static const Words words = words_of(kMagnitudeNames);
  return words;
}

const Words &chroma_words() {
  static const Words words = words_of(kChromaNames);
  return words;
}

const Words &alpha_words() {
  static const Words words = words_of(kAlphaNames);
  return words;
}

}  // namespace cudaconv::verify
