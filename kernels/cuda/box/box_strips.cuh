// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means by strips: from what changes from row to row, see box.cuh.
#pragma once

#include "cuda/box/box.cuh"
#include "cuda/device/async_copy.cuh"

namespace cudaconv {

constexpr int kBoxWarps = 8, kBoxThreads = 32 * kBoxWarps;
constexpr int kBoxAhead = 2;  // steps, with one row a warp, that are in shared memory or in flight
constexpr int kBoxU8x4s = 8, kBoxWidth = 32 * kBoxU8x4s;  // of a lane; of a row with its halo
static_assert(kBoxThreads == kBoxWidth);
// Index in a line of sums of the sum up to a u8x4: the first sums of all lanes lie in different banks. A 0 precedes the
// first one.
CUDACONV_HOST_DEVICE constexpr int box_place(int u8x4) {
  return u8x4 + (u8x4 >> 4);
}
constexpr int kBoxLine = box_place(kBoxWidth) + 2;
constexpr int kBoxBeside = 128;  // most pixels of a row beside the frame

// U8x4s on either side of a strip that its windows reach, in whole lanes, and u8x4s of its results.
CUDACONV_HOST_DEVICE constexpr int box_halo(int width) {
  return (width / 2 + kBoxU8x4s - 1) / kBoxU8x4s * kBoxU8x4s;
}
CUDACONV_HOST_DEVICE constexpr int box_strip_width(int width) {
  return kBoxWidth - 2 * box_halo(width);
}
// Unused bytes at the beginning of rows, with which they are aligned to 16.
CUDACONV_HOST_DEVICE constexpr int box_lead(int channels, int width) {
  return box_halo(width) * channels % 16;
}
CUDACONV_HOST_DEVICE constexpr int box_row_pixels(int channels, int width) {
  return box_strip_width(width) * subtiles(channels) + 2 * box_halo(width);
}
CUDACONV_HOST_DEVICE constexpr int box_row_bytes(int channels, int width) {
  return (box_lead(channels, width) + box_row_pixels(channels, width) * channels + 15) / 16 * 16;
}
// Rows of the ring. A new row is requested into the slot of a row that has left and that its warp has just read. With
// low windows that row may still be needed for results, so the ring has some more slots.
CUDACONV_HOST_DEVICE constexpr int box_slots(int height) {
  return height + (height / 2 < 2 * kBoxWarps - 1 ? 2 * kBoxAhead : kBoxAhead) * kBoxWarps;
}
CUDACONV_HOST_DEVICE constexpr size_t box_shared_bytes(int height, int pitch) {
  return kBoxWarps * kBoxLine * sizeof(uint2) + kBoxBeside * sizeof(uint32_t) +
         static_cast<size_t>(box_slots(height)) * pitch;
}

// The sums of windows around a u8x4, byte by byte.
struct StripSums {
  int32_t sum[4];

  __device__ explicit StripSums(uint32_t start) {
#pragma unroll
    for (int32_t &v : sum) v = static_cast<int32_t>(start);
  }

  // Adds the difference of two sums along a row; each byte's difference fits 16 bits.
  __device__ void change(uint2 to, uint2 from, int factor = 1) {
    constexpr uint32_t kBias = 0x8000;  // makes lower halves non-negative
    const uint32_t odd = to.y - from.y + kBias;
    const uint32_t even = to.x - from.x + (kBias + (kBias << 8)) - (odd << 8);
    const auto add = [&](int i, uint32_t pair) {
      if (factor == 1) {
        sum[i] = add_lane<0>(pair ^ kBias, sum[i]);
        sum[i + 2] = add_lane<1>(pair ^ kBias, sum[i + 2]);
      } else {
        sum[i] += add_lane<0>(pair ^ kBias, 0) * factor;
        sum[i + 2] += add_lane<1>(pair ^ kBias, 0) * factor;
      }
    };
    add(0, even);
    add(1, odd);
  }
  // Makes a u8x4 of samples: round(sum) rounds each sum.
  template <typename Round>
  __device__ uint32_t u8x4(Round round) const {
    return pack_clamped(round(sum[0]), round(sum[1]), round(sum[2]), round(sum[3]));
  }

