// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians of windows of any size, in one launch, by histograms: the time hardly depends on the size. The bytes are
// those that median() of methods/operations.cuh makes.
//
// A block goes down the rows of a tile, channel by channel. Shared memory has a histogram of 256 bins for each column
// of samples that windows reach, over the rows of a window. From row to row one sample enters each column and one
// leaves.
//
// Each warp has some neighbouring pixels of the row. It moves from pixel to pixel with the window's histogram in
// registers, eight bins a lane. It adds the histogram of the entering column and subtracts the leaving column's. Prefix
// sums over the lanes then tell which lane has the median. The warp goes back along the next row: on the way down only
// one row enters the window and one leaves it.
//
// Example, 31x31: the median is sample 480 of 961, counted from 0. Say that bins 0 to 95 have 450 samples, and bins 96
// to 103, of lane 12, have 60. Then the median is sample 30 of lane 12.
//
// Samples of more than 8 bits are counted by their upper 8 bits. The bins that contained the latest medians also have
// histograms of the lower bits. Entering and leaving samples update these, or they are made anew. The samples of each
// column are kept sorted, so that bisection finds the samples of a bin.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"

namespace cudaconv::median {

constexpr int kLargestHistogramMedian = 127;  // side of a window

// Tuned on an H200 with kernel-bench --only="median 15,median 31,median 127".
template <bool kWords_>
struct HistogramMedianShape {
  static constexpr bool kWords = kWords_;                                 // samples of more than 8 bits
  static constexpr int kWarps = kWords ? 16 : 8, kThreads = 32 * kWarps;  // of a block, or half as many
  static constexpr int kPixels = kWords ? 16 : 32;                        // of a row for each warp
  static constexpr int kMinBlocks = kWords ? 2 : 3;
  // Columns of samples for which a thread updates histograms, the same with half as many threads.
  static constexpr int kOwnColumns = (kWarps * kPixels + kLargestHistogramMedian - 1 + kThreads - 1) / kThreads;
  static constexpr int kLists = 2;  // histograms of lower bits of each warp
};

constexpr int kMedianBinWords = 128;  // a window's histogram has 16 bits a bin

struct HistogramMedianParams : FrameParams {
  int32_t width, height;  // of a window
  int32_t tile_height;
  int32_t columns;  // columns of samples that a tile's windows reach
  int32_t pitch;    // pitch of the sorted samples, if any, in samples: an odd number of words
};

// A block's arrays in shared memory, in this order.
template <typename Shape>
struct HistogramMedianMemory {
  uint8_t *columns;           // p.columns histograms
  uint32_t *windows;          // window histograms, by warp
  uint32_t *lists;            // histograms of lower bits, by warp
  uint16_t *enters, *leaves;  // samples of a row that enter and leave
  uint16_t *results;          // by warp
  uint16_t *sorted;           // the columns' samples in rising order, row after row
  CUDACONV_HOST_DEVICE static constexpr int even(int columns) { return (columns + 7) / 8 * 8; }
  CUDACONV_HOST_DEVICE static constexpr size_t list_words(int warps) {
    return Shape::kWords ? warps * Shape::kLists * kMedianBinWords : 0;
  }

  __device__ HistogramMedianMemory(uint8_t *memory, int count) {
    const int warps = static_cast<int>(blockDim.x / 32);
    columns = memory;
    windows = reinterpret_cast<uint32_t *>(columns + count * 256);
    lists = windows + warps * kMedianBinWords;
    enters = reinterpret_cast<uint16_t *>(lists + list_words(warps));
    leaves = enters + even(count);
    results = leaves + even(count);
    sorted = results + warps * Shape::kPixels;
  }
  static size_t bytes(int warps, int count, int height, int pitch) {
    return static_cast<size_t>(count) * 256 + sizeof(uint32_t) * (warps * kMedianBinWords + list_words(warps)) +
           sizeof(uint16_t) * (2 * even(count) + warps * Shape::kPixels + (Shape::kWords ? height * pitch : 0));
  }
};

// Eight bins of a histogram, 8n to 8n + 7, with 16 bits each, in pairs: 0 and 2, 1 and 3, 4 and 6, 5 and 7.
struct MedianBins {
  uint32_t pair[4];

  // word(): the word of a histogram in memory that contains a bin; one(): the count of one sample in that word.
  __device__ static int word(int bin) { return bin / 8 * 4 + (bin >> 1 & 2) + (bin & 1); }
  __device__ static uint32_t one(int bin) { return 1u << (bin << 3 & 16); }

