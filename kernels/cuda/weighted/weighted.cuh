// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for weighted means: sum(c * a * p) / sum(c * a) over a window, with coefficients c, alpha a and samples
// p, exact and rounded once. plan/weighted.h has the rounding; filter_samples() is the plain form. It also does
// bilaterals with alpha=weighted, whose coefficients depend on the samples, as BilateralAlphaOp of cpu/bilateral.h
// does.
//
// WeightedTile does separable masks, on tiles of 32 x 32 pixels, some rows at a time:
//
//    1. all threads load the rows' pixels, halo included, and store products of colour and alpha in shared memory
//    2. each thread sums four neighbouring windows of a row, and stores these sums there, too
//    3. each thread adds the row sums, times the column's factors, to the sums of its four pixels, one below the other
//
// Example, a 3x3 mask of RGBA: a tile has 34 rows of 34 pixels, halo included. A pixel with red 200 and alpha 100 is
// stored as four numbers: 20000 in slot 0 for red, two more colours, and 100 in slot 3 for alpha.
//
// Both take any frame. Means of pixels of four bytes have faster instances: pixels are read and written as words, and
// row sums take 32 bits. Where window sums have at most 24 bits, single precision is exact, and all is done in it.
#pragma once

#include "cuda/device/rounded_means.cuh"
#include "cuda/device/range_params.h"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "plan/weighted.h"

namespace cudaconv::weighted {

constexpr int kMaxWeights = 3072;  // for two lines of 1501 weights, and the zeros around them

struct AlphaParams : FrameParams {
  // For each part of the plan: the number of the part that holds its alpha, and where it lies there.
  struct Alpha {
    int32_t holder;
    AlphaGrid grid;
  } alpha[kMaxParts];
  int32_t alpha_channel;
  int32_t width, height, radius_x, radius_y;  // of the window
};

// Sum: the type of sums of windows, float, uint64_t or Uint128.
template <typename Sum>
struct WeightedParams : AlphaParams {
  using Weight =
      std::conditional_t<std::is_same_v<Sum, float>, float, std::conditional_t<sizeof(Sum) == 8, uint32_t, uint64_t>>;
  bool separable, is_bilateral;
  // Bilaterals of RGB: the table of the colours, and, by part, where the colours of its pixels are.
  bool is_rgb;
  uint8_t colours;
  struct {
    uint8_t part, channel;
  } colour[kMaxParts][kColours];
  int32_t batch;  // rows of a tile that are processed at a time
  Sum all;        // the sum of the mask
  union {
    // The mask row by row; or its row and its column, the row with kRowZeros zeros before and behind it, the column
    // with kColumnZeros.
    Weight weight[kMaxWeights];
    struct {
      Weight weight[kMaxMaskValues];
      RangeParams range;
    } bilateral;
  };
};
static_assert(sizeof(WeightedParams<Uint128>) <= 32764, "parameters of a kernel");

constexpr int kWeightedWidth = 32, kWeightedHeight = 32, kWeightedThreads = 256;
constexpr int kWeightedWarps = kWeightedThreads / 32;
constexpr int kRowPixels = 4, kColumnPixels = kWeightedHeight / kWeightedWarps;  // of a thread
constexpr int kRowZeros = kRowPixels - 1, kColumnZeros = kColumnPixels - 1;
static_assert(kRowPixels * kWeightedWarps == kWeightedWidth, "a warp of each row sums up kRowPixels windows");

// Pitches in pixels of rows in shared memory: of products, and of row sums. They are odd, so that lanes that read one
// below the other use all banks.
CUDACONV_HOST_DEVICE constexpr int product_pitch(int radius_x) {
  return kWeightedWidth + 2 * radius_x + 1;
}
constexpr int kRowSumPitch = kWeightedWidth + 1;

// Reads the pixels of a part with their alpha, which another part may hold. A pixel has a slot for each channel and, if
// another part holds its alpha, one more for that.
class WeightedReader {
 public:
  __device__ WeightedReader(const AlphaParams &p, const PartParams &part) : p_(p), part_(part) {}

