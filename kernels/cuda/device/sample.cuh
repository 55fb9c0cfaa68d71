// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Samples in global memory, of any layout. Threads read samples, inside the frame (ChannelReader) and outside
// (SourceReader), round sums (round_sum) and write results (write_sample). make_sample() filters, copies or fills a
// channel of a pixel, and writes it.
#pragma once

#include "cuda/device/tile.cuh"
#include "plan/border.h"

namespace cudaconv {

// The part of this number. With regions, several rectangles may stand for it, all with its addresses.
__device__ inline const PartParams &find_part(const FrameParams &p, int number) {
  int i = 0;
  while (i + 1 < p.parts && p.part[i].number != number) i++;
  return p.part[i];
}

// Reads one channel of a plane. In every container a sample is one byte or some bits of two bytes, also as a field of
// Packed32. Offset, shift and mask are computed once. Reads are byte by byte, so pitch and address need no
// alignment.
class ChannelReader {
 public:
  __device__ ChannelReader(const PartParams &part, const uint8_t *data, int64_t pitch, int c)
      : low_(data), pitch_(pitch), shift_(part.channel[c].shift), mask_((1 << part.channel[c].depth) - 1) {
    const int offset = part.channel[c].offset, containers = part.first + offset;
    switch (part.container) {
      case Container::U8:
        low_ += containers;
        step_ = part.step;
        break;
      case Container::U16:
        low_ += 2 * containers;
        step_ = 2 * part.step;
        to_high_ = 1;
        break;
      case Container::U16BE:
        low_ += 2 * containers + 1;
        step_ = 2 * part.step;
        to_high_ = -1;
        break;
      case Container::Packed32: {
        const int byte = min(offset / 8, 2);
        low_ += byte;
        step_ = 4;
        to_high_ = 1;
        shift_ = offset - 8 * byte;
        break;
      }
    }
  }

  // The sample of pixel (x, y), which lies inside the plane.
  __device__ int at(int x, int y) const {
    const uint8_t *low = low_ + y * pitch_ + x * step_;
    if (!to_high_) return low[0];
    return (low[0] | low[to_high_] << 8) >> shift_ & mask_;
  }

 private:
  const uint8_t *low_;  // low byte of the first sample
  int64_t pitch_;
  int step_ = 0, to_high_ = 0;  // distances in bytes; to_high_ is 0 for samples of one byte
  int shift_, mask_;
};

// Reads channel c of the source inside the frame and outside, by the border mode.
class SourceReader {
 public:
  static constexpr int kUnroll = 1;  // unroll factor for loops along a row

  // `inside`: nothing outside the frame is read.
  __device__ SourceReader(const FrameParams &p, const PartParams &part, int c, bool inside)
      : reader_(part, part.source, part.source_pitch, c),
        border_(p.border),
        width_(part.width),
        height_(part.height),
        border_value_(part.channel[c].border_value),
        inside_(inside) {}

  __device__ int at(int x, int y) const {
    if (!inside_) {
      x = border_index(border_, x, width_);
      y = border_index(border_, y, height_);
      if (x < 0 || y < 0) return border_value_;
    }
    return reader_.at(x, y);
  }

 private:
  ChannelReader reader_;
  Border border_;
  int width_, height_, border_value_;
  bool inside_;
};

// Reads one channel of 8-bit containers, inside the frame only, with little code.
class ByteReader {
 public:
  static constexpr int kUnroll = 4;

  __device__ ByteReader(const PartParams &part, int c)
      : first_(part.source + part.first + part.channel[c].offset), pitch_(part.source_pitch), step_(part.step) {}

  __device__ int at(int x, int y) const { return first_[y * pitch_ + x * step_]; }

 private:
  const uint8_t *first_;
  int64_t pitch_;
  int step_;
};

// Calls function(reader) with the fastest reader for the channel, and returns its result.
template <typename Function>
__device__ inline auto read_source(const FrameParams &p, const PartParams &part, int c, bool inside,
                                   Function function) {
  if (inside && part.container == Container::U8) return function(ByteReader(part, c));
  return function(SourceReader(p, part, c, inside));
}

// Rounds any sum to a sample. `centre`: the source's sample at that place, used with a gain.
__device__ inline int round_sum(const FrameParams &p, const Rounding &rounding, int64_t sum, int centre) {
  if (p.has_gain) return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, centre), rounding);
  if (rounding.wide) return round_to_sample(sum, rounding);
  return round_to_sample(static_cast<int32_t>(sum), rounding);
}

__device__ inline bool is_kept(const FrameParams &p, const PartParams &part, int x, int y) {
  return x < p.keep_x || x >= part.width - p.keep_x || y < p.keep_y || y >= part.height - p.keep_y;
}

// Writes channel c of a pixel of the target. One thread writes all channels of a pixel, in the order 0, 1, 2, ...
__device__ inline void write_sample(const PartParams &part, int x, int y, int c, int value) {
  const ChannelParams &channel = part.channel[c];
  uint8_t *row = part.target + y * part.target_pitch;
  const int index = part.first + x * part.step + channel.offset;
  if (part.container == Container::U8) {
    row[index] = static_cast<uint8_t>(value << channel.shift);
  } else if (part.container == Container::Packed32) {
    uint32_t word = static_cast<uint32_t>(value) << channel.offset;
    for (int i = 0; i < 4; i++, word >>= 8)
      row[4 * x + i] = static_cast<uint8_t>(word | (c ? row[4 * x + i] : 0));  // keeps the fields written before
  } else {
    const int high = part.container == Container::U16;
    value <<= channel.shift;
    row[2 * index + 1 - high] = static_cast<uint8_t>(value);
    row[2 * index + high] = static_cast<uint8_t>(value >> 8);
  }
}

// The sample of channel c of a pixel if it is not filtered; sets *filtered to whether it is.
__device__ inline int unfiltered(const FrameParams &p, const PartParams &part, int x, int y, int c, bool *filtered) {
  const ChannelParams &channel = part.channel[c];
  *filtered = channel.action == Action::Filter && !is_kept(p, part, x, y);
  if (*filtered) return 0;
  return channel.action == Action::Fill ? channel.fill : ChannelReader(part, part.copy, part.copy_pitch, c).at(x, y);
}

// Computes and writes channel c of a pixel if it lies inside the part; filter(rounding) returns a filtered sample. All
// lanes of a warp call this together. If any lane filters, all do, even outside: the compiler then computes uniform
// values, like counters and coefficients of loops over the window, once for the warp.
template <typename Filter>
__device__ inline void make_sample(const FrameParams &p, const PartParams &part, int x, int y, int c, Filter filter) {
  const bool inside = x < part.width && y < part.height;
  bool filtered = false;
  int v = inside ? unfiltered(p, part, x, y, c, &filtered) : 0;
  if (__any_sync(0xffffffffu, filtered)) {
    const int result = filter(p.rounding[part.channel[c].rounding]);
    if (filtered) v = result;
  }
  if (inside) write_sample(part, x, y, c, v);
}

}  // namespace cudaconv
