// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/launch_graph.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "cuda/launchers.h"

namespace cudaconv {

namespace {

// Frames may take turns: both fields, both views of a stereo frame, frames with and without regions.
constexpr size_t kMostGraphs = 4;

// Whether the thread was the last one of the process to ask.
bool is_alone() {
  static std::atomic<std::thread::id> last;
  const std::thread::id here = std::this_thread::get_id();
  if (last.load(std::memory_order_relaxed) == here) return true;
  last.store(here, std::memory_order_relaxed);
  return false;
}

}  // namespace

// Kernels one after the other. The first time they are only remembered.
struct LaunchGraph::Graph {
  std::vector<const void *> kernels;
  bool came_before = false;
  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> nodes;
  cudaGraphExec_t executable = nullptr;

  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
  }
};

LaunchGraph::LaunchGraph(cudaStream_t stream) : stream_(stream) {}

LaunchGraph::~LaunchGraph() = default;

void LaunchGraph::begin(bool collects) {
  join_branches();  // of a frame that was cancelled or failed
  collects_ = collects;
  count_ = 0;
}

void LaunchGraph::begin_branch(size_t number) {
  if (collects_) return;
  branch_ = number;
  if (number > 0 && open_ == 0) fork_.record(stream_);
  for (; open_ < number; open_++) {
    if (open_ == branches_.size()) branches_.push_back(std::make_unique<Branch>());
    fork_.make_wait(branches_[open_]->stream.get());
  }
}

void LaunchGraph::join_branches() {
  for (branch_ = 0; open_ > 0; open_--) {
    const Branch &branch = *branches_[open_ - 1];
    branch.done.record(branch.stream.get());
    branch.done.make_wait(stream_);
  }
}

void LaunchGraph::synchronize() const {
  cudaStreamSynchronize(stream_);
  for (const auto &branch : branches_) cudaStreamSynchronize(branch->stream.get());
}

static void launch(const cudaKernelNodeParams &kernel, cudaStream_t stream) {
  check(cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes,
                         stream),
        "cudaLaunchKernel");
}

// Lets a kernel's blocks have all shared memory of the device if they need more than 48 KiB. The driver is told once.
void LaunchGraph::allow_shared_memory(const cudaKernelNodeParams &kernel) {
  constexpr unsigned kUnasked = 48 << 10;
  if (kernel.sharedMemBytes <= kUnasked || opted_in_.count(kernel.func)) return;
  check(cudaFuncSetAttribute(kernel.func, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(current_limits().block_bytes)),
        "cudaFuncSetAttribute");
  opted_in_.insert(kernel.func);
}

void LaunchGraph::add(const cudaKernelNodeParams &kernel, size_t bytes) {
  allow_shared_memory(kernel);
  if (!collects_) return launch(kernel, stream());
  if (count_ == launches_.size()) launches_.emplace_back();
  Launch &kept = launches_[count_];
  const auto *const argument = static_cast<const uint8_t *>(kernel.kernelParams[0]);
  kept.bytes.assign(argument, argument + bytes);
  kept.argument = kept.bytes.data();
  kept.kernel = kernel;
  kept.kernel.kernelParams = &kept.argument;
  count_++;
}

void add_launch(LaunchGraph &launches, const cudaKernelNodeParams &kernel, size_t bytes) {
  launches.add(kernel, bytes);
}

// The graph of the launches that were added; a new one, without an executable, where these kernels did not come lately.
LaunchGraph::Graph &LaunchGraph::find_graph() {
  const auto is_of_these = [&](const std::unique_ptr<Graph> &graph) {
    return std::equal(graph->kernels.begin(), graph->kernels.end(), launches_.begin(), launches_.begin() + count_,
                      [](const void *kernel, const Launch &launch) { return kernel == launch.kernel.func; });
  };
  auto found = std::find_if(graphs_.begin(), graphs_.end(), is_of_these);
  if (found == graphs_.end()) {
    if (graphs_.size() == kMostGraphs) graphs_.pop_back();
    found = graphs_.insert(graphs_.end(), std::make_unique<Graph>());
    for (size_t i = 0; i < count_; i++) (*found)->kernels.push_back(launches_[i].kernel.func);
  }
  std::rotate(graphs_.begin(), found, found + 1);
  return *graphs_.front();
}

// Makes the executable of a graph, with the launches that were added.
void LaunchGraph::make(Graph &graph) const {
  if (graph.graph) return;  // it could not be made the time before
  check(cudaGraphCreate(&graph.graph, 0), "cudaGraphCreate");
  for (size_t i = 0; i < count_; i++) {
    cudaGraphNode_t node = nullptr;
    check(
        cudaGraphAddKernelNode(&node, graph.graph, i ? &graph.nodes.back() : nullptr, i ? 1 : 0, &launches_[i].kernel),
        "cudaGraphAddKernelNode");
    graph.nodes.push_back(node);
  }
  check(cudaGraphInstantiate(&graph.executable, graph.graph, 0), "cudaGraphInstantiate");
}

void LaunchGraph::enqueue() {
  const bool alone = is_alone();
  if (count_ == 0 || (count_ == 1 && !alone)) {
    for (size_t i = 0; i < count_; i++) launch(launches_[i].kernel, stream_);
    count_ = 0;
    return;
  }
  Graph &graph = find_graph();
  if (graph.executable) {
    for (size_t i = 0; i < count_; i++)
      check(cudaGraphExecKernelNodeSetParams(graph.executable, graph.nodes[i], &launches_[i].kernel),
            "cudaGraphExecKernelNodeSetParams");
    check(cudaGraphLaunch(graph.executable, stream_), "cudaGraphLaunch");
  } else {
    for (size_t i = 0; i < count_; i++) launch(launches_[i].kernel, stream_);
    if (std::exchange(graph.came_before, true)) make(graph);
  }
  count_ = 0;
}

}  // namespace cudaconv
