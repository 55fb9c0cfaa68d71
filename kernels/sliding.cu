// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels.
#include "sliding.cuh"

#include "cuda_resources.h"
#include "launchers.h"
#include "packed.h"

namespace cudaconv {

namespace {

struct SlidingLaunch {
  void (*kernel)(SlidingParams);
  size_t shared_bytes;
  int height;  // rows of a block
};

template <typename Operation, Channels kChannels, template <int> typename Lanes>
SlidingLaunch sliding_launch() {
  return {sliding_kernel<Operation, kChannels, Lanes>, sliding_bytes<Operation>(),
          Operation::kStripRows * kSlidingWarps};
}

// Three channels, which are rare, take the most general finish, to keep kernels few.
template <typename Operation>
SlidingLaunch bytes_launch(const PackedKind &kind) {
  if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, ByteLanes>();
  if (kind.most_channels == 3) return sliding_launch<typename Operation::General, Channels::Packed3, ByteLanes>();
  return sliding_launch<Operation, Channels::Planar, ByteLanes>();
}

template <typename Operation>
SlidingLaunch words_launch(const PackedKind &kind) {
  if constexpr (Operation::kRadius <= 2)
    if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, WordLanes>();
  return sliding_launch<Operation, Channels::Planar, WordLanes>();
}

SlidingLaunch choose_bytes(const PackedKind &kind, Finish finish) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return bytes_launch<SlidingSeparable<3, Finish::Shift>>(kind);
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<3, Finish::Divide>>(kind);
      if (finish == Finish::Absolute) return bytes_launch<SlidingSeparable<3, Finish::Absolute>>(kind);
      if (finish == Finish::Clamp) return bytes_launch<SlidingSeparable<3, Finish::Clamp>>(kind);
      return bytes_launch<SlidingSeparable<3, Finish::Any>>(kind);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return bytes_launch<SlidingSeparable<5, Finish::Shift>>(kind);
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<5, Finish::Divide>>(kind);
      return bytes_launch<SlidingSeparable<5, Finish::Any>>(kind);
    case Sliding::Separable7:
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<7, Finish::Divide>>(kind);
      return bytes_launch<SlidingSeparable<7, Finish::Any>>(kind);
    case Sliding::Dense3:
      if (finish == Finish::Clamp) return bytes_launch<SlidingDense<3, Finish::Clamp>>(kind);
      if (finish == Finish::Absolute) return bytes_launch<SlidingDense<3, Finish::Absolute>>(kind);
      return bytes_launch<SlidingDense<3, Finish::Any>>(kind);
    case Sliding::Diamond5:
      return bytes_launch<SlidingDense<5, Finish::Any>>(kind);
    case Sliding::GradientL1:
      return bytes_launch<SlidingGradient<false, false>>(kind);
    case Sliding::GradientL2:
      return bytes_launch<SlidingGradient<true, false>>(kind);
    case Sliding::SmallGradientL1:
      return bytes_launch<SlidingGradient<false, true>>(kind);
    case Sliding::SmallGradientL2:
      return bytes_launch<SlidingGradient<true, true>>(kind);
    case Sliding::Extremum3:
      return bytes_launch<SlidingExtremum<3>>(kind);
    case Sliding::Extremum5:
      return bytes_launch<SlidingExtremum<5>>(kind);
    case Sliding::Extremum7:
      return bytes_launch<SlidingExtremum<7>>(kind);
    case Sliding::Kirsch3:
      return bytes_launch<SlidingWindow3<KirschFunction>>(kind);
    case Sliding::RobertsL1:
      return bytes_launch<SlidingWindow3<RobertsFunction<false>>>(kind);
    case Sliding::RobertsL2:
      return bytes_launch<SlidingWindow3<RobertsFunction<true>>>(kind);
    case Sliding::Median3:
      return bytes_launch<SlidingMedian3>(kind);
    case Sliding::Median5:
      return bytes_launch<SlidingMedian5>(kind);
    case Sliding::None:
      break;
  }
  return {};
}

// Both norms are one code here.
SlidingLaunch choose_words(const PackedKind &kind, Finish finish) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return words_launch<SlidingSeparable<3, Finish::Shift>>(kind);
      return words_launch<SlidingSeparable<3, Finish::Any>>(kind);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return words_launch<SlidingSeparable<5, Finish::Shift>>(kind);
      return words_launch<SlidingSeparable<5, Finish::Any>>(kind);
    case Sliding::Separable7:
      return words_launch<SlidingSeparable<7, Finish::Any>>(kind);
    case Sliding::Dense3:
      return words_launch<SlidingDense<3, Finish::Any>>(kind);
    case Sliding::Diamond5:
      return words_launch<SlidingDense<5, Finish::Any>>(kind);
    case Sliding::Extremum3:
      return words_launch<SlidingExtremum<3>>(kind);
    case Sliding::Extremum5:
      return words_launch<SlidingExtremum<5>>(kind);
    case Sliding::Extremum7:
      return words_launch<SlidingExtremum<7>>(kind);
    case Sliding::Kirsch3:
      return words_launch<SlidingWindow3<KirschFunction>>(kind);
    case Sliding::RobertsL1:
    case Sliding::RobertsL2:
      return words_launch<SlidingWindow3<RobertsFunction<true>>>(kind);
    case Sliding::Median3:
      return words_launch<SlidingMedian3>(kind);
    case Sliding::Median5:
      return words_launch<SlidingMedian5>(kind);
    case Sliding::GradientL1:
    case Sliding::GradientL2:
      return words_launch<SlidingGradient<true, false>>(kind);
    case Sliding::SmallGradientL1:
    case Sliding::SmallGradientL2:
    case Sliding::None:
      break;
  }
  return {};
}

}  // namespace

int launch_sliding(const PassRun &run) {
  if (run.plan.method != Method::Auto || run.buffers.regions->active) return 0;
  SlidingParams p = {};
  const PackedKind kind = make_packed(run.plan, run.pass(), p.packed);
  if (kind.sliding == Sliding::None) return 0;
  fill_frame(run, p);
  const SlidingLaunch launch_as =
      kind.words ? choose_words(kind, p.packed.finish) : choose_bytes(kind, p.packed.finish);
  const unsigned blocks = cut_tiles(p, [&](const PartParams &part) {
    const int row_bytes = part.width * part.channels * (kind.words ? 2 : 1);
    return TileCount{(row_bytes + kWarpBytes - 1) / kWarpBytes,
                     (part.height + launch_as.height - 1) / launch_as.height};
  });
  check(launch("sliding", launch_as.kernel, dim3(blocks), dim3(kSlidingThreads), launch_as.shared_bytes, run.stream, p),
        "cudaLaunchKernel");
  return 1;
}

}  // namespace cudaconv
