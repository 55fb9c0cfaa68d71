// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by squares of any size, in one launch: along the rows of a tile in shared memory, in place,
// then down its columns. Both by van Herk's and Gil's and Werman's method, in registers:
//
//       first pair             last pair
//   x0  x1   x2  x3  ...  xK-3  xK-2 | xK-1  xK ... x2K-2      2K-1 samples, K results, K odd
//   |---------- a window ------------------|                   each window crosses the bar
//
// A window's maximum is that of its samples left of the bar, a suffix, and of those right of it, a prefix. Suffixes and
// prefixes grow by two samples at once, with maxima of three; a pair of results shares both, so that a result costs two
// maxima whatever the size.
//
// Bytes are worked on two by two in 16-bit lanes, as the upper bytes, which decide alone, whatever the lower ones are:
// the odd ones of the quad as it is, the even ones of its product with 256, for which there is a unit that has nothing
// else to do. Samples of 16 bits are two of a quad as they are; where a pixel has four of them, it is two quads, and
// rows are filtered in steps of two.
#pragma once

#include "lanes.cuh"
#include "quads.cuh"

namespace cudaconv {

struct ExtremumParams : FrameParams {
  QuadTile tile;
  int32_t size;
  uint32_t flip;         // see ExtremumShape
  uint32_t sample_bits;  // of a quad of words
};

// The upper half of a and the lower one of b.
__device__ inline uint32_t halves(uint32_t a, uint32_t b) {
  return permute_bytes(a, b, 0x5432);
}

// Samples of quads: split() takes a quad apart for extreme(), the greatest or the least of three, and join() makes one.
struct ByteQuads {
  static constexpr bool kWords = false;
  struct Split {
    uint32_t even, odd;
  };
  __device__ static Split split(uint32_t quad) { return {quad << 8, quad}; }
  __device__ static uint32_t join(Split s) { return permute_bytes(s.even, s.odd, 0x7351); }
  template <bool kLeast>
  __device__ static Split extreme(Split a, Split b, Split c) {
    return {of_words<kLeast>(a.even, b.even, c.even), of_words<kLeast>(a.odd, b.odd, c.odd)};
  }
  __device__ static Split swap_halves(Split s) { return {halves(s.even, s.even), halves(s.odd, s.odd)}; }
  template <bool kLeast>
  __device__ static uint32_t of_words(uint32_t a, uint32_t b, uint32_t c) {
    return kLeast ? ByteLanes<4>::least(a, b, c) : ByteLanes<4>::largest(a, b, c);
  }
};

struct WordQuads {
  static constexpr bool kWords = true;
  using Split = uint32_t;
  __device__ static Split split(uint32_t quad) { return quad; }
  __device__ static uint32_t join(Split s) { return s; }
  __device__ static Split swap_halves(Split s) { return halves(s, s); }
  template <bool kLeast>
  __device__ static Split extreme(Split a, Split b, Split c) {
    return ByteQuads::of_words<kLeast>(a, b, c);
  }
};

// kSize results at once. Its registers are those of the largest size that it can do; where it is to do that one only
// (kExact), nothing asks for the size. kBefore: there is one more result, number -1, of the quad before the others.
template <typename Quads, int kLargest, bool kExact, bool kLeast, bool kBefore = false>
class VanHerk {
 public:
  static constexpr bool kFours = false;  // of words are loaded and handed out
  __device__ static int words(int size) { return kExact ? kLargest : size; }

