// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for small windows on dense planes, which runs near the speed of a copy.
//
// It computes each sample of the result from the window around it, at most 9x9 samples. The operations are in
// linear.cuh, gradients.cuh, ranks.cuh, median5.cuh and composite.cuh. constant_kernel() of methods/methods.cuh makes
// the same bytes from the same window, sample by sample.
//
//      lane    0      1      2             30     31      A lane owns 16 bytes of a row. A warp has results for 30
//            ┌──────┬──────┬──────┬─ ─ ─┬──────┬──────┐   lanes; lanes 0 and 31 only load, for their neighbours.
//    row 0   │ halo │      │      │     │      │ halo │   All rows of a strip are loaded at once, so that many loads
//            ├──────┼──────┼──────┼─ ─ ─┼──────┼──────┤   are in flight. Then the window slides down in registers:
//    ...     │      │ ←────┼─ window    │      │      │   columns are combined first, then neighbours, by shuffles.
//            └──────┴──────┴──────┴─ ─ ─┴──────┴──────┘
//
// An example: gauss5 of GRAY8 has strips of 4 rows of results. A lane loads 16 bytes of 8 rows. When row 4 enters, its
// column sums are complete for the first row of results; the lane then fetches the sums of two columns on either side
// from lanes - 1 and + 1, adds each row of five, and stores 16 bytes.
//
// Pixels of three bytes are four in registers, 12 bytes a lane in memory; the fourth byte is of no use.
//
// Lanes beside the frame load the 16 bytes at its edge and arrange them by the border mode. If rows end within a lane,
// warps at the edges gather the bytes in and beside this lane one by one in shared memory, and write results from
// there.
//
// All results are exact; where the halves of registers (see swar.cuh) would not hold a sum, other kernels do the pass.
#pragma once

#include <type_traits>

#include "cuda/device/sample.cuh"
#include "cuda/device/swar.cuh"
#include "cuda/sliding/operation.cuh"
#include "cuda/sliding/strip_io.cuh"
#include "cuda/sliding/swar_plan.h"

namespace cudaconv::sliding {

// Passes the rows of a strip through the operation. store(r, words, original) gets the words of row r of results;
// original(words) fetches the samples at the same place. store() returns whether the frame has more rows.
template <typename Operation, typename Swar, int kRows, typename Store>
__device__ inline void run_strip(const SlidingParams &p, const PartParams &part, LaneStrip s,
                                 const uint32_t (&strip)[kRows][4], Store store) {
  typename Operation::template State<Swar> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    if constexpr (Operation::kSeesStrip)
      state.enter(p, part, s, j, strip, out);
    else
      state.enter(p, j, strip[j], out);
    const auto original = [&](uint32_t(&words)[4]) {
      if constexpr (Operation::kHoldsMiddle) {
        state.middle(p.swar, j, words);
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = strip[j - Operation::kRadius][i];
      }
    };
    if (j >= 2 * Operation::kRadius && !store(j - 2 * Operation::kRadius, out, original)) return;
  }
}

template <typename Operation, typename Swar>
__device__ inline void slide(const SlidingParams &p, const PartParams &part, int first_byte, int y0) {
  // Planes of one or two channels are filtered completely or not at all, see can_slide().
  constexpr bool kBlends = Swar::kChannels > 2;
  constexpr int kRows = Operation::kStripRows + 2 * Operation::kRadius;
  const int lane = threadIdx.x % 32;
  const LaneStrip s = {first_byte + (lane - 1) * kVectorBytes, y0};
  const bool writes = lane >= 1 && lane <= kWarpLanes && s.first_byte < row_bytes<Swar>(part);
  const int left = part.height - s.y0, rows = writes ? left : 0, end = writes ? part.height : 0;
  uint32_t strip[kRows][4];
  load_strip<Swar, Operation::kRadius>(p, part, s, strip);
  const auto has_row = [&](int r) { return Operation::kRecomputesRows ? s.y0 + r < end : r < rows; };
  StripTarget<Swar, kRows> target(p, part, s, writes);
  constexpr bool kRowByRow = Operation::kRowByRow || !Swar::kPairs;
  // Samples of channels to be copied are kept in registers, or read again where registers are scarce.
  constexpr bool kRereads = kRowByRow && !(Operation::kHoldsMiddle && Swar::kPairs);
  run_strip<Operation, Swar>(p, part, s, strip, [&](int r, uint32_t(&out)[4], auto original) {
    const auto blend = [&] {
      uint32_t words[4];
      if constexpr (kRereads)
        target.reread(part, s, r, Operation::kRadius, words);
      else
        original(words);
      blend_vector(part, words, out);
    };
    if constexpr (!kBlends) {
      if (writes) target.put(out);
      // This return also keeps the compiler from starting more rows at once than there are registers for.
      if (r + 1 >= left) return false;
    } else if constexpr (kRowByRow) {
      if (has_row(r)) {
        if (part.has_unfiltered) blend();
        target.put(out);
      }
    } else {
      // Either all lanes blend or none, so only a predicated store remains, and no branch.
      if (part.has_unfiltered && (!kRereads || has_row(r))) blend();
      if (has_row(r)) target.put(out);
    }
    target.next_row();
    return true;
  });
  target.finish(part, s, Operation::kStripRows);
}