  __device__ void load(const uint32_t *histogram, int lane) { load_words<4>(histogram + 4 * lane, pair); }
  __device__ void store(uint32_t *histogram, int lane) const { store_words<4>(histogram + 4 * lane, pair); }
  // Borrows from one half to the other cancel out by the end of a sum.
  __device__ void change(uint2 enters, uint2 leaves) {
    pair[0] += even(enters.x) - even(leaves.x);
    pair[1] += odd(enters.x) - odd(leaves.x);
    pair[2] += even(enters.y) - even(leaves.y);
    pair[3] += odd(enters.y) - odd(leaves.y);
  }
  __device__ uint32_t total() const {
    const uint32_t sum = pair[0] + pair[1] + pair[2] + pair[3];
    return (sum & 0xffff) + (sum >> 16);
  }
  // Finds the bin, of these eight, that contains the sample of this rank; `rank` becomes the rank within the bin.
  __device__ int find(int &rank) const {
    const uint32_t lower = pair[0] + pair[1];
    const int four = static_cast<int>((lower & 0xffff) + (lower >> 16));
    const bool upper = rank >= four;
    if (upper) rank -= four;
    const uint32_t a = upper ? pair[2] : pair[0], b = upper ? pair[3] : pair[1];
    const int two = static_cast<int>((a + b) & 0xffff);
    const bool second = rank >= two;
    if (second) rank -= two;
    const int first = static_cast<int>(second ? a >> 16 : a & 0xffff);
    const bool last = rank >= first;
    if (last) rank -= first;
    return (upper ? 4 : 0) + (second ? 2 : 0) + (last ? 1 : 0);
  }

 private:
  __device__ static uint32_t even(uint32_t counts) { return counts & 0x00ff00ffu; }
  __device__ static uint32_t odd(uint32_t counts) { return __byte_perm(counts, 0, 0x4341); }
};

// Filters one channel of a tile.
template <typename Shape>
class HistogramMedian {
 public:
  static constexpr bool kWords = Shape::kWords;

  __device__ HistogramMedian(const HistogramMedianParams &p, const Tile &tile, uint8_t *memory, int c)
      : p_(p),
        part_(tile.part),
        channel_(tile.part.channel[c]),
        y0_(tile.y0),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(warp_uniform(static_cast<int>(threadIdx.x) / 32)),
        memory_(memory, p.columns),
        low_bits_(kWords ? channel_.depth - 8 : 0),
        mask_((1 << channel_.depth) - 1),
        window_(memory_.windows + warp_ * kMedianBinWords),
        list_(memory_.lists + warp_ * Shape::kLists * kMedianBinWords),
        x0_(tile.x0),
        c_(c) {
    const int radius = p.width / 2;
#pragma unroll
    for (int i = 0; i < Shape::kOwnColumns; i++) {
      const int column = static_cast<int>(threadIdx.x + i * blockDim.x);
      const int x = min(tile.x0 - radius + column, part_.width - 1 + radius);
      offset_[i] = -1;
      if (column >= p.columns) continue;
      const int from = border_index_no_div(p.border, x, part_.width);
      if (from >= 0) offset_[i] = from * part_.channels + c;
    }
  }

  __device__ void run() {
    const int rows = min(p_.tile_height, part_.height - y0_), radius = p_.height / 2;
    count_first_rows();
    uint16_t enters[Shape::kOwnColumns], leaves[Shape::kOwnColumns];
    __syncthreads();
    const bool works = x0_ + warp_ * Shape::kPixels < part_.width;
    // First column of the window.
    int column = warp_ * Shape::kPixels;
    if (works) add_columns(column);
#pragma unroll 1
    for (int y = 0; y < rows; y++) {
      const bool more = y + 1 < rows;
      if (more) read_rows(y0_ + y + 1 + radius, y0_ + y - radius, enters, leaves);
      if (works) {
        if constexpr (kWords)
          filter_words(column, y % 2 ? -1 : 1);
        else
          filter_bytes(column, y % 2 ? -1 : 1);
        column += y % 2 ? 1 - Shape::kPixels : Shape::kPixels - 1;
        write_results(y0_ + y);
      }
      if (!more) break;
      __syncthreads();
      change_columns(enters, leaves);
      __syncthreads();
      if (works) go_down(column);
    }
  }

 private:
  __device__ int read(int row, int offset) const {
    if (row < 0 || offset < 0) return channel_.border_value;
    const uint8_t *from = part_.source + row * part_.source_pitch;
    if constexpr (kWords)
      return __ldg(reinterpret_cast<const uint16_t *>(from) + offset) >> channel_.shift & mask_;
    else
      return __ldg(from + offset);
  }

