// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for linear masks larger than those of sliding.cuh: sums of products by the matrix
// instructions of tensor cores, mma.sync, on 8-bit integers, all of it exact.
//
// A block filters a tile of 128 pixels' width. It loads the tile and its halo, taken apart into one plane of bytes a
// channel in shared memory; its warps filter plane by plane into planes of results; it puts these together again.
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

#include "fragments.h"
#include "launch.cuh"
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

struct Sums {
  int32_t v[4];
};

__device__ inline Sums all(int32_t v) {
  return {{v, v, v, v}};
}

// The product of two chunks each, the bytes taken as signed or not, added to `c`.
template <bool kSignedA, bool kSignedB>
__device__ inline Sums mma_k32(uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
                               const Sums &c) {
  Sums d = c;
#ifndef __CUDACC__
  const uint32_t a[] = {a0, a1, a2, a3}, b[] = {b0, b1};
  standin::integer_mma(32, a, kSignedA, b, kSignedB, c.v, d.v);
#elif __CUDA_ARCH__ >= 800
#define CUDACONV_MMA(types)                                                      \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." types                             \
      ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
      : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                   \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]))
  static_assert(!kSignedA || !kSignedB, "samples have no sign");
  if constexpr (kSignedA)
    CUDACONV_MMA("s8.u8");
  else if constexpr (kSignedB)
    CUDACONV_MMA("u8.s8");
  else
    CUDACONV_MMA("u8.u8");
#undef CUDACONV_MMA
#endif
  return d;
}

// The product of one chunk.
template <bool kSignedA, bool kSignedB>
__device__ inline Sums mma_k16(uint32_t a0, uint32_t a1, uint32_t b0, const Sums &c) {
  Sums d = c;
#ifndef __CUDACC__
  const uint32_t a[] = {a0, a1}, b[] = {b0};
  standin::integer_mma(16, a, kSignedA, b, kSignedB, c.v, d.v);
#elif __CUDA_ARCH__ >= 800
#define CUDACONV_MMA(types)                                                                                      \
  asm("mma.sync.aligned.m16n8k16.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
      : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                   \
      : "r"(a0), "r"(a1), "r"(b0), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]))
  if constexpr (kSignedA)
    CUDACONV_MMA("s8.u8");
  else if constexpr (kSignedB)
    CUDACONV_MMA("u8.s8");
  else
    CUDACONV_MMA("u8.u8");
#undef CUDACONV_MMA
#endif
  return d;
}

// sums + a * b over all chunks.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums multiply(const uint32_t (&a)[kChunks][2], const uint32_t (&b)[kChunks], Sums sums) {
#pragma unroll
  for (int c = 0; c + 1 < kChunks; c += 2)
    sums = mma_k32<kSignedA, kSignedB>(a[c][0], a[c][1], a[c + 1][0], a[c + 1][1], b[c], b[c + 1], sums);
  if constexpr (kChunks % 2)
    sums = mma_k16<kSignedA, kSignedB>(a[kChunks - 1][0], a[kChunks - 1][1], b[kChunks - 1], sums);
  return sums;
}

// ---- Lines of coefficients ----

// In shared memory a line has zeros before and behind it.
constexpr int kLinePadding = 16;  // bytes, on either side
CUDACONV_HOST_DEVICE constexpr int padded_words(int line_words) {
  return line_words + 2 * kLinePadding / 4;
}

// Word i of `line` with its padding.
__device__ inline uint32_t padded_word(const uint32_t *line, int line_words, int i) {
  i -= kLinePadding / 4;
  return i >= 0 && i < line_words ? line[i] : 0;
}

// Four bytes of a padded line from byte `first` of the line, which may be -kLinePadding. Reads a word past them.
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

