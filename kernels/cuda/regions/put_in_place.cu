// SPDX-License-Identifier: LGPL-2.1-or-later
//
// place_kernel copies selected pixels from a frame of results to the frame, a cell of 32 x 32 pixels a block. Pixels
// are selected by rectangles or, within the rectangle of a part, by its rows, which are lists of runs: 32 threads each
// look up a row of the cell, and leave a bit for each of its pixels in shared memory.
//
// Threads copy vectors of 16 bytes where rows begin at multiples of these, else container by container. Example, RGBA:
// a row of a cell is 8 vectors, so the 128 threads copy 16 rows at once, and each thread copies 2 vectors. Then pixels
// that fade are blended word by word, or container by container. Their shares are looked up first, a byte for each
// pixel of the cell in shared memory.
//
// copy_lists_kernel copies lists from pinned host memory. Unlike a copy of the driver it can be a node of a graph whose
// addresses change: of a frame's launches.
#include "cuda/regions/put_in_place.h"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/launch_params.h"
#include "plan/feather.h"

namespace cudaconv {

namespace {

constexpr int kThreads = 128, kMinBlocks = 9, kCell = 32;

struct PlacedPart {
  PlaneView from, to;
  int32_t vector_bytes;  // bytes of a pixel if it is copied by vectors, else 0; then all its samples are alike
  int32_t container_bytes, containers, step, first;
  uint8_t offset[kMaxChannels];
  // The lists of RegionRows; `row` is nullptr if all pixels of the rectangles are selected, `first_share` if none
  // fades.
  const RegionRows::Row *row;
  const PixelRun *run;
  const uint32_t *first_share;
  const uint8_t *share;
  // To blend pixels. Samples are bit fields: `mask` of the containers, shifted right by `shift`. A container has one
  // field, or, with `packed`, all `channels`.
  bool packed, big_endian;
  int32_t channels;
  uint8_t shift[kMaxChannels];
  uint32_t mask[kMaxChannels];
};

struct PlaceParams {
  int32_t rects;
  struct Rect {
    int32_t first_block;
    SelectedRect selected;
  } rect[kMostSelectedRects];
  PlacedPart part[kMaxParts];
};

// A cell of a part, and rows y0 ... y1 - 1 and columns x0 ... x1 - 1 of the cell, which a rectangle has.
struct PlacedCell {
  int x, y;  // the cell's corner, in pixels of the part
  int part;
  int x0, y0, x1, y1;
};

__device__ inline PlacedCell find_cell(const PlaceParams &p) {
  const int block = static_cast<int>(blockIdx.x);
  int i = 0;
  while (i + 1 < p.rects && block >= p.rect[i + 1].first_block) i++;
  const PixelRect &r = p.rect[i].selected.pixels;
  const int n = block - p.rect[i].first_block, column = r.x0 / kCell, across = (r.x1 - 1) / kCell - column + 1;
  const int x = (column + n % across) * kCell, y = (r.y0 / kCell + n / across) * kCell;
  const auto within = [](int v) { return min(max(v, 0), kCell); };
  return {x, y, p.rect[i].selected.part, within(r.x0 - x), within(r.y0 - y), within(r.x1 - x), within(r.y1 - y)};
}

// A word with ones for columns x0 ... x1 - 1 of a cell.
__device__ inline uint32_t columns_of_cell(int x0, int x1) {
  return (x1 < kCell ? 1u << x1 : 0) - (1u << x0);
}

// By row of the cell: a bit for each pixel to copy, and for each that fades, the first run that reaches the cell, and
// the shares of pixels that fade.
struct CellRows {
  uint32_t copied[kCell], faded[kCell], run[kCell];
  uint8_t share[kCell][kCell];
};

// Fills in a row. Returns whether any of its pixels is selected.
__device__ inline bool look_up(const PlacedPart &part, const PlacedCell &cell, int y, CellRows &rows) {
  uint32_t copied = 0, faded = 0, first = 0;
  if (y >= cell.y0 && y < cell.y1 && !part.row) copied = columns_of_cell(cell.x0, cell.x1);
  if (y >= cell.y0 && y < cell.y1 && part.row) {
    const RegionRows::Row row = part.row[cell.y + y];
    first = row.begin;
    for (uint32_t end = row.end; first < end;) {
      const uint32_t middle = (first + end) / 2;
      if (part.run[middle].end <= cell.x)
        first = middle + 1;
      else
        end = middle;
    }
    for (uint32_t r = first; r < row.end; r++) {
      const PixelRun run = part.run[r];
      if (run.begin >= cell.x + kCell) break;
      const uint32_t columns = columns_of_cell(max(run.begin - cell.x, 0), min(run.end - cell.x, kCell));
      (part.first_share && part.first_share[r] != RegionRows::kNone ? faded : copied) |= columns;
    }
  }
  rows.copied[y] = copied;
  rows.faded[y] = faded;
  rows.run[y] = first;
  return copied | faded;
}

// Looks up the shares of the pixels that fade. The loads of a thread are under way together.
__device__ inline void look_up_shares(const PlacedPart &part, const PlacedCell &cell, CellRows &rows) {
  constexpr int kPixels = kCell * kCell / kThreads;  // of a thread
  uint32_t at[kPixels];
  const int x = static_cast<int>(threadIdx.x) % kCell, first_row = static_cast<int>(threadIdx.x) / kCell;
#pragma unroll
  for (int k = 0; k < kPixels; k++) {
    const int y = first_row + k * (kThreads / kCell);
    at[k] = RegionRows::kNone;
    if (!(rows.faded[y] >> x & 1)) continue;
    uint32_t r = rows.run[y];
    while (part.run[r].end <= cell.x + x) r++;
    at[k] = part.first_share[r] + static_cast<uint32_t>(cell.x + x - part.run[r].begin);
  }
#pragma unroll
  for (int k = 0; k < kPixels; k++)
    if (at[k] != RegionRows::kNone) rows.share[first_row + k * (kThreads / kCell)][x] = __ldg(part.share + at[k]);
}

// Stores the selected bytes of a vector. `pixels`: a bit for each pixel that has bytes in the vector; the first pixel
// has `before` bytes before the vector.
template <int kPixelBytes>
__device__ inline void place_bytes(const uint4 &vector, uint8_t *to, uint32_t pixels, int before) {
  const uint32_t word[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int w = 0; w < 4; w++) {
    uint32_t wanted = 0;
#pragma unroll
    for (int b = 0; b < 4; b++) wanted |= (pixels >> (before + 4 * w + b) / kPixelBytes & 1) << b;
    if (wanted == 15) {
      reinterpret_cast<uint32_t *>(to)[w] = word[w];
      continue;
    }
#pragma unroll
    for (int b = 0; b < 4; b++)
      if (wanted >> b & 1) to[4 * w + b] = static_cast<uint8_t>(word[w] >> 8 * b);
  }
}

// A thread copies the same 16 bytes of some rows of the cell. Its addresses go from row to row, and the columns that it
// copies are worked out once: instructions were what took the time.
template <int kPixelBytes>
__device__ inline void place_vectors(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  constexpr int kBytes = 16, kVectors = kCell * kPixelBytes / kBytes;  // of a vector; of a row
  constexpr int kStep = kThreads / kVectors, kRows = (kCell + kStep - 1) / kStep;
  const int begin = static_cast<int>(threadIdx.x) / kVectors;
  if (begin >= kStep) return;
  const int byte = static_cast<int>(threadIdx.x) % kVectors * kBytes;
  const int first = byte / kPixelBytes, last = (byte + kBytes - 1) / kPixelBytes;
  const uint32_t all = (2u << (last - first)) - 1;
  const int64_t column = int64_t{cell.x} * kPixelBytes + byte, row = int64_t{cell.y} + begin;
  const uint8_t *from = part.from.data + row * part.from.pitch + column;
  uint8_t *to = part.to.data + row * part.to.pitch + column;
  uint4 vector[kRows];
  uint32_t pixels[kRows];
#pragma unroll
  for (int k = 0; k < kRows; k++) {
    const int y = begin + k * kStep;
    pixels[k] = y < kCell ? rows.copied[y] >> first & all : 0;
    if (pixels[k]) vector[k] = __ldg(reinterpret_cast<const uint4 *>(from + k * kStep * part.from.pitch));
  }
#pragma unroll
  for (int k = 0; k < kRows; k++) {
    uint8_t *const target = to + k * kStep * part.to.pitch;
    if (pixels[k] == all)
      *reinterpret_cast<uint4 *>(target) = vector[k];
    else if (pixels[k])
      place_bytes<kPixelBytes>(vector[k], target, pixels[k], byte % kPixelBytes);
  }
}

// Blends the samples of a word, which begins `before` bytes behind the start of a pixel. `pixels` and `share` begin
// with that pixel; pixels without a bit keep the original. Other bits come from the result.
template <int kPixelBytes, int kContainerBytes>
__device__ inline uint32_t fade_word(const PlacedPart &part, uint32_t filtered, uint32_t original, uint32_t pixels,
                                     const uint8_t *share, int before) {
  uint32_t word = original;
#pragma unroll
  for (int b = 0; b < 4; b += kContainerBytes) {
    const int pixel = (before + b) / kPixelBytes, shift = kContainerBytes == 1 ? 8 * b : part.shift[0] + 8 * b;
    const uint32_t container = (kContainerBytes == 1 ? 0xffu : 0xffffu) << 8 * b;
    const uint32_t field = kContainerBytes == 1 ? container : part.mask[0] << 8 * b;
    if (!(pixels >> pixel & 1)) continue;
    const uint32_t sample = faded<uint32_t>((filtered & field) >> shift, (original & field) >> shift, share[pixel])
                            << shift;
    word = (word & ~container) | (filtered & container & ~field) | sample;
  }
  return word;
}

// Blends the pixels that fade, word by word. Other pixels of a word have their values already.
template <int kPixelBytes>
__device__ inline void fade_words(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  constexpr int kWords = kCell * kPixelBytes / 4;  // of a row
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kCell * kWords; i += kThreads) {
    const int y = i / kWords, byte = i % kWords * 4, first = byte / kPixelBytes, before = byte % kPixelBytes;
    const uint32_t pixels = rows.faded[y] >> first & ((2u << (before + 3) / kPixelBytes) - 1);
    if (!pixels) continue;
    const int64_t row = int64_t{cell.y} + y, column = int64_t{cell.x} * kPixelBytes + byte;
    const uint8_t *const share = &rows.share[y][first];
    auto *const to = reinterpret_cast<uint32_t *>(part.to.data + row * part.to.pitch + column);
    const uint32_t filtered =
        __ldg(reinterpret_cast<const uint32_t *>(part.from.data + row * part.from.pitch + column));
    if (kPixelBytes % 2 || part.container_bytes == 1)
      *to = fade_word<kPixelBytes, 1>(part, filtered, *to, pixels, share, before);
    else
      *to = fade_word<kPixelBytes, 2>(part, filtered, *to, pixels, share, before);
  }
}

// Calls body(row, x, c, from, to) for container c of each pixel whose bit bits_of(row) has, with its addresses.
template <typename Bits, typename Body>
__device__ inline void each_container(const PlacedPart &part, const PlacedCell &cell, Bits bits_of, Body body) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kCell * kCell; i += kThreads) {
    const int row = i / kCell, x = i % kCell;
    if (!(bits_of(row) >> x & 1)) continue;
    const int64_t y = cell.y + row, pixel = part.first + int64_t{cell.x + x} * part.step;
#pragma unroll 1
    for (int c = 0; c < part.containers; c++) {
      const int64_t byte = (pixel + part.offset[c]) * part.container_bytes;
      body(row, x, c, part.from.data + y * part.from.pitch + byte, part.to.data + y * part.to.pitch + byte);
    }
  }
}

