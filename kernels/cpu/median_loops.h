// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The loops of medians, a part of vector_loops.h, which compiles them for each target.

namespace cudaconv {

namespace {

// The comparisons that find the median of kCount values by forgetful selection. Among kCount / 2 + 2 values, neither
// the smallest nor the largest can be the median. Both are dropped, and a value that has not been compared joins the
// others.
template <int kCount>
struct MedianNetwork {
  uint8_t low[kCount * kCount] = {}, high[kCount * kCount] = {};  // pairs of values to sort
  int length = 0, median = 0;

  constexpr MedianNetwork() {
    int list[kCount] = {}, count = kCount / 2 + 2, next = count;
    for (int i = 0; i < count; i++) list[i] = i;
    while (count > 1) {
      for (int i = 0; i < count / 2; i++) compare(list[i], list[count - 1 - i]);
      for (int i = 1; i < (count + 1) / 2; i++) compare(list[0], list[i]);
      for (int i = count / 2; i < count - 1; i++) compare(list[i], list[count - 1]);
      for (int i = 0; i < count - 2; i++) list[i] = list[i + 1];
      count -= 2;
      if (next < kCount) list[count++] = next++;
    }
    median = list[0];
  }

 private:
  constexpr void compare(int a, int b) {
    low[length] = static_cast<uint8_t>(a);
    high[length++] = static_cast<uint8_t>(b);
  }
};

template <typename T, std::size_t... kValue, std::size_t... kStep>
void median_network(const T *const *rows, T *out, int n, std::index_sequence<kValue...>,
                    std::index_sequence<kStep...>) {
  static constexpr MedianNetwork<sizeof...(kValue)> kNetwork;
  struct {
    const T *row[sizeof...(kValue)];
  } in = {{rows[kValue]...}};
  for_samples(n, [=](int s) CUDACONV_INLINE {
    T v[sizeof...(kValue)] = {in.row[kValue][s]...};
    const auto order = [&](T &low, T &high) CUDACONV_INLINE {
      const T least = smaller(low, high);
      high = larger(low, high);
      low = least;
    };
    (order(v[kNetwork.low[kStep]], v[kNetwork.high[kStep]]), ...);
    out[s] = v[kNetwork.median];
  });
}

template <int kCount, typename T>
void count_below(const T *const *rows, int begin, const T *candidate, T *below) {
  const T *in[kCount];
  for (int k = 0; k < kCount; k++) in[k] = rows[k] + begin;
  for_blocks(kVectorBlock, [=](int s) CUDACONV_INLINE {
    T v = below[s];
    for (int k = 0; k < kCount; k++) v = static_cast<T>(v + (in[k][s] < candidate[s]));
    below[s] = v;
  });
}

// Finds the median of any number of values bit by bit. It is the largest v for which at most half of the values are
// below v.
template <typename T>
void median_bits(const T *const *in, int count, int depth, T *out, int n) {
  T candidate[kVectorBlock], found[kVectorBlock], below[kVectorBlock];
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    for (int s = 0; s < kVectorBlock; s++) found[s] = 0;
    for (int bit = depth - 1; bit >= 0; bit--) {
      for (int s = 0; s < kVectorBlock; s++) {
        candidate[s] = static_cast<T>(found[s] | 1 << bit);
        below[s] = 0;
      }
      for (int k = 0; k < count; k += kGroup)
        with_number(smaller(kGroup, count - k),
                    [&](auto number) { count_below<decltype(number)::value>(in + k, begin, candidate, below); });
      for (int s = 0; s < kVectorBlock; s++) found[s] = below[s] <= count / 2 ? candidate[s] : found[s];
    }
    for (int s = 0; s < kVectorBlock; s++) out[begin + s] = found[s];
  }
}

template <int kCount, typename T>
void median_network(const T *const *rows, T *out, int n) {
  median_network(rows, out, n, std::make_index_sequence<kCount>(),
                 std::make_index_sequence<MedianNetwork<kCount>().length>());
}

template <typename T>
void median_of(const T *const *in, int count, int depth, T *out, int n) {
  if (count == 9) return median_network<9>(in, out, n);
  if (count == 25) return median_network<25>(in, out, n);
  median_bits(in, count, depth, out, n);
}

// Cumulative histograms of 16 bins: each bin includes the counts of the bins before it.
using ColumnBins = uint8_t __attribute__((vector_size(kMedianBins)));
using WindowBins = uint16_t __attribute__((vector_size(2 * kMedianBins)));

// kBy = 1 adds a column's bins to those of the window, kBy = -1 removes them. The vector is passed by reference because
// returning one follows different conventions on different targets.
template <int kBy>
CUDACONV_INLINE inline void change_bins(const uint8_t *column, WindowBins &window) {
  ColumnBins bins;
  __builtin_memcpy(&bins, column, sizeof bins);
  const WindowBins column_bins = __builtin_convertvector(bins, WindowBins);
  window = kBy > 0 ? window + column_bins : window - column_bins;
}

// row[bin]: 1 for each cumulative bin that counts a sample of `bin`.
struct BinsFrom {
  uint8_t row[kMedianBins][kMedianBins] = {};
  constexpr BinsFrom() {
    for (int bin = 0; bin < kMedianBins; bin++)
      for (int i = bin; i < kMedianBins; i++) row[bin][i] = 1;
  }
};

template <bool kLeave>
CUDACONV_INLINE inline void count_sample(const BinsFrom &from, int bin, uint8_t *column) {
  ColumnBins bins, more;
  __builtin_memcpy(&bins, column, sizeof bins);
  __builtin_memcpy(&more, from.row[bin], sizeof more);
  bins = kLeave ? bins - more : bins + more;
  __builtin_memcpy(column, &bins, sizeof bins);
}

// See VectorLoops::count_columns().
void count_column_samples(const uint8_t *enters, const uint8_t *leaves, uint8_t *coarse, uint8_t *fine, int n) {
  static constexpr BinsFrom kFrom;
  for (int s = 0; s < n; s++, coarse += kMedianBins, fine += kMedianBins * kMedianBins) {
    const int in = enters[s], high = in / kMedianBins;
    count_sample<false>(kFrom, high, coarse);
    count_sample<false>(kFrom, in % kMedianBins, fine + high * kMedianBins);
    if (!leaves) continue;
    const int out = leaves[s], gone = out / kMedianBins;
    count_sample<true>(kFrom, gone, coarse);
    count_sample<true>(kFrom, out % kMedianBins, fine + gone * kMedianBins);
  }
}

// The first bin that counts more than `rank` samples. Counts are cumulative, so they never decrease, and are below
// 2^15.
CUDACONV_INLINE inline int find_bin(const WindowBins &bins, int rank) {
#if CUDACONV_VECTOR >= 32
  const __m256i more = _mm256_cmpgt_epi16((__m256i)bins, _mm256_set1_epi16(static_cast<int16_t>(rank)));
  return __builtin_ctz(static_cast<unsigned>(_mm256_movemask_epi8(more))) / 2;
#else
  // Half a window at a time, since GCC compares wider vectors lane by lane.
  using Half = int16_t __attribute__((vector_size(kMedianBins)));
  Half half[2];
  __builtin_memcpy(half, &bins, sizeof half);
  const Half limit = Half{} + static_cast<int16_t>(rank);
#ifdef __SSE2__
  const __m128i more = _mm_packs_epi16((__m128i)(half[0] > limit), (__m128i)(half[1] > limit));
  return __builtin_ctz(static_cast<unsigned>(_mm_movemask_epi8(more)));
#elif defined(__AARCH64EL__)
  return -vaddvq_s16((int16x8_t)((half[0] <= limit) + (half[1] <= limit)));  // all ones are -1
#else
  const Half below = (half[0] <= limit) + (half[1] <= limit);
  int bin = 0;
  for (int i = 0; i < kMedianBins / 2; i++) bin -= below[i];
  return bin;
#endif
#endif
}

// The medians of neighbouring windows, for one of `channels` channels. The window's coarse histogram gains one column
// and loses one. Only the fine histogram that contains the median is updated.
void median_of_channel(const uint8_t *coarse, const uint8_t *fine, int channels, int width, int rank, uint8_t *out,
                       int pixels) {
  const ptrdiff_t coarse_step = ptrdiff_t{channels} * kMedianBins, fine_step = coarse_step * kMedianBins;
  WindowBins window = {}, segment[kMedianBins] = {};
  int at[kMedianBins];  // the pixel for which each segment is up to date
  for (int &x : at) x = -2 * width;
  for (int i = 0; i < width; i++) change_bins<1>(coarse + i * coarse_step, window);
  for (int x = 0; x < pixels; x++) {
    if (x) {
      change_bins<1>(coarse + (x + width - 1) * coarse_step, window);
      change_bins<-1>(coarse + (x - 1) * coarse_step, window);
    }
    const int high = find_bin(window, rank);
    uint16_t counts[kMedianBins];
    __builtin_memcpy(counts, &window, sizeof counts);
    const uint8_t *bins = fine + high * kMedianBins;
    WindowBins sum = segment[high];
    if (2 * (x - at[high]) >= width) {
      sum = WindowBins{};
      for (int i = x; i < x + width; i++) change_bins<1>(bins + i * fine_step, sum);
    } else {
      for (int i = at[high]; i < x; i++) {
        change_bins<1>(bins + (i + width) * fine_step, sum);
        change_bins<-1>(bins + i * fine_step, sum);
      }
    }
    segment[high] = sum;
    at[high] = x;
    const int low = find_bin(sum, high ? rank - counts[high - 1] : rank);
    out[x * channels] = static_cast<uint8_t>(high * kMedianBins + low);
  }
}

// See VectorLoops::median_of_columns().
void median_of_columns(const uint8_t *coarse, const uint8_t *fine, int channels, int width, int rank, uint8_t *out,
                       int n) {
  for (int c = 0; c < channels; c++)
    median_of_channel(coarse + c * kMedianBins, fine + c * kMedianBins * kMedianBins, channels, width, rank, out + c,
                      n / channels);
}

}  // namespace

}  // namespace cudaconv