  // load(n) is quad n of 2 * size - 1.
  template <typename Load>
  __device__ void run(int size, Load load) {
    if (kExact) size = kLargest;
    Split so_far = {};
#pragma unroll
    for (int m = 0; m < kPairs; m++) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const Split next = Quads::split(load(i + 1));
      so_far = m == 0 ? next : extreme(so_far, next, Quads::split(first_[m - 1]));
      first_[m] = load(i);
      keep(m, so_far);
    }
    if constexpr (kBefore)
      before_ = Quads::join(extreme(Quads::split(load(-1)), Quads::split(first_[kPairs - 1]), so_far));
    last_ = load(size - 1);
    so_far = Quads::split(last_);
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const Split next = Quads::split(load(i + size)), after = Quads::split(load(i + size + 1)), suffix = kept(m);
      first_[m] = Quads::join(extreme(Quads::split(first_[m]), suffix, so_far));
      second_[m] = Quads::join(extreme(suffix, so_far, next));
      so_far = extreme(so_far, next, after);
    }
    last_ = Quads::join(so_far);
  }

  // Calls function(n, result n), from the first.
  template <typename Function>
  __device__ void each(int size, Function function) {
    if (kExact) size = kLargest;
    if constexpr (kBefore) function(-1, before_);
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      function(size - 3 - 2 * m, first_[m]);
      function(size - 2 - 2 * m, second_[m]);
    }
    function(size - 1, last_);
  }

  // The same; what function returns becomes the result.
  template <typename Function>
  __device__ void change(int size, Function function) {
    if (kExact) size = kLargest;
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      first_[m] = function(size - 3 - 2 * m, first_[m]);
      second_[m] = function(size - 2 - 2 * m, second_[m]);
    }
    last_ = function(size - 1, last_);
  }

 private:
  using Split = typename Quads::Split;
  static constexpr int kPairs = kLargest / 2;
  // Suffixes of large windows share a register.
  static constexpr bool kJoined = Quads::kWords || kLargest > (kBefore ? 15 : 31);

  __device__ static Split extreme(Split a, Split b, Split c) {
    return Quads::template extreme<kLeast>(a, b, c);
  }

  __device__ static bool there(int m, int size) {
    return kExact || 2 * m + 1 < size;
  }
  __device__ void keep(int m, Split suffix) {
    if constexpr (kJoined) {
      second_[m] = Quads::join(suffix);
    } else {
      second_[m] = suffix.odd;
      even_[m] = suffix.even;
    }
  }
  __device__ Split kept(int m) const {
    if constexpr (kJoined)
      return Quads::split(second_[m]);
    else
      return {even_[m], second_[m]};
  }

  uint32_t first_[kPairs], second_[kPairs], even_[kJoined ? 1 : kPairs], last_, before_;
};

// Extrema of kSize that follow each other, of values that come one after the other; kSize is a power of two less one,
// and each the extremum of three of half the size.
template <typename Quads, bool kLeast, int kSize>
struct RunningExtremum {
  using Split = typename Quads::Split;
  static constexpr int kHalf = kSize / 2, kKept = kHalf + 2;
  RunningExtremum<Quads, kLeast, kHalf> half;
  Split kept[kKept];

  // Takes value k, and returns the extremum whose last it is; not before k = kSize - 1.
  __device__ Split push(int k, Split v) {
    const Split last = half.push(k, v);
    kept[k % kKept] = last;
    if (k + 1 < kSize) return last;
    return Quads::template extreme<kLeast>(last, kept[(k + kKept - (kHalf + 1) / 2) % kKept], kept[(k + 1) % kKept]);
  }
};
template <typename Quads, bool kLeast>
struct RunningExtremum<Quads, kLeast, 1> {
  using Split = typename Quads::Split;
  __device__ Split push(int, Split v) { return v; }
};

// Rows whose pixels have one or two bytes need not become quads: they are filtered as they lie in memory, in words of
// four or two pixels. The windows of a word's pixels have whole words in common, and of the words beside those each has
// some pixels more on the right and fewer on the left than the one before:
//
//   left     whole words     right
//   a b c d | e ...... f | g h i j      windows of 15 or 31: b ... f, c ... g, d ... h, e ... i
//
// Of a word, Value is what is kept. Two pixels, the halves of a word:
template <typename Quads, bool kLeast>
struct FoldedPairs {
  using Whole = Quads;
  using Split = typename Quads::Split;
  using Value = uint32_t;
  static constexpr int kPixels = 2;
  __device__ static Value value(uint32_t word) { return word; }
  __device__ static Split whole(Value v) { return Quads::split(v); }
  __device__ static uint32_t fold(Split whole, Value left, Value right) {
    return Quads::join(
        Quads::template extreme<kLeast>(whole, Quads::swap_halves(whole), Quads::split(halves(left, right))));
  }
};
// Four, which are compared in the upper bytes of the halves.
template <bool kLeast>
struct FoldedBytes {
  using Whole = WordQuads;
  struct Value {
    uint32_t word, pairs;  // the extrema of the first two and of the last two
  };
  static constexpr int kPixels = 4;
  __device__ static uint32_t extreme(uint32_t a, uint32_t b, uint32_t c) { return WordQuads::extreme<kLeast>(a, b, c); }
  __device__ static Value value(uint32_t word) { return {word, extreme(word, word << 8, word << 8)}; }
  __device__ static uint32_t whole(Value v) {
    const uint32_t swapped = halves(v.pairs, v.pairs);
    return extreme(v.pairs, swapped, swapped);
  }
  __device__ static uint32_t fold(uint32_t whole, Value left, Value right) {
    const uint32_t beside = halves(left.pairs, right.pairs);
    return permute_bytes(extreme(whole, beside, right.word << 8), extreme(whole, left.word, beside), 0x3715);
  }
};

