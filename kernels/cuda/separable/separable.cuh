// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks up to a radius of 32, on the matrix instructions, in strips, entirely in registers.
//
// Computes the sums along rows of the window, then along the column, as factored_row() and factored_column() of
// methods/operations.cuh do, and makes samples of them. separable_sums.cuh has the sums, strip_source.cuh the
// loads, with pictures.
//
// Example, a 15x15 Gaussian of RGBA: a warp has a strip of 16 pixels. A step sums 8 rows along themselves for 3
// channels, and completes 8 rows of results whose windows began two steps before.
//
// A launch takes as long as its slowest warps, so warps at an edge of the frame should not take longer than others.
#pragma once

#include "cuda/separable/strip_source.cuh"

namespace cudaconv::separable {

// The samples at the places of a lane's sums: two neighbouring pixels in each of two rows, at() pixel i, row h and
// channel c.
template <int kChannels, Samples kSamples>
class Centres {
 public:
  // Loads from (x, y) of the part on. Samples beyond its last pixel or row are not used.
  __device__ Centres(const PartParams &part, int x, int y, bool inside) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint8_t *from = part.source + min(y + h, part.height - 1) * part.source_pitch + x * kPixelBytes;
      if (inside) {
        if constexpr (kPixelBytes % 2 == 0) {
          load_words<kPixelBytes / 2>(from, words_[h]);
        } else {
#pragma unroll
          for (int i = 0; i < kPixelBytes; i++) put(h, i, i % 2, __ldg(reinterpret_cast<const uint16_t *>(from) + i));
        }
      } else {
        const int end = (part.width - x) * kPixelBytes;
#pragma unroll
        for (int i = 0; i < 2 * kPixelBytes; i++)
          if (i < end) words_[h][i / 4] |= uint32_t{__ldg(from + i)} << i % 4 * 8;
      }
    }
  }

  // Channel c of those from `skipped` on; unless that is 0, a pixel is a word.
  __device__ uint32_t at(const MmaParams &p, int i, int h, int c, int skipped) const {
    const int byte = i * kPixelBytes + c * kBytes;
    const uint32_t word = words_[h][byte / 4] >> (byte % 4 + skipped) * 8;
    if constexpr (kBytes == 1) return word & 0xffu;
    return word >> p.sample_shift & p.sample_mask & 0xffffu;
  }

 private:
  static constexpr int kBytes = sample_bytes(kSamples), kPixelBytes = kChannels * kBytes;
  __device__ void put(int h, int i, int half, uint32_t pair) {
    words_[h][i / 2] |= pair << half * 16;
  }
  uint32_t words_[2][(2 * kPixelBytes + 3) / 4] = {};
};

// Sharpening without the clamp; `sum` includes its start.
__device__ inline int32_t sharpen(const Sharpening &s, int32_t sum, uint32_t sample) {
  const int32_t more = static_cast<int32_t>(sample) * s.unit - (sum >> s.sum_shift);
  return static_cast<int32_t>(sample) + static_cast<int32_t>((int64_t{more} * s.amount + s.offset) >> 32);
}

// Rounds a lane's sums of all channels to 8-bit samples as they lie in memory: the pair of neighbouring pixels in
// column 2t, then the pair in 2t + 1. Several such sets are rounded together, so that none waits for another.
template <int kCount, int kChannels>
__device__ inline void round_pixels(const SumRounding &r, const Sums (&sums)[kCount][kChannels],
                                    uint32_t (&words)[kCount][kChannels]) {
  const auto pack = [&](auto round) {
#pragma unroll
    for (int i = 0; i < kCount * kChannels; i++) {
      const auto sample = [&](int n) {
        n += i % kChannels * 4;
        return round(sums[i / kChannels][n % kChannels].v[sum_of_pixel(n / kChannels)]);
      };
      words[i / kChannels][i % kChannels] = pack_clamped(sample(0), sample(1), sample(2), sample(3));
    }
  };
  if (r.mode == SumRounding::Divide) return pack([&](int32_t v) { return divide_sum(r, v); });
  pack([&](int32_t v) { return v >> r.shift; });
}

template <int kParts>
__device__ inline void round_sums(const MmaParams &p, const PartialSums<kParts> &sums, uint32_t (&pairs)[2]) {
  const SumRounding &r = p.epilogue;
  const auto pack = [&](auto round) { pack_samples(p, pairs, round); };
  if (r.mode == SumRounding::ShiftWide) return pack([&](int i) { return sums.highest(i) >> r.shift; });
  const Sums total = sums.total();
  if (r.mode == SumRounding::Divide) return pack([&](int i) { return divide_sum(r, total.v[i]); });
  pack([&](int i) { return total.v[i] >> r.shift; });
}

