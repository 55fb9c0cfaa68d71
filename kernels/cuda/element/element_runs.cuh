// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions, in one launch, by structuring elements whose rows are runs centred on the middle column that
// never get longer away from the middle row: ellipses, crosses, rectangles, of radius up to 127.
//
// Computes the largest sample under the element, as extremum() of methods/operations.cuh does. For erosions samples
// are complemented before and after. order.cuh compares samples.
//
//       . . x . .   this element is the union of         x x x x x        . . . . .        . . . . .
//       . x x x .   rectangles about its middle, each    . . . . .        . x x x .        . . x . .
//       x x x x x   as wide as some of its rows and      . . . . .   and  . x x x .   and  . . x . .
//       . x x x .   as high as it is there:              . . . . .        . x x x .        . . x . .
//       . . x . .                                                         . . . . .        . . x . .
//
// A thread has kRunsRows rows of results, each of kChunk neighbouring u8x4s. It goes away from the middle row and adds
// the rows above and below. For each result it then has the extremum of a window one column wide, and as high as it has
// come. At the end of each rectangle this extremum joins the extremum of the wider rectangles. The joined extremum is
// then widened, from neighbouring threads, by the difference in width to the next rectangle. All rectangles share these
// steps. In the example:
//
//       widen(widen(height 0, 1) | height 1, 1) | height 2
//
// A widening by w is a sequence of maxima of three samples up to w apart. Rows as wide as the rows before are only
// added.
//
// The threads of a block hold neighbouring chunks of the same rows and widen in shared memory. The first and the last
// threads have the halo.
//
// Example, a 65x65 ellipse of RGBA: 256 threads hold 4 pixels each, 1024 of a row. The first and the last 32 are halo.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::element {

constexpr int kElementRunsRadius = 127;  // largest radius
// Of a block: threads, rows of results, u8x4s of a row with its halo, and bytes of shared memory.
constexpr int kRunsThreads = 256, kRunsRows = 8, kRunsColumns = kRunsThreads * kChunk;
constexpr size_t kRunsBytes = sizeof(uint32_t) * 2 * kRunsRows * kRunsColumns;

struct ElementRunsParams : U8x4ExtremumParams {
  int32_t halo;  // u8x4s on each side, a multiple of kChunk
  int32_t radius_y;
  // Widenings, by distance from the middle row: row[i] is the distance, apart[i] how far to widen, in u8x4s; several
  // may have the same distance. 255 ends the list.
  uint8_t row[kElementRunsRadius + 1], apart[kElementRunsRadius + 1];
};

// Reads and writes a thread's u8x4s. Positions count u8x4s as subtile 0 has them.
template <typename Order>
class ElementRows {
 public:
  using Row = uint32_t[kChunk];

  __device__ ElementRows(const ElementRunsParams &p, const Tile &tile)
      : p_(p), part_(tile.part), x0_(tile.x0 - p.halo + static_cast<int>(threadIdx.x) * kChunk), y0_(tile.y0) {}

  // Reads row y of the tile.
  __device__ void read(int y, Row &row) const {
    y = border_index_no_div(p_.border, min(y0_ + y, part_.height - 1 + p_.radius_y), part_.height);
    const uint8_t *const from = y < 0 ? nullptr : part_.source + y * part_.source_pitch;
    with_channels([&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      uint32_t words[subtiles(kChannels)][kChannels];
#pragma unroll
      for (int s = 0; s < subtiles(kChannels); s++) {
        const int x = column(s);
        if (from && x >= 0 && x + kChunk <= part_.width)
          read_words<kChannels>(from + x * kChannels, words[s]);
        else
          read_at_edge<kChannels>(from, x, words[s]);
      }
      interleave<kChannels>(words, row);
    });
  }

  // Reads the rows `height` rows below and above all rows of the tile.
  __device__ void read_beside(int height, Row &below, Row &above) const {
    read(kRunsRows + height, below);
    read(-1 - height, above);
  }

  // Prepares what has been read for comparison.
  __device__ uint32_t compared(uint32_t u8x4) const {
    return (Order::kWords ? u8x4 & p_.sample_bits : u8x4) ^ p_.flip;
  }

  // Writes row y of the tile, without what lies in the halo, beyond the tile, or outside the frame.
  __device__ void write(int y, const Row &row) const {
    const int in_tile = static_cast<int>(threadIdx.x) * kChunk - p_.halo;
    if (y0_ + y >= part_.height || in_tile < 0 || in_tile >= p_.tile.width) return;
    uint8_t *const to = part_.target + (y0_ + y) * part_.target_pitch;
    with_channels([&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      uint32_t words[subtiles(kChannels)][kChannels];
      deinterleave<kChannels>(row, words);
#pragma unroll
      for (int s = 0; s < subtiles(kChannels); s++) {
        const int x = column(s);
        store_bytes<kChannels>(to + x * kChannels, (part_.width - x) * kChannels, words[s]);
      }
    });
  }