__device__ inline void place_containers(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  each_container(
      part, cell, [&](int row) { return rows.copied[row]; },
      [&](int, int, int, const uint8_t *from, uint8_t *to) {
#pragma unroll 1
        for (int b = 0; b < part.container_bytes; b++) to[b] = from[b];
      });
}

__device__ inline uint32_t load_container(const PlacedPart &part, const uint8_t *from) {
  uint32_t word = 0;
#pragma unroll 1
  for (int b = 0; b < part.container_bytes; b++)
    word |= static_cast<uint32_t>(from[part.big_endian ? part.container_bytes - 1 - b : b]) << 8 * b;
  return word;
}

__device__ inline void store_container(const PlacedPart &part, uint32_t word, uint8_t *to) {
#pragma unroll 1
  for (int b = 0; b < part.container_bytes; b++)
    to[part.big_endian ? part.container_bytes - 1 - b : b] = static_cast<uint8_t>(word >> 8 * b);
}

// Blends the samples of container `c` of a pixel. Other bits come from the result.
__device__ inline uint32_t fade_container(const PlacedPart &part, int c, uint32_t filtered, uint32_t original,
                                          uint32_t share) {
  uint32_t word = filtered;
  const int first = part.packed ? 0 : c, end = part.packed ? part.channels : c + 1;
#pragma unroll 1
  for (int i = first; i < end; i++) {
    const uint32_t mask = part.mask[i], shift = part.shift[i];
    const uint32_t sample = faded<uint32_t>((filtered & mask) >> shift, (original & mask) >> shift, share);
    word = (word & ~mask) | sample << shift;
  }
  return word;
}

