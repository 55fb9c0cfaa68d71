// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels.
#include "sliding.cuh"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "strips.h"

namespace cudaconv {

namespace {

using SlidingLaunch = StripLaunch<SlidingParams>;

// To keep kernels few, words have no taller ones, and not all operations those for cut lanes.
enum class Strips { Short, Tall, Cut };

template <typename Operation, Channels kChannels, template <int> typename Lanes>
SlidingLaunch sliding_launch(Strips strips) {
  if constexpr (Operation::kGeneral || Operation::kCommon)
    if (strips == Strips::Cut) return strip_launch<Operation, kChannels, Lanes, Ends::Cut>();
  if (strips == Strips::Cut) return {};
  if constexpr (Lanes<1>::kSampleBytes == 1)
    if (strips == Strips::Tall) return strip_launch<typename Operation::Tall, kChannels, Lanes>();
  return strip_launch<Operation, kChannels, Lanes>();
}

template <typename Operation>
SlidingLaunch bytes_launch(const PackedKind &kind, Strips strips) {
  if (kind.most_channels == 3) return sliding_launch<Operation, Channels::Packed3, ByteLanes>(strips);
  if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, ByteLanes>(strips);
  return sliding_launch<Operation, Channels::Planar, ByteLanes>(strips);
}

template <typename Operation, template <int> typename Lanes = WordLanes>
SlidingLaunch words_launch(const PackedKind &kind, Strips strips) {
  if constexpr (Operation::kRadius <= 2)
    if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, Lanes>(strips);
  return sliding_launch<Operation, Channels::Planar, Lanes>(strips);
}

SlidingLaunch choose_bytes(const PackedKind &kind, Finish finish, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return bytes_launch<SlidingBinomial<3>>(kind, strips);
      if (finish == Finish::Divide) return bytes_launch<SlidingMean<3>>(kind, strips);
      if (finish == Finish::Absolute) return bytes_launch<SlidingSeparable<3, Finish::Absolute>>(kind, strips);
      if (finish == Finish::Distance) return bytes_launch<SlidingSeparable<3, Finish::Distance>>(kind, strips);
      if (finish == Finish::Clamp) return bytes_launch<SlidingSeparable<3, Finish::Clamp>>(kind, strips);
      return bytes_launch<SlidingSeparable<3, Finish::Any>>(kind, strips);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return bytes_launch<SlidingBinomial<5>>(kind, strips);
      if (finish == Finish::Divide) return bytes_launch<SlidingMean<5>>(kind, strips);
      return bytes_launch<SlidingSeparable<5, Finish::Any>>(kind, strips);
    case Sliding::Separable7:
      if (finish == Finish::Divide) return bytes_launch<SlidingMean<7>>(kind, strips);
      return bytes_launch<SlidingSeparable<7, Finish::Any>>(kind, strips);
    case Sliding::Dense3:
      return bytes_launch<SlidingDense3<Finish::Any>>(kind, strips);
    case Sliding::Diamond5:
      return bytes_launch<SlidingDiamond5<>>(kind, strips);
    case Sliding::HalfSquare3:
      return bytes_launch<SlidingHalf3<false>>(kind, strips);
    case Sliding::HalfCross3:
      return bytes_launch<SlidingHalf3<true>>(kind, strips);
    case Sliding::Emboss3:
      return bytes_launch<SlidingEmboss>(kind, strips);
    case Sliding::GradientL1:
      return bytes_launch<SlidingGradient<false, false>>(kind, strips);
    case Sliding::GradientL2:
      return bytes_launch<SlidingGradient<true, false>>(kind, strips);
    case Sliding::UnitGradientL1:
      return bytes_launch<SlidingGradient<false, true>>(kind, strips);
    case Sliding::UnitGradientL2:
      return bytes_launch<SlidingGradient<true, true>>(kind, strips);
    case Sliding::Extremum3:
      return kind.least ? bytes_launch<SlidingExtremum<3, true>>(kind, strips)
                        : bytes_launch<SlidingExtremum<3, false>>(kind, strips);
    case Sliding::Extremum5:
      return kind.least ? bytes_launch<SlidingExtremum<5, true>>(kind, strips)
                        : bytes_launch<SlidingExtremum<5, false>>(kind, strips);
    case Sliding::Extremum7:
      return kind.least ? bytes_launch<SlidingExtremum<7, true>>(kind, strips)
                        : bytes_launch<SlidingExtremum<7, false>>(kind, strips);
    case Sliding::Extremum9:
      return kind.least ? bytes_launch<SlidingExtremum9<true>>(kind, strips)
                        : bytes_launch<SlidingExtremum9<false>>(kind, strips);
    case Sliding::Element5:
      return bytes_launch<SlidingElement<2>>(kind, strips);
    case Sliding::Element7:
      return bytes_launch<SlidingElement<3>>(kind, strips);
    case Sliding::Kirsch3:
      return bytes_launch<SlidingKirsch<>>(kind, strips);
    case Sliding::RobertsL1:
      return bytes_launch<SlidingWindow3<RobertsFunction<false>>>(kind, strips);
    case Sliding::RobertsL2:
      return bytes_launch<SlidingWindow3<RobertsFunction<true>>>(kind, strips);
    case Sliding::Magnitude3:
      return bytes_launch<SlidingWindow3<MagnitudeFunction>>(kind, strips);
    case Sliding::Median3:
      return bytes_launch<SlidingMedian3<>>(kind, strips);
    case Sliding::Median5:
      return bytes_launch<SlidingMedian5>(kind, strips);
    case Sliding::Cross3:
    case Sliding::None:
      break;
  }
  return {};
}

SlidingLaunch choose_words(const PackedKind &kind, Finish finish, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (finish == Finish::Shift) return words_launch<SlidingBinomial<3>>(kind, strips);
      if (finish == Finish::Divide) return words_launch<SlidingMean<3>>(kind, strips);
      if (finish == Finish::Clamp) return words_launch<SlidingSeparable<3, Finish::Clamp>>(kind, strips);
      return words_launch<SlidingSeparable<3, Finish::Any>>(kind, strips);
    case Sliding::Separable5:
      if (finish == Finish::Shift) return words_launch<SlidingBinomial<5>>(kind, strips);
      if (finish == Finish::Divide) return words_launch<SlidingMean<5>>(kind, strips);
      return words_launch<SlidingSeparable<5, Finish::Any>>(kind, strips);
    case Sliding::Separable7:
      if (finish == Finish::Divide) return words_launch<SlidingMean<7>>(kind, strips);
      return words_launch<SlidingSeparable<7, Finish::Any>>(kind, strips);
    case Sliding::Dense3:
      if (finish == Finish::Clamp) return words_launch<SlidingDense3<Finish::Clamp>>(kind, strips);
      return words_launch<SlidingDense3<Finish::Any>>(kind, strips);
    case Sliding::Cross3:
      return words_launch<SlidingDense3<Finish::Clamp, true>>(kind, strips);
    case Sliding::Diamond5:
      return words_launch<SlidingDiamond5<>>(kind, strips);
    case Sliding::Extremum3:
      return kind.least ? words_launch<SlidingExtremum<3, true>, OrderedWordLanes>(kind, strips)
                        : words_launch<SlidingExtremum<3, false>, OrderedWordLanes>(kind, strips);
    case Sliding::Extremum5:
      return kind.least ? words_launch<SlidingExtremum<5, true>, OrderedWordLanes>(kind, strips)
                        : words_launch<SlidingExtremum<5, false>, OrderedWordLanes>(kind, strips);
    case Sliding::Extremum7:
      return kind.least ? words_launch<SlidingExtremum<7, true>, OrderedWordLanes>(kind, strips)
                        : words_launch<SlidingExtremum<7, false>, OrderedWordLanes>(kind, strips);
    case Sliding::Element5:
      return words_launch<SlidingElement<2>, OrderedWordLanes>(kind, strips);
    case Sliding::Element7:
      return words_launch<SlidingElement<3>, OrderedWordLanes>(kind, strips);
    case Sliding::Kirsch3:
      return words_launch<SlidingKirsch<>>(kind, strips);
    case Sliding::RobertsL1:
      return words_launch<SlidingWindow3<RobertsFunction<false>>>(kind, strips);
    case Sliding::RobertsL2:
      return words_launch<SlidingWindow3<RobertsFunction<true>>>(kind, strips);
    case Sliding::Magnitude3:
      return words_launch<SlidingWindow3<MagnitudeFunction>>(kind, strips);
    case Sliding::Median3:
      return words_launch<SlidingMedian3<>, OrderedWordLanes>(kind, strips);
    case Sliding::Median5:
      return words_launch<SlidingMedian5>(kind, strips);
    case Sliding::GradientL1:
      return words_launch<SlidingGradient<false, false>>(kind, strips);
    case Sliding::GradientL2:
      return words_launch<SlidingGradient<true, false>>(kind, strips);
    default:
      break;
  }
  return {};
}

