// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Linear masks of 8-bit samples that are not separable, up to 17 pixels wide and 15 high, on the matrix instructions.
// It sums as linear() of methods/operations.cuh does.
//
// A warp goes down a strip of 32 pixels' width, four rows a step, and makes squares of 4x4 results:
//
//      square            0    | 1    | 2    | ... | 7           the 8 columns of the matrix of samples
//      pixels            0-3  | 4-7  | 8-11 |     | 28-31
//      its windows       5 words of a row, of 4 pixels each     the first word begins 8 pixels left of the square
//
// The first four words of one row are a chunk, word t in lane t of four. The fifth words of a step's four rows are one
// more chunk, the word of row t in lane t. Masks up to 13 pixels wide need only four words, which begin two pixels
// further. The 16 rows of the matrix of coefficients are the square's results: rows g and g + 8 are pixels 2 * (g % 2)
// and 2 * (g % 2) + 1 of row g / 2.
//
// Example: row 5 of that matrix is pixel 2 of row 2, row 13 is pixel 3 of row 2.
//
// A step is part of the windows of a few squares, one below the other. The instructions that add it to a square's sums
// leave the result where the sums of the square above were. So sums move up without being moved, and all steps have the
// same code.
#pragma once

#include <algorithm>

#include "cuda/custom/custom_blocks_window.cuh"

namespace cudaconv::custom {

// Tuned on an H200 with kernel-bench --table=goals,formats --only="custom 11x11,custom 15x15".
struct Blocks4x4Tuning {
  static constexpr int kBlocks = 3;  // blocks of a multiprocessor
  // Rows of results of a strip, and how many more rows, for preparation, a strip takes the time of besides those that
  // windows reach.
  static constexpr int kLeastRows = 8, kRowsStep = 4, kMoreRows = 8;
};

constexpr int kBlocks4x4Threads = 128,
              kBlocks4x4Warps = kBlocks4x4Threads / 32;  // of a block; the warps' strips lie side by side
constexpr int kBlocks4x4LineWords = 5;

// The width of a tile in pixels.
CUDACONV_HOST_DEVICE constexpr int blocks4x4_tile_width(int channels) {
  return kBlocks4x4Warps * kBlocks4x4Width * subtiles(channels);
}

constexpr size_t kBlocks4x4Memory = std::max({Blocks4x4Window<1, 4>::kMemory, Blocks4x4Window<2, 4>::kMemory,
                                              Blocks4x4Window<3, 4>::kMemory, Blocks4x4Window<4, 4>::kMemory});

template <int kWindowRows, int kWindowChunks>
struct Blocks4x4Shape {
  static constexpr int kRows = kWindowRows;      // rows that windows of a square reach, an even number
  static constexpr int kHeight = kRows - 3;      // of the largest mask
  static constexpr int kChunks = kWindowChunks;  // chunks of a step: 4 for masks of up to 13 pixels' width, else 5
  static constexpr int kSteps = (kRows + 3) / 4;
  static constexpr int kLine = padded_words(kBlocks4x4LineWords),
                       kLines = 4 * kSteps + 3;  // the first three, before the mask, are zeros
  static constexpr int kFifths = kChunks > 4 ? kSteps : 0;
  // Layout of the operands in shared memory, in words: [pair of rows][lane][4]; from kFifth on, for the fifth words,
  // [step][lane][2]; from kStart on, four times the initial value of sums, since the compiler would copy a value that
  // it knows for each instruction.
  static constexpr int kFifth = kRows * 64, kStart = kFifth + kFifths * 64, kWords = kStart + 4;

  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return (rows + 3) / 4 * 4 + 4 * (kSteps - 1); }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kBlocks4x4Warps * kBlocks4x4Memory + source_rows(tile_height) * sizeof(int64_t) +
           (kWords + kLines * kLine) * sizeof(uint32_t);
  }
};

