// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The picture of a seed, as described at the head of vectors.txt, and the visible bytes of a frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/regions.h"

namespace cudaconv::verify {

// The generator splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

struct Picture {
  std::vector<int> sample[kMaxPlanes][kMaxChannels];  // rows from the top
};

// Draws the picture. Also draws the border values of the layout and the members of regions that are masks.
Picture draw_picture(uint64_t seed, FrameLayout &layout, Regions &regions);

// The bytes that contain samples, or whole words if samples are bit fields: plane of memory by plane, row by row, in
// the order of addresses.
std::vector<uint8_t> visible_bytes(const FrameLayout &layout, const FrameView &view);
void clear_visible_bytes(const FrameLayout &layout, const FrameView &view);

std::string sha256(const void *data, size_t bytes);

}  // namespace cudaconv::verify
