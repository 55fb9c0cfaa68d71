// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a GPU carries out a plan with method=auto, with the same bytes: over dense planes, by squares that kernels have,
// and with several passes in one launch. Kernels, grids and addresses are chosen in cuda/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// Radius of the largest square of a pass. With larger windows a tile and its halo in shared memory would leave too
// little room for results: two passes take less time.
constexpr int kLargestSquareRadius = 31;

// Whether all planes have this container, and kernels on words of four bytes can read and write them.
inline bool is_uniform_dense(const FrameLayout &layout, Container container) {
  return layout.uniform_dense() && std::all_of(layout.plane, layout.plane + layout.planes, [&](const PlaneLayout &p) {
           return p.container == container && (container == Container::U8 ? p.channel[0].depth == 8 : p.channels != 3);
         });
}

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

// The passes over a frame as it is, or over dense planes. The frame is unpacked to these before the first pass, and
// packed again after the last one.
struct LoweredPlan : Plan {
  std::vector<UnpackPlane> packed;  // the planes of memory of a frame that is unpacked, else empty
};
LoweredPlan lower(const Plan &plan);

// Passes that one launch can carry out: a maximum and a minimum, one after the other or of one frame, and the
// difference after them. The frames between them are read by no other pass.
struct Composite {
  int passes = 0;           // 0: none
  bool gradient = false;    // the largest sample minus the smallest, else a closing or an opening
  bool difference = false;  // of these and the samples
};
// The passes from `first` on.
Composite find_composite(const Plan &plan, size_t first);

}  // namespace cudaconv
