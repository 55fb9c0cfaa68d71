// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers have in common. Each launcher owns one structure of kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cuda/dispatch.h"
#include "cuda/launch_params.h"
#include "plan/plan.h"

namespace cudaconv {

class LaunchGraph;
struct MosaicTiledBox;
struct MosaicTiles;
template <typename V>
struct Rect;  // plan/area.h
using PixelRect = Rect<int32_t>;

struct DeviceLimits {
  int multiprocessors = 0;
  size_t block_bytes = 0, multiprocessor_bytes = 0;  // shared memory
};

// The driver is asked once for each device. Throws Error{Device}.
DeviceLimits current_limits();

// The frames in device memory that the passes of a plan work on.
struct FrameBuffers {
  FrameView source, target;
  std::vector<FrameView> temporary;

  // Mosaic: its tiles by part, and the device address of the boxes, for parts with several.
  const std::vector<MosaicTiles> *mosaic = nullptr;
  const MosaicTiledBox *mosaic_boxes = nullptr;

  void *scratch = nullptr;  // device memory, as much as any launch of the plan needs
};

// A pass of a plan, or several from that pass on, to be enqueued for a frame.
struct PassRun : PassQuery {
  const FrameBuffers &buffers;
  LaunchGraph *launches;                // of the frame
  const char *name = nullptr;           // of the structure, for messages
  const uint32_t *tile_list = nullptr;  // Prepared::tiles in device memory
};

// The run under another name.
inline PassRun named(PassRun run, const char *name) {
  run.name = name;
  return run;
}

// The size of a part's tiles: `width` in units, `row` of them in a row of the part; `height` in rows.
struct TileSize {
  int width, row, height;
};

// Where the tiles that regions need may lie: at any row, and at any column whose address is a multiple of 16 bytes; or
// at multiples of their size alone.
enum class TileCorners { Anywhere, Multiples };

// Fills in the parameters of a pass except addresses and tiles.
void fill_frame(const PassQuery &query, FrameParams &p);

// Fills in addresses, which differ from frame to frame. Where a launch carries out several passes, `last` is the index
// of the last one, whose target is written.
void fill_addresses(const PassRun &run, size_t last, FrameParams &p);

// Both.
inline void fill_frame(const PassRun &run, FrameParams &p) {
  fill_frame(static_cast<const PassQuery &>(run), p);
  fill_addresses(run, run.index, p);
}

// How many tiles hold the rectangles of a part's area, about so if these are many.
int64_t blocks_of_area(const FrameParams::Host &host);

// The least number of columns whose bytes are whole pixels and a multiple of 16 bytes. `row`: columns of a row of the
// part.
int aligned_columns(const PartParams &part, int row);

// Gives a part's tiles their numbers: `columns` to a row, `step` from one to the next.
inline void number_columns(PartParams &part, int columns, int step) {
  part.column_step = step;
  part.tiles_x = columns;
  part.tiles_x_reciprocal = 0xffffffffu / static_cast<uint32_t>(columns);
}

// How many pieces of size `piece` hold `all`.
constexpr int64_t pieces_of(int64_t all, int64_t piece) {
  return (all + piece - 1) / piece;
}

struct BlockCount {
  int64_t columns, rows;
};

// Numbers the blocks of a launch that has no tiles, part by part and row by row. count_of(i) returns the blocks of part
// i, `first` is the number of the first one. On the device locate_tile(p, 1) returns a block's column and row. Returns
// the number behind the last block.
template <typename CountOf>
unsigned number_blocks(FrameParams &p, CountOf count_of, int64_t first = 0) {
  for (int i = 0; i < p.parts; i++) {
    const BlockCount count = count_of(i);
    p.first_block[i] = static_cast<int32_t>(first);
    number_columns(p.part[i], static_cast<int>(std::max<int64_t>(count.columns, 1)), 1);
    if (count.columns > 0 && count.rows > 0) first += count.columns * count.rows;
  }
  return static_cast<unsigned>(first);
}

// Whether the channels of a pixel are fields of one word. They are written one after the other, so no two tiles may
// have a pixel in common: a block would take away fields that another one has just written.
inline bool has_fields(const PartParams &part) {
  return part.container == Container::Packed32;
}

// Cuts each part into tiles of the size that size_of(part) returns. Returns the number of blocks. Grids have one
// dimension, because the other two end at 65,535.
template <typename SizeOf>
unsigned cut_tiles(FrameParams &p, TileCorners corners, SizeOf size_of) {
  int64_t tiles = 0, blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    const TileSize size = size_of(p.part[i]);
    const int columns = (size.row + size.width - 1) / size.width;
    const int64_t all = int64_t{columns} * ((p.part[i].height + size.height - 1) / size.height);
    FrameParams::Host &host = p.host[i];
    host.tile_width = size.width;
    host.row = size.row;
    host.tile_height = size.height;
    const bool anywhere = corners == TileCorners::Anywhere && !has_fields(p.part[i]);
    host.step_x = anywhere ? std::gcd(size.width, aligned_columns(p.part[i], size.row)) : size.width;
    host.step_y = anywhere ? 1 : size.height;
    p.first_block[i] = static_cast<int32_t>(tiles);
    number_columns(p.part[i], columns, size.width);
    tiles += all;
    blocks += host.area ? blocks_of_area(host) : all;
  }
  return static_cast<unsigned>(blocks);
}

// Cuts each part into tiles of the same size, in pixels.
inline unsigned cut_tiles(FrameParams &p, int width, int height, TileCorners corners = TileCorners::Anywhere) {
  return cut_tiles(p, corners, [&](const PartParams &part) { return TileSize{width, part.width, height}; });
}

// Bounding box, in pixels, of the tiles that cover the part's area. Call it after cut_tiles().
PixelRect tiled_bounds(const PartParams &part, const FrameParams::Host &host);

// The pixels that windows of these radii read for the pixels of a part to work on, as a rectangle.
PixelRect read_bounds(const PartParams &part, const FrameParams::Host &host, Border border, int radius_x, int radius_y);

// Makes `p` work on tiles that hold the areas in p.host: each rectangle becomes a part of its own. The tiles of more
// than kMaxParts rectangles are listed in `tiles`, see FrameParams::tile_list. Tiles of two rectangles may overlap.
// Returns the number of blocks.
unsigned cut_areas(FrameParams &p, std::vector<uint32_t> *tiles = nullptr);

}  // namespace cudaconv
