// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for linear masks larger than those of sliding.cuh: sums of products by the matrix
// instructions of tensor cores, mma.sync, on 8-bit integers, all of it exact.
//
// There are three structures. Masks with a row and a column of up to 33 samples, 65 where those have 16 bits, go
// through registers alone, in strips; longer ones work on tiles in shared memory, of samples and of results. Masks
// without read samples from a tile and write results straight away. In all of them pixels are taken apart, into words
// of four neighbouring samples of a channel, or the low or the high bytes of those.
//
// A matrix instruction adds to 16 x 8 sums the product of a 16 x k and a k x 8 matrix of bytes, k 32 or 16. Of those a
// lane of the warp, g = lane / 4 and t = lane % 4, holds words of 4 bytes in a row (column) of k:
//
//   16 x k    a[0] row g, a[1] row g + 8, of k = 4t ... 4t + 3; a[2] and a[3] the same of k + 16
//   k x 8     b[0] column g of k = 4t ... 4t + 3; b[1] the same of k + 16
//   sums      c[0], c[1] row g, columns 2t and 2t + 1; c[2], c[3] the same of row g + 8
//
// 16 of k are a chunk here: two words of the one matrix and one of the other. Any two chunks make an instruction.
//
// A row of a mask becomes a Toeplitz matrix: 16 neighbouring pixels are its rows, the samples that their windows reach
// its columns, and the weight of each sample for each pixel its coefficients, zero outside the window. Rows g and g + 8
// stand for pixels 2g and 2g + 1, so that a lane's results lie side by side. A word of it is four neighbours in the
// line of coefficients, from byte (sample - pixel), with zeros before and behind the line.
#pragma once

#include <type_traits>

#include "fragments.h"
#include "launch.cuh"
#include "quads.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kTensorTileWidth = 128, kTensorBlocks = kTensorTileWidth / 16;  // pixels; of 16 pixels

// Bytes of a row of a plane: an odd multiple of 16, so that words of eight rows below each other, four neighbours in
// each, lie in different banks.
CUDACONV_HOST_DEVICE constexpr int plane_pitch(int bytes) {
  return (bytes + 15) / 16 % 2 ? (bytes + 15) / 16 * 16 : (bytes + 15) / 16 * 16 + 16;
}

// Columns of a plane left and right of the tile for a class of radii: whole vectors of 16 bytes.
CUDACONV_HOST_DEVICE constexpr int plane_margin(int radius) {
  return (radius + 15) / 16 * 16;
}

CUDACONV_HOST_DEVICE constexpr int source_pitch(int radius) {
  return plane_pitch(kTensorTileWidth + 2 * plane_margin(radius));
}
constexpr int kResultPitch = plane_pitch(kTensorTileWidth + 1);

// One plane a channel in shared memory. `data` is the sample of channel 0 at the tile's corner.
struct Planes {
  uint8_t *data;
  int pitch, plane_bytes;
  __device__ uint8_t *at(int c, int x, int y) const { return data + c * plane_bytes + y * pitch + x; }
};

// ---- Matrix instructions ----

// Whether the code is for chips that have these. For others kernels are empty, which is what takes no time to compile:
// KernelSets keeps them from being launched.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
constexpr bool kHasMatrixInstructions = true;
#else
constexpr bool kHasMatrixInstructions = false;
#endif

struct Sums {
  int32_t v[4];
};

__device__ inline Sums all(int32_t v) {
  return {{v, v, v, v}};
}

// The product of one chunk each, or of two, added to `c`; the bytes of either matrix are signed or not.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums mma(const uint32_t (&a)[2 * kChunks], const uint32_t (&b)[kChunks], const Sums &c) {
  static_assert(!kSignedA || !kSignedB, "samples have no sign");
  Sums d = c;
#ifndef __CUDACC__
  standin::integer_mma(16 * kChunks, a, kSignedA, b, kSignedB, c.v, d.v);
#elif __CUDA_ARCH__ >= 800
#define CUDACONV_MMA(types)                                                                                        \
  if constexpr (kChunks == 2)                                                                                      \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types                                                             \
        ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                                 \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2 * kChunks - 2]), "r"(a[2 * kChunks - 1]), "r"(b[0]), "r"(b[kChunks - 1]),  \
          "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]));                                                     \
  else                                                                                                             \
    asm("mma.sync.aligned.m16n8k16.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]))
  if constexpr (kSignedA) {
    CUDACONV_MMA("s8.u8");
  } else if constexpr (kSignedB) {
    CUDACONV_MMA("u8.s8");
  } else {
    CUDACONV_MMA("u8.u8");
  }
#undef CUDACONV_MMA
#endif
  return d;
}

// sums + a * b over all chunks.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums multiply(const uint32_t (&a)[kChunks][2], const uint32_t (&b)[kChunks], Sums sums) {
#pragma unroll
  for (int c = 0; c + 1 < kChunks; c += 2)
    sums = mma<kSignedA, kSignedB, 2>({a[c][0], a[c][1], a[c + 1][0], a[c + 1][1]}, {b[c], b[c + 1]}, sums);
  if constexpr (kChunks % 2) sums = mma<kSignedA, kSignedB, 1>(a[kChunks - 1], {b[kChunks - 1]}, sums);
  return sums;
}

// sums * 256 + more, modulo 2^32.
__device__ inline Sums times_256(const Sums &sums, int32_t more) {
  const auto one = [&](int32_t v) {
    return static_cast<int32_t>(static_cast<uint32_t>(v) * 256 + static_cast<uint32_t>(more));
  };
  return {{one(sums.v[0]), one(sums.v[1]), one(sums.v[2]), one(sums.v[3])}};
}

// The same number, as one that may differ from lane to lane: v * 256 + it is then a multiply-add. With one that all
// share it would be a shift, and the units that shift have more to do than those that multiply.
__device__ inline int32_t in_register(int32_t v) {
  return __shfl_sync(0xffffffffu, v, 0);
}

// ---- Lines of coefficients ----

// In shared memory a line has zeros before and behind it.
constexpr int kLinePadding = 32;  // bytes, on either side
CUDACONV_HOST_DEVICE constexpr int padded_words(int line_words) {
  return line_words + 2 * kLinePadding / 4;
}

// Word i of `line` with its padding.
__device__ inline uint32_t padded_word(const uint32_t *line, int line_words, int i) {
  i -= kLinePadding / 4;
  return i >= 0 && i < line_words ? line[i] : 0;
}

// Four bytes of a padded line from byte `first` of the line, which is at least -kLinePadding. Reads a word past them.
__device__ inline uint32_t four_bytes(const uint32_t *padded, int first) {
  first += kLinePadding;
  return __funnelshift_r(padded[first / 4], padded[first / 4 + 1], first % 4 * 8);
}

// ---- From interleaved samples to planes, and back ----

// A group is as many pixels as whole vectors of 16 bytes hold.
template <int kChannels>
struct Group {
  static constexpr int kVectors = kChannels == 3 ? 3 : 1;
  static constexpr int kWords = 4 * kVectors, kPixels = 4 * kWords / kChannels, kPlaneWords = kPixels / 4;
};

__device__ inline uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);
}

// Four words of four bytes as a matrix, transposed.
__device__ inline void transpose(const uint32_t (&in)[4], uint32_t (&out)[4]) {
  const uint32_t t0 = choose_bytes(in[0], in[1], 0x5140), t1 = choose_bytes(in[2], in[3], 0x5140);
  const uint32_t t2 = choose_bytes(in[0], in[1], 0x7362), t3 = choose_bytes(in[2], in[3], 0x7362);
  out[0] = choose_bytes(t0, t1, 0x5410);
  out[1] = choose_bytes(t0, t1, 0x7632);
  out[2] = choose_bytes(t2, t3, 0x5410);
  out[3] = choose_bytes(t2, t3, 0x7632);
}

