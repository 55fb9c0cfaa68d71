// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for structuring elements: of any form up to 31x31 (element_chords.cuh), and of centred
// runs (element_runs.cuh). They list the samples of every window in the order of the kernels.
//
// A chord is listed as the number of words from the tile's word above and to the left of the window, halo included.
// Example, 3x3, rows of 96 words: the halo of one pixel is rounded up to 4, so windows begin 3 words later. The chord
// that begins in column 1 of row 2 is at word 2 * 96 + 3 + 1 = 196. fill_runs() has an example of runs.
#include <algorithm>
#include <vector>

#include "cuda/device/u8x4_tile.h"
#include "cuda/element/element_chords.cuh"
#include "cuda/element/element_runs.cuh"
#include "plan/chords.h"

namespace cudaconv {

using namespace element;

namespace {

template <typename Shape>
KernelLaunch<ChordsParams> launch_of(const Pass &pass, int step, ChordsParams &p) {
  p.tile = make_u8x4_tile(Shape::kWidth, Shape::kHeight, pass.radius_x, pass.radius_y, step);
  // Offset of the first window: the halo is rounded up, so windows begin later than it does.
  const int first = p.tile.halo_x - pass.radius_x * step;
  int count = 0;
  const auto add = [&](const Chord &chord) {
    p.chord[count++] = static_cast<uint16_t>(chord.y * Shape::kPitch + first + chord.x * step);
  };
  std::vector<uint8_t> members = pass.element;
  members.resize(static_cast<size_t>(pass.width()) * pass.height(), 1);  // an empty list means all pixels
  const std::vector<Chord> chords = chords_of(members, pass.width(), pass.height(), true);
  for (auto chord = chords.begin(); chord != chords.end(); p.levels++) {
    const int level = p.levels;
    for (; chord != chords.end() && chord->level == level && chord->rows == 2; ++chord) add(*chord);
    p.two_rows_end[level] = static_cast<uint16_t>(count);
    for (; chord != chords.end() && chord->level == level; ++chord) add(*chord);
    // If the number of chords of one row is odd, the last one is listed twice.
    if ((count - p.two_rows_end[level]) % 2) add(*(chord - 1));
    p.end[level] = static_cast<uint16_t>(count);
  }
  const size_t bytes = sizeof(uint32_t) * Shape::kPitch * (Shape::kHeight + 2 * pass.radius_y);
  return {chords_kernel<Shape>, cut_u8x4_tiles(p, p.tile), 32 * Shape::kWarps, bytes};
}

KernelLaunch<ChordsParams> choose_chords(const PassQuery &query, ChordsParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_extremum(query, p);
  if (!step || pass.copy_source != pass.source || std::max(pass.radius_x, pass.radius_y) > kChordsRadius) return {};
  if (p.sample_bits) return launch_of<ChordsShape<U16x2Order>>(pass, step, p);
  return launch_of<ChordsShape<U8x4Order>>(pass, step, p);
}

// Fills in an element with these half widths of rows, see half_widths_of(). Example, 5 and 1, one u8x4 a pixel: by 1
// and by 3 at distance 0, by 1 at distance 1.
void fill_runs(const std::vector<int> &widths, int step, ElementRunsParams &p) {
  int count = 0;
  p.halo = round_to_chunks(widths[0] * step);
  p.radius_y = static_cast<int>(widths.size()) - 1;
  for (int dy = 0; dy <= p.radius_y; dy++) {
    // Each step makes the window at most three times as wide, by 2 * width + 1 columns on either side.
    const int wanted = widths[dy] - (dy < p.radius_y ? widths[dy + 1] : 0);
    for (int width = 0; width < wanted;) {
      const int more = std::min(wanted - width, 2 * width + 1);
      p.row[count] = static_cast<uint8_t>(dy);
      p.apart[count++] = static_cast<uint8_t>(more * step);
      width += more;
    }
  }
  p.row[count] = 255;
}

KernelLaunch<ElementRunsParams> choose_runs(const PassQuery &query, ElementRunsParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_extremum(query, p);
  if (!step || pass.copy_source != pass.source || std::max(pass.radius_x, pass.radius_y) > kElementRunsRadius)
    return {};
  const std::vector<int> widths = half_widths_of(pass);
  if (widths.empty()) return {};
  ignore_outside(p);
  fill_runs(widths, step, p);
  p.tile = make_u8x4_tile(kRunsColumns - 2 * p.halo, kRunsRows, 0, 0, step);
  return {p.sample_bits ? element_runs_kernel<U16x2Order> : element_runs_kernel<U8x4Order>, cut_u8x4_tiles(p, p.tile),
          kRunsThreads, kRunsBytes};
}

}  // namespace

Prepared prepare_element_chords(const PassQuery &query) {
  return prepare_chosen<ChordsParams>(query, choose_chords);
}

Prepared prepare_element_runs(const PassQuery &query) {
  return prepare_chosen<ElementRunsParams>(query, choose_runs);
}

}  // namespace cudaconv