template <typename Operation>
SlidingLaunch narrow_launch(Strips strips) {
  return sliding_launch<Operation, Channels::Planar, NarrowWordLanes>(strips);
}

SlidingLaunch choose_narrow(const PackedKind &kind, Finish finish, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      return finish == Finish::Shift    ? narrow_launch<SlidingBinomial<3>>(strips)
             : finish == Finish::Divide ? narrow_launch<SlidingMean<3>>(strips)
                                        : narrow_launch<SlidingSeparable<3, Finish::Clamp>>(strips);
    case Sliding::Separable5:
      return finish == Finish::Shift ? narrow_launch<SlidingBinomial<5>>(strips)
                                     : narrow_launch<SlidingMean<5>>(strips);
    case Sliding::Separable7:
      return narrow_launch<SlidingMean<7>>(strips);
    case Sliding::Dense3:
      return narrow_launch<SlidingDense3<Finish::Clamp>>(strips);
    case Sliding::Cross3:
      return narrow_launch<SlidingDense3<Finish::Clamp, true>>(strips);
    case Sliding::Diamond5:
      return narrow_launch<SlidingDiamond5<>>(strips);
    case Sliding::Emboss3:
      return narrow_launch<SlidingEmboss>(strips);
    case Sliding::Kirsch3:
      return narrow_launch<SlidingKirsch<>>(strips);
    case Sliding::RobertsL1:
      return narrow_launch<SlidingWindow3<RobertsFunction<false>>>(strips);
    case Sliding::RobertsL2:
      return narrow_launch<SlidingWindow3<RobertsFunction<true>>>(strips);
    case Sliding::GradientL1:
      return narrow_launch<SlidingGradient<false, false>>(strips);
    case Sliding::GradientL2:
      return narrow_launch<SlidingGradient<true, false>>(strips);
    default:
      return {};
  }
}

