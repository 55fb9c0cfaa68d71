// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels: it chooses a kernel for a pass, or for two or three passes of morphology, and
// cuts the frame into strips.
#include "cuda/sliding/sliding.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "plan/lower.h"

namespace cudaconv {

using namespace sliding;

namespace {

// The kernel for some passes, none if they are not for this structure.
struct Choice {
  SlidingKernel kernel;
  SwarKind kind;
  int passes = 0;
};

// Pixels of three bytes are four in registers, whose last is of no use. The first word of a row has all three.
void widen_words(PartParams &part) {
  for (uint32_t *words : {part.filter_bits, part.copy_bits, part.fill_word, part.border_word})
    words[0] = words[1] = words[0] & 0x00ffffffu;
}

int lane_row_bytes(const PartParams &part, const SwarKind &kind) {
  return part.width * SwarKind::lane_channels(part.channels) * kind.sample_bytes();
}

bool can_slide(const FrameParams &p, const SwarKind &kind) {
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    // Kernels for planes of one or two channels filter all channels of a plane or none.
    const bool mixed = part.channels < 3 && part.has_filtered && part.has_unfiltered;
    return lane_row_bytes(part, kind) >= kVectorBytes && !mixed;
  });
}

bool is_extremum(const SwarKind &kind) {
  return kind.sliding >= Sliding::Extremum3 && kind.sliding <= Sliding::Extremum9;
}

// The operation for two steps that differ in their direction alone. None if there is none.
SwarKind plan_composite(const PassQuery &query, const Composite &composite, SlidingParams &p) {
  const SwarKind second = plan_swar(query.plan, query.plan.passes[query.index + 1], p.swar);
  SwarKind kind = plan_swar(query.plan, query.pass(), p.swar);
  const bool three = kind.sliding == Sliding::Extremum3;
  if (kind.sliding != second.sliding || (!three && kind.sliding != Sliding::Extremum5)) return {};
  // Each neighbouring lane contributes at most 16 bytes.
  const int reach = (composite.gradient ? 1 : 2) * query.pass().radius_x;
  if (reach * kind.lane_bytes() > kVectorBytes) return {};
  kind.sliding = composite.gradient ? (three ? Sliding::MorphGradient3 : Sliding::MorphGradient5)
                                    : (three ? Sliding::Closing3 : Sliding::Closing5);
  p.difference = composite.difference;
  return kind;
}

// Chooses the kernel for the pass, or for several from it on; the frame has been filled in.
Choice choose(const PassQuery &query, SlidingParams &p) {
  Choice choice;
  const Composite composite = find_composite(query.plan, query.index);
  if (composite.passes) {
    choice.kind = plan_composite(query, composite, p);
    choice.passes = composite.passes;
  }
  if (choice.kind.sliding == Sliding::None) {
    choice.kind = plan_swar(query.plan, query.pass(), p.swar);
    choice.passes = 1;
  }
  if (choice.kind.sliding == Sliding::None || !can_slide(p, choice.kind)) return {};
  choice.kernel = rank_kernel(choice.kind);
  if (!choice.kernel.kernel) choice.kernel = sum_kernel(choice.kind);
  if (!choice.kernel.kernel) return {};
  // With these modes every outside sample equals one inside the same window, as with Replicate, which is cheaper.
  if (is_extremum(choice.kind) && (p.border == Border::Reflect || p.border == Border::Reflect101))
    p.border = Border::Replicate;
  return choice;
}

}  // namespace

Prepared prepare_sliding(const PassQuery &query) {
  SlidingParams p = {};
  fill_frame(query, p);
  const Choice choice = choose(query, p);
  const SlidingKernel &as = choice.kernel;
  if (!as.kernel) return {};
  for (int i = 0; i < p.parts; i++)
    if (p.part[i].channels == 3) widen_words(p.part[i]);
  const unsigned blocks = cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
    return TileSize{kWarpBytes, lane_row_bytes(part, choice.kind), as.rows * as.warps};
  });
  const size_t bytes = edge_bytes(as.warps, as.rows + 2 * as.radius);
  return prepare_launch({as.kernel, blocks, dim3(32 * as.warps), bytes}, p, choice.passes);
}

}  // namespace cudaconv