 private:
  template <typename Function>
  __device__ void with_channels(Function function) const {
    if constexpr (!Order::kWords) {
      if (part_.channels == 1) return function(std::integral_constant<int, 1>());
      if (part_.channels == 3) return function(std::integral_constant<int, 3>());
    }
    if (part_.channels == 2) return function(std::integral_constant<int, 2>());
    function(std::integral_constant<int, 4>());
  }

  __device__ int column(int subtile) const {
    return x0_ + subtile * p_.tile.width;
  }

  // Reads the words of kChunk pixels from `x` on that do not all lie in the row.
  template <int kChannels>
  __device__ void read_at_edge(const uint8_t *from, int x, uint32_t (&words)[kChannels]) const {
    const int half = step_of<Order::kWords>(p_.tile) - 1;
    each<kChannels>([&](int w) { words[w] = part_.border_word[w % word_period(kChannels)]; });
    if (!from || (p_.border == Border::Constant && (x < 0 || x >= part_.width))) return;
    const int width = part_.width >> half;
#pragma unroll 1
    for (int i = kChunk - 1; i >= 0; i--) {  // little code: pixels are pushed in from the last one on
      // min(): no result needs pixels farther to the right.
      const int pixel = border_index_no_div(p_.border, min((x + i) >> half, width - 1 + p_.halo), width);
      uint32_t value = part_.border_word[i & half] & 0xffffffffu >> (32 - 8 * kChannels);
      if (pixel >= 0) {
        const uint8_t *const at = from + (pixel << half | (i & half)) * kChannels;
        value = 0;
        each<kChannels>([&](int b) { value |= static_cast<uint32_t>(__ldg(at + b)) << 8 * b; });
      }
#pragma unroll
      for (int w = kChannels - 1; w > 0; w--) words[w] = __funnelshift_lc(words[w - 1], words[w], 8 * kChannels);
      words[0] = kChannels == 4 ? value : words[0] << 8 * kChannels % 32 | value;
    }
  }

  const ElementRunsParams &p_;
  const PartParams &part_;
  const int x0_, y0_;
};

// The state of a thread's results.
template <typename Order>
class StackedRectangles {
 public:
  using Split = typename Order::Split;
  using Rows = ElementRows<Order>;
  using Row = typename Rows::Row;

  __device__ void start(const Rows &rows) {
    Row row[kRows];
    each<kRows>([&](int i) { rows.read(i, row[i]); });
    rows.read_beside(0, below_[kRows - 1], above_[kRows - 1]);
    each<kRows, kChunk>([&](int i, int k) {
      const auto compared = [&](int n) { return rows.compared(row[n][k]); };
      high_[i][k] = Order::split(compared(i));
      joined_[i][k] = {};
      below_[i][k] = i + 1 < kRows ? compared(i + 1) : rows.compared(below_[i][k]);
      above_[i][k] = i + 1 < kRows ? compared(kRows - 2 - i) : rows.compared(above_[i][k]);
    });
  }

  // Makes windows, which reach `height` rows to either side, one row higher on either side, and reads the rows that the
  // next call takes up. `last`: there is none.
  __device__ void take_up(const Rows &rows, int height, bool last) {
    Row below, above;
    if (!last) rows.read_beside(height + 1, below, above);
    each<kRows, kChunk>([&](int i, int k) {
      high_[i][k] = Order::greatest(high_[i][k], Order::split(below_[i][k]), Order::split(above_[kRows - 1 - i][k]));
    });
    each<kRows, kChunk>([&](int i, int k) {
      below_[i][k] = i + 1 < kRows ? below_[i + 1][k] : rows.compared(below[k]);
      above_[i][k] = i + 1 < kRows ? above_[i + 1][k] : rows.compared(above[k]);
    });
  }

  // The same for `more` rows, at least kRows. The rows that all windows take up are compared once.
  __device__ void take_up_many(const Rows &rows, int height, int more) {
    // Little code for both sides: the second turn takes up the rows above, with the state upside down.
#pragma unroll 1
    for (int way = 1; way >= -1; way -= 2) {
      take_up_below(rows, height, more, way);
      each<kChunk>([&](int k) {
#pragma unroll
        for (int i = 0; i < kRows; i++) {
          if (i < kRows / 2) exchange(high_[i][k], high_[kRows - 1 - i][k]);
          exchange(below_[i][k], above_[i][k]);
        }
      });
    }
  }

  // Joins the windows' extrema with the extrema of wider windows.
  __device__ void join() {
    each<kRows, kChunk>(
        [&](int i, int k) { joined_[i][k] = Order::greatest(joined_[i][k], high_[i][k], high_[i][k]); });
  }