 private:
  // v plus one signed half of a pair.
  template <int kLane>
  __device__ static int32_t add_lane(uint32_t pair, int32_t v) {
#ifdef __CUDA_ARCH__
    return __dp2a_lo(static_cast<int32_t>(pair), kLane ? 0x0100 : 0x0001, v);
#else
    return v + static_cast<int16_t>(pair >> 16 * kLane);
#endif
  }
};

// The rows that windows reach, in a ring. Rows are copied asynchronously, as they lie in memory; pixels beside the
// frame are made of the others once these have arrived.
class BoxRing {
 public:
  // `beside` has room for kBoxBeside words, which all threads of the block fill here; they have to synchronise before
  // it is used.
  __device__ BoxRing(const BoxParams &p, const Tile &tile, uint32_t *beside, uint8_t *ring)
      : p_(p),
        part_(tile.part),
        beside_(beside),
        ring_(ring),
        channels_(tile.part.channels),
        lead_(box_lead(channels_, p.width)),
        first_(tile.x0 - box_halo(p.width)),
        y0_(tile.y0 - p.height / 2 - 1) {
    const int radius = p.width / 2, end = first_ + box_row_pixels(channels_, p.width);
    pixels_ = min(end, part_.width + radius) - first_;
    const int left = min(max(-first_, 0), radius), right = min(max(end - part_.width, 0), radius);
    is_async_ = left + right == 0 || (p.border != Border::Wrap && part_.width > radius);
    count_ = is_async_ ? left + right : 0;
    for (int n = static_cast<int>(threadIdx.x); n < count_; n += kBoxThreads) {
      const int x = n < left ? n - left : part_.width + n - left;
      const int from = border_index_no_div(p.border, x, part_.width);
      beside[n] = static_cast<uint32_t>(from < 0 ? kNone : place(from - first_)) << 16 | place(x - first_);
    }
    const int row_bytes = part_.width * channels_, first_byte = first_ * channels_ - lead_ + 16 * lane();
    source_ = part_.source + first_byte;
    at_ = __shfl_sync(0xffffffffu, 16 * swapped(lane()), lane());  // kept, not recomputed each time
    whole_[0] = whole_[1] = false;
    tail_ = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int byte = first_byte + 512 * i;
      if (lane() + 32 * i >= box_row_bytes(channels_, p.width) / 16 || byte < 0 || byte >= row_bytes) continue;
      whole_[i] = byte + 16 <= row_bytes;
      if (!whole_[i]) tail_ = 512 * i + row_bytes - byte;
    }
    tails_ = __any_sync(0xffffffffu, tail_ != 0);
  }

  // Begins to copy row n; row 0 is the one above the first window.
  __device__ void request(int n, int slot) const {
    int y = y0_ + n;
    if (static_cast<unsigned>(y) >= static_cast<unsigned>(part_.height))
      y = border_index_no_div(p_.border, y, part_.height);
    uint8_t *const to = row(slot);
    if (is_async_ && y >= 0) {
      const uint8_t *const from = source_ + y * part_.source_pitch;
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (whole_[i]) copy_async(to + at_ + 512 * i, from + 512 * i);
      if (tails_ && tail_) copy_async(to + at_ + tail_ / 512 * 512, from + tail_ / 512 * 512, tail_ % 512);
      return;
    }
#pragma unroll 4
    for (int x = lane(); x < pixels_; x += 32) {
      const int from = y < 0 ? -1 : border_index_no_div(p_.border, first_ + x, part_.width);
      const uint8_t *const pixel = part_.source + y * part_.source_pitch + from * channels_;
#pragma unroll
      for (int c = 0; c < 4; c++)
        if (c < channels_)
          to[place(x) + c] = from < 0 ? static_cast<uint8_t>(part_.channel[c].border_value) : __ldg(pixel + c);
    }
  }

  // Fills in the pixels beside the frame of a row that has arrived. The warp that has requested the row calls this.
  __device__ void complete(int slot) const {
    uint8_t *const to = row(slot);
#pragma unroll 1
    for (int n = lane(); n < count_; n += 32) {
      const int from = beside_[n] >> 16, x = beside_[n] & 0xffff;
      if (channels_ == 4) {
        *reinterpret_cast<uint32_t *>(to + x) =
            from == kNone ? part_.border_word[0] : *reinterpret_cast<const uint32_t *>(to + from);
      } else {
#pragma unroll 1
        for (int c = 0; c < channels_; c++)
          to[x + c] = from == kNone ? static_cast<uint8_t>(part_.channel[c].border_value) : to[from + c];
      }
    }
  }

