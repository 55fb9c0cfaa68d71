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
// A thread has a column of kRows results. It goes away from the middle row and adds the rows above and below. For each
// result it then has the extremum of a window one column wide, and as high as it has come. At the end of each rectangle
// this extremum joins the extremum of the wider rectangles. The joined extremum is then widened, from neighbouring
// threads, by the difference in width to the next rectangle. All rectangles share these steps. In the example:
//
//       widen(widen(height 0, 1) | height 1, 1) | height 2
//
// A widening by w is a sequence of maxima of three samples up to w apart. Rows as wide as the rows before are only
// added. Of many rows of one width, the rows that all results share are added once.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::element {

constexpr int kElementRunsRadius = 127;  // largest radius

struct ElementRunsParams : U8x4ExtremumParams {
  int32_t halo;  // threads before the first result's thread
  int32_t radius_y;
  // Widenings, by distance from the middle row: row[i] is the distance, apart[i] how far to widen, in u8x4s; several
  // may have the same distance. 255 ends the list.
  uint8_t row[kElementRunsRadius + 1], apart[kElementRunsRadius + 1];
};

// Tuned on an H200 with kernel-bench --table=goals,formats --only="dilate ellipse".
struct ElementRunsTuning {
  static constexpr int kThreads = 512, kMostThreads = 1024;  // of a block, which is alone on a multiprocessor
  static constexpr int kWords = 8192;                        // words of results of a block
  static constexpr int kAtOnce = 2;                          // rows that are added together
};

// A block is a row of kThreads columns of kRows results; some columns on either side are for the halo. kPixels: u8x4s
// of all parts are pixels as they lie in memory, of four bytes or eight. kStep: u8x4s of a pixel.
template <typename Order_, int kStep_, bool kPixels_>
struct ElementRunsShape {
  using Order = Order_;
  using Tuning = ElementRunsTuning;
  static constexpr bool kPixels = kPixels_;
  static constexpr int kStep = kStep_, kThreads = kPixels ? Tuning::kMostThreads : Tuning::kThreads;
  static constexpr int kRows = Tuning::kWords / kThreads, kMinBlocks = 1;
  static constexpr int kAtOnce = Tuning::kAtOnce;
  static constexpr size_t kBytes = sizeof(uint32_t) * 2 * kRows * kThreads;
};

// Reads a column of u8x4s of a part from global memory, with subtiles from all of them.
template <typename Shape>
class U8x4Column {
 public:
  using Order = typename Shape::Order;

  // `column` counts u8x4s of the tile's row.
  __device__ U8x4Column(const ElementRunsParams &p, const Tile &tile, int column)
      : p_(p),
        part_(tile.part),
        y0_(tile.y0),
        rows_inside_(tile.y0 >= p.radius_y && tile.y0 + Shape::kRows + p.radius_y <= tile.part.height) {
    constexpr int kHalf = Shape::kStep - 1;
    const int x = tile.x0 + column, width = part_.width >> kHalf, channels = Shape::kPixels ? 4 : part_.channels;
#pragma unroll
    for (int s = 0; s < kMost; s++) {
      // min(): no result needs pixels farther to the right.
      const int at = min((x + s * p.tile.width) >> kHalf, width - 1 + p.halo);
      const int from = border_index_no_div(p.border, at, width);
      offset_[s] = from < 0 ? -1 : (from << kHalf | (x & kHalf)) * channels;
    }
    const uint32_t border = part_.border_word[x & kHalf];
    border_ = channels == 1 ? (border & 0xff) * 0x01010101u : channels == 2 ? (border & 0xffff) * 0x10001u : border;
  }

  // Calls function(at), where at(y) returns the u8x4 `y` rows below the tile's first row, prepared for comparison. If
  // all rows of the block lie in the part, at() of whole pixels skips the border, since that would take as long as the
  // comparisons.
  template <typename Function>
  __device__ void read(Function function) const {
    const auto compared = [this](uint32_t u8x4) { return (Order::kWords ? u8x4 & p_.sample_bits : u8x4) ^ p_.flip; };
    if (Shape::kPixels && rows_inside_) return function([&](int y) { return compared(read_row(y0_ + y)); });
    function([&](int y) {
      const int bottom = part_.height - 1 + p_.radius_y;
      const int row = border_index_no_div(p_.border, min(y0_ + y, bottom), part_.height);
      return compared(row < 0 ? border_ : read_row(row));
    });
  }