// Rounds a lane's sums of all channels to two pairs of neighbouring pixels as they lie in memory, for kCount sets at
// once. sums_of(i, c) returns the sums of set i and channel c.
template <int kCount, int kChannels, typename Shape, typename SumsOf>
__device__ inline void make_pixels(const MmaParams &p, SumsOf sums_of,
                                   uint32_t (&words)[kCount][kChannels * Shape::kSampleBytes]) {
  if constexpr (Shape::kSamples == Samples::U8) {
    Sums total[kCount][kChannels];
    each<kCount, kChannels>([&](int i, int c) { total[i][c] = sums_of(i, c).total(); });
    round_pixels(p.epilogue, total, words);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      uint32_t pairs[kChannels][2];
#pragma unroll
      for (int c = 0; c < kChannels; c++) round_sums(p, sums_of(i, c), pairs[c]);
      join_channels<kChannels>(pairs, words[i]);
    }
  }
}

// Whether kernels are compiled for Pixels::Whole and Pixels::Patched besides Pixels::Any: not for 16-bit samples and
// large radii, whose code is long.
template <typename Shape>
constexpr bool kHasAllPixels = Shape::kRadius <= 16 || Shape::kSamples == Samples::U8;

// The sums of a warp's strips, and the results made of them.
template <typename Kind>
class StripAccumulator {
 public:
  using Shape = typename Kind::Shape;

  __device__ StripAccumulator(const SeparableMmaParams &p, const uint32_t *lines)
      : p_(p), operands_(lines), row_start_(held(p.row_start)), start_(held(p.epilogue.start)) {}

  // Sums the next 8 rows of strip s and channel c.
  __device__ void enter(int s, int c, const typename Kind::Words &words) {
    constexpr int kSampleBytes = Shape::kSampleBytes;
    uint32_t window[kSampleBytes][Shape::kChunksX];
    each<kSampleBytes, Shape::kChunksX>([&](int b, int k) { window[b][k] = words[s + k][c * kSampleBytes + b]; });
    sums_[s][c].enter(p_, operands_, row_start_, window);
  }

  // Computes 8 rows of results, from row y on.
  __device__ void make_results(const Tile &tile, int y, int skipped, bool inside,
                               typename Kind::Results &pixels) const {
    if (has_sharpening(Shape::kSamples) && p_.epilogue.mode == SumRounding::Sharpen)
      sharpen_results(tile, y, skipped, inside, pixels);
    else
      round_results(pixels);
    if constexpr (kFiltered < kChannels)
#pragma unroll
      for (int i = 0; i < Kind::kPixelBytes; i++) pixels[0][i] <<= 8 * skipped;
  }

 private:
  static constexpr int kStrips = Kind::kStrips, kChannels = Kind::kChannels, kFiltered = Kind::kFiltered;

  __device__ void round_results(typename Kind::Results &pixels) const {
    if constexpr (ChannelSums::kChains) {
      // Chained sums are computed together, so that none waits for another.
      PartialSums<ChannelSums::kTotals> totals[kStrips][kChannels] = {};
      each<kStrips, kFiltered>([&](int s, int c) { totals[s][c] = total(s, c); });
      make_pixels<kStrips, kChannels, Shape>(
          p_, [&](int s, int c) { return totals[s][c]; }, pixels);
    } else {
      make_pixels<kStrips, kChannels, Shape>(
          p_, [&](int s, int c) { return total(s, c); }, pixels);
    }
  }

  // The same for SumRounding::Sharpen. Channels are computed one by one, since registers are scarce.
  __device__ void sharpen_results(const Tile &tile, int y, int skipped, bool inside,
                                  typename Kind::Results &pixels) const {
    const int lane = threadIdx.x % 32, x = tile.x0 + lane / 4 * 2;
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      const Centres<kChannels, Shape::kSamples> centres(tile.part,
                                                        Kind::kAny ? x + 16 * s : min(x + 16 * s, tile.part.width - 2),
                                                        y + lane % 4 * 2, !Kind::kAny || inside);
      std::conditional_t<Shape::kSamples == Samples::U8, uint32_t[kChannels], uint32_t[kChannels][2]> results = {};
#pragma unroll
      for (int c = 0; c < kFiltered; c++) {
        const Sums sums = total(s, c).total();
        // sums.v[2i + h] belongs to pixel i and row h.
        const auto round = [&](int n) {
          return sharpen(p_.sharpening, sums.v[n], centres.at(p_, n / 2, n % 2, c, skipped));
        };
        if constexpr (Shape::kSamples == Samples::U8)
          results[c] = pack_clamped(round(0), round(2), round(1), round(3));
        else
          pack_samples(p_, results[c], round);
      }
      join_channels<kChannels>(results, pixels[s]);
    }
  }

  using ChannelSums = SeparableSums<Shape>;

  // With Patched pixels registers are scarce, so the value is not forced into one.
  __device__ static int32_t held(int32_t v) {
    return Kind::kPixels == Pixels::Patched ? v : in_register(v);
  }

  __device__ PartialSums<ChannelSums::kTotals> total(int s, int c) const {
    return sums_[s][c].total(p_, operands_, start_);
  }

  const SeparableMmaParams &p_;
  const SeparableOperands<Shape> operands_;
  const int32_t row_start_, start_;
  ChannelSums sums_[Kind::kStrips][Kind::kFiltered];
};