  // Reads the lane's u8x4s of a row.
  template <int kChannels>
  __device__ void read(int slot, uint32_t (&u8x4s)[kBoxU8x4s]) const {
    constexpr int kSubtiles = subtiles(kChannels), kWords = kBoxU8x4s / 4 * kChannels;
    const uint8_t *const from = row(slot);
    uint32_t words[2][kSubtiles][kChannels];
#pragma unroll
    for (int s = 0; s < kSubtiles; s++) {
      uint32_t line[kWords];
      const uint8_t *const at = from + lead_ + (s * p_.tile.width + kBoxU8x4s * lane()) * kChannels;
      if constexpr (kChannels == 4) {
#pragma unroll
        for (int i = 0; i < 2; i++) load_words<4>(from + 16 * swapped(2 * lane() + i), line + 4 * i);
      } else {
#pragma unroll
        for (int i = 0; i < kWords / 2; i++) load_words<2>(at + 8 * i, line + 2 * i);
      }
#pragma unroll
      for (int i = 0; i < kWords; i++) words[i / kChannels][s][i % kChannels] = line[i];
    }
#pragma unroll
    for (int g = 0; g < 2; g++) {
      const uint4 four = interleave<kChannels>(words[g]);
      u8x4s[4 * g] = four.x;
      u8x4s[4 * g + 1] = four.y;
      u8x4s[4 * g + 2] = four.z;
      u8x4s[4 * g + 3] = four.w;
    }
  }

  // Reads u8x4 n of kRows rows from a slot on.
  template <int kRows>
  __device__ void read_column(int slot, int n, uint32_t (&u8x4s)[kRows]) const {
    const int slots = box_slots(p_.height);
    if (channels_ == 4) {
      const int at = place(n);
#pragma unroll
      for (uint32_t &u8x4 : u8x4s) {
        u8x4 = *reinterpret_cast<const uint32_t *>(row(slot) + at);
        if (++slot == slots) slot = 0;
      }
      return;
    }
#pragma unroll
    for (uint32_t &u8x4 : u8x4s) {
      u8x4 = 0;
#pragma unroll 1
      for (int i = 0, s = 0; s < subtiles(channels_); s++) {
        const uint8_t *const pixel = row(slot) + place(s * p_.tile.width + n);
#pragma unroll 1
        for (int c = 0; c < channels_; c++, i++) u8x4 |= static_cast<uint32_t>(pixel[c]) << 8 * i;
      }
      if (++slot == slots) slot = 0;
    }
  }

 private:
  static constexpr int kNone = 0xffff;

  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  __device__ uint8_t *row(int slot) const {
    return ring_ + slot * p_.pitch;
  }
  // Index of the place where 16-byte chunk `chunk` of a row is stored. With four channels, of which a lane reads twice
  // as many, neighbouring lanes then use different banks.
  __device__ int swapped(int chunk) const {
    return channels_ == 4 ? chunk ^ (chunk >> 3 & 1) : chunk;
  }
  // Offset of a pixel in a row.
  __device__ int place(int x) const {
    const int byte = lead_ + x * channels_;
    return 16 * swapped(byte / 16) + byte % 16;
  }

  const BoxParams &p_;
  const PartParams &part_;
  const uint32_t *beside_;  // where pixels beside the frame go and, above 16 bits, where they come from
  uint8_t *ring_;
  int channels_, lead_;
  int first_, pixels_;     // pixels of a row that windows reach
  int y0_;                 // row 0 of the ring
  int count_;              // number of pixels beside the frame
  const uint8_t *source_;  // the lane's 16 bytes; with four channels it has a second chunk, 512 bytes farther
  int at_;                 // where they go in a row
  bool whole_[2];          // whether each chunk lies completely in the frame
  int tail_;               // a partial chunk: its distance, 0 or 512, plus its number of bytes; 0: none
  bool is_async_, tails_;
};

// v plus that of the lane `distance` below, if there is such a lane.
__device__ inline uint32_t add_from_below(uint32_t v, int distance) {
#ifdef __CUDA_ARCH__
  // The shuffle's predicate says whether there is one.
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  .reg .u32 r;\n"
      "  shfl.sync.up.b32 r|p, %0, %1, 0, 0xffffffff;\n"
      "  @p add.u32 %0, %0, r;\n"
      "}"
      : "+r"(v)
      : "r"(distance)
      : "memory");
  return v;
#else
  const uint32_t below = __shfl_up_sync(0xffffffffu, v, distance);
  return static_cast<int>(threadIdx.x) % 32 < distance ? v : v + below;
#endif
}

// Prefix sums of a row: a lane's eight, of words and of odd pairs.
struct RowSums {
  uint32_t words[kBoxU8x4s], odd[kBoxU8x4s];

