// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Pixels for the matrix instructions: reads them, splits them into words of four neighbouring samples of a channel, or
// of the low or the high bytes of these, and joins and writes results.
#pragma once

#include <type_traits>

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/device/mma/matrix.cuh"

namespace cudaconv {

// ---- From interleaved samples to planes, and back ----

// Splits four pixels, as they lie in memory, into one word for each of their bytes (channels, if of 8 bits).
template <int kChannels>
__device__ inline void deinterleave(const uint32_t (&in)[kChannels], uint32_t (&channel)[kChannels]) {
  if constexpr (kChannels == 1) {
    channel[0] = in[0];
  } else if constexpr (kChannels == 2) {
    channel[0] = __byte_perm(in[0], in[1], 0x6420);
    channel[1] = __byte_perm(in[0], in[1], 0x7531);
  } else if constexpr (kChannels == 3) {  // abca bcab cabc
    channel[0] = __byte_perm(__byte_perm(in[0], in[1], 0x0630), in[2], 0x5210);
    channel[1] = __byte_perm(__byte_perm(in[0], in[1], 0x0741), in[2], 0x6210);
    channel[2] = __byte_perm(__byte_perm(in[0], in[1], 0x0052), in[2], 0x7410);
  } else if constexpr (kChannels == 4) {
    transpose(in, channel);
  } else {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t bytes[4];
      transpose({in[half], in[2 + half], in[4 + half], in[6 + half]}, bytes);
#pragma unroll
      for (int i = 0; i < 4; i++) channel[4 * half + i] = bytes[i];
    }
  }
}

// Of four channels of bytes only three are summed if the first or the last one is not filtered: those from
// first_summed() on.
__device__ inline bool sums_three(const PartParams &part) {
  return !(part.filter_bits[0] & 0xffu) || !(part.filter_bits[0] >> 24);
}
__device__ inline int first_summed(const PartParams &part) {
  return part.filter_bits[0] & 0xffu ? 0 : 1;
}

// Splits four pixels of four bytes into one word for each of three of their bytes, from byte `first` on.
__device__ inline void deinterleave_three(const uint32_t (&in)[4], int first, uint32_t (&channel)[3]) {
  const uint32_t pairs = 0x5140 + 0x1111 * first, last = 0x62 + 0x11 * first;
  const uint32_t t0 = __byte_perm(in[0], in[1], pairs), t1 = __byte_perm(in[2], in[3], pairs);
  channel[0] = __byte_perm(t0, t1, 0x5410);
  channel[1] = __byte_perm(t0, t1, 0x7632);
  channel[2] = __byte_perm(__byte_perm(in[0], in[1], last), __byte_perm(in[2], in[3], last), 0x5410);
}

// The inverse of deinterleave(): joins a word of each channel to four pixels as they lie in memory.
template <int kChannels>
__device__ inline void join_channels(const uint32_t (&channel)[kChannels], uint32_t (&out)[kChannels]) {
  if constexpr (kChannels == 1) {
    out[0] = channel[0];
  } else if constexpr (kChannels == 2) {
    out[0] = __byte_perm(channel[0], channel[1], 0x5140);
    out[1] = __byte_perm(channel[0], channel[1], 0x7362);
  } else if constexpr (kChannels == 3) {
    const uint32_t a = channel[0], b = channel[1], c = channel[2];
    out[0] = __byte_perm(__byte_perm(a, b, 0x1040), c, 0x3410);
    out[1] = __byte_perm(__byte_perm(a, b, 0x6205), c, 0x3250);
    out[2] = __byte_perm(__byte_perm(a, b, 0x0730), c, 0x7216);
  } else {
    transpose(channel, out);
  }
}

