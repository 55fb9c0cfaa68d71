// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guarded_frame.h"

#include <algorithm>

namespace cudaconv::test {

namespace {

// Bytes from the start of a row to the end of its last sample.
size_t row_bytes(const PlaneLayout &p) {
  int last = 0;
  if (p.container != Container::Packed32)
    for (int c = 0; c < p.channels; c++) last = std::max<int>(last, p.channel[c].offset);
  return static_cast<size_t>(p.first + (p.width - 1) * p.step + last + 1) * p.bytes_per_container();
}

}  // namespace

GuardedFrame::GuardedFrame(const FrameLayout &layout, const Placement &placement) {
  for (int m = 0; m < kMaxPlanes; m++) {
    size_t row = 0, container = 1;
    int height = 0;
    for (int p = 0; p < layout.planes; p++) {
      const PlaneLayout &plane = layout.plane[p];
      if (plane.memory_plane != m) continue;
      row = std::max(row, row_bytes(plane));
      height = std::max(height, plane.height);
      container = static_cast<size_t>(plane.bytes_per_container());
    }
    if (height == 0) continue;
    Block block;
    const size_t alignment = std::max(placement.alignment, container);
    const size_t pitch = (row + placement.padding * container + alignment - 1) / alignment * alignment;
    block.offset = placement.offset * container;
    block.pitch = static_cast<ptrdiff_t>(pitch);
    block.bytes.resize(block.offset + (height - 1) * pitch + row + placement.tail);
    if (placement.upward) {
      block.offset += (height - 1) * pitch;
      block.pitch = -block.pitch;
    }
    blocks_.push_back(std::move(block));
  }
}

void GuardedFrame::fill(Random &random) {
  for (Block &block : blocks_) {
    // A quarter of the bytes are 0 or 255, so that a minimum or maximum that reads too far fails.
    for (uint8_t &byte : block.bytes) {
      const uint64_t r = random();
      byte = r & 0x300 ? static_cast<uint8_t>(r) : r & 0x400 ? 255 : 0;
    }
  }
}

void GuardedFrame::dirty_unused_bits(const FrameLayout &layout, Random &random) {
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    Block &block = blocks_[plane.memory_plane];
    const int bytes = plane.bytes_per_container();
    for (int y = 0; y < plane.height; y++) {
      uint8_t *row = block.bytes.data() + block.offset + y * block.pitch;
      for (int x = 0; x < plane.width; x++) {
        uint8_t *pixel = row + (plane.first + x * plane.step) * bytes;
        if (plane.container == Container::Packed32) {
          uint32_t named = 0;
          for (int c = 0; c < plane.channels; c++)
            named |= ((1u << plane.channel[c].depth) - 1) << plane.channel[c].offset;
          const uint32_t noise = static_cast<uint32_t>(random()) & ~named;
          for (int i = 0; i < 4; i++) pixel[i] |= static_cast<uint8_t>(noise >> (8 * i));
          continue;
        }
        for (int c = 0; c < plane.channels; c++) {
          const uint32_t noise = static_cast<uint32_t>(random()) & ((1u << plane.channel[c].shift) - 1);
          uint8_t *sample = pixel + plane.channel[c].offset * bytes;
          if (plane.container == Container::U16) sample[0] |= static_cast<uint8_t>(noise), sample[1] |= noise >> 8;
          if (plane.container == Container::U16BE) sample[1] |= static_cast<uint8_t>(noise), sample[0] |= noise >> 8;
        }
      }
    }
  }
}

FrameView GuardedFrame::view() const {
  FrameView v;
  for (size_t m = 0; m < blocks_.size(); m++) {
    v.plane[m].data = const_cast<uint8_t *>(blocks_[m].bytes.data()) + blocks_[m].offset;
    v.plane[m].pitch = blocks_[m].pitch;
  }
  return v;
}

bool GuardedFrame::operator==(const GuardedFrame &other) const {
  return std::equal(blocks_.begin(), blocks_.end(), other.blocks_.begin(), other.blocks_.end(),
                    [](const Block &a, const Block &b) { return a.bytes == b.bytes; });
}

}  // namespace cudaconv::test
