// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames whose planes are not dense, such as packed 4:2:2, 10-bit RGB in 32-bit words and those of
// big-endian samples: unpacked to dense planes for the filter, and packed again.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "plan/plan.h"

namespace cudaconv {

// How a plane of memory becomes dense planes, and back. Either is a permutation: 8 bytes of a row are as many of one
// plane, or four of the first and then four of the second. Or each 32-bit word is four bit fields, which become 16-bit
// samples, each of a plane of its own.
struct UnpackPlane {
  int32_t memory_plane, height;  // rows
  int32_t planes;                // 1, 2 or 4, numbers `plane`
  int32_t plane[kMaxPlanes];
  int32_t row_bytes[kMaxPlanes];  // of the dense planes
  int32_t chunks;                 // of 16 bytes, of a row in memory; the last may be a part of one
  // Permuted: of each 8 bytes, where the n-th comes from, in bits 4n ... 4n + 3 of two words, as __byte_perm() wants
  // them; to unpack and to pack.
  uint32_t unpack[2], pack[2];
  bool fields;
  uint8_t field[kMaxPlanes];  // the lowest bit of each
  uint16_t field_mask[kMaxPlanes];
};

// A plan for frames that have been unpacked.
struct UnpackedPlan {
  Plan plan;  // its memory planes are the planes of the layout
  int memory_planes = 0;
  UnpackPlane plane[kMaxPlanes];
};

// nullptr where there is nothing to be gained: the planes are dense, or the user has selected a method. Or nothing to
// be had: rows are not as UnpackPlane says, or a channel that is filtered has another depth than others.
std::shared_ptr<const UnpackedPlan> unpack_plan(const Plan &plan);

// Enqueues one launch. `packed` has the planes of memory, `dense` those of the plan; of either, pitches and addresses
// are multiples of 16 bytes. Bytes that belong to no pixel are neither read nor written. Throws Error{Device}.
void launch_unpack(const UnpackedPlan &plan, const FrameView &packed, const FrameView &dense, cudaStream_t stream);
void launch_pack(const UnpackedPlan &plan, const FrameView &dense, const FrameView &packed, cudaStream_t stream);

}  // namespace cudaconv
