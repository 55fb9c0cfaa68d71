// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tiles of dense 8-bit planes in shared memory, as words of four bytes (u8x4s) that kernels treat alike in all formats.
// With three or four channels a u8x4 is a pixel. With fewer, a tile consists of subtiles side by side, and a u8x4 holds
// the pixels at the same position of each:
//
//   4 channels   3 channels   2 channels                    1 channel
//   r g b a      r g b -      u v of subtile 0, u v of 1    y of subtiles 0, 1, 2, 3
//
// Example, one channel, subtiles of 60 pixels: u8x4 5 holds the pixels 5, 65, 125 and 185.
//
// So kernels need not know the number of channels: steps along rows and columns are steps from u8x4 to u8x4. Rows are
// loaded as they are in memory and then converted to u8x4s in place. Before results are written, lanes exchange bytes
// of neighbouring columns. So planes of any channels are read and written in whole words.
#pragma once

#include <type_traits>

#include "cuda/device/async_copy.cuh"
#include "cuda/device/tile.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"

namespace cudaconv {

constexpr int kChunk = 4;  // u8x4s that are loaded together, from as many neighbouring pixels

__host__ __device__ constexpr int round_to_chunks(int u8x4s) {
  return (u8x4s + kChunk - 1) / kChunk * kChunk;
}

// How the rows of a tile, halo included, are divided into chunks.
struct ChunkedRow {
  int32_t halo;         // size of the halo on each side
  int32_t chunks;       // chunks of a row, at most 128
  uint32_t reciprocal;  // ceil(2^20 / chunks)

  __device__ void locate(int item, int *row, int *chunk) const {
    *row = static_cast<int>(item * reciprocal >> 20);
    *chunk = item - *row * chunks;
  }
};

// The size of tiles, the same for all parts of a frame.
struct U8x4Tile {
  int32_t width, height;   // size of the results: u8x4s of a row, rows
  int32_t halo_x, halo_y;  // halo: u8x4s in shared memory on each side, a multiple of kChunk; rows above and below
  int32_t step;            // u8x4s of a pixel: 2 for pixels of eight bytes, else 1
  ChunkedRow bytes[4];     // chunks of 16 bytes as in memory, with 1, 2, 3 and 4 channels; the halo in bytes
  ChunkedRow u8x4s;        // chunks of kChunk u8x4s, from as many pixels of each subtile; the halo in u8x4s