// Calls filter() with the number of channels of a plane as a constant.
template <Samples kSamples, typename Filter>
__device__ inline void for_channels(int channels, Filter filter) {
  if constexpr (kSamples == Samples::U16x4) {
    filter(std::integral_constant<int, 4>());
  } else {
    if (channels == 1) return filter(std::integral_constant<int, 1>());
    if (kSamples == Samples::U16 || channels == 2) return filter(std::integral_constant<int, 2>());
    if constexpr (kSamples == Samples::U8) {
      if (channels == 3) return filter(std::integral_constant<int, 3>());
      filter(std::integral_constant<int, 4>());
    }
  }
}

// ---- Pixels in global memory ----
//
// Warps whose windows and results lie inside the frame skip bounds checks; others look up rows and pixels in lists.

// List where rows, or pixels of a row, first ... first + count - 1 are read: rows as byte offsets from the part's first
// row, pixels by number. kNoRow and -1 stand for the border value. `threads` consecutive threads make a list together.
constexpr int64_t kNoRow = INT64_MIN;

__device__ inline void list_rows(const MmaParams &p, const PartParams &part, int first, int count, int64_t *list,
                                 int threads) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % threads; i < count; i += threads) {
    const int y = border_index(p.border, first + i, part.height);
    list[i] = y < 0 ? kNoRow : y * part.source_pitch;
  }
}

__device__ inline void list_columns(const MmaParams &p, const PartParams &part, int first, int count, int *list,
                                    int threads) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % threads; i < count; i += threads)
    list[i] = border_index(p.border, first + i, part.width);
}

// Whether none of the rows is the border value.
__device__ inline bool are_rows(const MmaParams &p, const PartParams &part, int first_row, int rows) {
  return p.border != Border::Constant || (first_row >= 0 && first_row + rows <= part.height);
}

// Whether pixels first ... first + count - 1 lie in the frame, and none of the rows is the border value.
__device__ inline bool lies_inside(const MmaParams &p, const PartParams &part, int first, int count, int first_row,
                                   int rows) {
  return first >= 0 && first + count <= part.width && are_rows(p, part, first_row, rows);
}

// Splits four pixels, as they lie in memory, into one word for each byte of their samples.
template <Samples kSamples, int kPixelBytes>
__device__ inline void take_apart(const MmaParams &p, uint32_t (&words)[kPixelBytes], uint32_t (&bytes)[kPixelBytes]) {
  if constexpr (kSamples != Samples::U8) {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) words[i] = words[i] >> p.sample_shift & p.sample_mask;
  }
  deinterleave<kPixelBytes>(words, bytes);
}

// A word of pixels beside the frame, joined from bytes of two words of the row, which lie at byte offsets `first` and
// `second`. A negative `second` stands for the border's word. Example, bytes, border=reflect, columns 8 to 11 of a row
// of 8: these are pixels 7, 6, 5 and 4, all in the word at 4, so the selector is 0x0123.
struct WordPatch {
  int first, second;
  uint32_t selector;  // for __byte_perm()

  // `columns` lists where the word's pixels are read.
  template <int kPixelBytes>
  __device__ static WordPatch find(const int *columns) {
    static_assert(kPixelBytes <= 2, "a word is of whole pixels");
    WordPatch patch;
    patch.first = max(columns[0], 0) * kPixelBytes & ~3;
    patch.second = patch.first;
    patch.selector = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int byte = columns[i / kPixelBytes] * kPixelBytes + i % kPixelBytes, word = byte & ~3;
      if (word != patch.first) patch.second = byte < 0 ? -1 : word;
      patch.selector |= (byte < 0 ? 4u + i : (word == patch.first ? 0u : 4u) + (byte & 3)) << 4 * i;
    }
    return patch;
  }

  __device__ static uint32_t load(const uint8_t *row, int at) {
    return __ldg(reinterpret_cast<const uint32_t *>(row + at));
  }
  __device__ uint32_t load_first(const uint8_t *row) const {
    return load(row, first);
  }
  __device__ uint32_t load_second(const uint8_t *row, uint32_t border) const {
    return second < 0 ? border : load(row, second);
  }
  __device__ uint32_t join(uint32_t first_word, uint32_t second_word) const {
    return __byte_perm(first_word, second_word, selector);
  }
};

