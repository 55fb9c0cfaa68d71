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
// A thread has kRows rows of results, each of kChunk neighbouring u8x4s. It goes away from the middle row and adds the
// rows above and below. For each result it then has the extremum of a window one column wide, and as high as it has
// come. At the end of each rectangle this extremum joins the extremum of the wider rectangles. The joined extremum is
// then widened, from neighbouring threads, by the difference in width to the next rectangle. All rectangles share these
// steps. In the example:
//
//       widen(widen(height 0, 1) | height 1, 1) | height 2
//
// A widening by w is a sequence of maxima of three samples up to w apart. Rows as wide as the rows before are only
// added.
//
// Threads side by side hold neighbouring chunks of a row; the first and the last ones are the halo. For small elements
// these are the lanes of a warp, which works alone and widens by shuffles. A halo of larger elements would leave a warp
// no results, so these take all threads of a block, which widen in shared memory.
//
// Example, a 5x5 ellipse of RGBA: 32 lanes hold 4 pixels each, 128 of a row. The first and the last 4 are halo.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::element {

constexpr int kElementRunsRadius = 127;  // largest radius
// The largest element for a warp: its radius in pixels, less for bytes, which take more registers, and the halo on each
// side in u8x4s.
constexpr int kStripRadius = 31, kByteStripRadius = 16, kStripHalo = 32;

struct ElementRunsParams : U8x4ExtremumParams {
  int32_t halo;  // u8x4s on each side, a multiple of kChunk
  int32_t radius_y;
  // Widenings, by distance from the middle row: row[i] is the distance, apart[i] how far to widen, in u8x4s; several
  // may have the same distance. 255 ends the list.
  uint8_t row[kElementRunsRadius + 1], apart[kElementRunsRadius + 1];
};

// kLanes: threads side by side, 32 or all of the block. A row of theirs is kRuns runs of kLanes * kChunk u8x4s. Lane n
// has the n-th kChunk u8x4s of each run.
//
// Rows and blocks of warps are tuned on an H200 with kernel-bench --table=goals,formats --only="dilate ellipse".
template <typename Order_, int kLanes_, int kRuns_ = 1>
struct ElementRunsShape {
  using Order = Order_;
  static constexpr int kLanes = kLanes_, kRuns = kRuns_;
  static constexpr bool kWarps = kLanes == 32;  // warps work alone
  static constexpr int kRows = !kWarps ? 8 : kRuns == 1 ? 4 : 2, kThreads = kWarps ? 128 : kLanes;
  static constexpr int kColumns = kLanes * kChunk * kRuns;  // halo included
  static constexpr int kMinBlocks = !kWarps ? 1 : Order::kWords && kRuns == 1 ? 5 : 4;
  static constexpr size_t kBytes = kWarps ? 0 : sizeof(uint32_t) * 2 * kRows * kColumns;  // shared memory
};

// Reads and writes a lane's u8x4s. Positions count u8x4s as subtile 0 has them. kInside: all windows lie inside the
// part.
template <typename Shape, bool kInside>
class ElementRows {
 public:
  static constexpr int kRows = Shape::kRows, kRuns = Shape::kRuns;
  // Whether there are registers to read rows while those before them are compared.
  static constexpr bool kAhead = !Shape::kWarps || (kInside && kRuns == 1 && !Shape::Order::kWords);
  using Row = uint32_t[kRuns][kChunk];

  // y0: row of the part that is the lane's row 0.
  __device__ ElementRows(const ElementRunsParams &p, const Tile &tile, int y0)
      : p_(p),
        part_(tile.part),
        x0_(tile.x0 - p.halo + lane() * kChunk),
        y0_(y0),
        below_(row_at(y0 + kRows)),
        above_(row_at(y0 - 1)) {}

  __device__ static int lane() { return static_cast<int>(threadIdx.x % Shape::kLanes); }

