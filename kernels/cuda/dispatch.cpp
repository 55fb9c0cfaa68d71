// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/dispatch.h"

#include <algorithm>

#include "cuda/launchers.h"
#include "cuda/scratch.h"

namespace cudaconv {

// The forms of the structures, defined in their families' folders. All but prepare_long() take dense planes only.
Prepared prepare_mosaic(const PassQuery &query);
Prepared prepare_weighted_strips(const PassQuery &query);     // up to 5x5, of pixels of four bytes
Prepared prepare_separable_weighted(const PassQuery &query);  // the same up to 33x33, on the matrix instructions
Prepared prepare_weighted(const PassQuery &query);            // others of a row and a column
Prepared prepare_blur(const PassQuery &query);
Prepared prepare_sliding(const PassQuery &query);
Prepared prepare_van_herk(const PassQuery &query);
Prepared prepare_element_strips(const PassQuery &query);       // ellipses, crosses and the like up to 63x63
Prepared prepare_chords(const PassQuery &query);               // other structuring elements up to 31x31
Prepared prepare_structuring_element(const PassQuery &query);  // larger ellipses, crosses and the like
Prepared prepare_median_network(const PassQuery &query);       // 7x7 to 15x15
Prepared prepare_median_histogram(const PassQuery &query);     // larger
Prepared prepare_bilateral(const PassQuery &query);            // without alpha
Prepared prepare_separable9(const PassQuery &query);           // up to 9x9, 8-bit samples, rows of 16n bytes
Prepared prepare_separable(const PassQuery &query);
Prepared prepare_blocks4x4(const PassQuery &query);  // up to 17x15, 8-bit samples
Prepared prepare_dense(const PassQuery &query);
Prepared prepare_long_box(const PassQuery &query);
Prepared prepare_long_separable(const PassQuery &query);  // Gaussians of any length, on the matrix instructions
Prepared prepare_long(const PassQuery &query);            // any separable mask, of any layout

namespace {

constexpr unsigned kAllSix =
    border_bits(Border::Replicate, Border::Reflect, Border::Reflect101, Border::Constant, Border::Keep, Border::Wrap);
// For structures that no method can stand in for, and that take outside samples only from the index functions of
// plan/border.h or need none.
constexpr unsigned kAny = ~0u;

}  // namespace

const std::vector<Structure> &structures() {
  static const std::vector<Structure> kStructures = {
      {"mosaic", kAny, {prepare_mosaic}},
      {"weighted", kAllSix, {prepare_weighted_strips, prepare_separable_weighted, prepare_weighted}},
      {"blur", kAllSix, {prepare_blur}},
      {"sliding", kAllSix, {prepare_sliding}},
      {"extremum", kAllSix, {prepare_van_herk}},
      {"element", kAllSix, {prepare_element_strips, prepare_chords, prepare_structuring_element}},
      {"median", kAllSix, {prepare_median_network, prepare_median_histogram}},
      {"separable", kAllSix, {prepare_separable9, prepare_separable}},
      {"custom", kAllSix, {prepare_blocks4x4, prepare_dense}},
      {"mean", kAny, {prepare_long_box}},
      {"bilateral", kAllSix, {prepare_bilateral}},
      {"long", kAllSix, {prepare_long_separable, prepare_long}},
  };
  return kStructures;
}

std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels) {
  std::vector<PreparedLaunch> launches;
  const auto ask = [&](const Structure &structure, size_t i) {
    if (!(structure.borders & border_bit(plan.border))) return false;
    for (const Prepare &form : structure.forms) {
      Prepared prepared = form({plan, i, kernels});
      if (!prepared.passes) continue;
      launches.push_back({&structure, i, std::move(prepared)});
      return true;
    }
    return false;
  };
  for (size_t i = 0; i < plan.passes.size(); i += launches.back().passes()) {
    const auto asks = [&](const Structure &structure) { return ask(structure, i); };
    if (plan.method == Method::Auto && std::any_of(structures().begin(), structures().end(), asks)) continue;
    launches.push_back({nullptr, i, {1, launch_method, coarse_bytes(plan, plan.passes[i])}});
  }
  return launches;
}

void launch_prepared(const PreparedLaunch &launch, PassRun run) {
  run.index = launch.first;
  if (launch.structure) run.name = launch.name();
  launch.prepared.launch(run);
  if (!launch.structure) return;
  run.index += launch.passes() - 1;
  const FrameLayout &layout = run.plan.layout;
  const bool dense =
      std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &plane) { return plane.dense(); });
  // Structures that also take other planes copy kept pixels themselves.
  if (dense && (run.pass().keep_x || run.pass().keep_y)) launch_restore(run);
}

}  // namespace cudaconv
