// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Unpacks frames without dense planes to dense planes for the filter, and packs them again. Examples: packed 4:2:2,
// 10-bit RGB in 32-bit words, big-endian samples.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "cuda/launch_graph.h"
#include "plan/plan.h"

namespace cudaconv {

// How a plane of memory becomes dense planes, and back. By a permutation: every 8 bytes of a row are 8 bytes of one
// plane, or four of a first and four of a second plane. Or by fields: every 32-bit word is four bit fields, which
// become 16-bit samples of a plane each.
struct UnpackPlane {
  int32_t memory_plane, height;  // rows
  int32_t planes;                // 1, 2 or 4 dense planes, whose indices are in `plane`
  int32_t plane[kMaxPlanes];
  int32_t row_bytes[kMaxPlanes];  // bytes of a row of each dense plane
  int32_t chunks;                 // 16-byte chunks of a row in memory; the last may be partial
  // Permutation: the selectors of unpacking and of packing 8 bytes, two words each as __byte_perm() takes them, with 4
  // bits for every byte that say where it comes from.
  uint32_t unpack[2], pack[2];
  bool fields;
  uint8_t field[kMaxPlanes];  // lowest bit of each field
  uint16_t field_mask[kMaxPlanes];
};

struct UnpackedPlan {
  Plan plan;  // its memory planes are the planes of its layout
  int memory_planes = 0;
  UnpackPlane plane[kMaxPlanes];
};

// Returns nullptr where nothing is gained, because the planes are dense or the user has selected a method, or where it
// cannot be done: rows are not as UnpackPlane describes, filtered channels differ in depth, or another channel has more
// bits than they.
std::shared_ptr<const UnpackedPlan> unpack_plan(const Plan &plan);

// Each enqueues one launch. `packed` has the planes of memory, `dense` the planes of the plan. All pitches and
// addresses are multiples of 16 bytes. Bytes that belong to no pixel are neither read nor written. Throws
// Error{Device}.
void launch_unpack(const UnpackedPlan &plan, const FrameView &packed, const FrameView &dense, LaunchGraph &launches);
void launch_pack(const UnpackedPlan &plan, const FrameView &dense, const FrameView &packed, LaunchGraph &launches);

}  // namespace cudaconv
