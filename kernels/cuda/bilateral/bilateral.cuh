// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels for Op::Bilateral.
//
// tile_kernel: dense planes. A lane filters columns of u8x4s, see u8x4_tile.cuh, whose samples are windows of their
// own. The pixels at one distance from the middle, a ring, are summed first. Then the sums times the weight of the
// distance are added in 64 bits. With bytes two pixels a and b of a ring are taken together:
//
//    addresses     of r(a0 - m0) and of r(b0 - m0), an instruction for each
//    weights       r(a0 - m0), r(b0 - m0): two look-ups in shared memory, packed as two 16-bit halves of a word
//    sums          += r * a0 + r * b0 in one instruction, and one for the sum of the weights
//
// Lanes with different indices would wait for each other where they need the same bank. Each lane therefore has a
// table of its own, in its own bank, for differences i from -255 to 255:
//
//    byte address of r(i) for lane l: 128 * (255 + i) + 4 * l
//
// It grows by 128 with a sample. One instruction picks the sample and makes the address: the dot product of a u8x4 and
// four bytes, one of them 128 and the others 0. With 16-bit samples all lanes share a table. Up to 10 bits it is a
// table like this one; deeper samples interpolate, and the sums of products have 64 bits.
//
// The colours of a pixel of RGB have one weight, so a u8x4 is one window. The byte address of the weight of a sum of
// differences i is 128 * i + 4 * l: the dot product of the bytes' differences with four bytes, 128 for each colour and
// 0 for what is no colour.
#pragma once

#include "cuda/device/rounded_means.cuh"
#include "cuda/device/u8x4_tile.cuh"

namespace cudaconv::bilateral {

constexpr int kMostRadius = 15, kMostFixedRadius = 4;  // radii up to the second have loops of their own

// Pixels (x, y) from the middle with 0 <= y <= x <= radius, 0 < x: one for each ring or part of a ring.
constexpr int octants(int radius) {
  return radius * (radius + 3) / 2;
}

struct TileParams : U8x4Params {
  struct Ring {
    int32_t offset[4];  // of a pixel of each pair of opposite ones, in u8x4s from the middle
    uint32_t space;     // the weight of the distance
  } ring[octants(kMostRadius)];
  int32_t rings_of_eight, rings;                    // those of eight pixels come first, then those of four
  uint32_t fixed_space[octants(kMostFixedRadius)];  // for add_fixed_rings()
  int32_t fixed_radius;                             // 0: not for add_fixed_rings()
  uint32_t pick[4];                                 // 128 in each of the four bytes
  uint32_t entry[kMostRangeEntries];                // 8-bit samples: the weight of each difference; else see RangeTable
  int32_t shift, last;                              // of the table
  int32_t first_colour;                             // RGB: the byte of the first colour, 0 or 1
  int32_t sample_shift, max;                        // 16-bit samples: their position and the largest
};

struct Tuning {
  // Tuned on an H200 with kernel-bench --table=formats --only=bilateral: 32 warps and one block take up to 28 % longer.
  // 8 warps and three blocks take up to 13 % longer, but 12 % less with GRAY8 of 1080p.
  static constexpr int kWarps = 16, kMinBlocks = 2;
  static constexpr int kRows = 4;  // of results of a lane
};
constexpr int kThreads = 32 * Tuning::kWarps;
constexpr int kWidth = 64, kHeight = Tuning::kWarps / 2 * Tuning::kRows;  // of a tile, in u8x4s and rows

constexpr int kFixedPitch = kWidth + 2 * kChunk;  // of tiles for add_fixed_rings()
static_assert(kMostFixedRadius <= kChunk);

// An address in shared memory as 32 bits, which a load takes as it is. On the host it counts from `memory`.
__device__ inline uint32_t shared_address([[maybe_unused]] const uint8_t *memory, const uint8_t *at) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
#else
  return static_cast<uint32_t>(at - memory);
#endif
}
__device__ inline uint32_t load_shared([[maybe_unused]] const uint8_t *memory, uint32_t address) {
#ifdef __CUDACC__
  return *static_cast<const uint32_t *>(__cvta_shared_to_generic(address));
#else
  return *reinterpret_cast<const uint32_t *>(memory + address);
#endif
}

// The weights of differences of bytes, for this lane.
class LaneTable {
 public:
  __host__ __device__ static constexpr int bytes(const TileParams &) { return 512 * 128; }

