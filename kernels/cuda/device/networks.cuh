// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sorting networks on registers of two samples, which are compared and exchanged half by half. Example: one
// register has 3 in the upper half and 8 in the lower half, the other 5 and 2. An exchange leaves 3 and 2, then 5
// and 8.
#pragma once

#include <cstddef>
#include <utility>

#include "cuda/device/arch.cuh"
#include "cuda/device/swar.cuh"

namespace cudaconv {

// The exchanges of a network, and which of their outputs the wanted results depend on.
template <int kValues, int kMostExchanges>
struct Network {
  struct Exchange {
    int low = 0, high = 0;
    bool gives_low = false, gives_high = false;
  };
  Exchange exchange[kMostExchanges];
  int count = 0;
  int order[kValues] = {};  // where the sorted values are, smallest first

  __host__ __device__ constexpr void add(int low, int high) {
    exchange[count].low = low;
    exchange[count++].high = high;
  }
  // Only the values at positions `first` to `last` of the order are wanted.
  __host__ __device__ constexpr void keep(int first, int last) {
    bool needed[kValues] = {};
    for (int i = first; i <= last; i++) needed[order[i]] = true;
    for (int n = count - 1; n >= 0; n--) {
      Exchange &e = exchange[n];
      e.gives_low = needed[e.low];
      e.gives_high = needed[e.high];
      needed[e.low] = needed[e.high] = e.gives_low || e.gives_high;
    }
  }
};

// Batcher's sort.
template <int kValues>
struct SortNetwork : Network<kValues, kValues * kValues> {
  __host__ __device__ constexpr SortNetwork() {
    for (int p = 1; p < kValues; p *= 2)
      for (int k = p; k >= 1; k /= 2)
        for (int j = k % p; j + k < kValues; j += 2 * k)
          for (int i = j; i < j + k && i + k < kValues; i++)
            if (i / (2 * p) == (i + k) / (2 * p)) this->add(i, i + k);
    for (int i = 0; i < kValues; i++) this->order[i] = i;
    this->keep(0, kValues - 1);
  }
};

// Batcher's merge of two sorted lists of any lengths; the values kFirst to kLast of the result are wanted.
template <int kA, int kB, int kFirst, int kLast>
struct MergeLists : Network<kA + kB, 6 * (kA + kB)> {
  static constexpr int kValues = kA + kB;
  __host__ __device__ constexpr MergeLists() {
    int a[kValues] = {}, b[kValues] = {};
    for (int i = 0; i < kA; i++) a[i] = i;
    for (int i = 0; i < kB; i++) b[i] = kA + i;
    merge(a, kA, b, kB, this->order);
    this->keep(kFirst, kLast);
  }

 private:
  // Merges the values at even positions and those at odd positions, and then exchanges each of the latter with the next
  // one of the former.
  __host__ __device__ constexpr void merge(const int *a, int na, const int *b, int nb, int *out) {
    if (na == 0 || nb == 0) {
      for (int i = 0; i < na; i++) out[i] = a[i];
      for (int i = 0; i < nb; i++) out[i] = b[i];
      return;
    }
    if (na == 1 && nb == 1) {
      this->add(a[0], b[0]);
      out[0] = a[0];
      out[1] = b[0];
      return;
    }
    int half_a[2][kValues] = {}, half_b[2][kValues] = {}, half[2][kValues] = {};
    for (int i = 0; i < na; i++) half_a[i % 2][i / 2] = a[i];
    for (int i = 0; i < nb; i++) half_b[i % 2][i / 2] = b[i];
    merge(half_a[0], (na + 1) / 2, half_b[0], (nb + 1) / 2, half[0]);
    merge(half_a[1], na / 2, half_b[1], nb / 2, half[1]);
    const int evens = (na + 1) / 2 + (nb + 1) / 2, odds = na / 2 + nb / 2;
    int n = 0;
    out[n++] = half[0][0];
    for (int i = 0; i < odds || i + 1 < evens; i++) {
      if (i < odds && i + 1 < evens) this->add(half[1][i], half[0][i + 1]);
      if (i < odds) out[n++] = half[1][i];
      if (i + 1 < evens) out[n++] = half[0][i + 1];
    }
  }
};

template <typename Steps>
constexpr Steps kStepsOf{};

// Applies networks to registers. kHalf: samples are below 1024, so their differences are exact as 16-bit floats.
template <bool kHalf>
struct PairNetworks : PairOrder {
  // Sorts each half: the minimum to a, the maximum to b. To keep both units busy the float unit does every other
  // exchange: it moves max(a - b, 0) from a to b.
  __device__ static void exchange(int turn, uint32_t &a, uint32_t &b) {
    if (kHalf && kHas<Feature::HalfExcess> && turn % 2) {
      const HalfPair over = excess(HalfPair{a}, HalfPair{b});
      a = (HalfPair{a} - over).bits;
      b = (HalfPair{b} + over).bits;
    } else {
      const uint32_t low = vmin(a, b);
      b = vmax(a, b);
      a = low;
    }
  }

