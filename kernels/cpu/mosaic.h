// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Mosaic on the CPU: means of blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cpu/operation.h"
#include "plan/mosaic.h"

namespace cudaconv {

// floor((sum + n / 2) / n), for sum + n / 2 below 2^32 and n below 2^16. Multiplying doubles is exact enough: (sum + n
// / 2 + 1/2) / n is farther from any integer than the product's rounding error.
struct Mean {
  explicit Mean(uint32_t n) : n(n), start(n / 2 + 0.5), reciprocal(1.0 / n) {}
  uint32_t operator()(uint32_t sum) const { return static_cast<uint32_t>((sum + start) * reciprocal); }
  uint32_t n;
  double start, reciprocal;
};

template <typename T>
class MosaicOp : public Operation<T> {
 public:
  explicit MosaicOp(const RowContext<T> &context)
      : job_(context.job), tile_(context.tile), row_(context.scratch.template take<T>(context.samples)) {
    for (T *&row : rows_) row = context.scratch.template take<T>(kChunkSamples);
  }

  void filter(int y, T *out) override {
    if (y >= end_) {
      const MosaicBox &box = *tile_.box;
      const int block = mosaic_block(tile_.mosaic->y, box.phase_y, y - box.y);
      const auto begin = [&](int b) { return box.y + mosaic_begin(tile_.mosaic->y, box.phase_y, b, box.height); };
      end_ = begin(block + 1);
      make_blocks(begin(block), end_);
    }
    std::memcpy(out, row_, sizeof(T) * tile_.width() * job_.layout->channels);
  }

 private:
  static constexpr int kAtOnce = 4;  // rows that are added at a time
  // Samples of a row that are added at a time, so that their sums stay in the first-level cache.
  static constexpr int kChunkSamples = 4096;

  // Holds a sum of up to 255 samples of a column.
  using Sum = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;

  // Sums columns over rows y0 ... y1 - 1, for `count` pixels from pixel x on.
  void add_rows(int x, int count, int y0, int y1) {
    const int channels = job_.layout->channels, at_once = kChunkSamples / channels;
    sums_.assign(static_cast<size_t>(count) * channels, 0);
    for (int done = 0; done < count; done += at_once) {
      const JobTile chunk = {x + done, x + std::min(done + at_once, count), y0, y1};
      const int n = chunk.width() * channels;
      Sum *const sum = sums_.data() + static_cast<size_t>(done) * channels;
      const auto source = [&](int y, int i) { return samples_of(job_, chunk, job_.source, y, rows_[i]); };
      int y = y0;
      for (; y + kAtOnce <= y1; y += kAtOnce) {
        const T *const a = source(y, 0), *const b = source(y + 1, 1), *const c = source(y + 2, 2),
                       *const d = source(y + 3, 3);
        for (int s = 0; s < n; s++) sum[s] = static_cast<Sum>(sum[s] + a[s] + b[s] + c[s] + d[s]);
      }
      for (; y < y1; y++) {
        const T *const a = source(y, 0);
        for (int s = 0; s < n; s++) sum[s] = static_cast<Sum>(sum[s] + a[s]);
      }
    }
  }

  // Fills row_ with the means of the blocks in rows y0 ... y1 - 1.
  void make_blocks(int y0, int y1) {
    const MosaicAxis &axis = tile_.mosaic->x;
    const MosaicBox &box = *tile_.box;
    const int first = mosaic_block(axis, box.phase_x, std::max(tile_.x0 - box.x, 0));
    const int last = mosaic_block(axis, box.phase_x, std::min(tile_.x1 - box.x, box.width) - 1);
    const int begin = mosaic_begin(axis, box.phase_x, first, box.width);
    const int end = mosaic_begin(axis, box.phase_x, last + 1, box.width);
    add_rows(box.x + begin, end - begin, y0, y1);
    with_channels(job_.layout->channels, [&](auto channels) { fill_blocks<channels.value>(first, last, y1 - y0); });
  }

  template <int kChannels>
  void fill_blocks(int first_block, int last_block, int rows) {
    const MosaicAxis &axis = tile_.mosaic->x;
    const MosaicBox &box = *tile_.box;
    const auto begin_of = [&](int block) { return mosaic_begin(axis, box.phase_x, block, box.width); };
    const int first = begin_of(first_block);
    Mean mean(1);
    for (int block = first_block, begin = first; block <= last_block; block++) {
      const int end = begin_of(block + 1);
      const Sum *const sums = sums_.data() + static_cast<size_t>(begin - first) * kChannels;
      uint32_t total[kChannels] = {};
      for (int i = 0; i < end - begin; i++)
        for (int c = 0; c < kChannels; c++) total[c] += sums[i * kChannels + c];
      const auto n = static_cast<uint32_t>((end - begin) * rows);
      if (n != mean.n) mean = Mean(n);
      T pixel[kChannels];
      for (int c = 0; c < kChannels; c++) pixel[c] = static_cast<T>(mean(total[c]));
      const int from = std::max(box.x + begin, tile_.x0), to = std::min(box.x + end, tile_.x1);
      T *const out = row_ + static_cast<size_t>(from - tile_.x0) * kChannels;
      for (int i = 0; i < to - from; i++)
        for (int c = 0; c < kChannels; c++) out[i * kChannels + c] = pixel[c];
      begin = end;
    }
  }

  const Job &job_;
  const JobTile &tile_;
  int end_ = tile_.y0;     // the first row below the current row of blocks
  T *row_;                 // the result, the same for each row of these blocks
  T *rows_[kAtOnce];       // unpacked rows of the source, if they cannot be read in place
  std::vector<Sum> sums_;  // sums of the columns of these blocks
};

// Cuts the boxes of a part into tiles for `threads` threads, at the edges of blocks.
inline std::vector<JobTile> mosaic_tiles(const MosaicPart &mosaic, int threads) {
  constexpr int kTilesOfThread = 4, kLeastWidth = 256;
  std::vector<JobTile> tiles;
  const int tiles_of_box = std::max<int>(1, kTilesOfThread * threads / std::max<int>(1, mosaic.boxes.size()));
  for (const MosaicBox &box : mosaic.boxes) {
    const int blocks_x = mosaic_blocks(mosaic.x, box.phase_x, box.width);
    const int blocks_y = mosaic_blocks(mosaic.y, box.phase_y, box.height);
    const int bands = std::min(tiles_of_box, blocks_y);
    const int columns = std::clamp(std::min((threads + bands - 1) / bands, box.width / kLeastWidth), 1, blocks_x);
    const auto share = [](int all, int i, int n) { return static_cast<int>(int64_t{all} * i / n); };
    const auto column = [&](int i) {
      return box.x + mosaic_begin(mosaic.x, box.phase_x, share(blocks_x, i, columns), box.width);
    };
    const auto band = [&](int i) {
      return box.y + mosaic_begin(mosaic.y, box.phase_y, share(blocks_y, i, bands), box.height);
    };
    for (int b = 0; b < bands; b++)
      for (int c = 0; c < columns; c++)
        tiles.push_back({column(c), column(c + 1), band(b), band(b + 1), &mosaic, &box});
  }
  return tiles;
}

}  // namespace cudaconv
