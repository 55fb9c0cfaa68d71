// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the sorting networks of medians: the network of 5x5, and the networks in larger medians. Networks only compare
// and exchange. If they are right for all combinations of zeros and ones, they are right for all samples.
#include <cstdio>
#include <vector>

#include "cuda/median/median_network.cuh"
#include "cuda/sliding/median5.cuh"

namespace cudaconv::test {

using namespace median;
using sliding::Median5;

namespace {

template <bool kHalf>
int failures() {
  using Network = Median5<kHalf>;
  constexpr uint32_t kOnes = 0x00010001u;
  int failed = 0;
  // Every count of ones in the four columns of the square and in the column beside it.
  for (int columns = 0; columns < 5 * 5 * 5 * 5 * 5; columns++) {
    uint32_t column[5][4], pair[2][8], ten[10], six[6];
    int square_ones = 0;
    for (int i = 0, rest = columns; i < 5; i++, rest /= 5) {
      for (int t = 0; t < 4; t++) column[i][t] = t >= 4 - rest % 5 ? kOnes : 0;
      square_ones += rest % 5;
    }
    Network::template merge<0>(column[0], column[1], pair[0]);
    Network::template merge<0>(column[2], column[3], pair[1]);
    Network::template merge<3>(pair[0], pair[1], ten);
    Network::narrow(ten, column[4], six);
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

constexpr uint32_t kOne = 0x00010001u;

// Sets the last `ones` of the values, and clears the others.
template <int kCount>
void fill(uint32_t (&v)[kCount], int ones) {
  for (int i = 0; i < kCount; i++) v[i] = i >= kCount - ones ? kOne : 0;
}
template <int kCount>
bool is_filled(const uint32_t (&v)[kCount], int ones) {
  for (int i = 0; i < kCount; i++)
    if (v[i] != (i >= kCount - ones ? kOne : 0)) return false;
  return true;
}

template <int kCount>
int failures_of_sort() {
  int failed = 0;
  for (uint32_t bits = 0; bits < 1u << kCount; bits++) {
    uint32_t v[kCount];
    int ones = 0;
    for (int i = 0; i < kCount; i++) v[i] = (bits >> i & 1) * kOne, ones += bits >> i & 1;
    PairNetworks<true>::sort(v);
    failed += !is_filled(v, ones);
  }
  return failed;
}

template <int kSize, bool kHalf>
using WindowsOf = FourMedians<NetworkMedianShape<kSize, !kHalf>>;

// The shared memory of a thread block. The test plays its first thread.
template <int kSize>
std::vector<uint32_t> memory_of() {
  using Windows = WindowsOf<kSize, false>;
  return std::vector<uint32_t>(Windows::kPairs * Windows::kPair * NetworkMedianShape<kSize, true>::kThreads);
}

// Word n of sorted pair i of that thread.
template <int kSize>
uint32_t &word_of(std::vector<uint32_t> &memory, int i, int n) {
  return memory[(i * WindowsOf<kSize, false>::kPair + n) * NetworkMedianShape<kSize, true>::kThreads];
}

// Tests the medians of four windows of zeros and ones. Tries every count of ones in each pair of rows, in the row
// beside them and in the column, and both corners. Returns the number of failures.
template <int kSize, bool kHalf>
int failures_of_four() {
  using Windows = WindowsOf<kSize, kHalf>;
  constexpr int kSide = kSize - 1;
  std::vector<uint32_t> memory = memory_of<kSize>();
  int failed = 0;
  for (int ones = 0; ones <= kSide * kSide; ones++)
    for (int spread = 0; spread < 8; spread++) {
      Windows windows(memory.data());
      // Spreads the ones over the pairs, fills pair after pair, or mixes both.
      int left = ones, in_pair[Windows::kPairs] = {};
      for (int i = 0; left > 0; i = (i + 1 + spread) % Windows::kPairs) {
        int more = spread ? (left + spread) / (spread + 1) : 1;
        while (in_pair[i] == Windows::kPair) i = (i + 1) % Windows::kPairs;
        if (more > Windows::kPair - in_pair[i]) more = Windows::kPair - in_pair[i];
        in_pair[i] += more;
        left -= more;
      }
      for (int i = 0; i < Windows::kPairs; i++) {
        uint32_t pair[Windows::kPair];
        fill(pair, in_pair[i]);
        for (int n = 0; n < Windows::kPair; n++) word_of<kSize>(memory, i, n) = pair[n];
      }
      uint32_t middle[Windows::kMiddle], rest[Windows::kRest], row[kSide], column[kSide];
      windows.middle(middle);
      for (int others = 0; others < kSize * kSize * 2; others++) {
        const int of_row = others % kSize, of_column = others / kSize % kSize, corner = others / kSize / kSize;
        fill(row, of_row);
        fill(column, of_column);
        Windows::narrow(middle, row, rest);
        const uint32_t want = ones + of_row + of_column + corner > kSize * kSize / 2 ? kOne : 0;
        failed += Windows::median(rest, column, corner * kOne) != want;
      }
    }
  return failed;
}

// Tests the merge of two rows into a pair, for every count of ones in each.
template <int kSize>
int failures_of_push() {
  using Windows = WindowsOf<kSize, false>;
  std::vector<uint32_t> memory = memory_of<kSize>();
  int failed = 0;
  for (int a = 0; a < kSize; a++)
    for (int b = 0; b < kSize; b++) {
      Windows windows(memory.data());
      uint32_t upper[kSize - 1], lower[kSize - 1], pair[Windows::kPair] = {};
      fill(upper, a);
      fill(lower, b);
      for (int i = 0; i < Windows::kPairs; i++) windows.push(upper, lower);
      for (int n = 0; n < Windows::kPair; n++) pair[n] = word_of<kSize>(memory, Windows::kPairs - 1, n);
      failed += !is_filled(pair, a + b);
    }
  return failed;
}

template <int kSize>
int failures_of_size() {
  return failures_of_sort<kSize - 1>() + failures_of_push<kSize>() + failures_of_four<kSize, false>() +
         failures_of_four<kSize, true>();
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  using namespace cudaconv::test;
  const int failed5 = failures<false>() + failures<true>();
  std::printf("%d of 200,000 windows of 5x5 failed\n", failed5);
  const int failed = failed5 + failures_of_size<7>() + failures_of_size<9>() + failures_of_size<11>() +
                     failures_of_size<13>() + failures_of_size<15>();
  std::printf("%d failed\n", failed);
  return failed ? 1 : 0;
}
