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
// 0 for what is no colour. If alpha is filtered, its table follows the table of the colours.
//
// A ring is the pixels at (x, y) with 0 <= y <= x, turned and mirrored. The loops go through the columns x, and through
// the rings y of each. With the constant pitch of a tile each address is one of four registers plus a constant:
//
//    middle + x, middle - x                 plus or minus y rows
//    middle + x rows, middle - x rows       plus or minus y
#pragma once

#include "cuda/device/rounded_means.cuh"
#include "cuda/device/u8x4_tile.cuh"
#include "plan/bilateral.h"

namespace cudaconv::bilateral {

constexpr int kMostRadius = 15;

struct TileParams : U8x4Params {
  // The weights of distances: space[x][y] for 0 <= y < x, and corner[x] for y = x. After the last ring of a column that
  // weighs more than 0 there is a 0; each ring that is farther away weighs 0, too.
  uint32_t space[kMostRadius + 1][kMostRadius + 1], corner[kMostRadius + 1];
  uint32_t pick[4];                   // 128 in each of the four bytes
  uint32_t entry[kMostRangeEntries];  // 8-bit samples: the weight of each difference; else see RangeTable
  int32_t shift, last;                // of the table
  int32_t first_colour;               // RGB: the byte of the first colour, 0 or 1
  uint32_t alpha_entry[256];          // RGB with filtered alpha: the weight of each difference of alpha
  int32_t sample_shift, max;          // 16-bit samples: their position and the largest
};

struct Tuning {
  // Tuned on an H200 with kernel-bench --table=formats --only=bilateral: 8 warps and four blocks take up to 9 % longer
  // with GRAY8 of 4K, but 8 % less with NV12 of 1080p.
  static constexpr int kWarps = 16, kMinBlocks = 2;
};
constexpr int kThreads = 32 * Tuning::kWarps;
constexpr int kWidth = 64;  // of a tile, in u8x4s

// Rows of a tile, and u8x4s of its rows with their halo.
template <typename Windows>
constexpr int kHeight = Tuning::kWarps / 2 * Windows::kRows;
template <typename Windows>
constexpr int kPitch = kWidth + 2 * round_to_chunks(kMostRadius *(Windows::kSixteen ? 2 : 1));

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

// The sums of a lane's windows: d of weights, n of samples times weights. Several n may have the same d.
template <int kWeights, int kSums, typename Product = uint32_t>
struct RingSums {
  uint64_t d[kWeights], n[kSums];
  // The following are sums of the current ring.
  uint32_t weights[kWeights] = {};
  Product products[kSums] = {};

  // Sum k, whose weights are number w, begins with the sample in the middle.
  __device__ void begin(int k, int w, uint32_t middle) {
    d[w] = uint64_t{kBilateralOne} * kBilateralOne;
    n[k] = d[w] * middle;
  }
  __device__ void end_ring(uint32_t space) {
    each<kWeights>([&](int w) { d[w] += uint64_t{space} * weights[w]; });
    each<kSums>([&](int k) { n[k] += uint64_t{space} * products[k]; });
    each<kWeights>([&](int w) { weights[w] = 0; });
    each<kSums>([&](int k) { products[k] = 0; });
  }
};

// The windows around the bytes of a u8x4.
class ByteWindows {
 public:
  using Table = LaneTable;
  static constexpr bool kSixteen = false;
  static constexpr int kRows = 4;  // of results of a lane
  RingSums<4, 4> sums;

  __device__ ByteWindows(const LaneTable &table, uint32_t middle) : table_(table) {
#pragma unroll
    for (int b = 0; b < 4; b++) {
      begin_[b] = table.begin(middle, b);
      sums.begin(b, b, __byte_perm(middle, 0, 0x4440 | b));
    }
  }

  // Adds two pixels of the current ring.
  __device__ void add(uint32_t first, uint32_t second) {
    const uint32_t low = __byte_perm(first, second, 0x5140), high = __byte_perm(first, second, 0x7362);
#pragma unroll
    for (int b = 0; b < 4; b++) {
      const uint32_t of_first = table_.at(begin_[b], first, b), of_second = table_.at(begin_[b], second, b);
      const uint32_t both = __byte_perm(of_first, of_second, 0x5410);
      uint32_t &product = sums.products[b];
      product = b % 2 ? __dp2a_hi(both, b < 2 ? low : high, product) : __dp2a_lo(both, b < 2 ? low : high, product);
      sums.weights[b] += of_first + of_second;
    }
  }

