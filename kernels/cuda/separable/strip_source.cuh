// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reads the samples of strips: a warp goes down one or several strips side by side, each 16 pixels wide, 8 rows a step.
//
// Lane (g, t) of a warp has g = lane / 4 and t = lane % 4. It loads four pixels of row g, from pixel 4t of each 16 on.
// Split by channel, these are its words of the matrices of samples, one matrix for each channel.
//
// Example, one byte a pixel: lane 6 has g = 1 and t = 2. In a strip from x = 32 and a step from y = 8 on it loads the
// pixels 40 to 43 of row 9. With less than four bytes a pixel a warp has several strips, which make four planes of
// bytes.
#pragma once

#include <type_traits>

#include "cuda/separable/separable_sums.cuh"

namespace cudaconv::separable {

constexpr int kStripThreads = 128;  // of a block, whose warps' strips lie side by side

// Width of a warp's strips in pixels.
CUDACONV_HOST_DEVICE constexpr int strip_width(int pixel_bytes) {
  return 16 * subtiles(pixel_bytes);
}

constexpr int kMostColumns = 10;  // most blocks of 16 pixels of a row that a warp lists

// Shared memory of a block: lines of coefficients, the list of rows, and the list of columns of each warp.
template <typename Shape>
constexpr size_t strip_bytes(int tile_height) {
  return Shape::kLineBytes + (tile_height + 2 * Shape::kRadius) * sizeof(int64_t) +
         kStripThreads / 32 * 16 * kMostColumns * sizeof(int);
}

// ResultPlace for strips side by side, of 1 or 2 bytes a pixel. A lane has two pairs of neighbouring pixels, one below
// the other, in each of four or two strips; lanes exchange them so that each has 8 bytes of both rows of one strip.
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
    // exchange(), with the first lane's word first in `both`.
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
      uint32_t four[2][2];  // [strip i of two][row h]
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

// How a warp reads and writes pixels.
// Whole: as whole words, each completely in the frame or completely beside it.
// Patched: the same for pixels of one or two bytes, with words beside the frame by WordPatch. Any: all other cases.
enum class Pixels { Whole, Patched, Any };

// Reads the pixels of a row as the matrices of samples need them: of each 16 pixels a lane gets four neighbours.
template <int kPixelBytes, Pixels kPixels, int kRadius>
class PixelReader {
 public:
  // Any: four pixels are read one by one in kPieces pieces, each into a word of its own: single bytes if a pixel has an
  // odd number of bytes, else 16- or 32-bit words.
  static constexpr bool kBytes = kPixelBytes % 2 == 1;
  static constexpr int kOfPixel = kBytes ? kPixelBytes : kPixelBytes == 8 ? 2 : 1, kPieces = 4 * kOfPixel;
  // kWords: words of four pixels between read() and take().
  static constexpr bool kPatches = kPixels == Pixels::Patched;
  static constexpr int kWords = kPatches ? 2 * kPixelBytes : kPixelBytes;
  static constexpr int kEdge = (kRadius + 15) / 16;  // how many times 16 pixels a window reaches into on either side

  // The first 16 pixels begin at `first`. Unless `inside`, `columns` lists where all pixels are that windows reach.
  // Patched: pixels beside the frame are among the first or the last kEdge of `count` times 16 pixels.
  __device__ PixelReader(const MmaParams &p, const PartParams &part, int first, int count, const int *columns,
                         bool inside)
      : p_(p),
        part_(part),
        source_(part.source + (first + lane()) * kPixelBytes),
        columns_(columns + lane()),
        first_(first),
        inside_(inside) {
    if constexpr (kPatches) {
      each<2 * kEdge, kPixelBytes>([&](int i, int w) {
        const int k = i < kEdge ? i : count - 2 * kEdge + i;
        patch_[i][w] = WordPatch::find<kPixelBytes>(columns_ + 16 * k + w * 4 / kPixelBytes);
      });
    }
  }

  // Reads kCount times 16 pixels of the row at byte offset `offset`. The whole warp takes part.
  template <int kCount>
  __device__ void read(int64_t offset, uint32_t (&words)[kCount][kWords]) const {
    if constexpr (kPatches) {
      each<kCount>([&](int k) {
        if (is_patched(k, kCount))
          read_patched(part_.source + offset, k, kCount, words[k]);
        else
          read_together(offset, 16 * k, words[k]);
      });
    } else if (inside_) {
      each<kCount>([&](int k) { read_together(offset, 16 * k, words[k]); });
    } else {
      each<kCount>([&](int k) {
        if constexpr (kPixels != Pixels::Whole)
          read_anywhere(offset, 16 * k, words[k]);
        else if constexpr (kPieces == kWords)
          read_pieces<false>(part_.source + offset, columns_ + 16 * k, words[k]);
      });
    }
  }

