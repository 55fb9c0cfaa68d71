// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that method=auto prefers for small masks on dense planes: they run near the speed of a copy.
//
// A lane owns 16 bytes of a row (a vector). A warp has 30 such columns, and one more on either side for its neighbours.
// All rows of a strip are loaded at once, straight-line, so that many loads are in flight. Then the window slides down
// in registers: first columns are combined, then neighbours, by warp shuffles, without shared memory. Lanes beside the
// frame load the 16 bytes at its edge and arrange them by the border mode. A row that is not a multiple of 16 bytes
// ends with a tail: warps at the edges gather the bytes in and beside it one by one in shared memory, and write its
// results from there.
//
// All results are exact; where the halves of registers (see swar.cuh) would not hold a sum, other kernels do the pass.
#pragma once

#include <type_traits>

#include "cuda/device/sample.cuh"
#include "cuda/device/swar.cuh"
#include "cuda/sliding/operation.cuh"
#include "cuda/sliding/strip_io.cuh"

namespace cudaconv {

// Passes the rows of a strip through the operation. store(r, words, original) gets the words of row r of results;
// original(words) fetches the samples at the same place. store() returns whether the frame has more rows.
template <typename Operation, typename Swar, int kRows, typename Store>
__device__ inline void run_strip(const typename Operation::Params &p, const PartParams &part, LaneStrip s,
                                 const uint32_t (&strip)[kRows][4], Store store) {
  typename Operation::template State<Swar> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    if constexpr (std::is_same_v<typename Operation::Params, SlidingParams>)
      state.enter(p, j, strip[j], out);
    else
      state.enter(p, part, s, j, strip, out);
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

// How rows end. Whole: the rows of all parts are a multiple of 16 bytes, and a part has more rows than the radius.
// Tail: rows have at least 16 bytes.
enum class Ends { Whole, Tail };

template <typename Operation, typename Swar, Ends kEnds>
__device__ inline void slide(const typename Operation::Params &p, const PartParams &part, int first_byte, int y0) {
  // Planes of one or two channels are filtered completely or not at all, see can_slide().
  constexpr bool kBlends = Swar::kChannels > 2;
  const int lane = threadIdx.x % 32;
  constexpr int kRows = Operation::kStripRows + 2 * Operation::kRadius;
  const LaneStrip s = {first_byte + (lane - 1) * kVectorBytes, y0};
  const bool writes = lane >= 1 && lane <= kWarpLanes && s.first_byte < part.width * kPixelBytes<Swar>;
  const int left = part.height - s.y0, rows = writes ? left : 0, end = writes ? part.height : 0;
  uint32_t strip[kRows][4];
  if constexpr (kEnds == Ends::Whole)
    load_strip<Swar, Operation::kRadius>(p, part, s, strip);
  else
    load_tail_strip<Swar, Operation::kRadius>(p, part, s, strip);
  // The tail's samples are in shared memory; its results replace them there.
  const bool is_tail = kEnds == Ends::Tail && writes && s.first_byte + kVectorBytes > part.width * kPixelBytes<Swar>;
  uint4 *const tail = kEnds == Ends::Tail ? reinterpret_cast<uint4 *>(warp_edges<kRows>(1)) : nullptr;
  constexpr int kTailPitch = kEdges * kEdgeBytes / kVectorBytes;
  const auto has_row = [&](int r) { return Operation::kRecomputesRows ? s.y0 + r < end : r < rows; };
  uint8_t *target = part.target + s.y0 * part.target_pitch + s.first_byte;
  constexpr bool kRowByRow = Operation::kRowByRow || !Swar::kPairs || !kHas<Feature::MaskKernels>;
  // Samples of channels to be copied are kept in registers, or read again where registers are scarce.
  constexpr bool kRereads =
      (kRowByRow && !(Operation::kHoldsMiddle && Swar::kPairs)) || (Operation::kRadius > 1 && Swar::kChannels != 4);
  run_strip<Operation, Swar>(p, part, s, strip, [&](int r, uint32_t(&out)[4], auto original) {
    const auto blend = [&] {
      uint32_t words[4];
      if constexpr (kRereads) {
        const uint8_t *source = part.source + (s.y0 + r) * part.source_pitch + s.first_byte;
        split_words(is_tail ? tail[(r + Operation::kRadius) * kTailPitch] : *reinterpret_cast<const uint4 *>(source),
                    words);
      } else {
        original(words);
      }
      blend_vector<Swar>(part, s.first_byte, words, out);
    };
    const auto put = [&] {
      const uint4 words = make_uint4(out[0], out[1], out[2], out[3]);
      if (is_tail)
        tail[r * kTailPitch] = words;
      else
        *reinterpret_cast<uint4 *>(target) = words;
    };
    if constexpr (!kBlends) {
      if (writes) put();
      // This return also keeps the compiler from starting more rows at once than there are registers for.
      if (r + 1 >= left) return false;
    } else if constexpr (kRowByRow) {
      if (has_row(r)) {
        if (part.has_unfiltered) blend();
        put();
      }
    } else {
      // Either all lanes blend or none, so only a predicated store remains, and no branch.
      if (part.has_unfiltered && (!kRereads || has_row(r))) blend();
      if (has_row(r)) put();
    }
    target += part.target_pitch;
    return true;
  });
  if constexpr (kEnds == Ends::Tail) {
    if (!__any_sync(0xffffffffu, is_tail)) return;
    __syncwarp();
    const int last = second_edge<Swar>(part);
    if (lane >= part.width * kPixelBytes<Swar> - last) return;
    const auto *from = reinterpret_cast<const uint8_t *>(tail) + lane;
    uint8_t *to = part.target + s.y0 * part.target_pitch + last + lane;
#pragma unroll
    for (int r = 0; r < Operation::kStripRows; r++)
      if (r < part.height - s.y0) to[r * part.target_pitch] = from[r * kEdges * kEdgeBytes];
  }
}

// The numbers of channels that kernels are compiled for: one or two in each plane, packed pixels of three, and of four.
enum class Channels { Planar, Packed3, Packed4 };

// The number of warps of a block.
template <typename Operation, Channels kChannels, typename Swar>
CUDACONV_HOST_DEVICE constexpr int block_warps() {
  if (Swar::kSampleBytes > 1) return kMostWarps;
  return kChannels == Channels::Packed4 ? Operation::kWordWarps : Operation::kWarps;
}

// How many blocks of four warps a multiprocessor is to hold. 16-bit samples that are added take a register each, and so
// do neighbours that straddle two words; GPUs without an instruction for the extremum of three pairs need more
// registers.
template <typename Operation, Channels kChannels, typename Swar, Ends kEnds>
__host__ __device__ constexpr int min_blocks() {
  if (!kHas<Feature::Packed16Bit>) return Operation::kMinBlocks / 2;
  if (kEnds == Ends::Tail) return Operation::kMinBlocks - SlidingTuning::kFewerOfTails;
  if (!Swar::kPairs) return Operation::kMinBlocks - (Operation::kFewerBlocks > 1 ? Operation::kFewerBlocks : 1);
  return Operation::kMinBlocks - (kChannels == Channels::Packed4 ? 0 : Operation::kFewerBlocks);
}

// The warp's first row of results. With the factor outside of warp_uniform() nvcc 13 spills in CompositeGradient<2>.
template <typename Operation>
__device__ inline int strip_row(const Tile &tile) {
  return tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / 32) * Operation::kStripRows);
}

