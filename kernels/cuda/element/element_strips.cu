// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for small structuring elements whose rows are centred runs.
#include "cuda/element/element_strips.cuh"

#include <algorithm>
#include <vector>

#include "cuda/device/u8x4_tile.h"
#include "plan/chords.h"

namespace cudaconv {

using namespace element;

namespace {

// The widenings that make windows one pixel wide reach `pixels` to either side. Each can take as much on either side as
// the window has by then.
uint32_t widenings_by(int pixels, int step) {
  uint32_t list = 0;
  for (int i = 0, width = 0; width < pixels; i++) {
    const int more = std::min({pixels - width, 2 * width + 1, kChunk / step});
    list |= static_cast<uint32_t>(more * step) << kWideningBits * i;
    width += more;
  }
  return list;
}

template <typename Shape>
KernelLaunch<ElementStripsParams> launch_of(int step, ElementStripsParams &p) {
  p.tile = make_u8x4_tile(Shape::kColumns - 2 * p.halo, Shape::kRows * Shape::kWarps, 0, 0, step);
  return {element_strips_kernel<Shape>, cut_u8x4_tiles(p, p.tile), 32 * Shape::kWarps, 0};
}

KernelLaunch<ElementStripsParams> choose(const PassQuery &query, ElementStripsParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_extremum(query, p);
  const bool words = p.sample_bits;
  const bool fours = std::all_of(p.part, p.part + p.parts, [](const PartParams &part) { return part.channels == 4; });
  if (!step || (!words && !fours) || pass.copy_source != pass.source ||
      std::max(pass.radius_x, pass.radius_y) > (words ? kStripRadius : kByteStripRadius))
    return {};
  const std::vector<int> widths = half_widths_of(pass);
  if (widths.empty() || widths[0] * step > kStripHalo) return {};
  p.radius_y = static_cast<int>(widths.size()) - 1;
  ignore_outside(p);
  p.halo = round_to_chunks(widths[0] * step);
  for (int y = 0; y <= p.radius_y; y++)
    p.widenings[y] = widenings_by(widths[y] - (y < p.radius_y ? widths[y + 1] : 0), step);
  if (!words) return launch_of<ElementStripShape<U8x4Order, 1>>(step, p);
  if (p.halo <= kStripHalo / 2) return launch_of<ElementStripShape<U16x2Order, 1>>(step, p);
  return launch_of<ElementStripShape<U16x2Order, 2>>(step, p);
}

}  // namespace

Prepared prepare_element_strips(const PassQuery &query) {
  return prepare_chosen<ElementStripsParams>(query, choose);
}

}  // namespace cudaconv
