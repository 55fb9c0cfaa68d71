// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the tensor kernels.
#include "tensor.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "launchers.h"

namespace cudaconv {

namespace {

// What a device has.
struct Device {
  bool matrices = false;   // the matrix instructions
  size_t block_bytes = 0;  // of shared memory that a block may have
};

Device current_device() {
  int index, major, block_bytes;
  check(cudaGetDevice(&index), "cudaGetDevice");
  const auto ask = [&](cudaDeviceAttr attribute, int *value) {
    check(cudaDeviceGetAttribute(value, attribute, index), "cudaDeviceGetAttribute");
  };
  ask(cudaDevAttrComputeCapabilityMajor, &major);
  ask(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block_bytes);
  return {major >= 8, static_cast<size_t>(block_bytes)};
}

// Where a tile has more pixels of planes with one or two channels: as many strips beside each other as subtiles() says,
// or groups of rows one below the other, as row_groups() does.
enum class Subtiles { None, Across, Down };

template <typename Params>
struct TensorLaunch {
  void (*kernel)(Params) = nullptr;
  int threads = 0;
  size_t (*shared_bytes)(int channels, int tile_height, int mask_height) = nullptr;
  // Tiles are of `most_rows`, less where shared memory does not hold them, and down to `least_rows` where there would
  // not be enough of them, which is several for each multiprocessor.
  int tile_width = 0, least_rows = 0, most_rows = 0;
  unsigned enough_blocks = 0;
  Subtiles subtiles = Subtiles::None;
};

template <int kRadius, Weights kWeights>
TensorLaunch<SeparableTensorParams> strip_launch() {
  using Strip = SeparableStrip<kRadius, kWeights>;
  return {strip_tensor_kernel<kRadius, kWeights>,
          kStripThreads,
          Strip::shared_bytes,
          kStripThreads / 2,
          32,
          128,
          kRadius > 8 ? 400u : 500u,
          Subtiles::Across};
}

// Of a radius of 16 there are both, strips and tiles.
template <int kRadius, Weights kWeights>
TensorLaunch<SeparableTensorParams> separable_launch([[maybe_unused]] bool strips) {
  if constexpr (kRadius < 16) {
    return strip_launch<kRadius, kWeights>();
  } else {
    if constexpr (kRadius == 16)
      if (strips) return strip_launch<kRadius, kWeights>();
    using Tile = SeparableTile<kRadius, kWeights>;
    return {separable_tensor_kernel<kRadius, kWeights>, Tile::kThreads, Tile::shared_bytes, kTensorTileWidth, 64, 64};
  }
}

// Of Word there are those of radii up to 16.
template <int kRadius>
TensorLaunch<SeparableTensorParams> separable_launch(Weights weights, bool strips) {
  if (weights == Weights::Byte) return separable_launch<kRadius, Weights::Byte>(strips);
  if constexpr (kRadius <= 16)
    if (weights == Weights::Word) return separable_launch<kRadius, Weights::Word>(strips);
  return separable_launch<kRadius, Weights::Rounded>(strips);
}

TensorLaunch<SeparableTensorParams> separable_launch(TensorKind kind, bool strips) {
  switch (kind.radius) {
    case 4:
      return separable_launch<4>(kind.weights, strips);
    case 8:
      return separable_launch<8>(kind.weights, strips);
    case 16:
      return separable_launch<16>(kind.weights, strips);
    case 32:
      return separable_launch<32>(kind.weights, strips);
    default:
      return separable_launch<64>(kind.weights, strips);
  }
}

// Whether there are enough strips for a device to hide what each waits for: with one or two channels they are wide.
bool has_many_strips(const FrameLayout &layout) {
  constexpr int64_t kManySamples = 1 << 24;
  int64_t samples = 0;
  for (int i = 0; i < layout.planes; i++) {
    const PlaneLayout &plane = layout.plane[i];
    if (subtiles(plane.channels) == 1) return true;
    samples += int64_t{plane.width} * plane.height * plane.channels;
  }
  return samples >= kManySamples;
}

template <int kRadius, Weights kWeights>
TensorLaunch<DenseTensorParams> dense_launch() {
  using Shape = DenseShape<kRadius, kWeights>;
  return {dense_tensor_kernel<kRadius, kWeights>,
          Shape::kThreads,
          Shape::shared_bytes,
          kTensorTileWidth,
          16,
          32,
          500,
          Subtiles::Down};
}

TensorLaunch<DenseTensorParams> dense_launch(TensorKind kind) {
  const bool words = kind.weights == Weights::Word;
  if (kind.radius == 8) return words ? dense_launch<8, Weights::Word>() : dense_launch<8, Weights::Byte>();
  return words ? dense_launch<16, Weights::Word>() : dense_launch<16, Weights::Byte>();
}

// Whether the device has room for a tile.
template <typename Params>
bool enqueue(const PassRun &run, const Device &device, const TensorLaunch<Params> &launch_as, int mask_height,
             Params &p) {
  fill_frame(run, p);
  int channels = 1;
  for (int i = 0; i < p.parts; i++) channels = std::max(channels, p.part[i].channels);
  unsigned blocks = 0;
  size_t shared_bytes = 0;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    shared_bytes = launch_as.shared_bytes(channels, rows, mask_height);
    blocks = cut_tiles(p, [&](const PartParams &part) {
      const int width = launch_as.tile_width * (launch_as.subtiles == Subtiles::Across ? subtiles(part.channels) : 1);
      const int height = rows * (launch_as.subtiles == Subtiles::Down ? row_groups(part.channels) : 1);
      return TileCount{(part.width + width - 1) / width, (part.height + height - 1) / height};
    });
  };
  cut(launch_as.most_rows);
  while (p.tile_height > 16 && (shared_bytes > device.block_bytes ||
                                (p.tile_height > launch_as.least_rows && blocks < launch_as.enough_blocks)))
    cut(p.tile_height - 16);
  if (shared_bytes > device.block_bytes) return false;
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
  if (kind.structure == Tensor::None) return 0;
  const Device device = current_device();
  if (!device.matrices) return 0;
  if (kind.structure == Tensor::Separable)
    return enqueue(run, device, separable_launch(kind, has_many_strips(run.plan.layout)), 0, separable);
  return enqueue(run, device, dense_launch(kind), dense.height, dense);
}

}  // namespace cudaconv
