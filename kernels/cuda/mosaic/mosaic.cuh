// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels for mosaics: each block of samples becomes its mean, as MosaicOp of cpu/mosaic.h makes it.
//
// MosaicThread reads each sample once, in vectors of 16 bytes, and writes it once:
//
//    1. each thread adds 16 bytes of a row and of the rows below, as far as blocks reach: column sums
//    2. column sums meet in shared memory, where all available threads add the columns of a block
//    3. each thread looks up the means for its 16 bytes, and writes them to all its rows
//
// Example, blocks of 8x8 of GRAY8: a thread adds 16 bytes of 8 rows to 16 column sums. Columns 0 to 7 make the first
// block: sum 3,200 of 64 samples, mean 50.
//
// A tall tile has several thread blocks, a slice each. One launch stores the sums of step 2. A second launch adds the
// sums of all slices and does step 3.
//
// filter_samples() does the same for any format, sample by sample.
#pragma once

#include <type_traits>

#include "cuda/device/rounded_means.cuh"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/mosaic/tiles.h"

namespace cudaconv::mosaic {

// The steps that a launch does.
enum class MosaicSteps : uint8_t { All, Sums, Means };

struct MosaicParams : FrameParams {
  MosaicSteps steps;
  MosaicTiles tiles[kMaxParts];
  const MosaicTiledBox *box;  // device memory
  uint32_t *sums;             // of slices; scratch memory
};

// A tile: block `first` of row `row` of a box's blocks, and those to the right of it, `blocks` in total.
struct MosaicTile {
  const PartParams &part;
  const MosaicTiles &tiles;
  MosaicTiledBox box;
  int first, blocks, row;
  int number, slice;  // of the tile in its part; of the thread block in the tile

  // x(), top(), bottom(): pixels of the part.
  __device__ int x(int block) const { return box.x + mosaic_begin(tiles.x, box.phase_x, first + block, box.width); }
  __device__ int top() const { return box.y + mosaic_begin(tiles.y, box.phase_y, row, box.height); }
  __device__ int bottom() const { return box.y + mosaic_begin(tiles.y, box.phase_y, row + 1, box.height); }
};

__device__ inline MosaicTile locate_mosaic_tile(const MosaicParams &p) {
  const Tile block = locate_tile(p, 1);
  const MosaicTiles &tiles = p.tiles[block.part.number];
  const int index = tiles.slices == 1 ? block.x0 : block.x0 / tiles.slices;
  MosaicTiledBox box = tiles.box;
  if (tiles.boxes > 1) {
    const MosaicTiledBox *const boxes = p.box + tiles.first_box;
    int begin = 0, end = tiles.boxes;  // boxes[begin] begins at or before `index`, boxes[end] after it
    while (end - begin > 1) {
      const int middle = (begin + end) / 2;
      (boxes[middle].first_tile <= index ? begin : end) = middle;
    }
    box = boxes[begin];
  }
  const int tile = index - box.first_tile, row = tile / box.tiles_x;
  const int first = (tile - row * box.tiles_x) * tiles.blocks;
  const int blocks = min(tiles.blocks, mosaic_blocks(tiles.x, box.phase_x, box.width) - first);
  return {block.part, tiles, box, first, blocks, row, index, block.x0 - index * tiles.slices};
}

// floor((sum + n / 2) / n) for n below 2^16: the estimate is at most one off, and is corrected.
__device__ inline uint32_t mosaic_mean(uint32_t sum, uint32_t n) {
  const uint32_t dividend = sum + n / 2;
  const uint32_t estimate = static_cast<uint32_t>(__uint2float_rn(dividend) * approximate_inverse(__uint2float_rn(n)));
  const int32_t rest = static_cast<int32_t>(dividend - estimate * n);
  return estimate + (rest >= static_cast<int32_t>(n)) - (rest < 0);
}

// The sums of a thread's 16 bytes of samples over at most 255 rows.
template <typename Sample>
struct BlockColumns;

template <>
struct BlockColumns<uint8_t> {
  uint32_t even[4] = {}, odd[4] = {};  // two 16-bit sums in a word