  // Prefetches the row's first 16 pixels to the L2 cache; neighbouring warps together prefetch the whole row.
  __device__ void prefetch([[maybe_unused]] int64_t offset) const {
#ifdef __CUDA_ARCH__
    if (inside_) asm volatile("prefetch.global.L2 [%0];" ::"l"(source_ + offset));
#endif
  }

  // Returns number k of the `count` times 16 pixels that read() has read, as they lie in memory.
  __device__ void take(int k, int count, const uint32_t (&words)[kWords], uint32_t (&pixels)[kPixelBytes]) const {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) pixels[i] = words[i];
    if constexpr (kPatches) {
      if (!is_patched(k, count)) return;
#pragma unroll
      for (int i = 0; i < kPixelBytes; i++)
        pixels[i] = patch_[edge(k, count)][i].join(words[i], words[kPixelBytes + i]);
    }
  }

 private:
  // The index of the patches of number k of `count` times 16 pixels.
  __device__ static constexpr int edge(int k, int count) {
    return k < kEdge ? k : k - count + 2 * kEdge;
  }

  __device__ bool is_patched(int k, int count) const {
    return k < kEdge || k >= count - kEdge;
  }

  __device__ void read_patched(const uint8_t *row, int k, int count, uint32_t (&words)[kWords]) const {
    const auto &patch = patch_[edge(k, count)];
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) {
      words[i] = patch[i].load_first(row);
      words[kPixelBytes + i] = patch[i].load_second(row, part_.border_word[i % 2]);
    }
  }

  // The lane's first pixel among 16.
  __device__ static int lane() {
    return threadIdx.x % 4 * 4;
  }

  // Whether the 16 pixels from `x` pixels after the first on lie completely in the frame.
  __device__ bool is_together(int x) const {
    return first_ + x >= 0 && first_ + x + 16 <= part_.width;
  }

  __device__ void read_together(int64_t offset, int x, uint32_t (&words)[kWords]) const {
    read_words<kPixelBytes>(source_ + offset + x * kPixelBytes, words);
  }

  __device__ void read_anywhere(int64_t offset, int x, uint32_t (&words)[kWords]) const {
    if (offset == kNoRow) {
#pragma unroll
      for (int i = 0; i < kWords; i++) words[i] = part_.border_word[i % word_period(kPixelBytes)];
    } else if (is_together(x)) {
      read_together(offset, x, words);
    } else if (first_ + x < part_.width + p_.radius_x) {  // else no window reaches them
      uint32_t piece[kPieces];
      read_pieces<true>(part_.source + offset, columns_ + x, piece);
      join(piece, words);
    }
  }

  // Piece i of border pixels.
  __device__ uint32_t border(int i) const {
    return kBytes ? part_.border_word[0] >> i % kOfPixel * 8 : part_.border_word[i % kOfPixel];
  }

  // Reads the pieces of four pixels, with all loads in flight at once. kMayBeBorder: any may be the border value.
  template <bool kMayBeBorder>
  __device__ void read_pieces(const uint8_t *from, const int *columns, uint32_t (&piece)[kPieces]) const {
    const int4 four = *reinterpret_cast<const int4 *>(columns);
    const int column[4] = {four.x, four.y, four.z, four.w};
    const auto address = [&](int i) { return from + max(column[i / kOfPixel], 0) * kPixelBytes; };
    using Piece = std::conditional_t<kBytes, uint8_t, std::conditional_t<kPixelBytes == 2, uint16_t, uint32_t>>;
#pragma unroll
    for (int i = 0; i < kPieces; i++) piece[i] = __ldg(reinterpret_cast<const Piece *>(address(i)) + i % kOfPixel);
    if (kMayBeBorder && p_.border == Border::Constant) {
#pragma unroll
      for (int i = 0; i < kPieces; i++)
        if (column[i / kOfPixel] < 0) piece[i] = border(i);
    }
  }

  // Joins pieces to the words of pixels as they lie in memory.
  __device__ static void join(const uint32_t (&piece)[kPieces], uint32_t (&words)[kPixelBytes]) {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) {
      const auto at = [&](int n) { return piece[(kPieces / kPixelBytes * i + n) % kPieces]; };
      if constexpr (kBytes)
        words[i] = pick_bytes(0, at(0), at(1), at(2), at(3));
      else
        words[i] = kPixelBytes == 2 ? __byte_perm(at(0), at(1), 0x5410) : piece[i % kPieces];
    }
  }

  const MmaParams &p_;
  const PartParams &part_;
  const uint8_t *source_;
  const int *columns_;
  int first_;
  bool inside_;
  WordPatch patch_[2 * kEdge][kPatches && kPixelBytes <= 2 ? kPixelBytes : 1];
};

