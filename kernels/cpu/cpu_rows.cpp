// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/cpu_rows.h"

namespace cudaconv {

namespace {

constexpr bool kBigEndianHost = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

// The value of a container of bytes or, for samples of 16 bits, of words, and back. `big`: big endian.
template <typename T>
int read_container(const uint8_t *p, bool big) {
  return sizeof(T) == 1 ? *p : big ? p[0] << 8 | p[1] : p[0] | p[1] << 8;
}

template <typename T>
void write_container(uint8_t *p, int v, bool big) {
  const int low = sizeof(T) == 2 && big;  // the place of the low byte
  p[low] = static_cast<uint8_t>(v);
  if (sizeof(T) == 2) p[1 - low] = static_cast<uint8_t>(v >> 8);
}

uint32_t read_word(const uint8_t *p) {
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}

void write_word(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = static_cast<uint8_t>(v >> (8 * i));
}

// Whether the samples of a row are consecutive 16-bit words, all of the same depth and shift.
bool is_row_of_words(const PlaneLayout &layout) {
  if ((layout.container != Container::U16 && layout.container != Container::U16BE) || layout.step != layout.channels)
    return false;
  for (int c = 0; c < layout.channels; c++)
    if (layout.channel[c].offset != c || layout.channel[c].depth != layout.channel[0].depth ||
        layout.channel[c].shift != layout.channel[0].shift)
      return false;
  return true;
}

// Offset in bytes, within a row, of the container of a channel of pixel x.
size_t position(const PlaneLayout &layout, const ChannelLayout &channel, int x) {
  return static_cast<size_t>(layout.first + channel.offset + x * layout.step) * layout.bytes_per_container();
}

template <typename T>
void unpack(const PlaneLayout &layout, const uint8_t *row, int x, int count, T *samples) {
  const int channels = layout.channels;
  for (int c = 0; c < channels; c++) {
    const ChannelLayout &channel = layout.channel[c];
    const int max = (1 << channel.depth) - 1;
    T *out = samples + c;
    if (layout.container == Container::Packed32) {
      for (int i = 0; i < count; i++)
        out[i * channels] = static_cast<T>(read_word(row + 4 * (x + i)) >> channel.offset & max);
    } else {
      const int step = layout.step * layout.bytes_per_container(), shift = channel.shift;
      const bool big = layout.container == Container::U16BE;
      const uint8_t *in = row + position(layout, channel, x);
      for (int i = 0; i < count; i++)
        out[i * channels] = static_cast<T>(read_container<T>(in + i * step, big) >> shift & max);
    }
  }
}

template <typename T>
void pack(const PlaneLayout &layout, const T *samples, int x, int count, uint8_t *row) {
  const int channels = layout.channels;
  if (layout.container == Container::Packed32) {
    for (int i = 0; i < count; i++) {
      uint32_t word = 0;
      for (int c = 0; c < channels; c++)
        word |= static_cast<uint32_t>(samples[i * channels + c]) << layout.channel[c].offset;
      write_word(row + 4 * (x + i), word);
    }
    return;
  }
  for (int c = 0; c < channels; c++) {
    const ChannelLayout &channel = layout.channel[c];
    const T *in = samples + c;
    const int step = layout.step * layout.bytes_per_container(), shift = channel.shift;
    const bool big = layout.container == Container::U16BE;
    uint8_t *out = row + position(layout, channel, x);
    for (int i = 0; i < count; i++) write_container<T>(out + i * step, in[i * channels] << shift, big);
  }
}

}  // namespace

template <typename T>
void unpack_pixels(const VectorLoops &loops, const PlaneLayout &layout, const uint8_t *row, int x, int count,
                   T *samples) {
  const ChannelLayout &channel = layout.channel[0];
  const int n = count * layout.channels;
  if (samples_in_memory<T>(layout, {})) {
    std::memcpy(samples, row + position(layout, channel, x), n * sizeof(T));
    return;
  }
  if constexpr (sizeof(T) == 2)
    if (is_row_of_words(layout) && n >= kVectorBlock)
      return loops.unpack(row + position(layout, channel, x), (layout.container == Container::U16BE) != kBigEndianHost,
                          channel.shift, (1 << channel.depth) - 1, samples, n);
  unpack(layout, row, x, count, samples);
}

template <typename T>
void pack_pixels(const VectorLoops &loops, const PlaneLayout &layout, const T *samples, int x, int count,
                 uint8_t *row) {
  const ChannelLayout &channel = layout.channel[0];
  const int n = count * layout.channels;
  if (samples_in_memory<T>(layout, {})) {
    std::memcpy(row + position(layout, channel, x), samples, n * sizeof(T));
    return;
  }
  if constexpr (sizeof(T) == 2)
    if (is_row_of_words(layout) && n >= kVectorBlock)
      return loops.pack(samples, (layout.container == Container::U16BE) != kBigEndianHost, channel.shift,
                        row + position(layout, channel, x), n);
  pack(layout, samples, x, count, row);
}

template void unpack_pixels(const VectorLoops &, const PlaneLayout &, const uint8_t *, int, int, uint8_t *);
template void unpack_pixels(const VectorLoops &, const PlaneLayout &, const uint8_t *, int, int, uint16_t *);
template void pack_pixels(const VectorLoops &, const PlaneLayout &, const uint8_t *, int, int, uint8_t *);
template void pack_pixels(const VectorLoops &, const PlaneLayout &, const uint16_t *, int, int, uint8_t *);

}  // namespace cudaconv