template <typename Operation, Channels kChannels, template <int> typename Swar, Ends kEnds = Ends::Whole>
__global__ void __launch_bounds__(32 * block_warps<Operation, kChannels, Swar<1>>(),
                                  min_blocks<Operation, kChannels, Swar<1>, kEnds>() * kMostWarps /
                                      block_warps<Operation, kChannels, Swar<1>>())
    sliding_kernel(const __grid_constant__ typename Operation::Params p) {
  if constexpr ((Operation::kAllArchs && kSwarOnAllArchs<Swar>) || kHas<Feature::MaskKernels>) {
    constexpr int kWarps = block_warps<Operation, kChannels, Swar<1>>();
    const Tile tile = locate_tile(p, Operation::kStripRows * kWarps);
    const int first = tile.x0, y0 = strip_row<Operation>(tile);
    if (y0 >= tile.part.height) return;  // returns as a whole warp
    if constexpr (kChannels == Channels::Planar) {
      if (!tile.part.has_filtered) {
        const int last = tile.part.width * tile.part.channels * Swar<1>::kSampleBytes;
        return copy_rows<2>(tile.part, first, min(first + kWarpBytes, last), y0, 1,
                            min(y0 + Operation::kStripRows, tile.part.height));
      }
    }
    if constexpr (kChannels == Channels::Packed3) {
      slide<Operation, Swar<3>, kEnds>(p, tile.part, first, y0);
    } else if constexpr (kChannels == Channels::Packed4) {
      slide<Operation, Swar<4>, kEnds>(p, tile.part, first, y0);
    } else {
      if (tile.part.channels == 1)
        slide<Operation, Swar<1>, kEnds>(p, tile.part, first, y0);
      else
        slide<Operation, Swar<2>, kEnds>(p, tile.part, first, y0);
    }
  }
}

}  // namespace cudaconv
