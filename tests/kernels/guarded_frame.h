// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames in host memory with guard bytes before a plane, between its rows, and after it. Tests check all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <vector>

#include "imageview.h"

namespace cudaconv::test {

using Random = std::mt19937_64;

// The position of the rows of a plane of memory in their block.
struct Placement {
  size_t offset;        // in containers, before row 0
  size_t padding;       // in containers, at least, between the rows
  size_t alignment;     // in bytes, of the pitch
  size_t tail;          // in bytes, after the last sample of the last row in memory; 0: the block ends there
  bool upward = false;  // rows are stored from bottom to top
};

// Blocks begin at a multiple of 256, so that only the Placement decides the alignment. They have exactly the requested
// size, so that a sanitizer finds an access to the first byte behind them.
template <typename T>
struct BlockAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{256};
  BlockAllocator() = default;
  template <typename U>
  BlockAllocator(const BlockAllocator<U> &) {}
  T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T *p, size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const BlockAllocator &) const { return true; }
  bool operator!=(const BlockAllocator &) const { return false; }
};

class GuardedFrame {
 public:
  struct Block {
    std::vector<uint8_t, BlockAllocator<uint8_t>> bytes;
    size_t offset = 0;    // of row 0, in bytes
    ptrdiff_t pitch = 0;  // in bytes
  };

  GuardedFrame(const FrameLayout &layout, const Placement &placement);

  // Fills every byte at random, the padding included.
  void fill(Random &random);
  // Puts noise into the bits below each sample. Filters must ignore them.
  void dirty_unused_bits(const FrameLayout &layout, Random &random);

  FrameView view() const;
  const std::vector<Block> &blocks() const { return blocks_; }
  std::vector<Block> &blocks() { return blocks_; }

  bool operator==(const GuardedFrame &other) const;
  bool operator!=(const GuardedFrame &other) const { return !(*this == other); }

 private:
  std::vector<Block> blocks_;  // one for each plane of memory
};

}  // namespace cudaconv::test