// Words of the planes from a group; word i of channel c is plane[c * kPlaneWords + i].
template <int kChannels, int kWords>
__device__ inline void deinterleave(const uint32_t (&in)[kWords], uint32_t (&plane)[kWords]) {
  if constexpr (kChannels == 1) {
#pragma unroll
    for (int i = 0; i < 4; i++) plane[i] = in[i];
  } else if constexpr (kChannels == 2) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      plane[i] = choose_bytes(in[2 * i], in[2 * i + 1], 0x6420);
      plane[2 + i] = choose_bytes(in[2 * i], in[2 * i + 1], 0x7531);
    }
  } else if constexpr (kChannels == 3) {
#pragma unroll
    for (int i = 0; i < 4; i++) {  // abca bcab cabc
      const uint32_t x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];
      plane[i] = choose_bytes(choose_bytes(x, y, 0x0630), z, 0x5210);
      plane[4 + i] = choose_bytes(choose_bytes(x, y, 0x0741), z, 0x6210);
      plane[8 + i] = choose_bytes(choose_bytes(x, y, 0x0052), z, 0x7410);
    }
  } else {
    transpose(in, plane);
  }
}

template <int kChannels, int kWords>
__device__ inline void interleave(const uint32_t (&plane)[kWords], uint32_t (&out)[kWords]) {
  if constexpr (kChannels == 1) {
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] = plane[i];
  } else if constexpr (kChannels == 2) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      out[2 * i] = choose_bytes(plane[i], plane[2 + i], 0x5140);
      out[2 * i + 1] = choose_bytes(plane[i], plane[2 + i], 0x7362);
    }
  } else if constexpr (kChannels == 3) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t a = plane[i], b = plane[4 + i], c = plane[8 + i];
      out[3 * i] = choose_bytes(choose_bytes(a, b, 0x1040), c, 0x3410);
      out[3 * i + 1] = choose_bytes(choose_bytes(a, b, 0x6205), c, 0x3250);
      out[3 * i + 2] = choose_bytes(choose_bytes(a, b, 0x0730), c, 0x7216);
    }
  } else {
    transpose(plane, out);
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
    to[0] = *static_cast<const uint32_t *>(from);
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
    *static_cast<uint32_t *>(to) = from[0];
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
      deinterleave<kChannels>(word[k], plane);
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
      interleave<kChannels>(plane, word);
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

// ---- Results ----

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
__device__ inline uint32_t round_sums(const SumRounding &r, const Sums &sums) {
  const auto pack = [&](auto round) {
    return pack_clamped(round(sums.v[0]), round(sums.v[2]), round(sums.v[1]), round(sums.v[3]));
  };
  if (r.shifts) return pack([&](int32_t v) { return v >> r.shift; });
  return pack([&](int32_t v) {
    if (r.absolute) v = abs(v);
    v = min(max(v + r.half, 0), r.limit);
    return static_cast<int32_t>(high_product(static_cast<uint32_t>(v), r.magic) >> r.shift);
  });
}

// low + 256 * high, modulo 2^32.
__device__ inline Sums add_high(const Sums &low, const Sums &high) {
  Sums sums;
#pragma unroll
  for (int i = 0; i < 4; i++)
    sums.v[i] = static_cast<int32_t>(static_cast<uint32_t>(low.v[i]) + (static_cast<uint32_t>(high.v[i]) << 8));
  return sums;
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

template <int kRadius, Weights kWeights>
struct SeparableShape {
  static constexpr int kBytes = kWeights == Weights::Byte ? 1 : 2;
  static constexpr int kChunksX = (16 + 2 * kRadius + 15) / 16;  // of samples that windows of 16 pixels reach
  static constexpr int kSteps = 1 + kRadius / 4;                 // that windows of 8 rows reach
  static constexpr int kChunksY = (kSteps + 1) / 2;
  // Threads of a block, and how many blocks a multiprocessor is to hold, which bounds the registers of a thread.
  static constexpr int kThreads = kRadius > 16 ? 512 : 256;
  static constexpr int kMinBlocks = kRadius > 16 ? 1 : kRadius > 8 ? 2 : kBytes == 1 ? 4 : 3;
  static constexpr size_t kLineBytes = 4 * sizeof(uint32_t) * padded_words(kLineWords);

  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int) {
    return kLineBytes + static_cast<size_t>(channels) *
                            (source_pitch(kRadius) * (tile_height + 2 * kRadius) + kResultPitch * tile_height);
  }
};

template <int kRadius, Weights kWeights>
__global__ void __launch_bounds__(SeparableShape<kRadius, kWeights>::kThreads,
                                  SeparableShape<kRadius, kWeights>::kMinBlocks)
    separable_tensor_kernel(const __grid_constant__ SeparableTensorParams p) {
  using Shape = SeparableShape<kRadius, kWeights>;
  constexpr int kPitch = source_pitch(kRadius), kLine = padded_words(kLineWords);
  constexpr int kBytes = Shape::kBytes, kChunksX = Shape::kChunksX, kChunksY = Shape::kChunksY, kSteps = Shape::kSteps;
  const Tile tile = locate_tile(p, kTensorTileWidth, p.tile_height);
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  uint32_t *lines = shared_memory<uint32_t>();
  uint8_t *memory = shared_memory<uint8_t>() + Shape::kLineBytes;
  const int source_bytes = kPitch * (p.tile_height + 2 * kRadius);
  const Planes source = {memory + kRadius * kPitch + plane_margin(kRadius), kPitch, source_bytes};
  const Planes results = {memory + part.channels * source_bytes, kResultPitch, kResultPitch * p.tile_height};

  for (int i = static_cast<int>(threadIdx.x); i < 4 * kLine; i += static_cast<int>(blockDim.x))
    lines[i] = padded_word(p.line[i / kLine / 2][i / kLine % 2], kLineWords, i % kLine);
  load_planes(p, tile, source);
  __syncthreads();

  uint32_t row[kBytes][kChunksX][2], column[kBytes][kChunksY];  // [low, high]
#pragma unroll
  for (int b = 0; b < kBytes; b++) {
#pragma unroll
    for (int c = 0; c < kChunksX; c++)
#pragma unroll
      for (int i = 0; i < 2; i++) row[b][c][i] = four_bytes(lines + b * kLine, 16 * c + 4 * t - (2 * g + i));
#pragma unroll
    for (int c = 0; c < kChunksY; c++) {
      const int first = 16 * c + 2 * t - g;  // rows 2t and 2t + 1 of either step, seen from row g of results
      column[b][c] = choose_bytes(four_bytes(lines + (2 + b) * kLine, first),
                                  four_bytes(lines + (2 + b) * kLine, first + 8), 0x5410);
    }
  }
  // The two sums' low bytes, then their high ones.
  constexpr uint32_t kPick = kWeights == Weights::Rounded ? 0x6251 : 0x5140;
  const Sums row_start = all(p.row_start), start = all(p.finish.start);

  const int steps = (min(p.tile_height, part.height - tile.y0) + 7) / 8;
#pragma unroll 1
  for (int unit = static_cast<int>(threadIdx.x) / 32; unit < part.channels * kTensorBlocks;
       unit += Shape::kThreads / 32) {
    const int channel = unit / kTensorBlocks, x = unit % kTensorBlocks * 16;
    if (part.channel[channel].action != Action::Filter || tile.x0 + x >= part.width) continue;
    const uint8_t *from = source.at(channel, x + 4 * t - kRadius, g - kRadius);
    uint8_t *to = results.at(channel, x + 2 * g, 2 * t - 8 * (kSteps - 1));
    uint32_t low[kChunksY][2], high[kChunksY][2];  // bytes of the rows' sums, of pixels 2g and 2g + 1
#pragma unroll
    for (int c = 0; c < kChunksY; c++) low[c][0] = low[c][1] = high[c][0] = high[c][1] = 0;
#pragma unroll 1
    for (int step = 0; step < steps + kSteps - 1; step++, from += 8 * kPitch, to += 8 * kResultPitch) {
      uint32_t window[kChunksX];
#pragma unroll
      for (int c = 0; c < kChunksX; c++) window[c] = *reinterpret_cast<const uint32_t *>(from + 16 * c);
      Sums sums;
      if constexpr (kBytes == 1)
        sums = multiply<true, false>(row[0], window, row_start);
      else
        sums = add_high(multiply<false, false>(row[0], window, row_start),
                        multiply<kWeights == Weights::Word, false>(row[1], window, all(0)));
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const uint32_t pair =
            choose_bytes(static_cast<uint32_t>(sums.v[2 * i]), static_cast<uint32_t>(sums.v[2 * i + 1]), kPick);
#pragma unroll
        for (int c = 0; c + 1 < kChunksY; c++) {
          low[c][i] = choose_bytes(low[c][i], low[c + 1][i], 0x5432);
          high[c][i] = choose_bytes(high[c][i], high[c + 1][i], 0x5432);
        }
        // With an odd number of steps the last chunk's second half has no weight.
        constexpr int kLast = kChunksY - 1;
        low[kLast][i] = kSteps % 2 ? pair : choose_bytes(low[kLast][i], pair, 0x5432);
        high[kLast][i] = kSteps % 2 ? pair >> 16 : choose_bytes(high[kLast][i], pair, 0x7632);
      }
      if (step < kSteps - 1) continue;
      Sums total;
      if constexpr (kBytes == 1)
        total = add_high(multiply<false, true>(low, column[0], start), multiply<false, true>(high, column[0], all(0)));
      else
        total =
            add_high(multiply<false, false>(low, column[0], start),
                     add_high(multiply<false, true>(low, column[1], multiply<false, false>(high, column[0], all(0))),
                              multiply<false, true>(high, column[1], all(0))));
      const uint32_t out = round_sums(p.finish, total);
      *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(out);
      *reinterpret_cast<uint16_t *>(to + kResultPitch) = static_cast<uint16_t>(out >> 16);
    }
  }
  __syncthreads();
  store_planes(p, tile, source, results);
}