  __device__ uint32_t results() const {
    return rounded_means(sums.n, sums.d);
  }

 private:
  const LaneTable &table_;
  uint32_t begin_[4];
};

// The weights of sums of differences of a pixel's colours and, with kAlpha, of differences of alpha, for this lane.
template <bool kAlpha>
class PixelTable {
 public:
  __host__ __device__ static int bytes(const TileParams &p) { return 128 * (p.last + 1 + (kAlpha ? 256 : 0)); }

  __device__ static void fill(const TileParams &p, uint8_t *memory) {
    fill(p.entry, p.last + 1, memory);
    if (kAlpha) fill(p.alpha_entry, 256, memory + 128 * (p.last + 1));
  }

  __device__ PixelTable(const TileParams &p, const uint8_t *memory)
      : memory_(memory),
        first_colour_(p.first_colour),
        pick_(0x808080u << 8 * p.first_colour),
        begin_(shared_address(memory, memory + threadIdx.x % 32 * 4)),
        end_(begin_ + 128 * static_cast<uint32_t>(p.last)) {}

  // The weight of a pixel's colours by its differences. Sums beyond the table have the weight of its last entry, 0.
  __device__ uint32_t at(uint32_t differences) const {
    return load_shared(memory_, min(__dp4a(differences, pick_, begin_), end_));
  }
  __device__ uint32_t at_alpha(uint32_t differences) const {
    return load_shared(memory_, __dp4a(differences, pick_ ^ 0x80808080u, end_ + 128));
  }
  __device__ int first_colour() const { return first_colour_; }

 private:
  __device__ static void fill(const uint32_t *entry, int entries, uint8_t *memory) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    for (int i = warp; i < entries; i += Tuning::kWarps)
      *reinterpret_cast<uint32_t *>(memory + 128 * i + 4 * lane) = entry[i];
  }

  const uint8_t *memory_;
  const int first_colour_;
  const uint32_t pick_, begin_, end_;
};

// The window around a pixel of RGB. kAlpha: alpha is filtered, by weights of its own.
template <bool kAlpha>
class PixelWindow {
  static constexpr int kSums = kColours + (kAlpha ? 1 : 0);

 public:
  using Table = PixelTable<kAlpha>;
  static constexpr bool kSixteen = false;
  static constexpr int kRows = 8;  // 4 take up to 16 % longer with 3x3, 16 up to 12 % with 1080p
  RingSums<kAlpha ? 2 : 1, kSums> sums;

  __device__ PixelWindow(const Table &table, uint32_t middle)
      : table_(table),
        middle_(middle),
        low_(0x5140 + 0x1111 * table.first_colour()),
        high_(table.first_colour() ? 0x4073 : 0x7362) {
    const uint32_t colours = __byte_perm(middle, 0, table.first_colour() ? 0x0321 : 0x3210);
    each<kSums>([&](int k) { sums.begin(k, k / kColours, colours >> 8 * k & 0xff); });
  }

  // Adds two pixels of the current ring.
  __device__ void add(uint32_t first, uint32_t second) {
    const uint32_t to_first = __vabsdiffu4(first, middle_), to_second = __vabsdiffu4(second, middle_);
    const uint32_t low = __byte_perm(first, second, low_), high = __byte_perm(first, second, high_);
    const uint32_t of_first = table_.at(to_first), of_second = table_.at(to_second);
    const uint32_t both = __byte_perm(of_first, of_second, 0x5410);
    uint32_t *const products = sums.products;
    products[0] = __dp2a_lo(both, low, products[0]);
    products[1] = __dp2a_hi(both, low, products[1]);
    products[2] = __dp2a_lo(both, high, products[2]);
    sums.weights[0] += of_first + of_second;
    if constexpr (kAlpha) {
      const uint32_t alpha_of_first = table_.at_alpha(to_first), alpha_of_second = table_.at_alpha(to_second);
      products[kColours] = __dp2a_hi(__byte_perm(alpha_of_first, alpha_of_second, 0x5410), high, products[kColours]);
      sums.weights[1] += alpha_of_first + alpha_of_second;
    }
  }

  __device__ uint32_t results() const {
    uint32_t means;
    if constexpr (kAlpha)
      means = rounded_means(sums.n, {sums.d[0], sums.d[0], sums.d[0], sums.d[1]});
    else
      means = rounded_means(sums.n, {sums.d[0], sums.d[0], sums.d[0]});
    return __byte_perm(means, 0, table_.first_colour() ? 0x2103 : 0x3210);
  }

