// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The dispatch table: which structure of kernels carries out which passes of a plan. Asked once for a plan and a
// device; what it answers is launched for each frame.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// Which sets of kernels were compiled for a device, which may be fewer than it could run.
struct KernelSets {
  bool mma = false;   // those of Feature::IntegerMma are there
  bool sm90 = false;  // those of Feature::MaskKernels, see device/arch.cuh
};

// Throws Error{NoDevice} where the current device can run none.
KernelSets find_kernels();

// A pass of a plan for dense planes, and the device that is to carry it out.
struct PassQuery {
  const Plan &plan;
  size_t index;        // of the pass
  KernelSets kernels;  // of the current device

  const Pass &pass() const { return plan.passes[index]; }
};

struct PassRun;

// Border modes, a bit each.
constexpr unsigned border_bit(Border border) {
  return 1u << static_cast<int>(border);
}
template <typename... Borders>
constexpr unsigned border_bits(Borders... borders) {
  return (border_bit(borders) | ...);
}

// A row of the table.
struct Structure {
  const char *name;  // as stats have it
  // The modes that its kernels do. Of another, a new one say, it is not asked: most fill edges by hand, and would take
  // it for one that they know.
  unsigned borders;
  // How many passes, from the one asked for on, one launch carries out; 0 where that pass is not of its kind. Enqueues
  // nothing, but asks for the limits of the current device. Throws Error{Device}.
  int (*takes)(const PassQuery &query);
  // Enqueues them. Of the last one, all pixels are filtered. Throws Error{Device}.
  void (*launch)(const PassRun &run);
  // Bytes of device memory that the first of them needs besides frames, see scratch.h; nullptr: none.
  size_t (*scratch)(const Plan &plan, const Pass &pass) = nullptr;
};

// In the order in which they are asked with method=auto; what none takes, the methods do.
const std::vector<Structure> &structures();

// Passes of a plan that one launch carries out.
struct PreparedLaunch {
  const Structure *structure;  // nullptr: a method's kernels
  size_t first;                // pass
  int passes;
  size_t scratch;  // bytes of FrameBuffers::scratch

  const char *name() const { return structure ? structure->name : nullptr; }
};

// Throws Error{Device}.
std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels);

// Enqueues what was prepared for the plan; run.index is of no account. Pixels that are to stay as they were stay.
// Throws Error{Device}.
void launch_prepared(const PreparedLaunch &prepared, PassRun run);

}  // namespace cudaconv