// A lane's words of the matrices of coefficients, for all steps that windows reach, in their order.
template <typename Shape>
struct Blocks4x4Operands {
  uint32_t rows[Shape::kRows / 2][4];
  uint32_t fifths[Shape::kFifths + 1][2];

  // Loads the words from where make() has stored them.
  __device__ explicit Blocks4x4Operands(const uint32_t *operands) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Shape::kRows / 2; i++) load_words<4>(operands + (i * 32 + lane) * 4, rows[i]);
#pragma unroll
    for (int i = 0; i < Shape::kFifths; i++) load_words<2>(operands + Shape::kFifth + (i * 32 + lane) * 2, fifths[i]);
  }

  // Stores the lines of coefficients with zeros around them. The whole block calls this, and later make().
  __device__ static void make_lines(const DenseMmaParams &p, uint32_t *lines) {
    // Lines are stored for radius 16. Masks up to radius 8 have zeros in the first words.
    constexpr int kSkipped = (16 - kBlocks4x4Radius) / 4;
    constexpr int kFirst = kLinePadding / 4;
    static_assert(Shape::kHeight * kBlocks4x4LineWords <= kBlocks4x4Threads && Shape::kRows + 3 <= Shape::kLines);
    const int thread = static_cast<int>(threadIdx.x), row = thread / kBlocks4x4LineWords,
              word = thread % kBlocks4x4LineWords;
    const uint32_t value = row < Shape::kHeight ? p.line[0][row][kSkipped + word] : 0;
#pragma unroll
    for (int i = thread; i < Shape::kLines * Shape::kLine; i += kBlocks4x4Threads) lines[i] = 0;
    __syncthreads();
    if (row < Shape::kHeight) lines[(row + 3) * Shape::kLine + kFirst + word] = value;
  }

  // Stores the operands made of these lines.
  //
  // Row y of a square meets row n of the samples in row n - y of the mask. Pixel x meets sample s in column s - x. A
  // lane has the words of rows g and g + 8 of the matrix: of pixel x = 2 * (g % 2) of row g / 2, and of the pixel after
  // it.
  __device__ static void make(const uint32_t *lines, int32_t start, uint32_t *operands) {
    if (threadIdx.x < 4) operands[Shape::kStart + threadIdx.x] = static_cast<uint32_t>(start);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x) / 32; n < Shape::kRows + Shape::kFifths; n += kBlocks4x4Warps) {
      const int step = n - Shape::kRows;
      const int row = (step < 0 ? n : 4 * step + t) - g / 2;
      const int sample = (step < 0 ? 4 * t : 16) + blocks4x4_margin(Shape::kChunks) - g % 2 * 2;
      uint32_t *const to =
          operands + (step < 0 ? (n / 2 * 32 + lane) * 4 + n % 2 * 2 : Shape::kFifth + (step * 32 + lane) * 2);
#pragma unroll
      for (int i = 0; i < 2; i++) to[i] = four_bytes(lines + (row + 3) * Shape::kLine, sample - i);
    }
  }
};

// store_words() if `writes`. Four words are stored by a predicated store: a branch would let the compiler move the
// computation of the words into it. Fewer words need no help.
template <int kWords>
__device__ inline void store_words_if(bool writes, uint8_t *to, const uint32_t *from) {
#ifdef __CUDACC__
  if constexpr (kWords == 4) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v4.u32 [%1], {%2, %3, %4, %5}; }" ::"r"(
                     static_cast<uint32_t>(writes)),
                 "l"(to), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
    return;
  }
#endif
  if (writes) store_words<kWords>(to, from);
}

// deinterleave() for pixels of three channels that begin half a word into the first of four words.
__device__ inline void deinterleave_halves(const uint32_t (&in)[4], uint32_t (&channel)[3]) {  // --ab cabc abca bc--
  channel[0] = __byte_perm(__byte_perm(in[0], in[1], 0x0052), in[2], 0x7410);
  channel[1] = __byte_perm(__byte_perm(in[0], in[1], 0x0063), __byte_perm(in[2], in[3], 0x0041), 0x5410);
  channel[2] = __byte_perm(__byte_perm(in[1], in[2], 0x0630), in[3], 0x5210);
}