// Converts a lane's results of a step to pixels as they lie in memory: with several strips, 8 bytes of two rows of one
// strip.
template <typename Kind>
__device__ inline void join_strips(typename Kind::Results &pixels, typename Kind::Joined &words) {
  if constexpr (Kind::kStrips > 1) {
    Kind::Place::join(pixels, words);
  } else {
    Kind::Place::join(pixels[0]);
#pragma unroll
    for (int i = 0; i < Kind::kPixelBytes; i++) words[i] = pixels[0][i];
  }
}

// Filters the warp's strips; tile.x0 is their first pixel. `inside`: all that is read and written lies in the frame, in
// whole words.
template <typename Kind>
__device__ inline void filter_strip(const SeparableMmaParams &p, const Tile &tile, const uint32_t *lines,
                                    const int64_t *rows, const int *columns, bool inside) {
  using Shape = typename Kind::Shape;
  using Source = StripSource<Kind>;
  using Place = typename Kind::Place;
  constexpr int kPixelBytes = Kind::kPixelBytes;
  const PartParams &part = tile.part;
  int bottom = min(tile.y0 + p.tile_height, part.height);
  const int steps = (bottom - tile.y0 + 7) / 8 + Shape::kSteps - 1;
  Source source(p, tile, rows, columns, inside);
  const bool has_unfiltered = Kind::kFiltered < Kind::kChannels || part.has_unfiltered;
  const Place place;
  int below = static_cast<int>(threadIdx.x) % 4 * 2;
  if constexpr (Kind::kStrips == 1) below += place.y;
  const int x = tile.x0 + place.x;
  // If words are whole, a lane writes all of its word or none of it.
  if (Kind::kPixels == Pixels::Whole && Kind::kStrips == 1 && x >= part.width) bottom = 0;
  source.read(0);
  StripAccumulator<Kind> sums(p, lines);
  // Whether samples of unfiltered channels are loaded while rows are summed, which takes registers.
  constexpr bool kLoadsEarly = !Kind::kAny && kPixelBytes < 8;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    if (Source::kPrefetches && step + SeparableTuning::kPrefetchSteps < steps)
      source.prefetch(step + SeparableTuning::kPrefetchSteps);
    const bool has_next = step + 1 < steps, has_results = step >= Shape::kSteps - 1;
    const int y0 = tile.y0 + 8 * (step - Shape::kSteps + 1), y = y0 + below;  // of the results, and of the lane's
    const auto places = [&] { return typename Place::Pixels(part, x, y, bottom, !Kind::kAny || inside); };
    typename Kind::Joined original;
    const auto load_originals = [&] {
      places().load(part.source + y * part.source_pitch + x * kPixelBytes, part.source_pitch, original);
    };
    typename Kind::Words words;
    source.take(words);
    if (!Source::kReadsLate && has_next) source.read(step + 1);
    if (kLoadsEarly && has_unfiltered && has_results) load_originals();
#pragma unroll
    for (int s = 0; s < Kind::kStrips; s++)
#pragma unroll
      for (int c = 0; c < Kind::kFiltered; c++) sums.enter(s, c, words);
    if (Source::kReadsLate && has_next) source.read(step + 1);
    if (!has_results) continue;
    typename Kind::Results pixels;
    sums.make_results(tile, y0, source.skipped(), inside, pixels);
    typename Kind::Joined joined;
    join_strips<Kind>(pixels, joined);
    if (has_unfiltered) {
      if (!kLoadsEarly) load_originals();
      blend_pixels<kPixelBytes>(part, original, joined);
    }
    places().store(part.target + y * part.target_pitch + x * kPixelBytes, part.target_pitch, joined);
  }
}

// Kernels of 8-bit samples are compiled for planes of one or two channels or for planes of three or four: several
// narrow strips take more registers than a wide one.
template <typename Shape, bool kFewChannels>
struct SeparableStrip {
  // kMinBlocks: how many blocks a multiprocessor is to hold, which limits the registers of a thread.
  static constexpr bool kWide = Shape::kSamples == Samples::U8 && !kFewChannels;
  static constexpr int kBlocks = Shape::kRadius > 16 ? 2 : (Shape::kRadius > 8 ? 3 : 4) + (kWide ? 1 : 0);
  static constexpr int kMinBlocks = Shape::kSamples == Samples::U16x4 ? kBlocks - 1 : kBlocks;
};

