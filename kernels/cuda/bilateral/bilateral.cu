// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for Op::Bilateral. It chooses the windows of a u8x4, see bilateral.cuh:
//
//    ByteWindows                   8-bit samples: four windows, one for each
//    PixelWindow<filters alpha>    RGB of three or four bytes: one window, and one of alpha
//    TwoWindows<TenBitTable>       samples of 9 or 10 bits: two windows
//    TwoWindows<DeepTable>         deeper ones
//
// Example, radius 2: the pixels at (1, 0), turned, weigh space[1][0], those at (2, 1) space[2][1], and those at (2, 2)
// corner[2].
#include "cuda/bilateral/bilateral.cuh"

#include <algorithm>

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

namespace bilateral {

namespace {

// Fills in the weights of distances.
void fill_space(const Pass &pass, TileParams &p) {
  const int radius = pass.radius_x;
  const auto at = [&](int x, int y) {
    return static_cast<uint32_t>(pass.mask[0].value[(radius + y) * pass.width() + radius + x]);
  };
  for (int x = 1; x <= radius; x++) {
    for (int y = 0; y < x; y++) p.space[x][y] = at(x, y);
    p.corner[x] = at(x, x);
  }
  for (int b = 0; b < 4; b++) p.pick[b] = 128u << 8 * b;
}

// Fills in the weights of the first differences of bytes.
void fill_entries(const RangeTable &table, int entries, uint32_t *entry) {
  for (int i = 0; i < entries; i++) entry[i] = range_weight(table.entry.data(), table.shift, table.last(), i);
}

template <typename Windows>
KernelLaunch<TileParams> launch_of(const Pass &pass, int step, TileParams &p) {
  p.tile = make_u8x4_tile(kWidth, kHeight<Windows>, pass.radius_x, pass.radius_y, step);
  const size_t bytes = static_cast<size_t>(Windows::Table::bytes(p)) +
                       sizeof(uint32_t) * (kHeight<Windows> + 2 * pass.radius_y) * kPitch<Windows>;
  fill_space(pass, p);
  return {tile_kernel<Windows>, cut_u8x4_tiles(p, p.tile), kThreads, bytes};
}

// Pixels of RGB of three or four bytes.
KernelLaunch<TileParams> choose_rgb(const PassQuery &query, TileParams &p) {
  const BilateralTables &tables = *query.pass().bilateral;
  p.first_colour = tables.colour[0].channel;
  bool filters_alpha = false;
  for (int c = 0; c < query.plan.layout.plane[0].channels; c++) {
    const bool is_colour = c >= p.first_colour && c < p.first_colour + kColours;
    if (tables.is_colour(0, c) != is_colour) return {};
    if (is_colour || query.plan.action[0][c] != Action::Filter) continue;
    filters_alpha = true;
    fill_entries(tables.of(0, c), 256, p.alpha_entry);
  }
  fill_entries(tables.of_colours(), p.last + 1, p.entry);
  return filters_alpha ? launch_of<PixelWindow<true>>(query.pass(), 1, p)
                       : launch_of<PixelWindow<false>>(query.pass(), 1, p);
}

KernelLaunch<TileParams> choose(const PassQuery &query, TileParams &p) {
  const Pass &pass = query.pass();
  const int step = fill_u8x4s(query, p);
  if (pass.op != Op::Bilateral || pass.weighs_alpha || !step || pass.copy_source != pass.source ||
      pass.radius_x != pass.radius_y)
    return {};
  const BilateralTables &tables = *pass.bilateral;
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  const RangeTable &table = tables.is_rgb ? tables.of_colours() : tables.of(0, 0);
  p.shift = table.shift;
  p.last = table.last();
  if (tables.is_rgb) return p.sample_bits || tables.is_planar() ? KernelLaunch<TileParams>{} : choose_rgb(query, p);
  if (!p.sample_bits) {
    fill_entries(table, 256, p.entry);
    return launch_of<ByteWindows>(pass, step, p);
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