  // All threads of the block fill the tables; before they read them they have to synchronise.
  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    uint8_t *const zero = memory + 128 * 255 + 4 * lane;
#pragma unroll
    for (int i = 0; i < 256; i += Tuning::kWarps) {
      const uint32_t weight = p.entry[i + warp];
      *reinterpret_cast<uint32_t *>(zero + 128 * (i + warp)) = weight;
      *reinterpret_cast<uint32_t *>(zero - 128 * (i + warp)) = weight;
    }
  }

  __device__ LaneTable(const TileParams &p, const uint8_t *memory)
      : memory_(memory), pick_(p.pick), begin_(shared_address(memory, memory + threadIdx.x % 32 * 4)) {}

  // For at(): where the weights of differences from byte `b` of a u8x4 begin.
  __device__ uint32_t begin(uint32_t u8x4, int b) const {
    return __dp4a(~u8x4, pick_[b], begin_);
  }

  // The weight of the difference between byte `b` of a u8x4 and the byte that begin() got.
  __device__ uint32_t at(uint32_t begin, uint32_t u8x4, int b) const {
    return load_shared(memory_, __dp4a(u8x4, pick_[b], begin));
  }

 private:
  const uint8_t *memory_;
  const uint32_t *pick_;
  const uint32_t begin_;
};

// The windows around the bytes of a u8x4.
class ByteWindows {
 public:
  using Table = LaneTable;
  static constexpr bool kFixed = true;  // whether for add_fixed_rings()
  static constexpr bool kSixteen = false;

  __device__ ByteWindows(const LaneTable &table, uint32_t middle) : table_(table) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      begin_[b] = table.begin(middle, b);
      d_[b] = uint64_t{kBilateralOne} * kBilateralOne;
      n_[b] = d_[b] * __byte_perm(middle, 0, 0x4440 | b);
    }
  }

  // Adds two pixels of the current ring.
  __device__ void add(uint32_t first, uint32_t second) {
    const uint32_t low = __byte_perm(first, second, 0x5140), high = __byte_perm(first, second, 0x7362);
#pragma unroll
    for (int b = 0; b < 4; b++) {
      const uint32_t of_first = table_.at(begin_[b], first, b), of_second = table_.at(begin_[b], second, b);
      const uint32_t both = __byte_perm(of_first, of_second, 0x5410);
      products_[b] =
          b % 2 ? __dp2a_hi(both, b < 2 ? low : high, products_[b]) : __dp2a_lo(both, b < 2 ? low : high, products_[b]);
      weights_[b] += of_first + of_second;
    }
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
    return rounded_means(n_, d_);
  }

 private:
  const LaneTable &table_;
  uint32_t begin_[4];
  uint32_t weights_[4] = {}, products_[4] = {};  // of the current ring
  uint64_t d_[4], n_[4];
};

// The weights of sums of differences of a pixel's colours, for this lane.
class PixelTable {
 public:
  __host__ __device__ static int bytes(const TileParams &p) { return 128 * (p.last + 1); }

  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    for (int i = warp; i <= p.last; i += Tuning::kWarps)
      *reinterpret_cast<uint32_t *>(memory + 128 * i + 4 * lane) = p.entry[i];
  }

  __device__ PixelTable(const TileParams &p, const uint8_t *memory)
      : memory_(memory),
        first_colour_(p.first_colour),
        pick_(0x808080u << 8 * p.first_colour),
        begin_(shared_address(memory, memory + threadIdx.x % 32 * 4)),
        end_(begin_ + 128 * static_cast<uint32_t>(p.last)) {}

  // Sums beyond the table have the weight of its last entry, which is 0.
  __device__ uint32_t at(uint32_t pixel, uint32_t middle) const {
    return load_shared(memory_, min(__dp4a(__vabsdiffu4(pixel, middle), pick_, begin_), end_));
  }
  __device__ int first_colour() const { return first_colour_; }

 private:
  const uint8_t *memory_;
  const int first_colour_;
  const uint32_t pick_, begin_, end_;
};

// The window around a pixel of RGB.
class PixelWindow {
 public:
  using Table = PixelTable;
  static constexpr bool kFixed = true;
  static constexpr bool kSixteen = false;

  __device__ PixelWindow(const PixelTable &table, uint32_t middle)
      : table_(table), middle_(middle), first_(8 * table.first_colour()) {
#pragma unroll
    for (int k = 0; k < kColours; k++) n_[k] = d_ * (middle >> (first_ + 8 * k) & 0xff);
  }