  __device__ void add(const uint32_t (&word)[4], uint32_t) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      even[i] += word[i] & 0x00ff00ffu;
      odd[i] += __byte_perm(word[i], 0, 0x4341);
    }
  }
  // Stores 32 bytes of sums, in the order of the samples.
  __device__ void store(uint4 *to) const {
    uint32_t word[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      word[2 * i] = __byte_perm(even[i], odd[i], 0x5410);
      word[2 * i + 1] = __byte_perm(even[i], odd[i], 0x7632);
    }
    store_words<8>(to, word);
  }
  using Sum = uint16_t;
};

template <>
struct BlockColumns<uint16_t> {
  uint32_t sum[8] = {};

  // `mask`: the bits of a sample.
  __device__ void add(const uint32_t (&word)[4], uint32_t mask) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      sum[2 * i] += word[i] & mask;
      sum[2 * i + 1] += word[i] >> 16 & mask;
    }
  }
  __device__ void store(uint4 *to) const {
    store_words<8>(to, sum);
  }
  using Sum = uint32_t;
};

// Loads the first `bytes` of 16 bytes; the others are 0.
__device__ inline void load_first_bytes(const uint8_t *from, int bytes, uint32_t (&word)[4]) {
  if (bytes >= kVectorBytes) return load_words<4>(from, word);
  each<4>([&](int i) { word[i] = 4 * i + 4 <= bytes ? reinterpret_cast<const uint32_t *>(from)[i] : 0; });
  const int whole = bytes & -4;
  uint32_t rest = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) rest |= whole + i < bytes ? uint32_t{from[whole + i]} << 8 * i : 0;
  each<4>([&](int i) { word[i] |= 4 * i == whole ? rest : 0; });
}

// Stores bytes begin ... end - 1 of 16 bytes.
__device__ inline void store_some_bytes(uint8_t *to, const uint32_t (&v)[4], int begin, int end) {
  if (begin == 0 && end == kVectorBytes) return store_words<4>(to, v);
#pragma unroll 1
  while (begin < end) {
    const uint32_t word = begin < 8 ? (begin < 4 ? v[0] : v[1]) : (begin < 12 ? v[2] : v[3]);
    const uint32_t from_here = word >> begin % 4 * 8;
    if (begin % 4 == 0 && begin + 4 <= end) {
      *reinterpret_cast<uint32_t *>(to + begin) = word;
      begin += 4;
    } else if (begin % 2 == 0 && begin + 2 <= end) {
      *reinterpret_cast<uint16_t *>(to + begin) = static_cast<uint16_t>(from_here);
      begin += 2;
    } else {
      to[begin++] = static_cast<uint8_t>(from_here);
    }
  }
}

// Gathers the means for 16 bytes from the means of the tile's blocks in shared memory. A pixel has `units` units.
// `first`: where the 16 bytes begin in the tile, in units. Bytes outside the tile are undefined.
template <typename Unit>
__device__ inline void gather_means(const MosaicTile &tile, const void *means, int units, int first,
                                    uint32_t (&word)[4]) {
  constexpr int kUnits = kVectorBytes / static_cast<int>(sizeof(Unit));
  const Unit *const mean = static_cast<const Unit *>(means);
  const MosaicAxis &axis = tile.tiles.x;
  const int begin = tile.x(0), last = (tile.x(tile.blocks) - begin) * units - 1;
  const int pixel = max(first, 0) / units;
  const int at = tile.box.phase_x + ((begin - tile.box.x + pixel) << axis.log_step);
  const int block = at / axis.size;
  // `left`: pixels of the frame left in the block. `unit`: the next unit of the pixel.
  int left = (block + 1) * axis.size - at, unit = max(first, 0) - pixel * units;
  int index = (block - tile.first) * units + unit;
#pragma unroll
  for (int i = 0; i < kUnits; i++) {
    word[i * sizeof(Unit) / 4] |= uint32_t{mean[index]} << i * sizeof(Unit) % 4 * 8;
    if (first + i < 0 || first + i >= last) continue;
    index++;
    if (++unit < units) continue;
    unit = 0;
    left -= 1 << axis.log_step;
    if (left > 0)
      index -= units;
    else
      left += axis.size;
  }
}

