// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tiles of dense 8-bit planes in shared memory, as quads: words of four bytes that are treated alike, whatever the
// format. With three or four channels a quad is a pixel. With fewer, a tile consists of subtiles, one right of the
// other, and a quad takes the pixels at the same place of each:
//
//   4 channels   3 channels   2 channels                    1 channel
//   r g b a      r g b -      u v of subtile 0, u v of 1    y of subtiles 0, 1, 2, 3
//
// So a kernel needs to know nothing of channels: steps along rows and columns are steps from quad to quad.
#pragma once

#include "launch.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kChunk = 4;  // quads that are loaded together, from as many neighbouring pixels

__host__ __device__ constexpr int subtiles(int channels) {
  return channels == 1 ? 4 : channels == 2 ? 2 : 1;
}

// How many blocks a multiprocessor is to hold, which bounds the registers of a thread: on Hopper as many as given,
// tried there; elsewhere, where the same code takes a few more registers, one less, so that nothing spills.
__host__ __device__ constexpr int blocks_at_once(int hopper) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
  return hopper > 1 ? hopper - 1 : 1;
#else
  return hopper;
#endif
}

__host__ __device__ constexpr int round_to_chunks(int quads) {
  return (quads + kChunk - 1) / kChunk * kChunk;
}

// A tile's size, alike for all parts of a frame.
struct QuadTile {
  int32_t width, height;       // results: quads of a row, rows
  int32_t halo_x, halo_y;      // quads on the left and on the right that are loaded, a multiple of kChunk; rows
  int32_t chunks;              // of a row with its halo
  uint32_t chunks_reciprocal;  // ceil(2^20 / chunks)
};

