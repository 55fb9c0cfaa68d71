// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Controls the stand-in for the CUDA runtime, for tests: failures on demand, counts of calls, and a reset.
//
// To build a CUDA source on it, compile the source as C++, with `-x c++` or from a .cpp file that includes it. This
// directory must come before any other directory with a cuda_runtime.h.
//
// How it finds faults: the threads of a block run one after another, each until it ends or waits. Even blocks start
// with the first thread, odd blocks with the last, which exposes missing barriers. Work on a stream runs only when
// something waits for it. This exposes results that are read too early, and buffers that are released too early. Device
// and shared memory start as garbage. AddressSanitizer checks every access, and the host may not access device memory.
//
// Environment:
//   CUDACONV_STANDIN_FAIL     name:nth:errorname[:sticky], like fail_call(); an empty name is any call
//   CUDACONV_STANDIN_DEVICES  number of devices, default 1
//   CUDACONV_STANDIN_ARCHITECTURE  the architecture that kernels are compiled for, default 90
//   CUDACONV_STANDIN_ORDER    forward or backward: the same order of threads in every block
//   CUDACONV_STANDIN_STREAMS  early: runs all work of other streams that need not wait for it before the awaited work,
//                             which exposes missing events between streams
#pragma once

#include <string>

#include "cuda_runtime.h"

// STANDIN_ASAN is defined if the build has AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define STANDIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STANDIN_ASAN 1
#endif
#endif

namespace standin {

// Makes the nth call from now (1: the next call) of the runtime function or kernel `name` fail with `error`; "": of
// any. The call has no effect, but a call that releases something still releases it, and cudaStreamSynchronize() still
// waits. Launches are calls of "cudaLaunchKernel" and of the kernel's name. If `sticky` is set, or if the error ends a
// CUDA context (for example cudaErrorIllegalAddress), every later call fails with it and no work runs until reset().
void fail_call(const std::string &name, int nth, cudaError_t error, bool sticky = false);

// The number of calls since reset() of the runtime function or kernel `name`; "": of all functions. Queries for the
// last error and for the names of errors do not count. The launch of a graph also counts as a launch of each kernel in
// it, and fails if one of these fails.
int calls(const std::string &name = "");

struct LiveObjects {
  int device = 0;  // allocations
  int host = 0;    // allocations and registrations
  int streams = 0;
  int events = 0;
  int graphs = 0;  // executables too
  int total() const { return device + host + streams + events + graphs; }
};
LiveObjects live_objects();

// Forgets everything (objects, pending work, errors, counts) and reads the environment again. No other thread may be in
// a call.
void reset();

// Runs a grid to its end on the calling thread. For the runtime, which runs one grid at a time.
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &thread_body);

// The order of a block's threads, from CUDACONV_STANDIN_ORDER.
enum class ThreadOrder { Alternate, Forward, Backward };
extern ThreadOrder thread_order;

}  // namespace standin
