// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Linear masks that are not separable, up to 31x31, on the matrix instructions. They are summed as linear() of
// methods/operations.cuh does.
//
// A block loads a tile of 128 pixels' width with its halo into shared memory, split into one plane for each byte of a
// pixel. A warp sums a few rows of results. The tile's 8 blocks of 16 pixels are the 8 columns of the matrix of
// samples:
//
//      pixel of the row     0 ... 15 | 16 ... 31 | ... | 112 ... 127
//      column               0        | 1         |     | 7
//
// A lane's word is four pixels, so the lanes' words are 32 consecutive ones. Example: lane (g, t) = (2, 3) has pixels
// 16 * 2 + 4 * 3 = 44 to 47. Each row of samples is loaded once and serves all rows of results whose windows contain
// it. The matrix of each row of the mask is loaded once, too.
//
// With one or two bytes a pixel a warp has four or two groups of rows, one below the other: more work between two
// loads.
//
// Coefficients are split into digits of -128 to 127, which count 256^n. The rows are summed once for each digit, and
// DigitSums carries the sums from digit to digit. Example: 200 = 1 * 256 - 56.
#pragma once

#include "cuda/device/mma/sums.cuh"

namespace cudaconv::custom {

constexpr int kDenseTileWidth = 128;  // pixels

// Tuned on an H200 with kernel-bench --table=goals,formats --only="custom 31x31,custom 15x15 16-bit", and so are the
// blocks for which each shape limits its registers.
struct DenseTuning {
  // Rows of results of a tile. kMoreRows: a tile takes the time of this many rows more.
  static constexpr int kLeastRows = 16, kMostRows = 32, kMoreRows = 16;
};

template <int kRadiusClass, Samples kSamplesKind>
struct DenseShape {
  static constexpr int kRadius = kRadiusClass;
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kChunks = (16 + 2 * kRadius) / 16;
  static constexpr int kRows = dense_rows(kSamples);
  static constexpr int kThreads = 128, kMinBlocks = kSamples == Samples::U16 && kRadius == 8 ? 4 : 3;
  static constexpr int kLine = padded_words(kDenseLineWords);
  static constexpr int kPixels =
      kDenseTileWidth + 16 * (kChunks - 1);  // pixels that windows of a row of the tile reach

  CUDACONV_HOST_DEVICE static constexpr int row_groups(int channels) { return subtiles(channels * kSampleBytes); }
  // Words of the lines of coefficients, [digit][row][word].
  CUDACONV_HOST_DEVICE static constexpr int line_words(int digits) { return digits * kDenseRows * kLine; }
  // Operands of the mask, [digit][row][chunk][lane].
  CUDACONV_HOST_DEVICE static constexpr int fragments(int digits, int height) { return digits * height * kChunks * 32; }
  // Rows that the windows of `tile_rows` rows reach.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int tile_rows, int height) { return tile_rows + height - 1; }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int height, int digits) {
    const int rows = source_rows(row_groups(channels) * tile_height, height);
    return fragments(digits, height) * sizeof(uint2) + line_words(digits) * sizeof(uint32_t) + kPixels * sizeof(int) +
           rows * (sizeof(int64_t) + channels * kSampleBytes * kPixels);
  }
};

// Loads `count` rows of pixels from `left` on into `planes`, [row][byte of a pixel][pixel]. Unless kInside, it stops at
// the first pixel that no window reaches. `rows` and `columns` list where rows and pixels are. The whole block calls
// load().
template <bool kInside, typename Shape, typename Channels>
struct PlaneLoader {
  static constexpr Samples kSamples = Shape::kSamples;
  static constexpr int kPixels = Shape::kPixels, kSampleBytes = Shape::kSampleBytes;
  static constexpr int kPixelBytes = Channels::kChannels * kSampleBytes, kPlanes = Channels::kCount * kSampleBytes;