  // The slot that contains alpha.
  __device__ int alpha_slot() const { return holder_.number == part_.number ? p_.alpha_channel : part_.channels; }

  // The position that stands for one that may lie outside; -1 for the border value.
  __device__ int column(int x) const { return border_index(p_.border, x, part_.width); }
  __device__ int row(int y) const { return border_index(p_.border, y, part_.height); }

  __device__ uint32_t alpha(int x, int y) const {
    if (x < 0 || y < 0) return holder_.channel[p_.alpha_channel].border_value;
    return static_cast<uint32_t>(
        alpha_at(own_.grid, x, y, [&](int column, int row) { return alpha_.at(column, row); }));
  }
  // A pixel of four bytes.
  __device__ uint32_t word(int x, int y) const {
    if (x < 0 || y < 0) return part_.border_word[0];
    return *reinterpret_cast<const uint32_t *>(part_.source + y * part_.source_pitch + 4 * x);
  }
  __device__ uint32_t sample(int x, int y, int c) const { return sample(part_, x, y, c); }
  // From another part of the same size.
  __device__ static uint32_t sample(const PartParams &part, int x, int y, int c) {
    if (x < 0 || y < 0) return part.channel[c].border_value;
    return static_cast<uint32_t>(ChannelReader(part, part.source, part.source_pitch, c).at(x, y));
  }

 private:
  const AlphaParams &p_;
  const PartParams &part_;
  const AlphaParams::Alpha &own_ = p_.alpha[part_.number];
  const PartParams &holder_ = find_part(p_, own_.holder);
  const ChannelReader alpha_ = ChannelReader(holder_, holder_.source, holder_.source_pitch, p_.alpha_channel);
};

constexpr int kSamplesWidth = 32, kSamplesHeight = 8;  // a block's tile

// Adds the samples of channel c in the window around a pixel, times their weights, to n, and the weights to d. Alpha
// counts if `weighted`.
__device__ inline void add_window(const WeightedParams<Uint128> &p, const PartParams &part,
                                  const WeightedReader &reader, int x, int y, int c, bool weighted, Uint128 *n,
                                  Uint128 *d) {
  const RangeParams &range = p.bilateral.range;
  const RangeParams::Table &table = range.table[part.channel[c].range];
  // The samples whose differences are added: of all colours, or of the channel alone.
  const bool colours = p.is_rgb && part.channel[c].range == p.colours;
  const auto compared = [&](int k, int from_x, int from_y) {
    if (!colours) return static_cast<int>(reader.sample(from_x, from_y, c));
    const auto &place = p.colour[part.number][k];
    return static_cast<int>(WeightedReader::sample(find_part(p, place.part), from_x, from_y, place.channel));
  };
#pragma unroll 1
  for (int j = 0; j < p.height; j++) {
    const uint64_t *const weight = p.weight + (p.separable ? kRowZeros : j * p.width);
    const int from_y = reader.row(y + j - p.radius_y);
    Uint128 row_n = 0, row_d = 0;
#pragma unroll 1
    for (int i = 0; i < p.width; i++) {
      const int from_x = reader.column(x + i - p.radius_x);
      const uint32_t v = reader.sample(from_x, from_y, c);
      Uint128 of_sample = weight[i];
      if (p.is_bilateral) {
        int difference = 0;
#pragma unroll 1
        for (int k = 0; k < (colours ? kColours : 1); k++)
          difference += abs(compared(k, from_x, from_y) - compared(k, x, y));
        of_sample *= range.weight(table, difference);
      }
      if (weighted) of_sample *= reader.alpha(from_x, from_y);
      row_n += of_sample * v;
      row_d += of_sample;
    }
    const uint64_t factor = p.separable ? p.weight[p.width + 2 * kRowZeros + kColumnZeros + j] : 1;
    *n += row_n * factor;
    *d += row_d * factor;
  }
}

// Filters a tile sample by sample.
__device__ inline void filter_samples(const WeightedParams<Uint128> &p) {
  const Tile tile = locate_tile(p, kSamplesHeight);
  const PartParams &part = tile.part;
  const int x = tile.x0 + static_cast<int>(threadIdx.x % 32), y = tile.y0 + static_cast<int>(threadIdx.x / 32);
  if (x >= part.width || y >= part.height) return;
  const WeightedReader reader(p, part);
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    bool filtered = false;
    int v = unfiltered(p, part, x, y, c, &filtered);
    if (filtered) {
      Uint128 n = 0, d = 0;
      // Colours are weighted by alpha first. Where it is 0 in the whole window, they are means without alpha.
#pragma unroll 1
      for (int weighted = c != reader.alpha_slot(); weighted >= 0 && d == 0; weighted--)
        add_window(p, part, reader, x, y, c, weighted, &n, &d);
      v = round_mean(n, d, inverse_of(d), p.sum_gain, p.rounding[part.channel[c].rounding]);
    }
    write_sample(part, x, y, c, v);
  }
}