  // Turns sums from each lane's first u8x4 on into sums from the row's first u8x4 on.
  __device__ void add_up() {
    uint32_t words_before = words[kBoxU8x4s - 1], odd_before = odd[kBoxU8x4s - 1];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      words_before = add_from_below(words_before, d);
      odd_before = add_from_below(odd_before, d);
    }
    words_before -= words[kBoxU8x4s - 1];
    odd_before -= odd[kBoxU8x4s - 1];
#pragma unroll
    for (int i = 0; i < kBoxU8x4s; i++) {
      words[i] += words_before;
      odd[i] += odd_before;
    }
  }
  __device__ void write(uint2 *line) const {
    line += box_place(kBoxU8x4s * (threadIdx.x % 32));
#pragma unroll
    for (int i = 0; i < kBoxU8x4s; i++) line[i] = make_uint2(words[i], odd[i]);
  }
};

// Begins to copy the rows of the windows above the first one, and the rows of the first steps; each of these is a group
// of copies.
__device__ inline void request_first_rows(const BoxParams &p, const BoxRing &ring, int warp) {
  const int share = (p.height + kBoxWarps - 1) / kBoxWarps;  // rows before the first step's for each warp
#pragma unroll 1
  for (int i = 0; i < share + kBoxAhead; i++) {
    const int n = kBoxWarps * i + warp, row = i < share ? n : n - kBoxWarps * share + p.height;
    if (i >= share || n < p.height) ring.request(row, row);
    if (i >= share - 1) commit_copies();
  }
}

// Calls read() with the part's number of channels as an integral_constant.
template <typename Read>
__device__ inline void with_channels(const PartParams &part, Read read) {
  if (part.channels == 4) return read(std::integral_constant<int, 4>());
  if (part.channels == 1) return read(std::integral_constant<int, 1>());
  if (part.channels == 2) return read(std::integral_constant<int, 2>());
  read(std::integral_constant<int, 3>());
}

// Sums the columns of the warp's share of the rows of the windows above the first one.
__device__ inline void add_columns(const BoxParams &p, const PartParams &part, const BoxRing &ring, int warp,
                                   RowSums &sums) {
#pragma unroll
  for (int i = 0; i < kBoxU8x4s; i++) sums.words[i] = sums.odd[i] = 0;
  with_channels(part, [&](auto channels) {
#pragma unroll 1
    for (int n = warp; n < p.height; n += kBoxWarps) ring.complete(n);
    __syncwarp();
#pragma unroll 2
    for (int n = warp; n < p.height; n += kBoxWarps) {
      uint32_t u8x4s[kBoxU8x4s];
      ring.read<decltype(channels)::value>(n, u8x4s);
#pragma unroll
      for (int i = 0; i < kBoxU8x4s; i++) {
        sums.words[i] += u8x4s[i];
        sums.odd[i] += odd_pair(u8x4s[i]);
      }
    }
  });
}

// Adds the column sums of all warps, and computes their prefix sums along the row: of the lower bytes to the line of
// warp 2, of the upper bytes to that of warp 3.
__device__ inline void add_up_columns(const RowSums &sums, int warp, int lane, uint2 *lines, uint2 *own_line) {
  sums.write(own_line);
  __syncthreads();
  // Each thread adds up one column, and only it reads these sums.
  uint2 *const total = lines + box_place(static_cast<int>(threadIdx.x));
#pragma unroll
  for (int i = 1; i < kBoxWarps; i++) {
    total->x += total[i * kBoxLine].x;
    total->y += total[i * kBoxLine].y;
  }
  __syncthreads();
  if (warp < 2) {
    RowSums bytes;
    uint32_t words = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < kBoxU8x4s; i++) {
      const uint2 of_column = lines[box_place(kBoxU8x4s * lane + i)];
      const uint32_t odd_bytes = even_bytes(of_column.y >> 8 * warp);
      words += even_bytes((of_column.x - (of_column.y << 8)) >> 8 * warp) + (odd_bytes << 8);
      odd += odd_bytes;
      bytes.words[i] = words;
      bytes.odd[i] = odd;
    }
    bytes.add_up();
    bytes.write(lines + (2 + warp) * kBoxLine);
  }
  __syncthreads();
}

// Computes what changes in the windows of a row: the row that enters minus the one that leaves, summed from the lane's
// first u8x4 on.
__device__ inline void change_sums(const PartParams &part, const BoxRing &ring, int enters, int leaves, RowSums &sums) {
  with_channels(part, [&](auto channels) {
    constexpr int kChannels = decltype(channels)::value;
    uint32_t more[kBoxU8x4s], less[kBoxU8x4s];
    ring.read<kChannels>(enters, more);
    ring.read<kChannels>(leaves, less);
    uint32_t words = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < kBoxU8x4s; i++) {
      sums.words[i] = words = words + more[i] - less[i];
      sums.odd[i] = odd = odd + odd_pair(more[i]) - odd_pair(less[i]);
    }
  });
}

