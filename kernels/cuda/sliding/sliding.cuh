// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for small windows on dense planes, which runs near the speed of a copy.
//
// It computes each sample of the result from the window around it, at most 9x9 samples. The operations are in
// linear.cuh, gradients.cuh, ranks.cuh, median5.cuh and composite.cuh. direct_kernel() of
// methods/methods.cuh makes the same bytes from the same window, sample by sample.
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
// Warps at the edges gather the bytes beside the frame one by one in shared memory. If rows end within a lane, they
// gather the bytes of this lane too, and write its results from there.
//
// All results are exact; where the halves of registers (see lane_row.cuh) would not hold a sum, other kernels do the
// pass.
#pragma once

#include <type_traits>

#include "cuda/device/tile.cuh"
#include "cuda/device/arch.cuh"
#include "cuda/sliding/operation.cuh"
#include "cuda/sliding/strip_io.cuh"

namespace cudaconv::sliding {

// Filters a strip of rows, from row y0 of the part on.
template <typename Operation, typename Swar>
__device__ inline void slide(const SlidingParams &p, const PartParams &part, int first_byte, int y0) {
  // Planes of one or two channels are filtered completely or not at all, see can_slide().
  constexpr bool kBlends = Swar::kChannels > 2, kRowByRow = Operation::kRowByRow || !Swar::kPairs;
  constexpr int kRadius = Operation::kRadius, kRows = Operation::kStripRows + 2 * kRadius;
  const int lane = threadIdx.x % 32;
  const LaneStrip s = {first_byte + (lane - 1) * kVectorBytes, y0};
  const bool writes = lane >= 1 && lane <= kWarpLanes && s.first_byte < row_bytes<Swar>(part);
  const int left = part.height - y0, end = writes ? part.height : 0;
  uint32_t strip[kRows][4];
  load_strip<Swar, kRadius>(p, part, s, strip);
  StripTarget<Swar, kRows> target(part, s, writes);
  typename Operation::template State<Swar> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    if constexpr (Operation::kSeesStrip)
      state.enter(p, part, s, j, strip, out);
    else
      state.enter(p, j, strip[j], out);
    const int r = j - 2 * kRadius;  // the row of results that is complete
    if (r < 0) continue;
    if constexpr (!kBlends) {
      if (writes) target.put(out);
      // This end also keeps the compiler from starting more rows at once than there are registers for.
      if (r + 1 >= left) break;
    } else if constexpr (kRowByRow) {
      if (y0 + r < end) {
        if (part.has_unfiltered) {
          uint32_t original[4];
          target.reread(part, s, r, kRadius, original);
          blend_pixels<4>(part, original, out);
        }
        target.put(out);
      }
    } else {
      // Either all lanes blend or none, so only a predicated store remains, and no branch.
      if (part.has_unfiltered) blend_pixels<4>(part, strip[j - kRadius], out);
      if (y0 + r < end) target.put(out);
    }
    target.next_row();
  }
  target.finish(part, s, Operation::kStripRows);
}

// The samples of a kernel: pixels of three or four bytes, planes of one or two channels of bytes, or 16-bit containers.
enum class Samples { Pixels, Planes, Words };

// A row of kChannels samples as the operation takes them.
template <typename Operation, Samples kSamples, int kChannels>
using SwarOf = std::conditional_t<
    kSamples != Samples::Words, SwarU8<kChannels>,
    std::conditional_t<Operation::kWords == WordSamples::Compared, SwarU16Ordered<kChannels>, SwarU16<kChannels>>>;

// How many blocks of four warps a multiprocessor is to hold. 16-bit samples, and neighbours that straddle two words,
// take more registers, and so do GPUs without an instruction for the extremum of three pairs.
template <typename Operation, Samples kSamples>
__host__ __device__ constexpr int min_blocks() {
  if (!kHas<Feature::Packed16Bit>) return Operation::kMinBlocks / 2;
  if (kSamples == Samples::Words) return Operation::kMinBlocks - 1;
  return Operation::kMinBlocks - (kSamples == Samples::Pixels ? 0 : Operation::kFewerBlocks);
}

// The warp's first row of results. With the factor outside of warp_uniform() nvcc 13 spills in CompositeGradient<2>.
template <typename Operation>
__device__ inline int strip_row(const Tile &tile) {
  return tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / 32) * Operation::kStripRows);
}

template <typename Operation, Samples kSamples>
__global__ void __launch_bounds__(32 * Operation::kWarps,
                                  min_blocks<Operation, kSamples>() * kMostWarps / Operation::kWarps)
    sliding_kernel(const __grid_constant__ SlidingParams p) {
  const Tile tile = locate_tile(p, Operation::kStripRows * Operation::kWarps);
  const PartParams &part = tile.part;
  const int first = tile.x0, y0 = strip_row<Operation>(tile);
  if (y0 >= part.height) return;  // returns as a whole warp
  if constexpr (kSamples != Samples::Pixels) {
    if (!part.has_filtered) {
      const int last = part.width * part.channels * (kSamples == Samples::Words ? 2 : 1);
      return copy_rows<2>(part, first, min(first + kWarpBytes, last), y0, 1,
                          min(y0 + Operation::kStripRows, part.height));
    }
    if (part.channels == 1) return slide<Operation, SwarOf<Operation, kSamples, 1>>(p, part, first, y0);
    if (part.channels == 2) return slide<Operation, SwarOf<Operation, kSamples, 2>>(p, part, first, y0);
  }
  // Neighbours farther off than the lanes beside cannot be reached.
  if constexpr (kSamples == Samples::Pixels || (kSamples == Samples::Words && Operation::kRadius <= 2))
    slide<Operation, SwarOf<Operation, kSamples, 4>>(p, part, first, y0);
}

// A kernel, and what its launcher has to know of it.
struct SlidingKernel {
  void (*kernel)(SlidingParams) = nullptr;
  int radius = 0, rows = 0;  // rows of results of a strip
  int warps = 0;             // of a block
};

// An operation and its name in plans.
template <Sliding kName_, typename Operation_>
struct Named {
  static constexpr Sliding kName = kName_;
  using Operation = Operation_;
};

// Sets the kernel of the operation for the samples, if it is the one that is wanted and has a kernel for these.
template <typename Entry>
void match_kernel(const SwarKind &kind, SlidingKernel &found) {
  using Operation = typename Entry::Operation;
  if (kind.sliding != Entry::kName) return;
  found = {nullptr, Operation::kRadius, Operation::kStripRows, Operation::kWarps};
  const bool pixels = kind.lane_channels() == 4;
  if (!kind.words)
    found.kernel = pixels ? sliding_kernel<Operation, Samples::Pixels> : sliding_kernel<Operation, Samples::Planes>;
  if constexpr (Operation::kWords != WordSamples::None)
    if (kind.words && (!pixels || Operation::kRadius <= 2)) found.kernel = sliding_kernel<Operation, Samples::Words>;
}

// The kernel for a pass, if its operation has one of these names.
template <typename... Entries>
SlidingKernel kernel_among(const SwarKind &kind) {
  SlidingKernel found;
  (match_kernel<Entries>(kind, found), ...);
  return found;
}

// The kernel for a pass, if its operation is one of the source's.
SlidingKernel sum_kernel(const SwarKind &kind);
SlidingKernel rank_kernel(const SwarKind &kind);

}  // namespace cudaconv::sliding