__device__ inline void fade_containers(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  each_container(
      part, cell, [&](int row) { return rows.faded[row]; },
      [&](int row, int x, int c, const uint8_t *from, uint8_t *to) {
        const uint32_t word =
            fade_container(part, c, load_container(part, from), load_container(part, to), rows.share[row][x]);
        store_container(part, word, to);
      });
}

// Copies the pixels of a cell, then blends those that fade.
template <int kPixelBytes>
__device__ inline void put_vectors(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  place_vectors<kPixelBytes>(part, cell, rows);
  if (!part.first_share) return;
  __syncthreads();
  fade_words<kPixelBytes>(part, cell, rows);
}

__device__ inline void put_pixels(const PlacedPart &part, const PlacedCell &cell, const CellRows &rows) {
  if (part.vector_bytes == 1) return put_vectors<1>(part, cell, rows);
  if (part.vector_bytes == 2) return put_vectors<2>(part, cell, rows);
  if (part.vector_bytes == 3) return put_vectors<3>(part, cell, rows);
  if (part.vector_bytes == 4) return put_vectors<4>(part, cell, rows);
  if (part.vector_bytes == 6) return put_vectors<6>(part, cell, rows);
  if (part.vector_bytes == 8) return put_vectors<8>(part, cell, rows);
  place_containers(part, cell, rows);
  if (part.first_share) fade_containers(part, cell, rows);
}

