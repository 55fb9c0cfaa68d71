// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that copies the pixels of selected cells, one cell a block. Threads copy 32-bit words where rows begin at
// multiples of 4 bytes, else container by container.
#include "cuda/regions/put_in_place.h"

#include "cuda/launch.cuh"
#include "cuda/launch_params.h"

namespace cudaconv {

namespace {

constexpr int kThreads = 128, kMinBlocks = 12;

struct PlacedPart {
  const uint8_t *from[kMostResults];
  uint8_t *to;
  int64_t from_pitch[kMostResults], to_pitch;  // bytes
  int32_t word_bytes;                          // bytes of a pixel if it is copied by words, else 0
  int32_t container_bytes, containers, step, first;
  uint8_t offset[kMaxChannels];
};

struct PlaceParams {
  const SelectedCell *cell;
  const uint32_t *bits;
  PlacedPart part[kMaxParts];
};

// The selected pixels of row y of the cell, a bit for each.
__device__ inline uint32_t selected(const PlaceParams &p, const SelectedCell &cell, int y) {
  if (cell.first_word >= 0) return p.bits[cell.first_word + y];
  if (y < cell.y0 || y >= cell.y1) return 0;
  return (cell.x1 < 32 ? 1u << cell.x1 : 0) - (1u << cell.x0);
}

template <int kPixelBytes>
__device__ inline void place_words(const PlaceParams &p, const PlacedPart &part, const SelectedCell &cell) {
  constexpr int kWords = Area::kCell * kPixelBytes / 4;  // words of a row
  const uint8_t *const from = part.from[cell.result] + int64_t{cell.x} * kPixelBytes;
  uint8_t *const to = part.to + int64_t{cell.x} * kPixelBytes;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kWords * Area::kCell; i += kThreads) {
    const int row = i / kWords, byte = i % kWords * 4;
    const uint32_t pixels = selected(p, cell, row);
    uint32_t wanted = 0;  // ones in the bytes to be copied
#pragma unroll
    for (int b = 0; b < 4; b++)
      if (pixels >> (byte + b) / kPixelBytes & 1) wanted |= 0xffu << 8 * b;
    if (!wanted) continue;
    const int64_t y = cell.y + row;
    const uint8_t *const source = from + y * part.from_pitch[cell.result] + byte;
    uint8_t *const target = to + y * part.to_pitch + byte;
    if (wanted == 0xffffffffu) {
      *reinterpret_cast<uint32_t *>(target) = *reinterpret_cast<const uint32_t *>(source);
      continue;
    }
#pragma unroll
    for (int b = 0; b < 4; b++)
      if (wanted >> 8 * b & 1) target[b] = source[b];
  }
}

__device__ inline void place_containers(const PlaceParams &p, const PlacedPart &part, const SelectedCell &cell) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < Area::kCell * Area::kCell; i += kThreads) {
    const int row = i / Area::kCell, x = i % Area::kCell;
    if (!(selected(p, cell, row) >> x & 1)) continue;
    const int64_t y = cell.y + row, pixel = part.first + int64_t{cell.x + x} * part.step;
#pragma unroll 1
    for (int c = 0; c < part.containers; c++) {
      const int64_t byte = (pixel + part.offset[c]) * part.container_bytes;
#pragma unroll 1
      for (int b = 0; b < part.container_bytes; b++)
        part.to[y * part.to_pitch + byte + b] = part.from[cell.result][y * part.from_pitch[cell.result] + byte + b];
    }
  }
}

__global__ void __launch_bounds__(kThreads, kMinBlocks) place_kernel(const __grid_constant__ PlaceParams p) {
  const SelectedCell cell = p.cell[blockIdx.x];
  const PlacedPart &part = p.part[cell.part];
  switch (part.word_bytes) {
    case 1:
      return place_words<1>(p, part, cell);
    case 2:
      return place_words<2>(p, part, cell);
    case 3:
      return place_words<3>(p, part, cell);
    case 4:
      return place_words<4>(p, part, cell);
    case 6:
      return place_words<6>(p, part, cell);
    case 8:
      return place_words<8>(p, part, cell);
    default:
      return place_containers(p, part, cell);
  }
}

constexpr int kFetchThreads = 256;

__global__ void __launch_bounds__(kFetchThreads) fetch_kernel(const uint4 *from, uint4 *to, int vectors) {
  const int i = static_cast<int>(blockIdx.x) * kFetchThreads + static_cast<int>(threadIdx.x);
  if (i < vectors) to[i] = from[i];
}

bool whole_words(const PlaneView &view) {
  return (reinterpret_cast<uintptr_t>(view.data) | static_cast<uintptr_t>(view.pitch)) % 4 == 0;
}

}  // namespace

void launch_fetch(const uint8_t *host, uint8_t *device, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  constexpr size_t kMostFetched = 256 << 10;
  if (bytes > kMostFetched) {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync of the regions");
    return;
  }
  const int vectors = static_cast<int>((bytes + sizeof(uint4) - 1) / sizeof(uint4));
  check(launch("fetch", fetch_kernel, dim3(static_cast<unsigned>((vectors + kFetchThreads - 1) / kFetchThreads)),
               dim3(kFetchThreads), 0, stream, reinterpret_cast<const uint4 *>(host), reinterpret_cast<uint4 *>(device),
               vectors),
        "cudaLaunchKernel");
}

void launch_put_in_place(const Plan &plan, const SelectedCell *cells, size_t count, const uint32_t *bits,
                         const std::vector<FrameView> &results, const FrameView &frame, cudaStream_t stream) {
  if (count == 0) return;
  PlaceParams p = {};
  p.cell = cells;
  p.bits = bits;
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const Plan::Part &part = plan.parts[i];
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    PlacedPart &out = p.part[i];
    bool words = layout.dense() && whole_words(frame.plane[layout.memory_plane]);
    const auto first_row = [&](const PlaneView &view) { return view.data + part.first_row * view.pitch; };
    for (size_t r = 0; r < results.size(); r++) {
      const PlaneView &view = results[r].plane[layout.memory_plane];
      words = words && whole_words(view);
      out.from[r] = first_row(view);
      out.from_pitch[r] = view.pitch * part.row_step;
    }
    out.to = first_row(frame.plane[layout.memory_plane]);
    out.to_pitch = frame.plane[layout.memory_plane].pitch * part.row_step;
    out.container_bytes = layout.bytes_per_container();
    out.word_bytes = words ? layout.channels * out.container_bytes : 0;
    out.step = layout.step;
    out.first = layout.first;
    // The channels of Packed32 are fields of one container.
    out.containers = layout.container == Container::Packed32 ? 1 : layout.channels;
    if (layout.container != Container::Packed32)
      for (int c = 0; c < layout.channels; c++) out.offset[c] = layout.channel[c].offset;
  }
  check(launch("place", place_kernel, dim3(static_cast<unsigned>(count)), dim3(kThreads), 0, stream, p),
        "cudaLaunchKernel");
}

}  // namespace cudaconv
