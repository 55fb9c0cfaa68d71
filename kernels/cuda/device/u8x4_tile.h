// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Host functions for launchers of kernels that work on tiles of u8x4s, see u8x4_tile.cuh.
#pragma once

#include "cuda/device/u8x4_tile.cuh"

#include <algorithm>
#include <cstdint>

#include "cuda/frame_launch.cuh"

namespace cudaconv {

// Fills in the parameters but for the tile. Presents 16-bit samples as bytes, which kernels on u8x4s know, and pixels
// of eight bytes as two half pixels. Returns how many u8x4s a pixel has, 0 if planes are not dense.
inline int fill_u8x4s(const PassQuery &query, U8x4Params &p) {
  if (query.is_dense(Container::U8)) return 1;
  if (!query.is_dense(Container::U16)) return 0;
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  p.sample_bits = (((1u << sample.depth) - 1) << sample.shift) * 0x10001u;
  int halves = 1;
  for (int i = 0; i < p.parts; i++) {
    PartParams &part = p.part[i];
    part.channels *= 2;
    if (part.channels <= 4) continue;
    halves = 2;
    part.channels = 4;
    part.width *= 2;
    part.step /= 2;
  }
  return halves;
}

// The same for a dilation or an erosion, 0 for other passes.
inline int fill_extremum(const PassQuery &query, U8x4ExtremumParams &p) {
  const Op op = query.pass().op;
  if (op != Op::Minimum && op != Op::Maximum) return 0;
  p.flip = op == Op::Minimum ? 0xffffffffu : 0;
  return fill_u8x4s(query, p);
}

// Makes a minimum or maximum ignore samples outside the frame, for windows whose rows and columns are runs about their
// middle. With these border modes every outside sample equals an inside sample of the same window, so it need not be
// looked up.
inline void ignore_outside(U8x4ExtremumParams &p) {
  if (p.border != Border::Replicate && p.border != Border::Reflect && p.border != Border::Reflect101) return;
  p.border = Border::Constant;
  for (int i = 0; i < p.parts; i++) std::fill_n(p.part[i].border_word, 3, p.flip);
}

inline unsigned cut_u8x4_tiles(FrameParams &p, const U8x4Tile &tile) {
  return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
    return TileSize{tile.width * subtiles(part.channels), part.width, tile.height};
  });
}

}  // namespace cudaconv
