// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The interface of the CPU and CUDA backends. A backend executes a Plan on frames. Every backend computes the same
// bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "error.h"
#include "export.h"
#include "imageview.h"
#include "plan/plan.h"
#include "plan/regions.h"

namespace cudaconv {

struct BackendStats {
  uint64_t frames = 0;            // frames retired so far
  uint64_t device_ns = 0;         // time the GPU spent in kernels, estimated from some of the frames
  uint64_t bytes_uploaded = 0;    // host to device
  uint64_t bytes_downloaded = 0;  // device to host
  uint64_t bytes_staged = 0;      // bytes of both that the CPU copied, since memory was not pinned
  // CUDA: the row of the dispatch table (cuda/dispatch.h) that ran the first pass of the latest frame; nullptr:
  // method_of() ran it. CPU: the vector units that the loops are compiled for, "avx512", "avx2" or "baseline"; nullptr
  // before the first frame.
  const char *kernels = nullptr;
};

// Identifies a submitted frame. Tickets count up; frames complete in the order of submission.
using Ticket = uint64_t;
// The ticket of a frame that nobody has to wait for or retire, since its memory is used in the order of a stream.
constexpr Ticket kLeft = 0;

// A plan, and the regions of a frame that it filters.
struct PlannedRegions {
  std::shared_ptr<const Plan> plan;
  Regions regions;

  bool operator==(const PlannedRegions &o) const { return plan == o.plan && regions == o.regions; }
};

// Threads: one thread may call submit() while others call retire() and stats(). Several threads may call
// submit() of a CPU backend; they wait for their turn.
class Backend {
 public:
  // Waits until nothing is in flight.
  virtual ~Backend() = default;

  virtual const char *name() const = 0;  // the nick of the property `backend`: "cpu" or "cuda"

  // Starts to filter `src` into `dst`. Only pixels in regions are filtered; masks read the pixels of `src` around them.
  // `src` and `dst` do not overlap. With active regions they may be the same memory; then only the pixels that regions
  // need are read and written. The plan belongs to this frame: a later submit may bring another plan while this frame
  // is in flight. Until the ticket is retired, the memory of both views stays valid, and `src` unchanged. If `dst` is
  // in device memory, work that is enqueued on its stream after this call sees the result.
  //
  // Returns kLeft where both views are in order (FrameView::in_order) on the stream of the backend. The memory may then
  // be used or freed at once, in the order of that stream. The call waits for the GPU only where it is many frames or
  // some milliseconds behind.
  //
  // If `planned` has several entries, all plans have the same layout, method and number of iterations, and all regions
  // are active. A pixel in the regions of several plans gets the last plan's result.
  //
  // Any thread may set `*cancelled` while submit() runs. submit() then stops, after some milliseconds on the CPU or a
  // few passes on the GPU. It waits until nothing of the frame is in use, and throws Error{Cancelled}. A CUDA backend
  // cannot take back what it has enqueued, so it enqueues at most a few passes ahead of the GPU. Work that is captured
  // into a CUDA graph is not cancelled.
  //
  // When it throws Error, nothing of the frame is in flight. Host memory that is both `src` and `dst` is unchanged
  // after Error{Device}.
  virtual Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                        const std::atomic<bool> *cancelled) = 0;
  Ticket submit(std::shared_ptr<const Plan> plan, const FrameView &src, const FrameView &dst, Regions regions = {},
                const std::atomic<bool> *cancelled = nullptr) {
    return submit({{std::move(plan), std::move(regions)}}, src, dst, cancelled);
  }

  // Waits until the frame is complete in `dst`. Tickets are retired in the order of submission. Throws Error{Device}
  // when the device failed on the frame. `dst` is then undefined, except that host memory which is also `src` is
  // unchanged.
  virtual void retire(Ticket ticket) = 0;

  // The method of the plan's first pass: the selected one. For `auto`, the method that this backend uses if it has no
  // faster kernels for a frame.
  virtual Method method_of(const Plan &plan) const = 0;

  virtual BackendStats stats() const = 0;
};

// Runs body(0) ... body(n-1), in any order, on any threads, and returns when all are done.
using ParallelFor = std::function<void(int n, const std::function<void(int)> &body)>;

// `threads`: how many pieces a frame is worth cutting into; at least 1.
CUDACONV_EXPORT std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads);

// A CUDA backend on the CUDA context that is current on the calling thread. That context must be current in every call,
// the destructor included. `stream` is the CUstream on which kernels run and work on frames in device memory is
// ordered; nullptr: the backend makes one. `parallel_for` copies to and from staging memory, for submit() and retire()
// at the same time if they run at the same time; nullptr: the calling thread copies. Throws Error{NoDevice} if no
// device can run the compiled kernels.
CUDACONV_EXPORT std::unique_ptr<Backend> make_cuda_backend(void *stream = nullptr, ParallelFor parallel_for = nullptr);

// Pinned host memory of the current CUDA context, which the GPU copies from and to directly: new_pinned_memory()
// allocates it, pin_memory() pins `bytes` of memory that outlives the pinning. They return nullptr and false on
// failure, for example if pages are already pinned.
void *new_pinned_memory(size_t bytes);
void delete_pinned_memory(void *data);
bool pin_memory(void *data, size_t bytes);
void unpin_memory(void *data);

// The runtime's reason why CUDA device `device`, counted from 0, can have no context, for example "out of memory".
// Empty if it can have one. The thread's current device and context do not change.
std::string why_no_context(int device);

// Number of CUDA devices, 0 without a driver. `why`, if given, receives the reason for a 0.
CUDACONV_EXPORT int cuda_device_count(std::string *why = nullptr);

}  // namespace cudaconv