// Four pixels as they lie in memory to a word of each of their bytes: with 8-bit samples, of each channel.
template <int kChannels>
__device__ inline void deinterleave(const uint32_t (&in)[kChannels], uint32_t (&channel)[kChannels]) {
  if constexpr (kChannels == 1) {
    channel[0] = in[0];
  } else if constexpr (kChannels == 2) {
    channel[0] = choose_bytes(in[0], in[1], 0x6420);
    channel[1] = choose_bytes(in[0], in[1], 0x7531);
  } else if constexpr (kChannels == 3) {  // abca bcab cabc
    channel[0] = choose_bytes(choose_bytes(in[0], in[1], 0x0630), in[2], 0x5210);
    channel[1] = choose_bytes(choose_bytes(in[0], in[1], 0x0741), in[2], 0x6210);
    channel[2] = choose_bytes(choose_bytes(in[0], in[1], 0x0052), in[2], 0x7410);
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

// The same of three of four bytes, from `first` on.
__device__ inline void deinterleave_three(const uint32_t (&in)[4], int first, uint32_t (&channel)[3]) {
  const uint32_t pairs = 0x5140 + 0x1111 * first, last = 0x62 + 0x11 * first;
  const uint32_t t0 = choose_bytes(in[0], in[1], pairs), t1 = choose_bytes(in[2], in[3], pairs);
  channel[0] = choose_bytes(t0, t1, 0x5410);
  channel[1] = choose_bytes(t0, t1, 0x7632);
  channel[2] = choose_bytes(choose_bytes(in[0], in[1], last), choose_bytes(in[2], in[3], last), 0x5410);
}

// And back.
template <int kChannels>
__device__ inline void interleave_channels(const uint32_t (&channel)[kChannels], uint32_t (&out)[kChannels]) {
  if constexpr (kChannels == 1) {
    out[0] = channel[0];
  } else if constexpr (kChannels == 2) {
    out[0] = choose_bytes(channel[0], channel[1], 0x5140);
    out[1] = choose_bytes(channel[0], channel[1], 0x7362);
  } else if constexpr (kChannels == 3) {
    const uint32_t a = channel[0], b = channel[1], c = channel[2];
    out[0] = choose_bytes(choose_bytes(a, b, 0x1040), c, 0x3410);
    out[1] = choose_bytes(choose_bytes(a, b, 0x6205), c, 0x3250);
    out[2] = choose_bytes(choose_bytes(a, b, 0x0730), c, 0x7216);
  } else {
    transpose(channel, out);
  }
}

// The same of a group; word i of channel c is plane[c * kPlaneWords + i].
template <int kChannels, int kWords>
__device__ inline void deinterleave_group(const uint32_t (&in)[kWords], uint32_t (&plane)[kWords]) {
  constexpr int kPlaneWords = kWords / kChannels;
#pragma unroll
  for (int i = 0; i < kPlaneWords; i++) {
    uint32_t pixels[kChannels], channel[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; c++) pixels[c] = in[i * kChannels + c];
    deinterleave<kChannels>(pixels, channel);
#pragma unroll
    for (int c = 0; c < kChannels; c++) plane[c * kPlaneWords + i] = channel[c];
  }
}

template <int kChannels, int kWords>
__device__ inline void interleave_group(const uint32_t (&plane)[kWords], uint32_t (&out)[kWords]) {
  constexpr int kPlaneWords = kWords / kChannels;
#pragma unroll
  for (int i = 0; i < kPlaneWords; i++) {
    uint32_t pixels[kChannels], channel[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; c++) channel[c] = plane[c * kPlaneWords + i];
    interleave_channels<kChannels>(channel, pixels);
#pragma unroll
    for (int c = 0; c < kChannels; c++) out[i * kChannels + c] = pixels[c];
  }
}

// kWords words at an address that is a multiple of their size; a multiple of 16 bytes where there are more than four.
template <int kWords>
__device__ inline void load_words(const void *from, uint32_t *to) {
  if constexpr (kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords / 4; i++) {
      const uint4 v = static_cast<const uint4 *>(from)[i];
      to[4 * i] = v.x;
      to[4 * i + 1] = v.y;
      to[4 * i + 2] = v.z;
      to[4 * i + 3] = v.w;
    }
  } else if constexpr (kWords == 2) {
    const uint2 v = *static_cast<const uint2 *>(from);
    to[0] = v.x;
    to[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i++) to[i] = static_cast<const uint32_t *>(from)[i];
  }
}

template <int kWords>
__device__ inline void store_words(void *to, const uint32_t *from) {
  if constexpr (kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords / 4; i++)
      static_cast<uint4 *>(to)[i] = make_uint4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
  } else if constexpr (kWords == 2) {
    *static_cast<uint2 *>(to) = make_uint2(from[0], from[1]);
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i++) static_cast<uint32_t *>(to)[i] = from[i];
  }
}

// The groups of columns first ... last - 1 of the tile's rows with their halo, which lie inside the part. Where kInside
// so do the rows.
template <int kChannels, bool kInside>
__device__ inline void load_groups(const TensorParams &p, const Tile &tile, const Planes &planes, int first, int last,
                                   int top, int bottom) {
  using G = Group<kChannels>;
  // Groups of a thread that are under way at a time.
  constexpr int kNone = INT32_MIN;
  constexpr int kBatch = kChannels == 3 ? 2 : kInside ? 6 : 4;
  const PartParams &part = tile.part;
  const int columns = (last - first) / G::kPixels, threads = static_cast<int>(blockDim.x);
  int y = top + static_cast<int>(threadIdx.x) / columns, column = static_cast<int>(threadIdx.x) % columns;
  const int step_y = threads / columns, step_column = threads % columns;
  while (y < bottom) {
    uint32_t word[kBatch][G::kWords];
    int to[kBatch];  // from the tile's corner
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      to[k] = kNone;
      if (y < bottom) {
        const int x = first + column * G::kPixels, row = kInside ? y : border_index(p.border, y, part.height);
        to[k] = (y - tile.y0) * planes.pitch + x - tile.x0;
        if (kInside || row >= 0) {
          const auto *from = reinterpret_cast<const uint4 *>(part.source + row * part.source_pitch + x * kChannels);
#pragma unroll
          for (int i = 0; i < G::kVectors; i++) {
            const uint4 v = __ldg(from + i);
            word[k][4 * i] = v.x;
            word[k][4 * i + 1] = v.y;
            word[k][4 * i + 2] = v.z;
            word[k][4 * i + 3] = v.w;
          }
        } else {
#pragma unroll
          for (int i = 0; i < G::kWords; i++) word[k][i] = part.border_word[i % 3];
        }
      }
      y += step_y;
      column += step_column;
      if (column >= columns) {
        column -= columns;
        y++;
      }
    }
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      if (to[k] == kNone) continue;
      uint32_t plane[G::kWords];
      deinterleave_group<kChannels>(word[k], plane);
#pragma unroll
      for (int c = 0; c < kChannels; c++)
        store_words<G::kPlaneWords>(planes.data + to[k] + c * planes.plane_bytes, plane + c * G::kPlaneWords);
    }
  }
}

// Fills the planes with all that windows of the tile's pixels reach. All threads of the block take part.
template <int kChannels>
__device__ inline void load_planes(const TensorParams &p, const Tile &tile, const Planes &planes) {
  constexpr int kPixels = Group<kChannels>::kPixels;
  const PartParams &part = tile.part;
  const int left = tile.x0 - p.radius_x, right = min(tile.x0 + kTensorTileWidth, part.width) + p.radius_x;
  const int top = tile.y0 - p.radius_y, bottom = min(tile.y0 + p.tile_height, part.height) + p.radius_y;
  int first = max(left & ~(kPixels - 1), 0);
  int last = min((right + kPixels - 1) & ~(kPixels - 1), part.width & ~(kPixels - 1));
  if (!part.aligned || last < first) first = last = left;
  if (first < last) {
    if (top >= 0 && bottom <= part.height)
      load_groups<kChannels, true>(p, tile, planes, first, last, top, bottom);
    else
      load_groups<kChannels, false>(p, tile, planes, first, last, top, bottom);
  }
  // The columns before and behind those, pixel by pixel.
  const int before = max(first - left, 0), columns = before + max(right - last, 0);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < columns * (bottom - top); i += static_cast<int>(blockDim.x)) {
    const int row = i / columns, column = i - row * columns;
    const int x = column < before ? left + column : last + column - before, y = top + row;
    const int from_x = border_index(p.border, x, part.width), from_y = border_index(p.border, y, part.height);
    const uint8_t *from = part.source + from_y * part.source_pitch + from_x * kChannels;
    uint8_t *to = planes.at(0, x - tile.x0, y - tile.y0);
#pragma unroll
    for (int c = 0; c < kChannels; c++)
      to[c * planes.plane_bytes] =
          from_x < 0 || from_y < 0 ? static_cast<uint8_t>(part.channel[c].border_value) : __ldg(from + c);
  }
}

// Writes the tile to the target: filtered channels from `results`, copied ones from `source`.
template <int kChannels>
__device__ inline void store_planes(const TensorParams &p, const Tile &tile, const Planes &source,
                                    const Planes &results) {
  using G = Group<kChannels>;
  constexpr int kColumns = kTensorTileWidth / G::kPixels;
  const PartParams &part = tile.part;
  const int rows = min(p.tile_height, part.height - tile.y0);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < rows * kColumns; i += static_cast<int>(blockDim.x)) {
    const int y = i / kColumns, x = i % kColumns * G::kPixels;
    const int pixels = min(part.width - (tile.x0 + x), G::kPixels);
    if (pixels <= 0) continue;
    uint8_t *to = part.target + (tile.y0 + y) * part.target_pitch + (tile.x0 + x) * kChannels;
    const auto from = [&](int c) { return (part.channel[c].action == Action::Filter ? results : source).at(c, x, y); };
    if (part.aligned && pixels == G::kPixels) {
      uint32_t plane[G::kWords], word[G::kWords];
#pragma unroll
      for (int c = 0; c < kChannels; c++) {
        load_words<G::kPlaneWords>(from(c), plane + c * G::kPlaneWords);
        if (part.channel[c].action != Action::Fill) continue;
#pragma unroll
        for (int w = 0; w < G::kPlaneWords; w++) plane[c * G::kPlaneWords + w] = part.channel[c].fill * 0x01010101u;
      }
      interleave_group<kChannels>(plane, word);
      store_words<G::kWords>(to, word);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < pixels; i++, to += kChannels)
#pragma unroll
      for (int c = 0; c < kChannels; c++)
        to[c] = part.channel[c].action == Action::Fill ? static_cast<uint8_t>(part.channel[c].fill) : from(c)[i];
  }
}

__device__ inline void load_planes(const TensorParams &p, const Tile &tile, const Planes &planes) {
  switch (tile.part.channels) {
    case 1:
      return load_planes<1>(p, tile, planes);
    case 2:
      return load_planes<2>(p, tile, planes);
    case 3:
      return load_planes<3>(p, tile, planes);
    default:
      return load_planes<4>(p, tile, planes);
  }
}

__device__ inline void store_planes(const TensorParams &p, const Tile &tile, const Planes &source,
                                    const Planes &results) {
  switch (tile.part.channels) {
    case 1:
      return store_planes<1>(p, tile, source, results);
    case 2:
      return store_planes<2>(p, tile, source, results);
    case 3:
      return store_planes<3>(p, tile, source, results);
    default:
      return store_planes<4>(p, tile, source, results);
  }
}

// ---- Samples of two bytes ----
//
// Their low and their high bytes are planes of their own, and what the coefficients make of each adds up in the end:
// with 16-bit samples a pixel of n channels has 2n of these planes.

