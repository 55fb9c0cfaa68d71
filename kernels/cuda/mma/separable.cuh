// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks, by the matrix instructions. Those of up to 33 samples, 65 where samples have 16 bits,
// go through registers alone, in strips; longer ones work on tiles in shared memory, of samples and of results.
//
// A warp goes down a strip of 16 pixels' width in steps of 8 rows. One step sums 8 rows along the row: the row's matrix
// times a matrix of samples, whose columns are the 8 rows. Lane (g, t) then holds the sums of its pixels 2g and 2g + 1
// in rows 2t and 2t + 1, 16 bits each. That is just what it needs of the 16 x k matrix of the second product, whose
// rows are pixels and whose k are rows: a chunk is 16 rows, two steps, where k = 4t + i stands for rows 2t, 2t + 1 of
// the one step and 2t, 2t + 1 of the next. So sums stay in registers, as high bytes and low bytes, and move up by half
// a chunk with each step. The k x 8 matrix is the column's: 8 rows of results, and the weight of each row of sums in
// each.
#pragma once

#include "cuda/mma/sums.cuh"

namespace cudaconv {

template <int kRadiusClass, Weights kWeightsKind, Samples kSamplesKind, bool kSharpensPixels = false>
struct SeparableShape {
  static constexpr int kRadius = kRadiusClass;
  static constexpr Weights kWeights = kWeightsKind;
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kBytes = weight_bytes(kWeights);
  static constexpr int kSumBytes = row_sum_bytes(kWeights, kSampleBytes);
  static constexpr int kRowParts = kSampleBytes + kBytes - 1, kParts = kSumBytes + kBytes - 1;
  static constexpr bool kSharpens = kSharpensPixels;  // SumRounding::Sharpen and no other
  // Pixels on either side that are read: chunks begin at multiples of 8.
  static constexpr int kReach = kRadius < 8 ? 8 : kRadius;
  static constexpr int kChunksX = (16 + 2 * kReach) / 16;  // of samples that windows of 16 pixels reach
  static constexpr int kSteps = 1 + kRadius / 4;           // that windows of 8 rows reach
  static constexpr int kChunksY = (kSteps + 1) / 2;
  // Words of a line that are not zero: all of them for the largest class, whose radii are below 64.
  static constexpr int kWords = kRadius < 64 ? kRadius / 2 + 1 : kLineWords;
  static constexpr int kLine = padded_words(kWords), kLines = 2 * kBytes;
  static constexpr size_t kLineBytes = (kLines * sizeof(uint32_t) * kLine + 15) / 16 * 16;

  // The lines with their padding, in shared memory.
  __device__ static void load_lines(const SeparableMmaParams &p, uint32_t *lines) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kLines * kLine; i += static_cast<int>(blockDim.x))
      lines[i] = padded_word(p.line[i / kLine / kBytes][i / kLine % kBytes], kWords, i % kLine);
  }
};

// The two matrices of coefficients.
template <typename Shape>
struct SeparableOperands {
  static constexpr int kBytes = Shape::kBytes, kChunksX = Shape::kChunksX, kChunksY = Shape::kChunksY;
  uint32_t row[kBytes][kChunksX][2], column[kBytes][kChunksY];  // from the lowest bytes up

  // `eight_pixels`: of samples as PixelReader::kEightPixels says.
  __device__ explicit SeparableOperands(const uint32_t *lines, bool eight_pixels = false) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    constexpr int kLine = Shape::kLine;
    const auto sample = [&](int c) {
      return eight_pixels && (c | 1) < kChunksX ? c / 2 * 32 + 8 * t + c % 2 * 4 : 16 * c + 4 * t;
    };
#pragma unroll
    for (int b = 0; b < kBytes; b++) {
#pragma unroll
      for (int c = 0; c < kChunksX; c++)
#pragma unroll
        for (int i = 0; i < 2; i++)
          row[b][c][i] = four_bytes(lines + b * kLine, sample(c) - (2 * g + i) - (Shape::kReach - Shape::kRadius));
#pragma unroll
      for (int c = 0; c < kChunksY; c++) {
        const int first = 16 * c + 2 * t - g;  // rows 2t and 2t + 1 of either step, seen from row g of results
        column[b][c] = __byte_perm(four_bytes(lines + (kBytes + b) * kLine, first),
                                   four_bytes(lines + (kBytes + b) * kLine, first + 8), 0x5410);
      }
    }
  }
};

