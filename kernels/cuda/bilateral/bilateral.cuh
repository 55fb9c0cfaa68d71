// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels for Op::Bilateral.
//
// tile_kernel: dense planes. A lane filters columns of u8x4s, see u8x4_tile.cuh, whose samples are windows of their
// own. All pixels at one distance, a ring, are summed first, and the ring's sums times the weight of its distance in 64
// bits. With bytes two pixels a and b of a ring are taken together:
//
//    differences   |a - m|, |b - m|            four bytes in an instruction
//    weights       r(|a0 - m0|), r(|b0 - m0|)  two look-ups in shared memory, packed as two 16-bit halves of a word
//    sums          += r * a0 + r * b0          one instruction for both, and one for the sum of the weights
//
// A ring's sums fit 32 bits: 256 * 65535 * 255 < 2^32.
//
// Look-ups are what takes longest: one for each pixel of each window. Lanes with different indices would wait for each
// other where they need the same bank, so that each lane has a table of its own, in its own bank:
//
//    byte address of r(i) for lane l: 256 * i + 4 * l
//
// One byte permutation makes this address, since a difference and the lane's offset are bytes of their own. The other
// half of each 256 bytes is not used. With 16-bit samples all lanes share a table, and the sums of products have 64
// bits.
//
// alpha_kernel: any frame, sample by sample, weighted by alpha. It equals AlphaRowsOf of cpu/bilateral.cpp.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "plan/weighted.h"

namespace cudaconv::bilateral {

constexpr int kMostPairs = 31 * 31 / 2, kMostRings = 160;

struct TileParams : FrameParams {
  U8x4Tile tile;
  struct Ring {
    int32_t pairs;   // of pixels
    uint32_t space;  // the weight of the distance
  } ring[kMostRings];
  int32_t rings;
  // Offsets in shared memory from the middle, in words: of the first pixel and, in the high half, of the second.
  uint32_t pair[kMostPairs];
  uint32_t entry[kMostRangeEntries];  // 8-bit samples: the weight of each difference; else see RangeTable
  int32_t shift, last;                // of the table
  uint32_t sample_bits;               // bits of the samples of a u8x4
  int32_t sample_shift, max;          // 16-bit samples: their position and the largest
};

struct Tuning {
  // Reckoned, not measured beside other numbers: with 512 threads of 64 registers and 64 KiB of tables a
  // multiprocessor holds two blocks.
  static constexpr int kWarps = 16, kMinBlocks = 2;
  static constexpr int kRows = 4;  // of results of a lane
};
constexpr int kThreads = 32 * Tuning::kWarps;
constexpr int kWidth = 64, kHeight = Tuning::kWarps / 2 * Tuning::kRows;  // of a tile, in u8x4s and rows

__host__ __device__ inline int pitch_of(const U8x4Tile &tile) {
  return tile.width + 2 * tile.halo_x;
}

// The weights of differences of bytes, for this lane.
class LaneTable {
 public:
  static constexpr int kBytes = 256 * 256;

  // All threads of the block fill the tables; before they read them they have to synchronise.
  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll 4
    for (int i = warp; i < 256; i += Tuning::kWarps)
      *reinterpret_cast<uint32_t *>(memory + 256 * i + 4 * lane) = p.entry[i];
  }

  __device__ LaneTable(const TileParams &, const uint8_t *memory) : memory_(memory), offset_(threadIdx.x % 32 * 4) {}

  // The weight of byte kByte of `differences`.
  template <int kByte>
  __device__ uint32_t at(uint32_t differences) const {
    return *reinterpret_cast<const uint32_t *>(memory_ + __byte_perm(offset_, differences, 0x1140 | kByte << 4));
  }

 private:
  const uint8_t *memory_;
  const uint32_t offset_;
};

// The four windows around a u8x4 of bytes.
class FourWindows {
 public:
  using Table = LaneTable;