  template <int kCount>
  __device__ static void sort(uint32_t (&v)[kCount]) {
    apply<SortNetwork<kCount>>(v);
  }

  // Merges two sorted lists and returns kOut values in order, from number kFirst on.
  template <int kFirst, int kA, int kB, int kOut>
  __device__ static void merge(const uint32_t (&a)[kA], const uint32_t (&b)[kB], uint32_t (&out)[kOut]) {
    using Steps = MergeLists<kA, kB, kFirst, kFirst + kOut - 1>;
    uint32_t v[kA + kB];
#pragma unroll
    for (int i = 0; i < kA; i++) v[i] = a[i];
#pragma unroll
    for (int i = 0; i < kB; i++) v[kA + i] = b[i];
    apply<Steps>(v);
    take<Steps, kFirst>(v, out, std::make_index_sequence<kOut>());
  }

  // Value kRank of two sorted lists: the minimum, over all ways to take kRank + 1 values from the fronts of both, of
  // the last value taken.
  template <int kRank, int kA, int kB>
  __device__ static uint32_t pick(const uint32_t (&a)[kA], const uint32_t (&b)[kB]) {
    constexpr int kTaken = kRank + 1;
    constexpr int kLeast = kTaken > kB ? kTaken - kB : 0, kMost = kTaken < kA ? kTaken : kA;
    uint32_t least = 0xffffffffu;
#pragma unroll
    for (int n = kLeast; n <= kMost; n++) {
      const int m = kTaken - n;
      least = vmin(least, n == 0 ? b[m - 1] : m == 0 ? a[n - 1] : vmax(a[n - 1], b[m - 1]));
    }
    return least;
  }

 private:
  template <typename Steps, int kCount>
  __device__ static void apply(uint32_t (&v)[kCount]) {
    apply<Steps>(v, std::make_index_sequence<kStepsOf<Steps>.count>());
  }
  template <typename Steps, int kCount, std::size_t... kStep>
  __device__ static void apply(uint32_t (&v)[kCount], std::index_sequence<kStep...>) {
    (step<Steps, kStep>(v), ...);
  }
  template <typename Steps, std::size_t kStep, int kCount>
  __device__ static void step(uint32_t (&v)[kCount]) {
    constexpr typename Steps::Exchange kExchange = kStepsOf<Steps>.exchange[kStep];
    constexpr int kLow = kExchange.low, kHigh = kExchange.high;
    if constexpr (kExchange.gives_low && kExchange.gives_high)
      exchange(kStep, v[kLow], v[kHigh]);
    else if constexpr (kExchange.gives_low)
      v[kLow] = vmin(v[kLow], v[kHigh]);
    else if constexpr (kExchange.gives_high)
      v[kHigh] = vmax(v[kLow], v[kHigh]);
  }
  template <typename Steps, int kFirst, int kCount, int kOut, std::size_t... kIndex>
  __device__ static void take(const uint32_t (&v)[kCount], uint32_t (&out)[kOut], std::index_sequence<kIndex...>) {
    ((out[kIndex] = v[std::integral_constant<int, kStepsOf<Steps>.order[kFirst + kIndex]>::value]), ...);
  }
};

}  // namespace cudaconv