  // U8x4s of a row with its halo.
  __host__ __device__ int whole_row() const { return width + 2 * halo_x; }
};

// U8x4s of a pixel. For bytes the compiler then knows that it is one.
template <bool kWords>
__device__ inline int step_of(const U8x4Tile &tile) {
  return kWords ? tile.step : 1;
}

// The parameters of kernels on u8x4s.
struct U8x4Params : FrameParams {
  U8x4Tile tile;
  uint32_t sample_bits;  // bits of the samples of a u8x4 of 16-bit samples, 0 for bytes
};
// The parameters of dilations and erosions. For erosions samples are complemented before and after.
struct U8x4ExtremumParams : U8x4Params {
  uint32_t flip;  // xored with samples before and after
};

// The tile size for these results. `width` is a multiple of kChunk.
inline U8x4Tile make_u8x4_tile(int width, int height, int radius_x, int radius_y, int step = 1) {
  const auto cut = [](int halo, int all, int of_chunk) {
    const int chunks = (all + 2 * halo) / of_chunk;
    return ChunkedRow{halo, chunks, ((1u << 20) + chunks - 1) / chunks};
  };
  U8x4Tile tile = {};
  tile.width = width;
  tile.height = height;
  tile.halo_x = round_to_chunks(radius_x * step);
  tile.halo_y = radius_y;
  tile.step = step;
  tile.u8x4s = cut(tile.halo_x, width, kChunk);
  for (int channels = 1; channels <= 4; channels++) {
    // With three channels, rows of u8x4s can begin at any byte of a chunk.
    const int bytes = width * subtiles(channels) * channels + (channels == 3 ? 27 : 0);
    tile.bytes[channels - 1] = cut((tile.halo_x * channels + 15) / 16 * 16, bytes, 16);
  }
  return tile;
}

// Interleaves kChunk pixels of each subtile, given as kChannels words for each, to u8x4s.
template <int kChannels>
__device__ inline void interleave(const uint32_t (&words)[subtiles(kChannels)][kChannels], uint32_t (&u8x4s)[kChunk]) {
  if constexpr (kChannels == 4) {
    each<kChunk>([&](int i) { u8x4s[i] = words[0][i]; });
  } else if constexpr (kChannels == 3) {
    u8x4s[0] = words[0][0];
    u8x4s[1] = __byte_perm(words[0][0], words[0][1], 0x6543);
    u8x4s[2] = __byte_perm(words[0][1], words[0][2], 0x5432);
    u8x4s[3] = words[0][2] >> 8;
  } else if constexpr (kChannels == 2) {
    each<kChunk>([&](int i) { u8x4s[i] = __byte_perm(words[0][i / 2], words[1][i / 2], i % 2 ? 0x7632 : 0x5410); });
  } else {
    transpose({words[0][0], words[1][0], words[2][0], words[3][0]}, u8x4s);
  }
}

// The inverse of interleave().
template <int kChannels>
__device__ inline void deinterleave(const uint32_t (&u8x4s)[kChunk],
                                    uint32_t (&words)[subtiles(kChannels)][kChannels]) {
  if constexpr (kChannels == 4) {
    each<4>([&](int i) { words[0][i] = u8x4s[i]; });
  } else if constexpr (kChannels == 3) {
    words[0][0] = __byte_perm(u8x4s[0], u8x4s[1], 0x4210);
    words[0][1] = __byte_perm(u8x4s[1], u8x4s[2], 0x5421);
    words[0][2] = __byte_perm(u8x4s[2], u8x4s[3], 0x6542);
  } else if constexpr (kChannels == 2) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      words[0][i] = __byte_perm(u8x4s[2 * i], u8x4s[2 * i + 1], 0x5410);
      words[1][i] = __byte_perm(u8x4s[2 * i], u8x4s[2 * i + 1], 0x7632);
    }
  } else {
    uint32_t of_subtile[4];
    transpose(u8x4s, of_subtile);
    each<4>([&](int s) { words[s][0] = of_subtile[s]; });
  }
}

// Offset in the frame's row of the first byte that is loaded for a tile's row; chunks begin at multiples of 16.
template <int kChannels>
__device__ inline int first_byte(const U8x4Tile &shape, int tile_x) {
  return (tile_x * kChannels - shape.bytes[kChannels - 1].halo) & ~15;
}

// An integer that holds a pixel of kChannels bytes.
template <int kChannels>
using PixelWord = std::conditional_t<kChannels == 1, uint8_t, std::conditional_t<kChannels == 2, uint16_t, uint32_t>>;

// Loads the rows of load_bytes() if they lie completely inside the frame.
__device__ inline void load_whole_chunks(const PartParams &part, const ChunkedRow &cut, int begin, int y0, int rows,
                                         int pitch, uint32_t *u8x4s) {
  const int lane = threadIdx.x % 32;
  const uint8_t *source = part.source + y0 * part.source_pitch + begin;
#pragma unroll 4
  for (int item = lane; item < rows * cut.chunks; item += 32) {
    int row, chunk;
    cut.locate(item, &row, &chunk);
    copy_async(u8x4s + row * pitch + chunk * 4, source + row * part.source_pitch + chunk * 16);
  }
}

