// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operations of the CPU backend. An operation turns the window of rows around a row into a row of results.
#pragma once

#include <algorithm>
#include <deque>

#include "cpu/round_samples.h"

namespace cudaconv {

// From this side on, windows use sums and extrema whose time does not depend on the size.
constexpr int kLargeSide = 10;

// A plane that is filtered together with another one, see Job::others: its window, and where its row of results goes.
template <typename T>
struct OtherPlane {
  RowWindow<T> window;
  T *out = nullptr;
};

// The pass, tile and rows of an operation.
template <typename T>
struct RowContext {
  const Job &job;
  const JobTile &tile;
  const RowWindow<T> &window;
  const std::deque<OtherPlane<T>> &others;
  Scratch &scratch;
  const int channels = job.layout->channels, samples = tile.width() * channels;

  const VectorLoops &loops() const { return *job.loops; }
  const Pass &pass() const { return *job.pass; }
  const Rounding *rounding() const { return job.pass->rounding[job.part.plane]; }
  int blocks() const { return whole_blocks(samples); }
  // The number of samples for loops that take any number from one block on.
  int padded() const { return std::max(samples, kVectorBlock); }
  // The samples `dx` pixels to the right of and `dy` rows below the results of row y.
  const T *at(int y, int dx, int dy) const { return window[y + dy] + (dx + pass().radius_x) * channels; }
  // The row that leaves the windows as row y enters; `none` while the first window is filled.
  const T *leaving(int y, const T *none) const {
    y -= pass().height();
    return y < tile.y0 - pass().radius_y ? none : window[y];
  }
  int largest_sample() const { return largest_sample_of(*job.layout); }
};

template <typename T>
class Operation {
 public:
  virtual ~Operation() = default;

  // Called for each row, in rising order. Mosaics and wide Gaussians have no window: they read the frame themselves.
  virtual void enter(int) {}
  // Computes row y, whose window's last row, y + radius_y, has entered.
  virtual void filter(int y, T *out) = 0;
  // Rows of results that are computed at a time. All rows of their windows enter before the first filter().
  virtual int rows_together() const { return 1; }
};

}  // namespace cudaconv
