// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Masks that are not separable, by the matrix instructions: samples come from a tile, results are written straight
// away.
//
// A block loads a tile of 128 pixels' width and its halo, taken apart into one plane of bytes a channel in shared
// memory. A warp sums a few rows of results: the tile's 8 blocks of 16 pixels are the 8 columns of the matrix of
// samples, so that the lanes' words of it are 32 in a row. Each row of samples is loaded once and serves all rows of
// results whose windows it is part of, and so is the matrix of each row of the mask.
//
// With one or two bytes a pixel a warp takes four or two such groups of rows, one below the other, so that there is
// more between two loads.
#pragma once

#include "cuda/mma/sums.cuh"

namespace cudaconv {

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="custom 31x31,custom 15x15 16-bit".
// So is how many blocks each shape bounds its registers for.
struct DenseTuning {
  // Rows of a tile, results; of U16x4 lower ones were slower. And how many more a tile takes the time of.
  static constexpr int kLeastU16x4Rows = 16, kMostRows = 32, kMoreRows = 16;
};

template <int kRadiusClass, Weights kWeightsKind, Samples kSamplesKind>
struct DenseShape {
  static constexpr int kRadius = kRadiusClass;
  static constexpr Weights kWeights = kWeightsKind;
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kBytes = weight_bytes(kWeights), kParts = kSampleBytes + kBytes - 1;
  static constexpr int kChunks = (16 + 2 * kRadius) / 16;
  static constexpr int kRows = kSamples == Samples::U16x4 ? 2 : 4 / kBytes;  // of results at a time
  static constexpr int kThreads = 128;
  static constexpr bool kU16x4 = kSamples == Samples::U16x4;
  static constexpr int kMinBlocks = kU16x4 && kRadius > 8 && kBytes > 1 ? 2 : kU16x4 || kRadius > 8 ? 3 : 4;
  static constexpr int kLine = padded_words(kDenseLineWords);
  static constexpr int kPixels = kMmaTileWidth + 16 * (kChunks - 1);  // that windows of a row of the tile reach
  static constexpr size_t kLineBytes = kDenseRows * kBytes * kLine * sizeof(uint32_t);

  CUDACONV_HOST_DEVICE static constexpr int row_groups(int channels) { return subtiles(channels * kSampleBytes); }
  // Bytes of the operands [row][low, high][chunk][lane].
  CUDACONV_HOST_DEVICE static constexpr size_t fragment_bytes(int height) {
    return static_cast<size_t>(height) * kBytes * kChunks * 32 * sizeof(uint2);
  }
  // Rows that windows of as many rows of the tile reach.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int tile_rows, int height) { return tile_rows + height - 1; }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int height) {
    const int rows = source_rows(row_groups(channels) * tile_height, height);
    return fragment_bytes(height) + kLineBytes + kPixels * sizeof(int) +
           rows * (sizeof(int64_t) + channels * kSampleBytes * kPixels);
  }
};

