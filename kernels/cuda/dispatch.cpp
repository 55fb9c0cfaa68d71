// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/dispatch.h"

#include "cuda/launchers.h"

namespace cudaconv {

const std::vector<Structure> &structures() {
  static const std::vector<Structure> kStructures = {
      {"mosaic", takes_mosaic, launch_mosaic},
      {"composite", takes_composite, launch_composite},
      {"sliding", takes_sliding, launch_sliding},
      {"extremum", takes_van_herk, launch_van_herk},
      {"element", takes_structuring_element, launch_structuring_element},
      {"box", takes_box, launch_box},
      {"interleaved", takes_separable9, launch_separable9},
      {"tensor-separable", takes_separable, launch_separable},
      {"tensor-pairs", takes_row_pairs, launch_row_pairs},
      {"tensor-blocks", takes_blocks4x4, launch_blocks4x4},
      {"tensor-dense", takes_dense, launch_dense},
      {"box-tiles", takes_box_tiles, launch_box_tiles},
  };
  return kStructures;
}

std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels) {
  std::vector<PreparedLaunch> launches;
  for (size_t i = 0; i < plan.passes.size(); i += launches.back().passes) {
    PreparedLaunch launch = {nullptr, i, 0};
    if (plan.method == Method::Auto) {
      for (const Structure &structure : structures()) {
        launch.passes = structure.takes({plan, i, kernels});
        if (!launch.passes) continue;
        launch.structure = &structure;
        break;
      }
    }
    if (!launch.structure) launch.passes = 1;
    launches.push_back(launch);
  }
  return launches;
}

void launch_prepared(const PreparedLaunch &prepared, PassRun run) {
  run.index = prepared.first;
  if (!prepared.structure) return launch_method(run);
  run.name = prepared.name();
  prepared.structure->launch(run);
  run.index += prepared.passes - 1;
  if (run.pass().keep_x || run.pass().keep_y) launch_restore(run);
}

}  // namespace cudaconv