// How a warp works on its strips. kFilteredChannels of the channels are filtered: all of them, or three of four, where
// the first or the last is not.
template <int kPixelChannels, int kFilteredChannels, Pixels kPixelsKind, typename ShapeKind>
struct StripKind {
  using Shape = ShapeKind;
  static constexpr int kChannels = kPixelChannels, kFiltered = kFilteredChannels;
  static constexpr Pixels kPixels = kPixelsKind;
  static constexpr int kPixelBytes = kChannels * Shape::kSampleBytes;
  static constexpr int kStrips = subtiles(kPixelBytes), kColumns = kStrips - 1 + Shape::kChunksX;
  static constexpr int kBytes = kFiltered * Shape::kSampleBytes;  // bytes of a pixel that are summed
  static constexpr bool kAny = kPixels == Pixels::Any;
  using Words = uint32_t[kColumns][kBytes];        // a step's samples, split into bytes
  using Results = uint32_t[kStrips][kPixelBytes];  // a lane's results: two pairs of neighbouring pixels in each strip
  using Joined = uint32_t[kStrips * kPixelBytes];  // the results as they lie in memory
  using Place = std::conditional_t<(kStrips > 1), StripPlace<kPixelBytes, kStrips>, ResultPlace<kPixelBytes, 0, 1>>;
};

// Reads the samples of a warp's strips, 8 rows a step.
template <typename Kind>
class StripSource {
 public:
  using Shape = typename Kind::Shape;
  using Reader = PixelReader<Kind::kPixelBytes, Kind::kPixels, Shape::kRadius>;
  // Found on Hopper: prefetching helps large frames of four 8-bit channels, and nothing else.
  static constexpr bool kPrefetches =
      Kind::kPixels == Pixels::Whole && Kind::kChannels == 4 && Shape::kSampleBytes == 1;
  // Whether the next step's samples are requested when samples of this step are used up: registers do not hold both.
  static constexpr bool kReadsLate = Shape::kSamples == Samples::U16x4 && Shape::kRadius > 16;

  __device__ StripSource(const MmaParams &p, const Tile &tile, const int64_t *rows, const int *columns, bool inside)
      : p_(p),
        reader_(p, tile.part, tile.x0 - Shape::kRadius, Kind::kColumns, columns, inside),
        rows_(rows),
        channels_(tile.part) {}

  // Requests a step's samples.
  __device__ void read(int step) { reader_.read(offset(step), ahead_); }
  __device__ void prefetch(int step) const { reader_.prefetch(offset(step)); }

  // Waits for the requested samples and splits them into bytes.
  __device__ void take(typename Kind::Words &words) {
#pragma unroll
    for (int c = 0; c < Kind::kColumns; c++) {
      if constexpr (Reader::kWords == Kind::kPixelBytes) {
        channels_.template take_apart<Shape::kSamples>(p_, ahead_[c], words[c]);
      } else {
        uint32_t pixels[Kind::kPixelBytes];
        reader_.take(c, Kind::kColumns, ahead_[c], pixels);
        channels_.template take_apart<Shape::kSamples>(p_, pixels, words[c]);
      }
    }
  }

  // How many channels lie before the filtered ones.
  __device__ int skipped() const {
    return channels_.channel(0);
  }

 private:
  // Offset of the lane's row of a step.
  __device__ int64_t offset(int step) const {
    return rows_[8 * step + threadIdx.x % 32 / 4];
  }

  const MmaParams &p_;
  const Reader reader_;
  const int64_t *rows_;
  uint32_t ahead_[Kind::kColumns][Reader::kWords];  // the next step's samples, in flight
  const SummedChannels<Kind::kChannels, Kind::kFiltered> channels_;
};

}  // namespace cudaconv::separable