// The samples of a kernel: of bytes, or of 16-bit containers as the operation takes them.
template <typename Operation, bool kOfWords, int kChannels>
using SwarOf = std::conditional_t<
    !kOfWords, SwarU8<kChannels>,
    std::conditional_t<Operation::kWords == WordSamples::Compared, SwarU16Ordered<kChannels>, SwarU16<kChannels>>>;

// The number of warps of a block. kPacked: pixels of three or four channels, else planes of one or two.
template <typename Operation, bool kPacked, bool kOfWords>
CUDACONV_HOST_DEVICE constexpr int block_warps() {
  if (kOfWords) return kMostWarps;
  return kPacked ? Operation::kWordWarps : Operation::kWarps;
}

// How many blocks of four warps a multiprocessor is to hold. 16-bit samples that are added take a register each, and so
// do neighbours that straddle two words; GPUs without an instruction for the extremum of three pairs need more
// registers.
template <typename Operation, bool kPacked, bool kOfWords>
__host__ __device__ constexpr int min_blocks() {
  if (!kHas<Feature::Packed16Bit>) return Operation::kMinBlocks / 2;
  if (kOfWords && Operation::kWords == WordSamples::Added)
    return Operation::kMinBlocks - (Operation::kFewerBlocks > 1 ? Operation::kFewerBlocks : 1);
  return Operation::kMinBlocks - (kPacked && !kOfWords ? 0 : Operation::kFewerBlocks);
}

// The warp's first row of results. With the factor outside of warp_uniform() nvcc 13 spills in CompositeGradient<2>.
template <typename Operation>
__device__ inline int strip_row(const Tile &tile) {
  return tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / 32) * Operation::kStripRows);
}

template <typename Operation, bool kPacked, bool kOfWords>
__global__ void __launch_bounds__(32 * block_warps<Operation, kPacked, kOfWords>(),
                                  min_blocks<Operation, kPacked, kOfWords>() * kMostWarps /
                                      block_warps<Operation, kPacked, kOfWords>())
    sliding_kernel(const __grid_constant__ SlidingParams p) {
  const Tile tile = locate_tile(p, Operation::kStripRows * block_warps<Operation, kPacked, kOfWords>());
  const int first = tile.x0, y0 = strip_row<Operation>(tile);
  if (y0 >= tile.part.height) return;  // returns as a whole warp
  if constexpr (kPacked) {
    slide<Operation, SwarOf<Operation, kOfWords, 4>>(p, tile.part, first, y0);
  } else {
    if (!tile.part.has_filtered) {
      const int last = tile.part.width * tile.part.channels * (kOfWords ? 2 : 1);
      return copy_rows<2>(tile.part, first, min(first + kWarpBytes, last), y0, 1,
                          min(y0 + Operation::kStripRows, tile.part.height));
    }
    if (tile.part.channels == 1)
      slide<Operation, SwarOf<Operation, kOfWords, 1>>(p, tile.part, first, y0);
    else
      slide<Operation, SwarOf<Operation, kOfWords, 2>>(p, tile.part, first, y0);
  }
}

// A kernel, and what its launcher has to know of it.
struct SlidingKernel {
  void (*kernel)(SlidingParams) = nullptr;
  int radius = 0, rows = 0;  // rows of results of a strip
  int warps = 0;             // of a block
};

template <typename Operation, bool kPacked, bool kOfWords>
SlidingKernel sliding_kernel_of() {
  return {sliding_kernel<Operation, kPacked, kOfWords>, Operation::kRadius, Operation::kStripRows,
          block_warps<Operation, kPacked, kOfWords>()};
}

// The kernel of an operation for samples, if there is one.
template <typename Operation>
SlidingKernel sliding_kernel_of(const SwarKind &kind) {
  const bool packed = kind.lane_channels() == 4;
  if (!kind.words)
    return packed ? sliding_kernel_of<Operation, true, false>() : sliding_kernel_of<Operation, false, false>();
  if constexpr (Operation::kWords != WordSamples::None) {
    // Neighbours farther off than the lanes beside cannot be reached.
    if constexpr (Operation::kRadius <= 2)
      if (packed) return sliding_kernel_of<Operation, true, true>();
    if (!packed) return sliding_kernel_of<Operation, false, true>();
  }
  return {};
}

}  // namespace cudaconv::sliding