  const MmaParams &p;
  const PartParams &part;
  const Channels &channels;
  int left;
  const int64_t *rows;
  const int *columns;
  int count;
  uint8_t *planes;
  // Pixels first ... last - 1 are in the frame; both are multiples of four. beyond: pixels to load behind `last`.
  int first = kInside ? 0 : (max(-left, 0) + 3) & ~3;
  int last = kInside ? kPixels : min(part.width - left, kPixels) & ~3;
  int beyond = kInside ? 0 : max(min(part.width + p.radius_x - left, kPixels) - last, 0);

  __device__ void load() const {
    load_fours<32>(0);
    load_fours<(kPixels - 128) / 4>(128);
    if constexpr (!kInside) {
      if constexpr (kPixelBytes <= 2)
        if (can_patch<kPixelBytes>(p, part)) return patch_fours();
      load_pixels();
    }
  }

  // Processes items, each of kWords words: a thread takes every kThreads-th item, kBatch of them in flight at a time.
  template <int kBatch, int kWords, typename Load, typename Store>
  __device__ static void for_items(int items, Load load, Store store) {
    constexpr int kThreads = Shape::kThreads;
#pragma unroll 1
    for (int i0 = static_cast<int>(threadIdx.x); i0 < items; i0 += kBatch * kThreads) {
      uint32_t words[kBatch][kWords];
#pragma unroll
      for (int k = 0; k < kBatch; k++)
        if (i0 + k * kThreads < items) load(i0 + k * kThreads, words[k]);
#pragma unroll
      for (int k = 0; k < kBatch; k++)
        if (i0 + k * kThreads < items) store(i0 + k * kThreads, words[k]);
    }
  }

  // Stores four pixels, given as they lie in memory, in the planes, from pixel x of a row on.
  __device__ void put(int row, int x, uint32_t (&pixels)[kPixelBytes]) const {
    uint32_t bytes[kPlanes];
    channels.template take_apart<kSamples>(p, pixels, bytes);
#pragma unroll
    for (int c = 0; c < kPlanes; c++)
      *reinterpret_cast<uint32_t *>(planes + (row * kPlanes + c) * kPixels + x) = bytes[c];
  }

  // Loads the pixels that lie in the frame from pixel `from` on, four an item, kAcross items a row.
  template <int kAcross>
  __device__ void load_fours(int from) const {
    const int x = from + static_cast<int>(threadIdx.x) % kAcross * 4;
    if (!kInside && (x < first || x >= last)) return;
    const uint8_t *source = part.source + (left + x) * kPixelBytes;
    constexpr int kBatch = kPixelBytes == 1 ? 10 : kPixelBytes == 2 ? 6 : kPixelBytes == 8 ? 3 : 4;
    const auto read = [&](int i, uint32_t(&pixels)[kPixelBytes]) {
      const int64_t offset = rows[i / kAcross];
      read_words<kPixelBytes>(source + (!kInside && offset == kNoRow ? 0 : offset), pixels);
      if constexpr (!kInside) {
#pragma unroll
        for (int c = 0; c < kPixelBytes; c++)
          if (offset == kNoRow) pixels[c] = part.border_word[c % word_period(kPixelBytes)];
      }
    };
    for_items<kBatch, kPixelBytes>(count * kAcross, read,
                                   [&](int i, uint32_t(&pixels)[kPixelBytes]) { put(i / kAcross, x, pixels); });
  }

  // The row, and the first pixel, of an item of `pixels` pixels. Each row has `of_row` items, those before first
  // first.
  __device__ int locate(int i, int of_row, int pixels, int *x) const {
    const int row = i / of_row, column = pixels * (i - row * of_row);
    *x = column < first ? column : last + column - first;
    return row;
  }