// Rounds a lane's sums of all channels to pixels as they lie in memory, the pair in column 2t and then the pair in 2t +
// 1. A sample is the second byte of scaled(sum), clamped to 16 bits.
template <int kChannels, typename Scaled>
__device__ inline void pack_sums(const SummedChannels<kChannels> &, const PartialSums<1> (&sums)[kChannels],
                                 uint32_t (&words)[kChannels], Scaled scaled) {
  const auto sample = [&](int n) { return scaled(sums[n % kChannels].part[0].v[sum_of_pixel(n / kChannels)]); };
#pragma unroll
  for (int i = 0; i < kChannels; i++)
    words[i] = __byte_perm(pack_clamped(sample(4 * i), sample(4 * i + 1)),
                           pack_clamped(sample(4 * i + 2), sample(4 * i + 3)), 0x7531);
}

// The same for three of four channels. The other channel's byte of a result is undefined.
template <typename Scaled>
__device__ inline void pack_sums(const SummedChannels<4, 3> &channels, const PartialSums<1> (&sums)[3],
                                 uint32_t (&words)[4], Scaled scaled) {
  const auto sample = [&](int i, int c) { return scaled(sums[c].part[0].v[sum_of_pixel(i)]); };
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t third = pack_clamped(sample(i, 2), sample(i + 1, 2));
#pragma unroll
    for (int k = 0; k < 2; k++)
      words[i + k] =
          __byte_perm(pack_clamped(sample(i + k, 0), sample(i + k, 1)), third, channels.selector(1, 3, 5 + 2 * k));
  }
}

// Scales a sum for pack_sums(), see DenseMmaParams::factor.
__device__ inline int32_t scale_by_factor(const DenseMmaParams &p, int32_t v) {
  return __mulhi(v * p.factor, p.magic);
}

// The sums of a warp's strips, for the squares below each other whose windows contain a step. It also has the lane's
// words of the step, and splits each chunk by channels in place.
template <typename Shape, typename Channels>
class Blocks4x4Sums {
 public:
  static constexpr int kChannels = Channels::kChannels, kChunks = Shape::kChunks;
  using Window = Blocks4x4Window<kChannels, kChunks>;

  __device__ Blocks4x4Sums(const PartParams &part, const uint32_t *operands_at)
      : operands_(operands_at), start_(operands_at + Shape::kStart), channels_(part) {}

  __device__ void read(const Window &window, int slot, int first, int last) {
#pragma unroll
    for (int c = first; c <= last; c++)
#pragma unroll
      for (int s = 0; s < kStrips; s++) window.read(slot, c, s, words_[c][s]);
  }