template <int kChannels, typename Shape>
__device__ inline void filter_strips(const SeparableMmaParams &p, Tile tile) {
  constexpr int kSubtiles = subtiles(kChannels * Shape::kSampleBytes);
  constexpr int kPixels = 16 * (kSubtiles - 1 + Shape::kChunksX);  // pixels of a row that a warp reads
  static_assert(kPixels <= 16 * kMostColumns, "");
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x) / 32, first_row = tile.y0 - Shape::kRadius;
  const int height = p.tile_height + 2 * Shape::kRadius;
  tile.x0 = aligned_column<kChannels * Shape::kSampleBytes>(tile.x0, warp * 16 * kSubtiles);
  uint32_t *lines = shared_memory<uint32_t>();
  int64_t *rows = reinterpret_cast<int64_t *>(shared_memory<uint8_t>() + Shape::kLineBytes);
  int *columns = reinterpret_cast<int *>(rows + height) + warp * 16 * kMostColumns;
  Shape::load_lines(p, lines);
  list_rows(p, part, first_row, height, rows, static_cast<int>(blockDim.x));
  constexpr int kPixelBytes = kChannels * Shape::kSampleBytes, kWidth = 16 * kSubtiles;
  const bool is_there = tile.x0 < part.width;
  // If words beside the frame can be patched, the last strips are moved left to end with the frame. They compute some
  // results of the strips before them again, and store 8 bytes at a time.
  const bool patches = kHasAllPixels<Shape> && can_patch<kPixelBytes>(p, part) && part.width * kPixelBytes % 8 == 0 &&
                       part.width >= kWidth;
  if (patches) tile.x0 = min(tile.x0, part.width - kWidth);
  const int first = tile.x0 - Shape::kRadius;
  const bool inside = lies_inside(p, part, first, kPixels, first_row, height);
  // Pixels that are whole words can be read from any place.
  constexpr bool kWholeWords = kPixelBytes % 4 == 0;
  const bool whole = inside || (kWholeWords && part.width % 2 == 0 && p.border != Border::Constant);
  if (!inside) list_columns(p, part, first, kPixels, columns, 32);
  __syncthreads();
  if (!is_there) return;
  const auto filter = [&](auto filtered) {
    constexpr int kFiltered = decltype(filtered)::value;
    if constexpr (kHasAllPixels<Shape>) {
      if (whole)
        return filter_strip<StripKind<kChannels, kFiltered, Pixels::Whole, Shape>>(p, tile, lines, rows, columns,
                                                                                   kWholeWords ? inside : true);
      if constexpr (kPixelBytes <= 2)
        if (patches && are_rows(p, part, first_row, height))
          return filter_strip<StripKind<kChannels, kFiltered, Pixels::Patched, Shape>>(p, tile, lines, rows, columns,
                                                                                       false);
    }
    filter_strip<StripKind<kChannels, kFiltered, Pixels::Any, Shape>>(p, tile, lines, rows, columns, inside);
  };
  if constexpr (kPixelBytes == 4 && kChannels == 4)
    if (sums_three(part)) return filter(std::integral_constant<int, 3>());
  filter(std::integral_constant<int, kChannels>());
}

template <typename Shape, bool kFewChannels>
__global__ void __launch_bounds__(kStripThreads, SeparableStrip<Shape, kFewChannels>::kMinBlocks)
    strip_mma_kernel(const __grid_constant__ SeparableMmaParams p) {
  if constexpr (kHasMma) {
    constexpr Samples kSamples = Shape::kSamples;
    const Tile tile = locate_tile<true>(p, p.tile_height);
    const int channels = tile.part.channels;
    if (!tile.part.has_filtered) {
      const int width = static_cast<int>(blockDim.x) / 32 * strip_width(channels * sample_bytes(kSamples));
      return copy_tile(tile.part, tile.x0, tile.y0, width, p.tile_height);
    }
    const auto filter = [&](auto channels) { filter_strips<decltype(channels)::value, Shape>(p, tile); };
    constexpr int kOneOrThree = kFewChannels ? 1 : 3, kTwoOrFour = kOneOrThree + 1;
    if constexpr (kSamples != Samples::U8)
      for_channels<kSamples>(channels, filter);
    else if (channels == kTwoOrFour)
      filter(std::integral_constant<int, kTwoOrFour>());
    else
      filter(std::integral_constant<int, kOneOrThree>());
  }
}

}  // namespace cudaconv::separable
