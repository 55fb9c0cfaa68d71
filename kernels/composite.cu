// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels that do two small steps of morphology at once.
#include "composite.cuh"

#include "quads.h"

namespace cudaconv {

namespace {

constexpr int kCompositeHeight = 32;  // rows of a tile

using CompositeKernel = void (*)(CompositeParams);

struct CompositeLaunch {
  CompositeKernel kernel = nullptr;
  int halo = 0, buffers = 0;
  int passes = 0;  // that it carries out
  CompositeResult result = CompositeResult::Plain;
};

bool is_extremum(const Pass &pass) {
  return (pass.op == Op::Minimum || pass.op == Op::Maximum) && pass.element.empty() && pass.copy_source == pass.source;
}

// Whether a pass from the one at `index` on reads the frame.
bool is_read(const Plan &plan, size_t index, int frame) {
  for (; index < plan.passes.size(); index++) {
    const Pass &pass = plan.passes[index];
    if (pass.source == frame || pass.copy_source == frame || (pass.op == Op::Difference && pass.subtrahend == frame))
      return true;
  }
  return false;
}

// Two extrema of the same square at run.index, and maybe a difference after them.
CompositeLaunch choose_composite(const PassRun &run) {
  const Plan &plan = run.plan;
  const size_t i = run.index, left = plan.passes.size() - i;
  if (left < 2) return {};
  const Pass &first = plan.passes[i], &second = plan.passes[i + 1];
  const Pass *third = left > 2 ? &plan.passes[i + 2] : nullptr;
  const int radius = first.radius_x;
  if (!is_extremum(first) || !is_extremum(second) || first.radius_y != radius || second.radius_x != radius ||
      second.radius_y != radius || radius < 1 || radius > 2 || plan.border == Border::Wrap)
    return {};
  const bool subtracts = third && third->op == Op::Difference && third->copy_source == first.source;

  CompositeLaunch launch_as;
  if (second.source == first.source) {
    if (!subtracts || first.op != Op::Maximum || second.op != Op::Minimum || third->source != first.target ||
        third->subtrahend != second.target || is_read(plan, i + 3, first.target))
      return {};
    launch_as.kernel = radius == 1 ? range_kernel<1> : range_kernel<2>;
    launch_as.halo = radius;
    launch_as.buffers = 1;
    launch_as.passes = 3;
  } else {
    if (second.source != first.target) return {};
    launch_as.kernel = radius == 1 ? two_step_kernel<1> : two_step_kernel<2>;
    launch_as.halo = 2 * radius;
    launch_as.buffers = 2;
    launch_as.passes = 2;
    if (subtracts && third->source == first.source && third->subtrahend == second.target) {
      launch_as.passes = 3;
      launch_as.result = CompositeResult::SourceMinus;
    } else if (subtracts && third->source == second.target && third->subtrahend == first.source) {
      launch_as.passes = 3;
      launch_as.result = CompositeResult::MinusSource;
    }
    if (is_read(plan, i + launch_as.passes, first.target)) return {};
  }
  // What only the difference has read is not written.
  if (launch_as.passes == 3 && is_read(plan, i + 3, second.target)) return {};
  return launch_as;
}

}  // namespace

int launch_composite(const PassRun &run) {
  const CompositeLaunch launch_as = choose_composite(run);
  for (int i = 0; i < launch_as.passes; i++)
    if (!in_quads(run, run.plan.passes[run.index + i])) return 0;
  if (!launch_as.passes) return 0;
  CompositeParams p = {};
  fill_frame(run, run.index + launch_as.passes - 1, p);
  for (int i = 0; i < 2; i++) p.flip[i] = run.plan.passes[run.index + i].op == Op::Minimum ? 0xffffffffu : 0;
  p.result = launch_as.result;
  p.tile = make_quad_tile(kCompositeWidth, kCompositeHeight, launch_as.halo, launch_as.halo);
  // The second tile needs no more room than the first.
  const size_t bytes = sizeof(uint32_t) * kCompositePitch * launch_as.buffers * (kCompositeHeight + 2 * launch_as.halo);
  const unsigned blocks = cut_quad_tiles(p, p.tile);
  enqueue_quads("composite", launch_as.kernel, blocks, bytes, run.stream, p);
  return launch_as.passes;
}

}  // namespace cudaconv
