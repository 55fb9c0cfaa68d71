// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels that do two small steps of morphology in one launch.
#include "cuda/sliding/composite.cuh"

#include "cuda/sliding/strips.h"

namespace cudaconv {

namespace {

enum class Composite { None, Closing, Gradient };

// The passes that one launch does.
struct CompositeKind {
  Composite composite = Composite::None;
  int passes = 0;
  bool difference = false;
};

// Whether a pass from `index` on reads frame buffer `frame`.
bool is_read(const Plan &plan, size_t index, int frame) {
  for (; index < plan.passes.size(); index++) {
    const Pass &pass = plan.passes[index];
    if (pass.source == frame || pass.copy_source == frame || (pass.op == Op::Difference && pass.subtrahend == frame))
      return true;
  }
  return false;
}

bool may_leave_pixels(const Pass &pass) {
  return pass.keep_x || pass.keep_y || pass.in_regions;
}

// Recognises two extrema in a row, a maximum and a minimum, with an optional difference after them.
CompositeKind find_composite(const PassQuery &query) {
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

  CompositeKind kind;
  if (second.source == first.source) {
    if (!third || !dilates || third->source != first.target || third->subtrahend != second.target) return {};
    kind = {Composite::Gradient, 3};
  } else {
    if (second.source != first.target) return {};
    const int greater = dilates ? second.target : first.source, smaller = dilates ? first.source : second.target;
    kind = {Composite::Closing, 2};
    if (third && third->source == greater && third->subtrahend == smaller) kind = {Composite::Closing, 3, true};
  }
  // The frame buffer between the passes is not written, so no later pass may read it.
  if (is_read(plan, i + kind.passes, first.target)) return {};
  if (kind.passes == 3 && is_read(plan, i + 3, second.target)) return {};
  return kind;
}

using CompositeLaunch = StripLaunch<CompositeParams>;

template <typename Operation, Ends kEnds>
CompositeLaunch composite_launch(const SwarKind &kind) {
  if (kind.words) {
    if constexpr (Operation::kRadius <= 2)
      if (kind.most_channels == 4) return strip_launch<Operation, Channels::Packed4, SwarU16Ordered, kEnds>();
    return strip_launch<Operation, Channels::Planar, SwarU16Ordered, kEnds>();
  }
  if (kind.most_channels == 4) return strip_launch<Operation, Channels::Packed4, SwarU8, kEnds>();
  if (kind.most_channels == 3) return strip_launch<Operation, Channels::Packed3, SwarU8, kEnds>();
  return strip_launch<Operation, Channels::Planar, SwarU8, kEnds>();
}

template <Ends kEnds>
CompositeLaunch choose_composite(Composite composite, const SwarKind &kind) {
  const bool closing = composite == Composite::Closing;
  if (kind.sliding == Sliding::Extremum3)
    return closing ? composite_launch<CompositeClosing<1>, kEnds>(kind)
                   : composite_launch<CompositeGradient<1>, kEnds>(kind);
  return closing ? composite_launch<CompositeClosing<2>, kEnds>(kind)
                 : composite_launch<CompositeGradient<2>, kEnds>(kind);
}

// The launch for these passes; without a kernel if they are not for this structure.
struct Choice {
  CompositeLaunch launch_as;
  SwarKind kind;
};

// Chooses the launch; the frame has been filled in.
Choice choose(const PassQuery &query, const CompositeKind &composite, CompositeParams &p) {
  // Both steps are of the same kind except for their direction.
  const SwarKind second = plan_swar(query.plan, query.plan.passes[query.index + 1], p.swar);
  const SwarKind kind = plan_swar(query.plan, query.pass(), p.swar);
  if (kind.sliding != second.sliding || (kind.sliding != Sliding::Extremum3 && kind.sliding != Sliding::Extremum5))
    return {};
  // Each neighbouring lane contributes at most 16 bytes.
  const int reach = (composite.composite == Composite::Closing ? 2 : 1) * query.pass().radius_x;
  if (reach * kind.most_channels * kind.sample_bytes() > kVectorBytes || !can_slide(p, kind)) return {};
  p.difference = composite.difference;
  return {rows_are_multiples_of_16(p, kind, reach) ? choose_composite<Ends::Whole>(composite.composite, kind)
                                                   : choose_composite<Ends::Tail>(composite.composite, kind),
          kind};
}

}  // namespace

int takes_composite(const PassQuery &query) {
  const CompositeKind composite = find_composite(query);
  if (composite.composite == Composite::None) return 0;
  CompositeParams p = {};
  fill_frame(query, p);
  return choose(query, composite, p).launch_as.kernel ? composite.passes : 0;
}

void launch_composite(const PassRun &run) {
  const CompositeKind composite = find_composite(run);
  CompositeParams p = {};
  fill_frame(run, run.index + composite.passes - 1, p);
  const Choice choice = choose(run, composite, p);
  enqueue_strips(run, choice.launch_as, choice.kind, p);
}

}  // namespace cudaconv
