// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The one interface over the CPU and the GPU. A backend carries out a Plan on frames; what a plan computes does not
// depend on which backend does it, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "error.h"
#include "imageview.h"
#include "plan.h"

namespace cudaconv {

struct BackendStats {
  uint64_t frames = 0;            // retired
  uint64_t device_ns = 0;         // time that the GPU spent in kernels
  uint64_t bytes_uploaded = 0;    // host to device
  uint64_t bytes_downloaded = 0;  // device to host
};

// Identifies a submitted frame. Tickets count up; frames complete in the order of submission.
using Ticket = uint64_t;

class Backend {
 public:
  // Waits until nothing is in flight.
  virtual ~Backend() = default;

  virtual const char *name() const = 0;  // the nick of the property `backend`: "cpu" or "cuda"
  virtual bool accepts_device_frames() const = 0;

  // Starts to filter `src` into `dst`, which must not overlap. The plan is taken whole for this frame: a later submit
  // may bring another one while this frame is in flight. The memory behind both views stays valid, and `src` unchanged,
  // until the ticket is retired. Only what lies in `regions` is filtered. Throws Error; then nothing of the frame is in
  // flight.
  virtual Ticket submit(std::shared_ptr<const Plan> plan, const FrameView &src, const FrameView &dst,
                        const Regions &regions = {}) = 0;

  // Waits until the frame is complete in `dst`. Retire in the order of submission. Throws Error{Device} when the device
  // failed on it; `dst` is then undefined.
  virtual void retire(Ticket ticket) = 0;

  // The method that carries out the plan's first pass: the one selected, or what auto comes to on this backend.
  virtual Method method_of(const Plan &plan) const = 0;

  virtual BackendStats stats() const = 0;
};

// Runs body(0) ... body(n-1), in any order, on any threads, and returns when all are done.
using ParallelFor = std::function<void(int n, const std::function<void(int)> &body)>;

// `threads` is into how many pieces it pays to cut a frame; at least 1.
std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads);

// A CUDA backend on the CUDA context that is current on the calling thread. That context must be current in every call,
// the destructor included. `stream` is the CUstream to work on; nullptr: one of its own. Throws Error{NoDevice} where
// no device can run the kernels that were compiled in.
std::unique_ptr<Backend> make_cuda_backend(void *stream = nullptr);

// Number of CUDA devices, 0 without a driver. `why`, if given, receives the reason where it is 0.
int cuda_device_count(std::string *why = nullptr);

}  // namespace cudaconv
