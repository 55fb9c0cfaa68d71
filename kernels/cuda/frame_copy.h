// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames that the backend owns, and copies of frames and of parts of them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cuda/cuda_resources.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace cudaconv {

// Row alignment of owned frames, in bytes: rows are whole memory transactions, and the pitch is still one that many
// host frames have.
constexpr size_t kPitchAlignment = 128;

// An owned frame in one allocation, with an aligned pitch for each memory plane.
template <typename Buffer>
class OwnedFrame {
 public:
  // Makes room for a frame with these planes. Returns where it is.
  const FrameView &prepare(const std::vector<MemoryPlane> &planes) {
    const auto pitch = [](const MemoryPlane &plane) {
      return (plane.row_bytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    };
    size_t offset[kMaxPlanes] = {}, bytes = 0;
    for (size_t i = 0; i < planes.size(); i++) {
      offset[i] = bytes;
      bytes += pitch(planes[i]) * planes[i].height;
    }
    buffer_.reserve(bytes);
    for (size_t i = 0; i < planes.size(); i++)
      view_.plane[i] = {buffer_.data() + offset[i], static_cast<ptrdiff_t>(pitch(planes[i]))};
    return view_;
  }
  const FrameView &view() const { return view_; }

 private:
  Buffer buffer_;
  FrameView view_;
};

// Whether the kernels of method=auto can use the frame in place: all rows begin at multiples of 16 bytes, and an int
// holds the pitch of a field.
bool is_aligned(const FrameView &frame, const std::vector<MemoryPlane> &planes);

// A rectangle to copy: bytes begin ... begin + length - 1 of rows y0 ... y1 - 1 of a plane of memory.
struct CopyRect {
  size_t plane, begin, length;
  int y0, y1;

  size_t bytes() const { return length * (y1 - y0); }
};

// Rectangles with all bytes of a frame that belong to pixels, and no others.
std::vector<CopyRect> whole_frame(const std::vector<MemoryPlane> &planes);

size_t bytes_of(const std::vector<CopyRect> &rects);

// The rectangles to copy to the device and back for a frame that is filtered in place. They hold more than is needed
// where fewer, larger rectangles take less time. All that is copied back was copied to the device before.
struct RegionCopies {
  std::vector<CopyRect> up, down;
};

// `read`: the pixels of each part of the plan that are read or written. `written`: the pixels that are written.
RegionCopies copies_of_regions(const Plan &plan, const std::vector<Area> &read, const std::vector<Area> &written);

// Enqueues copies between pinned memory and the device, or within the device. Throws Error{Device}.
void copy_rects(const std::vector<CopyRect> &rects, const FrameView &from, const FrameView &to, cudaMemcpyKind kind,
                cudaStream_t stream);

// Copies between host memory with `parallel_for`. Stops early if `cancellation` asks for it.
void copy_on_host(const std::vector<CopyRect> &rects, const FrameView &from, const FrameView &to,
                  const ParallelFor &parallel_for, const Cancellation *cancellation);

}  // namespace cudaconv
