// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Words up to the end of a dense row, and the rounding of any sum.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv {

// load_words() or store_words() for the first `bytes` bytes of kWords words, all or fewer. Words to load into are 0
// before.
template <int kWords>
__device__ inline void load_bytes(const uint8_t *from, int bytes, uint32_t *to) {
  if (bytes >= 4 * kWords) return load_words<kWords>(from, to);
#pragma unroll
  for (int i = 0; i < 4 * kWords; i++)
    if (i < bytes) to[i / 4] |= static_cast<uint32_t>(from[i]) << 8 * (i % 4);
}
template <int kWords>
__device__ inline void store_bytes(uint8_t *to, int bytes, const uint32_t *from) {
  if (bytes >= 4 * kWords) return store_words<kWords>(to, from);
#pragma unroll
  for (int i = 0; i < 4 * kWords; i++)
    if (i < bytes) to[i] = static_cast<uint8_t>(from[i / 4] >> 8 * (i % 4));
}

// Rounds any sum to a sample. `centre`: the source's sample at that place, used with a gain.
__device__ inline int round_sum(const FrameParams &p, const Rounding &rounding, int64_t sum, int centre) {
  if (p.has_gain) return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, centre), rounding);
  if (rounding.wide) return round_to_sample(sum, rounding);
  return round_to_sample(static_cast<int32_t>(sum), rounding);
}

}  // namespace cudaconv
