// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks up to 9x9, on 8-bit pixels as they are in memory, on the matrix instructions. The sums are those of
// separable.cuh. Channels are not separated: their number is only the distance of samples in a row's window, so the
// same code serves all.
//
// A warp goes down a strip of results of 32 bytes' width in steps of 8 rows. device/mma/matrix.cuh describes the words
// of matrices that lane (g, t) holds, separable_sums.cuh how sums along rows become the operand of sums
// along columns. Here the lane has bytes 16t to 16t + 15 of row g of a window of 64 bytes, which begins 16 bytes left
// of the results:
//
//      byte of the window    0 ... 15 | 16 ... 31 | 32 ... 47 | 48 ... 63
//      lane                  t = 0    | t = 1     | t = 2     | t = 3          4 words each: chunks c = 0 to 3
//      results                        | 32 bytes              |
//
// Word c of the lane is its word of chunk c, unchanged: k = 4t + i of that chunk is byte 16t + 4c + i of the window.
// The matrix of the row's coefficients has its columns in this order. Its rows have an order, too: rows g and g + 8 of
// the first of two matrices are results 4g and 4g + 1, of the second 4g + 2 and 4g + 3. So a lane ends up with a word
// of neighbouring bytes in each of two rows, and stores it.
//
// Example, GRAY8, 9 taps: result 5 needs bytes 17 to 25 of the window, all of lanes with t = 1. It is row g + 8 = 9 of
// the first matrix, g = 1.
//
// Sums along rows have 16 bits. A lane's word of a chunk of 8 rows is the two low bytes and the two high bytes of rows
// 2t and 2t + 1. The column's coefficients stand at the low bytes, with zeros at the high ones, or the reverse.
//
// Lanes copy their bytes of the next steps to shared memory asynchronously. Other lanes read them there only if
// channels are copied. The copies take no registers, and nothing has to be synchronized.
#pragma once

#include <type_traits>

#include "cuda/device/async_copy.cuh"
#include "cuda/device/words.cuh"
#include "cuda/device/mma/sums.cuh"

namespace cudaconv::separable {

constexpr int kSeparable9Warps = 8, kSeparable9Threads = 32 * kSeparable9Warps;    // of a block, side by side
constexpr int kWarpResults = 32, kWindowMargin = 16;                               // bytes
constexpr int kSeparable9Radius = 4, kSeparable9Taps = 2 * kSeparable9Radius + 1;  // of lines of coefficients
constexpr int kSeparable9Stages = 4;  // steps whose samples are in shared memory or in flight

static_assert(kSeparable9Warps >= 4, "four of them fill Separable9Tables");

// Tuned on an H200 with kernel-bench --table=goals,formats --only=gauss9: rows of a tile, and how many more rows a tile
// takes the time of.
struct Separable9Tuning {
  static constexpr int kLeastRows = 16, kMostRows = 1024, kMoreRows = 16;
};

// How many blocks a multiprocessor is to hold, with coefficients of kBytes bytes.
CUDACONV_HOST_DEVICE constexpr int separable9_blocks(int bytes) {
  return bytes == 1 ? 4 : 2;
}

// Rows that windows of `rows` rows of results reach, in whole steps.
CUDACONV_HOST_DEVICE constexpr int separable9_rows(int rows) {
  return (rows + 7) / 8 * 8 + 2 * kSeparable9Radius;
}

// Tables that the warps of a block share. In shared memory the lanes' own bytes lie before them, and a list of rows
// behind.
template <int kBytes>
struct Separable9Tables {
  static constexpr int kParts = kBytes + 1;
  static constexpr int kMiddle = 12;  // the word of `spread` that begins with the middle coefficient

  uint32_t spread[kBytes][2 * kMiddle];  // the row's coefficients, a pixel apart, with zeros in between
  uint32_t column[kParts][2][32];  // lanes' words of the column's matrices: [part, which counts 256^part][chunk][lane]

