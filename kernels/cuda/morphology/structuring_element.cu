// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for structuring elements.
#include "cuda/morphology/structuring_element.cuh"

#include <algorithm>
#include <cstdlib>

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

namespace {

// Fills in the element's stages, and returns how far from the middle its farthest rows are; -1 where it has another
// form.
int make_stages(const Pass &pass, StructuringElementParams &p) {
  const int radius_x = pass.radius_x, radius_y = pass.radius_y;
  // By distance from the middle; -1 of rows that have none.
  int half_width[kStructuringElementRadius + 1];
  for (int dy = 0; dy <= radius_y; dy++) {
    half_width[dy] = radius_x;
    while (half_width[dy] >= 0 && !pass.has_member(half_width[dy], dy)) half_width[dy]--;
    if (dy && half_width[dy] > half_width[dy - 1]) return -1;
  }
  for (int dy = -radius_y; dy <= radius_y; dy++)
    for (int dx = -radius_x; dx <= radius_x; dx++)
      if (pass.has_member(dx, dy) != (std::abs(dx) <= half_width[std::abs(dy)])) return -1;
  int farthest = -1;
  for (int dy = radius_y; dy >= 0; dy--) {
    if (half_width[dy] < 0) continue;
    if (!p.stages || half_width[dy] != p.half_width[p.stages - 1])
      p.half_width[p.stages++] = static_cast<uint8_t>(half_width[dy]);
    p.nearest[p.stages - 1] = static_cast<uint8_t>(dy);
    farthest = std::max(farthest, dy);
  }
  return farthest;
}

template <typename Order, int kStep>
KernelLaunch<StructuringElementParams> launch_of(int farthest, StructuringElementParams &p) {
  using Shape = StructuringElementShape<Order, kStep>;
  p.tile = make_u8x4_tile(Shape::kWidth, Shape::kHeight, p.half_width[p.stages - 1], farthest, kStep);
  const size_t bytes = sizeof(uint32_t) * structuring_element_pitch(p.tile) * (Shape::kHeight + 2 * farthest);
  if (bytes > current_limits().block_bytes) return {};
  return {structuring_element_kernel<Shape>, cut_u8x4_tiles(p, p.tile), 32 * Shape::kWarps, bytes};
}

// Without a kernel where the pass is not for these. The frame has been filled in.
KernelLaunch<StructuringElementParams> choose(const PassQuery &query, StructuringElementParams &p) {
  const Pass &pass = query.pass();
  const bool words = is_uniform_dense(query, Container::U16);
  if ((!words && !is_uniform_dense(query)) || (pass.op != Op::Minimum && pass.op != Op::Maximum) ||
      pass.copy_source != pass.source || std::max(pass.radius_x, pass.radius_y) > kStructuringElementRadius)
    return {};
  const int farthest = make_stages(pass, p);
  if (farthest < 0) return {};
  p.flip = pass.op == Op::Minimum ? 0xffffffffu : 0;
  ignore_outside(p, pass.op == Op::Minimum);
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  p.sample_bits = (((1u << sample.depth) - 1) << sample.shift) * 0x10001u;
  if (!words) return launch_of<U8x4Order, 1>(farthest, p);
  return halve_pixels(p) == 2 ? launch_of<U16x2Order, 2>(farthest, p) : launch_of<U16x2Order, 1>(farthest, p);
}

}  // namespace

int takes_structuring_element(const PassQuery &query) {
  return takes<StructuringElementParams>(query, choose);
}

void launch_structuring_element(const PassRun &run) {
  launch_chosen<StructuringElementParams>(run, choose);
}

}  // namespace cudaconv
