// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/dispatch.h"

#include <algorithm>

#include "cuda/launchers.h"
#include "cuda/scratch.h"

namespace cudaconv {

// The functions of each structure, defined in its family's folder. All but takes_long() take dense planes only.
int takes_mosaic(const PassQuery &query);  // means of blocks
void launch_mosaic(const PassRun &run);
int takes_short_weighted(const PassQuery &query);  // means weighted by alpha up to 5x5, of pixels of four bytes
void launch_short_weighted(const PassRun &run);
int takes_separable_weighted(const PassQuery &query);  // the same up to 33x33
void launch_separable_weighted(const PassRun &run);
int takes_weighted(const PassQuery &query);  // others of a row and a column
void launch_weighted(const PassRun &run);
int takes_blur(const PassQuery &query);  // wide Gaussians
void launch_blur(const PassRun &run);
int takes_composite(const PassQuery &query);  // openings, closings, gradients and hats of small squares
void launch_composite(const PassRun &run);
int takes_sliding(const PassQuery &query);  // small windows
void launch_sliding(const PassRun &run);
int takes_van_herk(const PassQuery &query);  // larger squares of morphology
void launch_van_herk(const PassRun &run);
int takes_element_strips(const PassQuery &query);  // ellipses, crosses and the like up to 63x63
void launch_element_strips(const PassRun &run);
int takes_chords(const PassQuery &query);  // other structuring elements up to 31x31
void launch_chords(const PassRun &run);
int takes_structuring_element(const PassQuery &query);  // larger ellipses, crosses and the like
void launch_structuring_element(const PassRun &run);
int takes_median_network(const PassQuery &query);  // medians of 7x7 to 15x15
void launch_median_network(const PassRun &run);
int takes_median_histogram(const PassQuery &query);  // larger medians
void launch_median_histogram(const PassRun &run);
int takes_box(const PassQuery &query);  // means of 8-bit samples
void launch_box(const PassRun &run);
int takes_box_tiles(const PassQuery &query);  // narrow means that nothing else takes
void launch_box_tiles(const PassRun &run);
// Other linear masks, on the matrix instructions.
int takes_separable9(const PassQuery &query);  // separable, up to 9x9, 8-bit samples, rows of 16n bytes
void launch_separable9(const PassRun &run);
int takes_separable(const PassQuery &query);
void launch_separable(const PassRun &run);
int takes_row_pairs(const PassQuery &query);  // up to 9x9
void launch_row_pairs(const PassRun &run);
int takes_blocks4x4(const PassQuery &query);  // up to 17x15, 8-bit samples
void launch_blocks4x4(const PassRun &run);
int takes_dense(const PassQuery &query);
void launch_dense(const PassRun &run);
int takes_long_box(const PassQuery &query);  // means over large windows
void launch_long_box(const PassRun &run);
int takes_long_separable(const PassQuery &query);  // Gaussians of any length
void launch_long_separable(const PassRun &run);
// Linear masks without the matrix instructions.
int takes_long(const PassQuery &query);  // separable masks, of any layout
void launch_long(const PassRun &run);

namespace {

constexpr unsigned kMirrors =
    border_bits(Border::Replicate, Border::Reflect, Border::Reflect101, Border::Constant, Border::Keep);
constexpr unsigned kAllSix = kMirrors | border_bit(Border::Wrap);
// For structures that no method can stand in for, and that take outside samples only from the index functions of
// plan/border.h or need none.
constexpr unsigned kAny = ~0u;

}  // namespace

const std::vector<Structure> &structures() {
  static const std::vector<Structure> kStructures = {
      {"mosaic", kAny, takes_mosaic, launch_mosaic, mosaic_sum_bytes},
      {"short-weighted", kAllSix, takes_short_weighted, launch_short_weighted},
      {"tensor-weighted", kAllSix, takes_separable_weighted, launch_separable_weighted},
      {"weighted", kAllSix, takes_weighted, launch_weighted},
      {"blur", kAllSix, takes_blur, launch_blur, coarse_bytes},
      {"composite", kMirrors, takes_composite, launch_composite},
      {"sliding", kAllSix, takes_sliding, launch_sliding},
      {"extremum", kAllSix, takes_van_herk, launch_van_herk},
      {"small-element", kAllSix, takes_element_strips, launch_element_strips},
      {"chords", kAllSix, takes_chords, launch_chords},
      {"element", kAllSix, takes_structuring_element, launch_structuring_element},
      {"median-network", kAllSix, takes_median_network, launch_median_network},
      {"median-histogram", kAllSix, takes_median_histogram, launch_median_histogram},
      {"box", kAllSix, takes_box, launch_box},
      {"interleaved", kAllSix, takes_separable9, launch_separable9},
      {"tensor-separable", kAllSix, takes_separable, launch_separable},
      {"tensor-pairs", kAllSix, takes_row_pairs, launch_row_pairs},
      {"tensor-blocks", kAllSix, takes_blocks4x4, launch_blocks4x4},
      {"tensor-dense", kAllSix, takes_dense, launch_dense},
      {"box-tiles", kAllSix, takes_box_tiles, launch_box_tiles},
      {"long-box", kAny, takes_long_box, launch_long_box, long_box_sum_bytes},
      {"tensor-long", kAllSix, takes_long_separable, launch_long_separable, long_mma_sum_bytes},
      {"long", kAny, takes_long, launch_long, long_sum_bytes},
  };
  return kStructures;
}

std::vector<PreparedLaunch> prepare(const Plan &plan, const KernelSets &kernels) {
  std::vector<PreparedLaunch> launches;
  for (size_t i = 0; i < plan.passes.size(); i += launches.back().passes) {
    PreparedLaunch launch = {nullptr, i, 0, 0};
    const Pass &pass = plan.passes[i];
    if (plan.method == Method::Auto) {
      for (const Structure &structure : structures()) {
        if (!(structure.borders & border_bit(plan.border))) continue;
        launch.passes = structure.takes({plan, i, kernels});
        if (!launch.passes) continue;
        launch.structure = &structure;
        if (structure.scratch) launch.scratch = structure.scratch(plan, pass);
        break;
      }
    }
    if (!launch.structure) {
      launch.passes = 1;
      launch.scratch = coarse_bytes(plan, pass);
    }
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
  const FrameLayout &layout = run.plan.layout;
  const bool dense =
      std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &plane) { return plane.dense(); });
  // Structures that also take other planes copy kept pixels themselves.
  if (dense && (run.pass().keep_x || run.pass().keep_y)) launch_restore(run);
}

}  // namespace cudaconv