  // Fills pixels beside the frame, four an item, joined from words that lie in the frame.
  __device__ void patch_fours() const {
    const int fours = (first + beyond + 3) / 4;
    const auto patch = [&](int x, int w) { return WordPatch::find<kPixelBytes>(columns + x + w * 4 / kPixelBytes); };
    const auto read = [&](int i, uint32_t(&words)[2 * kPixelBytes]) {
      int x;
      const int64_t offset = rows[locate(i, fours, 4, &x)];
      const uint8_t *const row = part.source + (offset == kNoRow ? 0 : offset);
#pragma unroll
      for (int w = 0; w < kPixelBytes; w++) {
        const uint32_t border = part.border_word[w % 2];
        words[w] = offset == kNoRow ? border : patch(x, w).load_first(row);
        words[kPixelBytes + w] = offset == kNoRow ? border : patch(x, w).load_second(row, border);
      }
    };
    const auto join = [&](int i, uint32_t(&words)[2 * kPixelBytes]) {
      int x;
      const int row = locate(i, fours, 4, &x);
      uint32_t pixels[kPixelBytes];
#pragma unroll
      for (int w = 0; w < kPixelBytes; w++) pixels[w] = patch(x, w).join(words[w], words[kPixelBytes + w]);
      put(row, x, pixels);
    };
    for_items<4, 2 * kPixelBytes>(count * fours, read, join);
  }

  // Fills pixels beside the frame, one an item.
  __device__ void load_pixels() const {
    const int edge = first + beyond;
    const auto read = [&](int i, uint32_t(&bytes)[kPixelBytes]) {
      int x;
      const int64_t offset = rows[locate(i, edge, 1, &x)];
      const int column = columns[x];
      const bool reads = column >= 0 && offset != kNoRow;
      const uint8_t *source = part.source + (reads ? offset + column * kPixelBytes : 0);
#pragma unroll
      for (int c = 0; c < kPlanes; c++) {
        const int byte = channels.channel(c / kSampleBytes) * kSampleBytes + c % kSampleBytes;
        bytes[c] = reads ? __ldg(source + byte) : part.border_word[byte / 4] >> byte % 4 * 8;
      }
    };
    const auto store = [&](int i, uint32_t(&bytes)[kPixelBytes]) {
      int x;
      const int row = locate(i, edge, 1, &x);
      if constexpr (kSamples != Samples::U8) {
#pragma unroll
        for (int c = 0; c < kPlanes; c += 2) {
          bytes[c] = ((bytes[c] & 0xffu) | bytes[c + 1] << 8) >> p.sample_shift & p.sample_mask;
          bytes[c + 1] = bytes[c] >> 8;
        }
      }
#pragma unroll
      for (int c = 0; c < kPlanes; c++) planes[(row * kPlanes + c) * kPixels + x] = static_cast<uint8_t>(bytes[c]);
    };
    for_items<4, kPixelBytes>(count * edge, read, store);
  }
};

// SumRounding::Shift64 for a sum `v` that includes its start.
__device__ inline int32_t shift_sum(const SumRounding &r, int64_t v) {
  if (r.absolute) v = (v < 0 ? -v : v) + (int64_t{1} << r.shift >> 1);
  return static_cast<int32_t>(v >> r.shift);
}

// The initial value of sums of 64 bits.
__device__ inline int64_t start_of(const SumRounding &r) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(r.start_high)) << 32 |
                              static_cast<uint32_t>(r.start));
}

// A lane's sums of products of samples and coefficients, over the digits of coefficients, see DenseMmaParams::digits.
template <int kSampleBytes>
struct DigitSums;

// Samples of one byte: the first digit counts most. Sums are right modulo 2^32.
template <>
struct DigitSums<1> {
  Sums part[1];

  __device__ void begin_digit(int digit, int32_t start) { part[0] = digit ? times_256(part[0], start) : all(start); }
  __device__ int32_t total(int i, int) const { return part[0].v[i]; }
};

// Samples of two bytes: the first digit counts least. Each digit begins with the sums so far, divided by 256, and the
// remainders are kept.
template <>
struct DigitSums<2> {
  Sums part[2];  // of the low bytes of samples, and of the high bytes, which count 256
  uint32_t remainder[4];

  __device__ void begin_digit(int digit, int32_t) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      remainder[i] = digit ? __funnelshift_r(remainder[i], static_cast<uint32_t>(part[0].v[i]), 8) : 0;
      part[0].v[i] = digit ? (part[0].v[i] >> 8) + part[1].v[i] : 0;
      part[1].v[i] = 0;
    }
  }
  // Sum i, exactly, without its initial value.
  __device__ int64_t total(int i, int digits) const {
    const int bits = 8 * (digits - 1);
    const int64_t high = int64_t{part[1].v[i]} * 256 + part[0].v[i];
    return static_cast<int64_t>(static_cast<uint64_t>(high) << bits | uint64_t{remainder[i]} >> (32 - bits));
  }
};

