// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What tests ask of the stand-in for the CUDA runtime: failures on demand, counts, a fresh start.
//
// A CUDA source is built on it as C++, with this directory before any other that has a cuda_runtime.h: by `-x c++`, or
// by a .cpp file that includes the source.
//
// The device: threads of a block run one after another, each until it ends or waits; even blocks start with the first
// thread, odd blocks with the last, so that a missing barrier shows. Work on a stream runs only when something waits
// for it, so that results read and buffers released too early show. Device and shared memory start as garbage. Under
// AddressSanitizer every access is checked, and the host may not touch device memory.
//
// Environment:
//   CUDACONV_STANDIN_FAIL     name:nth:errorname[:sticky], as fail_call(); an empty name is any call
//   CUDACONV_STANDIN_DEVICES  number of devices, default 1
//   CUDACONV_STANDIN_ARCHITECTURE  what the kernels were compiled for, default 90
//   CUDACONV_STANDIN_ORDER    forward or backward: the same order of threads in every block
#pragma once

#include <string>

#include "cuda_runtime.h"

// Defined where AddressSanitizer is on.
#if defined(__SANITIZE_ADDRESS__)
#define STANDIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STANDIN_ASAN 1
#endif
#endif

namespace standin {

// Makes the nth call from now (1: the next) of the runtime function or kernel `name`, "" for any, fail with `error` and
// without effect, except that a call which releases something releases it all the same. Launches are calls of
// "cudaLaunchKernel" and of the kernel's name. If `sticky`, or if the error is of the kind that ends a CUDA context
// (cudaErrorIllegalAddress and its like), every later call fails with it too and no work runs any more, until reset().
void fail_call(const std::string &name, int nth, cudaError_t error, bool sticky = false);

// Number of calls since reset() of the runtime function or kernel `name`, "" for all functions. Questions for the last
// error and for the names of errors do not count.
int calls(const std::string &name = "");

struct LiveObjects {
  int device = 0;  // allocations
  int host = 0;    // allocations and registrations
  int streams = 0;
  int events = 0;
  int total() const { return device + host + streams + events; }
};
LiveObjects live_objects();

// Forgets everything: objects, pending work, errors, counts; reads the environment anew. Not while another thread is in
// a call.
void reset();

// Runs a grid to its end on the calling thread, for the runtime: one at a time.
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &thread_body);

// As the environment variable says.
enum class ThreadOrder { Alternate, Forward, Backward };
extern ThreadOrder thread_order;

}  // namespace standin
