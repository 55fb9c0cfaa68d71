// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Counts the rows that the CPU backend sums: each row of the frame once, even if the mask reaches far beyond the frame.
// Tests magnitudes whose squares need more than 52 bits, which only frames of 16 bits with rare samples have.
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef __AARCH64EL__
#include <arm_neon.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include "cpu/cpu_operations.h"
#include "cpu/vector.h"
#include "formats.h"
#include "guarded_frame.h"

#define CUDACONV_LEVEL "counting"
#define CUDACONV_VECTOR 16
#include "cpu/vector_loops.h"

namespace cudaconv::test {

namespace {

int failures = 0;

// The size of a mask of ones.
constexpr int kColumns = 21, kRows = 61;

// The sums of rows so far. A sum has as many taps as the mask has columns, and the mask has another number of rows.
int summed_rows = 0;

VectorLoops counting_loops() {
  VectorLoops loops = kLoops;
  loops.sum = [](auto *taps, int count, auto... rest) {
    summed_rows += count == kColumns;
    kLoops.sum(taps, count, rest...);
  };
  return loops;
}

Pass mask_pass() {
  Pass pass;
  pass.radius_x = kColumns / 2;
  pass.radius_y = kRows / 2;
  pass.mask[0].row.assign(kColumns, 1);
  pass.mask[0].column.assign(kRows, 1);
  return pass;
}

template <typename Sum>
void check(const char *name, Border border, int height) {
  FilterSettings settings;
  settings.border = border;
  const FrameLayout layout = format_named("GRAY8").layout(50, height);
  const auto plan = make_plan(settings, layout);
  GuardedFrame frame(layout, {0, 0, 1, 0});
  Random random(1);
  frame.fill(random);
  const Pass pass = mask_pass();
  const VectorLoops loops = counting_loops();
  summed_rows = 0;
  const Cancellation cancellation(nullptr);
  const PlaneView view = frame.view().plane[0];
  const Job job = {&loops, &cancellation, plan.get(), &pass,   plan->parts[0], &plan->layout.plane[0], view, view,
                   view,   view,          view,       nullptr, nullptr};
  const JobTile tile = {0, 50, 0, height};
  Scratch scratch;
  RowWindow<uint8_t> window(job, tile, scratch, kRows + 1);
  const std::deque<OtherPlane<uint8_t>> others;
  const RowContext<uint8_t> context = {job, tile, window, others, scratch};
  Sum sum(context, pass.mask[0], 0);
  std::vector<typename Sum::Total> total(static_cast<size_t>(context.blocks()));
  bool right = true;
  for (int y = -pass.radius_y; y < height + pass.radius_y; y++) {
    window.enter(y);
    sum.enter(y);
    const int result = y - pass.radius_y;
    if (result < 0) continue;
    sum.filter(result, total.data());
    // Adds the samples of a window one by one.
    int64_t want = 0;
    for (int j = -pass.radius_y; j <= pass.radius_y; j++)
      for (int i = -pass.radius_x; i <= pass.radius_x; i++) {
        const int row = border_index(border, result + j, height), column = border_index(border, 25 + i, 50);
        if (row >= 0 && column >= 0) want += view.data[row * view.pitch + column];
      }
    right &= static_cast<int64_t>(total[25]) == want;
  }
  // Each row of the frame once, and the row of border values. Rows of taller frames may have left the ring.
  const int least = height + (border == Border::Constant), most = least + (height > kRows ? kRows : 0);
  if (right && summed_rows >= least && summed_rows <= most) return;
  failures++;
  std::printf("FAILED %s, border=%s, %d rows: %d were summed, at most %d should be; sums are %s\n", name,
              border_nick(border), height, summed_rows, most, right ? "right" : "wrong");
}

void test_rows_that_repeat() {
  for (const Border border : {Border::Replicate, Border::Reflect, Border::Reflect101, Border::Wrap, Border::Constant})
    for (const int height : {1, 2, 5, 30, 31, 60, 62, 100}) {
      check<MaskSum<uint8_t, Lanes<int64_t, int64_t>>>("MaskSum in 64 bits", border, height);
      check<MaskSum<uint8_t, Lanes<double, int64_t>>>("MaskSum in doubles", border, height);
      check<PairSum<uint8_t>>("PairSum", border, height);
    }
}

// With x = 2k^2 and y = 2k the sum of squares is (2k^2 + 1)^2 - 1, just below a square.
void test_large_magnitudes() {
  constexpr int32_t kCount = kVectorBlock;
  int32_t x[kCount], y[kCount], magnitude[kCount];
  for (int i = 0; i < kCount; i++) {
    const int k = 10000 + i;
    x[i] = 2 * k * k;
    y[i] = (i % 2 ? -2 : 2) * k;
  }
  for (const Norm norm : {Norm::L2, Norm::L2Fraction}) {
    kLoops.magnitudes(norm, true, x, y, magnitude, kCount);
    for (int i = 0; i < kCount; i++)
      if (magnitude[i] != (norm == Norm::L2 ? x[i] : 2 * x[i] + 1)) {
        failures++;
        std::printf("FAILED the magnitude of %d and %d is %d\n", x[i], y[i], magnitude[i]);
      }
  }
}

}  // namespace

int row_sums() {
  test_rows_that_repeat();
  test_large_magnitudes();
  std::printf("%d failed\n", failures);
  return failures ? 1 : 0;
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::row_sums();
}
