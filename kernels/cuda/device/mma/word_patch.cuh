// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Words of pixels beside the frame.
#pragma once

#include "cuda/device/mma/coefficients.h"

namespace cudaconv {

// A word of pixels beside the frame, joined from bytes of two words of the row, which lie at byte offsets `first` and
// `second`. A negative `second` stands for the border's word.
struct WordPatch {
  int first, second;
  uint32_t selector;  // for __byte_perm()

  WordPatch() = default;
  // `columns` lists where the word's pixels are read.
  template <int kPixelBytes>
  __device__ static WordPatch find(const int *columns) {
    static_assert(kPixelBytes <= 2, "a word is of whole pixels");
    WordPatch patch;
    patch.first = max(columns[0], 0) * kPixelBytes & ~3;
    patch.second = patch.first;
    patch.selector = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int byte = columns[i / kPixelBytes] * kPixelBytes + i % kPixelBytes, word = byte & ~3;
      if (word != patch.first) patch.second = byte < 0 ? -1 : word;
      patch.selector |= (byte < 0 ? 4u + i : (word == patch.first ? 0u : 4u) + (byte & 3)) << 4 * i;
    }
    return patch;
  }

  __device__ static uint32_t load(const uint8_t *row, int at) {
    return __ldg(reinterpret_cast<const uint32_t *>(row + at));
  }
  __device__ uint32_t load_first(const uint8_t *row) const {
    return load(row, first);
  }
  __device__ uint32_t load_second(const uint8_t *row, uint32_t border) const {
    return second < 0 ? border : load(row, second);
  }
  __device__ uint32_t join(uint32_t first_word, uint32_t second_word) const {
    return __byte_perm(first_word, second_word, selector);
  }
};

// Whether every word of a row lies completely in the frame or beside it, and WordPatch can make those beside it.
template <int kPixelBytes>
__device__ inline bool can_patch(const MmaParams &p, const PartParams &part) {
  return kPixelBytes <= 2 && part.width * kPixelBytes % 4 == 0 && part.width > p.radius_x;
}

}  // namespace cudaconv