 private:
  static constexpr int kMost = Shape::kPixels ? 1 : Order::kWords ? 2 : 4;  // most subtiles

  __device__ uint32_t read_row(int y) const {
    const uint8_t *row = part_.source + y * part_.source_pitch;
    const auto inside = [&](int s) { return offset_[s] >= 0; };
    if (Shape::kPixels || part_.channels == 4)
      return inside(0) ? __ldg(reinterpret_cast<const uint32_t *>(row + offset_[0])) : border_;
    uint32_t u8x4 = border_;
    if constexpr (!Shape::kPixels) {
      if (part_.channels == 2) {
#pragma unroll
        for (int s = 0; s < 2; s++)
          if (inside(s))
            u8x4 = __byte_perm(u8x4, __ldg(reinterpret_cast<const uint16_t *>(row + offset_[s])), s ? 0x5410 : 0x3254);
      } else if constexpr (!Order::kWords) {
        if (part_.channels == 3) {
          if (inside(0))
            u8x4 = __ldg(row + offset_[0]) | __ldg(row + offset_[0] + 1) << 8 | __ldg(row + offset_[0] + 2) << 16;
        } else {
#pragma unroll
          for (int s = 0; s < 4; s++)
            if (inside(s))
              u8x4 = __byte_perm(u8x4, __ldg(row + offset_[s]),
                                 s == 0   ? 0x3214
                                 : s == 1 ? 0x3240
                                 : s == 2 ? 0x3410
                                          : 0x4210);
        }
      }
    }
    return u8x4;
  }

  const ElementRunsParams &p_;
  const PartParams &part_;
  const int y0_;
  const bool rows_inside_;
  int offset_[kMost];  // byte offsets in the row; -1: the border value
  uint32_t border_;
};

// The state of a thread's results.
template <typename Shape>
class StackedRectangles {
 public:
  using Order = typename Shape::Order;
  using Split = typename Order::Split;
  static constexpr int kRows = Shape::kRows, kAtOnce = Shape::kAtOnce, kThreads = Shape::kThreads;