CUDACONV_HOST_DEVICE constexpr int sample_bytes(Samples samples) {
  return samples == Samples::Bytes ? 1 : 2;
}

// Sums of products of byte i of one number and byte j of another, at i + j: `part[k]` counts 256^k.
template <int kParts>
struct PartialSums {
  Sums part[kParts];

  // Modulo 2^32, which is all of it where 32 bits hold the sum.
  __device__ Sums total() const {
    Sums sums = part[kParts - 1];
#pragma unroll
    for (int k = kParts - 2; k >= 0; k--)
#pragma unroll
      for (int i = 0; i < 4; i++)
        sums.v[i] = static_cast<int32_t>(static_cast<uint32_t>(part[k].v[i]) + (static_cast<uint32_t>(sums.v[i]) << 8));
    return sums;
  }

  // Of sum i all but the last 8 * (kParts - 1) bits.
  __device__ int32_t highest(int i) const {
    int32_t v = part[0].v[i];
#pragma unroll
    for (int k = 1; k < kParts; k++) v = (v >> 8) + part[k].v[i];
    return v;
  }
};

// ---- Results ----

// As SumRounding::Divide says, of a sum with its start.
__device__ inline int32_t divide_sum(const SumRounding &r, int32_t v) {
  if (r.absolute) v = abs(v);
  v = min(max(v + r.half, 0), r.limit);
  return static_cast<int32_t>(high_product(static_cast<uint32_t>(v), r.magic) >> r.shift);
}

// Four values as bytes, each clamped to 0 ... 255, the first lowest.
__device__ inline uint32_t pack_clamped(int32_t a, int32_t b, int32_t c, int32_t d) {
#ifdef __CUDACC__
  uint32_t high, word;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(b), "r"(a), "r"(high));
  return word;
#else
  const auto clamped = [](int32_t v) { return static_cast<uint32_t>(min(max(v, 0), 255)); };
  return clamped(a) | clamped(b) << 8 | clamped(c) << 16 | clamped(d) << 24;
#endif
}

// Sums to samples: those of a lane's two pixels side by side in the low half for column 2t, in the high one for 2t + 1.
// All at once, so that none waits for another.
template <Weights kWeights, int kCount>
__device__ inline void round_sums(const SumRounding &r, const Sums (&sums)[kCount], uint32_t (&samples)[kCount]) {
  const auto pack = [&](auto round) {
#pragma unroll
    for (int i = 0; i < kCount; i++)
      samples[i] = pack_clamped(round(sums[i].v[0]), round(sums[i].v[2]), round(sums[i].v[1]), round(sums[i].v[3]));
  };
  if (kWeights == Weights::Rounded || r.how == SumRounding::Shift) return pack([&](int32_t v) { return v >> r.shift; });
  pack([&](int32_t v) { return divide_sum(r, v); });
}

// Byte n of four values, the first one's lowest.
__device__ inline uint32_t pick_bytes(int n, int32_t a, int32_t b, int32_t c, int32_t d) {
  const uint32_t selector = static_cast<uint32_t>(n * 0x11 + 0x40);
  return choose_bytes(choose_bytes(static_cast<uint32_t>(a), static_cast<uint32_t>(b), selector),
                      choose_bytes(static_cast<uint32_t>(c), static_cast<uint32_t>(d), selector), 0x5410);
}

// A lane's sums of all channels to 8-bit samples as they lie in memory, of two pairs of neighbouring pixels: those for
// column 2t, and then those for 2t + 1. Of several such at once, so that none waits for another.
template <Weights kWeights, int kCount, int kChannels>
__device__ inline void round_pixels(const SumRounding &r, const Sums (&sums)[kCount][kChannels],
                                    uint32_t (&words)[kCount][kChannels]) {
  const auto make = [&](auto pack) {
#pragma unroll
    for (int i = 0; i < kCount * kChannels; i++) {
      const auto sum = [&](int n) {
        n += i % kChannels * 4;
        return sums[i / kChannels][n % kChannels].v[n / kChannels % 2 * 2 + n / kChannels / 2];
      };
      words[i / kChannels][i % kChannels] = pack(sum(0), sum(1), sum(2), sum(3));
    }
  };
  const auto clamp = [&](auto round) {
    make([&](int32_t a, int32_t b, int32_t c, int32_t d) {
      return pack_clamped(round(a), round(b), round(c), round(d));
    });
  };
  if (r.how == SumRounding::Byte) {
    const int n = r.shift / 8;
    return make([&](int32_t a, int32_t b, int32_t c, int32_t d) { return pick_bytes(n, a, b, c, d); });
  }
  if (kWeights == Weights::Rounded || r.how == SumRounding::Shift)
    return clamp([&](int32_t v) { return v >> r.shift; });
  clamp([&](int32_t v) { return divide_sum(r, v); });
}

// Two values as 16-bit samples, clamped to 0 ... 65535.
__device__ inline uint32_t pack_clamped(int32_t low, int32_t high) {
#ifdef __CUDACC__
  uint32_t word;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(word) : "r"(high), "r"(low));
  return word;
#else
  const auto clamped = [](int32_t v) { return static_cast<uint32_t>(min(max(v, 0), 65535)); };
  return clamped(low) | clamped(high) << 16;
#endif
}

// Sums to 16-bit samples as they lie in memory: those of a lane's two pixels for column 2t, and for 2t + 1.
template <typename Round>
__device__ inline void pack_samples(const TensorParams &p, uint32_t (&pairs)[2], Round round) {
#pragma unroll
  for (int i = 0; i < 2; i++)
    pairs[i] = __vminu2(pack_clamped(round(i), round(i + 2)), p.sample_mask) << p.sample_shift;
}

template <Weights kWeights, int kParts>
__device__ inline void round_sums(const TensorParams &p, const PartialSums<kParts> &sums, uint32_t (&pairs)[2]) {
  const SumRounding &r = p.finish;
  const auto pack = [&](auto round) { pack_samples(p, pairs, round); };
  if (kWeights == Weights::Long || (kWeights != Weights::Rounded && r.how == SumRounding::ShiftWide))
    return pack([&](int i) { return sums.highest(i) >> r.shift; });
  const Sums total = sums.total();
  if (kWeights == Weights::Rounded || r.how == SumRounding::Shift)
    return pack([&](int i) { return total.v[i] >> r.shift; });
  pack([&](int i) { return divide_sum(r, total.v[i]); });
}

// A lane's samples of all channels, `bytes` as round_sums makes them, to two pairs of neighbouring pixels as they lie
// in memory, one in either half of `words`.
template <int kChannels>
__device__ inline void join_channels(const uint32_t (&bytes)[kChannels], uint32_t (&words)[kChannels]) {
  interleave_channels<kChannels>(bytes, words);
}

template <int kChannels>
__device__ inline void join_channels(const uint32_t (&pairs)[kChannels][2], uint32_t (&words)[2 * kChannels]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    uint32_t *to = words + i * kChannels;
    if constexpr (kChannels == 1) to[0] = pairs[0][i];
#pragma unroll
    for (int c = 0; c + 1 < kChannels; c += 2) {
      to[c / 2] = choose_bytes(pairs[c][i], pairs[c + 1][i], 0x5410);
      to[(c + kChannels) / 2] = choose_bytes(pairs[c][i], pairs[c + 1][i], 0x7632);
    }
  }
}

// A lane's sums of all channels to such pixels, of several at once. `sums_of` gives those of one of them and a channel.
template <int kCount, int kChannels, typename Shape, typename SumsOf>
__device__ inline void make_pixels(const TensorParams &p, SumsOf sums_of,
                                   uint32_t (&words)[kCount][kChannels * Shape::kSampleBytes]) {
  if constexpr (Shape::kSamples == Samples::Bytes) {
    Sums total[kCount][kChannels];
#pragma unroll
    for (int i = 0; i < kCount; i++)
#pragma unroll
      for (int c = 0; c < kChannels; c++) total[i][c] = sums_of(i, c).total();
    round_pixels<Shape::kWeights>(p.finish, total, words);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      uint32_t pairs[kChannels][2];
#pragma unroll
      for (int c = 0; c < kChannels; c++) round_sums<Shape::kWeights>(p, sums_of(i, c), pairs[c]);
      join_channels<kChannels>(pairs, words[i]);
    }
  }
}

