// SPDX-License-Identifier: LGPL-2.1-or-later
//
// copy_kernel copies rectangles of bytes within the device, and lists from pinned host memory. Unlike a copy of the
// driver it can be a node of a graph whose addresses change, and takes all planes in one launch. A block of 32 x 8
// threads copies 512 bytes of 32 rows, so RGBA of 1920x1080 takes 15 x 34 blocks:
//
//               32 chunks of 16 bytes
//     rows 0-7   thread (x, y) copies chunk x of rows y, y + 8, y + 16, y + 24. All four are loaded
//     rows 8-15  before the first is stored, so a thread waits for memory once.
//     ...
//
// The last chunk of a row may be shorter. It is copied byte by byte, since the bytes behind it may belong to others.
#include <cstdint>

#include "cuda/frame_copy.h"
#include "cuda/launch.cuh"

namespace cudaconv {

namespace {

constexpr int kMostRects = 8;
constexpr int kThreadsAcross = 32, kThreadsDown = 8, kRowsOfThread = 4;
constexpr int kBlockRows = kThreadsDown * kRowsOfThread;
constexpr int kChunkBytes = sizeof(uint4);

struct CopyPart {
  const uint8_t *from;
  uint8_t *to;
  ptrdiff_t from_pitch, to_pitch;
  int32_t bytes, rows;  // of the rectangle
  int32_t blocks_across, first_block;
};

struct CopyParams {
  int32_t parts;
  CopyPart part[kMostRects];
};

__global__ void __launch_bounds__(kThreadsAcross *kThreadsDown) copy_kernel(const __grid_constant__ CopyParams p) {
  const int block = static_cast<int>(blockIdx.x);
  int n = 0;
  while (n + 1 < p.parts && block >= p.part[n + 1].first_block) n++;
  const CopyPart &part = p.part[n];
  const int across = part.blocks_across, index = block - part.first_block;
  const int byte = (index % across * kThreadsAcross + static_cast<int>(threadIdx.x) % kThreadsAcross) * kChunkBytes;
  const int first_row = index / across * kBlockRows + static_cast<int>(threadIdx.x) / kThreadsAcross;
  const auto from = [&](int y) { return part.from + y * part.from_pitch + byte; };
  const auto to = [&](int y) { return part.to + y * part.to_pitch + byte; };
  if (byte + kChunkBytes <= part.bytes) {
    uint4 chunk[kRowsOfThread];
#pragma unroll
    for (int i = 0; i < kRowsOfThread; i++) {
      const int y = first_row + i * kThreadsDown;
      if (y < part.rows) chunk[i] = *reinterpret_cast<const uint4 *>(from(y));
    }
#pragma unroll
    for (int i = 0; i < kRowsOfThread; i++) {
      const int y = first_row + i * kThreadsDown;
      if (y < part.rows) *reinterpret_cast<uint4 *>(to(y)) = chunk[i];
    }
    return;
  }
  for (int y = first_row; y < part.rows && y < first_row + kBlockRows; y += kThreadsDown)
    for (int i = 0; byte + i < part.bytes; i++) to(y)[i] = from(y)[i];
}

bool is_aligned(const PlaneView &plane, const CopyRect &rect) {
  return (reinterpret_cast<uintptr_t>(plane.data) | static_cast<uintptr_t>(plane.pitch) | rect.begin) % kChunkBytes ==
         0;
}

}  // namespace

void copy_on_device(const std::vector<CopyRect> &rects, const FrameView &from, const FrameView &to,
                    LaunchGraph &launches) {
  CopyParams p = {};
  int blocks = 0;
  bool takes_all = rects.size() <= kMostRects;
  for (size_t i = 0; takes_all && i < rects.size(); i++) {
    const CopyRect &rect = rects[i];
    const PlaneView &source = from.plane[rect.plane], &target = to.plane[rect.plane];
    takes_all = is_aligned(source, rect) && is_aligned(target, rect) && rect.length <= INT32_MAX / 2;
    const auto begin = [&](const PlaneView &plane) { return plane.data + rect.y0 * plane.pitch + rect.begin; };
    const int across =
        static_cast<int>((rect.length + kThreadsAcross * kChunkBytes - 1) / (kThreadsAcross * kChunkBytes));
    p.part[p.parts++] = {
        begin(source),     begin(target), source.pitch, target.pitch, static_cast<int32_t>(rect.length),
        rect.y1 - rect.y0, across,        blocks};
    blocks += across * ((rect.y1 - rect.y0 + kBlockRows - 1) / kBlockRows);
  }
  if (!takes_all) {
    launches.enqueue();
    return copy_rects(rects, from, to, cudaMemcpyDeviceToDevice, launches.stream());
  }
  if (blocks)
    enqueue("copy", copy_kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreadsAcross * kThreadsDown), 0, launches,
            p);
}

void copy_to_device(uint8_t *host, uint8_t *device, size_t bytes, LaunchGraph &launches) {
  constexpr size_t kMostByLaunch = 256 << 10, kRow = kThreadsAcross * kChunkBytes;
  if (bytes > kMostByLaunch) {
    launches.enqueue();
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, launches.stream()), "cudaMemcpyAsync of lists");
    return;
  }
  // In rows, as the blocks of copy_kernel copy them, and the rest.
  const int rows = static_cast<int>(bytes / kRow);
  FrameView from, to;
  from.plane[0] = {host, kRow};
  to.plane[0] = {device, kRow};
  copy_on_device({{0, 0, kRow, 0, rows}, {0, 0, bytes % kRow, rows, rows + 1}}, from, to, launches);
}

}  // namespace cudaconv