  __device__ void take_apart(const MmaParams &p, int first, int last) {
#pragma unroll
    for (int c = first; c <= last; c++)
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        uint32_t samples[kSummed];
        if constexpr (Window::kWords > kChannels)
          deinterleave_halves(words_[c][s], samples);
        else
          channels_.template take_apart<Samples::U8>(p, words_[c][s], samples);
#pragma unroll
        for (int i = 0; i < kSummed; i++) words_[c][s][i] = samples[i];
      }
  }

  // Adds the first two rows of a step (half 0), or the second two (half 1), to the sums of the squares whose windows
  // contain them.
  template <int kHalf>
  __device__ void add_rows() {
    Sums start = {};
    if constexpr (!kHalf) load_words<4>(start_, reinterpret_cast<uint32_t *>(start.v));
#pragma unroll
    for (int j = kSteps - 1; j >= 0; j--) {
      if (4 * j + 2 * kHalf >= Shape::kRows) continue;
      each<kStrips, kSummed>([&](int s, int c) {
        const Sums sum = kHalf ? sums_[j][s][c].part[0] : j ? sums_[j ? j - 1 : 0][s][c].part[0] : start;
        sums_[j][s][c].part[0] = mma<true, false, 2>(operands_.rows[2 * j + kHalf],
                                                     {words_[2 * kHalf][s][c], words_[2 * kHalf + 1][s][c]}, sum);
      });
    }
  }

  // Adds the fifth words of all rows of a step.
  __device__ void add_fifths() {
#pragma unroll
    for (int j = Shape::kFifths - 1; j >= 0; j--)
      each<kStrips, kSummed>([&](int s, int c) {
        Sums &sum = sums_[j][s][c].part[0];
        sum = mma<true, false, 1>(operands_.fifths[j], {words_[kChunks - 1][s][c]}, sum);
      });
  }

  // Packs the lane's results of strip s of the squares that are complete, see custom::pack_sums().
  template <typename MakeSample>
  __device__ void pack_sums(int s, MakeSample make_sample, uint32_t (&pixels)[kChannels]) const {
    custom::pack_sums(channels_, sums_[kSteps - 1][s], pixels, make_sample);
  }

 private:
  static constexpr int kSummed = Channels::kCount, kSteps = Shape::kSteps, kStrips = Window::kStrips;

  const Blocks4x4Operands<Shape> operands_;
  const uint32_t *start_;
  const Channels channels_;
  PartialSums<1> sums_[kSteps][kStrips][kSummed] = {};
  uint32_t words_[kChunks][kStrips][Window::kWords];
};

// A warp's strips in the target. Squares are complete four rows at a time; number `square` is that many squares below
// the tile's first. The first steps also complete squares above it, which are not written.
template <typename Shape, int kChannels>
struct Blocks4x4Target {
  const PartParams &part;
  // The lane's four pixels in the first strip and square, after join_pairs(): of row g / 2 of square 2t + g % 2.
  int x, y;
  uint8_t *to;  // the lane's four pixels of the square that is complete

  __device__ explicit Blocks4x4Target(const Tile &tile)
      : part(tile.part),
        x(tile.x0 + 8 * (threadIdx.x % 4) + threadIdx.x / 4 % 2 * 4),
        y(tile.y0 + threadIdx.x % 32 / 8),
        to(part.target + (y - 4 * (Shape::kSteps - 1)) * part.target_pitch + x * kChannels) {}
};

// Writes results where no edges are near. It checks no bounds except the tile's last row, so that instructions can
// overlap.
template <typename Shape, typename Channels, typename MakeSample>
class UncheckedBlocks4x4Writer {
 public:
  static constexpr bool kChecks = false;

  __device__ UncheckedBlocks4x4Writer(const Tile &tile, int bottom, MakeSample make_sample)
      : target_(tile),
        squares_(static_cast<unsigned>(bottom - target_.y + 3) / 4),
        from_(target_.part.source + (target_.y - 4 * (Shape::kSteps - 1)) * target_.part.source_pitch +
              target_.x * kChannels),
        make_sample_(make_sample) {}

  // Loads the samples that are copied, early: they are used only after all that can be computed without them.
  __device__ void begin(int square) {
    if constexpr (kBlends) {
      if (is_there(square)) read_words<4>(from_, original_);
      from_ += 4 * target_.part.source_pitch;
    }
  }

  __device__ void put(int square, const Blocks4x4Sums<Shape, Channels> &sums) {
#pragma unroll
    for (int s = 0; s < Window::kStrips; s++) {
      uint32_t pixels[kChannels];
      sums.pack_sums(s, make_sample_, pixels);
      join_pairs<kChannels>(pixels);
      if constexpr (kBlends)
#pragma unroll
        for (int i = 0; i < kChannels; i++) pixels[i] = blend_channels(target_.part, pixels[i], original_[i]);
      store_words_if<kChannels>(is_there(square), target_.to + s * kBlocks4x4Width * kChannels, pixels);
    }
    target_.to += 4 * target_.part.target_pitch;
  }