// The last rows' sums of a channel, from which columns are summed. kChains, of 8-bit samples: the parts of a sum are
// made one after the other, each from the one before it. That is less to do, and takes longer where a warp has no other
// sum to make meanwhile.
template <typename Shape, bool kChains>
struct SeparableSums {
  static constexpr int kSampleBytes = Shape::kSampleBytes, kBytes = Shape::kBytes, kSumBytes = Shape::kSumBytes;
  static constexpr int kChunksX = Shape::kChunksX, kChunksY = Shape::kChunksY;
  static constexpr Weights kWeights = Shape::kWeights;
  uint32_t sum[kSumBytes][kChunksY][2] = {};  // bytes of the rows' sums, of pixels 2g and 2g + 1

  // Sums the next 8 rows of samples, of which there is a window of each byte.
  __device__ void enter(const SeparableMmaParams &p, const SeparableOperands<Shape> &k, int32_t start,
                        const uint32_t (&window)[kSampleBytes][kChunksX]) {
    Sums sums;
    if constexpr (kChains) {
      sums = add_parts<kBytes>(start, [&](int part, Sums s) {
        return part == kBytes - 1 ? multiply<has_signed_row(kWeights), false>(k.row[part], window[0], s)
                                  : multiply<false, false>(k.row[part], window[0], s);
      });
    } else {
      PartialSums<Shape::kRowParts> parts;
#pragma unroll
      for (int i = 0; i < Shape::kRowParts; i++) parts.part[i] = all(i == row_start_part(kWeights) ? start : 0);
#pragma unroll
      for (int i = 0; i < kSampleBytes; i++)
#pragma unroll
        for (int b = 0; b < kBytes; b++)
          if (b == kBytes - 1)
            parts.part[i + b] = multiply<has_signed_row(kWeights), false>(k.row[b], window[i], parts.part[i + b]);
          else
            parts.part[i + b] = multiply<false, false>(k.row[b], window[i], parts.part[i + b]);
      sums = row_sums(p, parts);
    }
    // With 8-bit samples the rounding is a choice of bytes.
    constexpr uint32_t kPick = kWeights == Weights::U16RoundedRows && kSampleBytes == 1 ? 0x6251 : 0x5140;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t first = static_cast<uint32_t>(sums.v[2 * i]), second = static_cast<uint32_t>(sums.v[2 * i + 1]);
      // The two sums' low bytes, then the next; their third ones.
      const uint32_t pair = __byte_perm(first, second, kPick);
      append<0>(i, pair, false);
      append<1>(i, pair, true);
      if constexpr (kSumBytes == 3) append<2>(i, __byte_perm(first, second, 0x0062), false);
    }
  }

  // The sums of 8 rows of results. `start` is added to them, `start_high` times 256^k, see SumRounding.
  static constexpr int kTotals = kChains ? 1 : Shape::kParts;
  __device__ PartialSums<kTotals> total(const SeparableOperands<Shape> &k, int32_t start, int32_t start_high) const {
    const auto add = [&](int i, int b, const Sums &s) {
      return b == kBytes - 1 ? multiply<false, has_signed_column(kWeights)>(sum[i], k.column[b], s)
                             : multiply<false, false>(sum[i], k.column[b], s);
    };
    if constexpr (kChains) {
      return {{add_parts<Shape::kParts>(start, [&](int part, Sums s) {
#pragma unroll
        for (int i = kSumBytes - 1; i >= 0; i--)
          if (part - i >= 0 && part - i < kBytes) s = add(i, part - i, s);
        return s;
      })}};
    } else {
      PartialSums<kTotals> parts;
#pragma unroll
      for (int i = 0; i < kTotals; i++)
        parts.part[i] = all(i == 0 ? start : kSampleBytes == 2 && i == start_high_part(kWeights) ? start_high : 0);
#pragma unroll
      for (int i = 0; i < kSumBytes; i++)
#pragma unroll
        for (int b = 0; b < kBytes; b++) parts.part[i + b] = add(i, b, parts.part[i + b]);
      return parts;
    }
  }

 private:
  // Part by part, from the highest down, what add(part, sums) makes of the sums so far. The last begins with `start`.
  template <int kCount, typename Add>
  __device__ static Sums add_parts(int32_t start, Add add) {
    Sums sums = all(kCount == 1 ? start : 0);
#pragma unroll
    for (int part = kCount - 1; part >= 0; part--) {
      if (part < kCount - 1) sums = times_256(sums, part ? 0 : start);
      sums = add(part, sums);
    }
    return sums;
  }

  // The rows' sums, but for the bits that U16RoundedRows of 8-bit samples leave off.
  __device__ static Sums row_sums(const SeparableMmaParams &p, const PartialSums<Shape::kRowParts> &parts) {
    Sums sums = parts.total();
    if constexpr (kWeights == Weights::U24) {
      // 32 bits do not hold what the shift by 16 leaves off.
#pragma unroll
      for (int i = 0; i < 4; i++)
        sums.v[i] = (((parts.part[0].v[i] >> 8) + parts.part[1].v[i]) >> 8) + parts.part[2].v[i] +
                    (parts.part[Shape::kRowParts - 1].v[i] << 8);
    } else if constexpr (kWeights == Weights::U16RoundedRows && kSampleBytes == 2) {
#pragma unroll
      for (int i = 0; i < 4; i++) sums.v[i] >>= p.row_shift;
    }
    return sums;
  }

  // Byte kByte of the sums of the two rows of a step moves in, from a half of `pair`.
  template <int kByte>
  __device__ void append(int i, uint32_t pair, bool upper) {
    auto &chunks = sum[kByte];
#pragma unroll
    for (int c = 0; c + 1 < kChunksY; c++) chunks[c][i] = __byte_perm(chunks[c][i], chunks[c + 1][i], 0x5432);
    // With an odd number of steps the last chunk's second half has no weight.
    uint32_t &last = chunks[kChunksY - 1][i];
    if (Shape::kSteps % 2)
      last = upper ? pair >> 16 : pair;
    else
      last = __byte_perm(last, pair, upper ? 0x7632 : 0x5432);
  }
};

