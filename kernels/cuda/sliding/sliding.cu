// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the sliding kernels.
#include "cuda/sliding/sliding.cuh"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cuda/sliding/gradients.cuh"
#include "cuda/sliding/linear.cuh"
#include "cuda/sliding/median5.cuh"
#include "cuda/sliding/ranks.cuh"
#include "cuda/sliding/strips.h"

namespace cudaconv {

namespace {

using SlidingLaunch = StripLaunch<SlidingParams>;

// Kinds of strips. To keep the number of kernels low, 16-bit samples have no tall strips, and only some operations have
// kernels for tails.
enum class Strips { Short, Tall, Tail };

template <typename Operation, Channels kChannels, template <int> typename Swar>
SlidingLaunch sliding_launch(Strips strips) {
  if constexpr (Operation::kAllArchs || Operation::kHasTailKernel)
    if (strips == Strips::Tail) return strip_launch<Operation, kChannels, Swar, Ends::Tail>();
  if (strips == Strips::Tail) return {};
  if constexpr (Swar<1>::kSampleBytes == 1)
    if (strips == Strips::Tall) return strip_launch<typename Operation::Tall, kChannels, Swar>();
  return strip_launch<Operation, kChannels, Swar>();
}

template <typename Operation>
SlidingLaunch u8_launch(const SwarKind &kind, Strips strips) {
  if (kind.most_channels == 3) return sliding_launch<Operation, Channels::Packed3, SwarU8>(strips);
  if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, SwarU8>(strips);
  return sliding_launch<Operation, Channels::Planar, SwarU8>(strips);
}

template <typename Operation, template <int> typename Swar = SwarU16>
SlidingLaunch u16_launch(const SwarKind &kind, Strips strips) {
  if constexpr (Operation::kRadius <= 2)
    if (kind.most_channels == 4) return sliding_launch<Operation, Channels::Packed4, Swar>(strips);
  return sliding_launch<Operation, Channels::Planar, Swar>(strips);
}

SlidingLaunch choose_u8(const SwarKind &kind, Epilogue epilogue, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (epilogue == Epilogue::Shift) return u8_launch<SlidingBinomial<3>>(kind, strips);
      if (epilogue == Epilogue::Divide) return u8_launch<SlidingMean<3>>(kind, strips);
      if (epilogue == Epilogue::Absolute) return u8_launch<SlidingSeparable<3, Epilogue::Absolute>>(kind, strips);
      if (epilogue == Epilogue::Distance) return u8_launch<SlidingSeparable<3, Epilogue::Distance>>(kind, strips);
      if (epilogue == Epilogue::Clamp) return u8_launch<SlidingSeparable<3, Epilogue::Clamp>>(kind, strips);
      return u8_launch<SlidingSeparable<3, Epilogue::Any>>(kind, strips);
    case Sliding::Separable5:
      if (epilogue == Epilogue::Shift) return u8_launch<SlidingBinomial<5>>(kind, strips);
      if (epilogue == Epilogue::Divide) return u8_launch<SlidingMean<5>>(kind, strips);
      return u8_launch<SlidingSeparable<5, Epilogue::Any>>(kind, strips);
    case Sliding::Separable7:
      if (epilogue == Epilogue::Divide) return u8_launch<SlidingMean<7>>(kind, strips);
      return u8_launch<SlidingSeparable<7, Epilogue::Any>>(kind, strips);
    case Sliding::Dense3:
      return u8_launch<SlidingDense3<Epilogue::Any>>(kind, strips);
    case Sliding::Diamond5:
      return u8_launch<SlidingDiamond5<>>(kind, strips);
    case Sliding::HalfSquare3:
      return u8_launch<SlidingHalf3<false>>(kind, strips);
    case Sliding::HalfCross3:
      return u8_launch<SlidingHalf3<true>>(kind, strips);
    case Sliding::Emboss3:
      return u8_launch<SlidingEmboss>(kind, strips);
    case Sliding::GradientL1:
      return u8_launch<SlidingGradient<false, false>>(kind, strips);
    case Sliding::GradientL2:
      return u8_launch<SlidingGradient<true, false>>(kind, strips);
    case Sliding::UnitGradientL1:
      return u8_launch<SlidingGradient<false, true>>(kind, strips);
    case Sliding::UnitGradientL2:
      return u8_launch<SlidingGradient<true, true>>(kind, strips);
    case Sliding::Extremum3:
      return kind.least ? u8_launch<SlidingExtremum<3, true>>(kind, strips)
                        : u8_launch<SlidingExtremum<3, false>>(kind, strips);
    case Sliding::Extremum5:
      return kind.least ? u8_launch<SlidingExtremum<5, true>>(kind, strips)
                        : u8_launch<SlidingExtremum<5, false>>(kind, strips);
    case Sliding::Extremum7:
      return kind.least ? u8_launch<SlidingExtremum<7, true>>(kind, strips)
                        : u8_launch<SlidingExtremum<7, false>>(kind, strips);
    case Sliding::Extremum9:
      return kind.least ? u8_launch<SlidingExtremum9<true>>(kind, strips)
                        : u8_launch<SlidingExtremum9<false>>(kind, strips);
    case Sliding::Element5:
      return u8_launch<SlidingElement<2>>(kind, strips);
    case Sliding::Element7:
      return u8_launch<SlidingElement<3>>(kind, strips);
    case Sliding::Kirsch3:
      return u8_launch<SlidingKirsch<>>(kind, strips);
    case Sliding::RobertsL1:
      return u8_launch<SlidingWindow3<RobertsFunction<false>>>(kind, strips);
    case Sliding::RobertsL2:
      return u8_launch<SlidingWindow3<RobertsFunction<true>>>(kind, strips);
    case Sliding::Magnitude3:
      return u8_launch<SlidingWindow3<MagnitudeFunction>>(kind, strips);
    case Sliding::Median3:
      return u8_launch<SlidingMedian3<>>(kind, strips);
    case Sliding::Median5:
      return u8_launch<SlidingMedian5>(kind, strips);
    case Sliding::Cross3:
    case Sliding::None:
      break;
  }
  return {};
}

SlidingLaunch choose_u16(const SwarKind &kind, Epilogue epilogue, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (epilogue == Epilogue::Shift) return u16_launch<SlidingBinomial<3>>(kind, strips);
      if (epilogue == Epilogue::Divide) return u16_launch<SlidingMean<3>>(kind, strips);
      if (epilogue == Epilogue::Clamp) return u16_launch<SlidingSeparable<3, Epilogue::Clamp>>(kind, strips);
      return u16_launch<SlidingSeparable<3, Epilogue::Any>>(kind, strips);
    case Sliding::Separable5:
      if (epilogue == Epilogue::Shift) return u16_launch<SlidingBinomial<5>>(kind, strips);
      if (epilogue == Epilogue::Divide) return u16_launch<SlidingMean<5>>(kind, strips);
      return u16_launch<SlidingSeparable<5, Epilogue::Any>>(kind, strips);
    case Sliding::Separable7:
      if (epilogue == Epilogue::Divide) return u16_launch<SlidingMean<7>>(kind, strips);
      return u16_launch<SlidingSeparable<7, Epilogue::Any>>(kind, strips);
    case Sliding::Dense3:
      if (epilogue == Epilogue::Clamp) return u16_launch<SlidingDense3<Epilogue::Clamp>>(kind, strips);
      return u16_launch<SlidingDense3<Epilogue::Any>>(kind, strips);
    case Sliding::Cross3:
      return u16_launch<SlidingDense3<Epilogue::Clamp, true>>(kind, strips);
    case Sliding::Diamond5:
      return u16_launch<SlidingDiamond5<>>(kind, strips);
    case Sliding::Extremum3:
      return kind.least ? u16_launch<SlidingExtremum<3, true>, SwarU16Ordered>(kind, strips)
                        : u16_launch<SlidingExtremum<3, false>, SwarU16Ordered>(kind, strips);
    case Sliding::Extremum5:
      return kind.least ? u16_launch<SlidingExtremum<5, true>, SwarU16Ordered>(kind, strips)
                        : u16_launch<SlidingExtremum<5, false>, SwarU16Ordered>(kind, strips);
    case Sliding::Extremum7:
      return kind.least ? u16_launch<SlidingExtremum<7, true>, SwarU16Ordered>(kind, strips)
                        : u16_launch<SlidingExtremum<7, false>, SwarU16Ordered>(kind, strips);
    case Sliding::Element5:
      return u16_launch<SlidingElement<2>, SwarU16Ordered>(kind, strips);
    case Sliding::Element7:
      return u16_launch<SlidingElement<3>, SwarU16Ordered>(kind, strips);
    case Sliding::Kirsch3:
      return u16_launch<SlidingKirsch<>>(kind, strips);
    case Sliding::RobertsL1:
      return u16_launch<SlidingWindow3<RobertsFunction<false>>>(kind, strips);
    case Sliding::RobertsL2:
      return u16_launch<SlidingWindow3<RobertsFunction<true>>>(kind, strips);
    case Sliding::Magnitude3:
      return u16_launch<SlidingWindow3<MagnitudeFunction>>(kind, strips);
    case Sliding::Median3:
      return u16_launch<SlidingMedian3<>, SwarU16Ordered>(kind, strips);
    case Sliding::Median5:
      return u16_launch<SlidingMedian5>(kind, strips);
    case Sliding::GradientL1:
      return u16_launch<SlidingGradient<false, false>>(kind, strips);
    case Sliding::GradientL2:
      return u16_launch<SlidingGradient<true, false>>(kind, strips);
    default:
      break;
  }
  return {};
}