  // Reads row y of the lane.
  __device__ void read(int y, Row &row) const {
    y += y0_;
    if constexpr (!kInside) y = border_index_no_div(p_.border, min(y, part_.height - 1 + p_.radius_y), part_.height);
    read_from(kInside || y >= 0 ? row_at(y) : nullptr, row);
  }

  // Reads the rows `height` rows below and above all rows of the lane. With kInside once for each height, from 0 on.
  __device__ void read_beside(int height, Row &below, Row &above) {
    if constexpr (kInside) {
      read_from(below_, below);
      read_from(above_, above);
      below_ += part_.source_pitch;
      above_ -= part_.source_pitch;
    } else {
      read(kRows + height, below);
      read(-1 - height, above);
    }
  }

  // Prepares what has been read for comparison.
  __device__ uint32_t compared(uint32_t u8x4) const {
    return (Shape::Order::kWords ? u8x4 & p_.sample_bits : u8x4) ^ p_.flip;
  }

  // Writes row y of the lane, without what lies in the halo, beyond the tile, or outside the frame.
  __device__ void write(int y, const Row &row) const {
    if (y0_ + y >= part_.height) return;
    with_channels([&](auto channels) { write_row<decltype(channels)::value>(y0_ + y, row); });
  }

 private:
  // Warps do bytes of four channels alone.
  template <typename Function>
  __device__ void with_channels(Function function) const {
    constexpr bool kWords = Shape::Order::kWords;
    if constexpr (!Shape::kWarps && !kWords) {
      if (part_.channels == 1) return function(std::integral_constant<int, 1>());
      if (part_.channels == 3) return function(std::integral_constant<int, 3>());
    }
    if constexpr (!Shape::kWarps || kWords)
      if (part_.channels == 2) return function(std::integral_constant<int, 2>());
    function(std::integral_constant<int, 4>());
  }

  __device__ const uint8_t *row_at(int y) const { return part_.source + y * part_.source_pitch; }

  __device__ int column(int run, int subtile) const {
    return x0_ + Shape::kLanes * kChunk * run + subtile * p_.tile.width;
  }

  // `from`: the row, nullptr for the border's value.
  __device__ void read_from(const uint8_t *from, Row &row) const {
    with_channels([&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
#pragma unroll
      for (int r = 0; r < kRuns; r++) {
        uint32_t words[subtiles(kChannels)][kChannels];
#pragma unroll
        for (int s = 0; s < subtiles(kChannels); s++) {
          const int x = column(r, s);
          if (kInside || (from && x >= 0 && x + kChunk <= part_.width))
            read_words<kChannels>(from + x * kChannels, words[s]);
          else
            read_at_edge<kChannels>(from, x, words[s]);
        }
        interleave<kChannels>(words, row[r]);
      }
    });
  }

  // Reads the words of kChunk pixels from `x` on that do not all lie in the row.
  template <int kChannels>
  __device__ void read_at_edge(const uint8_t *from, int x, uint32_t (&words)[kChannels]) const {
    const int half = step_of<Shape::Order::kWords>(p_.tile) - 1;
#pragma unroll
    for (int w = 0; w < kChannels; w++) words[w] = part_.border_word[w % word_period(kChannels)];
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
#pragma unroll
        for (int b = 0; b < kChannels; b++) value |= static_cast<uint32_t>(__ldg(at + b)) << 8 * b;
      }
#pragma unroll
      for (int w = kChannels - 1; w > 0; w--) words[w] = __funnelshift_lc(words[w - 1], words[w], 8 * kChannels);
      words[0] = kChannels == 4 ? value : words[0] << 8 * kChannels % 32 | value;
    }
  }

  template <int kChannels>
  __device__ void write_row(int y, const Row &row) const {
    uint8_t *const to = part_.target + y * part_.target_pitch;
#pragma unroll
    for (int r = 0; r < kRuns; r++) {
      const int in_tile = (Shape::kLanes * r + lane()) * kChunk - p_.halo;
      if (in_tile < 0 || in_tile >= p_.tile.width) continue;
      uint32_t words[subtiles(kChannels)][kChannels];
      deinterleave<kChannels>(row[r], words);
#pragma unroll
      for (int s = 0; s < subtiles(kChannels); s++) {
        const int x = column(r, s);
        store_bytes<kChannels>(to + x * kChannels, (part_.width - x) * kChannels, words[s]);
      }
    }
  }

  const ElementRunsParams &p_;
  const PartParams &part_;
  const int x0_, y0_;
  const uint8_t *below_, *above_;  // see read_beside()
};