 private:
  static constexpr int kChannels = Channels::kChannels;
  static constexpr bool kBlends = Channels::kCount < kChannels;
  using Window = Blocks4x4Window<kChannels, Shape::kChunks>;

  __device__ bool is_there(int square) const {
    return static_cast<unsigned>(square) < squares_;
  }

  Blocks4x4Target<Shape, kChannels> target_;
  unsigned squares_;  // number of squares in which the lane's row is above the bottom
  const uint8_t *from_;
  uint32_t original_[kChannels] = {};
  MakeSample make_sample_;
};

template <typename Shape, typename Channels>
class CheckedBlocks4x4Writer {
 public:
  static constexpr bool kChecks = true;

  __device__ CheckedBlocks4x4Writer(const DenseMmaParams &p, const Tile &tile, int bottom, bool inside)
      : p_(p), tile_(tile), bottom_(bottom), inside_(inside) {}

  __device__ void begin(int) {}

  __device__ void put(int square, const Blocks4x4Sums<Shape, Channels> &sums) {
    if (square >= 0) {
      // Places are computed for each square, since registers are scarce.
      const Blocks4x4Target<Shape, kChannels> target(tile_);
      uint8_t *const to = target.to + 4 * (square + Shape::kSteps - 1) * target.part.target_pitch;
#pragma unroll
      for (int s = 0; s < Blocks4x4Window<kChannels, Shape::kChunks>::kStrips; s++) {
        uint32_t pixels[kChannels];
        if (p_.magic)
          sums.pack_sums(
              s, [&](int32_t v) { return scale_by_factor(p_, v); }, pixels);
        else
          sums.pack_sums(
              s, [&](int32_t v) { return divide_sum(p_.epilogue, v) << 8; }, pixels);
        join_pairs<kChannels>(pixels);
        put_pixels<PixelPlaces<4, kChannels, 1, 0, 0>>(target.part, to + s * kBlocks4x4Width * kChannels,
                                                       target.x + s * kBlocks4x4Width, target.y + 4 * square, bottom_,
                                                       inside_, target.part.has_unfiltered, pixels);
      }
    }
  }

 private:
  static constexpr int kChannels = Channels::kChannels;

  const DenseMmaParams &p_;
  const Tile &tile_;
  int bottom_;
  bool inside_;
};

// Goes down the strips. Samples that are read are used only after all that can be computed without them.
template <typename Shape, typename Channels, typename Writer>
__device__ inline void go_down(const MmaParams &p, int steps,
                               Blocks4x4Window<Channels::kChannels, Shape::kChunks> &window,
                               Blocks4x4Sums<Shape, Channels> &sums, Writer writer) {
  using Window = Blocks4x4Window<Channels::kChannels, Shape::kChunks>;
  window.wait(0);
  sums.read(window, 0, 0, 1);
  int slot = 0;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    const int square = step - (Shape::kSteps - 1);  // the squares that this step completes
    // The row's place is read early, unless registers are scarce.
    [[maybe_unused]] int64_t offset;
    if constexpr (!Writer::kChecks) offset = window.row_offset();
    writer.begin(square);
    sums.read(window, slot, 2, Shape::kChunks - 1);
    sums.take_apart(p, 0, 1);
    sums.template add_rows<0>();
    sums.take_apart(p, 2, Shape::kChunks - 1);
    sums.add_fifths();
    const int next = Window::next(slot);
    window.wait(next);
    if constexpr (Writer::kChecks)
      window.request(step + Window::kStages, slot, window.row_offset());
    else
      window.request_no_edges(step + Window::kStages, slot, offset);
    slot = next;
    sums.read(window, slot, 0, 1);
    sums.template add_rows<1>();
    writer.put(square, sums);
  }
}