SlidingLaunch choose_launch(const PackedKind &kind, Finish finish, Strips strips) {
  if (kind.narrow) return choose_narrow(kind, finish, strips);
  return kind.words ? choose_words(kind, finish, strips) : choose_bytes(kind, finish, strips);
}

// Whether blocks of tall strips of bytes are enough for all multiprocessors of a large device, twice over, or once
// where the strips are quick. The environment variable CUDACONV_STRIPS, tall or short, decides for frames of any size.
bool is_large(const FrameParams &p, const PackedKind &kind) {
  if (const char *strips = std::getenv("CUDACONV_STRIPS")) return !std::strcmp(strips, "tall");
  int64_t bytes = 0;
  for (int i = 0; i < p.parts; i++) bytes += int64_t{p.part[i].width} * p.part[i].channels * p.part[i].height;
  const bool quick = kind.sliding == Sliding::Separable7 || kind.sliding == Sliding::Extremum7 ||
                     kind.sliding == Sliding::Extremum9 || kind.sliding == Sliding::Diamond5 ||
                     kind.sliding == Sliding::Kirsch3;
  return bytes >= int64_t{quick ? 650 : 1300} * kWarpBytes * 8 * kMostWarps;
}

bool is_extremum(const PackedKind &kind) {
  return kind.sliding == Sliding::Extremum3 || kind.sliding == Sliding::Extremum5 ||
         kind.sliding == Sliding::Extremum7 || kind.sliding == Sliding::Extremum9;
}

}  // namespace

int launch_sliding(const PassRun &run) {
  SlidingParams p = {};
  const bool special = run.kernels.special;
  const auto choose = [&](Kinds kinds) { return make_packed(run.plan, run.pass(), p.packed, kinds); };
  PackedKind kind = choose(special ? Kinds::All : Kinds::General);
  if (kind.sliding == Sliding::None) return 0;
  fill_frame(run, p);
  if (!can_slide(p, kind)) return 0;
  // A smaller element takes the kernel of a larger one.
  const int radius = kind.sliding == Sliding::Element5   ? 2
                     : kind.sliding == Sliding::Element7 ? 3
                                                         : std::max(run.pass().radius_x, run.pass().radius_y);
  const Strips strips = !has_whole_lanes(p, kind, radius) ? Strips::Cut
                        : special && is_large(p, kind)    ? Strips::Tall
                                                          : Strips::Short;
  SlidingLaunch launch_as = choose_launch(kind, p.packed.finish, strips);
  if (!launch_as.kernel) {
    kind = choose(Kinds::General);
    launch_as = choose_launch(kind, p.packed.finish, strips);
  }
  // A window that reaches what these make of samples inside has those samples too.
  if (is_extremum(kind) && (p.border == Border::Reflect || p.border == Border::Reflect101))
    p.border = Border::Replicate;
  if (!launch_as.kernel) return 0;
  enqueue_strips(run, "sliding", launch_as, kind, p);
  return 1;
}

const void *any_sliding() {
  return reinterpret_cast<const void *>(sliding_kernel<SlidingMedian5, Channels::Planar, WordLanes>);
}

}  // namespace cudaconv