// ---- Masks without ----
//
// A warp sums a few rows of the tile's width at a time. The 8 columns of the matrix of samples are the 8 blocks of 16
// pixels, so that the lanes' words of it are 32 in a row, and the matrices of the mask's rows come from shared memory,
// each for all rows of results. A row of samples is loaded once and kept in registers while it serves.
//
// Two rows of the mask make a step: their chunks, one row's after the other's, are taken in pairs, so that none is
// wasted where a row has an odd number.

template <int kRadius, Weights kWeights>
struct DenseShape {
  static constexpr int kBytes = kWeights == Weights::Byte ? 1 : 2;
  static constexpr int kChunks = (16 + 2 * kRadius) / 16;
  static constexpr int kRows = 8 / kBytes;  // of results at a time, an even number
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocks = kRadius > 8 || kBytes == 2 ? 2 : 3;
  static constexpr int kLine = padded_words(kDenseLineWords);

  // Of the operands [step][pair of chunks][low, high][lane].
  CUDACONV_HOST_DEVICE static constexpr size_t fragment_bytes(int height) {
    return static_cast<size_t>((height + 1) / 2) * kChunks * kBytes * 32 * sizeof(uint4);
  }
  // Rows of results load up to two rows of samples beyond their windows.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int tile_height, int height) {
    return tile_height + height + 2;
  }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int height) {
    const size_t lines = static_cast<size_t>(kDenseRows) * kBytes * kLine * sizeof(uint32_t) + 16;
    const size_t results = static_cast<size_t>(channels) * kResultPitch * tile_height;
    return fragment_bytes(height) +
           static_cast<size_t>(channels) * source_pitch(kRadius) * source_rows(tile_height, height) +
           (lines > results ? lines : results);
  }
};

