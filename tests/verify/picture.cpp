// SPDX-License-Identifier: LGPL-2.1-or-later
#include "picture.h"

#include <glib.h>

#include <algorithm>

namespace cudaconv::verify {

namespace {

void draw_channel(Random &random, const PlaneLayout &plane, int channel, std::vector<int> &sample) {
  const uint64_t values = uint64_t{1} << plane.channel[channel].depth;
  const uint64_t kind = random() % 4;
  uint64_t v = 0;
  for (int y = 0; y < plane.height; y++) {
    for (int x = 0; x < plane.width; x++) {
      const uint64_t r = random();
      switch (kind) {
        case 0:  // noise
          v = r % values;
          break;
        case 1:  // runs
          if (r % 4 == 0) v = r / 4 % values;
          break;
        case 2:  // extremes
          v = r % 2 ? values - 1 : 0;
          break;
        default:  // a slope with a little noise
          v = ((5 * x + 3 * y) * (values / 64 + 1) + r % (values / 16 + 1)) % values;
          break;
      }
      sample.push_back(static_cast<int>(v));
    }
  }
}

// Calls f with the first byte and the number of bytes of each run of visible bytes.
template <typename F>
void for_each_run(const FrameLayout &layout, const FrameView &view, F f) {
  for (int m = 0; m < kMaxPlanes; m++) {
    std::vector<bool> visible;  // flags of the bytes of a row
    int height = 0;
    for (int p = 0; p < layout.planes; p++) {
      const PlaneLayout &plane = layout.plane[p];
      if (plane.memory_plane != m) continue;
      height = plane.height;
      const int bytes = plane.bytes_per_container();
      for (int x = 0; x < plane.width; x++) {
        for (int c = 0; c < plane.channels; c++) {
          const int offset = plane.container == Container::Packed32 ? 0 : plane.channel[c].offset;
          const size_t begin = static_cast<size_t>(plane.first + x * plane.step + offset) * bytes;
          visible.resize(std::max(visible.size(), begin + bytes));
          std::fill_n(visible.begin() + static_cast<ptrdiff_t>(begin), bytes, true);
        }
      }
    }
    for (int y = 0; y < height; y++) {
      uint8_t *row = view.plane[m].data + y * view.plane[m].pitch;
      for (size_t i = 0; i < visible.size();) {
        size_t end = i;
        while (end < visible.size() && visible[end]) end++;
        if (end > i) f(row + i, end - i);
        i = end + 1;
      }
    }
  }
}

}  // namespace

Picture draw_picture(uint64_t seed, FrameLayout &layout, Regions &regions) {
  Random random(seed);
  Picture picture;
  for (int p = 0; p < layout.planes; p++) {
    PlaneLayout &plane = layout.plane[p];
    for (int c = 0; c < plane.channels; c++) {
      plane.border_value[c] = static_cast<uint16_t>(random() % (uint64_t{1} << plane.channel[c].depth));
      plane.fill_value[c] = static_cast<uint16_t>((1 << plane.channel[c].depth) - 1 - plane.border_value[c]);
      draw_channel(random, plane, c, picture.sample[p][c]);
    }
  }
  for (RegionMask &mask : regions.mask) {
    mask.member.clear();
    for (int i = 0; i < mask.width * mask.height; i++) mask.member.push_back(random() % 3 != 0);
  }
  return picture;
}

std::vector<uint8_t> visible_bytes(const FrameLayout &layout, const FrameView &view) {
  std::vector<uint8_t> bytes;
  for_each_run(layout, view, [&](const uint8_t *begin, size_t n) { bytes.insert(bytes.end(), begin, begin + n); });
  return bytes;
}

void clear_visible_bytes(const FrameLayout &layout, const FrameView &view) {
  for_each_run(layout, view, [](uint8_t *begin, size_t n) { std::fill_n(begin, n, uint8_t{0}); });
}

std::string sha256(const void *data, size_t bytes) {
  gchar *text = g_compute_checksum_for_data(G_CHECKSUM_SHA256, static_cast<const guchar *>(data), bytes);
  const std::string result = text;
  g_free(text);
  return result;
}

}  // namespace cudaconv::verify
