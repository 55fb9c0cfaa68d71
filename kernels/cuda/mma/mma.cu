// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels of separable.cuh and dense.cuh.
#include "cuda/mma/dense.cuh"
#include "cuda/mma/separable.cuh"

#include <algorithm>

#include "cuda/cuda_resources.h"
#include "cuda/device/u8x4_tile.h"
#include "cuda/launchers.h"

namespace cudaconv {

namespace {

template <typename Params>
struct MmaLaunch {
  void (*kernel)(Params) = nullptr;
  int threads = 0;
  size_t (*shared_bytes)(int channels, int tile_height, int mask_height) = nullptr;
  // Tiles are of least_rows to most_rows, a multiple of 16 or 8, or less where shared memory does not hold them. A
  // multiprocessor works on `resident` of them at once, each of which takes the time of `more_rows` more. Without
  // most_rows they are strips of any height, which share a multiprocessor's time; of narrow planes there are too few
  // for that.
  int tile_width = 0, least_rows = 0, most_rows = 0, resident = 0, more_rows = 0;
  bool strips = false;  // as many beside each other as subtiles() says
  bool groups = false;  // of rows, as many below each other
};

// Which of the kernels for separable masks: for unsharp masks, and for few channels.
struct SeparableVariant {
  bool sharpens;
  bool few_channels;  // for planes of one or two channels, else of three or four
};

template <int kRadius, Weights kWeights, Samples kSamples, bool kSharpens = false>
MmaLaunch<SeparableMmaParams> strip_launch(SeparableVariant variant) {
  using Shape = SeparableShape<kRadius, kWeights, kSamples, kSharpens>;
  const auto launch = [](auto few_channels) -> MmaLaunch<SeparableMmaParams> {
    constexpr bool kFewChannels = decltype(few_channels)::value;
    using Strip = SeparableStrip<Shape, kFewChannels>;
    return {strip_mma_kernel<Shape, kFewChannels>,
            kStripThreads,
            Strip::shared_bytes,
            kStripThreads / 2,
            Strip::kWide ? 32 : 16,
            Strip::kWide ? 0 : 512,
            Strip::kMinBlocks,
            Strip::kWide ? kRadius + 8 : 2 * kRadius + 16,
            true};
  };
  if constexpr (kSamples == Samples::U8)
    if (variant.few_channels) return launch(std::true_type());
  return launch(std::false_type());
}

// Strips or, of a radius of 64, tiles.
template <int kRadius, Weights kWeights, Samples kSamples>
MmaLaunch<SeparableMmaParams> separable_launch(SeparableVariant variant) {
  if constexpr (kRadius <= 16 || kSamples != Samples::U8) {
    return strip_launch<kRadius, kWeights, kSamples>(variant);
  } else {
    using Shape = SeparableShape<kRadius, kWeights, kSamples>;
    using Tile = SeparableTile<Shape>;
    return {separable_mma_kernel<Shape>, Tile::kThreads, Tile::shared_bytes, kMmaTileWidth, 64, 64, Tile::kMinBlocks};
  }
}

template <int kRadius, Samples kSamples>
MmaLaunch<SeparableMmaParams> separable_launch(Weights weights, SeparableVariant variant) {
  if constexpr (kRadius <= 16 && has_sharpening(kRadius, kSamples))  // tiles have no kernels of their own for it
    if (variant.sharpens) return strip_launch<kRadius, Weights::U16RoundedRows, kSamples, true>(variant);
  if constexpr (has_separable(kRadius, Weights::S8, kSamples))
    if (weights == Weights::S8) return separable_launch<kRadius, Weights::S8, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::S16, kSamples))
    if (weights == Weights::S16) return separable_launch<kRadius, Weights::S16, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::U24, kSamples))
    if (weights == Weights::U24) return separable_launch<kRadius, Weights::U24, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::U16RoundedRows, kSamples))
    if (weights == Weights::U16RoundedRows)
      return separable_launch<kRadius, Weights::U16RoundedRows, kSamples>(variant);
  return {};
}

template <Samples kSamples>
MmaLaunch<SeparableMmaParams> separable_launch(MmaKind kind, SeparableVariant variant) {
  if constexpr (kSamples == Samples::U8) {
    if (kind.radius == 4) return separable_launch<4, kSamples>(kind.weights, variant);
    if (kind.radius == 64) return separable_launch<64, kSamples>(kind.weights, variant);
  }
  switch (kind.radius) {
    case 8:
      return separable_launch<8, kSamples>(kind.weights, variant);
    case 16:
      return separable_launch<16, kSamples>(kind.weights, variant);
    default:
      return separable_launch<32, kSamples>(kind.weights, variant);
  }
}

template <int kRadius, Weights kWeights, Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch() {
  using Shape = DenseShape<kRadius, kWeights, kSamples>;
  constexpr int kRows = Shape::kThreads / 32 * Shape::kRows;  // that a block's warps take at a time
  return {dense_mma_kernel<Shape>,
          Shape::kThreads,
          Shape::shared_bytes,
          kMmaTileWidth,
          kSamples == Samples::U16x4 ? 16 : kRows,  // lower ones were slower
          32,
          Shape::kMinBlocks,
          16,
          false,
          true};
}

template <int kRadius, Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch(Weights weights) {
  if constexpr (has_dense(kRadius, Weights::S8, kSamples))
    if (weights == Weights::S8) return dense_launch<kRadius, Weights::S8, kSamples>();
  return dense_launch<kRadius, Weights::S16, kSamples>();
}

template <Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch(MmaKind kind) {
  return kind.radius == 8 ? dense_launch<8, kSamples>(kind.weights) : dense_launch<16, kSamples>(kind.weights);
}