__global__ void __launch_bounds__(kThreads, kMinBlocks) place_kernel(const __grid_constant__ PlaceParams p) {
  const PlacedCell cell = find_cell(p);
  const PlacedPart &part = p.part[cell.part];
  CellRows &rows = *shared_memory<CellRows>();
  const int y = static_cast<int>(threadIdx.x);
  if (!__syncthreads_or(y < kCell && look_up(part, cell, y, rows))) return;
  if (part.first_share) {
    look_up_shares(part, cell, rows);
    __syncthreads();
  }
  put_pixels(part, cell, rows);
}

struct ListCopy {
  const uint4 *from;
  uint4 *to;
  int64_t vectors;
};

__global__ void __launch_bounds__(kThreads) copy_lists_kernel(const __grid_constant__ ListCopy p) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.vectors) p.to[i] = p.from[i];
}

bool is_aligned(const PlaneView &view) {
  return (reinterpret_cast<uintptr_t>(view.data) | static_cast<uintptr_t>(view.pitch)) % sizeof(uint4) == 0;
}

bool has_like_samples(const PlaneLayout &layout) {
  const ChannelLayout &first = layout.channel[0];
  return std::all_of(layout.channel, layout.channel + layout.channels, [&](const ChannelLayout &channel) {
    return channel.depth == first.depth && channel.shift == first.shift;
  });
}

