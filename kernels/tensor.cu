// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the tensor kernels.
#include "tensor.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "launchers.h"
#include "pairs.h"
#include "quads.h"
#include "squares.h"

namespace cudaconv {

namespace {

template <typename Params>
struct TensorLaunch {
  void (*kernel)(Params) = nullptr;
  int threads = 0;
  size_t (*shared_bytes)(int channels, int tile_height, int mask_height) = nullptr;
  // Tiles are of least_rows to most_rows, a multiple of 16, or less where shared memory does not hold them. A
  // multiprocessor works on `resident` of them at once, each of which takes the time of `more_rows` more.
  int tile_width = 0, least_rows = 0, most_rows = 0, resident = 0, more_rows = 0;
  bool strips = false;    // as many beside each other as subtiles() says
  int single_groups = 1;  // of rows, one below the other, with one channel
};

template <int kRadius, Weights kWeights, Samples kSamples, bool kSharpens = false>
TensorLaunch<SeparableTensorParams> strip_launch() {
  using Shape = SeparableShape<kRadius, kWeights, kSamples, kSharpens>;
  using Strip = SeparableStrip<Shape>;
  return {strip_tensor_kernel<Shape>, kStripThreads, Strip::shared_bytes, kStripThreads / 2, 32, 128, Strip::kMinBlocks,
          2 * kRadius + 16,           true};
}

// Of a radius of 16 there are both, strips and tiles, and of 16-bit samples strips alone.
template <int kRadius, Weights kWeights, Samples kSamples>
TensorLaunch<SeparableTensorParams> separable_launch([[maybe_unused]] bool strips) {
  if constexpr (kRadius < 16 || kSamples != Samples::Bytes) {
    return strip_launch<kRadius, kWeights, kSamples>();
  } else {
    if constexpr (kRadius == 16)
      if (strips) return strip_launch<kRadius, kWeights, kSamples>();
    using Shape = SeparableShape<kRadius, kWeights, kSamples>;
    using Tile = SeparableTile<Shape>;
    return {
        separable_tensor_kernel<Shape>, Tile::kThreads, Tile::shared_bytes, kTensorTileWidth, 64, 64, Tile::kMinBlocks};
  }
}

template <int kRadius, Samples kSamples>
TensorLaunch<SeparableTensorParams> separable_launch(Weights weights, bool strips, bool sharpens) {
  if constexpr (kRadius <= 8 && has_sharpening(kRadius, kSamples))
    if (sharpens) return strip_launch<kRadius, Weights::Rounded, kSamples, true>();
  if constexpr (has_separable(kRadius, Weights::Byte, kSamples))
    if (weights == Weights::Byte) return separable_launch<kRadius, Weights::Byte, kSamples>(strips);
  if constexpr (has_separable(kRadius, Weights::Word, kSamples))
    if (weights == Weights::Word) return separable_launch<kRadius, Weights::Word, kSamples>(strips);
  if constexpr (has_separable(kRadius, Weights::Long, kSamples))
    if (weights == Weights::Long) return separable_launch<kRadius, Weights::Long, kSamples>(strips);
  if constexpr (has_separable(kRadius, Weights::Rounded, kSamples))
    if (weights == Weights::Rounded)
      // Tiles sharpen without kernels of their own.
      return separable_launch<kRadius, Weights::Rounded, kSamples>(strips && !sharpens);
  return {};
}

template <Samples kSamples>
TensorLaunch<SeparableTensorParams> separable_launch(TensorKind kind, bool strips, bool sharpens) {
  if constexpr (kSamples == Samples::Bytes) {
    if (kind.radius == 4) return separable_launch<4, kSamples>(kind.weights, strips, sharpens);
    if (kind.radius == 64) return separable_launch<64, kSamples>(kind.weights, strips, sharpens);
  }
  switch (kind.radius) {
    case 8:
      return separable_launch<8, kSamples>(kind.weights, strips, sharpens);
    case 16:
      return separable_launch<16, kSamples>(kind.weights, strips, sharpens);
    default:
      return separable_launch<32, kSamples>(kind.weights, strips, sharpens);
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

template <int kRadius, Weights kWeights, Samples kSamples>
TensorLaunch<DenseTensorParams> dense_launch() {
  using Shape = DenseShape<kRadius, kWeights, kSamples>;
  return {dense_tensor_kernel<Shape>,
          Shape::kThreads,
          Shape::shared_bytes,
          kTensorTileWidth,
          16,
          32,
          Shape::kMinBlocks,
          16,
          false,
          Shape::kSingleGroups};
}

template <int kRadius, Samples kSamples>
TensorLaunch<DenseTensorParams> dense_launch(Weights weights) {
  if constexpr (has_dense(kRadius, Weights::Byte, kSamples))
    if (weights == Weights::Byte) return dense_launch<kRadius, Weights::Byte, kSamples>();
  return dense_launch<kRadius, Weights::Word, kSamples>();
}

template <Samples kSamples>
TensorLaunch<DenseTensorParams> dense_launch(TensorKind kind) {
  return kind.radius == 8 ? dense_launch<8, kSamples>(kind.weights) : dense_launch<16, kSamples>(kind.weights);
}

// Whether the device has room for a tile.
template <typename Params>
bool enqueue_tiles(const PassRun &run, const TensorLaunch<Params> &launch_as, int sample_bytes, int mask_height,
                   Params &p) {
  fill_frame(run, p);
  int channels = 1;
  for (int i = 0; i < p.parts; i++) channels = std::max(channels, p.part[i].channels);
  const auto bytes = [&](int rows) { return launch_as.shared_bytes(channels, rows, mask_height); };
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      const int width = launch_as.tile_width * (launch_as.strips ? subtiles(part.channels * sample_bytes) : 1);
      const int height = rows * (part.channels == 1 ? launch_as.single_groups : 1);
      return TileCount{(part.width + width - 1) / width, (part.height + height - 1) / height};
    });
  };
  const auto choose = [&](int least, int most) {
    return choose_tile_height(16, least, most, launch_as.resident, bytes, cut,
                              [&](int rows) { return static_cast<uint64_t>(rows + launch_as.more_rows); })
        .height;
  };
  int rows = choose(launch_as.least_rows, launch_as.most_rows);
  if (!rows) rows = choose(16, launch_as.least_rows - 16);
  if (!rows) return false;
  const unsigned blocks = cut(rows);
  enqueue("tensor", launch_as.kernel, dim3(blocks), dim3(launch_as.threads), bytes(rows), run.stream, p);
  return true;
}

}  // namespace