// Whether every word of a row lies completely in the frame or beside it, and WordPatch can make those beside it.
template <int kPixelBytes>
__device__ inline bool can_patch(const MmaParams &p, const PartParams &part) {
  return kPixelBytes <= 2 && part.width * kPixelBytes % 4 == 0 && part.width > p.radius_x;
}

// How a warp reads and writes pixels.
// Whole: as whole words, each completely in the frame or completely beside it.
// Patched: the same for pixels of one or two bytes, with words beside the frame by WordPatch. Any: all other cases.
enum class Pixels { Whole, Patched, Any };

// Reads the pixels of a row as the matrices of samples need them: of each 16 pixels a lane gets four neighbours.
// kReach: how many pixels windows reach on either side of what is filtered.
template <int kPixelBytes, Pixels kPixels, int kReach>
class PixelReader {
 public:
  // Any: four pixels are read one by one in kPieces pieces, each into a word of its own: single bytes if a pixel has an
  // odd number of bytes, else 16- or 32-bit words.
  static constexpr bool kBytes = kPixelBytes % 2 == 1;
  static constexpr int kOfPixel = kBytes ? kPixelBytes : kPixelBytes == 8 ? 2 : 1, kPieces = 4 * kOfPixel;
  // kWords: words of four pixels between read() and take().
  static constexpr bool kPatches = kPixels == Pixels::Patched;
  static constexpr int kWords = kPatches ? 2 * kPixelBytes : kPixelBytes;
  static constexpr int kEdge = (kReach + 15) / 16;  // how many times 16 pixels a window reaches into on either side

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

// Exchanges results between lanes. A lane has two pairs of neighbouring pixels, one in each half of `words`; the lane
// with the next g has the pixels to the right of both. Afterwards each lane has four neighbouring pixels: of the first
// pairs for even g, of the second pairs for odd g.
template <int kPixelBytes>
__device__ inline void join_pairs(uint32_t (&words)[kPixelBytes]) {
  const bool odd = threadIdx.x / 4 % 2;
  const auto other = [](uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, 4); };
  static_assert(kPixelBytes < 4 || kPixelBytes % 2 == 0, "pairs are whole words");
  if constexpr (kPixelBytes == 1) {
    words[0] = __byte_perm(words[0], other(words[0]), odd ? 0x3276 : 0x5410);
  } else if constexpr (kPixelBytes == 3) {
    const uint32_t middle = other(words[1]), outer = other(odd ? words[0] : words[2]);
    words[0] = odd ? __byte_perm(outer, middle, 0x1076) : words[0];
    words[1] = __byte_perm(words[1], outer, odd ? 0x3276 : 0x5410);
    words[2] = odd ? words[2] : __byte_perm(outer, middle, 0x5432);
  } else {
    constexpr int kHalf = kPixelBytes / 2;
#pragma unroll
    for (int i = 0; i < kHalf; i++) {
      const uint32_t received = other(odd ? words[i] : words[kHalf + i]);
      words[i] = odd ? received : words[i];
      words[kHalf + i] = odd ? words[kHalf + i] : received;
    }
  }
}

// The places of kCount groups of kPixels neighbouring pixels: the first at (x, y) of the part, each next one dx pixels
// to the right and dy rows down. Rows from `bottom` on are not the caller's. Unless `inside`, pixels may lie to the
// right of the part, and these are not the caller's either.
template <int kPixels, int kPixelBytes, int kCount, int dx, int dy>
class PixelPlaces {
 public:
  static constexpr int kPixel = kPixelBytes;                                 // bytes
  static constexpr int kBytes = kPixels * kPixelBytes, kWords = kBytes / 4;  // of a group
  static constexpr int kAllWords = kCount * kWords;