  // Fills the tables, by all threads of the block, which have to synchronise afterwards.
  __device__ void fill(const SeparableMmaParams &p, int channels) {
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    // Lines are stored for the class of radius 8.
    const auto coefficient = [](const uint32_t *line, int i) {
      i += 8 - kSeparable9Radius;
      return line[i / 4] >> i % 4 * 8 & 0xffu;
    };
    if (warp < kBytes && lane < 2 * kMiddle) {
      uint32_t word = 0;
#pragma unroll
      for (int i = 0; i < kSeparable9Taps; i++) {
        const int at = (i - kSeparable9Radius) * channels - 4 * (lane - kMiddle);
        if (at >= 0 && at < 4) word |= coefficient(p.line[0][warp], i) << 8 * at;
      }
      spread[warp][lane] = word;
    } else if (warp >= kSeparable9Warps - 2) {
      // Rows 2t and 2t + 1 of the chunk, relative to row g of results.
      const int chunk = warp - (kSeparable9Warps - 2), first = 8 * chunk + 2 * (lane % 4) - lane / 4;
      uint32_t pair[kBytes] = {};
      each<kBytes, kSeparable9Taps>([&](int b, int i) {
        if (i == first || i == first + 1) pair[b] |= coefficient(p.line[1][b], i) << 8 * (i - first);
      });
      // This operand is signed: a low byte of 128 or more counts 256 less, so 1 is carried into the high byte.
      if constexpr (kBytes == 2) pair[1] = ((pair[1] & 0x7f7fu) + (pair[0] >> 7 & 0x0101u)) ^ (pair[1] & 0x8080u);
      each<kParts>(
          [&](int k) { column[k][chunk][lane] = (k < kBytes ? pair[k] : 0) | (k > 0 ? pair[k - 1] << 16 : 0); });
    }
  }
};

// Where the window of a warp lies: inside the frame; partly beside it, where bytes at the edge are mirrored; partly
// beside it, where it has the border value.
enum class Edges { Inside, Mirrored, Constant };

// Reads a lane's bytes of the window, row after row.
template <Edges kEdges>
class ByteWindow {
 public:
  // The lane's bytes begin at `first_byte` of a row. `rows` lists where rows are, see list_rows(). `slots` are the
  // lane's slots in shared memory, kSeparable9Stages of them, kSeparable9Threads apart.
  __device__ ByteWindow(const FrameParams &p, const PartParams &part, int first_byte, const int64_t *rows, uint4 *slots)
      : column_(part.source + first_byte), rows_(rows + threadIdx.x % 32 / 4), slots_(slots) {
    const int row_bytes = part.width * part.channels;
    const bool left = first_byte < 0;
    outside_ = left || first_byte >= row_bytes;
    if constexpr (kEdges == Edges::Mirrored) {
      // With Wrap the lane reads the bytes at the other edge.
      if (outside_) column_ = part.source + (left == (p.border == Border::Wrap) ? row_bytes - kVectorBytes : 0);
      const bool mirrors = outside_ && p.border != Border::Wrap;
      const int channels = part.channels, reciprocal = 256 / channels + 1;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t bytes = 0;
#pragma unroll 1
        for (int b = 0; b < 4; b++) {
          const int n = 4 * i + b, distance = left ? kVectorBytes - 1 - n : n;
          const int pixel = distance * reciprocal >> 8;  // how many pixels lie between it and the frame
          const int inside = p.border == Border::Reflect ? pixel : p.border == Border::Reflect101 ? pixel + 1 : 0;
          const int byte = (pixel + inside + 1) * channels - 1 - distance;  // counted from the edge
          bytes |= ((!mirrors ? n : left ? byte : kVectorBytes - 1 - byte) & 15u) << 4 * b;
        }
        word_[i] = (bytes & 0x7777u) | (0x3210u | (bytes >> 1 & 0x4444u)) << 16;
      }
    }
    if constexpr (kEdges == Edges::Constant) {
      each<4>([&](int i) { word_[i] = border_word(part, first_byte, i); });
    }
  }

  // Requests the bytes of row `row` + g of the list, if `wanted`, into the slot of those taken last.
  __device__ void request(int stage, int row, bool wanted) const {
    uint4 *const slot = slots_ + stage * kSeparable9Threads;
    if (wanted) {
      const int64_t offset = rows_[row];
      if (kEdges == Edges::Constant && (outside_ || offset == kNoRow))
        *slot = make_uint4(word_[0], word_[1], word_[2], word_[3]);
      else
        copy_async<Cache::L1>(slot, column_ + offset);  // neighbouring warps read most bytes twice
    }
    commit_copies();
  }

