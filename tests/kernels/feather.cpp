// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests plan/feather.*: how much of the original is left in the pixels around regions, and how samples are blended.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "checks.h"
#include "guarded_frame.h"
#include "plan/feather.h"
#include "plan/run_union.h"
#include "shares.h"

namespace cudaconv::test {

namespace {

// The shares of pixels, compared with the distances to all pixels of regions. Frames are large enough for regions that
// are out of reach of each other, and for rows that are alike.
void test_shares() {
  Random random(17);
  for (int turn = 0; turn < 300; turn++) {
    const int width = within(random, 1, 90), height = within(random, 1, 60);
    std::vector<bool> inside(static_cast<size_t>(width) * height);
    for (int i = within(random, 0, 4); i > 0; i--) {
      const int x0 = within(random, 0, width - 1), y0 = within(random, 0, height - 1);
      const int x1 = std::min(width, x0 + within(random, 1, 20)), y1 = std::min(height, y0 + within(random, 1, 20));
      for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) inside[y * width + x] = true;
    }
    for (int i = turn % 4 ? 0 : 12; i > 0; i--) inside[random() % inside.size()] = true;
    RegionRows rows;
    RunUnion row(width);
    for (int y = 0; y < height; y++) {
      for (int x = 0; x < width; x++)
        if (inside[y * width + x]) row.add({x, x + 1});
      rows.append(row, false, width);
      row.clear();
    }
    const int feather = within(random, 1, 256 * (turn % 3 ? 6 : 256)), step_x = within(random, 1, 2),
              step_y = within(random, 1, 2);
    const std::vector<int> want = reference::original_shares({width, height, step_x, step_y, feather / 256.0},
                                                             [&](int x, int y) { return inside[y * width + x]; });
    const RegionRows got = feathered(rows, width, {feather, step_x, step_y}, Cancellation(nullptr));
    std::vector<int> shares(want.size(), 256);
    bool ordered = true;
    for (int y = 0; y < height; y++) {
      int end = 0;
      for (size_t r = got.row(y).begin; r < got.row(y).end; r++) {
        const PixelRun &run = got.runs()[r];
        ordered = ordered && run.begin >= end && run.begin < run.end && run.end <= width;
        end = run.end;
        for (int x = run.begin; ordered && x < end; x++)
          shares[y * width + x] = got.shares(r) ? got.shares(r)[x - run.begin] : 0;
      }
    }
    expect(ordered && shares == want, "shares of the original, turn " + std::to_string(turn));
  }
}

// The table against its definition, without squares: a share is the largest s with s / 256 * r <= distance.
void test_table() {
  for (const int feather : {1, 64, 255, 256, 257, 1000, 4096, 65535, 65536}) {
    const std::vector<uint8_t> table = shares_by_square(feather);
    const auto most = static_cast<long double>(feather + 256) / 256;
    bool right = true;
    for (size_t square = 0; square < table.size() + 3; square++) {
      const long double share = 256 * std::sqrt(static_cast<long double>(square)) / most;
      right = right && (square < table.size() ? table[square] == std::floor(share) : share >= 256);
    }
    expect(right, "shares by distance for a feather of " + std::to_string(feather) + "/256 pixels");
  }
}

// Every share of the largest and the smallest samples. None is all of the original.
void test_samples() {
  bool right = true;
  for (uint32_t share = 0; share < 256; share++)
    for (const uint32_t max : {255u, 1023u, 65535u})
      for (const uint32_t filtered : {0u, 1u, max / 2, max - 1, max})
        for (const uint32_t original : {0u, max / 3, max}) {
          const auto want = static_cast<uint32_t>(
              reference::mixed(static_cast<int>(filtered), static_cast<int>(original), static_cast<int>(share)));
          right = right && faded<uint32_t>(filtered, original, share) == want;
          if (max == 255)
            right = right && faded<uint16_t>(static_cast<uint16_t>(filtered), static_cast<uint16_t>(original),
                                             static_cast<uint16_t>(share)) == want;
          if (filtered == original || share == 0) right = right && want == filtered;
        }
  expect(right, "samples that fade");
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  using namespace cudaconv::test;
  test_shares();
  test_table();
  test_samples();
  return report();
}