// A lane's sums of all channels to such pixels, those for column 2t and then those for 2t + 1: of each the second byte
// of what scaled() makes of it, clamped to 16 bits.
template <int kChannels, typename Scaled>
__device__ inline void pack_sums(const PartialSums<1> (&sums)[kChannels], uint32_t (&words)[kChannels], Scaled scaled) {
  const auto sample = [&](int n) {
    return scaled(sums[n % kChannels].part[0].v[n / kChannels % 2 * 2 + n / kChannels / 2]);
  };
#pragma unroll
  for (int i = 0; i < kChannels; i++)
    words[i] = choose_bytes(pack_clamped(sample(4 * i), sample(4 * i + 1)),
                            pack_clamped(sample(4 * i + 2), sample(4 * i + 3)), 0x7531);
}

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

  __device__ uint32_t at(const TensorParams &p, int i, int h, int c) const {
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
__device__ inline void make_sharp_pixels(const SeparableTensorParams &p,
                                         const Centres<kChannels, Shape::kSamples> &centres, SumsOf sums_of,
                                         uint32_t (&words)[kChannels * Shape::kSampleBytes]) {
  std::conditional_t<Shape::kSamples == Samples::Bytes, uint32_t[kChannels], uint32_t[kChannels][2]> results;
#pragma unroll
  for (int c = 0; c < kChannels; c++) {
    const Sums sums = sums_of(c).total();
    // Sum 2i + h is that of pixel i and row h.
    const auto round = [&](int n) { return sharpen(p.sharpening, sums.v[n], centres.at(p, n / 2, n % 2, c)); };
    if constexpr (Shape::kSamples == Samples::Bytes)
      results[c] = pack_clamped(round(0), round(2), round(1), round(3));
    else
      pack_samples(p, results[c], round);
  }
  join_channels<kChannels>(results, words);
}

// Calls filter() with the number of channels of a plane as a constant.
template <Samples kSamples, typename Filter>
__device__ inline void for_channels(int channels, Filter filter) {
  if constexpr (kSamples == Samples::FourWords) {
    filter(std::integral_constant<int, 4>());
  } else {
    if (channels == 1) return filter(std::integral_constant<int, 1>());
    if (kSamples == Samples::Words || channels == 2) return filter(std::integral_constant<int, 2>());
    if constexpr (kSamples == Samples::Bytes) {
      if (channels == 3) return filter(std::integral_constant<int, 3>());
      filter(std::integral_constant<int, 4>());
    }
  }
}

// ---- Pixels in global memory ----
//
// Warps whose windows and results lie inside the frame take code that asks for nothing; the others read as lists say.

// Lists where rows, or pixels of a row, first ... first + count - 1 are: rows in bytes from the part's first, pixels by
// number; kNoRow and -1 stand for the border's value. Each `threads` of the block make a list together.
constexpr int64_t kNoRow = INT64_MIN;

__device__ inline void list_rows(const TensorParams &p, const PartParams &part, int first, int count, int64_t *list,
                                 int threads) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % threads; i < count; i += threads) {
    const int y = border_index(p.border, first + i, part.height);
    list[i] = y < 0 ? kNoRow : y * part.source_pitch;
  }
}

__device__ inline void list_columns(const TensorParams &p, const PartParams &part, int first, int count, int *list,
                                    int threads) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % threads; i < count; i += threads)
    list[i] = border_index(p.border, first + i, part.width);
}

// Whether none of the rows is the border's value.
__device__ inline bool are_rows(const TensorParams &p, const PartParams &part, int first_row, int rows) {
  return p.border != Border::Constant || (first_row >= 0 && first_row + rows <= part.height);
}

// Whether pixels first ... first + count - 1 lie in the frame and are aligned, and none of the rows is the border's
// value.
__device__ inline bool lies_inside(const TensorParams &p, const PartParams &part, int first, int count, int first_row,
                                   int rows) {
  return part.aligned && first >= 0 && first + count <= part.width && are_rows(p, part, first_row, rows);
}

// The words of a row, as PartParams has them, repeat after so many.
CUDACONV_HOST_DEVICE constexpr int word_period(int pixel_bytes) {
  return pixel_bytes == 3 ? 3 : 2;
}

// The words of four pixels from an address that is a multiple of 4 bytes, and of their size or 16.
template <int kPixelBytes>
__device__ inline void read_four_pixels(const uint8_t *from, uint32_t (&words)[kPixelBytes]) {
  if constexpr (kPixelBytes == 8) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t half[4];
      read_words<4>(from + 16 * i, half);
#pragma unroll
      for (int w = 0; w < 4; w++) words[4 * i + w] = half[w];
    }
  } else {
    read_words<kPixelBytes>(from, words);
  }
}

// Four pixels as they lie in memory to a word of each byte of their samples.
template <Samples kSamples, int kPixelBytes>
__device__ inline void take_apart(const TensorParams &p, uint32_t (&words)[kPixelBytes],
                                  uint32_t (&bytes)[kPixelBytes]) {
  if constexpr (kSamples != Samples::Bytes) {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) words[i] = words[i] >> p.sample_shift & p.sample_mask;
  }
  deinterleave<kPixelBytes>(words, bytes);
}

// What a word beside the frame is made of: bytes of two others, at so many bytes of the row; the second one is the
// border's where negative.
struct WordPatch {
  int first, second;
  uint32_t selector;  // for choose_bytes()

  WordPatch() = default;
  // `columns` lists the pixels of the word.
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
    return choose_bytes(first_word, second_word, selector);
  }
};

// Whether words of a row lie in the frame or beside it, and those beside it can be patched together so.
template <int kPixelBytes>
__device__ inline bool can_patch(const TensorParams &p, const PartParams &part) {
  return kPixelBytes <= 2 && part.aligned && part.width * kPixelBytes % 4 == 0 && part.width > p.radius_x;
}

// How a warp reads and writes pixels: Whole words, of which some may lie beside the frame but none in part; the same of
// less than four bytes a pixel, of which those beside the frame are Patched together; or Any.
enum class Pixels { Whole, Patched, Any };

// Reads the pixels of a row as the matrices of samples have them: of each 16 pixels, four a lane of the warp. Or, where
// that makes fewer loads of them, of each 32 eight neighbours, the first four of which stand for those of the first 16.
template <int kPixelBytes, Pixels kPixels, bool kJoinsLater>
class PixelReader {
 public:
  // Four pixels are read one by one in this many pieces, each into a word: of odd ones the bytes, of others pairs of
  // bytes or words.
  static constexpr bool kBytes = kPixelBytes % 2 == 1;
  static constexpr int kOfPixel = kBytes ? kPixelBytes : kPixelBytes == 8 ? 2 : 1, kPieces = 4 * kOfPixel;
  // Words of four pixels until they are taken: pieces are joined only then, so that nothing waits for them before.
  static constexpr bool kPatches = kPixels == Pixels::Patched;
  static constexpr bool kEights = kPixels == Pixels::Whole && kPixelBytes == 3;
  static constexpr int kWords = kPatches                                ? kPixelBytes == 3 ? 8 : 2 * kPixelBytes
                                : kPixels == Pixels::Any && kJoinsLater ? kPieces
                                                                        : kPixelBytes;
  static constexpr int kListed = 48;  // at most, by list_pixels()

  // The first 16 pixels begin at `first`. Unless `inside` `columns` lists where all are that windows reach. Where
  // Patched, those beside the frame are among the first and the last 16 of `count` times as many; of three bytes a
  // pixel `columns` is what list_pixels() made of it.
  __device__ PixelReader(const TensorParams &p, const PartParams &part, int first, int count, const int *columns,
                         bool inside)
      : p_(p),
        part_(part),
        source_(part.source + (first + lane()) * kPixelBytes),
        columns_(columns + lane()),
        first_(first),
        inside_(inside) {
    if constexpr (kPatches && kPixelBytes == 3) {
      beside_[0] = first < 0;
      beside_[1] = first + 16 * count > part.width;
    } else if constexpr (kPatches) {
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int w = 0; w < kPixelBytes; w++)
          patch_[i][w] = WordPatch::find<kPixelBytes>(columns_ + i * 16 * (count - 1) + w * 4 / kPixelBytes);
    }
  }

  // Of the row at `offset` bytes, kCount times 16 pixels. The whole warp takes part.
  template <int kCount>
  __device__ void read(int64_t offset, uint32_t (&words)[kCount][kWords]) const {
    if constexpr (kPatches) {
#pragma unroll
      for (int k = 0; k < kCount; k++) {
        if ((k == 0 || k == kCount - 1) && (kPixelBytes != 3 || beside_[k > 0]))
          read_patched(part_.source + offset, k, words[k]);
        else
          read_together(offset, 16 * k, words[k]);
      }
    } else if (kEights || inside_) {
      constexpr int kPaired = kEights ? kCount / 2 * 2 : 0;
#pragma unroll
      for (int k = 0; k < kPaired; k += 2) {
        const uint8_t *const from = source_ + offset + (16 * k + lane()) * kPixelBytes;
#pragma unroll
        for (int i = 0; i < 2 * kPixelBytes; i += 2) {
          const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from) + i / 2);
          words[k + i / kPixelBytes][i % kPixelBytes] = two.x;
          words[k + (i + 1) / kPixelBytes][(i + 1) % kPixelBytes] = two.y;
        }
      }
