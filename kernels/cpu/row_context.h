// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The pass, tile and rows of an operation of the CPU backend.
#pragma once

#include <algorithm>

#include "cpu/round_samples.h"

namespace cudaconv {

// From this side on, windows use sums and extrema whose time does not depend on the size.
constexpr int kLargeSide = 10;

template <typename T>
struct RowContext {
  const Job &job;
  const RowWindow<T> &window;
  Scratch &scratch;
  int channels, samples;
  int first_y;  // first row of the tile

  const VectorLoops &loops() const { return *job.loops; }
  const Pass &pass() const { return *job.pass; }
  const Rounding *rounding() const { return job.pass->rounding[job.part.plane]; }
  int blocks() const { return whole_blocks(samples); }
  // The number of samples for loops that take any number from one block on.
  int padded() const { return std::max(samples, kVectorBlock); }
  // The samples `dx` pixels to the right of and `dy` rows below the results of row y.
  const T *at(int y, int dx, int dy) const { return window[y + dy] + (dx + pass().radius_x) * channels; }
  int largest_sample() const { return largest_sample_of(*job.layout); }
};

}  // namespace cudaconv