// The samples of a channel, packed.
template <typename Shape>
using Rounded = std::conditional_t<Shape::kSamples == Samples::U8, uint32_t, uint32_t[2]>;

// Rounds all sums of a warp together.
template <typename Shape, int kRows, int kGroups, int kChannels>
__device__ inline void round_all(const DenseMmaParams &p,
                                 const DigitSums<Shape::kSampleBytes> (&sums)[kRows][kGroups][kChannels],
                                 Rounded<Shape> (&results)[kRows][kGroups][kChannels]) {
  const auto pack = [&](auto round) {
    each<kRows, kGroups, kChannels>([&](int y, int s, int c) {
      const auto rounded = [&](int i) { return round(sums[y][s][c].total(i, p.digits)); };
      if constexpr (Shape::kSamples == Samples::U8)
        results[y][s][c] = pack_clamped(rounded(0), rounded(2), rounded(1), rounded(3));
      else
        pack_samples(p, results[y][s][c], rounded);
    });
  };
  const SumRounding &r = p.epilogue;
  if constexpr (Shape::kSamples == Samples::U8) {
    if (r.mode == SumRounding::Shift) return pack([&](int32_t v) { return v >> r.shift; });
    pack([&](int32_t v) { return divide_sum(r, v); });
  } else {
    if (r.mode == SumRounding::Shift64) return pack([&](int64_t v) { return shift_sum(r, v + start_of(r)); });
    pack([&](int64_t v) { return divide_sum(r, static_cast<int32_t>(v) + r.start); });
  }
}

// Writes the results of a warp, rows from y0 on of each group.
template <typename Shape, typename Channels, int kRows, int kGroups>
__device__ inline void put_rows(const Tile &tile, const Channels &channels, int y0, int bottom, bool inside,
                                const Rounded<Shape> (&results)[kRows][kGroups][Channels::kCount]) {
  constexpr int kPixelBytes = Channels::kChannels * Shape::kSampleBytes;
  const PartParams &part = tile.part;
  using Place = ResultPlace<kPixelBytes, 16, 0>;
  const int x = tile.x0 + static_cast<int>(threadIdx.x) % 4 * 32 + Place().x;
  const auto put = [&](auto is_inside, bool has_unfiltered, auto finish) {
    each<kRows, kGroups>([&](int y, int s) {
      const int row = y0 + kRows * s + y;
      uint32_t pixels[kPixelBytes];
      channels.join(results[y][s], pixels);
      finish(y, pixels);
      Place::put(part, part.target + row * part.target_pitch + x * kPixelBytes, x, row, bottom,
                 decltype(is_inside)::value, has_unfiltered, pixels);
    });
  };
  constexpr bool kBlends = Channels::kCount < Channels::kChannels || Shape::kSamples == Samples::U16x4;
  if (!inside || (!kBlends && part.has_unfiltered))
    return put(std::false_type(), part.has_unfiltered, [](int, uint32_t *) {});
  // Without bounds checks, and with all samples that are copied read at once.
  if constexpr (kBlends) {
    if (Channels::kCount < Channels::kChannels || part.has_unfiltered) {
      uint32_t original[kRows][kPixelBytes];
#pragma unroll
      for (int y = 0; y < kRows; y++) {
        const uint8_t *from = part.source + min(y0 + y, bottom - 1) * part.source_pitch + x * kPixelBytes;
        load_words<kPixelBytes / 2>(from, original[y]);
        load_words<kPixelBytes / 2>(from + 16 * kPixelBytes, original[y] + kPixelBytes / 2);
      }
      return put(std::true_type(), false,
                 [&](int y, uint32_t *pixels) { blend_pixels<kPixelBytes>(part, original[y], pixels); });
    }
  }
  put(std::true_type(), false, [](int, uint32_t *) {});
}