template <int kRadius, Weights kWeights>
__global__ void __launch_bounds__(DenseShape<kRadius, kWeights>::kThreads, DenseShape<kRadius, kWeights>::kMinBlocks)
    dense_tensor_kernel(const __grid_constant__ DenseTensorParams p) {
  using Shape = DenseShape<kRadius, kWeights>;
  constexpr int kBytes = Shape::kBytes;
  constexpr int kPitch = source_pitch(kRadius), kChunks = Shape::kChunks, kRows = Shape::kRows, kLine = Shape::kLine;
  constexpr int kWarps = Shape::kThreads / 32;
  const Tile tile = locate_tile(p, kTensorTileWidth, p.tile_height);
  const PartParams &part = tile.part;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  uint4 *fragments = shared_memory<uint4>();
  uint8_t *memory = shared_memory<uint8_t>() + Shape::fragment_bytes(p.height);
  const int source_bytes = kPitch * Shape::source_rows(p.tile_height, p.height);
  const Planes source = {memory + p.radius_y * kPitch + plane_margin(kRadius), kPitch, source_bytes};
  const Planes results = {memory + part.channels * source_bytes, kResultPitch, kResultPitch * p.tile_height};

  // Before there are results their memory holds the lines, [row][low, high].
  uint32_t *lines = reinterpret_cast<uint32_t *>(results.data);
  const int mask_steps = (p.height + 1) / 2;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * mask_steps * kBytes * kLine; i += Shape::kThreads) {
    const int line = i / kLine;
    lines[i] = padded_word(p.line[line % kBytes][line / kBytes], kDenseLineWords, i % kLine);
  }
  load_planes(p, tile, source);
  __syncthreads();
  for (int i = warp; i < mask_steps * kChunks * kBytes; i += kWarps) {
    const int byte = i % kBytes, pair = i / kBytes % kChunks, step = i / kBytes / kChunks;
    uint32_t word[4];
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const int chunk = 2 * pair + w / 2, row = 2 * step + chunk / kChunks;
      word[w] = four_bytes(lines + (row * kBytes + byte) * kLine, 16 * (chunk % kChunks) + 4 * t - (2 * g + w % 2));
    }
    fragments[i * 32 + lane] = make_uint4(word[0], word[1], word[2], word[3]);
  }
  __syncthreads();

  const Sums start = all(p.finish.start);
  const int groups = (min(p.tile_height, part.height - tile.y0) + kRows - 1) / kRows;