// The slots of a pixel in shared memory, aligned so that they are read and written at once.
constexpr int kWeightedSlots = 4;
template <typename T>
struct alignas(16) WeightedSlots {
  T value[kWeightedSlots];
};

// Sums along rows have 32 bits only for pixels of four bytes, and for means without gain or bias.
template <typename RowSum>
constexpr bool kInWords = std::is_same_v<RowSum, float> || std::is_same_v<RowSum, uint32_t>;

// A thread's work in the kernel for tiles.
template <typename Sum, typename RowSum>
class WeightedTile {
  static constexpr int kSlots = kWeightedSlots;
  static constexpr int kLoads = 3;  // of a thread before it uses the first
  static constexpr bool kWords = kInWords<RowSum>;
  using Weight = typename WeightedParams<Sum>::Weight;
  using Product = std::conditional_t<kWords, RowSum, uint32_t>;
  using Products = WeightedSlots<Product>;
  using RowSums = WeightedSlots<RowSum>;

 public:
  __device__ WeightedTile(const WeightedParams<Sum> &p, const Tile &tile)
      : p_(p), part_(tile.part), x0_(tile.x0), y0_(tile.y0) {}

  // If alpha is 0 in a whole window, its colours are means without alpha: tiles with such windows are done twice.
  __device__ void run() {
#pragma unroll 1
    for (int weighted = 1; weighted >= 0; weighted--) {
      Sum sum[kColumnPixels][kSlots] = {};
      bool others = false;
      if (part_.has_filtered) add_up(weighted, sum);
#pragma unroll(kWords ? kColumnPixels : 1)
      for (int r = 0; r < kColumnPixels; r++) {
        const int x = x0_ + lane_, y = y0_ + warp_ * kColumnPixels + r;
        if (x >= part_.width || y >= part_.height) break;
        Sum pixel[kSlots];
#pragma unroll
        for (int s = 0; s < kSlots; s++) {
          pixel[s] = sum[0][s];
#pragma unroll
          for (int i = 1; i < kColumnPixels; i++) pixel[s] = i == r ? sum[i][s] : pixel[s];
        }
        const Sum weight = pick(pixel, slot_);
        if ((weight != 0) != weighted)
          others = true;
        else if constexpr (kWords)
          write_word(x, y, pixel, weight);
        else
          write(x, y, pixel, weight);
      }
      if (!__syncthreads_or(others)) break;
    }
  }

 private:
  // The sum in a slot. It is found by comparisons, because an index would put the sums into local memory.
  template <typename T>
  __device__ static T pick(const T (&sum)[kSlots], int slot) {
    T v = sum[0];
#pragma unroll
    for (int s = 1; s < kSlots; s++) v = s == slot ? sum[s] : v;
    return v;
  }
  // By halves: nvcc 12.4 never ends when it compiles the other form for numbers of 128 bits.
  __device__ static Uint128 pick(const Uint128 (&sum)[kSlots], int slot) {
    uint64_t low[kSlots], high[kSlots];
    each<kSlots>([&](int s) {
      low[s] = static_cast<uint64_t>(sum[s]);
      high[s] = static_cast<uint64_t>(sum[s] >> 64);
    });
    return Uint128{pick(high, slot)} << 64 | pick(low, slot);
  }