  // Adds two pixels of the current ring.
  __device__ void add(uint32_t first, uint32_t second) {
    const uint32_t of_first = table_.at(first, middle_), of_second = table_.at(second, middle_);
    const uint32_t both = __byte_perm(of_first, of_second, 0x5410);
    first >>= first_;
    second >>= first_;
    const uint32_t low = __byte_perm(first, second, 0x5140), high = __byte_perm(first, second, 0x7362);
    products_[0] = __dp2a_lo(both, low, products_[0]);
    products_[1] = __dp2a_hi(both, low, products_[1]);
    products_[2] = __dp2a_lo(both, high, products_[2]);
    weights_ += of_first + of_second;
  }

  __device__ void end_ring(uint32_t space) {
    d_ += uint64_t{space} * weights_;
#pragma unroll
    for (int k = 0; k < kColours; k++) {
      n_[k] += uint64_t{space} * products_[k];
      products_[k] = 0;
    }
    weights_ = 0;
  }

  __device__ uint32_t results() const {
    return rounded_means<uint64_t>({n_[0], n_[1], n_[2], 0}, {d_, d_, d_, d_}) << first_;
  }

 private:
  const PixelTable &table_;
  const uint32_t middle_;
  const int first_;                                 // bit
  uint32_t weights_ = 0, products_[kColours] = {};  // of the current ring
  uint64_t d_ = uint64_t{kBilateralOne} * kBilateralOne, n_[kColours];
};

// The position of 16-bit samples in the halves of a u8x4.
class HalfSamples {
 public:
  __device__ explicit HalfSamples(const TileParams &p) : shift_(p.sample_shift), max_(p.max) {}

  __device__ uint32_t sample(uint32_t word, int half) const { return word >> (16 * half + shift_) & max_; }
  __device__ uint32_t word(int sample, int half) const { return static_cast<uint32_t>(sample) << (16 * half + shift_); }
  __device__ int max() const { return max_; }

 private:
  const int shift_, max_;
};

// The weights of differences of samples of up to 10 bits, in a word each.
class TenBitTable : public HalfSamples {
 public:
  using Product = uint32_t;  // for the sum of a ring: 8 * 65535 * 1023 < 2^32
  static constexpr int kMost = 1023;
  __host__ __device__ static constexpr int bytes(const TileParams &) { return 2 * (kMost + 1) * 4; }

  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    uint32_t *const zero = reinterpret_cast<uint32_t *>(memory) + kMost;
    for (int i = static_cast<int>(threadIdx.x); i <= kMost; i += kThreads)
      zero[i] = zero[-i] = range_weight(p.entry, 0, p.last, i);
  }

  __device__ TenBitTable(const TileParams &p, const uint8_t *memory)
      : HalfSamples(p), memory_(memory), zero_(shared_address(memory, memory + 4 * kMost)) {}

  // For at(): where the weights of differences from a sample begin.
  __device__ uint32_t begin(uint32_t sample) const { return zero_ - 4 * sample; }
  __device__ uint32_t at(uint32_t begin, uint32_t sample) const { return load_shared(memory_, begin + 4 * sample); }

 private:
  const uint8_t *memory_;
  const uint32_t zero_;
};

// The weights of differences of deeper samples, see RangeTable.
class DeepTable : public HalfSamples {
 public:
  using Product = uint64_t;
  __host__ __device__ static constexpr int bytes(const TileParams &) { return (kMostRangeEntries * 4 + 15) / 16 * 16; }

  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    for (int i = static_cast<int>(threadIdx.x); i <= p.last; i += kThreads)
      reinterpret_cast<uint32_t *>(memory)[i] = p.entry[i];
  }

  __device__ DeepTable(const TileParams &p, const uint8_t *memory)
      : HalfSamples(p), entry_(reinterpret_cast<const uint32_t *>(memory)), shift_(p.shift), last_(p.last) {}

  __device__ uint32_t begin(uint32_t sample) const { return sample; }
  __device__ uint32_t at(uint32_t begin, uint32_t sample) const {
    return range_weight(entry_, shift_, last_, abs(static_cast<int>(sample - begin)));
  }

 private:
  const uint32_t *entry_;
  const int shift_, last_;
};

// The two windows around a u8x4 of 16-bit samples.
template <typename OwnTable>
class TwoWindows {
 public:
  using Table = OwnTable;
  static constexpr bool kFixed = false;
  static constexpr bool kSixteen = true;