// The state of a lane's results.
template <typename Rows, typename Shape>
class StackedRectangles {
 public:
  using Order = typename Shape::Order;
  using Split = typename Order::Split;
  using Row = typename Rows::Row;
  static constexpr int kRows = Shape::kRows, kRuns = Shape::kRuns;

  __device__ void start(Rows &rows) {
    Row row[kRows];
#pragma unroll
    for (int i = 0; i < kRows; i++) rows.read(i, row[i]);
    rows.read_beside(0, below_[kRows - 1], above_[kRows - 1]);
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      const auto compared = [&](int n) { return rows.compared(row[n][r][k]); };
      high_[i][r][k] = Order::split(compared(i));
      joined_[i][r][k] = {};
      below_[i][r][k] = i + 1 < kRows ? compared(i + 1) : rows.compared(below_[i][r][k]);
      above_[i][r][k] = i + 1 < kRows ? compared(kRows - 2 - i) : rows.compared(above_[i][r][k]);
    });
  }

  // Makes windows, which reach `height` rows to either side, one row higher on either side, and reads the rows that the
  // next call takes up. `last`: there is none.
  __device__ void take_up(Rows &rows, int height, bool last) {
    Row below, above;
    if (Rows::kAhead && !last) rows.read_beside(height + 1, below, above);
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      high_[i][r][k] =
          Order::greatest(high_[i][r][k], Order::split(below_[i][r][k]), Order::split(above_[kRows - 1 - i][r][k]));
    });
    if (!Rows::kAhead && !last) rows.read_beside(height + 1, below, above);
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      below_[i][r][k] = i + 1 < kRows ? below_[i + 1][r][k] : rows.compared(below[r][k]);
      above_[i][r][k] = i + 1 < kRows ? above_[i + 1][r][k] : rows.compared(above[r][k]);
    });
  }

  // The same for `more` rows, at least kRows. The rows that all windows take up are compared once.
  __device__ void take_up_many(const Rows &rows, int height, int more) {
    // Little code for both sides: the second turn takes up the rows above, with the state upside down.
#pragma unroll 1
    for (int way = 1; way >= -1; way -= 2) {
      take_up_below(rows, height, more, way);
      each<kRuns, kChunk>([&](int r, int k) {
#pragma unroll
        for (int i = 0; i < kRows; i++) {
          if (i < kRows / 2) exchange(high_[i][r][k], high_[kRows - 1 - i][r][k]);
          exchange(below_[i][r][k], above_[i][r][k]);
        }
      });
    }
  }

  // Joins the windows' extrema with the extrema of wider windows.
  __device__ void join() {
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      joined_[i][r][k] = Order::greatest(joined_[i][r][k], high_[i][r][k], high_[i][r][k]);
    });
  }

  // Joins each window with those `apart` columns to the left and to the right: for a warp at most kChunk. All threads
  // that are side by side call this together.
  __device__ void widen(int apart) {
    if constexpr (!Shape::kWarps) return widen_in_block(apart);
    if (apart == 1) return widen_by<1>();
    if (apart == 3) return widen_by<3>();
    if (apart == 2) return widen_by<2>();
    widen_by<kChunk>();
  }

  // Calls take(i, row) with the results of each row.
  template <typename Take>
  __device__ void give(Take take) {
    Row row;
    if constexpr (Shape::kWarps) {
#pragma unroll
      for (int i = 0; i < kRows; i++) {
        each<kRuns, kChunk>([&](int r, int k) { row[r][k] = Order::join(joined_[i][r][k]); });
        take(i, row);
      }
    } else {  // by way of shared memory, for little code
      const uint32_t *const words = share() + Rows::lane();
#pragma unroll 1
      for (int i = 0; i < kRows; i++) {
        each<kChunk>([&](int k) { row[0][k] = words[i * Shape::kColumns + k * Shape::kLanes]; });
        take(i, row);
      }
    }
  }

 private:
  template <typename T>
  __device__ static void exchange(T &a, T &b) {
    const T was = a;
    a = b;
    b = was;
  }

  // take_up_many() for the rows below. way = -1: they are those above.
  __device__ void take_up_below(const Rows &rows, int height, int more, int way) {
    const auto read = [&](int n, Row &row) { rows.read(way > 0 ? height + 1 + n : kRows - 2 - height - n, row); };
    Split common[kRuns][kChunk];
    each<kRuns, kChunk>([&](int r, int k) {
      common[r][k] = Order::split(below_[kRows - 1][r][k]);
      Split rest = common[r][k];
#pragma unroll
      for (int i = kRows - 2; i >= 0; i--) {
        rest = Order::greatest(rest, rest, Order::split(below_[i][r][k]));
        high_[i][r][k] = Order::greatest(high_[i][r][k], rest, rest);
      }
    });
    // below_ gets kRows rows at a time: those that all windows take up, and at the end the next ones to take up.
#pragma unroll 1
    for (int n = kRows;; n += kRows) {
      const bool shared = n < more;
#pragma unroll
      for (int i = 0; i < kRows; i++) read(shared ? min(n + i, more - 1) : more + i, below_[i]);
      each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
        below_[i][r][k] = rows.compared(below_[i][r][k]);
        if (shared) common[r][k] = Order::greatest(common[r][k], common[r][k], Order::split(below_[i][r][k]));
      });
      if (!shared) break;
    }
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      high_[i][r][k] = Order::greatest(high_[i][r][k], common[r][k], common[r][k]);
      common[r][k] = Order::greatest(common[r][k], common[r][k], Order::split(below_[i][r][k]));
    });
  }

  // widen() by shuffles.
  template <int kApart>
  __device__ void widen_by() {
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      // The kApart u8x4s before and behind the lane's own of each run. Before the first run and behind the last one
      // they are undefined, but in the halo: each widening by n invalidates n halo columns.
      uint32_t before[kRuns][kApart], behind[kRuns][kApart];
      each<kRuns, kApart>([&](int r, int k) {
        before[r][k] = from_lane<-1>(r, [&](int run) { return joined_[i][run][kChunk - kApart + k]; });
        behind[r][k] = from_lane<1>(r, [&](int run) { return joined_[i][run][k]; });
      });
#pragma unroll
      for (int r = 0; r < kRuns; r++) {
        Split wide[kChunk];
#pragma unroll
        for (int k = 0; k < kChunk; k++)
          wide[k] = Order::greatest(
              joined_[i][r][k], k < kApart ? Order::split(before[r][k]) : joined_[i][r][k - kApart],
              k + kApart < kChunk ? joined_[i][r][k + kApart] : Order::split(behind[r][k + kApart - kChunk]));
#pragma unroll
        for (int k = 0; k < kChunk; k++) joined_[i][r][k] = wide[k];
      }
    }
  }

  // of(run) of the next lane, kWay = 1, or of the one before, kWay = -1. The lanes at the ends of a run have them in
  // the next run or the one before.
  template <int kWay, typename Of>
  __device__ static uint32_t from_lane(int run, Of of) {
    const int lane = Rows::lane();
    uint32_t own = Order::join(of(run));
    if (const int other = run + kWay; other >= 0 && other < kRuns)
      if (lane == (kWay > 0 ? 0 : 31)) own = Order::join(of(other));
    return __shfl_sync(0xffffffffu, own, (lane + kWay) & 31);
  }

  // Writes the extrema to shared memory and returns where. Element k of a chunk is kLanes words behind element k - 1,
  // so that threads use all banks.
  __device__ const uint32_t *share() {
    constexpr int kLanes = Shape::kLanes, kColumns = Shape::kColumns;
    half_ = kRows * kColumns - half_;
    uint32_t *const words = shared_memory<uint32_t>() + half_;
    each<kRows, kChunk>(
        [&](int i, int k) { words[i * kColumns + k * kLanes + Rows::lane()] = Order::join(joined_[i][0][k]); });
    return words;
  }

  // widen() in shared memory. Beyond the first and the last column results are undefined, but in the halo.
  __device__ void widen_in_block(int apart) {
    constexpr int kLanes = Shape::kLanes, kColumns = Shape::kColumns;
    const int lane = Rows::lane();
    const uint32_t *const words = share();
    __syncthreads();
    each<kChunk>([&](int k) {
      const auto beside = [&](int by) {
        const int column = min(max(lane * kChunk + k + by, 0), kColumns - 1);
        return words + column % kChunk * kLanes + column / kChunk;
      };
      const uint32_t *const left = beside(-apart), *const right = beside(apart);
      each<kRows>([&](int i) {
        joined_[i][0][k] =
            Order::greatest(joined_[i][0][k], Order::split(left[i * kColumns]), Order::split(right[i * kColumns]));
      });
    });
  }

  Split high_[kRows][kRuns][kChunk], joined_[kRows][kRuns][kChunk];
  // below_: the next rows to take up below, from the first result's window on downwards; above_: those above, from the
  // last result's window on upwards.
  Row below_[kRows], above_[kRows];
  int half_ = 0;  // where the half of shared memory begins that is written: two take turns
};

