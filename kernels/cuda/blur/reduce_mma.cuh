// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that reduces 8-bit samples to coarse samples on the matrix instructions, the first step of
// plan/decimation.h. reduce_kernel() of reduce.cuh makes the same values.
//
//       weights, 16 x 32                     samples, 32 x 8                    sums, 16 x 8
//       ┌────────────────────────┐   k       ┌─┬─┬─┬─┬─┬─┬─┬─┐
//    m  │ row m: the weights of  │    =      │ byte j of word w│  of 8 lanes'  the rows 0 to 7 are
//       │ coarse row m for each  │   row     │ of row k        │  vectors      complete, 8 to 15 begun
//       │ of 32 rows             │           └─┴─┴─┴─┴─┴─┴─┴─┘
//       └────────────────────────┘
//
// A block goes down a tile in steps of kReduceGroup coarse rows. Its warps read 128 neighbouring bytes of each row of
// samples, 16 a lane. The matrix of samples has a row for each row of samples, and a column for each of eight vectors:
// each of the 16 byte positions in a vector gives one 32 x 8 matrix. A step sums 16 coarse rows. It completes the eight
// that the step before began, and begins eight more. So coarse rows are summed in registers, in tiles of any height.
//
// The sums of the eight complete rows, rounded, go to shared memory, a plane for each channel, and are summed along
// rows there. Samples beside the frame have no sums of their own: a column beside the frame is the column that the
// border mode puts there, for every row alike.
#pragma once

#include "cuda/blur/reduce.cuh"
#include "cuda/device/integer_mma.cuh"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv::blur {

constexpr int kReduceGroup = 8;                    // coarse rows of a step
constexpr int kReduceVectors = kBlurThreads / 4;   // vectors of 16 bytes that a block reads of a row
constexpr int kReduceBytes = 16 * kReduceVectors;  // their samples
// Samples from one row of sums to the next: with rows a word further than whole banks, eight rows of four columns that
// are 32 bytes apart use all banks. There is room for three planes of kPlaneOfThree samples.
constexpr int kSumPitch = 1090, kPlaneOfThree = 352;
// Words of the line of weights with the zeros before and behind it that reduce_mma_kernel() reads.
constexpr int kWeightsBefore = 64, kWeightWords = 50;
constexpr int kTallestReduced = 64;  // most coarse rows of a tile
constexpr int kReduceFraction = Decimation::fraction_of(8);

// Coarse columns of a tile, whose first pixel can begin in the midst of a vector.
CUDACONV_HOST_DEVICE constexpr int reduced_columns(int log_factor, int channels) {
  const int pixels = (kReduceBytes - 16 + (channels == 3 ? 1 : channels)) / channels;
  return ((pixels + 3) >> log_factor) - 3;
}

// The shared memory of a block.
struct ReduceMemory {
  int16_t sums[2][kReduceGroup * kSumPitch];
  int16_t column[kReduceBytes];  // where the sums of each pixel's first channel are, -1: those of the border's value
  int32_t row[(kTallestReduced + 3) * kMostFactor];  // the number of each row, -1: the border's value
  uint32_t weights[2][kWeightWords];
  int32_t first, last;  // see list_columns()
  // Coarse columns of the tile, its pixels, and where the first pixel's sums are in a plane. Here to save registers.
  int32_t columns, pixels, skip;
};

// The vectors of a row of samples that a tile needs, from byte `first` on.
struct ReducedVectors {
  int first, count;

  // The vectors of pixels x0 to x1 - 1.
  __device__ static ReducedVectors of(int x0, int x1, int channels) {
    const int first = x0 * channels & -16;
    return {first, (x1 * channels - first + 15) / 16};
  }
};

// Finds the vectors for pixels x0 ... x0 + pixels - 1, some of them beside the frame, and lists where their sums will
// be. All threads of the block call it. Pixels beside the frame are read within the window, see reads_within_window().
__device__ inline ReducedVectors list_columns(const BlurParams &p, const PartParams &part, int x0, int pixels,
                                              ReduceMemory &memory) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    memory.first = INT32_MAX;
    memory.last = -1;
  }
  __syncthreads();
  for (int i = thread; i < pixels; i += kBlurThreads) {
    const int x = border_index(p.border, x0 + i, part.width);
    if (x < 0) continue;
    atomicMin(&memory.first, x);
    atomicMax(&memory.last, x);
  }
  __syncthreads();
  ReducedVectors vectors = {0, 0};
  if (memory.last >= 0) vectors = ReducedVectors::of(memory.first, memory.last + 1, part.channels);
  for (int i = thread; i < pixels; i += kBlurThreads) {
    const int x = border_index(p.border, x0 + i, part.width);
    memory.column[i] = static_cast<int16_t>(x < 0 ? -1 : x * part.channels - vectors.first);
  }
  return vectors;
}

