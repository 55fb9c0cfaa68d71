// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels.
#include "sliding.cuh"

#include <cstdlib>
#include <cstring>

#include "strips.h"

namespace cudaconv {

namespace {

using SlidingLaunch = StripLaunch<SlidingParams>;

// Three channels, which are rare, take the most general finish, to keep kernels few; words are no taller for the same
// reason.
template <typename Operation>
SlidingLaunch bytes_launch(const PackedKind &kind, bool tall) {
  using Tall = typename Operation::Tall;
  if (kind.most_channels == 3) return strip_launch<typename Operation::General, Channels::Packed3, ByteLanes>();
  if (kind.most_channels == 4)
    return tall ? strip_launch<Tall, Channels::Packed4, ByteLanes>()
                : strip_launch<Operation, Channels::Packed4, ByteLanes>();
  return tall ? strip_launch<Tall, Channels::Planar, ByteLanes>()
              : strip_launch<Operation, Channels::Planar, ByteLanes>();
}

template <typename Operation>
SlidingLaunch words_launch(const PackedKind &kind) {
  if constexpr (Operation::kRadius <= 2)
    if (kind.most_channels == 4) return strip_launch<Operation, Channels::Packed4, WordLanes>();
  return strip_launch<Operation, Channels::Planar, WordLanes>();
}

SlidingLaunch choose_bytes(const PackedKind &kind, Finish finish, bool tall) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return bytes_launch<SlidingBinomial<3>>(kind, tall);
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<3, Finish::Divide>>(kind, tall);
      if (finish == Finish::Absolute) return bytes_launch<SlidingSeparable<3, Finish::Absolute>>(kind, tall);
      if (finish == Finish::Distance) return bytes_launch<SlidingSeparable<3, Finish::Distance>>(kind, tall);
      if (finish == Finish::Clamp) return bytes_launch<SlidingSeparable<3, Finish::Clamp>>(kind, tall);
      return bytes_launch<SlidingSeparable<3, Finish::Any>>(kind, tall);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return bytes_launch<SlidingBinomial<5>>(kind, tall);
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<5, Finish::Divide>>(kind, tall);
      return bytes_launch<SlidingSeparable<5, Finish::Any>>(kind, tall);
    case Sliding::Separable7:
      if (finish == Finish::Divide) return bytes_launch<SlidingSeparable<7, Finish::Divide>>(kind, tall);
      return bytes_launch<SlidingSeparable<7, Finish::Any>>(kind, tall);
    case Sliding::Dense3:
      return bytes_launch<SlidingDense<3, Finish::Any>>(kind, tall);
    case Sliding::Diamond5:
      if (finish == Finish::Distance) return bytes_launch<SlidingDense<5, Finish::Distance>>(kind, tall);
      return bytes_launch<SlidingDense<5, Finish::Any>>(kind, tall);
    case Sliding::HalfSquare3:
      return bytes_launch<SlidingHalf3<false>>(kind, tall);
    case Sliding::HalfCross3:
      return bytes_launch<SlidingHalf3<true>>(kind, tall);
    case Sliding::GradientL1:
      return bytes_launch<SlidingGradient<false, false>>(kind, tall);
    case Sliding::GradientL2:
      return bytes_launch<SlidingGradient<true, false>>(kind, tall);
    case Sliding::UnitGradientL1:
      return bytes_launch<SlidingGradient<false, true>>(kind, tall);
    case Sliding::UnitGradientL2:
      return bytes_launch<SlidingGradient<true, true>>(kind, tall);
    case Sliding::Extremum3:
      return kind.least ? bytes_launch<SlidingExtremum<3, true>>(kind, tall)
                        : bytes_launch<SlidingExtremum<3, false>>(kind, tall);
    case Sliding::Extremum5:
      return kind.least ? bytes_launch<SlidingExtremum<5, true>>(kind, tall)
                        : bytes_launch<SlidingExtremum<5, false>>(kind, tall);
    case Sliding::Extremum7:
      return kind.least ? bytes_launch<SlidingExtremum<7, true>>(kind, tall)
                        : bytes_launch<SlidingExtremum<7, false>>(kind, tall);
    case Sliding::Kirsch3:
      return bytes_launch<SlidingWindow3<KirschFunction>>(kind, tall);
    case Sliding::RobertsL1:
      return bytes_launch<SlidingWindow3<RobertsFunction<false>>>(kind, tall);
    case Sliding::RobertsL2:
      return bytes_launch<SlidingWindow3<RobertsFunction<true>>>(kind, tall);
    case Sliding::Median3:
      return bytes_launch<SlidingMedian3<>>(kind, tall);
    case Sliding::Median5:
      return bytes_launch<SlidingMedian5<>>(kind, tall);
    case Sliding::None:
      break;
  }
  return {};
}