  __device__ PixelPlaces(const PartParams &part, int x, int y, int bottom, bool inside) : left_(part.width - x) {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      wanted_[i] = y + i * dy < bottom && (inside || i * dx < left_);
      whole_[i] = wanted_[i] && (inside || i * dx + kPixels <= left_);
    }
  }

  // Loads the groups of pixels into `words`, one after the other; `from` is the address of (x, y).
  __device__ void load(const uint8_t *from, int64_t pitch, uint32_t (&words)[kAllWords]) const {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      const uint8_t *at = from + i * (dx * kPixelBytes + dy * pitch);
#pragma unroll
      for (int w = 0; w < kWords; w++) words[i * kWords + w] = 0;
      if (!wanted_[i]) continue;
      if (whole_[i]) {
        load_words<kWords>(at, words + i * kWords);
        continue;
      }
#pragma unroll
      for (int b = 0; b < kBytes; b++)
        if (i * dx + b / kPixelBytes < left_) words[i * kWords + b / 4] |= uint32_t{at[b]} << b % 4 * 8;
    }
  }

  __device__ void store(uint8_t *to, int64_t pitch, const uint32_t *words) const {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      uint8_t *at = to + i * (dx * kPixelBytes + dy * pitch);
      if (!wanted_[i]) continue;
      if (whole_[i]) {
        store_words<kWords>(at, words + i * kWords);
        continue;
      }
#pragma unroll
      for (int b = 0; b < kBytes; b++)
        if (i * dx + b / kPixelBytes < left_) at[b] = static_cast<uint8_t>(words[i * kWords + b / 4] >> b % 4 * 8);
    }
  }

 private:
  int left_;  // pixels of the row from x on
  bool wanted_[kCount], whole_[kCount];
};

// Writes groups of pixels, one after the other in `words`, to PixelPlaces, with copied and filled channels merged in.
// `to` is the address of (x, y).
template <typename Places>
__device__ inline void put_pixels(const PartParams &part, uint8_t *to, int x, int y, int bottom, bool inside,
                                  bool has_unfiltered, uint32_t *words) {
  const Places places(part, x, y, bottom, inside);
  if (has_unfiltered) {
    uint32_t original[Places::kAllWords];
    places.load(part.source + y * part.source_pitch + x * Places::kPixel, part.source_pitch, original);
    blend_pixels<Places::kPixel>(part, original, words);
  }
  places.store(to, part.target_pitch, words);
}

// The place of a lane's results: two pairs of pixels, dx and dy apart. The first pair of lanes with g is 2g pixels
// right of the tile's first pixel. With four bytes or more a pixel, a pair is enough for a store; with fewer, pairs are
// joined.
template <int kPixelBytes, int dx, int dy>
struct ResultPlace {
  static constexpr bool kJoins = kPixelBytes < 4;
  using Pixels =
      std::conditional_t<kJoins, PixelPlaces<4, kPixelBytes, 1, 0, 0>, PixelPlaces<2, kPixelBytes, 2, dx, dy>>;
  int x, y;  // distance from the first pair of g = 0

  __device__ ResultPlace() {
    const int g = threadIdx.x % 32 / 4;
    x = kJoins ? g % 2 * dx + g / 2 * 4 : 2 * g;
    y = kJoins ? g % 2 * dy : 0;
  }

  // Exchanges a lane's results for those that it writes.
  __device__ static void join(uint32_t (&words)[kPixelBytes]) {
    if constexpr (kJoins) join_pairs<kPixelBytes>(words);
  }

  // Writes the results to (x, y) of the part, whose address is `to`; rows from `bottom` on are not the caller's.
  __device__ static void put(const PartParams &part, uint8_t *to, int x, int y, int bottom, bool inside,
                             bool has_unfiltered, uint32_t (&words)[kPixelBytes]) {
    join(words);
    put_pixels<Pixels>(part, to, x, y, bottom, inside, has_unfiltered, words);
  }
};

}  // namespace cudaconv