constexpr int kMosaicRows = 8;  // rows of a thread in registers
constexpr int kMosaicSumBytes = 2 * kVectorBytes * kMosaicThreads, kMosaicMeanBytes = kVectorBytes * kMosaicThreads;

// The work of a thread on a tile, or on a slice of it.
template <typename Sample>
class MosaicThread {
 public:
  __device__ MosaicThread(const MosaicParams &p, const MosaicTile &tile) : p_(p), tile_(tile) {}

  __device__ void run() {
    if (rows_ <= 0) return;
    uint8_t *const shared = shared_memory<uint8_t>();
    Sample *const means = reinterpret_cast<Sample *>(shared + kMosaicSumBytes);
    // The rows loaded last stay in registers: most blocks have no others.
    uint32_t row[kMosaicRows][4];
    if (part_.has_filtered) {
      if (steps_ == MosaicSteps::Means) {
        add_slices(means);
      } else {
        add_rows(row).store(reinterpret_cast<uint4 *>(shared) + 2 * threadIdx.x);
        __syncthreads();
        add_columns(reinterpret_cast<const typename BlockColumns<Sample>::Sum *>(shared), means);
      }
    }
    if (steps_ == MosaicSteps::Sums) return;
    __syncthreads();
    if (byte_ >= end_) return;
    uint32_t mean[4] = {};
    if (part_.has_filtered) gather(means, mean);
    const bool have_all = steps_ == MosaicSteps::All && part_.has_filtered && rows_ <= groups_ * kMosaicRows;
#pragma unroll 1
    for (int first = group_; first < rows_; first += groups_ * kMosaicRows) {
      if (part_.has_unfiltered && !have_all) load(first, row);
      store(first, row, mean);
    }
  }

 private:
  // Whether the thread's 16 bytes lie in the tile, and so do as many rows from `first` on as it has in registers. Most
  // threads' do, and need no checks: 23.3 to 20.2 us for blocks of 16 pixels of a 4K RGBA frame, H200.
  __device__ bool has_all_rows(int first) const {
    return whole_ && first + (kMosaicRows - 1) * groups_ < rows_;
  }

  // Loads rows of the tile from `first` on; rows beyond its end are 0.
  __device__ void load(int first, uint32_t (&row)[kMosaicRows][4]) const {
    const int left = part_.width * pixel_bytes_ - byte_;
    const uint8_t *const from = part_.source + (top_ + first) * part_.source_pitch + byte_;
    const int64_t step = groups_ * part_.source_pitch;
    if (has_all_rows(first)) {
      each<kMosaicRows>([&](int i) { load_words<4>(from + i * step, row[i]); });
      return;
    }
#pragma unroll
    for (int i = 0; i < kMosaicRows; i++) {
      each<4>([&](int w) { row[i][w] = 0; });
      if (first + i * groups_ < rows_) load_first_bytes(from + i * step, left, row[i]);
    }
  }

  __device__ void store(int first, const uint32_t (&row)[kMosaicRows][4], const uint32_t (&means)[4]) const {
    const int begin = max(begin_ - byte_, 0), end = min(end_ - byte_, kVectorBytes),
              period = part_.channels == 3 ? 3 : 2;
    uint8_t *const to = part_.target + (top_ + first) * part_.target_pitch + byte_;
    const int64_t step = groups_ * part_.target_pitch;
    if (!part_.has_unfiltered && has_all_rows(first)) {
      each<kMosaicRows>([&](int i) { store_words<4>(to + i * step, means); });
      return;
    }
#pragma unroll
    for (int i = 0; i < kMosaicRows; i++) {
      if (first + i * groups_ >= rows_) break;
      uint32_t v[4] = {means[0], means[1], means[2], means[3]};
      if (part_.has_unfiltered)
        each<4>([&](int w) { v[w] = blend_channels(part_, v[w], row[i][w], (byte_ / 4 + w) % period); });
      store_some_bytes(to + i * step, v, begin, end);
    }
  }