  __device__ TwoWindows(const Table &table, uint32_t middle) : table_(table) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint32_t sample = table.sample(middle, h);
      begin_[h] = table.begin(sample);
      d_[h] = uint64_t{kBilateralOne} * kBilateralOne;
      n_[h] = d_[h] * sample;
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
  __device__ void add(int h, uint32_t sample) {
    const uint32_t weight = table_.at(begin_[h], sample);
    weights_[h] += weight;
    products_[h] += static_cast<Product>(weight) * sample;
  }

  using Product = typename Table::Product;
  const Table &table_;
  uint32_t begin_[2];
  uint32_t weights_[2] = {};  // of the current ring
  Product products_[2] = {};
  uint64_t d_[2], n_[2];
};

// The ring of the pixels at (x, y), with 0 <= y <= x. Four of them lie a quarter of a turn apart, from (x, y) on; their
// mirror images are the other four, unless they are the same.
__host__ __device__ constexpr TileParams::Ring ring_of(int x, int y, int pitch, int step, uint32_t space) {
  return {{y * pitch + x * step, x * pitch - y * step, x * pitch + y * step, y * pitch - x * step}, space};
}

// Adds kPairs pairs of opposite pixels.
template <int kPairs, typename Windows>
__device__ inline void add_ring(const TileParams::Ring &ring, const uint32_t *middle, Windows *windows) {
#pragma unroll
  for (int i = 0; i < kPairs; i++) windows->add(middle[ring.offset[i]], middle[-ring.offset[i]]);
  windows->end_ring(ring.space);
}

// Adds the rings of a radius, at a pitch of kFixedPitch.
template <int kRadius, typename Windows>
__device__ inline void add_fixed_rings(const TileParams &p, const uint32_t *middle, Windows *windows) {
#pragma unroll
  for (int i = 0, x = 1; x <= kRadius; x++)
#pragma unroll
    for (int y = 0; y <= x; y++, i++) {
      const TileParams::Ring ring = ring_of(x, y, kFixedPitch, 1, p.fixed_space[i]);
      if (y % x)
        add_ring<4>(ring, middle, windows);
      else
        add_ring<2>(ring, middle, windows);
    }
}

template <typename Windows>
__device__ inline void add_rings(const TileParams &p, const uint32_t *middle, Windows *windows) {
  if constexpr (Windows::kFixed) {
    if (p.fixed_radius == 1) return add_fixed_rings<1>(p, middle, windows);
    if (p.fixed_radius == 2) return add_fixed_rings<2>(p, middle, windows);
    if (p.fixed_radius == 3) return add_fixed_rings<3>(p, middle, windows);
    if (p.fixed_radius == 4) return add_fixed_rings<4>(p, middle, windows);
  }
  int r = 0;
#pragma unroll 1
  for (; r < p.rings_of_eight; r++) add_ring<4>(p.ring[r], middle, windows);
#pragma unroll 1
  for (; r < p.rings; r++) add_ring<2>(p.ring[r], middle, windows);
}

template <typename Windows>
__global__ void __launch_bounds__(kThreads, Tuning::kMinBlocks) tile_kernel(const __grid_constant__ TileParams p) {
  using Table = typename Windows::Table;
  constexpr bool kSixteen = Windows::kSixteen;
  const Tile tile = locate_tile(p, kHeight);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = p.tile.whole_row(), rows = min(kHeight, part.height - tile.y0) + 2 * p.tile.halo_y;
  uint8_t *const tables = shared_memory<uint8_t>();
  auto *const u8x4s = reinterpret_cast<uint32_t *>(tables + Table::bytes(p));
  load_share<Tuning::kWarps, kSixteen>(p, p.tile, tile, rows, pitch, u8x4s);
  Table::fill(p, tables);
  wait_for_copies();
  __syncthreads();
  const int column = lane + warp % 2 * 32, first = warp / 2 * Tuning::kRows;
  const int own_rows = min(Tuning::kRows, rows - 2 * p.tile.halo_y - first);
  if (own_rows <= 0) return;
  const Table table(p, tables);
  const uint32_t *middle = u8x4s + (first + p.tile.halo_y) * pitch + p.tile.halo_x + column;
  U8x4Writer writer(p.tile, tile, column, first);
#pragma unroll 1
  for (int y = 0; y < own_rows; y++, middle += pitch) {
    const uint32_t original = kSixteen ? *middle & p.sample_bits : *middle;
    uint32_t result = original;
    if (part.has_filtered) {
      Windows windows(table, *middle);
      add_rings(p, middle, &windows);
      result = windows.results();
    }
    writer.put(part.has_unfiltered ? blend_channels(part, result, original, kSixteen ? column % p.tile.step : 0)
                                   : result);
  }
}

}  // namespace cudaconv::bilateral