// Loads `count` rows of pixels from `left` on, [row][byte of a pixel][pixel]; unless kInside as far as pixel `end`, the
// first that no window reaches.
template <bool kInside, typename Shape, typename Channels>
__device__ inline void load_rows_of_planes(const MmaParams &p, const PartParams &part, const Channels &channels,
                                           int left, int end, const int64_t *rows, const int *columns, int count,
                                           uint8_t *planes) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kPixels = Shape::kPixels, kThreads = Shape::kThreads, kSampleBytes = Shape::kSampleBytes;
  constexpr int kPixelBytes = Channels::kChannels * kSampleBytes, kPlanes = Channels::kCount * kSampleBytes;
  // Pixels first ... last - 1 are in the frame, four by four.
  int first = 0, last = kPixels;
  if constexpr (!kInside) {
    first = max(-left, 0);
    last = min(part.width - left, kPixels) & ~3;
  }
  // Items of a thread, `kThreads` apart, a batch of them under way at a time, each of so many words.
  const auto for_items = [&](int items, auto batch, auto of_item, auto load, auto store) {
    constexpr int kBatch = decltype(batch)::value, kWords = decltype(of_item)::value;
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
  };
  // Four pixels as they lie in memory, to where those from pixel x of a row on are.
  const auto put = [&](int row, int x, uint32_t(&pixels)[kPixelBytes]) {
    uint32_t bytes[kPlanes];
    channels.template take_apart<kSamples>(p, pixels, bytes);
#pragma unroll
    for (int c = 0; c < kPlanes; c++)
      *reinterpret_cast<uint32_t *>(planes + (row * kPlanes + c) * kPixels + x) = bytes[c];
  };
  // Item i is four pixels, `across` of them a row, from pixel `from` on.
  const auto load = [&](int from, auto across) {
    constexpr int kAcross = decltype(across)::value;
    const int x = from + static_cast<int>(threadIdx.x) % kAcross * 4;
    if (!kInside && (x < first || x >= last)) return;
    const uint8_t *source = part.source + (left + x) * kPixelBytes;
    constexpr int kBatch = kPixelBytes == 1 ? 10 : kPixelBytes == 2 ? 6 : kPixelBytes == 8 ? 3 : 4;
    for_items(
        count * kAcross, std::integral_constant<int, kBatch>(), std::integral_constant<int, kPixelBytes>(),
        [&](int i, uint32_t(&pixels)[kPixelBytes]) {
          const int64_t offset = rows[i / kAcross];
          read_four_pixels<kPixelBytes>(source + (!kInside && offset == kNoRow ? 0 : offset), pixels);
          if constexpr (!kInside) {
#pragma unroll
            for (int c = 0; c < kPixelBytes; c++)
              if (offset == kNoRow) pixels[c] = part.border_word[c % word_period(kPixelBytes)];
          }
        },
        [&](int i, uint32_t(&pixels)[kPixelBytes]) { put(i / kAcross, x, pixels); });
  };
  load(0, std::integral_constant<int, 32>());
  load(128, std::integral_constant<int, (kPixels - 128) / 4>());
  if constexpr (kInside) return;
  // The pixels before and behind those: four by four where they can be, else one by one.
  const int beyond = max(min(end - left, kPixels) - last, 0);
  if constexpr (kPixelBytes <= 2) {
    if (can_patch<kPixelBytes>(p, part)) {
      const int fours = (first + beyond + 3) / 4;
      const auto locate = [&](int i, int *x) {
        const int row = i / fours, four = 4 * (i - row * fours);
        *x = four < first ? four : last + four - first;
        return row;
      };
      const auto patch = [&](int x, int w) { return WordPatch::find<kPixelBytes>(columns + x + w * 4 / kPixelBytes); };
      return for_items(
          count * fours, std::integral_constant<int, 4>(), std::integral_constant<int, 2 * kPixelBytes>(),
          [&](int i, uint32_t(&words)[2 * kPixelBytes]) {
            int x;
            const int64_t offset = rows[locate(i, &x)];
            const uint8_t *const row = part.source + (offset == kNoRow ? 0 : offset);
#pragma unroll
            for (int w = 0; w < kPixelBytes; w++) {
              const uint32_t border = part.border_word[w % 2];
              words[w] = offset == kNoRow ? border : patch(x, w).load_first(row);
              words[kPixelBytes + w] = offset == kNoRow ? border : patch(x, w).load_second(row, border);
            }
          },
          [&](int i, uint32_t(&words)[2 * kPixelBytes]) {
            int x;
            const int row = locate(i, &x);
            uint32_t pixels[kPixelBytes];
#pragma unroll
            for (int w = 0; w < kPixelBytes; w++) pixels[w] = patch(x, w).join(words[w], words[kPixelBytes + w]);
            put(row, x, pixels);
          });
    }
  }
  const int edge = first + beyond;
  const auto locate = [&](int i, int *x) {
    const int row = i / edge, column = i - row * edge;
    *x = column < first ? column : last + column - first;
    return row;
  };
  for_items(
      count * edge, std::integral_constant<int, 4>(), std::integral_constant<int, kPixelBytes>(),
      [&](int i, uint32_t(&pixel)[kPixelBytes]) {
        int x;
        const int64_t offset = rows[locate(i, &x)];
        const int column = columns[x];
        const bool reads = column >= 0 && offset != kNoRow;
        const uint8_t *source = part.source + (reads ? offset + column * kPixelBytes : 0);
#pragma unroll
        for (int c = 0; c < kPlanes; c++) {
          const int byte = channels.channel(c / kSampleBytes) * kSampleBytes + c % kSampleBytes;
          pixel[c] = reads ? __ldg(source + byte) : part.border_word[byte / 4] >> byte % 4 * 8;
        }
      },
      [&](int i, uint32_t(&pixel)[kPixelBytes]) {
        int x;
        const int row = locate(i, &x);
        if constexpr (kSamples != Samples::U8) {
#pragma unroll
          for (int c = 0; c < kPlanes; c += 2) {
            pixel[c] = ((pixel[c] & 0xffu) | pixel[c + 1] << 8) >> p.sample_shift & p.sample_mask;
            pixel[c + 1] = pixel[c] >> 8;
          }
        }
#pragma unroll
        for (int c = 0; c < kPlanes; c++) planes[(row * kPlanes + c) * kPixels + x] = static_cast<uint8_t>(pixel[c]);
      });
}

