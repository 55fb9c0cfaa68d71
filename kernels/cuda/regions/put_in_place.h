// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Copies the pixels in regions from a frame of results to their places in the frame, and blends pixels that fade.
// Copies whole frames, too, and lists to the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cuda/launch_graph.h"
#include "plan/area.h"
#include "plan/plan.h"
#include "plan/region_work.h"

namespace cudaconv {

// A rectangle of pixels of a part.
struct SelectedRect {
  PixelRect pixels;
  int32_t part;
};
static_assert(std::has_unique_object_representations_v<SelectedRect>, "no byte of a launch's parameters is unset");

constexpr int kMostSelectedRects = 16;  // what the parameters of a launch hold

// The pixels that one launch copies: all pixels of a few rectangles, which travel with the launch. Regions of other
// shapes, and more rectangles, are a rectangle around the pixels of each part, and lists with the part's rows.
struct Selection {
  // The lists of a part's RegionRows in the lists of a job: where they begin, in bytes.
  struct Rows {
    size_t rows, runs, first_shares, shares;
    bool fade;
  };
  std::vector<SelectedRect> rects;  // at most kMostSelectedRects
  std::vector<Rows> rows;           // by part; empty: all pixels of the rectangles
};

// The pixels in the regions of a work. Their lists, if they need any, are appended to `lists`.
Selection select_regions(const Plan &plan, const RegionWork &work, std::vector<uint8_t> *lists);
// All pixels of a frame.
Selection select_all(const Plan &plan);

// Appends a list to lists of bytes, which stay a multiple of 16 long. Returns where it begins.
template <typename T>
size_t append_list(const std::vector<T> &list, std::vector<uint8_t> *lists) {
  constexpr size_t kAlignment = 16;
  const size_t begin = lists->size();
  const auto *const bytes = reinterpret_cast<const uint8_t *>(list.data());
  lists->insert(lists->end(), bytes, bytes + list.size() * sizeof(T));
  lists->resize((lists->size() + kAlignment - 1) / kAlignment * kAlignment);
  return begin;
}

// Enqueues the copy of a selection from one frame to another. `lists`: the job's lists in device memory. Both frames
// have the plan's layout. Throws Error{Device}.
void launch_put_in_place(const Plan &plan, const Selection &selection, const uint8_t *lists, const FrameView &from,
                         const FrameView &to, LaunchGraph &launches);

// Enqueues the copy of `bytes` bytes of lists, a multiple of 16, from pinned host memory. Throws Error{Device}.
void launch_copy_lists(const uint8_t *host, uint8_t *device, size_t bytes, LaunchGraph &launches);

}  // namespace cudaconv
