// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Collects the kernel launches of a frame and hands them to the driver together.
//
// A launch takes the host some 4 us. A graph of any number of kernels takes about 2 us, and 0.5 us for each kernel that
// gets other parameters. So when the same kernels come a second time, they are made a graph, a chain in
// their order. Then each frame only brings its grids and parameters:
//
//     frame 1   launch, launch, launch
//     frame 2   launch, launch, launch         the graph is made
//     frame 3   parameters of three nodes, launch of the graph
//
// The driver holds its lock longer for a graph. So a kernel alone is launched where threads take turns at enqueuing.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "cuda/cuda_resources.h"

namespace cudaconv {

class LaunchGraph {
 public:
  // `stream` is borrowed.
  explicit LaunchGraph(cudaStream_t stream);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph &) = delete;

  // The stream that launches go to.
  cudaStream_t stream() const { return branch_ ? branches_[branch_ - 1]->stream.get() : stream_; }

  // Begins a frame, and forgets what was added and not enqueued. `collects`: launches wait for enqueue(); else add()
  // enqueues them one by one.
  void begin(bool collects);

  // Adds a launch. Its one argument, of `bytes` bytes, is copied. Throws Error{Device}.
  void add(const cudaKernelNodeParams &kernel, size_t bytes);

  // Later launches run on this branch, at the same time as launches on other branches. All branches wait for what was
  // added before the first of them; branch 0 is the stream itself. Collected launches still run one after the other.
  void begin_branch(size_t number);
  // Later launches wait for all branches.
  void join_branches();

  // Waits for all that was enqueued.
  void synchronize() const;

  // Enqueues what was added. To be called before anything else is enqueued on the stream that has to come later. Throws
  // Error{Device}.
  void enqueue();

 private:
  struct Launch {
    cudaKernelNodeParams kernel;
    std::vector<uint8_t> bytes;  // of the argument
    void *argument = nullptr;    // these
  };
  struct Graph;
  struct Branch {
    Stream stream;
    Event done{cudaEventDisableTiming};
  };

  void allow_shared_memory(const cudaKernelNodeParams &kernel);
  Graph &find_graph();
  void make(Graph &graph) const;

  const cudaStream_t stream_;
  bool collects_ = false;
  std::vector<std::unique_ptr<Branch>> branches_;  // created when needed; branches_[0] is branch 1
  size_t branch_ = 0, open_ = 0;                   // of these, the one at hand; how many have to be joined
  Event fork_{cudaEventDisableTiming};
  std::deque<Launch> launches_;  // the first count_ of them were added; the others keep their memory
  size_t count_ = 0;
  std::set<const void *> opted_in_;             // kernels that may have all shared memory
  std::vector<std::unique_ptr<Graph>> graphs_;  // most recently used first
};

}  // namespace cudaconv