  // Counts the thread's columns of the first window's rows. No other thread counts these columns.
  __device__ void count_first_rows() {
    uint4 *const words = reinterpret_cast<uint4 *>(memory_.columns);
    for (int i = static_cast<int>(threadIdx.x); i < p_.columns * 16; i += static_cast<int>(blockDim.x))
      words[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < p_.height; j++) {
      const int row = border_index_no_div(p_.border, y0_ - p_.height / 2 + j, part_.height);
#pragma unroll
      for (int i = 0; i < Shape::kOwnColumns; i++) {
        const int column = static_cast<int>(threadIdx.x + i * blockDim.x);
        const int v = read(row, offset_[i]);
        if (column >= p_.columns) continue;
        memory_.columns[column * 256 + (v >> low_bits_)]++;
        if constexpr (kWords) memory_.sorted[j * p_.pitch + column] = static_cast<uint16_t>(v);
      }
    }
    if constexpr (kWords)
      for (int column = static_cast<int>(threadIdx.x); column < p_.columns; column += static_cast<int>(blockDim.x))
        sort(column);
  }

  // Sorts a column with Batcher's network: all threads do the same exchanges.
  __device__ void sort(int column) {
    uint16_t *const v = memory_.sorted + column;
#pragma unroll 1
    for (int p = 1; p < p_.height; p *= 2)
#pragma unroll 1
      for (int k = p; k >= 1; k /= 2)
#pragma unroll 1
        for (int j = k % p; j + k < p_.height; j += 2 * k)
#pragma unroll 1
          for (int i = j; i < min(j + k, p_.height - k); i++) {
            if (i / (2 * p) != (i + k) / (2 * p)) continue;
            uint16_t *const low = v + i * p_.pitch, *const high = low + k * p_.pitch;
            const uint16_t a = *low, b = *high;
            *low = min(a, b);
            *high = max(a, b);
          }
  }

  // How many samples of a column are less than `than`.
  __device__ int count_less(int column, int than) const {
    const uint16_t *const v = memory_.sorted + column - p_.pitch;
    int count = 0;
#pragma unroll
    for (int step = (kLargestHistogramMedian + 1) / 2; step; step /= 2)
      if (count + step <= p_.height && v[(count + step) * p_.pitch] < than) count += step;
    return count;
  }

  // Replaces a sample of a sorted column: the samples between the old and the new one's place move by one.
  __device__ void replace(int column, int leaves, int enters) {
    int from = count_less(column, leaves);
    const int to = enters > leaves ? count_less(column, enters) - 1 : count_less(column, enters);
    const int step = to > from ? p_.pitch : -p_.pitch;
    uint16_t *v = memory_.sorted + from * p_.pitch + column;
    constexpr int kTogether = 4;  // moves whose loads do not wait for one another
#pragma unroll 1
    for (int left = abs(to - from); left > 0; left -= kTogether) {
      uint16_t next[kTogether];
      each<kTogether>([&](int i) { next[i] = v[i < left ? (i + 1) * step : 0]; });
#pragma unroll
      for (int i = 0; i < kTogether; i++) {
        if (i >= left) break;
        *v = next[i];
        v += step;
      }
    }
    *v = static_cast<uint16_t>(enters);
  }

  __device__ void read_rows(int enters_y, int leaves_y, uint16_t (&enters)[Shape::kOwnColumns],
                            uint16_t (&leaves)[Shape::kOwnColumns]) const {
    const int in = border_index_no_div(p_.border, enters_y, part_.height);
    const int out = border_index_no_div(p_.border, leaves_y, part_.height);
#pragma unroll
    for (int i = 0; i < Shape::kOwnColumns; i++) {
      enters[i] = static_cast<uint16_t>(read(in, offset_[i]));
      leaves[i] = static_cast<uint16_t>(read(out, offset_[i]));
    }
  }

  __device__ void change_columns(const uint16_t (&enters)[Shape::kOwnColumns],
                                 const uint16_t (&leaves)[Shape::kOwnColumns]) {
#pragma unroll
    for (int i = 0; i < Shape::kOwnColumns; i++) {
      const int column = static_cast<int>(threadIdx.x + i * blockDim.x);
      if (column >= p_.columns) continue;
      uint8_t *const counts = memory_.columns + column * 256;
      counts[leaves[i] >> low_bits_]--;
      counts[enters[i] >> low_bits_]++;
      memory_.enters[column] = enters[i];
      memory_.leaves[column] = leaves[i];
      if constexpr (kWords) replace(column, leaves[i], enters[i]);
    }
  }