// ---- Sums and the sample in the middle of the window ----

// As Sharpening says, but for the clamp; `sum` has its start.
__device__ inline int32_t sharpen(const Sharpening &s, int32_t sum, uint32_t sample) {
  const int32_t more = static_cast<int32_t>(sample) * s.unit - (sum >> s.sum_shift);
  return static_cast<int32_t>(sample) + static_cast<int32_t>((int64_t{more} * s.amount + s.offset) >> 32);
}

// The samples of two neighbouring pixels of two rows that a lane's sums belong to: of pixel i, row h and channel c.
template <int kChannels, Samples kSamples>
class Centres {
 public:
  // From (x, y) of the part; what lies beyond its last pixel or row `last_row` is not asked for.
  __device__ Centres(const PartParams &part, int x, int y, int last_row, bool inside) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint8_t *from = part.source + min(y + h, last_row) * part.source_pitch + x * kPixelBytes;
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

  __device__ uint32_t at(const MmaParams &p, int i, int h, int c) const {
    const int byte = i * kPixelBytes + c * kBytes;
    const uint32_t word = words_[h][byte / 4] >> byte % 4 * 8;
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

// make_pixels() of such sums.
template <int kChannels, typename Shape, typename SumsOf>
__device__ inline void make_sharp_pixels(const SeparableMmaParams &p,
                                         const Centres<kChannels, Shape::kSamples> &centres, SumsOf sums_of,
                                         uint32_t (&words)[kChannels * Shape::kSampleBytes]) {
  std::conditional_t<Shape::kSamples == Samples::U8, uint32_t[kChannels], uint32_t[kChannels][2]> results;
#pragma unroll
  for (int c = 0; c < kChannels; c++) {
    const Sums sums = sums_of(c).total();
    // Sum 2i + h is that of pixel i and row h.
    const auto round = [&](int n) { return sharpen(p.sharpening, sums.v[n], centres.at(p, n / 2, n % 2, c)); };
    if constexpr (Shape::kSamples == Samples::U8)
      results[c] = pack_clamped(round(0), round(2), round(1), round(3));
    else
      pack_samples(p, results[c], round);
  }
  join_channels<kChannels>(results, words);
}

// ---- Strips: such masks up to a radius of 16, of 16-bit samples up to 32, in registers alone ----
//
// Lane (g, t) loads four pixels of row g, and taken apart they are its words of the matrices of samples, one a channel.
// With less than four bytes a pixel a warp takes as many strips side by side as make four planes of bytes.
//
// A launch takes as long as its slowest warps, so those at an edge of the frame are not to take longer than others.

constexpr int kStripThreads = 128;  // of a block, whose warps' strips lie side by side

// Pixels of a warp's strips.
CUDACONV_HOST_DEVICE constexpr int strip_width(int pixel_bytes) {
  return 16 * subtiles(pixel_bytes);
}

// Rows that windows of a strip's pixels reach, in whole steps.
CUDACONV_HOST_DEVICE constexpr int strip_rows(int tile_height, int radius) {
  return tile_height + (radius < 8 ? 8 : 2 * radius);
}

constexpr int kMostColumns = 6;  // of 16 pixels that the strips of a warp load

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="gauss 15,gauss 31,unsharp 15". So is
// how many blocks each strip and tile bounds its registers for.
struct SeparableTuning {
  static constexpr int kPrefetchSteps = 2;  // samples come to the L2 cache so many steps ahead; they are read one ahead
  // Rows of strips, results, and how many more they take the time of besides those that windows reach; "wide" ones are
  // of three or four channels of bytes, see SeparableStrip, and of any number of rows.
  static constexpr int kLeastRows = 16, kLeastWideRows = 32, kMostRows = 512, kMoreRows = 16, kMoreWideRows = 8;
  static constexpr int kTileRows = 64;  // of the tiles of separable_tile.cuh
};

// Whether there is code for frames of four channels of which the first or the last is not filtered: of what is in use.
template <typename Shape>
constexpr bool kHasThree = Shape::kSamples == Samples::U8 &&
                           (Shape::kRadius == 8 || Shape::kRadius == 16) && Shape::kWeights != Weights::S16 &&
                           !Shape::kSharpens;

// ResultPlace of strips side by side, of 1 or 2 bytes a pixel: of a lane's results in four or two strips, two pairs of
// neighbouring pixels each, one below the other, makes 8 bytes of either row of one strip.
template <int kPixelBytes, int kStrips>
struct StripPlace {
  using Pixels = PixelPlaces<8 / kPixelBytes, kPixelBytes, 2, 0, 1>;
  int x;

  __device__ StripPlace() {
    const int g = threadIdx.x % 32 / 4;
    x = kStrips == 2 ? g % 2 * 16 + g / 2 * 4 : (g % 2 * 2 + g / 2 % 2) * 16 + g / 4 * 8;
  }

  __device__ static void join(const uint32_t (&strips)[kStrips][kPixelBytes], uint32_t (&words)[4]) {
    const int g = threadIdx.x % 32 / 4;
    const bool odd = g % 2;
    // Butterfly: keeps one of a and b, and swaps the other with the partner lane.
    const auto exchange = [](bool second, int lanes, uint32_t a, uint32_t b, uint32_t *kept, uint32_t *received) {
      *received = __shfl_xor_sync(0xffffffffu, second ? a : b, lanes);
      *kept = second ? b : a;
    };
    // Both, the first lane's first.
    const auto exchange_in_order = [&](bool second, int lanes, uint32_t a, uint32_t b, uint32_t *both) {
      uint32_t kept, received;
      exchange(second, lanes, a, b, &kept, &received);
      both[0] = second ? received : kept;
      both[1] = second ? kept : received;
    };
    if constexpr (kStrips == 2) {
#pragma unroll
      for (int i = 0; i < 2; i++) exchange_in_order(odd, 4, strips[0][i], strips[1][i], words + 2 * i);
    } else {
      uint32_t four[2][2];  // pixels of strip i of two, row h
#pragma unroll
      for (int i = 0; i < 2; i++) {
        uint32_t kept, received;
        exchange(odd, 4, strips[i][0], strips[i + 2][0], &kept, &received);
        four[i][0] = __byte_perm(kept, received, odd ? 0x1054 : 0x5410);
        four[i][1] = __byte_perm(kept, received, odd ? 0x3276 : 0x7632);
      }
#pragma unroll
      for (int h = 0; h < 2; h++) exchange_in_order(g / 2 % 2, 8, four[0][h], four[1][h], words + 2 * h);
    }
  }
};

// The warp's strips, of which tile.x0 is the first pixel. Of the channels kFiltered are filtered: all, or of four those
// but the first or the last. `inside`: all that is read and written lies in the frame, in whole words.
template <int kChannels, int kFiltered, Pixels kPixels, typename Shape>
__device__ inline void filter_strip(const SeparableMmaParams &p, const Tile &tile, const uint32_t *lines,
                                    const int64_t *rows, const int *columns, bool inside) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kSampleBytes = Shape::kSampleBytes, kPixelBytes = kChannels * kSampleBytes;
  constexpr int kStrips = subtiles(kPixelBytes), kColumns = kStrips - 1 + Shape::kChunksX;
  constexpr int kWords = kStrips * kPixelBytes;  // of a lane's results
  constexpr bool kTrades = kStrips > 1;          // a lane writes 8 bytes of two rows of one strip
  using Place = std::conditional_t<kTrades, StripPlace<kPixelBytes, kStrips>, ResultPlace<kPixelBytes, 0, 1>>;
  using Reader = PixelReader<kPixelBytes, kPixels, Shape::kRadius <= 16 && kPixelBytes % 4 == 0>;
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  int bottom = min(tile.y0 + p.tile_height, part.height);
  const int steps = (bottom - tile.y0 + 7) / 8 + Shape::kSteps - 1;
  const Reader reader(p, part, tile.x0 - Shape::kReach, kColumns, columns, inside);
  constexpr bool kAny = kPixels == Pixels::Any;
  const bool has_unfiltered = kFiltered < kChannels || part.has_unfiltered;
  [[maybe_unused]] const int skipped = part.filter_bits[0] & 0xff ? 0 : 1;  // channels before those of kFiltered < 4
  const Place place;
  int below = 2 * t;
  if constexpr (!kTrades) below += place.y;
  const int x = tile.x0 + place.x;
  // A lane writes all of a whole word or none of it.
  if (kPixels == Pixels::Whole && kStrips == 1 && x >= part.width) bottom = 0;
  uint32_t ahead[kColumns][Reader::kWords];  // the next step's samples are in flight
  reader.read(rows[g], ahead);

  const SeparableOperands<Shape> operands(lines, Reader::kEightPixels);
  // Where pixels are patched registers are scarce.
  const auto held = [](int32_t v) { return kPixels == Pixels::Patched ? v : in_register(v); };
  const int32_t row_start = held(p.row_start), start = held(p.epilogue.start);
  constexpr bool kChains = kSampleBytes == 1;
  SeparableSums<Shape, kChains> sums[kStrips][kFiltered];
  // Tried on Hopper: it helps large frames of four channels, and nothing else.
  constexpr bool kFetches = kPixels == Pixels::Whole && kChannels == 4 && kSampleBytes == 1;
  // Whether the next step's samples are not asked for all at once, but as those of this one are used up: there are no
  // registers for both.
  constexpr bool kReadsInShares = kSamples == Samples::U16x4 && Shape::kRadius > 16;
  constexpr int kShares = kStrips * kFiltered;
  // Whether loads of unfiltered channels are in flight while the rows are summed, where there are registers for it.
  constexpr bool kLoadsEarly = !kAny && kPixelBytes < 8;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    if (kFetches && step + SeparableTuning::kPrefetchSteps < steps)
      reader.prefetch(rows[8 * (step + SeparableTuning::kPrefetchSteps) + g]);
    const int y = tile.y0 + 8 * (step - Shape::kSteps + 1) + below;
    const bool has_results = step >= Shape::kSteps - 1;
    const auto places = [&] { return typename Place::Pixels(part, x, y, bottom, !kAny || inside); };
    uint32_t words[kColumns][kFiltered * kSampleBytes], original[kWords];
#pragma unroll
    for (int c = 0; c < kColumns; c++) {
      const auto apart = [&](uint32_t(&pixels)[kPixelBytes]) {
        if constexpr (kFiltered < kChannels)
          deinterleave_three(pixels, skipped, words[c]);
        else
          take_apart<kSamples>(p, pixels, words[c]);
      };
      if constexpr (Reader::kWords == kPixelBytes) {
        apart(ahead[c]);
      } else {
        uint32_t pixels[kPixelBytes];
        reader.take(c, kColumns, ahead[c], pixels);
        apart(pixels);
      }
    }
    if (!kReadsInShares && step + 1 < steps) reader.read(rows[8 * (step + 1) + g], ahead);
    const auto load_originals = [&] {
      places().load(part.source + y * part.source_pitch + x * kPixelBytes, part.source_pitch, original);
    };
    if (kLoadsEarly && has_unfiltered && has_results) load_originals();
#pragma unroll
    for (int s = 0; s < kStrips; s++)
#pragma unroll
      for (int c = 0; c < kFiltered; c++) {
        uint32_t window[kSampleBytes][Shape::kChunksX];
#pragma unroll
        for (int b = 0; b < kSampleBytes; b++)
#pragma unroll
          for (int k = 0; k < Shape::kChunksX; k++) window[b][k] = words[s + k][c * kSampleBytes + b];
        sums[s][c].enter(p, operands, row_start, window);
        if (kReadsInShares && step + 1 < steps) {
          const int i = s * kFiltered + c;
          reader.read(rows[8 * (step + 1) + g], ahead, i * kColumns / kShares, (i + 1) * kColumns / kShares);
        }
      }
    if (!has_results) continue;
    const auto total = [&](int s, int c) { return sums[s][c].total(operands, start, p.epilogue.start_high); };
    // Chained ones all at once, so that none waits for another.
    [[maybe_unused]] decltype(total(0, 0)) totals[kStrips][kFiltered];
    if constexpr (kChains) {
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int c = 0; c < kFiltered; c++) totals[s][c] = total(s, c);
    }
    const auto sums_of = [&](int s, int c) {
      if constexpr (kChains)
        return totals[s][c];
      else
        return total(s, c);
    };
    uint32_t pixels[kStrips][kPixelBytes];
    if constexpr (Shape::kSharpens) {
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        const int at = tile.x0 + 16 * s + 2 * g, row = tile.y0 + 8 * (step - Shape::kSteps + 1) + 2 * t,
                  last_row = part.height - 1;
        const Centres<kChannels, kSamples> centres(part, kAny ? at : min(at, part.width - 2), row, last_row,
                                                   !kAny || inside);
        make_sharp_pixels<kChannels, Shape>(
            p, centres, [&](int c) { return sums_of(s, c); }, pixels[s]);
      }
    } else if constexpr (kFiltered < kChannels) {
      make_pixels<kStrips, kChannels, Shape>(
          p, [&](int s, int c) { return c < kFiltered ? sums_of(s, c) : PartialSums<1>{{all(0)}}; }, pixels);
#pragma unroll
      for (int i = 0; i < kPixelBytes; i++) pixels[0][i] <<= 8 * skipped;
    } else {
      make_pixels<kStrips, kChannels, Shape>(p, sums_of, pixels);
    }
    uint32_t joined[kWords];
    if constexpr (kTrades) {
      Place::join(pixels, joined);
    } else {
      Place::join(pixels[0]);
#pragma unroll
      for (int i = 0; i < kWords; i++) joined[i] = pixels[0][i];
    }
    if (has_unfiltered) {
      if (!kLoadsEarly) load_originals();
      blend_pixels<kPixelBytes>(part, original, joined);
    }
    places().store(part.target + y * part.target_pitch + x * kPixelBytes, part.target_pitch, joined);
  }
}