#pragma unroll 1
  for (int unit = warp; unit < part.channels * groups; unit += kWarps) {
    const int channel = unit / groups, y0 = unit % groups * kRows;
    if (part.channel[channel].action != Action::Filter) continue;
    const uint8_t *from = source.at(channel, 16 * g + 4 * t - kRadius, y0 - p.radius_y);
    uint32_t rows[kRows][kChunks];  // row r of those that windows reach is rows[r % kRows]
    const auto load_row = [&](int r, uint32_t(&to)[kChunks]) {
#pragma unroll
      for (int c = 0; c < kChunks; c++) to[c] = *reinterpret_cast<const uint32_t *>(from + r * kPitch + 16 * c);
    };
    Sums sums[kBytes][kRows];
#pragma unroll
    for (int y = 0; y < kRows; y++) {
      load_row(y, rows[y]);
      sums[0][y] = start;
      if constexpr (kBytes == 2) sums[1][y] = all(0);
    }
    const uint4 *next = fragments + lane;
#pragma unroll 1
    for (int r0 = 0; r0 < p.height; r0 += kRows) {
#pragma unroll
      for (int u = 0; u < kRows; u += 2) {
        const int r = r0 + u;  // of the mask
        if (r >= p.height) break;
        uint4 a[kChunks][kBytes];
#pragma unroll
        for (int i = 0; i < kChunks; i++)
#pragma unroll
          for (int b = 0; b < kBytes; b++, next += 32) a[i][b] = *next;
#pragma unroll
        for (int y = 0; y < kRows; y++) {
          const uint32_t(&row)[kChunks] = rows[(u + y) % kRows], (&below)[kChunks] = rows[(u + y + 1) % kRows];
#pragma unroll
          for (int i = 0; i < kChunks; i++) {
            const uint32_t b0 = 2 * i < kChunks ? row[2 * i % kChunks] : below[2 * i % kChunks];
            const uint32_t b1 = 2 * i + 1 < kChunks ? row[(2 * i + 1) % kChunks] : below[(2 * i + 1) % kChunks];
            const uint4 &low = a[i][0], &high = a[i][kBytes - 1];
            if constexpr (kBytes == 2)
              sums[0][y] = mma_k32<false, false>(low.x, low.y, low.z, low.w, b0, b1, sums[0][y]);
            sums[kBytes - 1][y] = mma_k32<true, false>(high.x, high.y, high.z, high.w, b0, b1, sums[kBytes - 1][y]);
          }
          if (y == 0) load_row(r + kRows, rows[u]);  // which has served; the last row of results needs the new one
        }
        load_row(r + kRows + 1, rows[u + 1]);
      }
    }
#pragma unroll
    for (int y = 0; y < kRows; y++) {
      if constexpr (kBytes == 2) sums[0][y] = add_high(sums[0][y], sums[1][y]);
      const uint32_t out = round_sums(p.finish, sums[0][y]);
      uint8_t *to = results.at(channel, 32 * t + 2 * g, y0 + y);
      *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(out);
      *reinterpret_cast<uint16_t *>(to + 16) = static_cast<uint16_t>(out >> 16);
    }
  }
  __syncthreads();
  store_planes(p, tile, source, results);
}

}  // namespace cudaconv
