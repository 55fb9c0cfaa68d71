// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The one interface over the CPU and the GPU. A backend carries out a Plan on frames; what a plan computes does not
// depend on which backend does it, byte for byte.
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
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

struct BackendStats {
  uint64_t frames = 0;            // retired
  uint64_t device_ns = 0;         // time that the GPU spent in kernels
  uint64_t bytes_uploaded = 0;    // host to device
  uint64_t bytes_downloaded = 0;  // device to host
  uint64_t bytes_staged = 0;      // of these, copied by the CPU on the way, because the memory was not pinned
  // CUDA: the kernels that carry out the first pass of the latest frame, where method=auto has found better ones than
  // those of a method: a name of the dispatch table, see cuda/dispatch.h. nullptr: those of method_of().
  // CPU: the loops in use, named after the vector units that they are for: "avx512", "avx2", "baseline". nullptr before
  // the first frame.
  const char *kernels = nullptr;
};

// Identifies a submitted frame. Tickets count up; frames complete in the order of submission.
using Ticket = uint64_t;

// A part of what is done to a frame: a plan, and the regions that it is for.
struct PlannedRegions {
  std::shared_ptr<const Plan> plan;
  Regions regions;
};

// Threads: submit() may be called by one thread while others call retire(), is_done() and stats(). A CPU backend takes
// submit() from several threads at a time, which wait for their turn.
class Backend {
 public:
  // Waits until nothing is in flight.
  virtual ~Backend() = default;

  virtual const char *name() const = 0;  // the nick of the property `backend`: "cpu" or "cuda"
  virtual bool accepts_device_frames() const = 0;

  // Starts to filter `src` into `dst`, which do not overlap, or are the same memory where regions are in force: then
  // nothing else is read or written than what the regions need. The plan is taken whole for this frame: a later submit
  // may bring another one while this frame is in flight. The memory behind both views stays valid, and `src` unchanged,
  // until the ticket is retired; what is enqueued on the stream of a `dst` in device memory from here on finds the
  // result. Only what lies in regions is filtered, and what a mask sees around them are the pixels of `src`.
  //
  // Where there are several, all plans are for one layout and of one number of iterations, all regions are active, and
  // a pixel in regions of several becomes what the last of them makes of it.
  //
  // Any thread may set `*cancelled` while submit() runs. It then gives up after some milliseconds of the CPU's work or
  // after a few passes of the GPU's, waits until nothing of the frame is in use, and throws Error{Cancelled}. A CUDA
  // backend, which could not take back what it has enqueued, enqueues no more than a few passes ahead of the GPU. Work
  // that is captured into a graph is not given up.
  //
  // Throws Error; then nothing of the frame is in flight.
  virtual Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                        const std::atomic<bool> *cancelled) = 0;
  Ticket submit(std::shared_ptr<const Plan> plan, const FrameView &src, const FrameView &dst, Regions regions = {},
                const std::atomic<bool> *cancelled = nullptr) {
    return submit({{std::move(plan), std::move(regions)}}, src, dst, cancelled);
  }

  // Waits until the frame is complete in `dst`. Retire in the order of submission. Throws Error{Device} when the device
  // failed on it; `dst` is then undefined.
  virtual void retire(Ticket ticket) = 0;

  // Whether retire() would not have to wait for the GPU.
  virtual bool is_done(Ticket ticket) const = 0;

  // The method that carries out the plan's first pass: the one selected, or what auto comes to on this backend where it
  // has no better kernels for a frame.
  virtual Method method_of(const Plan &plan) const = 0;

  virtual BackendStats stats() const = 0;
};

// Runs body(0) ... body(n-1), in any order, on any threads, and returns when all are done.
using ParallelFor = std::function<void(int n, const std::function<void(int)> &body)>;

// `threads` is into how many pieces it pays to cut a frame; at least 1.
std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads);

// A CUDA backend on the CUDA context that is current on the calling thread. That context must be current in every call,
// the destructor included. `stream` is the CUstream for the kernels, on which work on frames in device memory is
// ordered; nullptr: one of its own. `parallel_for` copies to and from staging memory, for submit() and retire() at the
// same time if these are; nullptr: the calling thread does.
// Throws Error{NoDevice} where no device can run the kernels that were compiled in.
std::unique_ptr<Backend> make_cuda_backend(void *stream = nullptr, ParallelFor parallel_for = nullptr);

// Pinned host memory of the current CUDA context, which the GPU copies from and to by itself: new, or `bytes` that
// exist and outlive the pinning. nullptr and false where there is none to be had, as for pages that are pinned already.
void *new_pinned_memory(size_t bytes);
void delete_pinned_memory(void *data);
bool pin_memory(void *data, size_t bytes);
void unpin_memory(void *data);

// Why no context can be made on CUDA device `device`, counted from 0, in the words of the runtime: "out of memory",
// say. Empty where one could. The thread's current device stays what it was.
std::string why_no_context(int device);

// Number of CUDA devices, 0 without a driver. `why`, if given, receives the reason where it is 0.
int cuda_device_count(std::string *why = nullptr);

}  // namespace cudaconv
