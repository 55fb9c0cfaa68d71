// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/mosaic/tiles.h"

#include <algorithm>
#include <numeric>

namespace cudaconv {

namespace {

constexpr int kVectorBytes = 16, kLogWarp = 5, kLogThreads = 8;
constexpr int kTall = 65;  // rows of a block from which on its tiles have slices
static_assert(1 << kLogThreads == kMosaicThreads);

int tiles_across(const MosaicPart &part, const MosaicBox &box, int blocks) {
  return (mosaic_blocks(part.x, box.phase_x, box.width) + blocks - 1) / blocks;
}

int count_tiles(const MosaicPart &part, int blocks) {
  int count = 0;
  for (const MosaicBox &box : part.boxes)
    count += tiles_across(part, box, blocks) * mosaic_blocks(part.y, box.phase_y, box.height);
  return count;
}

// Chooses how many threads are side by side in a row; the others are below them. Few of them should be idle, each
// should load some rows at once, and there should be tiles, or slices, for all of a large GPU. In a slice, adding the
// columns of a group of threads takes about as long as 8 rows.
//
// Blocks of 255x255 pixels, H200, without slices and with 8, 16 and 32 rows a thread, us: RGBA 4K 60.3, 31.0, 27.8 and
// 27.4, 1080p 56.4, 12.8, 12.3 and 20.9; 4K GRAY8 24.5, 13.5, 17.1 and 23.4, P010 64.4, 25.9, 23.0 and 29.9.
void choose_shape(const MosaicPart &part, int pixel_bytes, bool sliced, MosaicTiles *tiles) {
  constexpr int kEnoughBlocks = 264, kRows = 8, kMostRows = 32;
  int widest = 0, width = 0, height = 0;  // blocks; pixels
  for (const MosaicBox &box : part.boxes) {
    widest = std::max(widest, mosaic_blocks(part.x, box.phase_x, box.width));
    width = std::max(width, std::min(part.x.length(), box.width));
    height = std::max(height, std::min(part.y.length(), box.height));
  }
  const MosaicBox &first = part.boxes[0];
  const bool in_step =
      part.boxes.size() == 1 && first.x == 0 && first.phase_x == 0 && part.x.length() << part.x.log_step == part.x.size;
  // The most bytes by which a tile may begin after a multiple of 16.
  const int skew = kVectorBytes - std::gcd(pixel_bytes, kVectorBytes);
  double best = 0;
  const auto consider = [&](int log_threads, int blocks, int slice_rows) {
    const int bytes = kVectorBytes << log_threads, groups = kMosaicThreads >> log_threads;
    const int slices = (height + slice_rows - 1) / slice_rows,
              rows = (std::min(slice_rows, height) + groups - 1) / groups;
    const double busy = 1.0 * blocks * width * pixel_bytes / bytes * height / (groups * rows * slices);
    const double pace = sliced ? 1.0 * rows / (rows + kRows * groups) : std::min(rows, kRows);
    const double rating = busy * pace * std::min(count_tiles(part, blocks) * slices, kEnoughBlocks);
    if (rating < 1.05 * best) return;  // small tiles are distributed better
    best = rating;
    tiles->log_threads = log_threads;
    tiles->blocks = blocks;
    tiles->slices = slices;
    tiles->slice_rows = slice_rows;
  };
  for (int log_threads = kLogWarp; log_threads <= kLogThreads; log_threads++) {
    const int bytes = kVectorBytes << log_threads, block_bytes = width * pixel_bytes;
    int blocks = bytes / block_bytes;
    if (!in_step || blocks * block_bytes % kVectorBytes) blocks = (bytes - skew) / block_bytes;
    blocks = std::min(blocks, widest);
    if (blocks < 1) continue;
    const int groups = kMosaicThreads >> log_threads;
    if (!sliced) consider(log_threads, blocks, height);
    for (int rows = kRows; sliced && rows <= kMostRows; rows *= 2) consider(log_threads, blocks, groups * rows);
  }
}

std::vector<MosaicTiles> cut_mosaic(const std::vector<MosaicPart> &parts, const Plan &plan, bool sliced,
                                    std::vector<MosaicTiledBox> *boxes) {
  constexpr int kMostOfWarp = 256;  // pixels of a block that a single warp does
  std::vector<MosaicTiles> result;
  int64_t sums = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const MosaicPart &part = parts[i];
    MosaicTiles &tiles = result.emplace_back(
        MosaicTiles{part.x, part.y, {}, 0, 0, 0, 1, kLogThreads, 1, part.y.length(), static_cast<int32_t>(sums)});
    if (part.boxes.empty()) continue;
    const PlaneLayout &layout = plan.layout.plane[plan.parts[i].plane];
    if (has_mosaic_tiles(plan)) {
      choose_shape(part, layout.channels * layout.bytes_per_container(), sliced && part.y.length() >= kTall, &tiles);
    } else if (part.x.length() * part.y.length() <= kMostOfWarp) {
      tiles.log_threads = kLogWarp;
      tiles.blocks = kMosaicThreads >> kLogWarp;
    }
    tiles.first_box = static_cast<int32_t>(boxes->size());
    tiles.boxes = static_cast<int32_t>(part.boxes.size());
    for (const MosaicBox &box : part.boxes) {
      const MosaicTiledBox tiled = {box, tiles.tiles, tiles_across(part, box, tiles.blocks)};
      tiles.tiles += tiled.tiles_x * mosaic_blocks(part.y, box.phase_y, box.height);
      if (&box == part.boxes.data()) tiles.box = tiled;
      if (tiles.boxes > 1) boxes->push_back(tiled);
    }
    sums += tiles.sums(layout.channels);
  }
  return result;
}

}  // namespace

bool has_mosaic_tiles(const Plan &plan) {
  const ChannelLayout &sample = plan.layout.plane[0].channel[0];
  return plan.method == Method::Auto && plan.layout.uniform_dense() &&
         (plan.layout.plane[0].container != Container::U8 || sample.depth == 8);
}

size_t mosaic_sum_bytes(const Plan &plan, const Pass &pass) {
  constexpr int kFewest = 256;  // samples of a sum: at least 65 columns of 8 rows, but for blocks that are cut off
  if (pass.block_y < kTall) return 0;
  int64_t samples = 0;
  for (const Plan::Part &part : plan.parts) {
    const PlaneLayout &plane = plan.layout.plane[part.plane];
    samples += int64_t{plane.width} * part.height * plane.channels;
  }
  return static_cast<size_t>(samples / kFewest + 1024) * sizeof(uint32_t);
}

std::vector<MosaicTiles> cut_mosaic(const std::vector<MosaicPart> &parts, const Plan &plan,
                                    std::vector<MosaicTiledBox> *boxes) {
  const size_t before = boxes->size();
  std::vector<MosaicTiles> tiles = cut_mosaic(parts, plan, true, boxes);
  if (!has_slices(tiles)) return tiles;
  int64_t sums = 0;
  for (size_t i = 0; i < tiles.size(); i++) sums += tiles[i].sums(plan.layout.plane[plan.parts[i].plane].channels);
  if (static_cast<size_t>(sums) * sizeof(uint32_t) <= mosaic_sum_bytes(plan, plan.passes[0])) return tiles;
  boxes->resize(before);
  return cut_mosaic(parts, plan, false, boxes);
}

}  // namespace cudaconv
