// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Loads strips of rows into the registers of a warp for sliding.cuh, with the samples beside the frame.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/sliding/operation.cuh"

namespace cudaconv {

// A lane's part of a strip of rows.
struct LaneStrip {
  int first_byte;  // offset in a row of the part; outside the frame for lanes beside it
  int y0;          // row of the first result
};

template <typename Swar>
constexpr int kPixelBytes = Swar::kChannels * 4 / Swar::kPerWord;

// Merges copied and filled channels into the words of results at `first_byte` of a row.
template <typename Swar>
__device__ inline void blend_vector(const PartParams &part, int first_byte, const uint32_t (&original)[4],
                                    uint32_t (&row)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int phase = Swar::kChannels == 3 ? (first_byte / 4 + 6 + i) % 3 : i % 2;  // also for lanes before the frame
    row[i] = blend_channels(part, row[i], original[i], phase);
  }
}

// For byte n of the lane beside the left or right edge: the index of the byte that it mirrors, among the 16 bytes at
// that edge of the frame.
template <int kPixel>
__device__ constexpr int mirrored_byte(Border border, bool left, int n) {
  const int distance = left ? kVectorBytes - 1 - n : n;
  const int outside = distance / kPixel;  // pixels between this one and the frame
  const int inside = border == Border::Replicate ? 0 : border == Border::Reflect ? outside : outside + 1;
  const int byte = inside * kPixel + kPixel - 1 - distance % kPixel;
  return left ? byte : kVectorBytes - 1 - byte;
}

// mirrored_byte() for the four bytes of word i of such a lane, 4 bits each.
template <int kPixel>
__device__ constexpr uint32_t mirrored_bytes(Border border, bool left, int i) {
  uint32_t bytes = 0;
  for (int b = 0; b < 4; b++) bytes |= (mirrored_byte<kPixel>(border, left, 4 * i + b) & 15u) << 4 * b;
  return bytes;
}

// mirrored_bytes() for word i of such a lane, counted from the frame outwards.
template <int kPixel>
__device__ inline uint32_t mirrored_word(Border border, bool left, int i) {
  const auto of = [&](Border b) {
    return left ? mirrored_bytes<kPixel>(b, true, 3 - i) : mirrored_bytes<kPixel>(b, false, i);
  };
  return border == Border::Replicate ? of(Border::Replicate)
         : border == Border::Reflect ? of(Border::Reflect)
                                     : of(Border::Reflect101);
}

// In lanes beside the frame, which have loaded the 16 bytes at its edge, arranges these as the pixels beside the frame,
// as far as the radius reaches.
template <typename Swar, int kRadius, int kRows>
__device__ inline void mirror(const FrameParams &p, const PartParams &part, int first_byte, bool left, bool right,
                              uint32_t (&strip)[kRows][4]) {
  constexpr int kWords = (kRadius * kPixelBytes<Swar> + 3) / 4;
  if (p.border == Border::Wrap) return;  // these lanes have loaded the bytes at the other edge, which they need
  uint32_t bytes[kWords], of_half[kWords], fixed[kWords];
#pragma unroll
  for (int i = 0; i < kWords; i++) {
    bytes[i] = mirrored_word<kPixelBytes<Swar>>(p.border, left, i);
    of_half[i] = 0x3210u | (bytes[i] >> 1 & 0x4444u);
    bytes[i] &= 0x7777u;
    fixed[i] = border_word<Swar::kChannels>(part, first_byte, left ? 3 - i : i);
  }
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t word[kWords];
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      word[i] = __byte_perm(__byte_perm(strip[j][0], strip[j][1], bytes[i]),
                            __byte_perm(strip[j][2], strip[j][3], bytes[i]), of_half[i]);
      if (p.border == Border::Constant) word[i] = fixed[i];
    }
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      // Words that no neighbour reads are left undefined.
      if (left) strip[j][3 - i] = word[i];
      if (right) strip[j][i] = word[i];
    }
  }
}

// border_index() for a line of at least two samples and for i at most n outside it.
__device__ inline int fold(Border border, int i, int n) {
  if (i >= 0 && i < n) return i;
  if (border == Border::Constant) return -1;
  if (border == Border::Wrap) return i < 0 ? i + n : i - n;
  if (border == Border::Reflect) return (i < 0 ? -1 : 2 * n - 1) - i;
  if (border == Border::Reflect101) return (i < 0 ? 0 : 2 * n - 2) - i;
  return i < 0 ? 0 : n - 1;
}

// Loads the rows of a strip. `column` is the address of the lane's bytes in row 0 of the part. row_at(y) is the row
// that stands for row y, -1 for the border value.
template <typename Swar, int kRadius, int kRows, typename RowAt>
__device__ inline void load_rows(const PartParams &part, LaneStrip s, const uint8_t *column, RowAt row_at,
                                 uint32_t (&strip)[kRows][4]) {
  const int top = s.y0 - kRadius;
  if (top >= 0 && top + kRows <= part.height) {
    const uint8_t *at = column + top * part.source_pitch;
#pragma unroll
    for (int j = 0; j < kRows; j++, at += part.source_pitch)
      split_words(__ldg(reinterpret_cast<const uint4 *>(at)), strip[j]);
  } else {
    const int row_of_lane = row_at(top + static_cast<int>(threadIdx.x % 32));  // lane j has row j of the strip
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const int y = __shfl_sync(0xffffffffu, max(row_of_lane, 0), j);
      split_words(__ldg(reinterpret_cast<const uint4 *>(column + y * part.source_pitch)), strip[j]);
    }
    if (const unsigned filled = __ballot_sync(0xffffffffu, row_of_lane < 0)) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t border = border_word<Swar::kChannels>(part, s.first_byte, i);
#pragma unroll
        for (int j = 0; j < kRows; j++)
          if (filled >> j & 1) strip[j][i] = border;
      }
    }
  }
}