template <typename Shape, bool kInside>
__device__ inline void filter_runs(const ElementRunsParams &p, const Tile &tile, int y0) {
  using Rows = ElementRows<Shape, kInside>;
  Rows rows(p, tile, y0);
  StackedRectangles<Rows, Shape> results;
  results.start(rows);
  for (int height = 0, next = 0;;) {
    const bool last = height == p.radius_y;
    if (last || p.row[next] == height) results.join();
#pragma unroll 1
    for (; p.row[next] == height; next++) results.widen(p.apart[next]);
    if (last) break;
    const int more = min(static_cast<int>(p.row[next]), p.radius_y) - height;
    if (!Shape::kWarps && more >= 2 * Shape::kRows) {
      results.take_up_many(rows, height, more);
      height += more;
    } else {
      results.take_up(rows, height, height + 1 == p.radius_y);
      height++;
    }
  }
  results.give([&](int i, typename Rows::Row &row) {
    typename Rows::Row original;
    if (tile.part.has_unfiltered) rows.read(i, original);
    each<Shape::kRuns, kChunk>([&](int r, int k) {
      row[r][k] ^= p.flip;
      if (tile.part.has_unfiltered)
        row[r][k] = blend_channels(tile.part, row[r][k], original[r][k], k % step_of<Shape::Order::kWords>(p.tile));
    });
    rows.write(i, row);
  });
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, kBlocksAtOnce<Shape>)
    element_runs_kernel(const __grid_constant__ ElementRunsParams p) {
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  const int y0 = tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / Shape::kLanes)) * Shape::kRows;
  if constexpr (Shape::kWarps) {
    const int first = tile.x0 - p.halo, last_subtile = (subtiles(part.channels) - 1) * p.tile.width;
    const int beside = max(p.radius_y, 1);  // start() reads a row on either side, also of windows that are one row high
    // Apart, so that the code that most warps run is little: it is limited by the instructions that can be fetched.
    if (first >= 0 && first + Shape::kColumns + last_subtile <= part.width && y0 >= beside &&
        y0 + Shape::kRows + beside <= part.height)
      return filter_runs<Shape, true>(p, tile, y0);
  }
  filter_runs<Shape, false>(p, tile, y0);
}

}  // namespace cudaconv::element