#pragma unroll
      for (int k = kPaired; k < kCount; k++) read_together(offset, 16 * k, words[k]);
    } else {
#pragma unroll
      for (int k = 0; k < kCount; k++) {
        if constexpr (kPixels == Pixels::Whole)
          read_each(offset, 16 * k, words[k]);
        else
          read_anywhere(offset, 16 * k, words[k]);
      }
    }
  }

  // Has the first 16 pixels of the row fetched to the L2 cache: warps side by side do all of it.
  __device__ void prefetch([[maybe_unused]] int64_t offset) const {
#ifdef __CUDA_ARCH__
    if (inside_) asm volatile("prefetch.global.L2 [%0];" ::"l"(source_ + offset));
#endif
  }

  // Number k of `count` of those as they lie in memory.
  __device__ void take(int k, int count, const uint32_t (&words)[kWords], uint32_t (&pixels)[kPixelBytes]) const {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) pixels[i] = words[i];
    if constexpr (kPatches) {
      if (k > 0 && k < count - 1) return;
      if constexpr (kPixelBytes == 3) {
        if (!beside_[k > 0]) return;
        const int4 selector = *reinterpret_cast<const int4 *>(columns_ + kListed + 16 * k);
        const uint32_t pixel[4] = {choose_bytes(words[0], words[4], static_cast<uint32_t>(selector.x)),
                                   choose_bytes(words[1], words[5], static_cast<uint32_t>(selector.y)),
                                   choose_bytes(words[2], words[6], static_cast<uint32_t>(selector.z)),
                                   choose_bytes(words[3], words[7], static_cast<uint32_t>(selector.w))};
        pixels[0] = choose_bytes(pixel[0], pixel[1], 0x4210);
        pixels[1] = choose_bytes(pixel[1], pixel[2], 0x5421);
        pixels[2] = choose_bytes(pixel[2], pixel[3], 0x6542);
      } else {
#pragma unroll
        for (int i = 0; i < kPixelBytes; i++) pixels[i] = patch_[k > 0][i].join(words[i], words[kPixelBytes + i]);
      }
    } else if constexpr (kWords != kPixelBytes) {
      if (!inside_ && !is_together(16 * k)) join(words, pixels);
    }
  }

  // Of pixels of three bytes, makes of a list of `count` columns where the word with a pixel's first byte is, in bytes
  // from the row's first, and kListed further on a selector for choose_bytes(), and above 16 bits how far the word with
  // its last byte is from that. No column is -1; each lane has its own.
  __device__ static void list_pixels(int *columns, int count) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
      const int byte = 3 * columns[i], word = byte & ~3;
      columns[i] = word;
      columns[kListed + i] = (((byte + 2) & ~3) - word) << 16 | (0x0210 + (byte & 3) * 0x0111);
    }
  }

 private:
  __device__ void read_patched(const uint8_t *row, int k, uint32_t (&words)[kWords]) const {
    if constexpr (kPixelBytes == 3) {
      const int4 first = *reinterpret_cast<const int4 *>(columns_ + 16 * k);
      const int4 more = *reinterpret_cast<const int4 *>(columns_ + kListed + 16 * k);
      const int at[4] = {first.x, first.y, first.z, first.w}, further[4] = {more.x, more.y, more.z, more.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        words[i] = WordPatch::load(row, at[i]);
        words[4 + i] = WordPatch::load(row, at[i] + (further[i] >> 16));
      }
    } else {
      const auto &patch = patch_[k > 0];
#pragma unroll
      for (int i = 0; i < kPixelBytes; i++) {
        words[i] = patch[i].load_first(row);
        words[kPixelBytes + i] = patch[i].load_second(row, part_.border_word[i % 2]);
      }
    }
  }

  // The pixel of the row that is the lane's first of 16.
  __device__ static int lane() {
    return threadIdx.x % 4 * 4;
  }

  // Whether the 16 pixels from `x` pixels after the first on lie in the frame.
  __device__ bool is_together(int x) const {
    return part_.aligned && first_ + x >= 0 && first_ + x + 16 <= part_.width;
  }

  __device__ void read_together(int64_t offset, int x, uint32_t (&words)[kWords]) const {
    uint32_t pixels[kPixelBytes];
    read_four_pixels<kPixelBytes>(source_ + offset + x * kPixelBytes, pixels);
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) words[i] = pixels[i];
  }

  // Pixels of whole words, all of which are in the frame.
  __device__ void read_each(int64_t offset, int x, uint32_t (&words)[kWords]) const {
    const uint8_t *const row = part_.source + offset;
    const int4 four = *reinterpret_cast<const int4 *>(columns_ + x);
    const int column[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < kWords; i++)
      words[i] = __ldg(reinterpret_cast<const uint32_t *>(row + column[i / kOfPixel] * kPixelBytes) + i % kOfPixel);
  }

  __device__ void read_anywhere(int64_t offset, int x, uint32_t (&words)[kWords]) const {
    if (offset == kNoRow) {
      const bool pieces = kWords != kPixelBytes && !is_together(x);
#pragma unroll
      for (int i = 0; i < kWords; i++) words[i] = pieces ? border(i) : part_.border_word[i % word_period(kPixelBytes)];
    } else if (is_together(x)) {
      read_together(offset, x, words);
    } else if (first_ + x < part_.width + p_.radius_x) {  // else no window reaches them
      uint32_t piece[kPieces];
      read_pieces(part_.source + offset, columns_ + x, piece);
      if constexpr (kWords != kPieces) {
        join(piece, words);
      } else {
#pragma unroll
        for (int i = 0; i < kPieces; i++) words[i] = piece[i];
      }
    }
  }

  // Piece i of pixels of the border.
  __device__ uint32_t border(int i) const {
    return kBytes ? part_.border_word[0] >> i % kOfPixel * 8 : part_.border_word[i % kOfPixel];
  }

  // All of them under way at a time.
  __device__ void read_pieces(const uint8_t *from, const int *columns, uint32_t (&piece)[kPieces]) const {
    const int4 four = *reinterpret_cast<const int4 *>(columns);
    const int column[4] = {four.x, four.y, four.z, four.w};
    const auto address = [&](int i) { return from + max(column[i / kOfPixel], 0) * kPixelBytes; };
    using Piece = std::conditional_t<kBytes, uint8_t, std::conditional_t<kPixelBytes == 2, uint16_t, uint32_t>>;
    if (kBytes || part_.aligned) {
#pragma unroll
      for (int i = 0; i < kPieces; i++) piece[i] = __ldg(reinterpret_cast<const Piece *>(address(i)) + i % kOfPixel);
    } else {
#pragma unroll
      for (int i = 0; i < kPieces; i++) {
        piece[i] = 0;
#pragma unroll
        for (int b = 0; b < kPixelBytes / kOfPixel; b++)
          piece[i] |= uint32_t{__ldg(address(i) + i % kOfPixel * 4 + b)} << b * 8;
      }
    }
    if (p_.border == Border::Constant) {
#pragma unroll
      for (int i = 0; i < kPieces; i++)
        if (column[i / kOfPixel] < 0) piece[i] = border(i);
    }
  }

  // Pieces to the words of pixels as they lie in memory.
  __device__ static void join(const uint32_t (&piece)[kPieces], uint32_t (&words)[kPixelBytes]) {
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) {
      const auto at = [&](int n) { return piece[(kPieces / kPixelBytes * i + n) % kPieces]; };
      if constexpr (kBytes)
        words[i] = choose_bytes(choose_bytes(at(0), at(1), 0x0040), choose_bytes(at(2), at(3), 0x0040), 0x5410);
      else
        words[i] = kPixelBytes == 2 ? choose_bytes(at(0), at(1), 0x5410) : piece[i % kPieces];
    }
  }

  const TensorParams &p_;
  const PartParams &part_;
  const uint8_t *source_;
  const int *columns_;
  int first_;
  bool inside_;
  bool beside_[2];  // whether some of the first and of the last 16 pixels are beside the frame
  WordPatch patch_[2][kPatches && kPixelBytes <= 2 ? kPixelBytes : 1];
};

// A lane's results are two pairs of neighbouring pixels, one in either half of `words`, and those of the next g lie
// right of them. Makes four neighbouring pixels of them, of the first pairs for even g, of the second ones for odd g.
template <int kPixelBytes>
__device__ inline void join_pairs(uint32_t (&words)[kPixelBytes]) {
  const bool odd = threadIdx.x / 4 % 2;
  const auto other = [](uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, 4); };
  static_assert(kPixelBytes < 4 || kPixelBytes % 2 == 0, "pairs are whole words");
  if constexpr (kPixelBytes == 1) {
    words[0] = choose_bytes(words[0], other(words[0]), odd ? 0x3276 : 0x5410);
  } else if constexpr (kPixelBytes == 3) {
    const uint32_t middle = other(words[1]), outer = other(odd ? words[0] : words[2]);
    words[0] = odd ? choose_bytes(outer, middle, 0x1076) : words[0];
    words[1] = choose_bytes(words[1], outer, odd ? 0x3276 : 0x5410);
    words[2] = odd ? words[2] : choose_bytes(outer, middle, 0x5432);
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

// Where kCount times kPixels neighbouring pixels are: at (x, y) of the part, and dx, dy further on. Unless `inside`
// some may lie right of the part, which are not the caller's, nor are rows from `bottom` on.
template <int kPixels, int kPixelBytes, int kCount, int dx, int dy>
class PixelPlaces {
 public:
  static constexpr int kBytes = kPixels * kPixelBytes, kWords = kBytes / 4;  // of each

  __device__ PixelPlaces(const PartParams &part, int x, int y, int bottom, bool inside) : left_(part.width - x) {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      wanted_[i] = y + i * dy < bottom && (inside || i * dx < left_);
      whole_[i] = inside || (part.aligned && i * dx + kPixels <= left_);
    }
  }

  // The pixels of rows that are `pitch` apart, from `from` on, one after the other.
  __device__ void load(const uint8_t *from, int64_t pitch, uint32_t (&words)[kCount * kWords]) const {
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

// Results as they lie in memory, with copied channels of `original` and filled ones in their places.
template <int kPixelBytes, int kWords>
__device__ inline void merge_pixels(const PartParams &part, const uint32_t (&original)[kWords], uint32_t *words) {
#pragma unroll
  for (int i = 0; i < kWords; i++) words[i] = merge_word(part, words[i], original[i], i % word_period(kPixelBytes));
}

// Writes such pixels, which are one after the other in `words`, with copied and filled channels in their places, to
// where `to` points to.
template <int kPixels, int kPixelBytes, int kCount, int dx, int dy>
__device__ inline void put_pixels(const PartParams &part, uint8_t *to, int x, int y, int bottom, bool inside,
                                  bool merges, uint32_t *words) {
  using Places = PixelPlaces<kPixels, kPixelBytes, kCount, dx, dy>;
  const Places places(part, x, y, bottom, inside);
  if (merges) {
    uint32_t original[kCount * Places::kWords];
    places.load(part.source + y * part.source_pitch + x * kPixelBytes, part.source_pitch, original);
    merge_pixels<kPixelBytes>(part, original, words);
  }
  places.store(to, part.target_pitch, words);
}

// Where a lane's results are, two pairs of pixels dx and dy apart, of which the first of g are 2g pixels from the first
// of 0. Of four bytes a pixel a pair is as much as is worth writing at a time; of fewer, pairs are joined.
template <int kPixelBytes, int dx, int dy>
struct ResultPlace {
  static constexpr bool kJoins = kPixelBytes < 4;
  using Pixels =
      std::conditional_t<kJoins, PixelPlaces<4, kPixelBytes, 1, 0, 0>, PixelPlaces<2, kPixelBytes, 2, dx, dy>>;
  int x, y;  // from those of the first pair of g = 0

  __device__ ResultPlace() {
    const int g = threadIdx.x % 32 / 4;
    x = kJoins ? g % 2 * dx + g / 2 * 4 : 2 * g;
    y = kJoins ? g % 2 * dy : 0;
  }

  // Makes of a lane's results what lies there.
  __device__ static void join(uint32_t (&words)[kPixelBytes]) {
    if constexpr (kJoins) join_pairs<kPixelBytes>(words);
  }

  // Writes them to (x, y), the place in the part, where `to` points to; rows from `bottom` on are not the caller's.
  __device__ static void put(const PartParams &part, uint8_t *to, int x, int y, int bottom, bool inside, bool merges,
                             uint32_t (&words)[kPixelBytes]) {
    join(words);
    if constexpr (kJoins)
      put_pixels<4, kPixelBytes, 1, 0, 0>(part, to, x, y, bottom, inside, merges, words);
    else
      put_pixels<2, kPixelBytes, 2, dx, dy>(part, to, x, y, bottom, inside, merges, words);
  }
};

// The same of strips side by side, of 1 or 2 bytes a pixel: of a lane's results in four or two strips, two pairs of
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
    // Of two things one stays, and the neighbour's like it comes.
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
        four[i][0] = choose_bytes(kept, received, odd ? 0x1054 : 0x5410);
        four[i][1] = choose_bytes(kept, received, odd ? 0x3276 : 0x7632);
      }
#pragma unroll
      for (int h = 0; h < 2; h++) exchange_in_order(g / 2 % 2, 8, four[0][h], four[1][h], words + 2 * h);
    }
  }
};