  // Adds the thread's rows. Leaves the last ones in `row`.
  __device__ BlockColumns<Sample> add_rows(uint32_t (&row)[kMosaicRows][4]) const {
    BlockColumns<Sample> sums;
    const uint32_t mask = ((1u << part_.channel[0].depth) - 1) << part_.channel[0].shift;
    if (byte_ >= end_) return sums;
#pragma unroll 1
    for (int first = group_; first < rows_; first += groups_ * kMosaicRows) {
      load(first, row);
      each<kMosaicRows>([&](int i) { sums.add(row[i], mask); });
    }
    return sums;
  }

  // A channel of the block in columns x ... end - 1 of the tile, and the number of its sum.
  struct BlockChannel {
    int index, channel, x, end;
  };

  // Adds column sums to means, for each block and channel, or to the sums of this slice. Each group of threads has a
  // row of column sums.
  __device__ void add_columns(const typename BlockColumns<Sample>::Sum *sums, Sample *means) const {
    const int channels = part_.channels, shift = part_.channel[0].shift;
    const int pitch = kVectorBytes / static_cast<int>(sizeof(Sample)) << tile_.tiles.log_threads;
    const auto *const first = sums + begin_ % kVectorBytes / static_cast<int>(sizeof(Sample));
    const auto add = [&](const BlockChannel &of, int lane, int lanes) {
      const auto *const columns = first + of.channel;
      uint32_t sum = 0;
#pragma unroll 1
      for (int g = 0; g < groups_; g++)
#pragma unroll 4
        for (int i = of.x + lane; i < of.end; i += lanes) sum += columns[g * pitch + i * channels];
      return sum;
    };
    for_sums(add, [&](const BlockChannel &of, uint32_t sum) {
      if (steps_ == MosaicSteps::Sums)
        slice_sums_[tile_.slice * slice_stride() + of.index] = sum >> shift;
      else
        means[of.index] = mean(of, rows_, sum >> shift);
    });
  }

  // Adds the sums of all slices to means, for each block and channel.
  __device__ void add_slices(Sample *means) const {
    const int rows = tile_.bottom() - tile_.top(),
              slices = (rows + tile_.tiles.slice_rows - 1) / tile_.tiles.slice_rows;
    const auto add = [&](const BlockChannel &of, int lane, int lanes) {
      uint32_t sum = 0;
#pragma unroll 1
      for (int s = lane; s < slices; s += lanes) sum += slice_sums_[s * slice_stride() + of.index];
      return sum;
    };
    for_sums(add, [&](const BlockChannel &of, uint32_t sum) { means[of.index] = mean(of, rows, sum); });
  }