// Where the last tiles would leave most of a device idle, those at the bottom are cut in half. Of one part alone:
// elsewhere they would not be the last ones.
// The frame has been cut into `blocks`; returns how many more there are.
inline int choose_low_tiles(DenseMmaParams &p, unsigned blocks, unsigned at_once) {
  constexpr int kRows = 32;  // half of it is what a block's warps take at a time
  const int rows = p.tile_height, height = p.host[0].tile_height;
  const unsigned last = blocks % at_once, columns = p.part[0].tiles_x;
  if (p.parts > 1 || p.host[0].area || rows % kRows || blocks < at_once || 2 * (last + columns) > at_once) return 0;
  p.low_tiles = static_cast<int32_t>(2 * ((last + columns - 1) / columns));
  const int high = high_tiles(p.part[0].height, height, p.low_tiles), half = height / 2;
  const int count = high + (std::max(p.part[0].height - high * height, 0) + half - 1) / half;
  return count * static_cast<int>(columns) - static_cast<int>(blocks);
}

// None where the device has no room for a tile. The frame has been filled in.
template <typename Params>
KernelLaunch<Params> cut_frame(const MmaLaunch<Params> &launch_as, int sample_bytes, int mask_height, Params &p) {
  constexpr bool kDense = std::is_same_v<Params, DenseMmaParams>;
  const auto bytes = [&](int rows) {
    size_t most = 0;
    for (int i = 0; i < p.parts; i++)
      most = std::max(most, launch_as.shared_bytes(p.part[i].channels, rows, mask_height));
    return most;
  };
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      const int more = subtiles(part.channels * sample_bytes);
      const int width = launch_as.tile_width * (launch_as.strips ? more : 1);
      return TileSize{width, part.width, rows * (launch_as.groups ? more : 1)};
    });
  };
  const auto choose = [&](int least, int most) {
    const int step = launch_as.strips ? 8 : std::min(launch_as.least_rows, 16);
    return choose_tile_height(step, least, most, launch_as.resident, bytes, cut,
                              [&](int rows) { return static_cast<uint64_t>(rows + launch_as.more_rows); })
        .height;
  };
  int rows = launch_as.most_rows
                 ? choose(launch_as.least_rows, launch_as.most_rows)
                 : choose_strip_height(launch_as.least_rows, 8, launch_as.resident, launch_as.more_rows, cut);
  // Where a mask has few rows, higher tiles of bytes fit in as well, which have less of a halo; if there are enough of
  // them. Of wider samples fewer would be at work at once.
  if (kDense && rows && sample_bytes == 1 && mask_height <= 8) {
    const int higher = choose(launch_as.least_rows, 2 * launch_as.most_rows);
    if (cut(higher) >= tiles_at_once(launch_as.resident, bytes(higher))) rows = higher;
  }
  if (!rows) rows = choose(16, launch_as.least_rows - 16);
  if (!rows) return {};
  unsigned blocks = cut(rows);
  if constexpr (kDense) blocks += choose_low_tiles(p, blocks, tiles_at_once(launch_as.resident, bytes(rows)));
  return {launch_as.kernel, blocks, launch_as.threads, bytes(rows)};
}

template <Samples kSamples>
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, const MmaKind &kind, SeparableMmaParams &p) {
  const FrameLayout &layout = query.plan.layout;
  const auto few_channels =
      std::count_if(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels <= 2; });
  if (few_channels > 0 && few_channels < layout.planes) return {};
  const SeparableVariant variant = {p.epilogue.mode == SumRounding::Sharpen, few_channels > 0};
  return cut_frame(separable_launch<kSamples>(kind, variant), sample_bytes(kSamples), 0, p);
}

template <Samples kSamples>
KernelLaunch<DenseMmaParams> choose(const PassQuery &, const MmaKind &kind, DenseMmaParams &p) {
  return cut_frame(dense_launch<kSamples>(kind), sample_bytes(kSamples), p.height, p);
}

template <typename Params>
KernelLaunch<Params> choose(const PassQuery &query, const MmaKind &kind, Params &p) {
  switch (kind.samples) {
    case Samples::U16:
      return choose<Samples::U16>(query, kind, p);
    case Samples::U16x4:
      return choose<Samples::U16x4>(query, kind, p);
    default:
      return choose<Samples::U8>(query, kind, p);
  }
}

// None where the pass is not for these. The frame has been filled in.
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  if (!query.kernels.mma) return {};
  DenseMmaParams dense = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), p, dense);
  return kind.shape == MmaShape::Separable ? choose(query, kind, p) : KernelLaunch<SeparableMmaParams>();
}

KernelLaunch<DenseMmaParams> choose(const PassQuery &query, DenseMmaParams &p) {
  if (!query.kernels.mma) return {};
  SeparableMmaParams separable = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), separable, p);
  return kind.shape == MmaShape::Dense ? choose(query, kind, p) : KernelLaunch<DenseMmaParams>();
}

}  // namespace

int takes_separable(const PassQuery &query) {
  SeparableMmaParams p = {};
  fill_frame(query, p);
  return choose(query, p).kernel != nullptr;
}

void launch_separable(const PassRun &run) {
  SeparableMmaParams p = {};
  fill_frame(run, p);
  enqueue(run, choose(run, p), p);
}

int takes_dense(const PassQuery &query) {
  DenseMmaParams p = {};
  fill_frame(query, p);
  return choose(query, p).kernel != nullptr;
}

void launch_dense(const PassRun &run) {
  DenseMmaParams p = {};
  fill_frame(run, p);
  enqueue(run, choose(run, p), p);
}

const void *any_mma() {
  return reinterpret_cast<const void *>(dense_mma_kernel<DenseShape<16, Weights::S8, Samples::U8>>);
}

}  // namespace cudaconv