// The vector of a row that a lane reads, from byte `byte` on; `bytes` of its 16 bytes are in the row.
struct ReducedVector {
  const PartParams &part;
  int byte, bytes;

  __device__ const uint8_t *at(int y) const { return part.source + y * part.source_pitch + byte; }

  // Loads it from row y, or the border's value if that is negative. Bytes behind the row's end are not read.
  __device__ void load(int y, uint32_t (&words)[4]) const {
#pragma unroll
    for (int w = 0; w < 4; w++) words[w] = y < 0 ? border_word(part, byte, w) : 0;
    if (y >= 0) load_bytes<4>(at(y), bytes, words);
  }
};

// Stores the rounded sums of vector `vector`, sum[n].v[i] of byte n, to a row of kPlanes planes.
template <int kPlanes, int kRowsShift>
__device__ inline void store_column_sums(const Sums (&sum)[16], int i, int vector, int16_t *row) {
  const auto rounded = [&](int n) {
    const auto v = static_cast<uint32_t>(sum[n].v[i]);
    return kRowsShift > 0 ? v >> kRowsShift : v << -kRowsShift;
  };
  uint32_t *const to = reinterpret_cast<uint32_t *>(row + vector * (16 / kPlanes));
  constexpr int kPlaneWords = kReduceBytes / kPlanes / 2;
  each<kPlanes, 8 / kPlanes>([&](int c, int k) {
    // Samples 2k and 2k + 1 of the plane.
    to[c * kPlaneWords + k] = rounded(2 * k * kPlanes + c) | rounded((2 * k + 1) * kPlanes + c) << 16;
  });
}

// Copies the sums of pixels from where list_columns() has them to planes that begin with pixel 0.
__device__ inline void spread_sums(const PartParams &part, int plane, const ReduceMemory &memory, const int16_t *from,
                                   int16_t *to) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  static_assert(kBlurThreads / 32 == kReduceGroup, "a warp for each row");
  from += warp * kSumPitch;
  to += warp * kSumPitch;
  for (int i = lane; i < memory.pixels; i += 32) {
    const int column = memory.column[i];
    for (int c = 0; c < part.channels; c++)
      to[c * plane + i] =
          column < 0 ? static_cast<int16_t>(part.channel[c].border_value << kReduceFraction) : from[column + c];
  }
}

// Sums kReduceGroup rows along themselves; the first `rows` are needed. `sums`: the first sample in the window of the
// tile's first coarse column, a multiple of two samples. `reduced`: where that column goes. kTogether: channels that
// are stored at once, 4 or 1.
template <int kTogether, int kLogFactor>
__device__ inline void reduce_planes(const BlurParams &p, int channels, const int16_t *sums, int plane, int columns,
                                     int rows, int64_t reduced_pitch, int16_t *reduced) {
  constexpr int kFactor = 1 << kLogFactor, kPairs = (4 * kFactor - 3 + 1) / 2;
  // Columns of a thread, whose windows overlap. With two of eight samples apart half of the threads had none.
  constexpr int kColumns = kLogFactor == 3 ? 1 : 2;
  constexpr int kLoaded = kPairs + (kColumns - 1) * kFactor / 2;
  // Lanes of a warp have eight rows and four runs of columns; the runs are kApart from each other, see kSumPitch.
  constexpr int kApart = 16 / (kColumns * kFactor), kRuns = 4 * kApart;
  const int runs = (columns + kColumns - 1) / kColumns;
  const int items = (runs + kRuns - 1) / kRuns * kRuns * kReduceGroup;
  for (int item = static_cast<int>(threadIdx.x); item < items; item += kBlurThreads) {
    const int row = item % kReduceGroup, i = item / kReduceGroup;
    const int column = (i / kRuns * kRuns + i % 4 * kApart + i / 4 % kApart) * kColumns;
    if (column >= columns || row >= rows) continue;
#pragma unroll 1
    for (int c0 = 0; c0 < channels; c0 += kTogether) {
      int16_t result[kColumns][kTogether];
#pragma unroll
      for (int c = 0; c < kTogether; c++) {
        const int16_t *const from = sums + row * kSumPitch + (c0 + c) * plane + column * kFactor;
        uint32_t pair[kLoaded];
#pragma unroll
        for (int k = 0; k < kLoaded; k++) pair[k] = reinterpret_cast<const uint32_t *>(from)[k];
#pragma unroll
        for (int j = 0; j < kColumns; j++) {
          uint32_t sum = 1u << (p.columns_shift - 1);
          each<kPairs, kLogFactor == 3 ? 2 : 1>([&](int k, int term) {
            const uint32_t weights = p.reduce_bytes[term][k / 2], v = pair[j * kFactor / 2 + k];
            sum = k % 2 ? __dp2a_hi(v, weights, sum) : __dp2a_lo(v, weights, sum);
          });
          result[j][c] = static_cast<int16_t>(sum >> p.columns_shift);
        }
      }
      int16_t *to = reduced + column * reduced_pitch + row * channels + c0;
#pragma unroll
      for (int j = 0; j < kColumns; j++, to += reduced_pitch) {
        if (column + j >= columns) break;
        if constexpr (kTogether == 4)
          *reinterpret_cast<short4 *>(to) = make_short4(result[j][0], result[j][1], result[j][2], result[j][3]);
        else
          *to = result[j][0];
      }
    }
  }
}

