// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Describes how the samples of a frame are stored. The filter code knows pixel formats only by this description; no
// format has its own loops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudaconv {

constexpr int kMaxPlanes = 4;    // planes of a frame, see FrameLayout
constexpr int kMaxChannels = 4;  // channels of a pixel

// The memory word that holds one sample; for Packed32, all samples of a pixel as bit fields.
enum class Container : uint8_t {
  U8,
  U16,       // little endian
  U16BE,     // big endian
  Packed32,  // little-endian 32-bit word, one bit field a channel
};

// The meaning of a channel: `luma`, `chroma` or `alpha` applies to it.
enum class Role : uint8_t {
  Luma,  // luma, grey, or a colour primary
  Chroma,
  Alpha,
  Padding,  // the x of RGBx: copied
};

// One channel of a PlaneLayout.
struct ChannelLayout {
  Role role = Role::Luma;
  // Position within the pixel. U8 and U16: containers after the pixel's first one. Packed32: the lowest bit of its
  // field.
  uint8_t offset = 0;
  uint8_t depth = 8;  // significant bits: sample values are 0 to 2^depth-1
  uint8_t shift = 0;  // unused low bits of the container below the sample (6 in P010), written as 0
};

// `width` x `height` pixels of `channels` samples each, all channels at the same resolution. A packed 4:2:2 frame is
// two of these over the same memory: luma, and the two chroma channels at half the width.
struct PlaneLayout {
  int width = 0;  // pixels
  // Rows; if the frame is interlaced, of both fields together. Each field has its own chroma, so a plane may have a row
  // more than in a progressive frame. If memory has no room for that row, the field's last lines have no chroma.
  int height = 0;
  int channels = 0;          // 1 to kMaxChannels
  int step = 0;              // containers from one pixel to the next; 1 for Packed32
  int first = 0;             // containers from the start of the memory plane's row to its first pixel
  int sub_x = 0, sub_y = 0;  // log2 of the frame pixels that a pixel of the plane spans, across and down
  int memory_plane = 0;      // which PlaneView of a FrameView holds it
  Container container = Container::U8;
  ChannelLayout channel[kMaxChannels];
  // Sample values that `border=constant` reads outside the plane, one a channel.
  uint16_t border_value[kMaxChannels] = {};
  uint16_t fill_value[kMaxChannels] = {};  // values that `mask=fill` writes, also to padding channels

  int bytes_per_container() const { return container == Container::U8 ? 1 : container == Container::Packed32 ? 4 : 2; }
  // The largest depth of a channel.
  int depth() const {
    int largest = 0;
    for (int c = 0; c < channels; c++) largest = channel[c].depth > largest ? channel[c].depth : largest;
    return largest;
  }
  // Whether the samples of a row are consecutive containers in channel order.
  bool dense() const {
    if (container != Container::U8 && container != Container::U16) return false;
    if (step != channels || first != 0) return false;
    for (int c = 0; c < channels; c++)
      if (channel[c].offset != c) return false;
    return true;
  }
};

struct FrameLayout {
  int planes = 0;
  PlaneLayout plane[kMaxPlanes];
  // Whether the frame holds two fields, rows 0, 2, 4, ... and rows 1, 3, 5, ..., which are filtered separately.
  bool interlaced = false;

  // The size of the planes that are not subsampled; there is always one. Others may have a row or a column less than
  // the size asks for.
  int width() const {
    return plane_where([](const PlaneLayout &p) { return p.sub_x == 0; }).width;
  }
  int height() const {
    return plane_where([](const PlaneLayout &p) { return p.sub_y == 0; }).height;
  }
  // The largest depth of a channel.
  int depth() const {
    int largest = 0;
    for (int i = 0; i < planes; i++) largest = plane[i].depth() > largest ? plane[i].depth() : largest;
    return largest;
  }

  bool dense() const {
    for (int i = 0; i < planes; i++)
      if (!plane[i].dense()) return false;
    return true;
  }
  // Whether all planes are dense, of one container, and all samples have the same depth and shift.
  bool uniform_dense() const {
    const ChannelLayout &sample = plane[0].channel[0];
    for (int i = 0; i < planes; i++) {
      if (!plane[i].dense() || plane[i].container != plane[0].container) return false;
      for (int c = 0; c < plane[i].channels; c++)
        if (plane[i].channel[c].depth != sample.depth || plane[i].channel[c].shift != sample.shift) return false;
    }
    return true;
  }

 private:
  template <typename F>
  const PlaneLayout &plane_where(F f) const {
    int i = 0;
    while (i + 1 < planes && !f(plane[i])) i++;
    return plane[i];
  }
};

// One plane of memory: the address of row 0 and the distance between rows.
struct PlaneView {
  uint8_t *data = nullptr;
  ptrdiff_t pitch = 0;  // bytes, not fewer than a row has; negative: rows are stored from bottom to top
};

// One frame in host or in device memory.
struct FrameView {
  PlaneView plane[kMaxPlanes];
  bool on_device = false;  // data are device addresses of the current CUDA context
  bool pinned = false;     // host memory, in one allocation, that the GPU copies from and to without staging
  // Frames in device memory: the CUstream of all work on the frame before and after the backend's. nullptr: there is no
  // other work, and the frame has been written.
  void *stream = nullptr;
  // Frames in device memory with a stream: whoever writes or frees the memory after the backend does so on `stream`.
  bool in_order = false;
};

}  // namespace cudaconv