template <typename Operation>
SlidingLaunch sums16_launch(Strips strips) {
  return sliding_launch<Operation, Channels::Planar, SwarU16Sums16>(strips);
}

SlidingLaunch choose_sums16(const SwarKind &kind, Epilogue epilogue, Strips strips) {
  switch (kind.sliding) {
    case Sliding::Separable3:
      return epilogue == Epilogue::Shift    ? sums16_launch<SlidingBinomial<3>>(strips)
             : epilogue == Epilogue::Divide ? sums16_launch<SlidingMean<3>>(strips)
                                            : sums16_launch<SlidingSeparable<3, Epilogue::Clamp>>(strips);
    case Sliding::Separable5:
      return epilogue == Epilogue::Shift ? sums16_launch<SlidingBinomial<5>>(strips)
                                         : sums16_launch<SlidingMean<5>>(strips);
    case Sliding::Separable7:
      return sums16_launch<SlidingMean<7>>(strips);
    case Sliding::Dense3:
      return sums16_launch<SlidingDense3<Epilogue::Clamp>>(strips);
    case Sliding::Cross3:
      return sums16_launch<SlidingDense3<Epilogue::Clamp, true>>(strips);
    case Sliding::Diamond5:
      return sums16_launch<SlidingDiamond5<>>(strips);
    case Sliding::Emboss3:
      return sums16_launch<SlidingEmboss>(strips);
    case Sliding::Kirsch3:
      return sums16_launch<SlidingKirsch<>>(strips);
    case Sliding::RobertsL1:
      return sums16_launch<SlidingWindow3<RobertsFunction<false>>>(strips);
    case Sliding::RobertsL2:
      return sums16_launch<SlidingWindow3<RobertsFunction<true>>>(strips);
    case Sliding::GradientL1:
      return sums16_launch<SlidingGradient<false, false>>(strips);
    case Sliding::GradientL2:
      return sums16_launch<SlidingGradient<true, false>>(strips);
    default:
      return {};
  }
}

