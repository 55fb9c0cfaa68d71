// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Fuzzes the parsers of coefficients and of regions with any text. A parsed value, written out, parses to the same
// value. The error of a refused text names the property.
#include <climits>
#include <charconv>
#include <cmath>
#include <string>

#include "bytes.h"
#include "error.h"
#include "plan/maskparser.h"

using namespace cudaconv;

namespace {

// The shortest text that reads as this number.
std::string text_of(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

// Messages go to logs and buses, which take one line of UTF-8.
void check_message(const Error &error, const std::string &property) {
  const std::string text = error.what();
  if (error.kind() != Error::Kind::Settings) fuzz::fault("an error of another kind: " + text);
  if (text.rfind(property + ": ", 0) != 0) fuzz::fault("the message does not begin with " + property + ": " + text);
  if (text.size() > 400) fuzz::fault("a message of " + std::to_string(text.size()) + " bytes");
  for (char c : text)
    if (static_cast<unsigned char>(c) < ' ') fuzz::fault("a control character in " + text);
}

void check_coefficients(const std::string &text) {
  Coefficients c;
  try {
    c = parse_coefficients(text);
  } catch (const Error &error) {
    return check_message(error, "coefficients");
  }
  if (c.width % 2 != 1 || c.height % 2 != 1 || c.width > 31 || c.height > 31 ||
      c.value.size() != static_cast<size_t>(c.width) * c.height)
    fuzz::fault("coefficients of " + std::to_string(c.width) + "x" + std::to_string(c.height));
  std::string plain, list;
  for (int y = 0; y < c.height; y++) {
    list += y ? ", [" : "[";
    for (int x = 0; x < c.width; x++) {
      const double value = c.value[static_cast<size_t>(y) * c.width + x];
      if (!std::isfinite(value)) fuzz::fault("a coefficient that is not finite");
      plain += text_of(value) + " ";
      list += (x ? ", " : "") + text_of(value);
    }
    plain += ";";
    list += "]";
  }
  for (const std::string &again : {plain, "[" + list + "]"}) {
    const Coefficients d = parse_coefficients(again);
    if (d.width != c.width || d.height != c.height || d.value != c.value) fuzz::fault("different from " + again);
  }
}

void check_regions(const std::string &text) {
  std::vector<WrittenRegion> regions;
  try {
    regions = parse_regions(text);
  } catch (const Error &error) {
    return check_message(error, "roi");
  }
  if (regions.empty()) fuzz::fault("no regions");
  std::string again;
  for (const WrittenRegion &r : regions) {
    const size_t n = r.number.size();
    if (n != 4 && (n < 6 || n % 2)) fuzz::fault("a region of " + std::to_string(n) + " numbers");
    if (n == 4 && !(r.number[2].value > 0 && r.number[3].value > 0)) fuzz::fault("an empty region");
    for (const WrittenRegion::Number &v : r.number) {
      if (!(std::abs(v.value) <= INT_MAX)) fuzz::fault("a number that is too large");
      again += text_of(v.value) + (v.percent ? "%," : ",");
    }
    again.back() = ';';
  }
  if (!(parse_regions(again) == regions)) fuzz::fault("different from " + again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  check_coefficients(text);
  check_regions(text);
  return 0;
}
