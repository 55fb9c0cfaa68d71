// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the operations of sliding.cuh have in common: the properties that they declare, and how their sums become
// samples.
#pragma once

#include "cuda/launch_params.h"
#include "cuda/sliding/lane_row.cuh"
#include "plan/rounding.h"

namespace cudaconv::sliding {

constexpr int kWarpLanes = 30, kWarpBytes = kVectorBytes * kWarpLanes;
constexpr int kMostWarps = 4;  // warps of a block, one below the other

// Parameters of the kernel of sliding.cuh.
struct SlidingParams : FrameParams {
  SwarParams swar;
  bool difference;  // CompositeClosing: the result is the difference between closing and samples, not the closing
};

// How an operation takes samples of 16-bit containers: it has no kernels for them, it adds them, one in a register, or
// it compares them, two in a register.
enum class WordSamples { None, Added, Compared };

// An operation gets the rows of the strip from above; each enter() may complete one row of results, four words. It
// declares kRadius, kStripRows, the rows of results of a strip, and:
// - kMinBlocks: how many blocks of four warps a multiprocessor is to hold, which limits the registers of a thread to
//   65536 / (blocks * 128). More blocks hide more latency, but more registers spill. kFewerBlocks: how many fewer for
//   planes of one or two channels of bytes; for 16-bit samples it is one. Tuned on an H200 with kernel-bench.
// - kWarps: warps of a block. Where there is much to compute, blocks of two warps, twice as many, may keep
//   multiprocessors busier than blocks of four.
// - kWords: see WordSamples.
// - kRowByRow: each row of results is written before the next one begins, and channels to be copied are read again,
//   where registers are scarce. Samples of 16 bits always do so.
// - kSeesStrip: enter() gets the whole strip and its position; row j of it enters.
struct SlidingOperation {
  static constexpr int kFewerBlocks = 0, kWarps = kMostWarps;
  static constexpr WordSamples kWords = WordSamples::Added;
  static constexpr bool kRowByRow = false, kSeesStrip = false;
};

// Converts a signed sum to a sample of at most 16 bits.
template <typename Swar>
__device__ inline uint32_t clamp_to_sample(const SwarParams &k, uint32_t sum) {
  const int v = static_cast<int>(sum);
  return Swar::vmin(static_cast<uint32_t>(k.absolute ? abs(v) : max(v, 0)), k.sample_mask);
}

// Converts sums, offset as SwarParams says, to a word of samples.
template <Epilogue kEpilogue, typename Swar>
__device__ inline uint32_t apply_epilogue(const SlidingParams &p, const uint32_t (&sum)[Swar::kSplit]) {
  const SwarParams &k = p.swar;
  [[maybe_unused]] const uint32_t even = sum[0], odd = sum[1];
  [[maybe_unused]] const auto each = [&](auto sample) {
    return join_parts<Swar>(k, [&](int h) { return sample(sum[h]); });
  };
  if constexpr (kEpilogue == Epilogue::Shift && !Swar::kPairs) {
    return each([&](uint32_t t) { return t >> k.shift; });
  } else if constexpr (kEpilogue == Epilogue::Shift) {
    return __byte_perm(even, odd, 0x7351);
  } else if constexpr (kEpilogue == Epilogue::Divide && !Swar::kPairs) {
    return each([&](uint32_t t) { return high_product(t, k.magic) >> k.shift; });
  } else if constexpr (kEpilogue == Epilogue::Divide) {
    // The sum in the low half is below 2^15, too small to change the quotient of the high one.
    return __byte_perm(__byte_perm((even & 0xffffu) * k.magic, (odd & 0xffffu) * k.magic, 0x0073),
                       __byte_perm(high_product(even, k.magic), high_product(odd, k.magic), 0x0051), 0x5410);
  } else if constexpr (kEpilogue == Epilogue::Clamp && !Swar::kPairs) {
    return each([&](uint32_t t) { return clamp_to_sample<Swar>(k, t); });
  } else if constexpr (kEpilogue == Epilogue::Clamp) {
    return each([&](uint32_t t) {
      if (k.absolute) t = Swar::vmax(t, 2 * k.zero - t);
      return clamp_pair<Swar>(k, t, k.minus_low);
    });
  } else if constexpr (!Swar::kPairs) {
    return each([&](uint32_t t) { return round_to_sample(static_cast<int32_t>(t), p.rounding[0]); });
  } else {
    return each([&](uint32_t t) {
      t = k.absolute ? difference<Swar>(t, k.zero) + k.half : Swar::vmax(t, k.low) - k.low;
      t = Swar::vmin(t, k.limit);
      if (!k.magic) return t >> k.shift & 0x00ff00ffu;
      return __byte_perm((t & 0xffffu) * k.magic, (t >> 16) * k.magic, 0x4743) & 0x00ff00ffu;
    });
  }
}

// Converts the sums of a lane's row to samples: Clamp where the pass allows it, which is quicker, else Any.
template <typename Swar>
__device__ inline void finish_row(const SlidingParams &p, const uint32_t (&sums)[4][Swar::kSplit], uint32_t (&out)[4]) {
  if (p.swar.epilogue == Epilogue::Clamp) {
    each<4>([&](int i) { out[i] = apply_epilogue<Epilogue::Clamp, Swar>(p, sums[i]); });
  } else {
    each<4>([&](int i) { out[i] = apply_epilogue<Epilogue::Any, Swar>(p, sums[i]); });
  }
}

// Whether sums for the even pairs are sums of unmasked words, which contain 256 times the odd pairs as well: one
// subtraction from the result replaces a mask on each row. This needs neighbours that are whole words.
template <typename Swar>
constexpr bool kWholeWords = Swar::kSampleBytes == 1 && Swar::kChannels == 4;

template <typename Swar>
__device__ inline uint32_t part_or_word(const SwarParams &k, uint32_t word, int h) {
  return kWholeWords<Swar> && !h ? word : Swar::part(k, word, h);
}

// Computes the sums of a word's samples, one register each: sum_of(h) sums part_or_word(h).
template <typename Swar, typename SumOf>
__device__ inline void part_sums(SumOf sum_of, uint32_t (&sums)[Swar::kSplit]) {
#pragma unroll
  for (int h = Swar::kSplit - 1; h >= 0; h--) sums[h] = sum_of(h);
  if constexpr (kWholeWords<Swar>) sums[0] -= sums[1] << 8;
}

// Computes word i of the lane's results: sample(n) returns the result at sample n of the row.
template <typename Swar, typename Sample>
__device__ inline uint32_t make_word(const SwarParams &k, int i, Sample sample) {
  return join_parts<Swar>(k, [&](int h) { return sample(Swar::kPerWord * i + h); });
}

}  // namespace cudaconv::sliding