// The kernels of 8-bit samples are for planes of one or two channels, or for those of three or four: several narrow
// strips take more registers than a wide one.
template <typename Shape, bool kFewChannels>
struct SeparableStrip {
  // How many blocks a multiprocessor is to hold, which bounds the registers of a thread.
  static constexpr bool kWide = Shape::kSamples == Samples::U8 && !kFewChannels;
  static constexpr bool kOneMore = kWide && !(Shape::kRadius == 8 && Shape::kWeights == Weights::S16);
  static constexpr int kBlocks = Shape::kRadius > 16 ? 2 : (Shape::kRadius > 8 ? 3 : 4) + (kOneMore ? 1 : 0);
  static constexpr int kMinBlocks = Shape::kSamples == Samples::U16x4 || Shape::kSharpens ? kBlocks - 1 : kBlocks;

  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int, int tile_height, int) {
    return Shape::kLineBytes + strip_rows(tile_height, Shape::kRadius) * sizeof(int64_t) +
           kStripThreads / 32 * 16 * kMostColumns * sizeof(int);
  }
};

template <int kChannels, typename Shape>
__device__ inline void filter_strips(const SeparableMmaParams &p, Tile tile) {
  constexpr int kSubtiles = subtiles(kChannels * Shape::kSampleBytes);
  constexpr int kPixels = 16 * (kSubtiles - 1 + Shape::kChunksX);  // that a warp reads of a row
  static_assert(kPixels <= 16 * kMostColumns, "");
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x) / 32, first_row = tile.y0 - Shape::kRadius;
  const int height = strip_rows(p.tile_height, Shape::kRadius);
  tile.x0 = (tile.x0 * (kStripThreads / 32) + warp) * 16 * kSubtiles;
  uint32_t *lines = shared_memory<uint32_t>();
  int64_t *rows = reinterpret_cast<int64_t *>(shared_memory<uint8_t>() + Shape::kLineBytes);
  int *columns = reinterpret_cast<int *>(rows + height) + warp * 16 * kMostColumns;
  Shape::load_lines(p, lines);
  list_rows(p, part, first_row, height, rows, kStripThreads);
  constexpr int kPixelBytes = kChannels * Shape::kSampleBytes, kWidth = 16 * kSubtiles;
  const bool is_there = tile.x0 < part.width;
  // Where words beside the frame can be patched together the last strips end with the frame, and make some results of
  // those before them again. They write 8 bytes at a time, with three a pixel 4.
  const bool can_be_patched = kPixelBytes == 3 ? part.width % 4 == 0 && p.border != Border::Constant
                                               : can_patch<kPixelBytes>(p, part) && part.width * kPixelBytes % 8 == 0;
  const bool patches = Shape::kRadius <= 16 && can_be_patched && part.width >= kWidth;
  if (patches) tile.x0 = min(tile.x0, part.width - kWidth);
  const int first = tile.x0 - Shape::kReach;
  const bool inside = lies_inside(p, part, first, kPixels, first_row, height);
  // Pixels of whole words can be put together from anywhere.
  constexpr bool kWholeWords = kPixelBytes % 4 == 0;
  const bool whole = inside || (kWholeWords && part.width % 2 == 0 && p.border != Border::Constant);
  if (!inside) {
    list_columns(p, part, first, kPixels, columns, 32);
    if constexpr (kPixelBytes == 3 && Shape::kRadius <= 16)
      if (patches) PixelReader<kPixelBytes, Pixels::Patched, false>::list_pixels(columns, kPixels);
  }
  __syncthreads();
  if (!is_there) return;
  const auto filter = [&](auto filtered) {
    constexpr int kFiltered = decltype(filtered)::value;
    if constexpr (Shape::kRadius <= 16) {  // of larger ones the code is long, so it is there once
      if (whole)
        return filter_strip<kChannels, kFiltered, Pixels::Whole, Shape>(p, tile, lines, rows, columns,
                                                                        kWholeWords ? inside : true);
      if constexpr (kPixelBytes <= 3)
        if (patches && are_rows(p, part, first_row, height))
          return filter_strip<kChannels, kFiltered, Pixels::Patched, Shape>(p, tile, lines, rows, columns, false);
    }
    filter_strip<kChannels, kFiltered, Pixels::Any, Shape>(p, tile, lines, rows, columns, inside);
  };
  if constexpr (kChannels == 4 && kHasThree<Shape>)
    if (part.filter_bits[0] == 0x00ffffffu || part.filter_bits[0] == 0xffffff00u)
      return filter(std::integral_constant<int, 3>());
  filter(std::integral_constant<int, kChannels>());
}

template <typename Shape, bool kFewChannels>
__global__ void __launch_bounds__(kStripThreads, SeparableStrip<Shape, kFewChannels>::kMinBlocks)
    strip_mma_kernel(const __grid_constant__ SeparableMmaParams p) {
  if constexpr (kHasMma) {
    constexpr Samples kSamples = Shape::kSamples;
    const Tile tile = locate_tile(p, 1, p.tile_height);
    const int channels = tile.part.channels;
    if (!tile.part.has_filtered) {
      const int width = kStripThreads / 32 * strip_width(channels * sample_bytes(kSamples));
      return copy_tile(tile.part, tile.x0 * width, tile.y0, width, p.tile_height);
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

}  // namespace cudaconv
