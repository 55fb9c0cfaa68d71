// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for Op::Bilateral.
#include "cuda/bilateral/bilateral.cuh"

#include <algorithm>

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

namespace bilateral {

namespace {

// Fills in the rings. The tile has been filled in.
void fill_rings(const Pass &pass, TileParams &p) {
  const int radius = pass.radius_x, pitch = p.tile.whole_row();
  for (const bool eight : {true, false}) {
    for (int i = 0, x = 1; x <= radius; x++)
      for (int y = 0; y <= x; y++, i++) {
        const auto space = static_cast<uint32_t>(pass.mask[0].value[(radius + y) * pass.width() + radius + x]);
        if (radius <= kMostFixedRadius) p.fixed_space[i] = space;
        if (space && eight == (y % x != 0)) p.ring[p.rings++] = ring_of(x, y, pitch, p.tile.step, space);
      }
    if (eight) p.rings_of_eight = p.rings;
  }
  if (pitch == kFixedPitch && radius <= kMostFixedRadius) p.fixed_radius = radius;
  for (int b = 0; b < 4; b++) p.pick[b] = 128u << 8 * b;
}

template <typename Windows>
KernelLaunch<TileParams> launch_of(const Pass &pass, int step, TileParams &p) {
  p.tile = make_u8x4_tile(kWidth, kHeight, pass.radius_x, pass.radius_y, step);
  const size_t bytes = Windows::Table::kBytes + sizeof(uint32_t) * (kHeight + 2 * pass.radius_y) * p.tile.whole_row();
  if (bytes > current_limits().block_bytes) return {};
  fill_rings(pass, p);
  return {tile_kernel<Windows>, cut_u8x4_tiles(p, p.tile), kThreads, bytes};
}

KernelLaunch<TileParams> choose(const PassQuery &query, TileParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_u8x4s(query, p);
  if (pass.op != Op::Bilateral || pass.weighs_alpha || !step || pass.copy_source != pass.source) return {};
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  const RangeTable &table = pass.bilateral->of_depth(sample.depth);
  p.shift = table.shift;
  p.last = static_cast<int>(table.entry.size()) - 1;
  if (!p.sample_bits) {
    for (int i = 0; i < 256; i++) p.entry[i] = range_weight(table.entry.data(), table.shift, p.last, i);
    const bool three = std::all_of(p.part, p.part + p.parts, [](const PartParams &part) {
      return part.channels == 3 || (part.channels == 4 && !(part.filter_bits[0] >> 24));
    });
    return three ? launch_of<ByteWindows<3>>(pass, step, p) : launch_of<ByteWindows<4>>(pass, step, p);
  }
  std::copy(table.entry.begin(), table.entry.end(), p.entry);
  p.sample_shift = sample.shift;
  p.max = (1 << sample.depth) - 1;
  return sample.depth <= 10 ? launch_of<TwoWindows<TenBitTable>>(pass, step, p)
                            : launch_of<TwoWindows<DeepTable>>(pass, step, p);
}

}  // namespace

}  // namespace bilateral

Prepared prepare_bilateral(const PassQuery &query) {
  return prepare_chosen<bilateral::TileParams>(query, bilateral::choose);
}

}  // namespace cudaconv