  __device__ void start(const U8x4Column<Shape> &column) {
    uint32_t rows[kRows];
    column.read([&](auto at) {
#pragma unroll
      for (int i = 0; i < kRows; i++) rows[i] = at(i);
    });
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      high_[i] = Order::split(rows[i]);
      joined_[i] = {};
    }
#pragma unroll
    for (int i = 0; i + 1 < kRows; i++) {
      below_[i] = rows[i + 1];
      above_[i] = rows[kRows - 2 - i];
    }
  }

  // Reads rows for take_up(): windows reach `height` rows to either side, and up to `count` more rows are read on each
  // side.
  __device__ void read(const U8x4Column<Shape> &column, int height, int count) {
    column.read([&](auto at) {
#pragma unroll
      for (int n = 0; n < kAtOnce; n++) {
        if (n >= count) break;
        below_[kRows - 1 + n] = at(kRows + height + n);
        above_[kRows - 1 + n] = at(-1 - height - n);
      }
    });
  }

  // Makes windows one row higher on either side, for the n-th time since read().
  __device__ void take_up(int n) {
#pragma unroll
    for (int i = 0; i < kRows; i++)
      high_[i] = Order::greatest(high_[i], Order::split(below_[i + n]), Order::split(above_[kRows - 1 - i + n]));
  }

  // Moves the rows in registers on, after take_up() has been called kAtOnce times.
  __device__ void move_on() {
#pragma unroll
    for (int i = 0; i + 1 < kRows; i++) {
      below_[i] = below_[i + kAtOnce];
      above_[i] = above_[i + kAtOnce];
    }
  }

  // Makes windows that reach `height` rows to either side reach `more` rows farther, at least kRows.
  __device__ void take_up_many(const U8x4Column<Shape> &column, int height, int more) {
    const auto side = [&](uint32_t(&near)[kWindow], int way) {
      // way = 1: downwards, -1: upwards. row(at, n) is row n beyond the window of the result that is first that way.
      const auto row = [=](auto at, int n) { return at(way > 0 ? height + n : kRows - 1 - height - n); };
      const auto result = [&](int i) -> Split & { return high_[way > 0 ? i : kRows - 1 - i]; };
      Split rest = {};
#pragma unroll
      for (int i = kRows - 2; i >= 0; i--) {
        rest = Order::greatest(rest, rest, Order::split(near[i]));
        if (i == 0) break;
        result(i) = Order::greatest(result(i), rest, rest);
      }
      result(0) = Order::greatest(result(0), rest, rest);
      Split common = {};
      column.read([&](auto at) {
#pragma unroll 8
        for (int n = kRows; n <= more; n++) common = Order::greatest(common, common, Order::split(row(at, n)));
#pragma unroll
        for (int i = 0; i + 1 < kRows; i++) near[i] = row(at, more + 1 + i);
      });
#pragma unroll
      for (int i = 0; i < kRows; i++) {
        result(i) = Order::greatest(result(i), common, common);
        if (i + 1 < kRows) common = Order::greatest(common, common, Order::split(near[i]));
      }
    };
    side(below_, 1);
    side(above_, -1);
  }

  // Joins the windows' extrema with the extrema of wider windows.
  __device__ void join() {
#pragma unroll
    for (int i = 0; i < kRows; i++) joined_[i] = Order::greatest(joined_[i], high_[i], high_[i]);
  }

  // Joins each window with those `apart` columns to the left and to the right. All threads of the block call this
  // together; nobody needs the results of those that are not `active` any more.
  __device__ void widen(int apart, bool active) {
    half_ = kRows * kThreads - half_;
    const int thread = static_cast<int>(threadIdx.x);
    uint32_t *const own = shared_memory<uint32_t>() + half_ + thread;
    if (active) {
#pragma unroll
      for (int i = 0; i < kRows; i++) own[i * kThreads] = Order::join(joined_[i]);
    }
    __syncthreads();
    if (!active) return;
    const uint32_t *left = own - min(apart, thread), *right = own + min(apart, kThreads - 1 - thread);
#pragma unroll
    for (int i = 0; i < kRows; i++)
      joined_[i] = Order::greatest(joined_[i], Order::split(left[i * kThreads]), Order::split(right[i * kThreads]));
  }

  __device__ uint32_t result(int i) const {
    return Order::join(joined_[i]);
  }

 private:
  static constexpr int kWindow = kRows - 1 + kAtOnce;

  Split high_[kRows], joined_[kRows];
  // below_: the next rows to add below, from the first result's window on downwards; above_: those above, from the last
  // result's window on upwards.
  uint32_t below_[kWindow], above_[kWindow];
  int half_ = 0;  // where the half of shared memory begins that is written: two take turns
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, kBlocksAtOnce<Shape>)
    element_runs_kernel(const __grid_constant__ ElementRunsParams p) {
  constexpr int kRows = Shape::kRows, kAtOnce = Shape::kAtOnce;
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  const int column = static_cast<int>(threadIdx.x) - p.halo;
  const U8x4Column<Shape> source(p, tile, column);
  StackedRectangles<Shape> results;
  results.start(source);
  // left: how many u8x4s windows have yet to be widened by. away: how many u8x4s the warp is away from the tile.
  int left = p.halo, next = 0;
  const int first = warp_uniform(column), away = max(-31 - first, first - (p.tile.width - 1));
  const auto widen = [&](int height) {
    if (p.row[next] != height) return;
    const bool active = away <= left;
    if (active) results.join();
    for (; p.row[next] == height; next++) {
      results.widen(p.apart[next], away <= left);
      left -= p.apart[next];
    }
  };
  widen(0);
  for (int height = 0; height < p.radius_y;) {
    const bool active = away <= left;
    const int more = min(static_cast<int>(p.row[next]), p.radius_y) - height;
    if (more >= 2 * kRows) {
      if (active) results.take_up_many(source, height, more);
      height += more;
      widen(height);
      continue;
    }
    if (active) results.read(source, height, p.radius_y - height);
#pragma unroll
    for (int n = 0; n < kAtOnce; n++) {
      if (height + n >= p.radius_y) break;
      if (active) results.take_up(n);
      widen(height + n + 1);
    }
    if (active) results.move_on();
    height += kAtOnce;
  }
  if (away <= left) results.join();
  uint32_t originals[kRows] = {};
  if (part.has_unfiltered)
    source.read([&](auto at) {
#pragma unroll
      for (int i = 0; i < kRows; i++) originals[i] = at(i) ^ p.flip;
    });
  U8x4Writer<> writer(p.tile, tile, column < 0 ? p.tile.width : column, 0);
  writer.write([&](auto put) {
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const uint32_t result = results.result(i) ^ p.flip;
      put(part.has_unfiltered ? blend_channels(part, result, originals[i], static_cast<int>(threadIdx.x) % Shape::kStep)
                              : result);
    }
  });
}

}  // namespace cudaconv::element
