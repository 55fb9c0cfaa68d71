// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions.h"

#include <glib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tune {

namespace {

// The numbers of a region, in pixels. Empty where the text is no list of numbers.
std::vector<double> numbers_of(const std::string &text, int width, int height) {
  std::vector<double> numbers;
  const char *at = text.c_str();
  for (;;) {
    at += std::strspn(at, ", \t\r");
    if (!*at) return numbers;
    gchar *end;
    double number = g_ascii_strtod(at, &end);
    if (end == at) return {};
    if (*end == '%') {
      number *= (numbers.size() % 2 ? height : width) / 100.0;
      end++;
    }
    numbers.push_back(number);
    at = end;
  }
}

Region rectangle(double x, double y, double w, double h) {
  return {{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}};
}

std::string number(double value) {
  return std::to_string(std::lround(value));
}

}  // namespace

std::vector<Region> regions_of(const std::string &text, int width, int height) {
  std::vector<Region> regions;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find_first_of(";\n", start), text.size());
    const std::vector<double> n = numbers_of(text.substr(start, end - start), width, height);
    if (n.size() == 4) {
      regions.push_back(rectangle(n[0], n[1], n[2], n[3]));
    } else if (n.size() >= 6 && n.size() % 2 == 0) {
      Region polygon;
      for (size_t i = 0; i < n.size(); i += 2) polygon.push_back({n[i], n[i + 1]});
      regions.push_back(polygon);
    }
    start = end + 1;
  }
  return regions;
}

std::string with_region(const std::string &text, const Region &points, int width, int height) {
  Region corners;
  for (const Point &p : points) {
    const Point corner{std::round(std::clamp<double>(p.x, 0, width)), std::round(std::clamp<double>(p.y, 0, height))};
    if (corners.empty() || corner.x != corners.back().x || corner.y != corners.back().y) corners.push_back(corner);
  }
  std::string region;
  if (points.size() == 2) {
    if (corners.size() < 2 || corners[0].x == corners[1].x || corners[0].y == corners[1].y) return text;
    region = number(std::min(corners[0].x, corners[1].x)) + "," + number(std::min(corners[0].y, corners[1].y)) + "," +
             number(std::abs(corners[0].x - corners[1].x)) + "," + number(std::abs(corners[0].y - corners[1].y));
  } else {
    const auto is_on_line = [&](const Point &p) {
      const Point &a = corners[0], &b = corners[1];
      return (p.x - a.x) * (b.y - a.y) == (p.y - a.y) * (b.x - a.x);
    };
    if (corners.size() < 3 || std::all_of(corners.begin(), corners.end(), is_on_line)) return text;
    for (const Point &p : corners) region += (region.empty() ? "" : " ") + number(p.x) + "," + number(p.y);
  }
  const size_t length = text.find_last_not_of("; \t\n") + 1;
  return length ? text.substr(0, length) + "; " + region : region;
}

}  // namespace tune
