// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How every backend filters regions of a frame. Each pass computes the pixels that later passes read, in frames that
// the backend owns. At the end of a stage, the pixels in regions are copied to the frame, and pixels that fade are
// blended with the frame, see plan/feather.h.
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

// Passes begin ... end - 1, one run of the filter. Then the pixels in regions are in the frame. The next stage reads
// them there, with the unchanged pixels around the regions.
struct Stage {
  size_t begin, end;
};
std::vector<Stage> stages_of(const Plan &plan);

// The pixels of a part that are in later regions of a list, which win where regions overlap: by row, runs in rising
// order with gaps between them. Pixels that fade are not in them.
using CoveredRows = std::vector<std::vector<PixelRun>>;

class RegionWork {
 public:
  // If the frame is cancelled, the work stays unfinished. `covered`: by part, the pixels that the work leaves out, and
  // to which it adds its own. `covered` is empty for the last regions.
  RegionWork(const Plan &plan, const Regions &regions, const Cancellation &cancellation,
             std::vector<CoveredRows> *covered = nullptr);

  bool empty() const;  // whether no pixel is in regions
  const RegionRows &rows(size_t part) const { return *rows_[part]; }
  bool fades() const;  // whether any pixel does
  const Area &selected(size_t part) const { return *selected_[part]; }
  // The results of a pass that later passes or the regions need.
  const Area &computed(size_t pass, size_t part) const { return *computed_[pass][part]; }
  // The pixels of the frame that a stage reads or writes.
  Area needed(size_t part) const;
  // The boxes of a mosaic by part; empty with other filters.
  const std::vector<MosaicPart> &mosaic() const { return mosaic_; }

 private:
  void add_alpha(size_t other, Area &area) const;

  const Plan &plan_;
  std::vector<std::shared_ptr<const RegionRows>> rows_;  // by part
  std::vector<MosaicPart> mosaic_;
  std::vector<std::shared_ptr<const Area>> selected_;               // by part: the pixels in regions, not covered
  std::vector<std::vector<std::shared_ptr<const Area>>> computed_;  // by pass and part
};

}  // namespace cudaconv
