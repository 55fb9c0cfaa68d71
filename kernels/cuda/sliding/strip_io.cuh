// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Loads strips of rows into the registers of a warp for sliding.cuh, with the samples beside the frame.
#pragma once

#include "cuda/device/tile.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/sliding/operation.cuh"

namespace cudaconv::sliding {

// A lane's part of a strip of rows.
struct LaneStrip {
  int first_byte;  // offset in a row of the part; outside the frame for lanes beside it
  int y0;          // row of the first result
};

// Bytes of a pixel in registers, and of a row. Pixels of three bytes count as four, here and wherever offsets in a row
// are meant, such as first_byte.
template <typename Swar>
constexpr int kPixelBytes = Swar::kChannels * 4 / Swar::kPerWord;

template <typename Swar>
__device__ inline int row_bytes(const PartParams &part) {
  return part.width * kPixelBytes<Swar>;
}

template <typename Swar>
__device__ inline bool of_three_bytes(const PartParams &part) {
  return kPixelBytes<Swar> == 4 && Swar::kChannels == 4 && part.channels == 3;
}

// Where the bytes from `byte` on, a multiple of four, lie in a row in memory.
template <typename Swar>
__device__ inline int offset_in_memory(const PartParams &part, int byte) {
  return of_three_bytes<Swar>(part) ? byte / 4 * 3 : byte;
}

// Four pixels of three bytes as four of four bytes, in place, and back.
//   r0 g0 b0 r1   g1 b1 r2 g2   b2 r3 g3 b3   <->   r0 g0 b0 -   r1 g1 b1 -   r2 g2 b2 -   r3 g3 b3 -
__device__ inline void widen_pixels(uint32_t (&row)[4]) {
  row[3] = row[2] >> 8;
  row[2] = __byte_perm(row[1], row[2], 0x5432);
  row[1] = __byte_perm(row[0], row[1], 0x6543);
}
__device__ inline void narrow_pixels(uint32_t (&row)[4]) {
  row[0] = __byte_perm(row[0], row[1], 0x4210);
  row[1] = __byte_perm(row[1], row[2], 0x5421);
  row[2] = __byte_perm(row[2], row[3], 0x6542);
}

// Loads a lane's bytes of a row.
__device__ inline void load_vector(bool three, const uint8_t *from, uint32_t (&row)[4]) {
  if (three)
    read_words<3>(from, row);
  else
    split_words(__ldg(reinterpret_cast<const uint4 *>(from)), row);
}

// The row that stands for row `top` + the lane's number, of kRows rows; -1: the border value.
template <int kRows>
__device__ inline int row_for_lane(const FrameParams &p, const PartParams &part, int top) {
  return border_index_no_div(p.border, top + min(static_cast<int>(threadIdx.x % 32), kRows - 1), part.height);
}

// Loads the rows of a strip. `column` is the address of the lane's bytes in row 0 of the part.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_rows(const FrameParams &p, const PartParams &part, LaneStrip s, const uint8_t *column,
                                 uint32_t (&strip)[kRows][4]) {
  const int top = s.y0 - kRadius;
  const bool three = of_three_bytes<Swar>(part);
  if (!three && top >= 0 && top + kRows <= part.height) {
    const uint8_t *at = column + top * part.source_pitch;
#pragma unroll
    for (int j = 0; j < kRows; j++, at += part.source_pitch) load_vector(false, at, strip[j]);
    return;
  }
  // Lane j finds row j of the strip; -1: the border value.
  const int row_of_lane = row_for_lane<kRows>(p, part, top);
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    const int y = __shfl_sync(0xffffffffu, max(row_of_lane, 0), j);
    load_vector(three, column + y * part.source_pitch, strip[j]);
  }
  if (three) {
    each<kRows>([&](int j) { widen_pixels(strip[j]); });
  }
  if (const unsigned filled = __ballot_sync(0xffffffffu, row_of_lane < 0)) {
    each<4, kRows>([&](int i, int j) {
      if (filled >> j & 1) strip[j][i] = part.border_word[i % 2];
    });
  }
}

// ---- Edges ----

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
  return row_bytes<Swar>(part) & -kVectorBytes;
}

// The warp's rows of an edge in shared memory.
template <int kRows>
__device__ inline uint8_t *warp_edges(int edge) {
  return shared_memory<uint8_t>() + (threadIdx.x / 32 * kRows * kEdges + edge) * kEdgeBytes;
}