  // Calls store(of, sum) for each block and channel. All available lanes share a sum: lane l of n adds
  // add(of, l, n).
  template <typename Add, typename Store>
  __device__ void for_sums(Add add, Store store) const {
    const int channels = part_.channels, count = tile_.blocks * channels, thread = static_cast<int>(threadIdx.x);
    const uint32_t reciprocal = 65536u / static_cast<uint32_t>(channels) + 1;  // exact for indices below 2^14
    int lanes = 1;
    while (lanes < 32 && 2 * lanes * count <= kMosaicThreads) lanes *= 2;
    const int lane = thread & (lanes - 1), at_once = kMosaicThreads / lanes, x0 = begin_ / pixel_bytes_;
#pragma unroll 1
    for (int done = 0; done < count; done += at_once) {
      BlockChannel of = {done + thread / lanes, 0, 0, 1};
      uint32_t sum = 0;
      if (of.index < count) {
        const int block = static_cast<int>(of.index * reciprocal >> 16);
        of.channel = of.index - block * channels;
        of.x = tile_.x(block) - x0;
        of.end = tile_.x(block + 1) - x0;
        sum = add(of, lane, lanes);
      }
#pragma unroll 1
      for (int other = lanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
      if (of.index < count && lane == 0) store(of, sum);
    }
  }

  __device__ Sample mean(const BlockChannel &of, int rows, uint32_t sum) const {
    return static_cast<Sample>(mosaic_mean(sum, static_cast<uint32_t>((of.end - of.x) * rows))
                               << part_.channel[0].shift);
  }

  __device__ int slice_stride() const {
    return tile_.tiles.blocks * part_.channels;
  }

  __device__ void gather(const void *means, uint32_t (&word)[4]) const {
    const int first = byte_ - begin_;
    if (pixel_bytes_ % 4 == 0) return gather_means<uint32_t>(tile_, means, pixel_bytes_ / 4, first / 4, word);
    if (pixel_bytes_ % 2 == 0) return gather_means<uint16_t>(tile_, means, pixel_bytes_ / 2, first / 2, word);
    gather_means<uint8_t>(tile_, means, pixel_bytes_, first, word);
  }

  const MosaicParams &p_;
  const MosaicTile &tile_;
  const PartParams &part_ = tile_.part;
  const MosaicSteps steps_ = p_.steps;
  uint32_t *const slice_sums_ =  // of the tile
      p_.sums + tile_.tiles.first_sum + tile_.number * tile_.tiles.slices * slice_stride();
  const int pixel_bytes_ = part_.channels * static_cast<int>(sizeof(Sample));
  // The tile's bytes of a row of the part, and its, or the slice's, rows.
  const int begin_ = tile_.x(0) * pixel_bytes_, end_ = tile_.x(tile_.blocks) * pixel_bytes_;
  const int top_ = tile_.top() + tile_.slice * tile_.tiles.slice_rows;
  const int rows_ = min(tile_.bottom() - top_, tile_.tiles.slice_rows);
  // Groups of threads, one below the other, and where the thread's 16 bytes are in a row of the part.
  const int thread_ = static_cast<int>(threadIdx.x), log_threads_ = tile_.tiles.log_threads;
  const int groups_ = kMosaicThreads >> log_threads_, group_ = thread_ >> log_threads_;
  const int byte_ = (begin_ & -kVectorBytes) + (thread_ & ((1 << log_threads_) - 1)) * kVectorBytes;
  const bool whole_ = byte_ >= begin_ && byte_ + kVectorBytes <= end_;  // all of them lie in the tile
};

// Mosaics of any format, sample by sample: a warp, or the whole thread block, does a block of the mosaic.
__device__ inline void filter_samples(const MosaicParams &p, const MosaicTile &tile) {
  uint32_t *const sums = shared_memory<uint32_t>();  // sums of warps, for each channel
  const PartParams &part = tile.part;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, threads = 1 << tile.tiles.log_threads;
  const int block = thread / threads, warps = threads / 32, member = thread % threads;
  const bool any = block < tile.blocks;
  const int x0 = any ? tile.x(block) : 0, width = any ? tile.x(block + 1) - x0 : 1;
  const int y0 = tile.top(), n = any ? width * (tile.bottom() - y0) : 0;
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    const ChannelReader source(part, part.source, part.source_pitch, c);
    uint32_t sum = 0;
#pragma unroll 1
    for (int i = member; i < n; i += threads) sum += source.at(x0 + i % width, y0 + i / width);
#pragma unroll
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (thread % 32 == 0) sums[warp * kMaxChannels + c] = sum;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = member; i < n; i += threads) {
    const int x = x0 + i % width, y = y0 + i / width;
#pragma unroll 1
    for (int c = 0; c < part.channels; c++) {
      bool filtered = false;
      int v = unfiltered(p, part, x, y, c, &filtered);
      if (filtered) {
        uint32_t sum = 0;
        for (int w = 0; w < warps; w++) sum += sums[(warp / warps * warps + w) * kMaxChannels + c];
        v = static_cast<int>(mosaic_mean(sum, static_cast<uint32_t>(n)));
      }
      write_sample(part, x, y, c, v);
    }
  }
}

// Sample: of dense planes; void: any format, sample by sample.
template <typename Sample>
__global__ void __launch_bounds__(kMosaicThreads, 3) mosaic_kernel(const __grid_constant__ MosaicParams p) {
  const MosaicTile tile = locate_mosaic_tile(p);
  if constexpr (std::is_void_v<Sample>)
    filter_samples(p, tile);
  else
    MosaicThread<Sample>(p, tile).run();
}

}  // namespace cudaconv::mosaic