SlidingLaunch choose_launch(const SwarKind &kind, Epilogue epilogue, Strips strips) {
  if (kind.sums16) return choose_sums16(kind, epilogue, strips);
  return kind.words ? choose_u16(kind, epilogue, strips) : choose_u8(kind, epilogue, strips);
}

// Whether the frame takes tall strips. The environment variable CUDACONV_STRIPS, tall or short, overrides this.
bool is_large(const FrameParams &p, const SwarKind &kind) {
  if (const char *strips = std::getenv("CUDACONV_STRIPS")) return !std::strcmp(strips, "tall");
  int64_t bytes = 0;
  for (int i = 0; i < p.parts; i++) bytes += int64_t{p.part[i].width} * p.part[i].channels * p.part[i].height;
  const bool quick = kind.sliding == Sliding::Separable7 || kind.sliding == Sliding::Extremum7 ||
                     kind.sliding == Sliding::Extremum9 || kind.sliding == Sliding::Diamond5 ||
                     kind.sliding == Sliding::Kirsch3;
  return bytes >=
         int64_t{quick ? SlidingTuning::kQuickTallBlocks : SlidingTuning::kTallBlocks} * kWarpBytes * 8 * kMostWarps;
}

bool is_extremum(const SwarKind &kind) {
  return kind.sliding == Sliding::Extremum3 || kind.sliding == Sliding::Extremum5 ||
         kind.sliding == Sliding::Extremum7 || kind.sliding == Sliding::Extremum9;
}

// The launch for a pass; without a kernel if the pass is not for this structure.
struct Choice {
  SlidingLaunch launch_as;
  SwarKind kind;
};

// Chooses the launch; the frame has been filled in.
Choice choose(const PassQuery &query, SlidingParams &p) {
  const bool sm90 = query.kernels.sm90;
  const auto plan_for = [&](Tier tier) { return plan_swar(query.plan, query.pass(), p.swar, tier); };
  SwarKind kind = plan_for(sm90 ? Tier::Sm90 : Tier::Generic);
  if (kind.sliding == Sliding::None || !can_slide(p, kind)) return {};
  // Smaller elements use the kernel of a larger one.
  const int radius = kind.sliding == Sliding::Element5   ? 2
                     : kind.sliding == Sliding::Element7 ? 3
                                                         : std::max(query.pass().radius_x, query.pass().radius_y);
  const Strips strips = !rows_are_multiples_of_16(p, kind, radius) ? Strips::Tail
                        : sm90 && is_large(p, kind)                ? Strips::Tall
                                                                   : Strips::Short;
  SlidingLaunch launch_as = choose_launch(kind, p.swar.epilogue, strips);
  if (!launch_as.kernel) {
    kind = plan_for(Tier::Generic);
    launch_as = choose_launch(kind, p.swar.epilogue, strips);
  }
  // With these modes every outside sample equals one inside the same window, as with Replicate, which is cheaper.
  if (is_extremum(kind) && (p.border == Border::Reflect || p.border == Border::Reflect101))
    p.border = Border::Replicate;
  return {launch_as, kind};
}

}  // namespace

int takes_sliding(const PassQuery &query) {
  SlidingParams p = {};
  fill_frame(query, p);
  return choose(query, p).launch_as.kernel != nullptr;
}

void launch_sliding(const PassRun &run) {
  SlidingParams p = {};
  fill_frame(run, p);
  const Choice choice = choose(run, p);
  enqueue_strips(run, choice.launch_as, choice.kind, p);
}

const void *any_sliding() {
  return reinterpret_cast<const void *>(sliding_kernel<SlidingMedian5, Channels::Planar, SwarU16>);
}

}  // namespace cudaconv