// A channel's samples as round_sums() makes them.
template <typename Shape>
using Rounded = std::conditional_t<Shape::kSamples == Samples::U8, uint32_t, uint32_t[2]>;

// All sums of a warp at once.
template <typename Shape, int kRows, int kGroups, int kChannels>
__device__ inline void round_all(const MmaParams &p,
                                 const PartialSums<Shape::kParts> (&sums)[kRows][kGroups][kChannels],
                                 Rounded<Shape> (&results)[kRows][kGroups][kChannels]) {
  constexpr int kCount = kRows * kGroups * kChannels;
  const SumRounding &r = p.epilogue;
  const auto sum = [&](int n) -> const PartialSums<Shape::kParts> & {
    return sums[n / kChannels / kGroups][n / kChannels % kGroups][n % kChannels];
  };
  const auto result = [&](int n) -> Rounded<Shape> & {
    return results[n / kChannels / kGroups][n / kChannels % kGroups][n % kChannels];
  };
  Sums total[kCount];
#pragma unroll
  for (int n = 0; n < kCount; n++) total[n] = sum(n).total();
  if constexpr (Shape::kSamples == Samples::U8) {
    uint32_t bytes[kCount];
    round_sums<Shape::kWeights>(r, total, bytes);
#pragma unroll
    for (int n = 0; n < kCount; n++) result(n) = bytes[n];
  } else {
    const auto pack = [&](auto round) {
#pragma unroll
      for (int n = 0; n < kCount; n++) pack_samples(p, result(n), [&](int i) { return round(n, i); });
    };
    if (r.mode == SumRounding::ShiftWide) return pack([&](int n, int i) { return sum(n).highest(i) >> r.shift; });
    if (r.mode == SumRounding::Shift) return pack([&](int n, int i) { return total[n].v[i] >> r.shift; });
    pack([&](int n, int i) { return divide_sum(r, total[n].v[i]); });
  }
}