// The sums of kRows rows of results in each of a warp's groups. kPlanes: bytes of a pixel that are summed. Rows of
// samples are added from above, from the first row of the first window on.
template <typename Shape, int kPlanes>
class DenseSums {
 public:
  static constexpr int kRows = Shape::kRows, kChannels = kPlanes / Shape::kSampleBytes;
  static constexpr int kGroups = Shape::row_groups(kChannels), kRowBytes = kPlanes * Shape::kPixels;
  DigitSums<Shape::kSampleBytes> sums[kRows][kGroups][kChannels];

  // `fragments` and `from` point to the lane's words of the first rows of the mask and of samples.
  __device__ void add(const DenseMmaParams &p, const uint2 *fragments, const uint8_t *from) {
#pragma unroll 1
    for (int digit = 0; digit < p.digits; digit++) {
      const int32_t start = digit == p.digits - 1 ? p.epilogue.start : 0;
      each<kRows, kGroups, kChannels>([&](int y, int s, int c) { sums[y][s][c].begin_digit(digit, start); });
      fragment_ = fragments + Shape::fragments(digit, p.height);
      from_ = from;
      add_rows(p.height, p.spare);
    }
  }

 private:
  static constexpr int kChunks = Shape::kChunks, kSampleBytes = Shape::kSampleBytes;
  // Whether the odd chunks of two rows share an instruction.
  static constexpr bool kJoins = kChunks % 2;
  using Window = uint32_t[kGroups][kPlanes][kChunks];

  // Adds all rows of samples that windows reach. `height`: rows of the mask; if has_spare the last one is zeros.
  __device__ void add_rows(int height, bool has_spare) {
#pragma unroll
    for (int u = 0; u < kRows; u++) add_row(u, 0, u, true);
#pragma unroll 1
    for (int r = kRows; r < height; r += kRows) {
#pragma unroll
      for (int u = 0; u < kRows - 2; u += 2) add_pair(u);
      const bool spare = has_spare && r + kRows == height;
      if (kJoins && !spare) {
        add_pair(kRows - 2);
        continue;
      }
      add_row(kRows - 2, 0, kRows - 1, true);
      if (spare)
        add_row(kRows - 1, 1, kRows - 1, false);
      else
        add_row(kRows - 1, 0, kRows - 1, true);
    }
    if (has_spare)
      add_last_rows<1>();
    else
      add_last_rows<0>();
  }

  // Loads the next row of the mask, whose number is u modulo kRows.
  __device__ void load_fragments(int u) {
#pragma unroll
    for (int k = 0; k < kChunks; k++, fragment_ += 32) {
      a_[u][k][0] = fragment_->x;
      a_[u][k][1] = fragment_->y;
    }
  }

  // Loads the next row of samples.
  __device__ void load_window(Window &window) {
    each<kGroups, kPlanes, kChunks>([&](int s, int c, int k) {
      window[s][c][k] =
          *reinterpret_cast<const uint32_t *>(from_ + s * kRows * kRowBytes + c * Shape::kPixels + 16 * k);
    });
    from_ += kRowBytes;
  }

  // Updates the sums of rows first to last. add(y, s, c, sums) returns the new sums of row y, group s and byte c.
  template <typename Add>
  __device__ void add_to(int first, int last, Add add) {
#pragma unroll
    for (int y = first; y <= last; y++)
      each<kGroups, kPlanes>([&](int s, int c) {
        Sums &part = sums[y][s][c / kSampleBytes].part[c % kSampleBytes];
        part = add(y, s, c, part);
      });
  }

  // Adds the first kCount chunks of a row of samples, whose number is u modulo kRows, to the sums of rows first to
  // last.
  template <int kCount>
  __device__ void add_chunks(int u, int first, int last, const Window &window) {
    add_to(first, last, [&](int y, int s, int c, const Sums &part) {
      uint32_t coefficients[kCount][2], samples[kCount];
#pragma unroll
      for (int k = 0; k < kCount; k++) {
#pragma unroll
        for (int i = 0; i < 2; i++) coefficients[k][i] = a_[(u + kRows - y) % kRows][k][i];
        samples[k] = window[s][c][k];
      }
      return multiply<true, false>(coefficients, samples, part);
    });
  }

