// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Other implementations of the same filters on the same GPU: NPP, if the CUDA toolkit has it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "filter.h"

namespace cudaconv::bench {

// Enqueues a filter for a frame of `channels` interleaved 8-bit samples; pitches are in bytes. Throws
// std::runtime_error.
using Enqueue = std::function<void(const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch,
                                   int width, int height, cudaStream_t stream)>;

// NPP's function for these settings, with border=replicate and 1 or 4 channels, or 3 of a bilateral; none if NPP has no
// such function.
std::optional<Enqueue> npp_filter(const FilterSettings &settings, int channels);

}  // namespace cudaconv::bench