  __device__ uint2 counts_of(int column) const {
    return reinterpret_cast<const uint2 *>(memory_.columns)[column * 32 + lane_];
  }

  __device__ void add_columns(int column) {
#pragma unroll
    for (uint32_t &pair : bins_.pair) pair = 0;
#pragma unroll 4
    for (int i = 0; i < p_.width; i++) bins_.change(counts_of(column + i), make_uint2(0, 0));
  }

  // Moves from the window that begins at `column` to the one beside it.
  __device__ void go(int column, int step) {
    bins_.change(counts_of(column + (step > 0 ? p_.width : -1)), counts_of(column + (step > 0 ? 0 : p_.width - 1)));
  }

  // Moves to the window below.
  __device__ void go_down(int column) {
    bins_.store(window_, lane_);
    __syncwarp();
    for (int i = lane_; i < p_.width; i += 32) {
      const int in = memory_.enters[column + i], out = memory_.leaves[column + i];
      count(window_, in >> low_bits_, false);
      count(window_, out >> low_bits_, true);
      if constexpr (kWords)
        for (int n = 0; n < Shape::kLists; n++) {
          if (at_[n] != column) continue;
          if (in >> low_bits_ == upper_[n]) count_lower(n, in, false);
          if (out >> low_bits_ == upper_[n]) count_lower(n, out, true);
        }
    }
    __syncwarp();
    bins_.load(window_, lane_);
    if constexpr (kWords)
      for (int n = 0; n < Shape::kLists; n++)
        if (at_[n] != column) upper_[n] = -1;
  }

  // Adds a sample to a histogram, or removes it. Atomic, since other lanes may change the other half of the word.
  __device__ static void count(uint32_t *histogram, int bin, bool leaves) {
    const uint32_t one = MedianBins::one(bin);
    atomicAdd(histogram + MedianBins::word(bin), leaves ? 0u - one : one);
  }
  __device__ void count_lower(int n, int v, bool leaves) {
    count(list_ + n * kMedianBinWords, v & ((1 << low_bits_) - 1), leaves);
  }

  // Computes the row's medians, two at a time, which share the sums over lanes.
  __device__ void filter_bytes(int column, int step) {
    const int half = p_.width * p_.height / 2;
    uint16_t *const results = memory_.results + warp_ * Shape::kPixels;
    int x = step > 0 ? 0 : Shape::kPixels - 1;
#pragma unroll 2
    for (int i = 0; i < Shape::kPixels; i += 2) {
      if (i) go(column - step, step);
      const MedianBins first = bins_;
      go(column, step);
      const uint32_t totals = first.total() | bins_.total() << 16;
      const uint32_t before = sum_to_lane(totals, lane_) - totals;
      put(first, totals & 0xffff, half - static_cast<int>(before & 0xffff), results + x);
      put(bins_, totals >> 16, half - static_cast<int>(before >> 16), results + x + step);
      column += 2 * step;
      x += 2 * step;
    }
  }
  // Writes the sample of this rank, if the lane's bins contain it.
  __device__ void put(const MedianBins &bins, uint32_t total, int rank, uint16_t *result) const {
    const bool has = static_cast<uint32_t>(rank) < total;
    const int bin = bins.find(rank);
    if (has) *result = static_cast<uint16_t>(lane_ * 8 + bin);
  }

  __device__ void filter_words(int column, int step) {
    uint16_t *const results = memory_.results + warp_ * Shape::kPixels;
    int x = step > 0 ? 0 : Shape::kPixels - 1;
#pragma unroll 1
    for (int i = 0; i < Shape::kPixels; i++) {
      if (i) go(column - step, step);
      int rank = p_.width * p_.height / 2;
      const int upper = find_in_warp(bins_, rank), list = update_list(upper, column);
      MedianBins lower;
      lower.load(list_ + list * kMedianBinWords, lane_);
      const int low = find_in_warp(lower, rank);
      if (lane_ == 0) results[x] = static_cast<uint16_t>(upper << low_bits_ | low);
      column += step;
      x += step;
    }
  }
  // The bin that contains the sample of this rank, the same in all lanes; `rank` becomes the rank within the bin.
  __device__ int find_in_warp(const MedianBins &bins, int &rank) const {
    const uint32_t total = bins.total();
    int own = rank - static_cast<int>(sum_to_lane(total, lane_) - total);
    const unsigned has = __ballot_sync(0xffffffffu, static_cast<uint32_t>(own) < total);
    const int lane = __ffs(static_cast<int>(has)) - 1, bin = lane_ * 8 + bins.find(own);
    rank = __shfl_sync(0xffffffffu, own, lane);
    return __shfl_sync(0xffffffffu, bin, lane);
  }