// Gathers the strip's bytes at the edges in shared memory, one byte of each row a lane.
template <typename Swar, int kRadius, int kRows>
__device__ inline void gather_edges(const FrameParams &p, const PartParams &part, LaneStrip s) {
  constexpr int kPixel = kPixelBytes<Swar>, kRowBytes = kEdges * kEdgeBytes;
  // Added to offsets, which may lie before the frame, so that they are not negative; a number of whole pixels and
  // words.
  constexpr int kBefore = 48;
  const int lane = threadIdx.x % 32, warp_byte = s.first_byte - lane * kVectorBytes, last = second_edge<Swar>(part);
  const int row_of_lane = row_for_lane<kRows>(p, part, s.y0 - kRadius);
  const int pixel_bytes = of_three_bytes<Swar>(part) ? 3 : kPixel;
#pragma unroll 1
  for (int edge = 0; edge < kEdges; edge++) {
    if (edge ? warp_byte + 32 * kVectorBytes <= last : warp_byte >= 0) continue;
    const int byte = (edge ? last : -kEdgeBytes) + lane + kBefore, pixel = byte / kPixel - kBefore / kPixel;
    const bool is_needed = pixel >= -kRadius && pixel < part.width + kRadius;
    const int x = is_needed ? border_index_no_div(p.border, pixel, part.width) : -1;
    const uint32_t word = part.border_word[byte / 4 % 2];
    const uint8_t *from = part.source + max(x, 0) * pixel_bytes + min(byte % kPixel, pixel_bytes - 1);
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
  const uint8_t *own = warp_edges<kRows>(edge) + byte;
  each<kRows>([&](int j) { load_words<4>(own + j * kEdges * kEdgeBytes, strip[j]); });
}

// ---- Strips ----

// Loads a strip for a warp; samples beside the frame, and those of the row's tail, are gathered. The strip's rows are
// loaded first, so that all loads are in flight together.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_strip(const SlidingParams &p, const PartParams &part, LaneStrip s,
                                  uint32_t (&strip)[kRows][4]) {
  const bool at_edge = s.first_byte < 0 || s.first_byte + kVectorBytes > row_bytes<Swar>(part);
  const int byte = at_edge ? 0 : s.first_byte;
  load_rows<Swar, kRadius>(p, part, s, part.source + offset_in_memory<Swar>(part, byte), strip);
  if (!__any_sync(0xffffffffu, at_edge)) return;
  gather_edges<Swar, kRadius, kRows>(p, part, s);
  take_edges<Swar>(part, s, strip);
}

// Where a lane writes its results: to the part or, if it has the tail of rows that end within a lane, to shared memory,
// in place of the samples gathered there. finish() then writes the tail byte by byte.
template <typename Swar, int kRows>
class StripTarget {
 public:
  __device__ StripTarget(const PartParams &part, LaneStrip s, bool writes)
      : is_tail_(writes && s.first_byte + kVectorBytes > row_bytes<Swar>(part)),
        three_(!is_tail_ && of_three_bytes<Swar>(part)),
        pitch_(is_tail_ ? kTailPitch : static_cast<int>(part.target_pitch)),
        at_(is_tail_ ? warp_edges<kRows>(1)
                     : part.target + s.y0 * part.target_pitch + offset_in_memory<Swar>(part, s.first_byte)) {}

  __device__ void put(uint32_t (&row)[4]) const {
    if (three_) {
      narrow_pixels(row);
      store_words<3>(at_, row);
    } else {
      store_words<4>(at_, row);
    }
  }
  __device__ void next_row() { at_ += pitch_; }

  // Reads the samples at the place of row r of results again.
  __device__ void reread(const PartParams &part, LaneStrip s, int r, int radius, uint32_t (&words)[4]) const {
    if (is_tail_) {
      split_words(*reinterpret_cast<const uint4 *>(warp_edges<kRows>(1) + (r + radius) * kTailPitch), words);
      return;
    }
    load_vector(three_, part.source + (s.y0 + r) * part.source_pitch + offset_in_memory<Swar>(part, s.first_byte),
                words);
    if (three_) widen_pixels(words);
  }

  // Writes the tail's results, `rows` rows of them. All lanes of the warp call this.
  __device__ void finish(const PartParams &part, LaneStrip s, int rows) const {
    if (!__any_sync(0xffffffffu, is_tail_)) return;
    __syncwarp();
    const int lane = threadIdx.x % 32, last = second_edge<Swar>(part);
    if (lane >= row_bytes<Swar>(part) - last) return;
    const bool three = of_three_bytes<Swar>(part);
    if (three && lane % 4 == 3) return;
    const uint8_t *from = warp_edges<kRows>(1) + lane;
    uint8_t *to = part.target + s.y0 * part.target_pitch + (three ? (last + lane) / 4 * 3 + lane % 4 : last + lane);
#pragma unroll 1
    for (int r = 0; r < min(rows, part.height - s.y0); r++, to += part.target_pitch, from += kTailPitch) *to = *from;
  }

 private:
  static constexpr int kTailPitch = kEdges * kEdgeBytes;
  const bool is_tail_, three_;
  const int pitch_;
  uint8_t *at_;
};

}  // namespace cudaconv::sliding
