// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tiles of dense 8-bit planes in shared memory, as quads: words of four bytes that are treated alike, whatever the
// format. With three or four channels a quad is a pixel. With fewer, a tile consists of subtiles, one right of the
// other, and a quad takes the pixels at the same place of each:
//
//   4 channels   3 channels   2 channels                    1 channel
//   r g b a      r g b -      u v of subtile 0, u v of 1    y of subtiles 0, 1, 2, 3
//
// So a kernel needs to know nothing of channels: steps along rows and columns are steps from quad to quad. Rows are
// loaded as they lie in memory and then spread to quads in their place, and lanes trade what they have of neighbouring
// columns before they write: the plane is read and written in words whatever its channels.
#pragma once

#include <type_traits>

#include "launch.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kChunk = 4;  // quads that are loaded together, from as many neighbouring pixels

__host__ __device__ constexpr int subtiles(int channels) {
  return channels == 1 ? 4 : channels == 2 ? 2 : 1;
}

// How many blocks a multiprocessor is to hold, which bounds the registers of a thread: from Hopper on as many as given,
// tried there; before, where the same code takes more registers, half of them, so that nothing spills.
__host__ __device__ constexpr int blocks_at_once(int hopper) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return hopper > 1 ? hopper / 2 : 1;
#else
  return hopper;
#endif
}

__host__ __device__ constexpr int round_to_chunks(int quads) {
  return (quads + kChunk - 1) / kChunk * kChunk;
}

// How a tile's rows, with their halo, are made of chunks of some number of pixels.
struct ChunkedRow {
  int32_t halo;         // pixels on the left and on the right that are loaded, whole chunks
  int32_t chunks;       // no more than 128
  uint32_t reciprocal;  // ceil(2^20 / chunks)

  __device__ void locate(int item, int *row, int *chunk) const {
    *row = static_cast<int>(item * reciprocal >> 20);
    *chunk = item - *row * chunks;
  }
};

// A tile's size, alike for all parts of a frame.
struct QuadTile {
  int32_t width, height;   // results: quads of a row, rows
  int32_t halo_x, halo_y;  // quads on the left and on the right that lie there, a multiple of kChunk; rows
  ChunkedRow quads;        // of kChunk quads, from as many pixels of each subtile
  ChunkedRow bytes[3];     // of 16 bytes, as they lie in memory, with 1, 2 and 4 channels
  int32_t step;            // quads of a pixel, 2 where it has eight bytes, else 1
};

// `width` is a multiple of kChunk.
inline QuadTile make_quad_tile(int width, int height, int radius_x, int radius_y, int step = 1) {
  radius_x *= step;
  const auto cut = [&](int pixels, int of_chunk) {
    const int halo = (radius_x + of_chunk - 1) / of_chunk * of_chunk, chunks = (pixels + 2 * halo) / of_chunk;
    return ChunkedRow{halo, chunks, ((1u << 20) + chunks - 1) / chunks};
  };
  QuadTile tile = {};
  tile.width = width;
  tile.height = height;
  tile.halo_x = round_to_chunks(radius_x);
  tile.halo_y = radius_y;
  tile.step = step;
  tile.quads = cut(width, kChunk);
  for (int channels : {1, 2, 4}) tile.bytes[channels / 2] = cut(width * subtiles(channels), 16 / channels);
  return tile;
}

// Where a block's tile lies, and the pixels of its first subtile.
__device__ inline Tile locate_quad_tile(const FrameParams &p, const QuadTile &shape) {
  Tile tile = locate_tile(p, 1, shape.height);
  tile.x0 *= shape.width * subtiles(tile.part.channels);
  return tile;
}

__device__ inline uint32_t even_bytes(uint32_t quad) {
  return quad & 0x00ff00ffu;
}

// What lies in the upper bytes of both, where maxima and minima of 16-bit lanes are decided by them, or in the lower
// ones of `even`.
__device__ inline uint32_t join_bytes(uint32_t even, uint32_t odd_above) {
  return __byte_perm(even, odd_above, 0x7250);
}

// 16 bytes from global to shared memory, in the background where the device can.
__device__ inline void copy_chunk(uint32_t *to, const uint8_t *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#else
  *reinterpret_cast<uint4 *>(to) = __ldg(reinterpret_cast<const uint4 *>(from));
#endif
}