__global__ void __launch_bounds__(kBoxThreads, BoxTuning::kStripBlocks)
    box_strip_kernel(const __grid_constant__ BoxParams p) {
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, p.tile.pixels[part.channels - 1], p.tile.height);
  const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32, slots = box_slots(p.height);
  const int rows = min(p.tile.height, part.height - tile.y0);
  uint2 *const lines = shared_memory<uint2>() + 2, *const own_line = lines + warp * kBoxLine;
  uint32_t *const beside = reinterpret_cast<uint32_t *>(lines - 2 + kBoxWarps * kBoxLine);
  const BoxRing ring(p, tile, beside, reinterpret_cast<uint8_t *>(beside + kBoxBeside));
  if (threadIdx.x < kBoxWarps) lines[static_cast<int>(threadIdx.x) * kBoxLine - 2] = make_uint2(0, 0);
  request_first_rows(p, ring, warp);

  const int radius = p.width / 2, column = static_cast<int>(threadIdx.x) + box_halo(p.width);
  // Shuffled so that the compiler keeps the addresses: it would recompute them every step.
  const uint2 *const to = lines + __shfl_sync(0xffffffffu, box_place(min(column + radius, kBoxWidth - 1)), lane);
  const uint2 *const from = lines + __shfl_sync(0xffffffffu, box_place(min(column, kBoxWidth) - radius - 1), lane);
  StripSums window(p.unclamped ? p.start : 0);
  RowSums sums;

  // The windows above the first result: each warp sums columns of its share of rows; then two warps sum these along the
  // row, one the lower and one the upper bytes.
  wait_for_groups<kBoxAhead>();
  __syncthreads();
  add_columns(p, part, ring, warp, sums);
  add_up_columns(sums, warp, lane, lines, own_line);
#pragma unroll
  for (int i = 0; i < 2; i++) window.change(to[(2 + i) * kBoxLine], from[(2 + i) * kBoxLine], 1 << 8 * i);

  U8x4Writer writer(p.tile, tile, static_cast<int>(threadIdx.x), 0);
  const auto wrapped = [&](int slot) { return slot < slots ? slot : slot - slots; };
  int leaving = 0;                // slot of the step's first row that leaves
  int middle = p.height / 2 + 1;  // slot of the step's first row of results
#pragma unroll 1
  for (int y = 0; y < rows; y += kBoxWarps) {
    wait_for_groups<kBoxAhead - 1>();
    __syncwarp();
    const int leaves = wrapped(leaving + warp), enters = wrapped(leaves + p.height);  // slots of the warp's rows
    ring.complete(enters);
    // With low windows a row may leave in the step in which it enters, in another warp.
    if (p.height < kBoxWarps)
      __syncthreads();
    else
      __syncwarp();
    change_sums(part, ring, enters, leaves, sums);
    sums.add_up();
    __syncwarp();
    if (y + kBoxAhead * kBoxWarps < rows)
      ring.request(y + kBoxAhead * kBoxWarps + p.height + warp, wrapped(enters + kBoxAhead * kBoxWarps));
    commit_copies();
    __syncthreads();
    sums.write(own_line);
    __syncthreads();
    if (32 * warp < p.tile.width) {
      uint32_t u8x4s[kBoxWarps];
      const auto go_down = [&](auto round) {
#pragma unroll
        for (int i = 0; i < kBoxWarps; i++) {
          window.change(to[i * kBoxLine], from[i * kBoxLine]);
          u8x4s[i] = window.u8x4(round);
        }
      };
      if (p.unclamped)
        go_down([&](int32_t v) { return divide(static_cast<uint32_t>(v), p.reciprocal); });
      else
        go_down([&](int32_t v) { return round_to_sample(v * p.factor, p.rounding[0]); });
      if (part.has_unfiltered) {
        uint32_t pixels[kBoxWarps];
        ring.read_column(middle, min(column, kBoxWidth - 1), pixels);
#pragma unroll
        for (int i = 0; i < kBoxWarps; i++) u8x4s[i] = blend_channels(part, u8x4s[i], pixels[i]);
      }
      writer.write([&](auto put) {
#pragma unroll
        for (uint32_t u8x4 : u8x4s) put(u8x4);
      });
    }
    leaving = wrapped(leaving + kBoxWarps);
    middle = wrapped(middle + kBoxWarps);
  }
}

}  // namespace cudaconv
