// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for structuring elements of any form.
#include "cuda/element/element_chords.cuh"

#include <algorithm>
#include <vector>

#include "cuda/device/u8x4_tile.h"
#include "plan/chords.h"

namespace cudaconv {

using namespace element;

namespace {

template <typename Shape>
KernelLaunch<ChordsParams> launch_of(const Pass &pass, ChordsParams &p) {
  p.tile = make_u8x4_tile(Shape::kWidth, Shape::kHeight, pass.radius_x, pass.radius_y, Shape::kStep);
  // Offset of the first window: the halo is rounded up, so windows begin later than it does.
  const int first = p.tile.halo_x - pass.radius_x * Shape::kStep;
  int count = 0;
  const auto add = [&](const Chord &chord) {
    p.chord[count++] = static_cast<uint16_t>(chord.y * Shape::kPitch + first + chord.x * Shape::kStep);
  };
  const std::vector<uint8_t> all(pass.element.empty() ? static_cast<size_t>(pass.width()) * pass.height() : 0, 1);
  const std::vector<Chord> chords =
      chords_of(pass.element.empty() ? all : pass.element, pass.width(), pass.height(), true);
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
  if (bytes > current_limits().block_bytes) return {};
  return {chords_kernel<Shape>, cut_u8x4_tiles(p, p.tile), 32 * Shape::kWarps, bytes};
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<ChordsParams> choose(const PassQuery &query, ChordsParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_extremum(query, p);
  if (!step || pass.copy_source != pass.source || std::max(pass.radius_x, pass.radius_y) > kChordsRadius) return {};
  if (!p.sample_bits) return launch_of<ChordsShape<U8x4Order, 1>>(pass, p);
  if (step == 2) return launch_of<ChordsShape<U16x2Order, 2>>(pass, p);
  return launch_of<ChordsShape<U16x2Order, 1>>(pass, p);
}

}  // namespace

Prepared prepare_element_chords(const PassQuery &query) {
  return prepare_chosen<ChordsParams>(query, choose);
}

}  // namespace cudaconv
