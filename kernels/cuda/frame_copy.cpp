// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/frame_copy.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace cudaconv {

namespace {

constexpr size_t kPieceBytes = 256 << 10;  // host copies are cut into pieces of this size for several threads

// Granularity of copies along a row, in bytes: it keeps packed pixels together and is a cache line.
constexpr int64_t kUnit = 64;
// Enqueueing another copy takes as long as copying this many more bytes: two microseconds at 50 GB/s.
constexpr size_t kCopyCost = 100 << 10;

// Appends a rectangle of a plane of memory, less the bytes that belong to no pixel.
void append(const std::vector<MemoryPlane> &planes, size_t plane, const PixelRect &units,
            std::vector<CopyRect> &rects) {
  const size_t begin = units.x0 * kUnit, end = units.x1 * kUnit;
  for (const MemoryPlane::Run &run : planes[plane].runs) {
    const size_t first = std::max(begin, run.begin), last = std::min(end, run.begin + run.length);
    if (first < last) rects.push_back({plane, first, last - first, units.y0, units.y1});
  }
}

// The areas of parts in units of kUnit bytes of memory; planes that share memory, and both fields, are merged.
std::vector<Area> memory_areas(const Plan &plan, const std::vector<Area> &areas) {
  std::vector<Area> result;
  for (const MemoryPlane &plane : plan.memory)
    result.emplace_back(static_cast<int>((static_cast<int64_t>(plane.row_bytes) + kUnit - 1) / kUnit), plane.height);
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const Plan::Part &part = plan.parts[i];
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    const int64_t pixel = int64_t{layout.step} * layout.bytes_per_container();
    for (const PixelRect &r : areas[i].rectangles()) {
      const int64_t first = int64_t{layout.first} * layout.bytes_per_container();
      result[layout.memory_plane].add({static_cast<int32_t>(r.x0 * pixel / kUnit),
                                       part.first_row + r.y0 * part.row_step,
                                       static_cast<int32_t>((first + r.x1 * pixel + kUnit - 1) / kUnit),
                                       part.first_row + (r.y1 - 1) * part.row_step + 1});
    }
  }
  return result;
}

size_t cost_of(const std::vector<CopyRect> &rects) {
  return bytes_of(rects) + rects.size() * kCopyCost;
}

}  // namespace

bool is_aligned(const FrameView &frame, const std::vector<MemoryPlane> &planes) {
  for (size_t i = 0; i < planes.size(); i++) {
    const PlaneView &view = frame.plane[i];
    if ((reinterpret_cast<uintptr_t>(view.data) | static_cast<uintptr_t>(view.pitch)) % 16) return false;
    if (std::abs(view.pitch) > INT_MAX / 2) return false;
  }
  return true;
}

std::vector<CopyRect> whole_frame(const std::vector<MemoryPlane> &planes) {
  std::vector<CopyRect> rects;
  for (size_t i = 0; i < planes.size(); i++)
    for (const MemoryPlane::Run &run : planes[i].runs) rects.push_back({i, run.begin, run.length, 0, planes[i].height});
  return rects;
}

size_t bytes_of(const std::vector<CopyRect> &rects) {
  size_t bytes = 0;
  for (const CopyRect &rect : rects) bytes += rect.bytes();
  return bytes;
}

RegionCopies copies_of_regions(const Plan &plan, const std::vector<Area> &read, const std::vector<Area> &written) {
  const std::vector<Area> up = memory_areas(plan, read), down = memory_areas(plan, written);
  RegionCopies each, around;
  const RegionCopies whole = {whole_frame(plan.memory), whole_frame(plan.memory)};
  for (size_t i = 0; i < plan.memory.size(); i++) {
    for (const PixelRect &r : up[i].rectangles()) append(plan.memory, i, r, each.up);
    for (const PixelRect &r : down[i].rectangles()) append(plan.memory, i, r, each.down);
    append(plan.memory, i, up[i].bounds(), around.up);
    append(plan.memory, i, down[i].bounds(), around.down);
  }
  const auto cost = [](const RegionCopies &copies) { return cost_of(copies.up) + cost_of(copies.down); };
  const RegionCopies &fewer = cost(each) <= cost(around) ? each : around;
  return cost(fewer) <= cost(whole) ? fewer : whole;
}

