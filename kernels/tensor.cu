// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the tensor kernels.
#include "tensor.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "launchers.h"

namespace cudaconv {

namespace {

// What a device has, and how large tiles are to be on its kind. A tile's height is the launch's to choose: high tiles
// have little halo, low ones leave room in shared memory for several blocks, of which some load while others compute.
struct Device {
  bool matrices = false;            // has the matrix instructions
  size_t block_bytes = 0;           // of shared memory that a block may have
  size_t multiprocessor_bytes = 0;  // of shared memory
};

Device current_device() {
  int index, major, block_bytes, multiprocessor_bytes;
  check(cudaGetDevice(&index), "cudaGetDevice");
  const auto ask = [&](cudaDeviceAttr attribute, int *value) {
    check(cudaDeviceGetAttribute(value, attribute, index), "cudaDeviceGetAttribute");
  };
  ask(cudaDevAttrComputeCapabilityMajor, &major);
  ask(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block_bytes);
  ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &multiprocessor_bytes);
  return {major >= 8, static_cast<size_t>(block_bytes), static_cast<size_t>(multiprocessor_bytes)};
}

// The height that tiles are to have where there is room, and how many blocks a multiprocessor is to have room for.
struct TilePolicy {
  int height, blocks;
};

TilePolicy separable_policy(int radius) {
  switch (radius) {
    case 4:
      return {32, 4};
    case 8:
      return {32, 4};
    case 16:
      return {64, 2};
    case 32:
      return {64, 1};
    default:
      return {64, 1};
  }
}

TilePolicy dense_policy(int radius, Weights weights) {
  if (radius == 8) return {32, weights == Weights::Byte ? 3 : 2};
  return {32, 2};
}

// The largest height up to the policy's for which `bytes_of` says that shared memory holds the policy's blocks, or one
// at least; 0 where it does not hold one of 8 rows.
template <typename BytesOf>
int choose_height(const Device &device, TilePolicy policy, BytesOf bytes_of) {
  constexpr size_t kReserved = 1024;  // by the runtime, for each block
  for (int blocks = policy.blocks; blocks >= 1; blocks--) {
    const size_t room = std::min(device.block_bytes, device.multiprocessor_bytes / blocks - kReserved);
    // A low tile is mostly halo: better fewer blocks then.
    for (int height = policy.height; height >= (blocks > 1 ? policy.height / 2 : 8); height -= 8)
      if (bytes_of(height) <= room) return height;
  }
  return 0;
}

template <typename Params>
struct TensorLaunch {
  void (*kernel)(Params) = nullptr;
  int threads = 0;
  size_t (*shared_bytes)(int channels, int tile_height, int mask_height) = nullptr;
};

template <int kRadius, Weights kWeights>
TensorLaunch<SeparableTensorParams> separable_launch() {
  using Shape = SeparableShape<kRadius, kWeights>;
  return {separable_tensor_kernel<kRadius, kWeights>, Shape::kThreads, Shape::shared_bytes};
}

// Of Word there are those of radii up to 16.
template <int kRadius>
TensorLaunch<SeparableTensorParams> separable_launch(Weights weights) {
  if (weights == Weights::Byte) return separable_launch<kRadius, Weights::Byte>();
  if constexpr (kRadius <= 16)
    if (weights == Weights::Word) return separable_launch<kRadius, Weights::Word>();
  return separable_launch<kRadius, Weights::Rounded>();
}

TensorLaunch<SeparableTensorParams> separable_launch(TensorKind kind) {
  switch (kind.radius) {
    case 4:
      return separable_launch<4>(kind.weights);
    case 8:
      return separable_launch<8>(kind.weights);
    case 16:
      return separable_launch<16>(kind.weights);
    case 32:
      return separable_launch<32>(kind.weights);
    default:
      return separable_launch<64>(kind.weights);
  }
}

template <int kRadius, Weights kWeights>
TensorLaunch<DenseTensorParams> dense_launch() {
  using Shape = DenseShape<kRadius, kWeights>;
  return {dense_tensor_kernel<kRadius, kWeights>, Shape::kThreads, Shape::shared_bytes};
}

TensorLaunch<DenseTensorParams> dense_launch(TensorKind kind) {
  const bool words = kind.weights == Weights::Word;
  if (kind.radius == 8) return words ? dense_launch<8, Weights::Word>() : dense_launch<8, Weights::Byte>();
  return words ? dense_launch<16, Weights::Word>() : dense_launch<16, Weights::Byte>();
}

// Whether the device has room for a tile.
template <typename Params>
bool enqueue(const PassRun &run, const TensorLaunch<Params> &launch_as, TilePolicy policy, Params &p) {
  int channels = 1;
  for (int i = 0; i < run.plan.layout.planes; i++) channels = std::max(channels, run.plan.layout.plane[i].channels);
  const auto bytes = [&](int height) { return launch_as.shared_bytes(channels, height, run.pass().height()); };
  p.tile_height = choose_height(current_device(), policy, bytes);
  if (!p.tile_height) return false;
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(p, kTensorTileWidth, p.tile_height);
  const size_t shared_bytes = bytes(p.tile_height);
  // Beyond 48 KiB a kernel has to ask. It costs little, so there is no need to remember on which devices it has.
  check(cudaFuncSetAttribute(reinterpret_cast<const void *>(launch_as.kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        "cudaFuncSetAttribute");
  check(launch("tensor", launch_as.kernel, dim3(blocks), dim3(launch_as.threads), shared_bytes, run.stream, p),
        "cudaLaunchKernel");
  return true;
}

}  // namespace

int launch_tensor(const PassRun &run) {
  if (run.plan.method != Method::Auto || run.buffers.regions->active) return 0;
  SeparableTensorParams separable = {};
  DenseTensorParams dense = {};
  const TensorKind kind = make_fragments(run.plan, run.pass(), separable, dense);
  if (kind.structure == Tensor::None || !current_device().matrices) return 0;
  if (kind.structure == Tensor::Separable)
    return enqueue(run, separable_launch(kind), separable_policy(kind.radius), separable);
  return enqueue(run, dense_launch(kind), dense_policy(kind.radius, kind.weights), dense);
}

}  // namespace cudaconv
