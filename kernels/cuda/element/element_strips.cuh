// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by the structuring elements of element_runs.cuh, of a radius up to 31, as the same unions of
// rectangles. The bytes are the same.
//
// Each warp works alone: neighbouring lanes hold neighbouring u8x4s in registers, and rectangles are widened by
// shuffles. The halo takes some of a warp's columns, so element_runs.cuh does wide elements.
//
// Example, a 5x5 ellipse of RGBA, one run: 32 lanes hold 4 pixels each, 128 of a row. The first and the last 4 are
// halo.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::element {

constexpr int kStripRadius = 31, kStripHalo = 32;  // of the largest element: in pixels, on each side in u8x4s
// The same for 8-bit samples, which take more registers: blocks do a cross of 63x63 in half the time.
constexpr int kByteStripRadius = 16;
constexpr int kWideningBits = 3;  // see ElementStripsParams

struct ElementStripsParams : U8x4ExtremumParams {
  int32_t halo;  // u8x4s on each side, a multiple of kChunk
  int32_t radius_y;
  // By distance from the middle row: the widenings that follow there, each by 1 ... kChunk u8x4s, in kWideningBits
  // bits, the first in the lowest ones. The largest element has nine at one distance.
  uint32_t widenings[kStripRadius + 1];
};

// A warp has kRows rows of results, and kRuns runs of 32 * kChunk u8x4s of each row. Lane n has the n-th kChunk u8x4s
// of each run. Pixels of 8-bit samples have four bytes. Pixels of 16-bit samples have two, four or eight; eight bytes
// are two u8x4s.
//
// Tuned on an H200 with kernel-bench --table=goals,formats --only="dilate ellipse".
template <typename Order_, int kRuns_>
struct ElementStripShape {
  using Order = Order_;
  static constexpr int kRuns = kRuns_, kRows = kRuns == 1 ? 4 : 2;
  static constexpr int kColumns = 32 * kChunk * kRuns;  // halo included
  static constexpr int kWarps = 4, kMinBlocks = Order::kWords && kRuns == 1 ? 5 : 4;
};

// Reads and writes a lane's u8x4s. Positions count u8x4s as subtile 0 has them. kInside: all windows lie inside the
// part.
template <typename Shape, bool kInside>
class StripRows {
 public:
  static constexpr int kRows = Shape::kRows, kRuns = Shape::kRuns;
  // Whether there are registers to read rows while those before them are compared.
  static constexpr bool kAhead = kInside && kRuns == 1 && !Shape::Order::kWords;
  using Row = uint32_t[kRuns][kChunk];

  // y0: row of the part that is row 0 of the strip.
  __device__ StripRows(const ElementStripsParams &p, const Tile &tile, int y0)
      : p_(p),
        part_(tile.part),
        x0_(tile.x0 - p.halo + static_cast<int>(threadIdx.x % 32) * kChunk),
        y0_(y0),
        below_(row_at(y0 + kRows)),
        above_(row_at(y0 - 1)) {}

  // Reads row y of the strip.
  __device__ void read(int y, Row &row) const {
    y += y0_;
    if constexpr (!kInside) y = border_index_no_div(p_.border, min(y, part_.height - 1 + p_.radius_y), part_.height);
    read_from(kInside || y >= 0 ? row_at(y) : nullptr, row);
  }

  // Reads the rows `height` rows below and above all rows of the strip: once for each height, from 0 on.
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

  // Writes row y of the strip, without what lies in the halo, beyond the tile, or outside the frame.
  __device__ void write(int y, const Row &row) const {
    if (y0_ + y >= part_.height) return;
    with_channels([&](auto channels) { write_row<decltype(channels)::value>(y0_ + y, row); });
  }

 private:
  template <typename Function>
  __device__ void with_channels(Function function) const {
    if (!Shape::Order::kWords || part_.channels == 4) return function(std::integral_constant<int, 4>());
    if constexpr (Shape::Order::kWords) function(std::integral_constant<int, 2>());
  }

  __device__ const uint8_t *row_at(int y) const { return part_.source + y * part_.source_pitch; }

