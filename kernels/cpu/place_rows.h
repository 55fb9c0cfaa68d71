// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Puts rows of results in their places in the frame: copies pixels, and blends pixels that fade, see plan/feather.h.
#pragma once

#include <cstring>
#include <type_traits>

#include "cpu/cpu_rows.h"
#include "plan/feather.h"

namespace cudaconv {

// Copies the pixels [begin, end) of a row from one view of the layout to another.
inline void copy_pixels(const PlaneLayout &layout, const uint8_t *from, uint8_t *to, int begin, int end) {
  const size_t size = layout.bytes_per_container();
  if (layout.dense() || layout.container == Container::Packed32) {
    const size_t pixel = layout.container == Container::Packed32 ? size : layout.channels * size;
    std::memcpy(to + begin * pixel, from + begin * pixel, (end - begin) * pixel);
    return;
  }
  for (int c = 0; c < layout.channels; c++)
    for (int x = begin; x < end; x++) {
      const size_t at = (layout.first + layout.channel[c].offset + static_cast<size_t>(x) * layout.step) * size;
      to[at] = from[at];
      if (size == 2) to[at + 1] = from[at + 1];
    }
}

template <int kChannels, typename T>
void fade_samples(const T *filtered, const uint8_t *shares, T *samples, int pixels) {
  using Wide = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;
  for (int x = 0; x < pixels; x++)
    for (int c = 0; c < kChannels; c++) {
      T &sample = samples[x * kChannels + c];
      sample = static_cast<T>(faded<Wide>(filtered[x * kChannels + c], sample, shares[x]));
    }
}

// Blends pixels of a row of results, from pixel `begin` on, with the pixels of the frame.
template <typename T>
void fade_pixels(const PlaneLayout &layout, const PlaneView &from, const PlaneView &to, int y, const PixelRun &run,
                 const uint8_t *shares, Scratch &scratch) {
  const int pixels = run.end - run.begin, channels = layout.channels;
  const uint8_t *const source = from.data + y * from.pitch;
  uint8_t *const target = to.data + y * to.pitch;
  const auto fade = [&](const T *filtered, T *samples) {
    with_channels(channels, [&](auto n) { fade_samples<n.value>(filtered, shares, samples, pixels); });
  };
  if (samples_in_memory<T>(layout, from) && samples_in_memory<T>(layout, to)) {
    fade(reinterpret_cast<const T *>(source) + run.begin * channels,
         reinterpret_cast<T *>(target) + run.begin * channels);
    return;
  }
  scratch.reset();
  T *const filtered = scratch.take<T>(pixels * channels), *const samples = scratch.take<T>(pixels * channels);
  unpack_pixels(vector_loops(), layout, source, run.begin, pixels, filtered);
  unpack_pixels(vector_loops(), layout, target, run.begin, pixels, samples);
  fade(filtered, samples);
  pack_pixels(vector_loops(), layout, samples, run.begin, pixels, target);
}

}  // namespace cudaconv