// How many cells a rectangle reaches into.
int32_t cells_of(const PixelRect &r) {
  return ((r.x1 - 1) / kCell - r.x0 / kCell + 1) * ((r.y1 - 1) / kCell - r.y0 / kCell + 1);
}

}  // namespace

void launch_put_in_place(const Plan &plan, const Selection &selection, const uint8_t *lists, const FrameView &from,
                         const FrameView &to, LaunchGraph &launches) {
  PlaceParams p = {};
  int32_t blocks = 0;
  for (const SelectedRect &rect : selection.rects) {
    p.rect[p.rects++] = {blocks, rect};
    blocks += cells_of(rect.pixels);
  }
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const Plan::Part &part = plan.parts[i];
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    PlacedPart &out = p.part[i];
    out.from = part_of(from, plan, part);
    out.to = part_of(to, plan, part);
    if (!selection.rows.empty()) {
      const Selection::Rows &rows = selection.rows[i];
      out.row = reinterpret_cast<const RegionRows::Row *>(lists + rows.rows);
      out.run = reinterpret_cast<const PixelRun *>(lists + rows.runs);
      if (rows.fade) out.first_share = reinterpret_cast<const uint32_t *>(lists + rows.first_shares);
      out.share = lists + rows.shares;
    }
    const bool vectors = layout.dense() && has_like_samples(layout) && is_aligned(out.from) && is_aligned(out.to);
    out.container_bytes = layout.bytes_per_container();
    out.vector_bytes = vectors ? layout.channels * out.container_bytes : 0;
    out.step = layout.step;
    out.first = layout.first;
    // The channels of Packed32 are fields of one container.
    out.packed = layout.container == Container::Packed32;
    out.big_endian = layout.container == Container::U16BE;
    out.channels = layout.channels;
    out.containers = out.packed ? 1 : layout.channels;
    for (int c = 0; c < layout.channels; c++) {
      const ChannelLayout &channel = layout.channel[c];
      if (!out.packed) out.offset[c] = channel.offset;
      out.shift[c] = out.packed ? channel.offset : channel.shift;
      out.mask[c] = ((1u << channel.depth) - 1) << out.shift[c];
    }
  }
  enqueue("place", place_kernel, static_cast<unsigned>(blocks), kThreads, sizeof(CellRows), launches, p);
}

void launch_copy_lists(const uint8_t *host, uint8_t *device, size_t bytes, LaunchGraph &launches) {
  constexpr size_t kMostByLaunch = 256 << 10;  // the driver copies more faster
  if (bytes > kMostByLaunch) {
    launches.enqueue();
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, launches.stream()), "cudaMemcpyAsync of lists");
    return;
  }
  const ListCopy p = {reinterpret_cast<const uint4 *>(host), reinterpret_cast<uint4 *>(device),
                      static_cast<int64_t>(bytes / sizeof(uint4))};
  enqueue("copy_lists", copy_lists_kernel, static_cast<unsigned>((p.vectors + kThreads - 1) / kThreads), kThreads, 0,
          launches, p);
}

}  // namespace cudaconv