// Copies and fills the pixels of a tile of a part of whose channels none is filtered. All threads of the block take
// part; x0 is a multiple of 16.
template <Samples kSamples>
__device__ inline void copy_tile(const PartParams &part, int x0, int y0, int width, int height) {
  constexpr int kBytes = 16;
  const int pixel_bytes = part.channels * sample_bytes(kSamples), period = word_period(pixel_bytes);
  const int first = x0 * pixel_bytes, last = min(x0 + width, part.width) * pixel_bytes;
  const int across = (last - first + kBytes - 1) / kBytes, rows = min(height, part.height - y0);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < rows * across; i += static_cast<int>(blockDim.x)) {
    const int row = i / across, byte = first + (i - row * across) * kBytes;
    const uint8_t *from = part.source + (y0 + row) * part.source_pitch + byte;
    uint8_t *to = part.target + (y0 + row) * part.target_pitch + byte;
    if (part.aligned && byte + kBytes <= last) {
      uint32_t words[kBytes / 4];
      load_words<kBytes / 4>(from, words);
#pragma unroll
      for (int w = 0; w < kBytes / 4; w++) {
        const int phase = (byte / 4 + w) % period;
        words[w] = (words[w] & part.copy_bits[phase]) | part.fill_word[phase];
      }
      store_words<kBytes / 4>(to, words);
      continue;
    }
#pragma unroll 1
    for (int b = 0; b < min(last - byte, kBytes); b++) {
      const int phase = (byte + b) / 4 % period, bit = b % 4 * 8;
      to[b] = static_cast<uint8_t>((from[b] & part.copy_bits[phase] >> bit) | part.fill_word[phase] >> bit);
    }
  }
}

// ---- Masks with a row and a column ----
//
// A warp goes down a strip of 16 pixels' width in steps of 8 rows. One step sums 8 rows along the row: the row's matrix
// times a matrix of samples, whose columns are the 8 rows. Lane (g, t) then holds the sums of its pixels 2g and 2g + 1
// in rows 2t and 2t + 1, 16 bits each. That is just what it needs of the 16 x k matrix of the second product, whose
// rows are pixels and whose k are rows: a chunk is 16 rows, two steps, where k = 4t + i stands for rows 2t, 2t + 1 of
// the one step and 2t, 2t + 1 of the next. So sums stay in registers, as high bytes and low bytes, and move up by half
// a chunk with each step. The k x 8 matrix is the column's: 8 rows of results, and the weight of each row of sums in
// each.

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
  // Of a line those that are not zero, which is all of it for the largest class: its radii are less than that.
  static constexpr int kWords = kRadius < 64 ? kRadius / 2 + 1 : kLineWords;
  static constexpr int kLine = padded_words(kWords), kLines = 2 * kBytes;
  static constexpr size_t kLineBytes = (kLines * sizeof(uint32_t) * kLine + 15) / 16 * 16;

  // The lines with their padding, in shared memory.
  __device__ static void load_lines(const SeparableTensorParams &p, uint32_t *lines) {
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

  // `eights`: of samples as PixelReader::kEights says.
  __device__ explicit SeparableOperands(const uint32_t *lines, bool eights = false) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    constexpr int kLine = Shape::kLine;
    const auto sample = [&](int c) {
      return eights && (c | 1) < kChunksX ? c / 2 * 32 + 8 * t + c % 2 * 4 : 16 * c + 4 * t;
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
        column[b][c] = choose_bytes(four_bytes(lines + (kBytes + b) * kLine, first),
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
  __device__ void enter(const SeparableTensorParams &p, const SeparableOperands<Shape> &k, int32_t start,
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
    constexpr uint32_t kPick = kWeights == Weights::Rounded && kSampleBytes == 1 ? 0x6251 : 0x5140;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t first = static_cast<uint32_t>(sums.v[2 * i]), second = static_cast<uint32_t>(sums.v[2 * i + 1]);
      // The two sums' low bytes, then the next; their third ones.
      const uint32_t pair = choose_bytes(first, second, kPick);
      append<0>(i, pair, false);
      append<1>(i, pair, true);
      if constexpr (kSumBytes == 3) append<2>(i, choose_bytes(first, second, 0x0062), false);
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

  // The rows' sums, but for the bits that Rounded 8-bit samples leave off.
  __device__ static Sums row_sums(const SeparableTensorParams &p, const PartialSums<Shape::kRowParts> &parts) {
    Sums sums = parts.total();
    if constexpr (kWeights == Weights::Long) {
      // 32 bits do not hold what the shift by 16 leaves off.
#pragma unroll
      for (int i = 0; i < 4; i++)
        sums.v[i] = (((parts.part[0].v[i] >> 8) + parts.part[1].v[i]) >> 8) + parts.part[2].v[i] +
                    (parts.part[Shape::kRowParts - 1].v[i] << 8);
    } else if constexpr (kWeights == Weights::Rounded && kSampleBytes == 2) {
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
    for (int c = 0; c + 1 < kChunksY; c++) chunks[c][i] = choose_bytes(chunks[c][i], chunks[c + 1][i], 0x5432);
    // With an odd number of steps the last chunk's second half has no weight.
    uint32_t &last = chunks[kChunksY - 1][i];
    if (Shape::kSteps % 2)
      last = upper ? pair >> 16 : pair;
    else
      last = choose_bytes(last, pair, upper ? 0x7632 : 0x5432);
  }
};

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
constexpr int kFar = 2;  // as many steps ahead samples are fetched to the L2 cache, one step ahead they are read

// Whether there is code for frames of four channels of which the first or the last is not filtered: of what is in use.
template <typename Shape>
constexpr bool kHasThree = Shape::kSamples == Samples::Bytes &&
                           (Shape::kRadius == 8 || Shape::kRadius == 16) && Shape::kWeights != Weights::Word &&
                           !Shape::kSharpens;

// The warp's strips, of which tile.x0 is the first pixel. Of the channels kFiltered are filtered: all, or of four those
// but the first or the last. `inside`: all that is read and written lies in the frame, in whole words.
template <int kChannels, int kFiltered, Pixels kPixels, typename Shape>
__device__ inline void filter_strip(const SeparableTensorParams &p, const Tile &tile, const uint32_t *lines,
                                    const int64_t *rows, const int *columns, bool inside) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kSampleBytes = Shape::kSampleBytes, kPixelBytes = kChannels * kSampleBytes;
  constexpr int kStrips = subtiles(kPixelBytes), kColumns = kStrips - 1 + Shape::kChunksX;
  constexpr int kWords = kStrips * kPixelBytes;  // of a lane's results
  constexpr bool kShares = kStrips > 1;          // a lane writes 8 bytes of two rows of one strip
  using Place = std::conditional_t<kShares, StripPlace<kPixelBytes, kStrips>, ResultPlace<kPixelBytes, 0, 1>>;
  using Reader = PixelReader<kPixelBytes, kPixels, Shape::kRadius <= 16 && kPixelBytes % 4 == 0>;
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  int bottom = min(tile.y0 + p.tile_height, part.height);
  const int steps = (bottom - tile.y0 + 7) / 8 + Shape::kSteps - 1;
  const Reader reader(p, part, tile.x0 - Shape::kReach, kColumns, columns, inside);
  constexpr bool kAny = kPixels == Pixels::Any;
  const bool merges = kFiltered < kChannels || part.merges;
  [[maybe_unused]] const int skipped = part.filter_bits[0] & 0xff ? 0 : 1;  // channels before those of kFiltered < 4
  const Place place;
  int below = 2 * t;
  if constexpr (!kShares) below += place.y;
  const int x = tile.x0 + place.x;
  // Of whole words a lane writes all or none.
  if (kPixels == Pixels::Whole && kStrips == 1 && x >= part.width) bottom = 0;
  uint32_t ahead[kColumns][Reader::kWords];  // the next step's samples are on their way
  reader.read(rows[g], ahead);

  const SeparableOperands<Shape> operands(lines, Reader::kEights);
  // Where pixels are patched registers are scarce.
  const auto held = [](int32_t v) { return kPixels == Pixels::Patched ? v : in_register(v); };
  const int32_t row_start = held(p.row_start), start = held(p.finish.start);
  constexpr bool kChains = kSampleBytes == 1;
  SeparableSums<Shape, kChains> sums[kStrips][kFiltered];
  // Tried on Hopper: it helps large frames of four channels, and nothing else.
  constexpr bool kFetches = kPixels == Pixels::Whole && kChannels == 4 && kSampleBytes == 1;
  // Whether what is merged is on its way while the rows are summed, where there are registers for it.
  constexpr bool kLoadsEarly = !kAny && kPixelBytes < 8;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    if (kFetches && step + kFar < steps) reader.prefetch(rows[8 * (step + kFar) + g]);
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
    if (step + 1 < steps) reader.read(rows[8 * (step + 1) + g], ahead);
    const auto load_originals = [&] {
      places().load(part.source + y * part.source_pitch + x * kPixelBytes, part.source_pitch, original);
    };
    if (kLoadsEarly && merges && has_results) load_originals();
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
      }
    if (!has_results) continue;
    const auto total = [&](int s, int c) { return sums[s][c].total(operands, start, p.finish.start_high); };
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
    if constexpr (kShares) {
      Place::join(pixels, joined);
    } else {
      Place::join(pixels[0]);
#pragma unroll
      for (int i = 0; i < kWords; i++) joined[i] = pixels[0][i];
    }
    if (merges) {
      if (!kLoadsEarly) load_originals();
      merge_pixels<kPixelBytes>(part, original, joined);
    }
    places().store(part.target + y * part.target_pitch + x * kPixelBytes, part.target_pitch, joined);
  }
}

// The kernels of 8-bit samples are for planes of one or two channels, or for those of three or four: several narrow
// strips take more registers than a wide one.
template <typename Shape, bool kNarrow>
struct SeparableStrip {
  // How many blocks a multiprocessor is to hold, which bounds the registers of a thread.
  static constexpr bool kWide = Shape::kSamples == Samples::Bytes && !kNarrow;
  static constexpr bool kOneMore = kWide && !(Shape::kRadius == 8 && Shape::kWeights == Weights::Word);
  static constexpr int kBlocks = Shape::kRadius > 16 ? 2 : (Shape::kRadius > 8 ? 3 : 4) + (kOneMore ? 1 : 0);
  static constexpr int kMinBlocks = Shape::kSamples == Samples::FourWords || Shape::kSharpens ? kBlocks - 1 : kBlocks;

  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int, int tile_height, int) {
    return Shape::kLineBytes + strip_rows(tile_height, Shape::kRadius) * sizeof(int64_t) +
           kStripThreads / 32 * 16 * kMostColumns * sizeof(int);
  }
};

