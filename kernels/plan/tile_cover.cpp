// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/tile_cover.h"

#include <algorithm>
#include <climits>
#include <tuple>

namespace cudaconv {

namespace {

// Covers rectangles from the top down. Each tile begins with the first row that is not covered, at the left end of the
// adjacent pieces there. Neighbouring pieces thus share tiles.
class TileCover {
 public:
  TileCover(std::vector<PixelRect> rectangles, const TileGrid &grid) : grid_(grid), rectangles_(std::move(rectangles)) {
    std::sort(rectangles_.begin(), rectangles_.end(),
              [](const PixelRect &a, const PixelRect &b) { return a.y0 < b.y0; });
  }

  std::vector<TileCorner> run() {
    while (next_ < rectangles_.size() || !open_.empty()) {
      int top = next_ < rectangles_.size() ? rectangles_[next_].y0 : INT_MAX;
      for (const PixelRect &piece : open_) top = std::min(top, piece.y0);
      const int y = top / grid_.step_y * grid_.step_y;
      while (next_ < rectangles_.size() && rectangles_[next_].y0 < y + grid_.height) open(rectangles_[next_++]);
      const int x = left_of(top, y + grid_.height) / grid_.step_x * grid_.step_x;
      tiles_.push_back({x, y});
      cut_out({x, y, x + grid_.width, y + grid_.height});
    }
    std::sort(tiles_.begin(), tiles_.end(),
              [](const TileCorner &a, const TileCorner &b) { return std::tie(a.y, a.x) < std::tie(b.y, b.x); });
    return std::move(tiles_);
  }

 private:
  void open(const PixelRect &piece) {
    if (piece.empty()) return;
    const auto behind = [](int x, const PixelRect &other) { return x < other.x0; };
    open_.insert(std::upper_bound(open_.begin(), open_.end(), piece.x0, behind), piece);
  }

  // The left end of the first piece that begins at row `top`, joined with the pieces to its left that begin above
  // `bottom` and touch it.
  int left_of(int top, int bottom) const {
    size_t i = 0;
    while (open_[i].y0 != top) i++;
    int left = open_[i].x0;
    while (i-- > 0)
      if (open_[i].y0 < bottom && open_[i].x1 >= left) left = open_[i].x0;
    return left;
  }

  void cut_out(const PixelRect &tile) {
    rest_.clear();
    const auto covered = [&](const PixelRect &piece) {
      if (piece.x0 >= tile.x1 || piece.x1 <= tile.x0 || piece.y0 >= tile.y1) return false;  // no piece is above
      const int bottom = std::min(piece.y1, tile.y1);
      rest_.push_back({piece.x0, piece.y0, tile.x0, bottom});
      rest_.push_back({tile.x1, piece.y0, piece.x1, bottom});
      rest_.push_back({piece.x0, tile.y1, piece.x1, piece.y1});
      return true;
    };
    open_.erase(std::remove_if(open_.begin(), open_.end(), covered), open_.end());
    for (const PixelRect &piece : rest_) open(piece);
  }

  const TileGrid grid_;
  std::vector<PixelRect> rectangles_;   // by their first rows
  size_t next_ = 0;                     // the first of these that is not open
  std::vector<PixelRect> open_, rest_;  // parts of the others that are not covered, from left to right
  std::vector<TileCorner> tiles_;
};

}  // namespace

std::vector<TileCorner> cover_with_tiles(std::vector<PixelRect> rectangles, const TileGrid &grid) {
  return TileCover(std::move(rectangles), grid).run();
}

}  // namespace cudaconv