// Until what this thread has copied is there.
__device__ inline void wait_for_chunks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// kChunk pixels of each subtile, kChannels words of each, as quads.
template <int kChannels>
__device__ inline uint4 interleave(const uint32_t (&words)[subtiles(kChannels)][kChannels]) {
  if constexpr (kChannels == 4) {
    return make_uint4(words[0][0], words[0][1], words[0][2], words[0][3]);
  } else if constexpr (kChannels == 3) {
    const uint32_t a = words[0][0], b = words[0][1], c = words[0][2];
    return make_uint4(a, __byte_perm(a, b, 0x6543), __byte_perm(b, c, 0x5432), c >> 8);
  } else if constexpr (kChannels == 2) {
    const uint32_t *a = words[0], *b = words[1];
    return make_uint4(__byte_perm(a[0], b[0], 0x5410), __byte_perm(a[0], b[0], 0x7632), __byte_perm(a[1], b[1], 0x5410),
                      __byte_perm(a[1], b[1], 0x7632));
  } else {
    const uint32_t low_01 = __byte_perm(words[0][0], words[1][0], 0x5140);
    const uint32_t high_01 = __byte_perm(words[0][0], words[1][0], 0x7362);
    const uint32_t low_23 = __byte_perm(words[2][0], words[3][0], 0x5140);
    const uint32_t high_23 = __byte_perm(words[2][0], words[3][0], 0x7362);
    return make_uint4(__byte_perm(low_01, low_23, 0x5410), __byte_perm(low_01, low_23, 0x7632),
                      __byte_perm(high_01, high_23, 0x5410), __byte_perm(high_01, high_23, 0x7632));
  }
}

// The words of kChunk pixels from `from`, which is a multiple of 4 bytes, or of 16 with four channels.
template <int kChannels>
__device__ inline void read_words(const uint8_t *from, uint32_t (&words)[kChannels]) {
  if constexpr (kChannels == 4) {
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));
    words[0] = v.x;
    words[1] = v.y;
    words[2] = v.z;
    words[3] = v.w;
  } else if constexpr (kChannels == 2) {
    const uint2 v = __ldg(reinterpret_cast<const uint2 *>(from));
    words[0] = v.x;
    words[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < kChannels; i++) words[i] = __ldg(reinterpret_cast<const uint32_t *>(from) + i);
  }
}

// The same for pixels x and on of row y, either of which may lie outside.
template <int kChannels>
__device__ inline void gather_words(const FrameParams &p, const PartParams &part, int x, int y,
                                    uint32_t (&words)[kChannels]) {
  y = near_border_index(p.border, y, part.height);
#pragma unroll
  for (int i = 0; i < kChannels; i++) words[i] = 0;
#pragma unroll
  for (int i = 0; i < kChunk; i++) {
    const int sx = near_border_index(p.border, x + i, part.width);
    const bool outside = sx < 0 || y < 0;
    const uint8_t *pixel = outside ? nullptr : part.source + y * part.source_pitch + sx * kChannels;
#pragma unroll
    for (int c = 0; c < kChannels; c++) {
      const int byte = i * kChannels + c;
      const uint32_t v = outside ? part.channel[c].border_value : pixel[c];
      words[byte / 4] |= v << byte % 4 * 8;
    }
  }
}

// A pixel of kChannels bytes, 1, 2 or 4.
template <int kChannels>
using PixelWord = std::conditional_t<kChannels == 1, uint8_t, std::conditional_t<kChannels == 2, uint16_t, uint32_t>>;

