// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/chords.h"

#include <algorithm>
#include <cstddef>

namespace cudaconv {

std::vector<Chord> chords_of(const std::vector<uint8_t> &member, int width, int height, bool in_pairs) {
  std::vector<Chord> chords;
  // By level and column, for the row above and for this row: 1 + the index of the unpaired chord that begins there; 0:
  // none.
  std::vector<std::vector<size_t>> above, row;
  const auto add = [&](int x, int y, int level) {
    if (in_pairs) {
      const size_t needed = static_cast<size_t>(level) + 1;
      for (auto *lines : {&above, &row})
        while (lines->size() < needed) lines->emplace_back(width);
      if (const size_t n = above[level][x]) {
        chords[n - 1].rows = 2;
        return;
      }
      row[level][x] = chords.size() + 1;
    }
    chords.push_back({x, y, level, 1});
  };
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const uint8_t *const pixel = &member[static_cast<size_t>(y) * width];
      if (!pixel[x]) continue;
      const int begin = x;
      while (x + 1 < width && pixel[x + 1]) x++;
      const int length = x + 1 - begin;
      int level = 0;
      while (2 << level <= length) level++;
      add(begin, y, level);
      if (1 << level < length) add(begin + length - (1 << level), y, level);
    }
    above.swap(row);
    for (std::vector<size_t> &line : row) std::fill(line.begin(), line.end(), 0);
  }
  std::stable_sort(chords.begin(), chords.end(), [](const Chord &a, const Chord &b) {
    return a.level != b.level ? a.level < b.level : a.rows > b.rows;
  });
  return chords;
}

std::vector<int> half_widths_of(const Pass &pass) {
  std::vector<int> widths;
  if (pass.element.empty()) return std::vector<int>(pass.radius_y + 1, pass.radius_x);
  const auto row_length = static_cast<size_t>(pass.width());
  const auto *const middle = &pass.element[pass.radius_y * row_length];
  for (int dy = 0; dy <= pass.radius_y; dy++) {
    const uint8_t *const row = middle + dy * row_length, *const end = row + row_length;
    if (!std::equal(row, end, middle - dy * row_length)) return {};
    const uint8_t *const first = std::find(row, end, 1), *const behind = std::find(first, end, 0);
    if (std::find(behind, end, 1) != end || first - row != end - behind) {
      if (first != end || dy == 0) return {};
      continue;  // the row has no members
    }
    const int width = static_cast<int>(behind - first) / 2;
    if (static_cast<int>(widths.size()) < dy || (dy && width > widths.back())) return {};
    widths.push_back(width);
  }
  return widths;
}

}  // namespace cudaconv
