// SPDX-License-Identifier: LGPL-2.1-or-later
//
// pixels_kernel: Op::Bilateral of RGB in any layout, where the colours of a pixel have one weight. A block loads a tile
// with its halo into shared memory, as pixels of four slots of 16 bits, and the tables of weights:
//
//    slots of a pixel     colour 0 | colour 1 | colour 2 | alpha, if it is filtered
//
// Where each colour has a plane, the blocks of the first one write all three, and the blocks of the others end at once.
#pragma once

#include "cuda/device/range_params.h"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "plan/weighted.h"

namespace cudaconv::bilateral {

constexpr int kSlots = kColours + 1;
constexpr uint8_t kNoPart = 255;

struct PixelsParams : FrameParams {
  int32_t width, height, radius_x, radius_y;  // of the window
  int32_t entries;                            // of all tables
  bool is_planar;                             // each colour has a plane
  uint8_t table[2];                           // of the colours, and of alpha
  // By part: the number of the part that has a slot's samples, and the channel there.
  struct Slot {
    uint8_t part, channel;
  } slot[kMaxParts][kSlots];
  uint8_t slot_of[kMaxParts][kMaxChannels];  // of a part's channels
  uint32_t space[kMaxMaskValues];            // the weights of distances, rows from the top
  RangeParams range;
};

constexpr int kPixelsWidth = 32, kPixelsRows = 2, kPixelsWarps = 8, kPixelsThreads = 32 * kPixelsWarps;
constexpr int kPixelsHeight = kPixelsWarps * kPixelsRows;

// Bytes of shared memory: pixels, then tables.
inline size_t pixels_bytes(const PixelsParams &p) {
  return sizeof(uint2) * (kPixelsWidth + 2 * p.radius_x) * (kPixelsHeight + 2 * p.radius_y) +
         sizeof(uint32_t) * p.entries;
}

__device__ inline int sample_in_slot(const uint2 &pixel, int slot) {
  return static_cast<int>((slot < 2 ? pixel.x : pixel.y) >> 16 * (slot % 2) & 0xffff);
}

__device__ inline void load_pixels(const PixelsParams &p, const Tile &tile, int pitch, uint2 *pixels) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll 1
  for (int s = 0; s < kSlots; s++) {
    const PixelsParams::Slot &slot = p.slot[tile.part.number][s];
    const PartParams &part = slot.part == kNoPart ? tile.part : find_part(p, slot.part);
    const SourceReader source(p, part, slot.channel, false);
    uint16_t *const to = reinterpret_cast<uint16_t *>(pixels) + s;
#pragma unroll 1
    for (int y = warp; y < kPixelsHeight + 2 * p.radius_y; y += kPixelsWarps)
#pragma unroll 1
      for (int x = lane; x < pitch; x += 32)
        to[kSlots * (y * pitch + x)] = static_cast<uint16_t>(
            slot.part == kNoPart ? 0 : source.at(tile.x0 - p.radius_x + x, tile.y0 - p.radius_y + y));
  }
}

// Filters slots kFirst ... kFirst + kCount - 1, which have one weight.
template <int kFirst, int kCount>
__device__ inline void filter_slots(const PixelsParams &p, const RangeParams::Table &table, const uint32_t *entries,
                                    const uint2 *middle, int pitch, int *results) {
  int centre[kCount];
  uint64_t n[kCount] = {}, d = 0;
  each<kCount>([&](int k) { centre[k] = sample_in_slot(*middle, kFirst + k); });
  const uint32_t *space = p.space;
#pragma unroll 1
  for (int j = -p.radius_y; j <= p.radius_y; j++)
#pragma unroll 1
    for (int i = -p.radius_x; i <= p.radius_x; i++, space++) {
      if (!*space) continue;
      const uint2 pixel = middle[j * pitch + i];
      int difference = 0;
      each<kCount>([&](int k) { difference += abs(sample_in_slot(pixel, kFirst + k) - centre[k]); });
      const uint32_t weight = *space * range_weight(entries + table.first, table.shift, table.last, difference);
      d += weight;
      each<kCount>([&](int k) { n[k] += uint64_t{weight} * static_cast<uint32_t>(sample_in_slot(pixel, kFirst + k)); });
    }
  each<kCount>(
      [&](int k) { results[kFirst + k] = clamped_quotient<uint64_t>(n[k] + d / 2, d, inverse_of(d), table.max); });
}

// Writes a channel of a pixel: its result, if it is filtered.
__device__ inline void write_channel(const PixelsParams &p, const PartParams &part, int x, int y, int c, int result) {
  bool filtered = false;
  const int v = unfiltered(p, part, x, y, c, &filtered);
  write_sample(part, x, y, c, filtered ? result : v);
}

__global__ void __launch_bounds__(kPixelsThreads) pixels_kernel(const __grid_constant__ PixelsParams p) {
  const Tile tile = locate_tile(p, kPixelsHeight);
  const PartParams &part = tile.part;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int pitch = kPixelsWidth + 2 * p.radius_x;
  const PixelsParams::Slot *const slots = p.slot[part.number];
  const bool colours = slots[0].part != kNoPart;
  if (colours && slots[0].part != part.number) return;
  uint2 *const pixels = shared_memory<uint2>();
  uint32_t *const entries = reinterpret_cast<uint32_t *>(pixels + pitch * (kPixelsHeight + 2 * p.radius_y));
  for (int i = static_cast<int>(threadIdx.x); i < p.entries; i += kPixelsThreads) entries[i] = p.range.entry[i];
  load_pixels(p, tile, pitch, pixels);
  __syncthreads();
#pragma unroll 1
  for (int r = 0; r < kPixelsRows; r++) {
    const int ty = warp + r * kPixelsWarps, x = tile.x0 + lane, y = tile.y0 + ty;
    if (x >= part.width || y >= part.height) return;
    const uint2 *const middle = pixels + (ty + p.radius_y) * pitch + lane + p.radius_x;
    int results[kSlots] = {};
    if (colours) filter_slots<0, kColours>(p, p.range.table[p.table[0]], entries, middle, pitch, results);
    if (slots[kColours].part != kNoPart)
      filter_slots<kColours, 1>(p, p.range.table[p.table[1]], entries, middle, pitch, results);
    if (colours && p.is_planar) {
      each<kColours>([&](int k) { write_channel(p, find_part(p, slots[k].part), x, y, slots[k].channel, results[k]); });
      continue;
    }
#pragma unroll 1
    for (int c = 0; c < part.channels; c++) {
      int result = 0;
#pragma unroll
      for (int s = 0; s < kSlots; s++)
        if (s == p.slot_of[part.number][c]) result = results[s];
      write_channel(p, part, x, y, c, result);
    }
  }
}

}  // namespace cudaconv::bilateral