// `width` is a multiple of kChunk.
inline QuadTile make_quad_tile(int width, int height, int radius_x, int radius_y) {
  QuadTile tile = {};
  tile.width = width;
  tile.height = height;
  tile.halo_x = round_to_chunks(radius_x);
  tile.halo_y = radius_y;
  tile.chunks = (width + 2 * tile.halo_x) / kChunk;
  tile.chunks_reciprocal = ((1u << 20) + tile.chunks - 1) / tile.chunks;
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

// The same of one quad's four bytes.
__device__ inline void copy_quad(uint32_t *to, const uint8_t *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#else
  *to = __ldg(reinterpret_cast<const uint32_t *>(from));
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

// border_index() out of line, so that its divisions do not crowd the instruction cache.
__device__ inline __noinline__ int outside_index(Border border, int i, int n) {
  return border_index(border, i, n);
}

__device__ inline int index_anywhere(Border border, int i, int n) {
  return i >= 0 && i < n ? i : outside_index(border, i, n);
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
  y = index_anywhere(p.border, y, part.height);
#pragma unroll
  for (int i = 0; i < kChannels; i++) words[i] = 0;
#pragma unroll
  for (int i = 0; i < kChunk; i++) {
    const int sx = index_anywhere(p.border, x + i, part.width);
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

// Loads `rows` rows of the tile from `first` on, the halo's first being 0, into shared memory, `pitch` words a row, a
// multiple of 4. One warp does it; it has to wait_for_chunks() and meet before it reads them.
template <int kChannels>
__device__ inline void load_rows(const FrameParams &p, const QuadTile &shape, const Tile &tile, int first, int rows,
                                 int pitch, uint32_t *quads) {
  constexpr int kSubtiles = subtiles(kChannels);
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, x0 = tile.x0 - shape.halo_x, y0 = tile.y0 - shape.halo_y + first;
  const bool inside = part.aligned && x0 >= 0 &&
                      x0 + (kSubtiles - 1) * shape.width + shape.chunks * kChunk <= part.width && y0 >= 0 &&
                      y0 + rows <= part.height;
  const auto locate = [&](int item, int *row, int *chunk) {
    *row = static_cast<int>(item * shape.chunks_reciprocal >> 20);
    *chunk = item - *row * shape.chunks;
  };
  const auto put = [&](int row, int chunk, const uint32_t(&words)[kSubtiles][kChannels]) {
    *reinterpret_cast<uint4 *>(quads + row * pitch + chunk * kChunk) = interleave<kChannels>(words);
  };
  if (inside) {
    const uint8_t *source = part.source + y0 * part.source_pitch + x0 * kChannels;
#pragma unroll 4
    for (int item = lane; item < rows * shape.chunks; item += 32) {
      int row, chunk;
      locate(item, &row, &chunk);
      const uint8_t *from = source + row * part.source_pitch + chunk * (kChunk * kChannels);
      if constexpr (kChannels == 4) {
        copy_chunk(quads + row * pitch + chunk * kChunk, from);
      } else {
        uint32_t words[kSubtiles][kChannels];
#pragma unroll
        for (int s = 0; s < kSubtiles; s++) read_words<kChannels>(from + s * shape.width * kChannels, words[s]);
        put(row, chunk, words);
      }
    }
    return;
  }
  if constexpr (kChannels == 4) {
    if (part.aligned) {
      // Chunks of the frame's pixels, then the pixels one by one that lie beside it or in a chunk at its edge.
      const int left = min(x0 < 0 ? (kChunk - 1 - x0) / kChunk : 0, shape.chunks);
      const int right = min(max((part.width - x0) / kChunk, left), shape.chunks);
      // The first chunk that no result needs.
      const int past = min(shape.chunks, (part.width + shape.halo_x - x0 + kChunk - 1) / kChunk);
      const int edge = kChunk * (left + max(past - right, 0));
      const auto row_of = [&](int row) { return index_anywhere(p.border, y0 + row, part.height); };
#pragma unroll 1
      for (int item = lane; item < rows * shape.chunks; item += 32) {
        int row, chunk;
        locate(item, &row, &chunk);
        if (chunk < left || chunk >= right) continue;
        const int sy = row_of(row);
        uint32_t *to = quads + row * pitch + chunk * kChunk;
        const uint32_t border = part.border_word[0];
        if (sy >= 0)
          copy_chunk(to, part.source + sy * part.source_pitch + (x0 + chunk * kChunk) * kChannels);
        else
          *reinterpret_cast<uint4 *>(to) = make_uint4(border, border, border, border);
      }
#pragma unroll 1
      for (int item = lane; item < rows * edge; item += 32) {
        const int row = item / edge, at = item - row * edge;
        const int quad = at < left * kChunk ? at : at + (right - left) * kChunk;
        const int sx = index_anywhere(p.border, x0 + quad, part.width), sy = row_of(row);
        uint32_t *to = quads + row * pitch + quad;
        if (sx >= 0 && sy >= 0)
          copy_quad(to, part.source + sy * part.source_pitch + sx * kChannels);
        else
          *to = part.border_word[0];
      }
      return;
    }
  }
#pragma unroll 1
  for (int item = lane; item < rows * shape.chunks; item += 32) {
    int row, chunk;
    locate(item, &row, &chunk);
    const int sy = index_anywhere(p.border, y0 + row, part.height);
    uint32_t words[kSubtiles][kChannels];
#pragma unroll
    for (int s = 0; s < kSubtiles; s++) {
      const int x = x0 + chunk * kChunk + s * shape.width;
      if (part.aligned && sy >= 0 && x >= 0 && x + kChunk <= part.width) {
        read_words<kChannels>(part.source + sy * part.source_pitch + x * kChannels, words[s]);
      } else if (x < part.width + shape.halo_x) {  // else no result depends on it
        gather_words<kChannels>(p, part, x, y0 + row, words[s]);
      } else {
#pragma unroll
        for (int i = 0; i < kChannels; i++) words[s][i] = 0;
      }
    }
    put(row, chunk, words);
  }
}

// The same for a plane of any number of channels.
__device__ inline void load_rows(const FrameParams &p, const QuadTile &shape, const Tile &tile, int first, int rows,
                                 int pitch, uint32_t *quads) {
  switch (tile.part.channels) {
    case 1:
      return load_rows<1>(p, shape, tile, first, rows, pitch, quads);
    case 2:
      return load_rows<2>(p, shape, tile, first, rows, pitch, quads);
    case 3:
      return load_rows<3>(p, shape, tile, first, rows, pitch, quads);
    default:
      return load_rows<4>(p, shape, tile, first, rows, pitch, quads);
  }
}

// Results, with copied and filled channels in their places: those of `original`, or of the plan.
__device__ inline uint32_t merge_quad(const PartParams &part, uint32_t result, uint32_t original) {
  return (result & part.filter_bits[0]) | (original & part.copy_bits[0]) | part.fill_word[0];
}

// Writes quads of one column of a tile, from above.
class QuadWriter {
 public:
  // `column` counts the quads of the tile's row.
  __device__ QuadWriter(const QuadTile &shape, const Tile &tile, int column, int row)
      : target_(tile.part.target + (tile.y0 + row) * tile.part.target_pitch + (tile.x0 + column) * tile.part.channels),
        pitch_(tile.part.target_pitch),
        subtile_(shape.width),
        columns_(tile.part.width - tile.x0 - column),
        rows_(min(shape.height, tile.part.height - tile.y0) - row),
        channels_(tile.part.channels),
        aligned_(tile.part.aligned) {}

  // Rows that are left.
  __device__ int rows() const { return rows_; }
  // Whether the column lies in the frame.
  __device__ bool writes() const { return columns_ > 0 && rows_ > 0; }

  // Does nothing when no rows are left.
  template <int kChannels>
  __device__ void put(uint32_t quad) {
    if (rows_ > 0) {
      if (kChannels == 4 && aligned_) {
        *reinterpret_cast<uint32_t *>(target_) = quad;
      } else {
        constexpr int kSubtiles = subtiles(kChannels), kBytes = kSubtiles > 1 ? 4 / kSubtiles : kChannels;
#pragma unroll
        for (int s = 0; s < kSubtiles; s++)
#pragma unroll
          for (int c = 0; c < kBytes; c++)
            if (s == 0 || s * subtile_ < columns_)
              target_[s * subtile_ * kChannels + c] = static_cast<uint8_t>(quad >> 8 * (s * kBytes + c));
      }
    }
    rows_--;
    target_ += pitch_;
  }

  // Calls function(put), put as above for the channels there are.
  template <typename Function>
  __device__ void write(Function function) {
    switch (channels_) {
      case 1:
        return function([&](uint32_t quad) { put<1>(quad); });
      case 2:
        return function([&](uint32_t quad) { put<2>(quad); });
      case 3:
        return function([&](uint32_t quad) { put<3>(quad); });
      default:
        return function([&](uint32_t quad) { put<4>(quad); });
    }
  }

 private:
  uint8_t *target_;
  int64_t pitch_;
  int subtile_, columns_, rows_, channels_;
  bool aligned_;
};

}  // namespace cudaconv