// kSize words of results at once, used as VanHerk is.
template <typename Fold, bool kLeast, int kSize>
class FoldedRow {
 public:
  static constexpr bool kFours = false;
  __device__ static int words(int) { return kSize; }

  static constexpr int kReach = (kSize / 2 + 1) / Fold::kPixels;  // words, to the farthest pixel of a window
  static_assert((kSize / 2 + 1) % Fold::kPixels == 0);

  // load(n) is word n of kSize + 2 * kReach.
  template <typename Load>
  __device__ void run(int, Load load) {
    constexpr int kKept = 2 * kReach + 1;
    typename Fold::Value values[kKept];
    RunningExtremum<typename Fold::Whole, kLeast, 2 * kReach - 1> wholes;
    typename Fold::Whole::Split whole = {};
#pragma unroll
    for (int k = 0; k < kSize + 2 * kReach; k++) {
      values[k % kKept] = Fold::value(load(k));
      if (k >= 2 * kReach) results_[k - 2 * kReach] = Fold::fold(whole, values[(k + 1) % kKept], values[k % kKept]);
      whole = wholes.push(k, Fold::whole(values[k % kKept]));
    }
  }

  template <typename Function>
  __device__ void each(int, Function function) {
#pragma unroll
    for (int n = 0; n < kSize; n++) function(n, results_[n]);
  }

  template <typename Function>
  __device__ void change(int, Function function) {
#pragma unroll
    for (int n = 0; n < kSize; n++) results_[n] = function(n, results_[n]);
  }

 private:
  uint32_t results_[kSize];
};

// Rows whose pixels have three bytes, as they lie in memory: pixels are taken from the words of four one by one.
template <bool kLeast, int kSize>
class RowOfThree {
 public:
  static constexpr int kPixels = kSize + 1, kWords = kPixels / 4 * 3;
  static constexpr int kReach = round_to_chunks(kWords / 2);  // words, to the first pixel of a window or one before it
  static constexpr bool kFours = true;
  static_assert(kPixels % 8 == 0);
  __device__ static int words(int) { return kWords; }

  // load(n) is words 4 * n to 4 * n + 3 of 2 * kWords and some at the ends.
  template <typename Load>
  __device__ void run(int, Load load) {
    constexpr int kSkipped = kReach - kWords / 2, kLoaded = round_to_chunks(kSkipped + 2 * kWords);
    uint32_t words[kLoaded];
#pragma unroll
    for (int n = 0; n < kLoaded / 4; n++) {
      const uint4 four = load(n);
      words[4 * n] = four.x;
      words[4 * n + 1] = four.y;
      words[4 * n + 2] = four.z;
      words[4 * n + 3] = four.w;
    }
    VanHerk<ByteQuads, kSize, true, kLeast, true> window;
    // The pixel's fourth byte is anything.
    window.run(kSize, [&](int n) {
      const int pixel = n + 2, word = kSkipped + pixel / 4 * 3;
      if (pixel % 4 == 0) return words[word];
      if (pixel % 4 == 1) return permute_bytes(words[word], words[word + 1], 0x6543);
      if (pixel % 4 == 2) return permute_bytes(words[word + 1], words[word + 2], 0x5432);
      return words[word + 2] >> 8;
    });
    uint32_t last = 0;
    window.each(kSize, [&](int n, uint32_t quad) {
      const int pixel = n + 1, word = pixel / 4 * 3 + pixel % 4 - 1;
      if (pixel % 4 == 1) results_[word] = permute_bytes(last, quad, 0x4210);
      if (pixel % 4 == 2) results_[word] = permute_bytes(last, quad, 0x5421);
      if (pixel % 4 == 3) results_[word] = permute_bytes(last, quad, 0x6542);
      last = quad;
    });
  }