  __device__ void add_up(bool weighted, Sum (&sum)[kColumnPixels][kSlots]) {
    const int rows = min(kWeightedHeight, part_.height - y0_) + 2 * p_.radius_y;
#pragma unroll 1
    for (int first = 0; first < rows; first += p_.batch) {
      const int count = min(p_.batch, rows - first);
      __syncthreads();  // the previous batch has been read
      if constexpr (kWords)
        load_words(first, count, weighted);
      else
        load(first, count, weighted);
      __syncthreads();
      add_rows(count);
      __syncthreads();
      add_columns(first, count, sum);
    }
  }

  // Stores products of rows `first` ... first + count - 1 of the tile with its halo.
  __device__ void load(int first, int count, bool weighted) {
    const int columns = kWeightedWidth + 2 * p_.radius_x;
#pragma unroll 1
    for (int b = warp_; b < count; b += kWeightedWarps) {
      const int y = reader_.row(y0_ - p_.radius_y + first + b);
#pragma unroll 1
      for (int i = lane_; i < columns; i += 32)
        products_[b * product_pitch(p_.radius_x) + i] = multiply(reader_.column(x0_ - p_.radius_x + i), y, weighted);
    }
  }

  __device__ void load_words(int first, int count, bool weighted) {
    const int columns = kWeightedWidth + 2 * p_.radius_x, pixels = count * columns;
    const int left = x0_ - p_.radius_x, top = y0_ - p_.radius_y + first;
    const bool inside = left >= 0 && top >= 0 && left + columns <= part_.width && top + count <= part_.height;
    const uint32_t reciprocal = 0xffffffffu / static_cast<uint32_t>(columns) + 1;
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x); begin < pixels; begin += kLoads * kWeightedThreads) {
      uint32_t word[kLoads] = {};
      int row[kLoads] = {};
      each<kLoads>([&](int k) {
        const int i = begin + k * kWeightedThreads;
        row[k] = static_cast<int>(high_product(static_cast<uint32_t>(i), reciprocal));
        const int x = left + i - row[k] * columns, y = top + row[k];
        if (i < pixels) word[k] = reader_.word(inside ? x : reader_.column(x), inside ? y : reader_.row(y));
      });
      each<kLoads>([&](int k) {
        const int i = begin + k * kWeightedThreads;  // rows have one place more than pixels, see product_pitch()
        if (i < pixels) products_[i + row[k]] = multiply(word[k], weighted);
      });
    }
  }

  __device__ Products multiply(uint32_t word, bool weighted) const {
    const auto byte = [&](int s) { return static_cast<Product>(word >> 8 * s & 0xff); };
    Product sample[kSlots];
    each<kSlots>([&](int s) { sample[s] = byte(s); });
    const Product weight = weighted ? pick(sample, slot_) : 1;
    Products to;
    each<kSlots>([&](int s) { to.value[s] = s == slot_ ? sample[s] : sample[s] * weight; });
    return to;
  }

  __device__ Products multiply(int x, int y, bool weighted) const {
    const uint32_t alpha = reader_.alpha(x, y), weight = weighted ? alpha : 1;
    Products to;
#pragma unroll
    for (int s = 0; s < kSlots; s++) {
      uint32_t v = 0;
      if (s == slot_)
        v = alpha;
      else if (s < part_.channels)
        v = weight * reader_.sample(x, y, s);
      to.value[s] = static_cast<Product>(v);
    }
    return to;
  }

  // Sums the rows of a batch, a lane each. If there are fewer rows than lanes, a warp does several groups of windows.
  __device__ void add_rows(int count) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < count * kWeightedWarps; i += kWeightedThreads) {
      const int b = i % count, x = i / count * kRowPixels;
      RowSums sum[kRowPixels] = {};
      const Products *from = products_ + b * product_pitch(p_.radius_x) + x;
      Weight weight[kRowPixels] = {};
#pragma unroll 4
      for (int i = 0; i < p_.width + kRowZeros; i++) {
#pragma unroll
        for (int k = kRowPixels - 1; k > 0; k--) weight[k] = weight[k - 1];
        weight[0] = p_.weight[kRowZeros + i];
        const Products v = *from++;
        each<kSlots, kRowPixels>(
            [&](int s, int k) { sum[k].value[s] += RowSum{v.value[s]} * static_cast<RowSum>(weight[k]); });
      }
      each<kRowPixels>([&](int k) { row_sums_[b * kRowSumPitch + x + k] = sum[k]; });
    }
  }

  // Adds the row sums of a batch to the sums of the thread's pixels whose windows contain them.
  __device__ void add_columns(int first, int count, Sum (&sum)[kColumnPixels][kSlots]) {
    const Weight *const weight = p_.weight + p_.width + 2 * kRowZeros + kColumnZeros;
    const int top = warp_ * kColumnPixels;
    const int begin = max(top - first, 0), end = min(top + kColumnPixels + 2 * p_.radius_y - first, count);
    if (begin >= end) return;
    Weight factor[kColumnPixels];
    each<kColumnPixels - 1>([&](int r) { factor[r] = weight[first + begin - top - 1 - r]; });
#pragma unroll(kWords ? 4 : 1)
    for (int b = begin; b < end; b++) {
      const RowSums v = row_sums_[b * kRowSumPitch + lane_];
#pragma unroll
      for (int r = kColumnPixels - 1; r >= 0; r--) {
        factor[r] = kWords && r ? factor[r - 1] : weight[first + b - top - r];
#pragma unroll
        for (int s = 0; s < kSlots; s++) sum[r][s] += Sum{factor[r]} * v.value[s];
      }
    }
  }

  // Writes a pixel; with weight 0, the mean without alpha.
  __device__ void write(int x, int y, const Sum (&sum)[kSlots], Sum weight) const {
#pragma unroll 1
    for (int c = 0; c < part_.channels; c++) {
      bool filtered = false;
      int v = unfiltered(p_, part_, x, y, c, &filtered);
      if (filtered) {
        const Sum d = c == slot_ || weight == 0 ? p_.all : weight;
        v = round_mean(pick(sum, c), d, inverse_of(d), p_.sum_gain, p_.rounding[part_.channel[c].rounding]);
      }
      write_sample(part_, x, y, c, v);
    }
  }

  // The same for pixels of four bytes. Kept ones are put back later.
  __device__ void write_word(int x, int y, const Sum (&sum)[kSlots], Sum weight) const {
    const Sum of_colours = weight == 0 ? p_.all : weight;
    Sum d[kSlots];
    each<kSlots>([&](int s) { d[s] = s == slot_ ? p_.all : of_colours; });
    uint32_t word = rounded_means(sum, d);
    if (part_.has_unfiltered)
      word =
          blend_channels(part_, word, *reinterpret_cast<const uint32_t *>(part_.copy + y * part_.copy_pitch + 4 * x));
    *reinterpret_cast<uint32_t *>(part_.target + y * part_.target_pitch + 4 * x) = word;
  }

  const WeightedParams<Sum> &p_;
  const PartParams &part_;
  const WeightedReader reader_ = WeightedReader(p_, part_);
  const int slot_ = reader_.alpha_slot(), x0_, y0_;
  const int lane_ = static_cast<int>(threadIdx.x % 32), warp_ = warp_uniform(static_cast<int>(threadIdx.x / 32));
  RowSums *const row_sums_ = shared_memory<RowSums>();
  Products *const products_ = reinterpret_cast<Products *>(row_sums_ + kRowSumPitch * p_.batch);
};

// Blocks of a multiprocessor at the same time.
template <typename Sum, typename RowSum>
constexpr int kWeightedBlocks = kInWords<RowSum> ? sizeof(Sum) == 4 ? 5 : 2 : 1;

// RowSum: void for sample by sample.
template <typename Sum, typename RowSum>
__global__ void __launch_bounds__(kWeightedThreads, (kWeightedBlocks<Sum, RowSum>))
    weighted_kernel(const __grid_constant__ WeightedParams<Sum> p) {
  if constexpr (std::is_void_v<RowSum>) {
    filter_samples(p);
  } else {
    const Tile tile = locate_tile(p, kWeightedHeight);
    WeightedTile<Sum, RowSum>(p, tile).run();
  }
}

}  // namespace cudaconv::weighted