  // Takes the bytes requested kSeparable9Stages - 1 requests ago.
  __device__ void take(int stage, uint32_t (&words)[4]) const {
    wait_for_groups<kSeparable9Stages - 2>();
    split_words(slots_[stage * kSeparable9Threads], words);
    if constexpr (kEdges == Edges::Mirrored) {
      const uint32_t read[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll
      for (int i = 0; i < 4; i++)
        words[i] = __byte_perm(__byte_perm(read[0], read[1], word_[i]), __byte_perm(read[2], read[3], word_[i]),
                               word_[i] >> 16);
    }
  }

  // Four bytes of the middle of the window, from byte 4n of the results on, in row `row` of the rows in `stage`. The
  // lanes have to synchronise between take() and this.
  __device__ uint32_t middle(int stage, int row, int n) const {
    const int lane = static_cast<int>(threadIdx.x % 32), owner = 4 * row + kWindowMargin / kVectorBytes + n / 4;
    const uint4 &slot = slots_[stage * kSeparable9Threads + owner - lane];
    return reinterpret_cast<const uint32_t *>(&slot)[n % 4];
  }

 private:
  const uint8_t *column_;
  const int64_t *rows_;
  uint4 *slots_;
  bool outside_;
  // Constant: the border's words. Mirrored: selectors for __byte_perm(), in the low half of a byte in each of two pairs
  // of words, in the high half of one of the two.
  uint32_t word_[4];
};

// A lane's words of the matrices of coefficients.
template <int kBytes>
struct Separable9Operands {
  using Tables = Separable9Tables<kBytes>;
  static constexpr int kParts = Tables::kParts;
  uint32_t row[kBytes][2][4][2], column[kParts][2];

  __device__ Separable9Operands(const Tables &tables, int g, int t, int lane) {
#pragma unroll
    for (int b = 0; b < kBytes; b++) {
      // word[c]: coefficients at byte 16t + 4c of the window, relative to result 4g and the three after it.
      uint32_t word[5];
      each<5>([&](int c) { word[c] = tables.spread[b][Tables::kMiddle + 4 * (t - 1) - g + c - 1]; });
      each<4, 4>([&](int c, int i) {
        row[b][i / 2][c][i % 2] = i ? __funnelshift_r(word[c], word[c + 1], 32 - 8 * i) : word[c + 1];
      });
    }
    each<kParts, 2>([&](int k, int c) { column[k][c] = tables.column[k][c][lane]; });
  }

  // Sums along rows: the two bytes that `selector` chooses of the sums, then the next two.
  __device__ void sum_rows(const uint32_t (&window)[4], int32_t start, uint32_t selector,
                           uint32_t (&pairs)[2][2]) const {
#pragma unroll
    for (int m = 0; m < 2; m++) {
      Sums sums = all(start);
      if constexpr (kBytes == 2) sums = times_256(multiply<false, false>(row[1][m], window, all(0)), start);
      sums = multiply<false, false>(row[0][m], window, sums);
#pragma unroll
      for (int i = 0; i < 2; i++)
        pairs[m][i] =
            __byte_perm(static_cast<uint32_t>(sums.v[2 * i]), static_cast<uint32_t>(sums.v[2 * i + 1]), selector);
    }
  }
};

// Filters 32 bytes of results from byte x on, rows y0 to end - 1. `list` is of rows from y0 - kSeparable9Radius on.
template <int kBytes, Edges kEdges>
__device__ inline void filter_separable9(const SeparableMmaParams &p, const PartParams &part,
                                         const Separable9Tables<kBytes> &tables, const int64_t *list, uint4 *slots,
                                         int x, int y0, int end) {
  constexpr int kParts = Separable9Tables<kBytes>::kParts;
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4, height = end - y0;
  // Step n computes rows of results from 8n - 8 on; step 0 only sums along rows.
  const ByteWindow<kEdges> reader(p, part, x - kWindowMargin + kVectorBytes * t, list, slots);
  const auto request = [&](int stage, int row) { reader.request(stage, row, row - 8 < height); };
  each<kSeparable9Stages - 1>([&](int n) { request(n, 8 * n); });

  const Separable9Operands<kBytes> operands(tables, g, t, lane);
  const int32_t start = p.row_start;
  uint32_t window[4], rows[2][2][2];  // sums along rows: [step % 2][matrix][row g, g + 8]
  reader.take(0, window);
  request(kSeparable9Stages - 1, 8 * (kSeparable9Stages - 1));
  operands.sum_rows(window, start, p.row_bytes, rows[0]);

  const int limit = x + 4 * g < part.width * part.channels ? height - 2 * t : 0;  // end of the lane's rows
  const bool has_unfiltered = part.has_unfiltered;
  const int64_t target_pitch = part.target_pitch;
  uint8_t *to = part.target + (y0 + 2 * t) * target_pitch + x + 4 * g;
#pragma unroll 1
  for (int first0 = 0;; first0 += 8 * kSeparable9Stages)
#pragma unroll
    for (int s = 0; s < kSeparable9Stages; s++, to += 8 * target_pitch) {
      const int first = first0 + 8 * s;  // first row of the step's results
      if (first >= height) return;
      reader.take((s + 1) % kSeparable9Stages, window);
      operands.sum_rows(window, start, p.row_bytes, rows[(s + 1) % 2]);
      Sums sums[2];
#pragma unroll
      for (int m = 0; m < 2; m++) {
        sums[m] = all(0);
#pragma unroll
        for (int k = kParts - 1; k >= 0; k--) {
          if (k < kParts - 1) sums[m] = times_256(sums[m], k ? 0 : p.epilogue.start);
          // The older step's sums are in rows[0] or rows[1] by turns, and the column's chunks are exchanged
          // accordingly.
          sums[m] = multiply<false, true>({{rows[0][m][0], rows[0][m][1]}, {rows[1][m][0], rows[1][m][1]}},
                                          {operands.column[k][s % 2], operands.column[k][1 - s % 2]}, sums[m]);
        }
      }
      uint32_t out[2];
      const auto pack = [&](auto round) {
#pragma unroll
        for (int h = 0; h < 2; h++)
          out[h] =
              pack_clamped(round(sums[0].v[h]), round(sums[0].v[h + 2]), round(sums[1].v[h]), round(sums[1].v[h + 2]));
      };
      if (p.epilogue.mode == SumRounding::Shift)
        pack([&](int32_t v) { return v >> p.epilogue.shift; });
      else
        pack([&](int32_t v) { return divide_sum(p.epilogue, v); });
      if (has_unfiltered) {
        __syncwarp();
        const int phase = (x / 4 + g) % 3;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int at = 2 * t + h + kSeparable9Radius;  // row of the last two steps taken
          const uint32_t original = reader.middle(at < 8 ? s : (s + 1) % kSeparable9Stages, at % 8, g);
          out[h] = blend_channels(part, out[h], original, phase);
        }
        __syncwarp();
      }
      request(s, first + 8 * kSeparable9Stages);
#pragma unroll
      for (int h = 0; h < 2; h++)
        if (first + h < limit) *reinterpret_cast<uint32_t *>(to + h * target_pitch) = out[h];
    }
}

