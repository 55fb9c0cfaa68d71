// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The network of the 5x5 median. It does nothing but exchange samples, so that it is right for all samples if it is for
// all zeros and ones.
#include <cstdio>

#include "cuda/sliding/median5.cuh"

namespace cudaconv::test {

namespace {

template <bool kHalf>
int failures() {
  using Network = Median5<kHalf>;
  constexpr uint32_t kOnes = 0x00010001u;
  int failed = 0;
  // How many ones there are in each of the four columns of the square and in the one beside it.
  for (int columns = 0; columns < 5 * 5 * 5 * 5 * 5; columns++) {
    uint32_t column[5][4], pair[2][8], square[16], six[6];
    int square_ones = 0;
    for (int i = 0, rest = columns; i < 5; i++, rest /= 5) {
      for (int t = 0; t < 4; t++) column[i][t] = t >= 4 - rest % 5 ? kOnes : 0;
      square_ones += rest % 5;
    }
    Network::merge(column[0], column[1], pair[0]);
    Network::merge(column[2], column[3], pair[1]);
    Network::merge(pair[0], pair[1], square);
    Network::narrow(square, column[4], six);
    for (int others = 0; others < 32; others++) {
      uint32_t four[4];
      int ones = square_ones;
      for (int t = 0; t < 4; t++) four[t] = (others >> t & 1) * kOnes;
      for (int t = 0; t < 5; t++) ones += others >> t & 1;
      Network::sort(four);
      if (Network::middle(six, four, (others >> 4) * kOnes) != (ones > 12 ? kOnes : 0)) failed++;
    }
  }
  return failed;
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  const int failed = cudaconv::test::failures<false>() + cudaconv::test::failures<true>();
  std::printf("%d of 200,000 windows failed\n", failed);
  return failed ? 1 : 0;
}
