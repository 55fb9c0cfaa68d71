// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Pixels for the matrix instructions: reads them, splits them into words of four neighbouring samples of a channel, or
// of the low or the high bytes of these, and joins and writes results.
#pragma once

#include <type_traits>

#include "cuda/device/tile.cuh"
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