  // function(n, results) takes the same of kWords.
  template <typename Function>
  __device__ void each(int, Function function) {
#pragma unroll
    for (int n = 0; n < kWords / 4; n++)
      function(n, make_uint4(results_[4 * n], results_[4 * n + 1], results_[4 * n + 2], results_[4 * n + 3]));
  }

  template <typename Function>
  __device__ void change(int, Function function) {
#pragma unroll
    for (int n = 0; n < kWords; n++) results_[n] = function(n, results_[n]);
  }

 private:
  uint32_t results_[kWords];
};

// Words of a row in shared memory, its halo and what the last group reads beyond included; such that the lanes of a
// warp, which are at different rows and an odd number of words apart in each, find their quads in different banks.
__host__ __device__ constexpr int extremum_pitch(int groups, int largest, int step) {
  const int odd_multiple_of = groups > 4 ? groups : 4;
  int words = groups * largest + 2 * round_to_chunks(step * (largest / 2));
  while (words % (2 * odd_multiple_of) != odd_multiple_of) words++;
  return words;
}

// How a block works. Its warps load and then filter rows, 32 / kGroups at a time, in each kGroups times as many results
// as the window is wide; then each thread does the same with columns. kExact: for windows of that size only, with all
// that is known beforehand. kFlips: for either direction, the least samples being the complements of their complements'
// largest ones: samples are xored with `flip` before and after; else for one. kRows: rows are filtered as quads, or as
// they lie in memory: FoldedRow and RowOfThree are for pixels that are not quads there. kStep: quads of a pixel.
template <typename Quads_, int kLargest_, bool kExact_, int kGroups_, int kMinBlocks_, Rows kRows_ = Rows::Quads,
          bool kLeast_ = false, int kStep_ = 1>
struct ExtremumShape {
  using Quads = Quads_;
  static constexpr int kLargest = kLargest_;
  static constexpr bool kExact = kExact_, kLeast = kLeast_;
  static constexpr bool kFlips = !kExact || Quads::kWords;
  static_assert(!kFlips || !kLeast);
  static constexpr int kStep = kStep_;
  static constexpr int kGroups = kGroups_;
  static constexpr int kMinBlocks = kMinBlocks_;
  static constexpr int kWarps = 8;
  static constexpr Rows kRows = kRows_;
  static constexpr bool kQuads = kRows == Rows::Quads, kOfThree = kRows == Rows::WordsOfThree;
  static_assert(kQuads || kExact);
  // Words of a group's results, those of the largest window.
  static constexpr int kWords = kOfThree ? (kLargest + 1) / 4 * 3 : kLargest;
  // Shared memory does not hold a tile as high as the window.
  static constexpr bool kLow = kLargest > 63;
  static constexpr int kRowsAtOnce = 32 / kGroups, kRowsOfRound = kRowsAtOnce * kWarps;
  static constexpr int kPitch = extremum_pitch(kGroups, kWords, kStep);
  static_assert(kGroups % kStep == 0);
};