  __device__ FourWindows(const LaneTable &table, uint32_t middle) : table_(table), middle_(middle) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      d_[b] = uint64_t{kBilateralOne} * kBilateralOne;
      n_[b] = d_[b] * (middle >> 8 * b & 0xff);
    }
  }

  // Adds two pixels of the current ring.
  __device__ void add(uint32_t first, uint32_t second) {
    const uint32_t from_first = __vabsdiffu4(first, middle_), from_second = __vabsdiffu4(second, middle_);
    const uint32_t low = __byte_perm(first, second, 0x5140), high = __byte_perm(first, second, 0x7362);
    add<0>(from_first, from_second, low);
    add<1>(from_first, from_second, low);
    add<2>(from_first, from_second, high);
    add<3>(from_first, from_second, high);
  }

  __device__ void end_ring(uint32_t space) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      d_[b] += uint64_t{space} * weights_[b];
      n_[b] += uint64_t{space} * products_[b];
      weights_[b] = products_[b] = 0;
    }
  }

  __device__ uint32_t results() const {
    uint32_t word = 0;
#pragma unroll
    for (int b = 0; b < 4; b++)
      word |= static_cast<uint32_t>(clamped_quotient<uint64_t>(n_[b] + d_[b] / 2, d_[b], inverse_of(d_[b]), 255))
              << 8 * b;
    return word;
  }

 private:
  // `samples`: bytes 2 * (kByte % 2) and the next one are those of this window.
  template <int kByte>
  __device__ void add(uint32_t from_first, uint32_t from_second, uint32_t samples) {
    const uint32_t both = __byte_perm(table_.at<kByte>(from_first), table_.at<kByte>(from_second), 0x5410);
    products_[kByte] =
        kByte % 2 ? __dp2a_hi(both, samples, products_[kByte]) : __dp2a_lo(both, samples, products_[kByte]);
    weights_[kByte] = __dp2a_lo(both, 0x01010101u, weights_[kByte]);
  }

  const LaneTable &table_;
  const uint32_t middle_;
  uint32_t weights_[4] = {}, products_[4] = {};  // of the current ring
  uint64_t d_[4], n_[4];
};

// The weights of differences of deeper samples.
class SharedTable {
 public:
  static constexpr int kBytes = (kMostRangeEntries * 4 + 15) / 16 * 16;

  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    for (int i = static_cast<int>(threadIdx.x); i <= p.last; i += kThreads)
      reinterpret_cast<uint32_t *>(memory)[i] = p.entry[i];
  }

  __device__ SharedTable(const TileParams &p, const uint8_t *memory)
      : entry_(reinterpret_cast<const uint32_t *>(memory)),
        shift_(p.shift),
        last_(p.last),
        sample_shift_(p.sample_shift),
        max_(p.max) {}

  __device__ int sample(uint32_t word, int half) const { return word >> (16 * half + sample_shift_) & max_; }
  __device__ uint32_t word(int sample, int half) const {
    return static_cast<uint32_t>(sample) << (16 * half + sample_shift_);
  }
  __device__ uint32_t at(int difference) const { return range_weight(entry_, shift_, last_, abs(difference)); }
  __device__ int max() const { return max_; }

 private:
  const uint32_t *entry_;
  const int shift_, last_, sample_shift_, max_;
};

// The two windows around a u8x4 of 16-bit samples.
class TwoWindows {
 public:
  using Table = SharedTable;

  __device__ TwoWindows(const SharedTable &table, uint32_t middle) : table_(table) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      middle_[h] = table.sample(middle, h);
      d_[h] = uint64_t{kBilateralOne} * kBilateralOne;
      n_[h] = d_[h] * static_cast<uint32_t>(middle_[h]);
    }
  }

  __device__ void add(uint32_t first, uint32_t second) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      add(h, table_.sample(first, h));
      add(h, table_.sample(second, h));
    }
  }

  __device__ void end_ring(uint32_t space) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      d_[h] += uint64_t{space} * weights_[h];
      n_[h] += uint64_t{space} * products_[h];
      weights_[h] = 0;
      products_[h] = 0;
    }
  }

  __device__ uint32_t results() const {
    uint32_t word = 0;
#pragma unroll
    for (int h = 0; h < 2; h++)
      word |= table_.word(clamped_quotient<uint64_t>(n_[h] + d_[h] / 2, d_[h], inverse_of(d_[h]), table_.max()), h);
    return word;
  }

 private:
  __device__ void add(int h, int sample) {
    const uint32_t weight = table_.at(sample - middle_[h]);
    weights_[h] += weight;
    products_[h] += uint64_t{weight} * static_cast<uint32_t>(sample);
  }

  const SharedTable &table_;
  int middle_[2];
  uint32_t weights_[2] = {};  // of the current ring
  uint64_t products_[2] = {};
  uint64_t d_[2], n_[2];
};

template <typename Windows>
__device__ inline uint32_t filter(const TileParams &p, const typename Windows::Table &table, const uint32_t *middle) {
  Windows windows(table, *middle);
  const uint32_t *pair = p.pair;
#pragma unroll 1
  for (int r = 0; r < p.rings; r++) {
    const TileParams::Ring ring = p.ring[r];
#pragma unroll 2
    for (int i = 0; i < ring.pairs; i++, pair++) {
      const uint32_t offsets = *pair;
      windows.add(middle[static_cast<int16_t>(offsets)], middle[static_cast<int32_t>(offsets) >> 16]);
    }
    windows.end_ring(ring.space);
  }
  return windows.results();
}