 private:
  const Table &table_;
  const uint32_t middle_;
  const uint32_t low_, high_;  // bytes of two pixels: of two colours in turn, and of the third and alpha
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
  static constexpr bool kSixteen = true;
  static constexpr int kRows = 4;
  RingSums<2, 2, typename Table::Product> sums;

  __device__ TwoWindows(const Table &table, uint32_t middle) : table_(table) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint32_t sample = table.sample(middle, h);
      begin_[h] = table.begin(sample);
      sums.begin(h, h, sample);
    }
  }

  __device__ void add(uint32_t first, uint32_t second) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      add(h, table_.sample(first, h));
      add(h, table_.sample(second, h));
    }
  }

  __device__ uint32_t results() const {
    uint32_t word = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint64_t d = sums.d[h];
      word |= table_.word(clamped_quotient<uint64_t>(sums.n[h] + d / 2, d, inverse_of(d), table_.max()), h);
    }
    return word;
  }

 private:
  __device__ void add(int h, uint32_t sample) {
    const uint32_t weight = table_.at(begin_[h], sample);
    sums.weights[h] += weight;
    sums.products[h] += static_cast<typename Table::Product>(weight) * sample;
  }

  const Table &table_;
  uint32_t begin_[2];
};

// Adds all rings around a u8x4 of a tile. Pixels are `step` u8x4s apart.
template <typename Windows>
__device__ inline void add_rings(const TileParams &p, int step, const uint32_t *middle, Windows *windows) {
  constexpr int kRow = kPitch<Windows>;
#pragma unroll 1
  for (int x = 1; x <= p.tile.halo_y; x++) {
    const uint32_t *const space = p.space[x];
    if (!space[0]) return;
    const uint32_t *const right = middle + x * step, *const left = middle - x * step;
    const uint32_t *const below = middle + x * kRow, *const above = middle - x * kRow;
    windows->add(*right, *left);
    windows->add(*below, *above);
    windows->sums.end_ring(space[0]);
#pragma unroll
    for (int y = 1; y < kMostRadius; y++) {
      if (!space[y]) break;
      windows->add(right[y * kRow], left[-y * kRow]);
      windows->add(right[-y * kRow], left[y * kRow]);
      windows->add(below[y * step], above[-y * step]);
      windows->add(below[-y * step], above[y * step]);
      windows->sums.end_ring(space[y]);
    }
    if (!p.corner[x]) continue;
    windows->add(below[x * step], above[-x * step]);
    windows->add(below[-x * step], above[x * step]);
    windows->sums.end_ring(p.corner[x]);
  }
}

template <typename Windows>
__global__ void __launch_bounds__(kThreads, Tuning::kMinBlocks) tile_kernel(const __grid_constant__ TileParams p) {
  using Table = typename Windows::Table;
  constexpr bool kSixteen = Windows::kSixteen;
  constexpr int kRow = kPitch<Windows>;
  const Tile tile = locate_tile(p, kHeight<Windows>);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int rows = min(kHeight<Windows>, part.height - tile.y0) + 2 * p.tile.halo_y;
  uint8_t *const tables = shared_memory<uint8_t>();
  auto *const u8x4s = reinterpret_cast<uint32_t *>(tables + Table::bytes(p));
  load_share<Tuning::kWarps, kSixteen>(p, p.tile, tile, rows, kRow, u8x4s);
  Table::fill(p, tables);
  wait_for_copies();
  __syncthreads();
  const int column = lane + warp % 2 * 32, first = warp / 2 * Windows::kRows;
  const int own_rows = min(Windows::kRows, rows - 2 * p.tile.halo_y - first);
  if (own_rows <= 0) return;
  const Table table(p, tables);
  const uint32_t *middle = u8x4s + (first + p.tile.halo_y) * kRow + p.tile.halo_x + column;
  U8x4Writer writer(p.tile, tile, column, first);
#pragma unroll 1
  for (int y = 0; y < own_rows; y++, middle += kRow) {
    const uint32_t original = kSixteen ? *middle & p.sample_bits : *middle;
    uint32_t result = original;
    if (part.has_filtered) {
      Windows windows(table, *middle);
      add_rings(p, step_of<kSixteen>(p.tile), middle, &windows);
      result = windows.results();
    }
    writer.put(part.has_unfiltered ? blend_channels(part, result, original, kSixteen ? column % p.tile.step : 0)
                                   : result);
  }
}

}  // namespace cudaconv::bilateral