// The rows of an instruction, and what follows from the factor besides.
template <int kLogFactor>
struct ReduceStep {
  static constexpr int kFactor = 1 << kLogFactor, kRows = kReduceGroup * kFactor;  // rows of samples of a step
  static constexpr int kChunkRows = kRows < 32 ? kRows : 32;                       // rows of an instruction
  static constexpr int kChunks = kRows / kChunkRows, kHalves = kChunkRows / 16;
  static constexpr int kTerms = kLogFactor == 3 ? 2 : 1;  // see BlurParams::reduce_bytes
  static constexpr int kRowsShift = 4 * kLogFactor - kReduceFraction;
  static constexpr int kHalf = kRowsShift > 0 ? 1 << (kRowsShift > 0 ? kRowsShift - 1 : 0) : 0;
  using Samples = uint32_t[kHalves][4][4];  // [h][i]: a lane's vector of row 16h + 4t + i of a chunk
};

// The rows of samples of a tile.
struct ReducedRows {
  int y0, count;  // the first one in the part, and how many are needed
  bool inside;    // whether all lie in the part
  bool plain;     // and all vectors of the warp lie in them completely
};

// Loads the rows of a chunk that begins at row `first` of the tile.
template <typename Step>
__device__ inline void load_chunk(const PartParams &part, const ReducedVector &vector, const ReducedRows &rows,
                                  const ReduceMemory &memory, int first, typename Step::Samples &samples) {
  if (first >= rows.count) return;
  const int row0 = first + 4 * static_cast<int>(threadIdx.x % 4);
  if (rows.plain && first + Step::kChunkRows <= rows.count) {
    const uint8_t *const from = vector.at(rows.y0 + row0);
    each<Step::kHalves, 4>(
        [&](int h, int i) { load_words<4>(from + (16 * h + i) * part.source_pitch, samples[h][i]); });
    return;
  }
  each<Step::kHalves, 4>([&](int h, int i) {
    const int row = min(row0 + 16 * h + i, rows.count - 1);
    vector.load(rows.inside ? rows.y0 + row : memory.row[row], samples[h][i]);
  });
}

// The sums of 16 coarse rows; [n] is for byte n of the lanes' vectors.
template <typename Step>
struct ColumnSums {
  Sums sum[16];

  __device__ void start() {
#pragma unroll
    for (Sums &s : sum) s = all(Step::kHalf);
  }

  // Adds chunk `chunk` of a step.
  __device__ void add(int chunk, const typename Step::Samples &samples, const ReduceMemory &memory) {
    const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
    uint32_t weights[Step::kTerms][2 * Step::kHalves];
    each<Step::kTerms, 2 * Step::kHalves>([&](int term, int i) {
      const int coarse_row = g + 8 * (i % 2) - kReduceGroup;
      const int byte = kWeightsBefore + chunk * Step::kChunkRows + 4 * t + 16 * (i / 2) - coarse_row * Step::kFactor;
      const uint32_t *const at = memory.weights[term] + byte / 4;
      weights[term][i] = Step::kFactor % 4 == 0 ? at[0] : __funnelshift_r(at[0], at[1], byte % 4 * 8);
    });
#pragma unroll
    for (int w = 0; w < 4; w++) {
      uint32_t bytes[Step::kHalves][4];
#pragma unroll
      for (int h = 0; h < Step::kHalves; h++)
        transpose({samples[h][0][w], samples[h][1][w], samples[h][2][w], samples[h][3][w]}, bytes[h]);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t column[Step::kHalves];
#pragma unroll
        for (int h = 0; h < Step::kHalves; h++) column[h] = bytes[h][j];
#pragma unroll
        for (int term = 0; term < Step::kTerms; term++)
          sum[4 * w + j] = mma<false, false, Step::kHalves>(weights[term], column, sum[4 * w + j]);
      }
    }
  }

  // Stores the first eight rows, which are complete, to rows of sums; without `planes` as the samples lie in memory.
  __device__ void store(bool planes, int channels, int16_t *sums) const {
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    int16_t *const to = sums + lane / 4 * kSumPitch;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int vector = 8 * warp + 2 * (lane % 4) + i;
      if (!planes || channels == 1)
        store_column_sums<1, Step::kRowsShift>(sum, i, vector, to);
      else if (channels == 2)
        store_column_sums<2, Step::kRowsShift>(sum, i, vector, to);
      else
        store_column_sums<4, Step::kRowsShift>(sum, i, vector, to);
    }
  }

  // Puts the other eight rows in their place and begins new ones.
  __device__ void move_on() {
#pragma unroll
    for (Sums &s : sum) s = {{s.v[2], s.v[3], Step::kHalf, Step::kHalf}};
  }
};

