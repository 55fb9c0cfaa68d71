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
};

// Blocks that a multiprocessor is to hold bound the registers of a thread: 65536 / (blocks * 128). More of them hide
// more latency as long as nothing spills.
template <typename Operation, int kMinBlocks>
SlidingLaunch sliding_launch() {
  return {sliding_kernel<Operation, kMinBlocks>, sliding_bytes(Operation::kRadius)};
}

SlidingLaunch choose_sliding(Sliding sliding, Finish finish) {
  switch (sliding) {
    case Sliding::Separable3:
      switch (finish) {
        case Finish::Shift:
          return sliding_launch<SlidingSeparable<3, Finish::Shift>, 8>();
        case Finish::Divide:
          return sliding_launch<SlidingSeparable<3, Finish::Divide>, 8>();
        case Finish::AbsoluteShift:
          return sliding_launch<SlidingSeparable<3, Finish::AbsoluteShift>, 8>();
        default:
          return sliding_launch<SlidingSeparable<3, Finish::Any>, 8>();
      }
    case Sliding::Separable5:
      switch (finish) {
        case Finish::Shift:
          return sliding_launch<SlidingSeparable<5, Finish::Shift>, 7>();
        case Finish::Divide:
          return sliding_launch<SlidingSeparable<5, Finish::Divide>, 7>();
        default:
          return sliding_launch<SlidingSeparable<5, Finish::Any>, 6>();
      }
    case Sliding::Separable7:
      return sliding_launch<SlidingSeparable<7, Finish::Any>, 5>();
    case Sliding::Dense3:
      switch (finish) {
        case Finish::ClampShift:
          return sliding_launch<SlidingDense<3, Finish::ClampShift>, 8>();
        case Finish::AbsoluteShift:
          return sliding_launch<SlidingDense<3, Finish::AbsoluteShift>, 8>();
        default:
          return sliding_launch<SlidingDense<3, Finish::Any>, 8>();
      }
    case Sliding::Diamond5:
      return sliding_launch<SlidingDense<5, Finish::Any>, 6>();
    case Sliding::Gradient3:
      return sliding_launch<SlidingGradient, 7>();
    case Sliding::Extremum3:
      return sliding_launch<SlidingExtremum<3>, 8>();
    case Sliding::Extremum5:
      return sliding_launch<SlidingExtremum<5>, 7>();
    case Sliding::Extremum7:
      return sliding_launch<SlidingExtremum<7>, 5>();
    case Sliding::Kirsch3:
      return sliding_launch<SlidingWindow3<KirschFunction>, 5>();
    case Sliding::Roberts3:
      return sliding_launch<SlidingWindow3<RobertsFunction>, 8>();
    case Sliding::Median3:
      return sliding_launch<SlidingWindow3<Median3Function>, 6>();
    case Sliding::None:
      break;
  }
  return {};
}

}  // namespace

int launch_sliding(const PassRun &run) {
  if (run.plan.method != Method::Auto || run.buffers.regions->active) return 0;
  SlidingParams p = {};
  const Sliding sliding = make_packed(run.plan, run.pass(), p.packed);
  if (sliding == Sliding::None) return 0;
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(p, [](const PartParams &part) {
    return TileCount{(part.width * part.channels + kWarpBytes - 1) / kWarpBytes,
                     (part.height + kSlidingHeight - 1) / kSlidingHeight};
  });
  const SlidingLaunch launch_as = choose_sliding(sliding, p.packed.finish);
  check(launch("sliding", launch_as.kernel, dim3(blocks), dim3(kSlidingThreads), launch_as.shared_bytes, run.stream, p),
        "cudaLaunchKernel");
  return 1;
}

}  // namespace cudaconv