template <int kBytes>
size_t separable9_bytes(int tile_height) {
  return kSeparable9Stages * kSeparable9Threads * sizeof(uint4) + sizeof(Separable9Tables<kBytes>) +
         separable9_rows(tile_height) * sizeof(int64_t);
}

// The kernel for frames whose rows are multiples of 16 bytes. kBytes: of coefficients.
template <int kBytes>
__global__ void __launch_bounds__(kSeparable9Threads, separable9_blocks(kBytes))
    separable9_kernel(const __grid_constant__ SeparableMmaParams p) {
  if constexpr (kHasMma) {
    const Tile tile = locate_tile(p, p.tile_height);
    const PartParams &part = tile.part;
    const int end = min(tile.y0 + p.tile_height, part.height);
    const int first_row = tile.y0 - kSeparable9Radius, count = separable9_rows(end - tile.y0);
    uint4 *const slots = shared_memory<uint4>();
    auto *const tables = reinterpret_cast<Separable9Tables<kBytes> *>(slots + kSeparable9Stages * kSeparable9Threads);
    int64_t *const rows = reinterpret_cast<int64_t *>(tables + 1);
    tables->fill(p, part.channels);
    list_rows(p, part, first_row, count, rows, kSeparable9Threads);
    __syncthreads();
    const int warp = warp_uniform(static_cast<int>(threadIdx.x / 32));
    const int x = aligned_column<1>(tile.x0, warp * kWarpResults), row_bytes = part.width * part.channels;
    if (x >= row_bytes) return;  // returns as a whole warp
    const bool beside = x < kWindowMargin || x + kWarpResults + kWindowMargin > row_bytes;
    const bool beyond = first_row < 0 || first_row + count > part.height;
    const auto filter = [&](auto edges) {
      filter_separable9<kBytes, decltype(edges)::value>(p, part, *tables, rows, slots + threadIdx.x, x, tile.y0, end);
    };
    if (p.border == Border::Constant && (beside || beyond))
      filter(std::integral_constant<Edges, Edges::Constant>());
    else if (beside)
      filter(std::integral_constant<Edges, Edges::Mirrored>());
    else
      filter(std::integral_constant<Edges, Edges::Inside>());
  }
}

}  // namespace cudaconv::separable