  // Adds the next row of samples; `in_mask`: the mask has another row, too.
  __device__ void add_row(int u, int first, int last, bool in_mask) {
    if (in_mask) load_fragments(u);
    Window window;
    load_window(window);
    add_chunks<kChunks>(u, first, last, window);
  }

  // Adds the next two rows of samples, which are part of the windows of all rows.
  __device__ void add_pair(int u) {
    if constexpr (!kJoins) {
      add_row(u, 0, kRows - 1, true);
      add_row(u + 1, 0, kRows - 1, true);
    } else {
      Window window[2];
      // Last chunk of the row of the mask that the second row's replaces.
      const uint32_t last[2] = {a_[u + 1][kChunks - 1][0], a_[u + 1][kChunks - 1][1]};
      load_fragments(u);
      load_window(window[0]);
      add_chunks<kChunks - 1>(u, 0, kRows - 1, window[0]);
      load_fragments(u + 1);
      load_window(window[1]);
      add_chunks<kChunks - 1>(u + 1, 0, kRows - 1, window[1]);
      add_to(0, kRows - 1, [&](int y, int s, int c, const Sums &part) {
        const auto &first = y == kRows - 1 ? last : a_[(u + kRows - y) % kRows][kChunks - 1];
        const auto &second = a_[(u + 1 + kRows - y) % kRows][kChunks - 1];
        return mma<true, false, 2>({first[0], first[1], second[0], second[1]},
                                   {window[0][s][c][kChunks - 1], window[1][s][c][kChunks - 1]}, part);
      });
    }
  }

  // Adds the rows of samples that lie below the first row's windows.
  template <int kSpare>
  __device__ void add_last_rows() {
#pragma unroll
    for (int u = 0; u + kSpare < kRows - 1; u++) add_row(u, u + 1 + kSpare, kRows - 1, false);
  }

  const uint2 *fragment_;
  const uint8_t *from_;
  uint32_t a_[kRows][kChunks][2];  // row r of the mask is at r % kRows
};

// Sums the rows of the tile, down to `bottom`. kPlanes: bytes of a pixel that are summed.
template <typename Shape, int kPlanes>
__device__ inline void filter_rows(const DenseMmaParams &p, const Tile &tile, const uint2 *fragments,
                                   const uint8_t *planes, int bottom, bool inside) {
  using AllSums = DenseSums<Shape, kPlanes>;
  constexpr int kRows = AllSums::kRows, kGroups = AllSums::kGroups, kChannels = AllSums::kChannels;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int y0 = tile.y0 + warp * (kRows * kGroups); y0 < bottom; y0 += Shape::kThreads / 32 * kRows * kGroups) {
    AllSums sums;
    sums.add(p, fragments + lane, planes + (y0 - tile.y0) * AllSums::kRowBytes + 4 * lane);
    Rounded<Shape> results[kRows][kGroups][kChannels];
    round_all<Shape>(p, sums.sums, results);
    const auto put = [&](const auto &channels) { put_rows<Shape>(tile, channels, y0, bottom, inside, results); };
    if constexpr (kPlanes == 3) {
      if (tile.part.channels == 4) {
        put(SummedChannels<4, 3>(tile.part));
        continue;
      }
    }
    put(SummedChannels<kChannels>(tile.part));
  }
}