template <int kChannels, typename Shape>
__device__ inline void filter_strips(const SeparableTensorParams &p, Tile tile) {
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
  const bool can_be_patched = kPixelBytes == 3 ? part.aligned && part.width % 4 == 0 && p.border != Border::Constant
                                               : can_patch<kPixelBytes>(p, part) && part.width * kPixelBytes % 8 == 0;
  const bool patches = Shape::kRadius <= 16 && can_be_patched && part.width >= kWidth;
  if (patches) tile.x0 = min(tile.x0, part.width - kWidth);
  const int first = tile.x0 - Shape::kReach;
  const bool inside = lies_inside(p, part, first, kPixels, first_row, height);
  // Pixels of whole words can be put together from anywhere.
  constexpr bool kWholeWords = kPixelBytes % 4 == 0;
  const bool whole = inside || (kWholeWords && part.aligned && part.width % 2 == 0 && p.border != Border::Constant);
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

template <typename Shape, bool kNarrow>
__global__ void __launch_bounds__(kStripThreads, SeparableStrip<Shape, kNarrow>::kMinBlocks)
    strip_tensor_kernel(const __grid_constant__ SeparableTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    constexpr Samples kSamples = Shape::kSamples;
    const Tile tile = locate_tile(p, 1, p.tile_height);
    const int channels = tile.part.channels;
    if (!tile.part.filters) {
      const int width = kStripThreads / 32 * strip_width(channels * sample_bytes(kSamples));
      return copy_tile<kSamples>(tile.part, tile.x0 * width, tile.y0, width, p.tile_height);
    }
    const auto filter = [&](auto channels) { filter_strips<decltype(channels)::value, Shape>(p, tile); };
    constexpr int kFewer = kNarrow ? 1 : 3, kMore = kFewer + 1;
    if constexpr (kSamples != Samples::Bytes)
      for_channels<kSamples>(channels, filter);
    else if (channels == kFewer)
      filter(std::integral_constant<int, kFewer>());
    else
      filter(std::integral_constant<int, kMore>());
  }
}

// ---- Tiles: larger ones ----

template <typename Shape>
struct SeparableTile {
  static constexpr int kRadius = Shape::kRadius;
  static constexpr int kThreads = 512, kMinBlocks = 1;

  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int) {
    return Shape::kLineBytes + static_cast<size_t>(channels) *
                                   (source_pitch(kRadius) * (tile_height + 2 * kRadius) + kResultPitch * tile_height);
  }
};

template <typename Shape>
__global__ void __launch_bounds__(SeparableTile<Shape>::kThreads, SeparableTile<Shape>::kMinBlocks)
    separable_tensor_kernel(const __grid_constant__ SeparableTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    static_assert(Shape::kSamples == Samples::Bytes, "planes in shared memory are of whole samples");
    constexpr int kRadius = Shape::kRadius, kPitch = source_pitch(kRadius), kSteps = Shape::kSteps;
    const Tile tile = locate_tile(p, kTensorTileWidth, p.tile_height);
    const PartParams &part = tile.part;
    if (!part.filters) return copy_tile<Samples::Bytes>(part, tile.x0, tile.y0, kTensorTileWidth, p.tile_height);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

    uint32_t *lines = shared_memory<uint32_t>();
    uint8_t *memory = shared_memory<uint8_t>() + Shape::kLineBytes;
    const int source_bytes = kPitch * (p.tile_height + 2 * kRadius);
    const Planes source = {memory + kRadius * kPitch + plane_margin(kRadius), kPitch, source_bytes};
    const Planes results = {memory + part.channels * source_bytes, kResultPitch, kResultPitch * p.tile_height};

    Shape::load_lines(p, lines);
    load_planes(p, tile, source);
    __syncthreads();
    const SeparableOperands<Shape> operands(lines);

    const int steps = (min(p.tile_height, part.height - tile.y0) + 7) / 8;
#pragma unroll 1
    for (int unit = static_cast<int>(threadIdx.x) / 32; unit < part.channels * kTensorBlocks;
         unit += SeparableTile<Shape>::kThreads / 32) {
      const int channel = unit / kTensorBlocks, x = unit % kTensorBlocks * 16;
      if (part.channel[channel].action != Action::Filter || tile.x0 + x >= part.width) continue;
      const uint8_t *from = source.at(channel, x + 4 * t - kRadius, g - kRadius);
      uint8_t *to = results.at(channel, x + 2 * g, 2 * t - 8 * (kSteps - 1));
      SeparableSums<Shape, false> sums;
#pragma unroll 1
      for (int step = 0; step < steps + kSteps - 1; step++, from += 8 * kPitch, to += 8 * kResultPitch) {
        uint32_t window[1][Shape::kChunksX];
#pragma unroll
        for (int c = 0; c < Shape::kChunksX; c++) window[0][c] = *reinterpret_cast<const uint32_t *>(from + 16 * c);
        sums.enter(p, operands, p.row_start, window);
        if (step < kSteps - 1) continue;
        Sums total[1][1] = {{sums.total(operands, p.finish.start, 0).total()}};
        uint32_t out[1][1];
        if (Shape::kWeights == Weights::Rounded && p.finish.how == SumRounding::Sharpen) {
          const uint8_t *centre = source.at(channel, x + 2 * g, 2 * t + 8 * (step - kSteps + 1));
#pragma unroll
          for (int i = 0; i < 4; i++)
            total[0][0].v[i] = sharpen(p.sharpening, total[0][0].v[i], centre[i % 2 * kPitch + i / 2]);
        }
        round_pixels<Shape::kWeights>(p.finish, total, out);
        *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(out[0][0]);
        *reinterpret_cast<uint16_t *>(to + kResultPitch) = static_cast<uint16_t>(out[0][0] >> 16);
      }
    }
    __syncthreads();
    store_planes(p, tile, source, results);
  }
}

// ---- Masks without ----
//
// A block loads a tile of 128 pixels' width and its halo, taken apart into one plane of bytes a channel in shared
// memory. A warp sums a few rows of results: the tile's 8 blocks of 16 pixels are the 8 columns of the matrix of
// samples, so that the lanes' words of it are 32 in a row. Each row of samples is loaded once and serves all rows of
// results whose windows it is part of, and so is the matrix of each row of the mask.
//
// With one or two bytes a pixel a warp takes four or two such groups of rows, one below the other, so that there is
// more between two loads.

// The channels of a plane whose samples are taken apart and summed: all of them.
template <int kPixelChannels, int kSummed = kPixelChannels>
struct SummedChannels {
  static constexpr int kChannels = kPixelChannels, kCount = kSummed;
  static_assert(kChannels == kCount, "all of them");
  __device__ explicit SummedChannels(const PartParams &) {}

  // Which channel of a pixel is number i of these.
  __device__ int channel(int i) const { return i; }

  // Four pixels as they lie in memory to a word of each of their bytes.
  template <Samples kSamples, int kBytes>
  __device__ void take_apart(const TensorParams &p, uint32_t (&words)[kBytes], uint32_t (&bytes)[kBytes]) const {
    cudaconv::take_apart<kSamples>(p, words, bytes);
  }

