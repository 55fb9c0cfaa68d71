// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The dispatch table: it finds the structure of kernels for each pass of a plan. It is asked once for a plan and a
// device. The answer, with kernels, grids and parameters, is launched for each frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// Which sets of kernels were compiled for a device. They may be fewer than the device could run.
struct KernelSets {
  bool mma = false;  // the kernels of Feature::IntegerMma, see device/arch.cuh
};

// The kernels for the current device. Throws Error{NoDevice} if it can run none.
KernelSets find_kernels();

struct PartArea;

// A pass of a plan, and the device that is to carry it out.
struct PassQuery {
  const Plan &plan;
  size_t index;        // index of the pass
  KernelSets kernels;  // kernels of the current device
  // With regions: the pixels of each part that the last pass that is launched together computes; nullptr: all pixels.
  const std::vector<PartArea> *areas = nullptr;

  const Pass &pass() const { return plan.passes[index]; }
  bool is_dense(Container container) const;  // is_uniform_dense()
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

// How passes of a plan are carried out: chosen once, with kernels, grids and parameters, and launched for each frame.
struct Prepared {
  int passes = 0;  // how many passes, from the one asked for on; 0: these passes are not for this form
  // Enqueues these passes for a frame, whose addresses it fills in. All pixels of the last one are filtered, also those
  // that border=keep keeps. Throws Error{Device}.
  std::function<void(const PassRun &)> launch;
  size_t scratch = 0;                // bytes of device memory that they need besides frames, FrameBuffers::scratch
  bool lists_tiles = false;          // whether they take more than kMaxParts rectangles of areas, by
  std::vector<uint32_t> tiles = {};  // the numbers of their tiles, see FrameParams::tile_list
};

// A way to carry passes out. Enqueues nothing, but asks for the limits of the current device. Throws Error{Device}.
using Prepare = Prepared (*)(const PassQuery &query);

// A row of the table.
struct Structure {
  const char *name;  // as in `stats`
  // The border modes that its kernels implement. It is not asked for passes with others, such as a new mode: most
  // structures fill edges by hand and would mistake it for one that they know.
  unsigned borders;
  std::vector<Prepare> forms;  // asked in this order
};

// The table, in the order in which structures are asked with method=auto. The methods do what none takes.
const std::vector<Structure> &structures();

// Passes of a plan, and how they are carried out.
struct PreparedLaunch {
  const Structure *structure;  // nullptr: the kernels of a method
  size_t first;                // index of the first pass
  Prepare form;                // nullptr as `structure`
  Prepared prepared;

  int passes() const { return prepared.passes; }
  const char *name() const { return structure ? structure->name : nullptr; }
};

// The launches of a plan. Throws Error{Device}.
std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels);

// A launch of the plan on areas, which must outlive it. Throws Error{Device}.
PreparedLaunch prepare_on_areas(const PreparedLaunch &launch, const Plan &plan, const KernelSets &kernels,
                                const std::vector<PartArea> &areas);

// Enqueues a launch that was prepared for the plan; run.index is ignored. Pixels that border=keep keeps are copied.
// Throws Error{Device}.
void launch_prepared(const PreparedLaunch &launch, PassRun run);

}  // namespace cudaconv
