// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Counts of regions by type, for the properties "stats".
#pragma once

#include <gst/gst.h>

#include "gstcudaconvroimetas.h"

namespace cudaconv::gst {

// Not locked.
class RoiCounts {
 public:
  // Adds the regions that came with a frame. Labels may carry the number of an object, so that new ones come for ever:
  // beyond a hundred types of `like`, further ones count as "other".
  void add(guint64 regions, const RoiTypeCounts &types, const RoiCounts &like);
  void add(guint64 regions, const RoiTypeCounts &types) { add(regions, types, *this); }

  // Sets the fields "regions" and "regions-by-type". Type names become field names that GStreamer can read back from
  // text.
  void write(GstStructure *structure) const;

 private:
  guint64 regions_ = 0;
  RoiTypeCounts types_;
};

}  // namespace cudaconv::gst