// Writes what a warp has made, rows from y0 on of each group.
template <typename Shape, typename Channels, int kRows, int kGroups>
__device__ inline void put_rows(const Tile &tile, const Channels &channels, int y0, int bottom, bool inside,
                                const Rounded<Shape> (&results)[kRows][kGroups][Channels::kCount]) {
  constexpr int kPixelBytes = Channels::kChannels * Shape::kSampleBytes;
  const PartParams &part = tile.part;
  using Place = ResultPlace<kPixelBytes, 16, 0>;
  const int x = tile.x0 + static_cast<int>(threadIdx.x) % 4 * 32 + Place().x;
  const auto put = [&](auto is_inside, bool has_unfiltered, auto finish) {
#pragma unroll
    for (int y = 0; y < kRows; y++)
#pragma unroll
      for (int s = 0; s < kGroups; s++) {
        const int row = y0 + kRows * s + y;
        uint32_t pixels[kPixelBytes];
        channels.join(results[y][s], pixels);
        finish(y, pixels);
        Place::put(part, part.target + row * part.target_pitch + x * kPixelBytes, x, row, bottom,
                   decltype(is_inside)::value, has_unfiltered, pixels);
      }
  };
  constexpr bool kBlends = Channels::kCount < Channels::kChannels || Shape::kSamples == Samples::U16x4;
  if (!inside || (!kBlends && part.has_unfiltered))
    return put(std::false_type(), part.has_unfiltered, [](int, uint32_t *) {});
  // No bounds are checked, and samples that are copied are all read at a time.
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

// Sums the rows of the tile, down to `bottom`, of pixels of which kPlanes bytes are summed.
template <typename Shape, int kPlanes>
__device__ inline void filter_rows(const DenseMmaParams &p, const Tile &tile, const uint2 *fragments,
                                   const uint8_t *planes, int bottom, bool inside) {
  constexpr int kBytes = Shape::kBytes, kChunks = Shape::kChunks, kRows = Shape::kRows;
  constexpr int kSampleBytes = Shape::kSampleBytes, kParts = Shape::kParts, kWarps = Shape::kThreads / 32;
  constexpr int kChannels = kPlanes / kSampleBytes, kGroups = Shape::row_groups(kChannels);
  constexpr int kRowBytes = kPlanes * Shape::kPixels;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int y0 = tile.y0 + warp * (kRows * kGroups); y0 < bottom; y0 += kWarps * kRows * kGroups) {
    PartialSums<kParts> sums[kRows][kGroups][kChannels];
#pragma unroll
    for (int y = 0; y < kRows; y++)
#pragma unroll
      for (int s = 0; s < kGroups; s++)
#pragma unroll
        for (int c = 0; c < kChannels; c++) {
#pragma unroll
          for (int k = 0; k < kParts; k++)
            sums[y][s][c].part[k] = all(k == 0                        ? p.epilogue.start
                                        : kSampleBytes == 2 && k == 1 ? p.epilogue.start_high
                                                                      : 0);
        }
    const uint2 *fragment = fragments + lane;
    const uint8_t *from = planes + (y0 - tile.y0) * kRowBytes + 4 * lane;
    uint32_t a[kRows][kBytes][kChunks][2];  // of row r of the mask at r % kRows
    using Window = uint32_t[kGroups][kPlanes][kChunks];
    const auto load_fragments = [&](int u) {
#pragma unroll
      for (int b = 0; b < kBytes; b++)
#pragma unroll
        for (int k = 0; k < kChunks; k++, fragment += 32) {
          a[u][b][k][0] = fragment->x;
          a[u][b][k][1] = fragment->y;
        }
    };
    const auto load_window = [&](Window &window) {
#pragma unroll
      for (int s = 0; s < kGroups; s++)
#pragma unroll
        for (int c = 0; c < kPlanes; c++)
#pragma unroll
          for (int k = 0; k < kChunks; k++)
            window[s][c][k] =
                *reinterpret_cast<const uint32_t *>(from + s * kRows * kRowBytes + c * Shape::kPixels + 16 * k);
      from += kRowBytes;
    };
    // To the sums of rows first to last, for each byte of a coefficient and of a sample, what add(y, b, s, c, sums)
    // makes of them with byte b and word c of group s.
    const auto add_to = [&](int first, int last, auto add) {
#pragma unroll
      for (int y = first; y <= last; y++)
#pragma unroll
        for (int s = 0; s < kGroups; s++)
#pragma unroll
          for (int c = 0; c < kPlanes; c++)
#pragma unroll
            for (int b = 0; b < kBytes; b++) {
              Sums &part = sums[y][s][c / kSampleBytes].part[c % kSampleBytes + b];
              if (b == kBytes - 1)
                part = add(std::true_type(), y, b, s, c, part);
              else
                part = add(std::false_type(), y, b, s, c, part);
            }
    };
    // The first kCount chunks of a row of samples, whose number is u modulo kRows and which is part of those windows.
    const auto add_chunks = [&](auto count, int u, int first, int last, const Window &window) {
      constexpr int kCount = decltype(count)::value;
      add_to(first, last, [&](auto is_signed, int y, int b, int s, int c, const Sums &part) {
        uint32_t coefficients[kCount][2], samples[kCount];
#pragma unroll
        for (int k = 0; k < kCount; k++) {
#pragma unroll
          for (int i = 0; i < 2; i++) coefficients[k][i] = a[(u + kRows - y) % kRows][b][k][i];
          samples[k] = window[s][c][k];
        }
        return multiply<decltype(is_signed)::value, false>(coefficients, samples, part);
      });
    };
    // The next row.
    const auto add_row = [&](int u, int first, int last, bool in_mask) {
      if (in_mask) load_fragments(u);
      Window window;
      load_window(window);
      add_chunks(std::integral_constant<int, kChunks>(), u, first, last, window);
    };
    // The next two, which are part of the windows of all rows: their odd chunks go together, where registers suffice.
    constexpr bool kJoins = kChunks % 2 && kPlanes * kBytes <= 8;
    const auto add_pair = [&](int u) {
      if constexpr (!kJoins) {
        add_row(u, 0, kRows - 1, true);
        add_row(u + 1, 0, kRows - 1, true);
      } else {
        constexpr std::integral_constant<int, kChunks - 1> kEven;
        Window window[2];
        uint32_t last[kBytes][2];  // of the row of the mask that the second one's takes the place of
#pragma unroll
        for (int b = 0; b < kBytes; b++)
#pragma unroll
          for (int i = 0; i < 2; i++) last[b][i] = a[u + 1][b][kChunks - 1][i];
        load_fragments(u);
        load_window(window[0]);
        add_chunks(kEven, u, 0, kRows - 1, window[0]);
        load_fragments(u + 1);
        load_window(window[1]);
        add_chunks(kEven, u + 1, 0, kRows - 1, window[1]);
        add_to(0, kRows - 1, [&](auto is_signed, int y, int b, int s, int c, const Sums &part) {
          const auto &first = y == kRows - 1 ? last[b] : a[(u + kRows - y) % kRows][b][kChunks - 1];
          const auto &second = a[(u + 1 + kRows - y) % kRows][b][kChunks - 1];
          return mma<decltype(is_signed)::value, false, 2>({first[0], first[1], second[0], second[1]},
                                                           {window[0][s][c][kChunks - 1], window[1][s][c][kChunks - 1]},
                                                           part);
        });
      }
    };
#pragma unroll
    for (int u = 0; u < kRows; u++) add_row(u, 0, u, true);
#pragma unroll 1
    for (int r = kRows; r < p.height; r += kRows) {
#pragma unroll
      for (int u = 0; u < kRows - 2; u += 2) add_pair(u);
      const bool spare = p.spare && r + kRows == p.height;
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
    const auto finish = [&](auto spare) {
      constexpr int kSpare = decltype(spare)::value;
#pragma unroll
      for (int u = 0; u + kSpare < kRows - 1; u++) add_row(u, u + 1 + kSpare, kRows - 1, false);
    };
    if (p.spare)
      finish(std::integral_constant<int, 1>());
    else
      finish(std::integral_constant<int, 0>());
    Rounded<Shape> results[kRows][kGroups][kChannels];
    round_all<Shape>(p, sums, results);
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
__device__ inline void filter_dense(const DenseMmaParams &p, const Tile &tile, int bottom) {
  constexpr int kBytes = Shape::kBytes, kChunks = Shape::kChunks, kLine = Shape::kLine;
  constexpr Samples kSamples = Shape::kSamples;
  const PartParams &part = tile.part;
  const bool three = kSamples == Samples::U8 && (part.channels == 3 || (part.channels == 4 && part.has_unfiltered));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int left = tile.x0 - Shape::kRadius, first_row = tile.y0 - p.radius_y;
  const int height = Shape::source_rows(bottom - tile.y0, p.height);

  uint8_t *memory = shared_memory<uint8_t>();
  const auto take = [&](size_t bytes) {
    uint8_t *taken = memory;
    memory += bytes;
    return taken;
  };
  uint2 *fragments = reinterpret_cast<uint2 *>(take(Shape::fragment_bytes(p.height)));
  uint32_t *lines = reinterpret_cast<uint32_t *>(take(Shape::kLineBytes));
  int *columns = reinterpret_cast<int *>(take(Shape::kPixels * sizeof(int)));
  int64_t *rows = reinterpret_cast<int64_t *>(take(height * sizeof(int64_t)));
  uint8_t *planes = memory;
  // All words of a thread are in flight at a time; what is around them are zeros.
  constexpr int kWords = kDenseLineWords, kPadding = kLinePadding / 4;
  const int count = p.height * kBytes;
  constexpr int kOfThread = kDenseRows * kBytes * kWords / Shape::kThreads;
  const int thread = static_cast<int>(threadIdx.x);
  uint32_t words[kOfThread];
#pragma unroll
  for (int k = 0; k < kOfThread; k++) {
    const int i = thread + k * Shape::kThreads;
    words[k] = i < count * kWords ? p.line[i / kWords % kBytes][i / kWords / kBytes][i % kWords] : 0;
  }
#pragma unroll
  for (int k = 0; k < kOfThread; k++) {
    const int i = thread + k * Shape::kThreads;
    if (i < count * kWords) lines[i / kWords * kLine + kPadding + i % kWords] = words[k];
  }
#pragma unroll 1
  for (int i = thread; i < count * 2 * kPadding; i += Shape::kThreads)
    lines[i / (2 * kPadding) * kLine + i % (2 * kPadding) + (i % (2 * kPadding) < kPadding ? 0 : kWords)] = 0;
  list_rows(p, part, first_row, height, rows, Shape::kThreads);
  const bool inside = lies_inside(p, part, left, Shape::kPixels, first_row, height);
  if (!inside) list_columns(p, part, left, Shape::kPixels, columns, Shape::kThreads);
  __syncthreads();
  const auto load = [&](const auto &channels) {
    const int end = part.width + p.radius_x;
    if (inside)
      load_rows_of_planes<true, Shape>(p, part, channels, left, end, rows, columns, height, planes);
    else
      load_rows_of_planes<false, Shape>(p, part, channels, left, end, rows, columns, height, planes);
  };
  for_channels<kSamples>(part.channels, [&](auto constant) {
    constexpr int kChannels = decltype(constant)::value;
    if constexpr (kSamples == Samples::U8 && kChannels == 4) {
      if (three) return load(SummedChannels<kChannels, 3>(part));
    }
    load(SummedChannels<kChannels>(part));
  });
#pragma unroll 1
  for (int i = warp; i < p.height * kBytes * kChunks; i += Shape::kThreads / 32) {
    const uint32_t *line = lines + i / kChunks * kLine;
    const int first = 16 * (i % kChunks) + 4 * t - 2 * g;
    fragments[i * 32 + lane] = make_uint2(four_bytes(line, first), four_bytes(line, first - 1));
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

// How many rows of tiles of the full height a part has, where up to `low` below those have half of it.
CUDACONV_HOST_DEVICE constexpr int high_tiles(int rows, int tile_rows, int low) {
  const int rest = rows - low * (tile_rows / 2);
  return rest > 0 ? (rest + tile_rows - 1) / tile_rows : 0;
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kMinBlocks)
    dense_mma_kernel(const __grid_constant__ DenseMmaParams p) {
  if constexpr (kHasMma) {
    Tile tile = locate_tile(p, kMmaTileWidth, 1);
    const PartParams &part = tile.part;
    int height = p.tile_height * Shape::row_groups(part.channels);
    const int row = tile.y0;
    tile.y0 *= height;
    if (p.low_tiles) {
      const int below = row - high_tiles(part.height, height, p.low_tiles);
      if (below > 0) tile.y0 -= below * (height / 2);
      if (below >= 0) height /= 2;
    }
    const int bottom = min(tile.y0 + height, part.height);
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, kMmaTileWidth, height);
    filter_dense<Shape>(p, tile, bottom);
  }
}

}  // namespace cudaconv