  // A lane's results to pixels, as join_channels() and cudaconv::pack_sums() make them.
  template <typename Result, int kWords>
  __device__ void join(const Result (&results)[kCount], uint32_t (&words)[kWords]) const {
    join_channels<kChannels>(results, words);
  }
  template <typename Scaled>
  __device__ void pack_sums(const PartialSums<1> (&sums)[kCount], uint32_t (&words)[kChannels], Scaled scaled) const {
    cudaconv::pack_sums(sums, words, scaled);
  }
};

// Of four channels of which some are not filtered, all but the last of those, which is anything in pixels that are made
// of sums. Of bytes alone.
template <>
struct SummedChannels<4, 3> {
  static constexpr int kChannels = 4, kCount = 3;

  __device__ explicit SummedChannels(const PartParams &part) {
#pragma unroll
    for (int c = 0; c < kChannels; c++)
      if (!(part.filter_bits[0] >> 8 * c & 0xffu)) skipped_ = c;
    first_two_ = (channel(0) | channel(1) << 8) * 0x11 + 0x4040;
    third_ = channel(2) * 0x11 + 0x40;
  }

  __device__ int channel(int i) const {
    return i + (i >= skipped_);
  }

  template <Samples = Samples::Bytes>
  __device__ void take_apart(const TensorParams &, uint32_t (&words)[4], uint32_t (&bytes)[3]) const {
    const uint32_t first = choose_bytes(words[0], words[1], first_two_);
    const uint32_t second = choose_bytes(words[2], words[3], first_two_);
    bytes[0] = choose_bytes(first, second, 0x5410);
    bytes[1] = choose_bytes(first, second, 0x7632);
    bytes[2] = choose_bytes(choose_bytes(words[0], words[1], third_), choose_bytes(words[2], words[3], third_), 0x5410);
  }

  __device__ void join(const uint32_t (&results)[3], uint32_t (&words)[4]) const {
    const uint32_t pairs[2] = {choose_bytes(results[0], results[1], 0x5140),
                               choose_bytes(results[0], results[1], 0x7362)};
#pragma unroll
    for (int i = 0; i < 4; i++)
      words[i] = choose_bytes(pairs[i / 2], results[2], selector(i % 2 * 2, i % 2 * 2 + 1, 4 + i));
  }
  template <typename Scaled>
  __device__ void pack_sums(const PartialSums<1> (&sums)[3], uint32_t (&words)[4], Scaled scaled) const {
    const auto sample = [&](int i, int c) { return scaled(sums[c].part[0].v[i % 2 * 2 + i / 2]); };
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const uint32_t third = pack_clamped(sample(i, 2), sample(i + 1, 2));
#pragma unroll
      for (int k = 0; k < 2; k++)
        words[i + k] = choose_bytes(pack_clamped(sample(i + k, 0), sample(i + k, 1)), third, selector(1, 3, 5 + 2 * k));
    }
  }

 private:
  // For choose_bytes(), of bytes for the three channels.
  __device__ uint32_t selector(uint32_t first, uint32_t second, uint32_t third) const {
    return first << 4 * channel(0) | second << 4 * channel(1) | third << 4 * channel(2);
  }

  int skipped_ = 0;
  uint32_t first_two_, third_;  // selectors
};

template <int kRadiusClass, Weights kWeightsKind, Samples kSamplesKind>
struct DenseShape {
  static constexpr int kRadius = kRadiusClass;
  static constexpr Weights kWeights = kWeightsKind;
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kBytes = weight_bytes(kWeights), kParts = kSampleBytes + kBytes - 1;
  static constexpr int kChunks = (16 + 2 * kRadius) / 16;
  static constexpr int kRows = kSamples == Samples::FourWords ? 2 : 4 / kBytes;  // of results at a time
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = kRadius > 8 || kSamples == Samples::FourWords ? 3 : 4;
  static constexpr int kLine = padded_words(kDenseLineWords);
  static constexpr int kPixels = kTensorTileWidth + 16 * (kChunks - 1);  // that windows of a row of the tile reach
  static constexpr size_t kLineBytes = kDenseRows * kBytes * kLine * sizeof(uint32_t);

  CUDACONV_HOST_DEVICE static constexpr int row_groups(int channels) { return subtiles(channels * kSampleBytes); }
  // Of the operands [row][low, high][chunk][lane].
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
__device__ inline void load_rows_of_planes(const TensorParams &p, const PartParams &part, const Channels &channels,
                                           int left, int end, const int64_t *rows, const int *columns, int count,
                                           uint8_t *planes) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kPixels = Shape::kPixels, kThreads = Shape::kThreads, kSampleBytes = Shape::kSampleBytes;
  constexpr int kPixelBytes = Channels::kChannels * kSampleBytes, kPlanes = Channels::kCount * kSampleBytes;
  // Pixels first ... last - 1 are in the frame, four by four.
  int first = 0, last = kPixels;
  if constexpr (!kInside) {
    first = part.aligned ? max(-left, 0) : 0;
    last = part.aligned ? min(part.width - left, kPixels) & ~3 : 0;
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
        if constexpr (kSamples != Samples::Bytes) {
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

// Of a channel, as round_sums() makes them.
template <typename Shape>
using Rounded = std::conditional_t<Shape::kSamples == Samples::Bytes, uint32_t, uint32_t[2]>;

// All sums of a warp at once.
template <typename Shape, int kRows, int kGroups, int kChannels>
__device__ inline void round_all(const TensorParams &p,
                                 const PartialSums<Shape::kParts> (&sums)[kRows][kGroups][kChannels],
                                 Rounded<Shape> (&results)[kRows][kGroups][kChannels]) {
  constexpr int kCount = kRows * kGroups * kChannels;
  const SumRounding &r = p.finish;
  const auto sum = [&](int n) -> const PartialSums<Shape::kParts> & {
    return sums[n / kChannels / kGroups][n / kChannels % kGroups][n % kChannels];
  };
  const auto result = [&](int n) -> Rounded<Shape> & {
    return results[n / kChannels / kGroups][n / kChannels % kGroups][n % kChannels];
  };
  Sums total[kCount];
#pragma unroll
  for (int n = 0; n < kCount; n++) total[n] = sum(n).total();
  if constexpr (Shape::kSamples == Samples::Bytes) {
    uint32_t bytes[kCount];
    round_sums<Shape::kWeights>(r, total, bytes);
#pragma unroll
    for (int n = 0; n < kCount; n++) result(n) = bytes[n];
  } else {
    const auto pack = [&](auto round) {
#pragma unroll
      for (int n = 0; n < kCount; n++) pack_samples(p, result(n), [&](int i) { return round(n, i); });
    };
    if (r.how == SumRounding::ShiftWide) return pack([&](int n, int i) { return sum(n).highest(i) >> r.shift; });
    if (r.how == SumRounding::Shift) return pack([&](int n, int i) { return total[n].v[i] >> r.shift; });
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
  const auto put = [&](auto is_inside, bool merges, auto finish) {
#pragma unroll
    for (int y = 0; y < kRows; y++)
#pragma unroll
      for (int s = 0; s < kGroups; s++) {
        const int row = y0 + kRows * s + y;
        uint32_t pixels[kPixelBytes];
        channels.join(results[y][s], pixels);
        finish(y, pixels);
        Place::put(part, part.target + row * part.target_pitch + x * kPixelBytes, x, row, bottom,
                   decltype(is_inside)::value, merges, pixels);
      }
  };
  constexpr bool kMerges = Channels::kCount < Channels::kChannels || Shape::kSamples == Samples::FourWords;
  if (!inside || (!kMerges && part.merges)) return put(std::false_type(), part.merges, [](int, uint32_t *) {});
  // Nothing has to be asked on the way, and samples that are copied are all read at a time.
  if constexpr (kMerges) {
    if (Channels::kCount < Channels::kChannels || part.merges) {
      uint32_t original[kRows][kPixelBytes];
#pragma unroll
      for (int y = 0; y < kRows; y++) {
        const uint8_t *from = part.source + min(y0 + y, bottom - 1) * part.source_pitch + x * kPixelBytes;
        load_words<kPixelBytes / 2>(from, original[y]);
        load_words<kPixelBytes / 2>(from + 16 * kPixelBytes, original[y] + kPixelBytes / 2);
      }
      return put(std::true_type(), false,
                 [&](int y, uint32_t *pixels) { merge_pixels<kPixelBytes>(part, original[y], pixels); });
    }
  }
  put(std::true_type(), false, [](int, uint32_t *) {});
}

// Sums the rows of the tile, down to `bottom`, of pixels of which kPlanes bytes are summed.
template <typename Shape, int kPlanes>
__device__ inline void filter_rows(const DenseTensorParams &p, const Tile &tile, const uint2 *fragments,
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
            sums[y][s][c].part[k] = all(k == 0                        ? p.finish.start
                                        : kSampleBytes == 2 && k == 1 ? p.finish.start_high
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
__device__ inline void filter_dense(const DenseTensorParams &p, const Tile &tile, int bottom) {
  constexpr int kBytes = Shape::kBytes, kChunks = Shape::kChunks, kLine = Shape::kLine;
  constexpr Samples kSamples = Shape::kSamples;
  const PartParams &part = tile.part;
  const bool three = kSamples == Samples::Bytes && (part.channels == 3 || (part.channels == 4 && part.merges));
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
  // All words of a thread are on their way at a time; what is around them are zeros.
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
    if constexpr (kSamples == Samples::Bytes && kChannels == 4) {
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
  if constexpr (kSamples == Samples::Bytes)
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
    dense_tensor_kernel(const __grid_constant__ DenseTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    constexpr Samples kSamples = Shape::kSamples;
    Tile tile = locate_tile(p, kTensorTileWidth, 1);
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
    if (!part.filters) return copy_tile<kSamples>(part, tile.x0, tile.y0, kTensorTileWidth, height);
    filter_dense<Shape>(p, tile, bottom);
  }
}

}  // namespace cudaconv
