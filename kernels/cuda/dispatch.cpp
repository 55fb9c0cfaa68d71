// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/dispatch.h"

#include "cuda/method_launchers.h"

namespace cudaconv {

// The forms of the structures, in the folders of the structures. All but prepare_long() take only dense planes.
Prepared prepare_mosaic(const PassQuery &query);
Prepared prepare_blur(const PassQuery &query);
Prepared prepare_sliding(const PassQuery &query);
Prepared prepare_weighted(const PassQuery &query);
Prepared prepare_extremum(const PassQuery &query);
Prepared prepare_element_chords(const PassQuery &query);    // up to 31x31
Prepared prepare_element_runs(const PassQuery &query);      // larger ellipses and crosses
Prepared prepare_median_network(const PassQuery &query);    // 7x7 to 15x15
Prepared prepare_median_histogram(const PassQuery &query);  // larger
Prepared prepare_bilateral(const PassQuery &query);         // square, without alpha
Prepared prepare_bilateral_pixels(const PassQuery &query);  // other RGB without alpha
Prepared prepare_separable9(const PassQuery &query);        // up to 9x9, 8-bit samples, rows of 16n bytes
Prepared prepare_separable(const PassQuery &query);
Prepared prepare_custom_blocks(const PassQuery &query);  // up to 17x15, 8-bit samples
Prepared prepare_custom_dense(const PassQuery &query);
Prepared prepare_mean(const PassQuery &query);
Prepared prepare_long_mma(const PassQuery &query);  // Gaussians of any length
Prepared prepare_long(const PassQuery &query);      // any separable mask, of any layout

namespace {

constexpr unsigned kAllSix =
    border_bits(Border::Replicate, Border::Reflect, Border::Reflect101, Border::Constant, Border::Keep, Border::Wrap);
// For structures that no method can stand in for, and that take outside samples only from the index functions of
// plan/border.h or need none.
constexpr unsigned kAny = ~0u;

}  // namespace

bool PassQuery::is_dense(Container container) const {
  return is_uniform_dense(plan.layout, container);
}

const std::vector<Structure> &structures() {
  // Never destroyed: threads may filter while the process exits.
  static const auto &kStructures = *new const std::vector<Structure>{
      {"mosaic", kAny, {prepare_mosaic}},
      {"blur", kAllSix, {prepare_blur}},
      {"sliding", kAllSix, {prepare_sliding}},
      {"weighted", kAllSix, {prepare_weighted}},
      {"extremum", kAllSix, {prepare_extremum}},
      {"element", kAllSix, {prepare_element_chords, prepare_element_runs}},
      {"median", kAllSix, {prepare_median_network, prepare_median_histogram}},
      {"separable", kAllSix, {prepare_separable9, prepare_separable}},
      {"custom", kAllSix, {prepare_custom_blocks, prepare_custom_dense}},
      {"mean", kAny, {prepare_mean}},
      {"bilateral", kAllSix, {prepare_bilateral, prepare_bilateral_pixels}},
      {"long", kAllSix, {prepare_long_mma, prepare_long}},
  };
  return kStructures;
}

// How the passes from `index` on are carried out: by the first form that takes them, else by a method.
static PreparedLaunch find_launch(const Plan &plan, size_t index, const KernelSets &kernels) {
  for (const Structure &structure : structures()) {
    if (plan.method != Method::Auto || !(structure.borders & border_bit(plan.border))) continue;
    for (const Prepare &form : structure.forms)
      if (Prepared prepared = form({plan, index, kernels}); prepared.passes)
        return {&structure, index, form, std::move(prepared)};
  }
  return {nullptr, index, nullptr, {1, launch_method, method_bytes(plan, plan.passes[index])}};
}

std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels) {
  std::vector<PreparedLaunch> launches;
  for (size_t i = 0; i < plan.passes.size(); i += launches.back().passes())
    launches.push_back(find_launch(plan, i, kernels));
  return launches;
}

PreparedLaunch prepare_on_areas(const PreparedLaunch &launch, const Plan &plan, const KernelSets &kernels,
                                const std::vector<PartArea> &areas) {
  PreparedLaunch on_areas = launch;
  if (launch.form) on_areas.prepared = launch.form({plan, launch.first, kernels, &areas});
  return on_areas;
}

void launch_prepared(const PreparedLaunch &launch, PassRun run) {
  run.index = launch.first;
  if (launch.structure) run.name = launch.name();
  launch.prepared.launch(run);
  if (!launch.structure) return;
  run.index += launch.passes() - 1;
  // Structures that also take other planes copy kept pixels themselves.
  if (run.plan.layout.dense() && (run.pass().keep_x || run.pass().keep_y)) launch_restore(run);
}

}  // namespace cudaconv