  // Joins each window with those `apart` columns to the left and to the right. Beyond the first and the last column
  // results are undefined, but in the halo. All threads call this together.
  __device__ void widen(int apart) {
    const int lane = static_cast<int>(threadIdx.x);
    const uint32_t *const words = share();
    __syncthreads();
    each<kChunk>([&](int k) {
      const auto beside = [&](int by) {
        const int column = min(max(lane * kChunk + k + by, 0), kRunsColumns - 1);
        return words + column % kChunk * kRunsThreads + column / kChunk;
      };
      const uint32_t *const left = beside(-apart), *const right = beside(apart);
      each<kRows>([&](int i) {
        joined_[i][k] =
            Order::greatest(joined_[i][k], Order::split(left[i * kRunsColumns]), Order::split(right[i * kRunsColumns]));
      });
    });
  }

  // Calls take(i, row) with the results of each row, by way of shared memory, for little code.
  template <typename Take>
  __device__ void give(Take take) {
    Row row;
    const uint32_t *const words = share() + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < kRows; i++) {
      each<kChunk>([&](int k) { row[k] = words[i * kRunsColumns + k * kRunsThreads]; });
      take(i, row);
    }
  }

 private:
  static constexpr int kRows = kRunsRows;

  template <typename T>
  __device__ static void exchange(T &a, T &b) {
    const T was = a;
    a = b;
    b = was;
  }

  // take_up_many() for the rows below. way = -1: they are those above.
  __device__ void take_up_below(const Rows &rows, int height, int more, int way) {
    const auto read = [&](int n, Row &row) { rows.read(way > 0 ? height + 1 + n : kRows - 2 - height - n, row); };
    Split common[kChunk];
    each<kChunk>([&](int k) {
      common[k] = Order::split(below_[kRows - 1][k]);
      Split rest = common[k];
#pragma unroll
      for (int i = kRows - 2; i >= 0; i--) {
        rest = Order::greatest(rest, rest, Order::split(below_[i][k]));
        high_[i][k] = Order::greatest(high_[i][k], rest, rest);
      }
    });
    // below_ gets kRows rows at a time: those that all windows take up, and at the end the next ones to take up.
#pragma unroll 1
    for (int n = kRows;; n += kRows) {
      const bool shared = n < more;
      each<kRows>([&](int i) { read(shared ? min(n + i, more - 1) : more + i, below_[i]); });
      each<kRows, kChunk>([&](int i, int k) {
        below_[i][k] = rows.compared(below_[i][k]);
        if (shared) common[k] = Order::greatest(common[k], common[k], Order::split(below_[i][k]));
      });
      if (!shared) break;
    }
    each<kRows, kChunk>([&](int i, int k) {
      high_[i][k] = Order::greatest(high_[i][k], common[k], common[k]);
      common[k] = Order::greatest(common[k], common[k], Order::split(below_[i][k]));
    });
  }

  // Writes the extrema to shared memory and returns where. Element k of a chunk is kRunsThreads words behind element k
  // - 1, so that threads use all banks.
  __device__ const uint32_t *share() {
    half_ = kRows * kRunsColumns - half_;
    uint32_t *const words = shared_memory<uint32_t>() + half_;
    each<kRows, kChunk>(
        [&](int i, int k) { words[i * kRunsColumns + k * kRunsThreads + threadIdx.x] = Order::join(joined_[i][k]); });
    return words;
  }

  Split high_[kRows][kChunk], joined_[kRows][kChunk];
  // below_: the next rows to take up below, from the first result's window on downwards; above_: those above, from the
  // last result's window on upwards.
  Row below_[kRows], above_[kRows];
  int half_ = 0;  // where the half of shared memory begins that is written: two take turns
};

template <typename Order>
__global__ void __launch_bounds__(kRunsThreads) element_runs_kernel(const __grid_constant__ ElementRunsParams p) {
  const Tile tile = locate_tile(p, p.tile.height);
  const ElementRows<Order> rows(p, tile);
  StackedRectangles<Order> results;
  results.start(rows);
  for (int height = 0, next = 0;;) {
    const bool last = height == p.radius_y;
    if (last || p.row[next] == height) results.join();
#pragma unroll 1
    for (; p.row[next] == height; next++) results.widen(p.apart[next]);
    if (last) break;
    const int more = min(static_cast<int>(p.row[next]), p.radius_y) - height;
    if (more >= 2 * kRunsRows) {
      results.take_up_many(rows, height, more);
      height += more;
    } else {
      results.take_up(rows, height, height + 1 == p.radius_y);
      height++;
    }
  }
  results.give([&](int i, typename ElementRows<Order>::Row &row) {
    typename ElementRows<Order>::Row original;
    if (tile.part.has_unfiltered) rows.read(i, original);
    each<kChunk>([&](int k) {
      row[k] ^= p.flip;
      if (tile.part.has_unfiltered)
        row[k] = blend_channels(tile.part, row[k], original[k], k % step_of<Order::kWords>(p.tile));
    });
    rows.write(i, row);
  });
}

}  // namespace cudaconv::element