SlidingLaunch choose_words(const PackedKind &kind, Finish finish) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return words_launch<SlidingBinomial<3>>(kind);
      if (finish == Finish::Clamp) return words_launch<SlidingSeparable<3, Finish::Clamp>>(kind);
      return words_launch<SlidingSeparable<3, Finish::Any>>(kind);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return words_launch<SlidingBinomial<5>>(kind);
      return words_launch<SlidingSeparable<5, Finish::Any>>(kind);
    case Sliding::Separable7:
      return words_launch<SlidingSeparable<7, Finish::Any>>(kind);
    case Sliding::Dense3:
      if (finish == Finish::Clamp) return words_launch<SlidingDense<3, Finish::Clamp>>(kind);
      return words_launch<SlidingDense<3, Finish::Any>>(kind);
    case Sliding::Diamond5:
      return words_launch<SlidingDense<5, Finish::Any>>(kind);
    case Sliding::Extremum3:
      return kind.least ? words_launch<SlidingExtremum<3, true>>(kind) : words_launch<SlidingExtremum<3, false>>(kind);
    case Sliding::Extremum5:
      return kind.least ? words_launch<SlidingExtremum<5, true>>(kind) : words_launch<SlidingExtremum<5, false>>(kind);
    case Sliding::Extremum7:
      return kind.least ? words_launch<SlidingExtremum<7, true>>(kind) : words_launch<SlidingExtremum<7, false>>(kind);
    case Sliding::Kirsch3:
      return words_launch<SlidingWindow3<KirschFunction>>(kind);
    case Sliding::RobertsL1:
      return words_launch<SlidingWindow3<RobertsFunction<false>>>(kind);
    case Sliding::RobertsL2:
      return words_launch<SlidingWindow3<RobertsFunction<true>>>(kind);
    case Sliding::Median3:
      return words_launch<SlidingMedian3<>>(kind);
    case Sliding::Median5:
      return words_launch<SlidingMedian5<>>(kind);
    case Sliding::GradientL1:
      return words_launch<SlidingGradient<false, false>>(kind);
    case Sliding::GradientL2:
      return words_launch<SlidingGradient<true, false>>(kind);
    default:
      break;
  }
  return {};
}

// Whether blocks of tall strips of bytes are enough for all multiprocessors of a large device, twice over. The
// environment variable CUDACONV_STRIPS, tall or short, decides for frames of any size.
bool is_large(const FrameParams &p) {
  if (const char *strips = std::getenv("CUDACONV_STRIPS")) return !std::strcmp(strips, "tall");
  int64_t bytes = 0;
  for (int i = 0; i < p.parts; i++) bytes += int64_t{p.part[i].width} * p.part[i].channels * p.part[i].height;
  return bytes >= int64_t{1300} * kWarpBytes * 8 * kSlidingWarps;
}

}  // namespace

int launch_sliding(const PassRun &run) {
  if (run.plan.method != Method::Auto || run.buffers.regions->active) return 0;
  SlidingParams p = {};
  const PackedKind kind = make_packed(run.plan, run.pass(), p.packed);
  if (kind.sliding == Sliding::None) return 0;
  fill_frame(run, p);
  const SlidingLaunch launch_as =
      kind.words ? choose_words(kind, p.packed.finish) : choose_bytes(kind, p.packed.finish, is_large(p));
  enqueue_strips(run, "sliding", launch_as, kind, p);
  return 1;
}

}  // namespace cudaconv
