// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Rounds a row of sums to a row of samples.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/cpu_rows.h"

namespace cudaconv {

inline int largest_sample_of(const PlaneLayout &layout) {
  return (1 << layout.depth()) - 1;
}

// Divides gains and rounding by their largest common power of two. Returns whether 32 bits then hold everything
// computed from 32-bit sums. If not, changes nothing.
inline bool make_narrow(Gain *gain, Rounding *rounding, int largest_sample) {
  const int64_t half = rounding->half;
  if (half & (half - 1)) return false;
  const int shared = __builtin_ctzll(static_cast<uint64_t>(gain->sum | gain->centre | rounding->offset | half));
  const Gain g = {gain->sum >> shared, gain->centre >> shared, gain->shift, true};
  Rounding r = *rounding;
  r.offset >>= shared;
  r.half >>= shared;
  r.limit = (int64_t{r.max} + 1) * 2 * r.half - 1;
  const double reach = std::fabs(static_cast<double>(g.sum)) * ((INT32_MAX >> g.shift) + 1.0) +
                       std::fabs(static_cast<double>(g.centre)) * largest_sample +
                       std::fabs(static_cast<double>(r.offset)) + static_cast<double>(r.half);
  if (reach > INT32_MAX || r.limit > INT32_MAX) return false;
  *gain = g;
  *rounding = r;
  return true;
}

// Rounds sums of 32 or 64 bits to samples. Channels of a plane have the same rounding unless their depths differ.
// `centre`: the source's samples at the same positions, used if the pass has gains.
template <typename T, typename Acc>
void round_samples(const Job &job, int samples, const Acc *sum, const T *centre, T *out) {
  const Pass &pass = *job.pass;
  const Rounding *rounding = pass.rounding[job.part.plane];
  const ChannelLayout *channel = job.layout->channel;
  const int channels = job.layout->channels, padded = std::max(samples, kVectorBlock);
  const bool uniform =
      std::all_of(channel, channel + channels, [&](const ChannelLayout &c) { return c.depth == channel->depth; });
  Gain gain = {pass.sum_gain, pass.center_gain, pass.sum_shift, false};
  if (!uniform) {
    for (int s = 0; s < samples; s++) {
      const Rounding &r = rounding[s % channels];
      out[s] = static_cast<T>(pass.has_gain()
                                  ? round_to_sample(apply_gain(sum[s], gain.shift, gain.sum, gain.centre, centre[s]), r)
                                  : round_to_sample(sum[s], r));
    }
  } else if (pass.has_gain()) {
    Rounding reduced = *rounding;
    if (sizeof(Acc) == 4) make_narrow(&gain, &reduced, largest_sample_of(*job.layout));
    job.loops->round(sum, gain, centre, reduced, out, padded);
  } else {
    job.loops->round(sum, *rounding, out, padded);
  }
}

}  // namespace cudaconv