// Loads a strip for a warp whose lanes lie either completely inside or completely outside the frame. The part has more
// rows than the radius.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_strip(const FrameParams &p, const PartParams &part, LaneStrip s,
                                  uint32_t (&strip)[kRows][4]) {
  const int row_bytes = part.width * kPixelBytes<Swar>;
  const bool left = s.first_byte < 0, right = s.first_byte >= row_bytes;
  int byte = s.first_byte;
  if (left || right) byte = left == (p.border == Border::Wrap) ? row_bytes - kVectorBytes : 0;
  // min(): a row that is outside even after fold() is farther from the frame than any window reaches.
  const auto row_at = [&](int y) { return min(fold(p.border, y, part.height), part.height - 1); };
  load_rows<Swar, kRadius>(part, s, part.source + byte, row_at, strip);
  if (__any_sync(0xffffffffu, left || right)) mirror<Swar, kRadius>(p, part, s.first_byte, left, right, strip);
}

// ---- Rows that end with a tail ----

// Bytes of a row around each edge that lanes beside the frame, or lanes with the row's tail, may need. Edge 0 ends just
// before byte 0 of the frame; edge 1 begins with the lane that contains the row's end.
constexpr int kEdgeBytes = 32, kEdges = 2;

// Dynamic shared memory of a block in bytes, for strips of `rows` rows, halo included.
CUDACONV_HOST_DEVICE constexpr size_t edge_bytes(int warps, int rows) {
  return static_cast<size_t>(warps) * kEdges * kEdgeBytes * rows;
}

// Offset in a row of the first byte of edge 1.
template <typename Swar>
__device__ inline int second_edge(const PartParams &part) {
  return part.width * kPixelBytes<Swar> & -kVectorBytes;
}

// The warp's rows of an edge in shared memory.
template <int kRows>
__device__ inline uint8_t *warp_edges(int edge) {
  return shared_memory<uint8_t>() + (threadIdx.x / 32 * kRows * kEdges + edge) * kEdgeBytes;
}

// Gathers the strip's bytes at the edges in shared memory, one byte of each row a lane. It runs before the strip's rows
// are loaded, so that it takes none of their registers.
template <typename Swar, int kRadius, int kRows>
__device__ inline void gather_edges(const FrameParams &p, const PartParams &part, LaneStrip s) {
  constexpr int kPixel = kPixelBytes<Swar>, kRowBytes = kEdges * kEdgeBytes;
  // Added to offsets, which may lie before the frame, so that they are not negative; a number of whole pixels and
  // words.
  constexpr int kBefore = 48;
  const int lane = threadIdx.x % 32, warp_byte = s.first_byte - lane * kVectorBytes, last = second_edge<Swar>(part);
  const int row_of_lane = border_index_no_div(p.border, s.y0 - kRadius + lane, part.height);
#pragma unroll 1
  for (int edge = 0; edge < kEdges; edge++) {
    if (edge ? warp_byte + 32 * kVectorBytes <= last : warp_byte >= 0) continue;
    const int byte = (edge ? last : -kEdgeBytes) + lane + kBefore, pixel = byte / kPixel - kBefore / kPixel;
    const bool is_needed = pixel >= -kRadius && pixel < part.width + kRadius;
    const int x = is_needed ? border_index_no_div(p.border, pixel, part.width) : -1;
    const uint32_t word = part.border_word[byte / 4 % (Swar::kChannels == 3 ? 3 : 2)];
    const uint8_t *from = part.source + max(x, 0) * kPixel + byte % kPixel;
    uint8_t *to = warp_edges<kRows>(edge) + lane;
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
      const uint32_t sample = __ldg(from + max(y, 0) * part.source_pitch);
      to[j * kRowBytes] = static_cast<uint8_t>(x < 0 || y < 0 ? word >> byte % 4 * 8 : sample);
    }
  }
  __syncwarp();
}

// Loads this lane's 16 bytes from the gathered edge; only lanes left of byte 0, or at and behind the row's tail, have
// any.
template <typename Swar, int kRows>
__device__ inline void take_edges(const PartParams &part, LaneStrip s, uint32_t (&strip)[kRows][4]) {
  const int edge = s.first_byte >= 0;
  const int byte = edge ? s.first_byte - second_edge<Swar>(part) : kEdgeBytes - kVectorBytes;
  if (byte < 0 || byte >= kEdgeBytes) return;
  const auto *own = reinterpret_cast<const uint4 *>(warp_edges<kRows>(edge) + byte);
#pragma unroll
  for (int j = 0; j < kRows; j++) split_words(own[j * (kEdges * kEdgeBytes / kVectorBytes)], strip[j]);
}

// Loads a strip for a warp, where rows may end with a tail but have at least one whole lane.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_tail_strip(const FrameParams &p, const PartParams &part, LaneStrip s,
                                       uint32_t (&strip)[kRows][4]) {
  const bool is_whole = s.first_byte >= 0 && s.first_byte + kVectorBytes <= part.width * kPixelBytes<Swar>;
  const bool gathers = !__all_sync(0xffffffffu, is_whole);
  if (gathers) gather_edges<Swar, kRadius, kRows>(p, part, s);
  const auto row_at = [&](int y) { return border_index_no_div(p.border, y, part.height); };
  load_rows<Swar, kRadius>(part, s, part.source + (is_whole ? s.first_byte : 0), row_at, strip);
  if (gathers) take_edges<Swar>(part, s, strip);
}

}  // namespace cudaconv