// Loads the chunks of load_bytes() that lie completely inside the frame, `left` to `right` - 1. With Border::Constant
// it also fills those outside: chunks before `left` and from `behind` on, and rows outside. Each lane looks up the
// position of one row.
template <int kChannels>
__device__ inline void load_chunks(const FrameParams &p, const PartParams &part, const ChunkedRow &cut, int begin,
                                   int y0, int rows, int pitch, bool constant, int left, int right, int behind,
                                   uint32_t *u8x4s) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int row0 = 0; row0 < rows; row0 += 32) {
    const int count = min(rows - row0, 32);
    const int source_row = border_index_no_div(p.border, y0 + row0 + min(lane, count - 1), part.height);
#pragma unroll 2
    for (int item = lane; item - lane < count * cut.chunks; item += 32) {
      int row, chunk;
      cut.locate(item, &row, &chunk);
      const int sy = __shfl_sync(0xffffffffu, source_row, row & 31);
      if (row >= count) continue;
      const int byte = begin + chunk * 16;
      uint32_t *to = u8x4s + (row0 + row) * pitch + chunk * 4;
      if (sy >= 0 && chunk >= left && chunk < right) {
        copy_async(to, part.source + sy * part.source_pitch + byte);
      } else if (constant && (sy < 0 || chunk < left || chunk >= behind)) {
        // The words of a row repeat after kWords; kPeriods of them keep the index positive.
        constexpr int kWords = kChannels == 3 ? 3 : 2, kPeriods = 64;
        const int word = byte / 4 + kPeriods * kWords;
        const auto border = [&](int i) { return part.border_word[(word + i) % kWords]; };
        *reinterpret_cast<uint4 *>(to) = make_uint4(border(0), border(1), border(2), border(3));
      }
    }
  }
}

// Loads rows, halo included, into shared memory as they lie in global memory. `tile_x` is the tile's first pixel, y0
// the first row to load.
template <int kChannels>
__device__ inline void load_bytes(const FrameParams &p, const PartParams &part, const U8x4Tile &shape, int tile_x,
                                  int y0, int rows, int pitch, uint32_t *u8x4s) {
  const ChunkedRow &cut = shape.bytes[kChannels - 1];
  const int lane = threadIdx.x % 32, begin = first_byte<kChannels>(shape, tile_x), row_bytes = part.width * kChannels;
  if (begin >= 0 && begin + cut.chunks * 16 <= row_bytes && y0 >= 0 && y0 + rows <= part.height) {
    return load_whole_chunks(part, cut, begin, y0, rows, pitch, u8x4s);
  }
  // Chunks `left` to `right` - 1 are in the frame, chunk `right` may be in part, and those from `behind` on are not.
  // Example, a row of 100 bytes from byte -16 on: left is 1, right is 7, with four bytes of the frame, and behind is 8.
  const bool constant = p.border == Border::Constant;
  const int left = min(begin < 0 ? -begin / 16 : 0, cut.chunks);
  const int right = min(max((row_bytes - begin) / 16, left), cut.chunks);
  const int behind = (row_bytes - begin + 15) / 16;
  load_chunks<kChannels>(p, part, cut, begin, y0, rows, pitch, constant, left, right, behind, u8x4s);
  // Pixel by pixel: what lies beside the frame, or in a chunk at its edge. A pixel of three bytes may begin or end in a
  // chunk that is already loaded; those bytes are not written again.
  const auto is_done = [&](int byte) {
    const int chunk = byte / 16;
    return (chunk >= left && chunk < right) || (constant && (chunk < left || chunk >= behind));
  };
  const auto column_of = [&](int x) {
    const int half = shape.step - 1, pixel = border_index_no_div(p.border, x >> half, part.width >> half);
    return pixel < 0 ? -1 : pixel << half | (x & half);
  };
  using Pixel = PixelWord<kChannels>;
  const int first = tile_x - shape.halo_x, end = (begin + cut.chunks * 16) / kChannels;
  const int left_pixels = constant ? 0 : max(-first, 0);
  const int beyond = max((begin + right * 16) / kChannels, max(first, 0));
  const int last = min(end, constant ? (begin + behind * 16 + kChannels - 1) / kChannels : part.width + shape.halo_x);
  const int edge = left_pixels + (constant && right >= behind ? 0 : max(last - beyond, 0));
#pragma unroll 1
  for (int item = lane; item < rows * edge; item += 32) {
    const int row = item / edge, at = item - row * edge;
    const int x = at < left_pixels ? first + at : beyond + at - left_pixels;
    const int sx = column_of(x), sy = border_index_no_div(p.border, y0 + row, part.height);
    if (constant && sy < 0) continue;
    uint8_t *const to = reinterpret_cast<uint8_t *>(u8x4s + row * pitch) - begin + x * kChannels;
    const bool inside = sx >= 0 && sy >= 0;
    const uint8_t *const from = part.source + max(sy, 0) * part.source_pitch + max(sx, 0) * kChannels;
    const uint32_t border = part.border_word[x & (shape.step - 1)];
    if constexpr (kChannels == 3) {
#pragma unroll
      for (int c = 0; c < 3; c++)
        if (!is_done(x * 3 - begin + c)) to[c] = static_cast<uint8_t>(inside ? __ldg(from + c) : border >> 8 * c);
    } else {
      *reinterpret_cast<Pixel *>(to) =
          inside ? __ldg(reinterpret_cast<const Pixel *>(from)) : static_cast<Pixel>(border);
    }
  }
}