// Filters the warp's strips from pixel tile.x0 on; a warp may have none. The whole block makes the
// operands from the lines while samples are in flight.
template <typename Shape, typename Channels>
__device__ inline void filter_blocks4x4(const DenseMmaParams &p, const Tile &tile, uint32_t *operands_at,
                                        const uint32_t *lines, const int64_t *rows, uint8_t *memory) {
  using Window = Blocks4x4Window<Channels::kChannels, Shape::kChunks>;
  const PartParams &part = tile.part;
  const int bottom = min(tile.y0 + p.tile_height, part.height), first_row = tile.y0 - p.radius_y;
  const int steps = tile.x0 < part.width ? (bottom - tile.y0 + 3) / 4 + Shape::kSteps - 1 : 0;
  Window window(p, part, tile.x0, rows, steps, memory);
  const bool inside = tile.x0 + Window::kWidth <= part.width;
  const bool no_edges = inside && (Channels::kCount < Channels::kChannels || !part.has_unfiltered) && p.magic &&
                        window.no_edges() &&
                        (p.border != Border::Constant || (first_row >= 0 && first_row + 4 * steps <= part.height));
#pragma unroll 1
  for (int i = 0; i < Window::kStages; i++) {
    if (no_edges)
      window.request_no_edges(i, i * Window::kStepBytes, window.row_offset());
    else
      window.request(i, i * Window::kStepBytes, window.row_offset());
  }
  Blocks4x4Operands<Shape>::make(lines, p.epilogue.start, operands_at);
  __syncthreads();
  if (!steps) return;
  Blocks4x4Sums<Shape, Channels> sums(part, operands_at);
  const auto go_down_no_edges = [&](auto make_sample) {
    go_down(p, steps, window, sums,
            UncheckedBlocks4x4Writer<Shape, Channels, decltype(make_sample)>(tile, bottom, make_sample));
  };
  if (no_edges && p.factor == 1)
    go_down_no_edges([&](int32_t v) { return __mulhi(v, p.magic); });
  else if (no_edges)
    go_down_no_edges([&](int32_t v) { return scale_by_factor(p, v); });
  else
    go_down(p, steps, window, sums, CheckedBlocks4x4Writer<Shape, Channels>(p, tile, bottom, inside));
}

template <typename Shape>
__global__ void __launch_bounds__(kBlocks4x4Threads, Blocks4x4Tuning::kBlocks)
    blocks4x4_kernel(const __grid_constant__ DenseMmaParams p) {
  if constexpr (kHasMma) {
    Tile tile = locate_tile(p, p.tile_height);
    const PartParams &part = tile.part;
    const int width = blocks4x4_tile_width(part.channels), first_row = tile.y0 - p.radius_y;
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, width, p.tile_height);
    uint8_t *const stages = shared_memory<uint8_t>();
    int64_t *const rows = reinterpret_cast<int64_t *>(stages + kBlocks4x4Warps * kBlocks4x4Memory);
    const int count = Shape::source_rows(p.tile_height);
    uint32_t *const operands = reinterpret_cast<uint32_t *>(rows + count), *const lines = operands + Shape::kWords;
    Blocks4x4Operands<Shape>::make_lines(p, lines);
    list_rows(p, part, first_row, count, rows, kBlocks4x4Threads);
    __syncthreads();
    const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
    tile.x0 += width / kBlocks4x4Warps * warp;
    for_channels<Samples::U8>(part.channels, [&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      tile.x0 = aligned_column<kChannels>(tile.x0);
      uint8_t *const memory = stages + warp * kBlocks4x4Memory;
      if constexpr (kChannels == 4)
        if (sums_three(part))
          return filter_blocks4x4<Shape, SummedChannels<4, 3>>(p, tile, operands, lines, rows, memory);
      filter_blocks4x4<Shape, SummedChannels<kChannels>>(p, tile, operands, lines, rows, memory);
    });
  }
}

}  // namespace cudaconv::custom
