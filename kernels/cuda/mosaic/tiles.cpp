// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/mosaic/tiles.h"

#include <algorithm>
#include <numeric>

namespace cudaconv {

namespace {

constexpr int kVectorBytes = 16, kLogWarp = 5, kLogThreads = 8;
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
// should load some rows at once, and there should be tiles for all of a large GPU.
void choose_shape(const MosaicPart &part, int pixel_bytes, MosaicTiles *tiles) {
  constexpr int kRows = 8, kEnoughTiles = 264;
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
  for (int log_threads = kLogWarp; log_threads <= kLogThreads; log_threads++) {
    const int bytes = kVectorBytes << log_threads, block_bytes = width * pixel_bytes;
    int blocks = bytes / block_bytes;
    if (!in_step || blocks * block_bytes % kVectorBytes) blocks = (bytes - skew) / block_bytes;
    blocks = std::min(blocks, widest);
    if (blocks < 1) continue;
    const int groups = kMosaicThreads >> log_threads, rows = (height + groups - 1) / groups;
    const double busy = 1.0 * blocks * block_bytes / bytes * height / (groups * rows);
    const double rating = busy * std::min(rows, kRows) * std::min(count_tiles(part, blocks), kEnoughTiles);
    if (rating < 1.05 * best) continue;  // small tiles are distributed better
    best = rating;
    tiles->log_threads = log_threads;
    tiles->blocks = blocks;
  }
}

}  // namespace

bool has_mosaic_tiles(const Plan &plan) {
  const ChannelLayout &sample = plan.layout.plane[0].channel[0];
  return plan.method == Method::Auto && plan.layout.uniform_dense() &&
         (plan.layout.plane[0].container != Container::U8 || sample.depth == 8);
}

std::vector<MosaicTiles> cut_mosaic(const std::vector<MosaicPart> &parts, const Plan &plan,
                                    std::vector<MosaicTiledBox> *boxes) {
  constexpr int kMostOfWarp = 256;  // pixels of a block that a single warp does
  std::vector<MosaicTiles> result;
  for (size_t i = 0; i < parts.size(); i++) {
    const MosaicPart &part = parts[i];
    MosaicTiles &tiles = result.emplace_back(MosaicTiles{part.x, part.y, {}, 0, 0, 0, 1, kLogThreads});
    if (part.boxes.empty()) continue;
    const PlaneLayout &layout = plan.layout.plane[plan.parts[i].plane];
    if (has_mosaic_tiles(plan)) {
      choose_shape(part, layout.channels * layout.bytes_per_container(), &tiles);
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
  }
  return result;
}

}  // namespace cudaconv
