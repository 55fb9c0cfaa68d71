// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernel for Op::Bilateral of RGB in any layout.
#include "cuda/bilateral/bilateral_pixels.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/method_launchers.h"

namespace cudaconv {

namespace bilateral {

namespace {

void fill_slots(const PassQuery &query, PixelsParams &p) {
  const Plan &plan = query.plan;
  const BilateralTables &tables = *query.pass().bilateral;
  const BilateralTables::Place &first = tables.colour[0];
  p.is_planar = tables.is_planar();
  p.table[0] = tables.table[first.plane][first.channel];
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const Plan::Part &part = plan.parts[i];
    std::fill_n(p.slot[i], kSlots, PixelsParams::Slot{kNoPart, 0});
    for (int k = 0; k < kColours; k++) {
      const BilateralTables::Place &place = tables.colour[k];
      if (place.plane == part.plane) p.slot_of[i][place.channel] = static_cast<uint8_t>(k);
      if (tables.has_colours(part.plane))
        p.slot[i][k] = {static_cast<uint8_t>(part_of_plane(plan, place.plane, part)),
                        static_cast<uint8_t>(place.channel)};
    }
    for (int c = 0; c < plan.layout.plane[part.plane].channels; c++) {
      if (tables.is_colour(part.plane, c) || plan.action[part.plane][c] != Action::Filter) continue;
      p.slot[i][kColours] = {static_cast<uint8_t>(i), static_cast<uint8_t>(c)};
      p.slot_of[i][c] = kColours;
      p.table[1] = tables.table[part.plane][c];
    }
  }
}

KernelLaunch<PixelsParams> choose_pixels(const PassQuery &query, PixelsParams &p) {
  const Pass &pass = query.pass();
  if (!pass.reads_colours() || pass.weighs_alpha) return {};
  p.width = pass.width();
  p.height = pass.height();
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  std::copy(pass.mask[0].value.begin(), pass.mask[0].value.end(), p.space);
  fill_range(pass, p.range);
  for (const RangeTable &table : pass.bilateral->range) p.entries += table.last() + 1;
  fill_slots(query, p);
  return {pixels_kernel, cut_tiles(p, kPixelsWidth, kPixelsHeight), dim3(kPixelsThreads), pixels_bytes(p)};
}

}  // namespace

}  // namespace bilateral

Prepared prepare_bilateral_pixels(const PassQuery &query) {
  return prepare_chosen<bilateral::PixelsParams>(query, bilateral::choose_pixels);
}

void launch_bilateral_pixels(const PassRun &run) {
  bilateral::PixelsParams p = {};
  fill_frame(run, p);
  const KernelLaunch<bilateral::PixelsParams> launch = bilateral::choose_pixels(run, p);
  enqueue(named(run, "bilateral_pixels"), launch, p);
}

}  // namespace cudaconv