template <int kLogFactor>
__global__ void __launch_bounds__(kBlurThreads, 2) reduce_mma_kernel(const __grid_constant__ BlurParams p) {
  if constexpr (kHasMma) {
    using Step = ReduceStep<kLogFactor>;
    constexpr int kFactor = Step::kFactor;
    const Tile tile = locate_tile(p, 1);  // of coarse samples
    const PartParams &part = tile.part;
    const CoarseBuffers &coarse = p.coarse[part.number];
    const int channels = part.channels, across = reduced_columns(kLogFactor, channels);
    const int column0 = tile.x0 * across, row0 = tile.y0 * p.tile_rows;
    const int columns = min(across, coarse.x.count - column0), rows = min(p.tile_rows, coarse.y.count - row0);
    const int x0 = (coarse.x.line.first + coarse.x.first + column0 - 2) * kFactor + 2;
    const int pixels = (columns + 3) * kFactor - 3;
    ReducedRows needed = {};
    needed.y0 = (coarse.y.line.first + coarse.y.first + row0 - 2) * kFactor + 2;
    needed.count = (rows + 3) * kFactor - 3;
    needed.inside = needed.y0 >= 0 && needed.y0 + needed.count <= part.height;
    // Three channels do not fill whole vectors, so their planes are made by spread_sums(), too.
    const bool spreads = x0 < 0 || x0 + pixels > part.width || channels == 3;

    ReduceMemory &memory = *shared_memory<ReduceMemory>();
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < Step::kTerms * kWeightWords; i += kBlurThreads) {
      const int term = i / kWeightWords, word = i % kWeightWords - kWeightsBefore / 4;
      memory.weights[term][i % kWeightWords] = word >= 0 && word < kReduceWords ? p.reduce_bytes[term][word] : 0;
    }
    if (!needed.inside)
      for (int i = thread; i < needed.count; i += kBlurThreads)
        memory.row[i] = border_index(p.border, needed.y0 + i, part.height);
    const ReducedVectors vectors =
        spreads ? list_columns(p, part, x0, pixels, memory) : ReducedVectors::of(x0, x0 + pixels, channels);
    if (thread == 0) {
      memory.columns = columns;
      memory.pixels = pixels;
      memory.skip = spreads ? 0 : x0 - vectors.first / channels;
    }
    __syncthreads();

    // Lanes behind the last vector read that one; without any they read one that is not needed.
    const int number = max(min(thread / 32 * 8 + thread % 32 / 4, vectors.count - 1), 0);
    const int byte = vectors.first + 16 * number;
    const ReducedVector vector = {part, byte, min(part.width * channels - byte, 16)};
    needed.plain = needed.inside && __all_sync(0xffffffffu, vector.bytes == 16);
    typename Step::Samples samples;
    ColumnSums<Step> sums;
    sums.start();
    int buffer = 0, chunk = -1;  // chunk: of the step that completes coarse rows from `row` on
#pragma unroll 1
    for (int row = -kReduceGroup; row < rows;) {
      const int chunk_row = (row + kReduceGroup) * kFactor + chunk * Step::kChunkRows;
      if (chunk >= 0 && chunk_row < needed.count) sums.add(chunk, samples, memory);
      load_chunk<Step>(part, vector, needed, memory, chunk_row + Step::kChunkRows, samples);
      if (++chunk < Step::kChunks) continue;
      if (row >= 0) {
        sums.store(!spreads, channels, memory.sums[buffer]);
        __syncthreads();
        const int plane = channels == 3 ? kPlaneOfThree : kReduceBytes / channels;
        if (spreads) {
          spread_sums(part, plane, memory, memory.sums[buffer], memory.sums[buffer ^ 1]);
          buffer ^= 1;
          __syncthreads();
        }
        const auto reduce = [&](auto together) {
          reduce_planes<decltype(together)::value, kLogFactor>(
              p, channels, memory.sums[buffer] + memory.skip, plane, memory.columns, rows - row, coarse.reduced_pitch,
              coarse.reduced + column0 * coarse.reduced_pitch + static_cast<int64_t>(row0 + row) * channels);
        };
        if (channels == 4)
          reduce(std::integral_constant<int, 4>());
        else
          reduce(std::integral_constant<int, 1>());
        buffer ^= 1;
      }
      sums.move_on();
      row += kReduceGroup;
      chunk = 0;
    }
  }
}

}  // namespace cudaconv::blur
