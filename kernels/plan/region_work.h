// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How regions of a frame are filtered, on every backend: each pass makes the pixels that the later ones read, in frames
// of the backend's own, and at the end of a stage the pixels that lie in regions are put in their places in the frame.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cancellation.h"
#include "plan/area.h"
#include "plan/mosaic.h"
#include "plan/plan.h"
#include "plan/region_rows.h"

namespace cudaconv {

// Passes begin ... end - 1, after which the regions of the frame are as one run of the filter leaves them: what comes
// next reads them from there, with the pixels around the regions as they came.
struct Stage {
  size_t begin, end;
};
std::vector<Stage> stages_of(const Plan &plan);

class RegionWork {
 public:
  // Left unfinished where submit() is to give up.
  RegionWork(const Plan &plan, const Regions &regions, const Cancellation &cancellation);

  bool empty() const;  // no pixel lies in regions
  const RegionRows &rows(size_t part) const { return rows_[part]; }
  const Area &selected(size_t part) const { return *selected_[part]; }
  // The results of a pass that are needed.
  const Area &computed(size_t pass, size_t part) const { return *computed_[pass][part]; }
  // What a stage reads and writes of the frame.
  Area needed(size_t part) const;
  // By part, of a mosaic.
  const std::vector<MosaicPart> &mosaic() const { return mosaic_; }

 private:
  void add_alpha(size_t other, Area &area) const;

  const Plan &plan_;
  std::vector<RegionRows> rows_;
  std::vector<MosaicPart> mosaic_;
  std::vector<std::shared_ptr<const Area>> selected_;               // by part
  std::vector<std::vector<std::shared_ptr<const Area>>> computed_;  // by pass and part
};

}  // namespace cudaconv
