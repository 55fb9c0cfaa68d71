// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The dispatch table: which structure of kernels carries out which passes of a plan. It is asked once for a plan and a
// device; the answer is launched for each frame.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// Which sets of kernels were compiled for a device. They may be fewer than the device could run.
struct KernelSets {
  bool mma = false;   // the kernels of Feature::IntegerMma, see device/arch.cuh
  bool sm90 = false;  // the kernels of Feature::MaskKernels and Feature::EarlyStart
};

// The kernels for the current device. Throws Error{NoDevice} if it can run none.
KernelSets find_kernels();

// A pass of a plan, and the device that is to carry it out.
struct PassQuery {
  const Plan &plan;
  size_t index;        // index of the pass
  KernelSets kernels;  // kernels of the current device

  const Pass &pass() const { return plan.passes[index]; }
};

struct PassRun;

// Sets of border modes, with one bit for each mode.
constexpr unsigned border_bit(Border border) {
  return 1u << static_cast<int>(border);
}
template <typename... Borders>
constexpr unsigned border_bits(Borders... borders) {
  return (border_bit(borders) | ...);
}

// A row of the table.
struct Structure {
  const char *name;  // as in `stats`
  // The border modes that its kernels implement. It is not asked for passes with others, such as a new mode: most
  // structures fill edges by hand and would mistake it for one that they know.
  unsigned borders;
  // Returns how many passes, from the given one on, one launch carries out; 0 if that pass is not for this structure.
  // Enqueues nothing, but queries the limits of the current device. Throws Error{Device}.
  int (*takes)(const PassQuery &query);
  // Enqueues these passes. All pixels of the last one are filtered, also those that border=keep keeps. Throws
  // Error{Device}.
  void (*launch)(const PassRun &run);
  // Bytes of device memory that the first of these passes needs besides frames, see scratch.h; nullptr: none.
  size_t (*scratch)(const Plan &plan, const Pass &pass) = nullptr;
};

// The table, in the order in which structures are asked with method=auto. The methods do what none takes.
const std::vector<Structure> &structures();

// Passes of a plan that are carried out by one launch.
struct PreparedLaunch {
  const Structure *structure;  // nullptr: the kernels of a method
  size_t first;                // index of the first pass
  int passes;
  size_t scratch;  // bytes needed of FrameBuffers::scratch

  const char *name() const { return structure ? structure->name : nullptr; }
};

// The launches of a plan. Throws Error{Device}.
std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels);

// Enqueues a launch that was prepared for the plan; run.index is ignored. Pixels that border=keep keeps are copied.
// Throws Error{Device}.
void launch_prepared(const PreparedLaunch &prepared, PassRun run);

}  // namespace cudaconv