int launch_tensor(const PassRun &run) {
  if (!run.kernels.matrix) return 0;
  SeparableTensorParams separable = {};
  DenseTensorParams dense = {};
  PairTensorParams pairs = {};
  const TensorKind kind = make_fragments(run.plan, run.pass(), separable, dense, &pairs);
  if (kind.structure == Tensor::None) return 0;
  if (kind.pairs && enqueue_pairs(run, kind.samples, pairs)) return 1;
  if (kind.squares && enqueue_squares(run, dense)) return 1;
  const auto enqueue_on = [&](auto samples) {
    constexpr Samples kSamples = decltype(samples)::value;
    constexpr int kBytes = sample_bytes(kSamples);
    if (kind.structure == Tensor::Dense)
      return enqueue_tiles(run, dense_launch<kSamples>(kind), kBytes, dense.height, dense);
    const bool strips = has_many_strips(run.plan.layout);
    const bool sharpens = separable.finish.how == SumRounding::Sharpen;
    return enqueue_tiles(run, separable_launch<kSamples>(kind, strips, sharpens), kBytes, 0, separable);
  };
  switch (kind.samples) {
    case Samples::Words:
      return enqueue_on(std::integral_constant<Samples, Samples::Words>());
    case Samples::FourWords:
      return enqueue_on(std::integral_constant<Samples, Samples::FourWords>());
    default:
      return enqueue_on(std::integral_constant<Samples, Samples::Bytes>());
  }
}

const void *any_tensor() {
  return reinterpret_cast<const void *>(dense_tensor_kernel<DenseShape<16, Weights::Byte, Samples::Bytes>>);
}

}  // namespace cudaconv