template <typename Shape>
__device__ __forceinline__ void filter_dense(const DenseMmaParams &p, const Tile &tile, int bottom) {
  constexpr int kChunks = Shape::kChunks, kLine = Shape::kLine;
  constexpr Samples kSamples = Shape::kSamples;
  const PartParams &part = tile.part;
  const bool three = kSamples == Samples::U8 && (part.channels == 3 || (part.channels == 4 && sums_three(part)));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int left = tile.x0 - Shape::kRadius, first_row = tile.y0 - p.radius_y;
  const int height = Shape::source_rows(bottom - tile.y0, p.height);

  uint8_t *memory = shared_memory<uint8_t>();
  const auto take = [&](size_t bytes) {
    uint8_t *taken = memory;
    memory += bytes;
    return taken;
  };
  uint2 *fragments = reinterpret_cast<uint2 *>(take(Shape::fragments(p.digits, p.height) * sizeof(uint2)));
  uint32_t *lines = reinterpret_cast<uint32_t *>(take(Shape::line_words(p.digits) * sizeof(uint32_t)));
  int *columns = reinterpret_cast<int *>(take(Shape::kPixels * sizeof(int)));
  int64_t *rows = reinterpret_cast<int64_t *>(take(height * sizeof(int64_t)));
  uint8_t *planes = memory;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < Shape::line_words(p.digits); i += Shape::kThreads)
    lines[i] = padded_word(p.line[i / kLine / kDenseRows][i / kLine % kDenseRows], kDenseLineWords, i % kLine);
  list_rows(p, part, first_row, height, rows, Shape::kThreads);
  const bool inside = lies_inside(p, part, left, Shape::kPixels, first_row, height);
  if (!inside) list_columns(p, part, left, Shape::kPixels, columns, Shape::kThreads);
  __syncthreads();
  const auto load = [&](const auto &channels) {
    using Channels = std::decay_t<decltype(channels)>;
    if (inside)
      PlaneLoader<true, Shape, Channels>{p, part, channels, left, rows, columns, height, planes}.load();
    else
      PlaneLoader<false, Shape, Channels>{p, part, channels, left, rows, columns, height, planes}.load();
  };
  for_channels<kSamples>(part.channels, [&](auto constant) {
    constexpr int kChannels = decltype(constant)::value;
    if constexpr (kSamples == Samples::U8 && kChannels == 4) {
      if (three) return load(SummedChannels<kChannels, 3>(part));
    }
    load(SummedChannels<kChannels>(part));
  });
#pragma unroll 1
  for (int digit = 0; digit < p.digits; digit++)
#pragma unroll 1
    for (int i = warp; i < p.height * kChunks; i += Shape::kThreads / 32) {
      const uint32_t *line = lines + (digit * kDenseRows + i / kChunks) * kLine;
      const int first = 16 * (i % kChunks) + 4 * t - 2 * g;
      fragments[Shape::fragments(digit, p.height) + i * 32 + lane] =
          make_uint2(four_bytes(line, first), four_bytes(line, first - 1));
    }
  __syncthreads();
  if constexpr (kSamples == Samples::U8)
    if (three) return filter_rows<Shape, 3>(p, tile, fragments, planes, bottom, inside);
  for_channels<kSamples>(part.channels, [&](auto constant) {
    constexpr int kChannels = decltype(constant)::value;
    if constexpr (kChannels != 3)
      filter_rows<Shape, kChannels * Shape::kSampleBytes>(p, tile, fragments, planes, bottom, inside);
  });
}

// How many rows of tiles of full height a part has if up to `low` rows of tiles below them have half the height.
CUDACONV_HOST_DEVICE constexpr int high_tiles(int rows, int tile_rows, int low) {
  const int rest = rows - low * (tile_rows / 2);
  return rest > 0 ? (rest + tile_rows - 1) / tile_rows : 0;
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks)
    dense_mma_kernel(const __grid_constant__ DenseMmaParams p) {
  if constexpr (kHasMma) {
    Tile tile = locate_tile(p, 1);
    const PartParams &part = tile.part;
    int height = p.tile_height * Shape::row_groups(part.channels);
    const int row = tile.y0 - part.first_row;  // of tiles
    tile.y0 = part.first_row + row * height;
    if (p.low_tiles) {
      const int below = row - high_tiles(part.height, height, p.low_tiles);
      if (below > 0) tile.y0 -= below * (height / 2);
      if (below >= 0) height /= 2;
    }
    const int bottom = min(tile.y0 + height, part.height);
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, kDenseTileWidth, height);
    filter_dense<Shape>(p, tile, bottom);
  }
}

}  // namespace cudaconv::custom