  // Brings a list of the lower bits of the window's samples with these upper bits up to date, and returns its number.
  // Lists are only valid within a row.
  __device__ int update_list(int upper, int column) {
    int n = upper == upper_[0] ? 0 : upper == upper_[1] ? 1 : 1 - last_;
    last_ = n;
    uint32_t *const list = list_ + n * kMedianBinWords;
    const int at = n ? at_[1] : at_[0], away = column - at;
    if (upper != (n ? upper_[1] : upper_[0]) || abs(away) * 8 >= p_.width) {
      __syncwarp();
      reinterpret_cast<uint4 *>(list)[lane_] = make_uint4(0, 0, 0, 0);
      __syncwarp();
#pragma unroll 1
      for (int i = lane_; i < p_.width; i += 32) count_bin(n, upper, column + i);
    } else {
#pragma unroll 1
      for (int i = at; i < column; i++) {
        count_column(n, upper, i + p_.width, false);
        count_column(n, upper, i, true);
      }
#pragma unroll 1
      for (int i = at; i > column; i--) {
        count_column(n, upper, i - 1, false);
        count_column(n, upper, i - 1 + p_.width, true);
      }
    }
    (n ? upper_[1] : upper_[0]) = upper;
    (n ? at_[1] : at_[0]) = column;
    __syncwarp();
    return n;
  }
  // Counts the samples of a column in a bin, by one lane; other lanes count other columns.
  __device__ void count_bin(int n, int upper, int column) {
    const int first = count_less(column, upper << low_bits_), count = memory_.columns[column * 256 + upper];
    const uint16_t *v = memory_.sorted + first * p_.pitch + column;
#pragma unroll 1
    for (int i = 0; i < count; i++, v += p_.pitch) count_lower(n, *v, false);
  }
  // Adds or removes a column's samples with these upper bits, by the whole warp.
  __device__ void count_column(int n, int upper, int column, bool leaves) {
#pragma unroll 4
    for (int j = lane_; j < p_.height; j += 32) {
      const int v = memory_.sorted[j * p_.pitch + column];
      if (v >> low_bits_ == upper) count_lower(n, v, leaves);
    }
  }

  __device__ void write_results(int y) const {
    __syncwarp();
    const int x = x0_ + warp_ * Shape::kPixels + lane_;
    if (lane_ < Shape::kPixels && x < part_.width)
      write_sample(part_, x, y, c_, memory_.results[warp_ * Shape::kPixels + lane_]);
    __syncwarp();
  }

  const HistogramMedianParams &p_;
  const PartParams &part_;
  const ChannelParams &channel_;
  const int y0_, lane_, warp_;
  const HistogramMedianMemory<Shape> memory_;
  const int low_bits_, mask_;
  uint32_t *const window_, *const list_;
  const int x0_, c_;
  int offset_[Shape::kOwnColumns];  // offsets of the thread's columns in a row, in samples; -1: the border value
  MedianBins bins_;
  // For each list: its upper bits, and the first column of the window that it is for.
  int upper_[Shape::kLists] = {-1, -1}, at_[Shape::kLists] = {}, last_ = 0;
};

// Writes a channel of a tile that is not filtered.
template <typename Shape>
__device__ inline void put_unfiltered(const HistogramMedianParams &p, const Tile &tile, int c) {
  const PartParams &part = tile.part;
  const int threads = static_cast<int>(blockDim.x), width = threads / 32 * Shape::kPixels;
  const int bottom = min(tile.y0 + p.tile_height, part.height), end = min(tile.x0 + width, part.width);
  const ChannelParams &channel = part.channel[c];
  const ChannelReader copied(part, part.copy, part.copy_pitch, c);
#pragma unroll 1
  for (int y = tile.y0; y < bottom; y++)
#pragma unroll 1
    for (int x = tile.x0 + static_cast<int>(threadIdx.x); x < end; x += threads)
      write_sample(part, x, y, c, channel.action == Action::Copy ? copied.at(x, y) : channel.fill);
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks)
    histogram_median_kernel(const __grid_constant__ HistogramMedianParams p) {
  const Tile tile = locate_tile(p, p.tile_height);
#pragma unroll 1
  for (int c = 0; c < tile.part.channels; c++) {
    if (tile.part.channel[c].action != Action::Filter) {
      put_unfiltered<Shape>(p, tile, c);
      continue;
    }
    HistogramMedian<Shape>(p, tile, shared_memory<uint8_t>(), c).run();
    __syncthreads();
  }
}

}  // namespace cudaconv::median