  __device__ int column(int run, int subtile) const { return x0_ + 32 * kChunk * run + subtile * p_.tile.width; }

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
    for (int w = 0; w < kChannels; w++) words[w] = part_.border_word[w % 2];
    if (!from || (p_.border == Border::Constant && (x < 0 || x >= part_.width))) return;
    const int width = part_.width >> half;
#pragma unroll 1
    for (int i = kChunk - 1; i >= 0; i--) {  // little code: pixels are pushed in from the last one on
      // min(): no result needs pixels farther to the right.
      const int pixel = border_index_no_div(p_.border, min((x + i) >> half, width - 1 + p_.halo), width);
      uint32_t value = part_.border_word[i & half];
      if (pixel >= 0) {
        const uint8_t *const at = from + (pixel << half | (i & half)) * kChannels;
        value = 0;
#pragma unroll
        for (int b = 0; b < kChannels; b++) value |= static_cast<uint32_t>(__ldg(at + b)) << 8 * b;
      }
#pragma unroll
      for (int w = kChannels - 1; w > 0; w--) words[w] = __funnelshift_lc(words[w - 1], words[w], 8 * kChannels);
      words[0] = kChannels == 4 ? value : __byte_perm(words[0], value, 0x1054);
    }
  }

  template <int kChannels>
  __device__ void write_row(int y, const Row &row) const {
    uint8_t *const to = part_.target + y * part_.target_pitch;
    const int in_run = static_cast<int>(threadIdx.x % 32) * kChunk;
#pragma unroll
    for (int r = 0; r < kRuns; r++) {
      const int in_tile = 32 * kChunk * r + in_run - p_.halo;
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

  const ElementStripsParams &p_;
  const PartParams &part_;
  const int x0_, y0_;
  const uint8_t *below_, *above_;  // see read_beside()
};

// The state of a lane's results.
template <typename Rows, typename Shape>
class StripOfRectangles {
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

  // Joins the windows' extrema with the extrema of wider windows.
  __device__ void join() {
    each<kRows, kRuns, kChunk>([&](int i, int r, int k) {
      joined_[i][r][k] = Order::greatest(joined_[i][r][k], high_[i][r][k], high_[i][r][k]);
    });
  }

  // Joins each window with those `apart` columns to the left and to the right, at most kChunk.
  __device__ void widen(uint32_t apart) {
    if (apart == 1) return widen_by<1>();
    if (apart == 3) return widen_by<3>();
    if (apart == 2) return widen_by<2>();
    widen_by<kChunk>();
  }

  __device__ void result(int i, Row &row) const {
    each<kRuns, kChunk>([&](int r, int k) { row[r][k] = Order::join(joined_[i][r][k]); });
  }

 private:
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
    const int lane = static_cast<int>(threadIdx.x % 32);
    uint32_t own = Order::join(of(run));
    if (const int other = run + kWay; other >= 0 && other < kRuns)
      if (lane == (kWay > 0 ? 0 : 31)) own = Order::join(of(other));
    return __shfl_sync(0xffffffffu, own, (lane + kWay) & 31);
  }

  Split high_[kRows][kRuns][kChunk], joined_[kRows][kRuns][kChunk];
  // below_: the next rows to take up below, from the first result's window on downwards; above_: those above, from the
  // last result's window on upwards.
  Row below_[kRows], above_[kRows];
};

template <typename Shape, bool kInside>
__device__ inline void filter_strip(const ElementStripsParams &p, const Tile &tile, int y0) {
  using Rows = StripRows<Shape, kInside>;
  Rows rows(p, tile, y0);
  StripOfRectangles<Rows, Shape> results;
  results.start(rows);
  for (int height = 0;; height++) {
    uint32_t widenings = p.widenings[height];
    const bool last = height == p.radius_y;
    if (widenings || last) results.join();
#pragma unroll 1
    for (; widenings; widenings >>= kWideningBits) results.widen(widenings & ((1 << kWideningBits) - 1));
    if (last) break;
    results.take_up(rows, height, height + 1 == p.radius_y);
  }
#pragma unroll
  for (int i = 0; i < Shape::kRows; i++) {
    typename Rows::Row row, original;
    results.result(i, row);
    if (tile.part.has_unfiltered) rows.read(i, original);
    each<Shape::kRuns, kChunk>([&](int r, int k) {
      row[r][k] ^= p.flip;
      if (tile.part.has_unfiltered)
        row[r][k] = blend_channels(tile.part, row[r][k], original[r][k], k % step_of<Shape::Order::kWords>(p.tile));
    });
    rows.write(i, row);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, kBlocksAtOnce<Shape>)
    element_strips_kernel(const __grid_constant__ ElementStripsParams p) {
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  const int y0 = tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / 32)) * Shape::kRows;
  const int first = tile.x0 - p.halo, last_subtile = (subtiles(part.channels) - 1) * p.tile.width;
  const int beside = max(p.radius_y, 1);  // start() reads a row on either side, also of windows that are one row high
  // Apart, so that the one that most warps run is little code: it is limited by the instructions that can be fetched.
  if (first >= 0 && first + Shape::kColumns + last_subtile <= part.width && y0 >= beside &&
      y0 + Shape::kRows + beside <= part.height)
    filter_strip<Shape, true>(p, tile, y0);
  else
    filter_strip<Shape, false>(p, tile, y0);
}

}  // namespace cudaconv::element
