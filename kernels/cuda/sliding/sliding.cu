// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels: it chooses a kernel for a pass, or for two or three passes of morphology, and
// cuts the frame into strips.
#include "cuda/sliding/sliding.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"

namespace cudaconv {

using namespace sliding;

namespace {

// Passes that one launch does.
struct Composite {
  int passes = 0;           // 0: none
  bool gradient = false;    // the largest sample minus the smallest, else a closing or an opening
  bool difference = false;  // of these and the samples
};

// Whether a pass from `index` on reads frame buffer `frame`.
bool is_read(const Plan &plan, size_t index, int frame) {
  return std::any_of(plan.passes.begin() + static_cast<std::ptrdiff_t>(index), plan.passes.end(),
                     [&](const Pass &pass) { return pass.reads(frame); });
}

bool may_leave_pixels(const Pass &pass) {
  return pass.keep_x || pass.keep_y || pass.in_regions;
}

// Recognises two extrema in a row, a maximum and a minimum, with an optional difference after them.
Composite find_composite(const PassQuery &query) {
  const Plan &plan = query.plan;
  const size_t i = query.index, left = plan.passes.size() - i;
  if (left < 2) return {};
  const Pass &first = plan.passes[i], &second = plan.passes[i + 1];
  const Pass *third = left > 2 ? &plan.passes[i + 2] : nullptr;
  const bool dilates = first.op == Op::Maximum, erodes = first.op == Op::Minimum;
  if (!(dilates && second.op == Op::Minimum) && !(erodes && second.op == Op::Maximum)) return {};
  if (may_leave_pixels(first)) return {};
  if (third && (third->op != Op::Difference || third->copy_source != first.source || may_leave_pixels(second)))
    third = nullptr;

  Composite kind;
  if (second.source == first.source) {
    if (!third || !dilates || third->source != first.target || third->operand != second.target) return {};
    kind = {3, true, false};
  } else {
    if (second.source != first.target) return {};
    const int greater = dilates ? second.target : first.source, smaller = dilates ? first.source : second.target;
    kind = {2, false, false};
    if (third && third->source == greater && third->operand == smaller) kind = {3, false, true};
  }
  // The frame buffer between the passes is not written, so no later pass may read it.
  if (is_read(plan, i + kind.passes, first.target)) return {};
  if (kind.passes == 3 && is_read(plan, i + 3, second.target)) return {};
  return kind;
}

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

SlidingKernel find_kernel(const SwarKind &kind) {
  for (const auto kernel_of : {linear_kernel, gradient_kernel, extremum_kernel, median_kernel})
    if (const SlidingKernel found = kernel_of(kind); found.kernel) return found;
  return {};
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
  // At edges closings know samples inside their windows alone.
  const Composite composite = p.border == Border::Wrap ? Composite{} : find_composite(query);
  if (composite.passes) {
    choice.kind = plan_composite(query, composite, p);
    choice.passes = composite.passes;
  }
  if (choice.kind.sliding == Sliding::None) {
    choice.kind = plan_swar(query.plan, query.pass(), p.swar);
    choice.passes = 1;
  }
  if (choice.kind.sliding == Sliding::None || !can_slide(p, choice.kind)) return {};
  choice.kernel = find_kernel(choice.kind);
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