template <typename Shape>
__device__ inline void filter_extremum(const ExtremumParams &p) {
  using Quads = typename Shape::Quads;
  constexpr int kPitch = Shape::kPitch, kStep = Shape::kStep;
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  const int size = Shape::kExact ? Shape::kLargest : p.size, radius = size / 2;
  const uint32_t flip = Shape::kFlips ? p.flip : 0;
  uint32_t *quads = shared_memory<uint32_t>();
  VanHerk<Quads, Shape::kLargest, Shape::kExact, Shape::kLeast> window;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rows = min(shape.height, part.height - tile.y0) + 2 * radius;
  const int share = (rows + Shape::kRowsOfRound - 1) / Shape::kRowsOfRound * Shape::kRowsAtOnce;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  if (begin < end)
    load_rows<Shape::kRows, Quads::kWords>(p, shape, tile, begin, end - begin, kPitch, quads + begin * kPitch);
  wait_for_chunks();
  __syncwarp();
  // Each warp filters the rows that it has loaded: once all of a row is in registers, results take its place, pixels
  // to be copied in the place of theirs. `halo` words lie before those pixels, and windows begin at `from`.
  const auto filter_rows = [&](auto &line, int halo, int from) {
    constexpr bool kFours = std::decay_t<decltype(line)>::kFours;
    for (int row0 = begin; row0 < end; row0 += Shape::kRowsAtOnce) {
      const int row = row0 + lane / Shape::kGroups, group = lane % Shape::kGroups, word = group % kStep;
      uint32_t *first = quads + row * kPitch + group / kStep * line.words(size) * kStep + word;
      if (row < end)
        line.run(size, [&](int n) {
          if constexpr (kFours) {
            return *reinterpret_cast<const uint4 *>(first + from + 4 * n);
          } else {
            const uint32_t quad = first[from + n * kStep];
            return (Quads::kWords ? quad & p.sample_bits : quad) ^ flip;
          }
        });
      if (part.merges && row < end)
        line.change(size, [&](int n, uint32_t quad) {
          return merge_word(part, quad, first[halo + n * kStep], Shape::kOfThree ? n % 3 : word);
        });
      __syncwarp();
      if (row < end)
        line.each(size, [&](int n, auto result) {
          if constexpr (kFours)
            *reinterpret_cast<uint4 *>(first + 4 * n) = result;
          else
            first[n * kStep] = result;
        });
    }
  };
  const auto filter_words = [&](auto line) {
    const int halo = shape.bytes[part.channels - 1].halo / 4;
    filter_rows(line, halo, halo - line.kReach);
  };
  const auto filter_quads = [&] { filter_rows(window, shape.halo_x, shape.halo_x - radius * kStep); };
  if constexpr (Shape::kOfThree) {
    filter_words(RowOfThree<Shape::kLeast, Shape::kLargest>());
  } else if constexpr (Shape::kQuads || kStep == 2) {
    filter_quads();
  } else if (part.channels == 4) {
    filter_quads();
  } else if (part.channels == 2) {
    filter_words(FoldedRow<FoldedPairs<Quads, Shape::kLeast>, Shape::kLeast, Shape::kLargest>());
  } else {
    if constexpr (!Quads::kWords) filter_words(FoldedRow<FoldedBytes<Shape::kLeast>, Shape::kLeast, Shape::kLargest>());
  }
  __syncthreads();

  const int results = rows - 2 * radius, groups = (results + size - 1) / size;
  for (int item = threadIdx.x; item - lane < shape.width * groups; item += 32 * Shape::kWarps) {
    const int group = item / shape.width, column = item - group * shape.width;
    const bool beyond = Shape::kQuads ? tile.x0 + column >= part.width
                                      : tile.x0 * part.channels + 4 * column >= part.width * part.channels;
    if (__all_sync(0xffffffffu, beyond)) continue;
    // Lanes beyond the last column of the last group write nothing.
    const int row = min(group, groups - 1) * size, last = rows - 1 - row;
    const uint32_t *first = quads + row * kPitch + column;
    window.run(size, [&](int n) { return first[(Shape::kLow ? min(n, last) : n) * kPitch]; });
    if (part.merges)
      window.change(size, [&](int n, uint32_t quad) {
        const uint32_t pixel = first[(Shape::kLow ? min(n + radius, last) : n + radius) * kPitch];
        return merge_word(part, quad ^ flip, pixel, Shape::kOfThree ? column % 3 : column % kStep) ^ flip;
      });
    QuadWriter writer(shape, tile, column, group * size, !Shape::kQuads);
    writer.template write<!Shape::kExact>(
        [&](auto put) { window.each(size, [&](int, uint32_t quad) { put(quad ^ flip); }); });
  }
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, blocks_at_once(Shape::kMinBlocks))
    extremum_kernel(const __grid_constant__ ExtremumParams p) {
  if constexpr (!Shape::kExact || kHasSpecialKernels) filter_extremum<Shape>(p);
}

}  // namespace cudaconv