// Converts rows that load_bytes() has loaded to u8x4s, in place.
template <int kChannels>
__device__ inline void spread_rows(const U8x4Tile &shape, int tile_x, int rows, int pitch, uint32_t *u8x4s) {
  constexpr int kSubtiles = subtiles(kChannels), kAtOnce = 4;  // chunks that a thread converts at once
  const ChunkedRow &cut = shape.u8x4s;
  const int lane = threadIdx.x % 32, subtile = shape.width / kChunk * kChannels;
  const uint32_t *const words = u8x4s + ((tile_x - cut.halo) * kChannels - first_byte<kChannels>(shape, tile_x)) /
                                            static_cast<int>(sizeof *u8x4s);
  const int rows_at_once = 32 * kAtOnce * cut.reciprocal >> 20;
#pragma unroll 1
  for (int row0 = 0; row0 < rows; row0 += rows_at_once) {
    const int items = min(rows_at_once, rows - row0) * cut.chunks;
    uint32_t *to[kAtOnce];
    uint32_t chunk[kAtOnce][kChunk];
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) {
      const int item = lane + 32 * i;
      if (item >= items) continue;
      int row, at;
      cut.locate(item, &row, &at);
      const uint32_t *from = words + (row0 + row) * pitch + at * kChannels;
      to[i] = u8x4s + (row0 + row) * pitch + at * kChunk;
      uint32_t of_subtiles[kSubtiles][kChannels];
      each<kSubtiles, kChannels>([&](int s, int w) { of_subtiles[s][w] = from[s * subtile + w]; });
      interleave<kChannels>(of_subtiles, chunk[i]);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kAtOnce; i++)
      if (lane + 32 * i < items) store_words<kChunk>(to[i], chunk[i]);
  }
}

// The rows of a tile that a warp has loaded.
struct WarpRows {
  int begin, end;
};

// Loads the first `rows` rows of a tile, halo included, into shared memory, with a pitch of `pitch` words, a multiple
// of
// 4. Each of the kWarps warps of a block loads a multiple of kTogether rows; before reading them it has to call
// wait_for_copies() and synchronise. kSixteen: samples have 16 bits, so the number of bytes of a pixel is even.
template <int kWarps, bool kSixteen, int kTogether = 1>
__device__ inline WarpRows load_share(const FrameParams &p, const U8x4Tile &shape, const Tile &tile, int rows,
                                      int pitch, uint32_t *u8x4s) {
  constexpr int kRound = kWarps * kTogether;
  const int share = (rows + kRound - 1) / kRound * kTogether;
  const int begin = min(static_cast<int>(threadIdx.x / 32) * share, rows);
  const WarpRows own = {begin, min(begin + share, rows)};
  if (own.begin >= own.end) return own;
  const int channels = tile.part.channels, count = own.end - own.begin;
  u8x4s += own.begin * pitch;
  const auto load = [&](auto constant) {
    constexpr int kChannels = decltype(constant)::value;
    load_bytes<kChannels>(p, tile.part, shape, tile.x0, tile.y0 - shape.halo_y + own.begin, count, pitch, u8x4s);
    if constexpr (kChannels != 4) {
      wait_for_copies();
      __syncwarp();
      spread_rows<kChannels>(shape, tile.x0, count, pitch, u8x4s);
    }
  };
  using std::integral_constant;
  if constexpr (!kSixteen) {
    if (channels % 2) {
      channels == 1 ? load(integral_constant<int, 1>()) : load(integral_constant<int, 3>());
      return own;
    }
  }
  channels == 2 ? load(integral_constant<int, 2>()) : load(integral_constant<int, 4>());
  return own;
}

