// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Rows of samples for the CPU backend. Rows are unpacked from memory, extended by border samples on both sides, and
// packed again. Thanks to the border samples, no loop over pixels has a special case at the ends.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cpu/vector.h"
#include "plan/border.h"

namespace cudaconv {

// Memory for the rows of a task. Later tasks reuse it.
class Scratch {
 public:
  void reset() { next_ = 0; }

  // Memory for n elements and one more block. It is zeroed when allocated, but not when a later task reuses it.
  template <typename V>
  V *take(size_t n) {
    // 4K aliasing: a load stalls behind a store whose address has the same low 12 bits. Large allocations all begin at
    // the same offset within a page, so each block gets a different offset.
    const size_t stagger = next_ * kStagger % kPage, bytes = stagger + (n + kVectorBlock) * sizeof(V);
    if (next_ == blocks_.size()) blocks_.emplace_back();
    Block &block = blocks_[next_++];
    if (block.size < bytes) {
      block.memory.reset(static_cast<uint8_t *>(::operator new(bytes, kAlignment)));
      block.size = bytes;
      std::memset(block.memory.get(), 0, bytes);
    }
    return reinterpret_cast<V *>(block.memory.get() + stagger);
  }

  // A pitch of at least `bytes` that keeps rows from aliasing, too.
  static constexpr size_t row_pitch(size_t bytes) {
    constexpr size_t kPeriod = 1024;
    return (bytes + kPeriod - kStagger - 1) / kPeriod * kPeriod + kStagger;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static constexpr size_t kPage = 4096, kStagger = 5 * 64;
  struct Free {
    void operator()(uint8_t *p) const { ::operator delete(p, kAlignment); }
  };
  struct Block {
    std::unique_ptr<uint8_t, Free> memory;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t next_ = 0;
};

// Calls f(n) with n.value == channels, a constant.
template <typename F>
void with_channels(int channels, F f) {
  if (channels == 1) return f(std::integral_constant<int, 1>());
  if (channels == 2) return f(std::integral_constant<int, 2>());
  if (channels == 3) return f(std::integral_constant<int, 3>());
  f(std::integral_constant<int, 4>());
}

class CoarsePart;
struct MosaicBox;
struct MosaicPart;

// One pass over one part of the frame.
struct Job {
  const VectorLoops *loops;
  const Cancellation *cancellation;
  const Plan *plan;
  const Pass *pass;
  Plan::Part part;
  const PlaneLayout *layout;
  // Row 0 of the part in each frame; the pitch is from row to row of the part.
  PlaneView source, operand, copy, target;
  PlaneView alpha;  // Pass::reads_alpha(): the part of the source that holds the alpha of this part
  // The pointwise pass that gets the results as its source or operand, instead of the target; nullptr: none.
  const Job *pointwise;
  const CoarsePart *coarse;  // Blur
  // Bilateral of RGB in a plane for each colour: the jobs of the other two planes, which have no tasks of their own.
  std::vector<const Job *> others = {};

  bool has(Action wanted) const {  // whether any channel
    const Action *action = plan->action[part.plane];
    return std::any_of(action, action + layout->channels, [&](Action a) { return a == wanted; });
  }
  bool filters() const { return has(Action::Filter); }
};

// The pixels of a part that one task computes.
struct JobTile {
  int x0, x1, y0, y1;
  const MosaicPart *mosaic = nullptr;  // Mosaic: the part's blocks, and the box that contains the tile
  const MosaicBox *box = nullptr;
  int width() const { return x1 - x0; }
};

// Whether a row in memory has the same bytes as a row of samples, and the same alignment. Samples are uint8_t for
// containers of 8 bits, else uint16_t.
template <typename T>
bool samples_in_memory(const PlaneLayout &layout, const PlaneView &view) {
  constexpr bool kLittleEndianHost = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  constexpr Container kContainer = sizeof(T) == 1 ? Container::U8 : Container::U16;
  if (!layout.dense() || layout.container != kContainer || (sizeof(T) > 1 && !kLittleEndianHost)) return false;
  if ((reinterpret_cast<uintptr_t>(view.data) | static_cast<uintptr_t>(view.pitch)) % alignof(T)) return false;
  return std::all_of(layout.channel, layout.channel + layout.channels,
                     [](const ChannelLayout &c) { return c.depth == 8 * int{sizeof(T)} && c.shift == 0; });
}

// Converts `count` pixels of a row of memory, from pixel x on, to samples with interleaved channels, and back.
template <typename T>
void unpack_pixels(const VectorLoops &loops, const PlaneLayout &layout, const uint8_t *row, int x, int count,
                   T *samples);
template <typename T>
void pack_pixels(const VectorLoops &loops, const PlaneLayout &layout, const T *samples, int x, int count, uint8_t *row);

// A ring of rows: row y shares its memory with rows y - height and y + height.
template <typename V>
class Ring {
 public:
  Ring() = default;
  Ring(Scratch &scratch, int length, int height)
      : stride_(static_cast<int>(Scratch::row_pitch((whole_blocks(length) + kVectorBlock) * sizeof(V)) / sizeof(V))),
        height_(height),
        rows_(scratch.take<V>(static_cast<size_t>(stride_) * height)) {}

  int stride() const { return stride_; }
  V *operator[](int y) const { return rows_ + static_cast<size_t>((y % height_ + height_) % height_) * stride_; }

 private:
  int stride_ = 0, height_ = 1;
  V *rows_ = nullptr;
};

// Remembers which row of the part each row of a ring holds. Rows beyond an edge repeat rows of the part, so their
// results are copied. A mask larger than the frame thus costs no more than the frame's rows.
class RepeatedRows {
 public:
  explicit RepeatedRows(int height) : held_(height, kNone) {}

  // Records that row y enters the ring. Returns the index of a row of the ring with the same content, or kNone.
  int put(const Job &job, int y) {
    const int source = border_index(job.plan->border, y, job.part.height);
    const auto found = std::find(held_.begin(), held_.end(), source);
    const int row = found == held_.end() ? kNone : static_cast<int>(found - held_.begin());
    held_[index(y)] = source;
    return row;
  }

  // Forgets row y of the ring.
  void lose(int y) { held_[index(y)] = kNone; }

  static constexpr int kNone = -2;  // -1 is a row of border values

 private:
  int index(int y) const {
    const auto height = static_cast<int>(held_.size());
    return (y % height + height) % height;
  }

  std::vector<int> held_;
};

// The rows of the source around a tile, unpacked and extended by radius_x pixels on both sides. Rows enter in rising
// order; the window keeps the last `rows`.
template <typename T>
class RowWindow {
 public:
  RowWindow(const Job &job, const JobTile &tile, Scratch &scratch, int rows)
      : job_(job),
        channels_(job.layout->channels),
        first_(std::max(tile.x0 - job.pass->radius_x, 0)),
        last_(std::min(tile.x1 + job.pass->radius_x, job.layout->width)),
        skip_((first_ - tile.x0 + job.pass->radius_x) * channels_),
        length_((tile.width() + 2 * job.pass->radius_x) * channels_),
        ring_(scratch, length_ + channels_, rows) {
    // Loops read whole blocks, beyond the row's end. They find zeros.
    for (int y = 0; y < rows; y++) std::fill(ring_[y] + length_, ring_[y] + ring_.stride(), T{0});
    for (int x = tile.x0 - job.pass->radius_x; x < tile.x1 + job.pass->radius_x; x++) {
      if (x >= first_ && x < last_) continue;
      const int from = border_index(job.plan->border, x, job.layout->width);
      const int to = (x - tile.x0 + job.pass->radius_x) * channels_;
      // The window holds the pixel to copy: it is within radius_x of the edge, or tiles are as wide as the frame, see
      // reads_within_window().
      for (int c = 0; c < channels_; c++)
        extension_.push_back({to + c, from < 0 ? -1 : skip_ + (from - first_) * channels_ + c});
    }
  }

  int length() const { return length_; }

  // Unpacks row y, which may be outside the part.
  void enter(int y) {
    T *row = ring_[y];
    const PlaneLayout &layout = *job_.layout;
    const int source = border_index(job_.plan->border, y, job_.part.height);
    if (source < 0) {
      for (int i = 0; i < length_; i++) row[i] = static_cast<T>(layout.border_value[i % channels_]);
      return;
    }
    unpack_pixels(*job_.loops, layout, job_.source.data + source * job_.source.pitch, first_, last_ - first_,
                  row + skip_);
    if (source + 1 < job_.part.height) prefetch(job_.source.data + (source + 1) * job_.source.pitch);
    for (const Extension &e : extension_)
      row[e.to] = e.from < 0 ? static_cast<T>(layout.border_value[e.to % channels_]) : row[e.from];
  }

  // A row that has entered; its sample i is channel i % channels of the pixel at x = x0 - radius_x + i / channels.
  const T *operator[](int y) const { return ring_[y]; }

 private:
  // Prefetches a row. The hardware prefetcher follows reads along a row, but does not know where the next row begins.
  void prefetch(const uint8_t *row) const {
    const PlaneLayout &layout = *job_.layout;
    const size_t pixel = static_cast<size_t>(layout.step) * layout.bytes_per_container();
    for (size_t byte = first_ * pixel; byte < last_ * pixel; byte += 64) __builtin_prefetch(row + byte);
  }

  struct Extension {
    int to, from;  // indices of samples in a row; from = -1: the border value
  };

  const Job &job_;
  int channels_;
  int first_, last_;  // range of pixels that are read from memory
  int skip_;          // samples before first_ in a row
  int length_;        // samples of a row
  std::vector<Extension> extension_;
  Ring<T> ring_;
};

// The tile's samples in a row of memory: a pointer into memory if possible, else `row`, to which they are unpacked. At
// least one block can be read.
template <typename T>
const T *samples_of(const Job &job, const JobTile &tile, const PlaneView &view, int y, T *row) {
  const uint8_t *memory = view.data + y * view.pitch;
  const int channels = job.layout->channels;
  if (samples_in_memory<T>(*job.layout, view) && tile.width() * channels >= kVectorBlock)
    return reinterpret_cast<const T *>(memory) + tile.x0 * channels;
  unpack_pixels(*job.loops, *job.layout, memory, tile.x0, tile.width(), row);
  return row;
}

// Merges samples that are not filtered into rows of results: copied and filled channels, and the pixels that
// border=keep copies.
template <typename T>
class Merger {
 public:
  Merger(const Job &job, const JobTile &tile, Scratch &scratch)
      : job_(job), tile_(tile), channels_(job.layout->channels) {
    if (!needed()) return;
    const int n = samples();
    original_ = scratch.take<T>(n);
    fill_ = scratch.take<T>(n);
    fills_ = scratch.take<T>(n);
    for (T *&copies : copies_) copies = scratch.take<T>(n);
    for (int s = 0; s < n; s++) {
      const int c = s % channels_, x = tile.x0 + s / channels_;
      const Action action = job.plan->action[job.part.plane][c];
      const bool kept = x < job.pass->keep_x || x >= job.layout->width - job.pass->keep_x;
      fill_[s] = static_cast<T>(job.plan->fill[job.part.plane][c]);
      fills_[s] = all_if(action == Action::Fill);
      copies_[0][s] = all_if(action == Action::Copy || (action == Action::Filter && kept));
      copies_[1][s] = all_if(action != Action::Fill);
      any_fill_ |= fills_[s] != 0;
      any_copy_ |= copies_[0][s] != 0;
    }
  }

  // `row`: the tile's samples of row y of the part.
  void merge(int y, T *row) {
    const bool keep_row = y < job_.pass->keep_y || y >= job_.part.height - job_.pass->keep_y;
    if (any_copy_ || keep_row)
      job_.loops->blend(samples_of(job_, tile_, job_.copy, y, original_), copies_[keep_row], row, padded());
    if (any_fill_) job_.loops->blend(fill_, fills_, row, padded());
  }

  // Whether merge() changes anything.
  bool needed() const {
    const Action *action = job_.plan->action[job_.part.plane];
    return job_.pass->keep_x || job_.pass->keep_y ||
           std::any_of(action, action + channels_, [](Action a) { return a != Action::Filter; });
  }

 private:
  static T all_if(bool set) { return static_cast<T>(set ? ~0 : 0); }
  int samples() const { return tile_.width() * channels_; }
  int padded() const { return std::max(samples(), kVectorBlock); }

  const Job &job_;
  const JobTile tile_;
  int channels_;
  bool any_copy_ = false, any_fill_ = false;
  T *original_ = nullptr, *fill_ = nullptr, *fills_ = nullptr;
  T *copies_[2] = {};  // masks of copied samples: of ordinary rows, and of rows that border=keep copies whole
};

}  // namespace cudaconv