// Loads rows into shared memory as they lie in memory, halo included. `tile_x` is the tile's first
// pixel, y0 the first row to load.
template <int kChannels>
__device__ inline void load_bytes(const FrameParams &p, const PartParams &part, const QuadTile &shape, int tile_x,
                                  int y0, int rows, int pitch, uint32_t *quads) {
  constexpr int kPixels = 16 / kChannels;  // of a chunk
  const ChunkedRow &cut = shape.bytes[kChannels / 2];
  const int lane = threadIdx.x % 32, x0 = tile_x - cut.halo;
  if (part.aligned && x0 >= 0 && x0 + cut.chunks * kPixels <= part.width && y0 >= 0 && y0 + rows <= part.height) {
    const uint8_t *source = part.source + y0 * part.source_pitch + x0 * kChannels;
#pragma unroll 4
    for (int item = lane; item < rows * cut.chunks; item += 32) {
      int row, chunk;
      cut.locate(item, &row, &chunk);
      copy_chunk(quads + row * pitch + chunk * 4, source + row * part.source_pitch + chunk * 16);
    }
    return;
  }
  // Chunks of the frame's pixels, if they are aligned, then the pixels one by one that lie beside it or in a chunk at
  // its edge.
  const int left = part.aligned ? min(x0 < 0 ? -x0 / kPixels : 0, cut.chunks) : 0;
  const int right = part.aligned ? min(max((part.width - x0) / kPixels, left), cut.chunks) : 0;
  const auto row_of = [&](int row) { return near_border_index(p.border, y0 + row, part.height); };
  const auto column_of = [&](int x) {
    const int half = shape.step - 1, pixel = near_border_index(p.border, x >> half, part.width >> half);
    return pixel < 0 ? -1 : pixel << half | (x & half);
  };
#pragma unroll 1
  for (int item = lane; item < rows * cut.chunks; item += 32) {
    int row, chunk;
    cut.locate(item, &row, &chunk);
    if (chunk < left || chunk >= right) continue;
    const int sy = row_of(row);
    uint32_t *to = quads + row * pitch + chunk * 4;
    const uint32_t border = part.border_word[0], next = part.border_word[1];
    if (sy >= 0)
      copy_chunk(to, part.source + sy * part.source_pitch + (x0 + chunk * kPixels) * kChannels);
    else
      *reinterpret_cast<uint4 *>(to) = make_uint4(border, next, border, next);
  }
  using Pixel = PixelWord<kChannels>;
  // Pixels that results depend on.
  const int first = cut.halo - shape.halo_x;
  const int last = min(cut.chunks * kPixels - first, part.width + shape.halo_x - x0);
  const int edge_left = max(left * kPixels - first, 0), edge = edge_left + max(last - right * kPixels, 0);
  constexpr int kAtOnce = 4;  // on the way
#pragma unroll 1
  for (int item0 = lane; item0 < rows * edge; item0 += 32 * kAtOnce) {
    const uint8_t *from[kAtOnce];
    Pixel *to[kAtOnce], pixel[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) {
      from[i] = nullptr;
      to[i] = nullptr;
      pixel[i] = 0;
      const int item = item0 + 32 * i;
      if (item >= rows * edge) continue;
      const int row = item / edge, at = item - row * edge;
      const int x = at < edge_left ? first + at : right * kPixels + at - edge_left;
      const int sx = column_of(x0 + x), sy = row_of(row);
      pixel[i] = static_cast<Pixel>(part.border_word[x & (shape.step - 1)]);
      to[i] = reinterpret_cast<Pixel *>(quads + row * pitch) + x;
      if (sx >= 0 && sy >= 0) from[i] = part.source + sy * part.source_pitch + sx * kChannels;
    }
    if (part.aligned) {
#pragma unroll
      for (int i = 0; i < kAtOnce; i++)
        if (from[i]) pixel[i] = __ldg(reinterpret_cast<const Pixel *>(from[i]));
    } else {
#pragma unroll
      for (int i = 0; i < kAtOnce; i++) {
        uint32_t bytes = 0;
#pragma unroll
        for (int c = 0; c < kChannels; c++) bytes |= static_cast<uint32_t>(from[i] ? __ldg(from[i] + c) : 0) << 8 * c;
        if (from[i]) pixel[i] = static_cast<Pixel>(bytes);
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; i++)
      if (to[i]) *to[i] = pixel[i];
  }
}

// Makes quads of rows that load_bytes() has loaded, in their place.
template <int kChannels>
__device__ inline void spread_rows(const QuadTile &shape, int rows, int pitch, uint32_t *quads) {
  constexpr int kSubtiles = subtiles(kChannels), kAtOnce = 4;  // chunks of a thread
  const ChunkedRow &cut = shape.quads;
  const int lane = threadIdx.x % 32, subtile = shape.width / kChunk * kChannels;
  const uint32_t *const words = quads + (shape.bytes[kChannels / 2].halo - cut.halo) / kChunk * kChannels;
  const int rows_at_once = 32 * kAtOnce * cut.reciprocal >> 20;
#pragma unroll 1
  for (int row0 = 0; row0 < rows; row0 += rows_at_once) {
    const int items = min(rows_at_once, rows - row0) * cut.chunks;
    uint32_t *to[kAtOnce];
    uint4 chunk[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) {
      const int item = lane + 32 * i;
      if (item >= items) continue;
      int row, at;
      cut.locate(item, &row, &at);
      const uint32_t *from = words + (row0 + row) * pitch + at * kChannels;
      to[i] = quads + (row0 + row) * pitch + at * kChunk;
      uint32_t of_subtiles[kSubtiles][kChannels];
#pragma unroll
      for (int s = 0; s < kSubtiles; s++)
#pragma unroll
        for (int w = 0; w < kChannels; w++) of_subtiles[s][w] = from[s * subtile + w];
      chunk[i] = interleave<kChannels>(of_subtiles);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kAtOnce; i++)
      if (lane + 32 * i < items) *reinterpret_cast<uint4 *>(to[i]) = chunk[i];
  }
}

// Loads rows of three channels as quads.
__device__ inline void load_pixels(const FrameParams &p, const PartParams &part, const QuadTile &shape, int tile_x,
                                   int y0, int rows, int pitch, uint32_t *quads) {
  const ChunkedRow &cut = shape.quads;
  const int lane = threadIdx.x % 32, x0 = tile_x - cut.halo;
  const auto put = [&](int row, int chunk, const uint32_t(&words)[1][3]) {
    *reinterpret_cast<uint4 *>(quads + row * pitch + chunk * kChunk) = interleave<3>(words);
  };
  if (part.aligned && x0 >= 0 && x0 + cut.chunks * kChunk <= part.width && y0 >= 0 && y0 + rows <= part.height) {
    const uint8_t *source = part.source + y0 * part.source_pitch + x0 * 3;
#pragma unroll 4
    for (int item = lane; item < rows * cut.chunks; item += 32) {
      int row, chunk;
      cut.locate(item, &row, &chunk);
      uint32_t words[1][3];
      read_words<3>(source + row * part.source_pitch + chunk * (kChunk * 3), words[0]);
      put(row, chunk, words);
    }
    return;
  }
#pragma unroll 1
  for (int item = lane; item < rows * cut.chunks; item += 32) {
    int row, chunk;
    cut.locate(item, &row, &chunk);
    const int x = x0 + chunk * kChunk, sy = near_border_index(p.border, y0 + row, part.height);
    if (x >= part.width + cut.halo) continue;  // no result depends on it
    uint32_t words[1][3];
    if (part.aligned && sy >= 0 && x >= 0 && x + kChunk <= part.width)
      read_words<3>(part.source + sy * part.source_pitch + x * 3, words[0]);
    else
      gather_words<3>(p, part, x, y0 + row, words[0]);
    put(row, chunk, words);
  }
}

// Loads `rows` rows of the tile from `first` on, the halo's first being 0, into shared memory, `pitch` words a row, a
// multiple of 4. One warp does it; it has to wait_for_chunks() and meet before it reads them. kFolded: rows of one, two
// or four channels stay as they lie in memory. kWords: samples have 16 bits, so that a pixel's bytes are even.
template <bool kFolded = false, bool kWords = false>
__device__ inline void load_rows(const FrameParams &p, const QuadTile &shape, const Tile &tile, int first, int rows,
                                 int pitch, uint32_t *quads) {
  const PartParams &part = tile.part;
  const int y0 = tile.y0 - shape.halo_y + first;
  const auto load_and_spread = [&](auto channels) {
    constexpr int kChannels = decltype(channels)::value;
    load_bytes<kChannels>(p, part, shape, tile.x0, y0, rows, pitch, quads);
    if constexpr (!kFolded) {
      wait_for_chunks();
      __syncwarp();
      spread_rows<kChannels>(shape, rows, pitch, quads);
    }
  };
  if constexpr (!kWords)
    if (part.channels == 1) return load_and_spread(std::integral_constant<int, 1>());
  if constexpr (!kWords && !kFolded)
    if (part.channels == 3) return load_pixels(p, part, shape, tile.x0, y0, rows, pitch, quads);
  if (part.channels == 2) return load_and_spread(std::integral_constant<int, 2>());
  load_bytes<4>(p, part, shape, tile.x0, y0, rows, pitch, quads);
}

// Results, with copied and filled channels in their places: those of `original`, or of the plan. `word`: of the pixel.
__device__ inline uint32_t merge_quad(const PartParams &part, uint32_t result, uint32_t original, int word = 0) {
  return (result & part.filter_bits[word]) | (original & part.copy_bits[word]) | part.fill_word[word];
}

// Writes quads of one column of a tile, from above. All lanes of a warp do, lanes 4n ... 4n + 3 in neighbouring
// columns, of which the first is a multiple of 4: they trade bytes so that each has a word as it lies in memory. With
// subtiles lane n of as many as there are gets the pixels of subtile n, with three channels lane n of four the word n
// of four pixels.
class QuadWriter {
 public:
  // `column` counts the quads of the tile's row; beyond it, or below the last row, nothing is written. `folded`: quads
  // are words as they lie in memory, of one, two or four channels.
  __device__ QuadWriter(const QuadTile &shape, const Tile &tile, int column, int row, bool folded = false)
      : pitch_(tile.part.target_pitch), partner_(threadIdx.x ^ 1) {
    const int channels = tile.part.channels, n = threadIdx.x & ((channels == 3 ? 4 : subtiles(channels)) - 1);
    int x = tile.x0 + column - n, skipped = 0, most = 4;
    if (folded) {
      x = tile.x0 + column * subtiles(channels);
    } else if (channels == 3) {
      partner_ = threadIdx.x + 1;
      select_ = n == 0 ? 0x4210 : n == 1 ? 0x5421 : 0x6542;
      skipped = 4 * n;
      most = n < 3 ? 4 : 0;
    } else {
      select_ = channels == 1 ? (n & 1 ? 0x3715 : 0x6240) : (n & 1 ? 0x3276 : 0x5410);
      x += n * shape.width;
    }
    trades_ = folded || channels == 4 ? 0 : channels == 1 ? 2 : 1;
    bytes_ = min((tile.part.width - x) * channels - skipped, most);
    rows_ = column < shape.width && bytes_ > 0 ? min(shape.height, tile.part.height - tile.y0) - row : 0;
    words_ = __all_sync(0xffffffffu, rows_ <= 0 || (bytes_ == 4 && tile.part.aligned));
    target_ = tile.part.target + (tile.y0 + row) * pitch_ + x * channels + skipped;
  }

  // Calls function(put); put(quad) writes and goes on to the next row, and does nothing when none are left. kCompact:
  // it is compiled once, and put() finds out every time how to write, for functions that are much code.
  template <bool kCompact = false, typename Function>
  __device__ void write(Function function) {
    if (kCompact || !words_) return function([&](uint32_t quad) { put_any(quad); });
    switch (trades_) {
      case 0:
        return function([&](uint32_t quad) { put_word(quad); });
      case 1:
        return function([&](uint32_t quad) { put_word(trade(quad)); });
      default:
        return function([&](uint32_t quad) { put_word(trade_again(trade(quad))); });
    }
  }

 private:
  __device__ uint32_t trade(uint32_t quad) const {
    return __byte_perm(quad, __shfl_sync(0xffffffffu, quad, partner_), select_);
  }
  __device__ static uint32_t trade_again(uint32_t quad) {
    return __byte_perm(quad, __shfl_xor_sync(0xffffffffu, quad, 2), threadIdx.x & 2 ? 0x3276 : 0x5410);
  }

  __device__ void put_word(uint32_t word) {
    if (rows_ > 0) *reinterpret_cast<uint32_t *>(target_) = word;
    rows_--;
    target_ += pitch_;
  }

  __device__ void put_any(uint32_t quad) {
    if (trades_ > 0) quad = trade(quad);
    if (trades_ > 1) quad = trade_again(quad);
    if (words_) return put_word(quad);
    if (rows_ > 0) {
#pragma unroll 1
      for (int i = 0; i < bytes_; i++, quad >>= 8) target_[i] = static_cast<uint8_t>(quad);
    }
    rows_--;
    target_ += pitch_;
  }

  uint8_t *target_;
  int64_t pitch_;
  unsigned partner_, select_;
  int trades_, bytes_, rows_;
  bool words_;
};

}  // namespace cudaconv