// Writes u8x4s of one column of a tile, row by row from above. All lanes of a warp take part. Lanes 4n ... 4n + 3 have
// neighbouring columns, the first a multiple of 4, and exchange bytes so that each gets a word as it lies in memory.
// With n subtiles, lane i of n gets the pixels of subtile i; with three channels, lane i of four gets word i of four
// pixels.
class U8x4Writer {
 public:
  // `column` counts u8x4s of the tile's row. Columns beyond the tile and rows below the frame are not written.
  __device__ U8x4Writer(const U8x4Tile &shape, const Tile &tile, int column, int row)
      : pitch_(tile.part.target_pitch), partner_(threadIdx.x ^ 1) {
    const int channels = tile.part.channels, n = threadIdx.x & ((channels == 3 ? 4 : subtiles(channels)) - 1);
    int x = tile.x0 + column - n, skipped = 0, most = 4;
    if (channels == 3) {
      partner_ = threadIdx.x + 1;
      select_ = n == 0 ? 0x4210 : n == 1 ? 0x5421 : 0x6542;
      skipped = 4 * n;
      most = n < 3 ? 4 : 0;
    } else {
      select_ = channels == 1 ? (n & 1 ? 0x3715 : 0x6240) : (n & 1 ? 0x3276 : 0x5410);
      x += n * shape.width;
    }
    trades_ = channels == 4 ? 0 : channels == 1 ? 2 : 1;
    bytes_ = min((tile.part.width - x) * channels - skipped, most);
    rows_ = min(shape.height, tile.part.height - tile.y0) - row;
    if (column >= shape.width || bytes_ <= 0) rows_ = 0;
    words_ = __all_sync(0xffffffffu, rows_ <= 0 || bytes_ == 4);
    target_ = tile.part.target + (tile.y0 + row) * pitch_ + x * channels + skipped;
  }

  // Writes a u8x4 and goes on to the next row; does nothing when no rows are left.
  __device__ void put(uint32_t u8x4) {
    if (trades_ > 0) u8x4 = trade(u8x4);
    if (trades_ > 1) u8x4 = trade_again(u8x4);
    if (words_) return put_word(u8x4);
    if (rows_ > 0) {
#pragma unroll 1
      for (int i = 0; i < bytes_; i++, u8x4 >>= 8) target_[i] = static_cast<uint8_t>(u8x4);
    }
    rows_--;
    target_ += pitch_;
  }

  // Whether u8x4s are words as they lie in memory. Then put_word() does what put() does.
  __device__ bool puts_words() const {
    return words_ && trades_ == 0;
  }
  __device__ void put_word(uint32_t word) {
    if (rows_ > 0) *reinterpret_cast<uint32_t *>(target_) = word;
    rows_--;
    target_ += pitch_;
  }

 private:
  __device__ uint32_t trade(uint32_t u8x4) const {
    return __byte_perm(u8x4, __shfl_sync(0xffffffffu, u8x4, partner_), select_);
  }
  __device__ static uint32_t trade_again(uint32_t u8x4) {
    return __byte_perm(u8x4, __shfl_xor_sync(0xffffffffu, u8x4, 2), threadIdx.x & 2 ? 0x3276 : 0x5410);
  }

  uint8_t *target_;
  int64_t pitch_;
  unsigned partner_, select_;
  int trades_, bytes_, rows_;
  bool words_;
};

}  // namespace cudaconv