template <typename Windows>
__global__ void __launch_bounds__(kThreads, Tuning::kMinBlocks) tile_kernel(const __grid_constant__ TileParams p) {
  using Table = typename Windows::Table;
  constexpr bool kSixteen = std::is_same_v<Windows, TwoWindows>;
  const Tile tile = locate_tile(p, kHeight);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = pitch_of(p.tile), rows = min(kHeight, part.height - tile.y0) + 2 * p.tile.halo_y;
  const int share = (rows + Tuning::kWarps - 1) / Tuning::kWarps;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  uint8_t *const tables = shared_memory<uint8_t>();
  auto *const u8x4s = reinterpret_cast<uint32_t *>(tables + Table::kBytes);
  if (begin < end) load_rows<Rows::U8x4s, kSixteen>(p, p.tile, tile, begin, end - begin, pitch, u8x4s + begin * pitch);
  Table::fill(p, tables);
  wait_for_copies();
  __syncthreads();
  const int column = lane + warp % 2 * 32, first = warp / 2 * Tuning::kRows;
  const int own_rows = min(Tuning::kRows, rows - 2 * p.tile.halo_y - first);
  if (own_rows <= 0) return;
  const Table table(p, tables);
  const uint32_t *const middle = u8x4s + (first + p.tile.halo_y) * pitch + p.tile.halo_x + column;
  U8x4Writer writer(p.tile, tile, column, first);
  writer.write<true>([&](auto put) {
#pragma unroll 1
    for (int y = 0; y < own_rows; y++) {
      const uint32_t original = middle[y * pitch] & p.sample_bits;
      const uint32_t result = part.has_filtered ? filter<Windows>(p, table, middle + y * pitch) : original;
      put(part.has_unfiltered ? blend_channels(part, result, original, kSixteen ? column % p.tile.step : 0) : result);
    }
  });
}

struct AlphaParams : FrameParams {
  struct Alpha {
    int32_t part;  // index of the part that holds it
    AlphaGrid grid;
  } alpha[kMaxParts];
  int32_t alpha_channel;
  int32_t radius_x, radius_y;
  RangeParams range;
  uint16_t space[31 * 31];  // weights of distances, rows from the top
};

constexpr int kSamplesWidth = 32, kSamplesHeight = 8;  // of a block's tile

// The window around a pixel.
class AlphaWindow {
 public:
  __device__ AlphaWindow(const AlphaParams &p, const PartParams &part, int x, int y)
      : p_(p),
        part_(part),
        own_(p.alpha[part.number]),
        holder_(p.part[own_.part]),
        alpha_(holder_, holder_.source, holder_.source_pitch, p.alpha_channel),
        x_(x),
        y_(y) {}

  __device__ bool holds_alpha(int c) const { return &holder_ == &part_ && c == p_.alpha_channel; }

  __device__ void add_up(int c, bool weighted, Uint128 *n, Uint128 *d) const {
    const SourceReader source(p_, part_, c, false);
    const RangeParams::Table &table = p_.range.of_max((1 << part_.channel[c].depth) - 1);
    const int middle = source.at(x_, y_);
    const uint16_t *space = p_.space;
#pragma unroll 1
    for (int y = y_ - p_.radius_y; y <= y_ + p_.radius_y; y++)
#pragma unroll 1
      for (int x = x_ - p_.radius_x; x <= x_ + p_.radius_x; x++) {
        const int v = source.at(x, y);
        uint64_t weight = uint64_t{*space++} * p_.range.weight(table, v - middle);
        if (weighted) weight *= static_cast<uint32_t>(alpha(x, y));
        *d += weight;
        *n += static_cast<Uint128>(weight) * static_cast<uint32_t>(v);
      }
  }

 private:
  __device__ int alpha(int x, int y) const {
    x = border_index(p_.border, x, part_.width);
    y = border_index(p_.border, y, part_.height);
    if (x < 0 || y < 0) return holder_.channel[p_.alpha_channel].border_value;
    return alpha_at(own_.grid, x, y, [&](int column, int row) { return alpha_.at(column, row); });
  }

  const AlphaParams &p_;
  const PartParams &part_;
  const AlphaParams::Alpha &own_;
  const PartParams &holder_;
  const ChannelReader alpha_;
  const int x_, y_;
};

__global__ void __launch_bounds__(kSamplesWidth *kSamplesHeight) alpha_kernel(const __grid_constant__ AlphaParams p) {
  const Tile tile = locate_tile(p, kSamplesHeight);
  const PartParams &part = tile.part;
  const int x = tile.x0 + static_cast<int>(threadIdx.x % 32), y = tile.y0 + static_cast<int>(threadIdx.x / 32);
  if (x >= part.width || y >= part.height) return;
  const AlphaWindow window(p, part, x, y);
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    bool filtered = false;
    int v = unfiltered(p, part, x, y, c, &filtered);
    if (filtered) {
      Uint128 n = 0, d = 0;
      if (!window.holds_alpha(c)) window.add_up(c, true, &n, &d);
      if (d == 0) window.add_up(c, false, &n, &d);
      v = clamped_quotient<Uint128>(n + d / 2, d, inverse_of(d), p.rounding[part.channel[c].rounding].max);
    }
    write_sample(part, x, y, c, v);
  }
}

}  // namespace cudaconv::bilateral