void copy_rects(const std::vector<CopyRect> &rects, const FrameView &from, const FrameView &to, cudaMemcpyKind kind,
                cudaStream_t stream) {
  const auto row = [](const FrameView &frame, const CopyRect &r, int y) {
    return frame.plane[r.plane].data + y * frame.plane[r.plane].pitch + r.begin;
  };
  const auto begin = [&](const FrameView &frame, const CopyRect &r) { return row(frame, r, r.y0); };
  const auto has_no_gaps = [&](const CopyRect &r) {
    const auto length = static_cast<ptrdiff_t>(r.length);
    return from.plane[r.plane].pitch == length && to.plane[r.plane].pitch == length;
  };
  for (size_t i = 0; i < rects.size(); i++) {
    const CopyRect &r = rects[i];
    // The runtime copies rows from top to bottom only.
    if (from.plane[r.plane].pitch < 0 || to.plane[r.plane].pitch < 0) {
      for (int y = r.y0; y < r.y1; y++)
        check(cudaMemcpyAsync(row(to, r, y), row(from, r, y), r.length, kind, stream), "cudaMemcpyAsync");
      continue;
    }
    if (!has_no_gaps(r)) {
      check(cudaMemcpy2DAsync(begin(to, r), to.plane[r.plane].pitch, begin(from, r), from.plane[r.plane].pitch,
                              r.length, r.y1 - r.y0, kind, stream),
            "cudaMemcpy2DAsync");
      continue;
    }
    // Planes behind each other are one copy. On the device they may be separate allocations, which no copy must span.
    size_t bytes = r.bytes();
    const auto follows = [&](const CopyRect &next) {
      return has_no_gaps(next) && begin(from, next) == begin(from, r) + bytes &&
             begin(to, next) == begin(to, r) + bytes;
    };
    while (kind != cudaMemcpyDeviceToDevice && i + 1 < rects.size() && follows(rects[i + 1]))
      bytes += rects[++i].bytes();
    check(cudaMemcpyAsync(begin(to, r), begin(from, r), bytes, kind, stream), "cudaMemcpyAsync");
  }
}

void copy_on_host(const std::vector<CopyRect> &rects, const FrameView &from, const FrameView &to,
                  const ParallelFor &parallel_for, const Cancellation *cancellation) {
  std::vector<int> first_piece = {0};
  for (const CopyRect &r : rects) {
    const size_t pieces = (r.bytes() + kPieceBytes - 1) / kPieceBytes;
    first_piece.push_back(first_piece.back() + static_cast<int>(std::min<size_t>(pieces, r.y1 - r.y0)));
  }
  const auto copy_piece = [&](int piece) {
    if (cancellation && cancellation->requested()) return;
    const size_t i = std::upper_bound(first_piece.begin(), first_piece.end(), piece) - first_piece.begin() - 1;
    const CopyRect &r = rects[i];
    const PlaneView &source = from.plane[r.plane], &target = to.plane[r.plane];
    const int64_t pieces = first_piece[i + 1] - first_piece[i], index = piece - first_piece[i], rows = r.y1 - r.y0;
    const int end = r.y0 + static_cast<int>((index + 1) * rows / pieces);
    for (int y = r.y0 + static_cast<int>(index * rows / pieces); y < end; y++)
      std::memcpy(target.data + y * target.pitch + r.begin, source.data + y * source.pitch + r.begin, r.length);
  };
  const int pieces = first_piece.back();
  // To wake threads takes longer than to copy a piece.
  if (parallel_for && bytes_of(rects) > kPieceBytes) return parallel_for(pieces, copy_piece);
  for (int piece = 0; piece < pieces; piece++) copy_piece(piece);
}

}  // namespace cudaconv
