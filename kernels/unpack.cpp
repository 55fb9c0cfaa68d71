// SPDX-License-Identifier: LGPL-2.1-or-later
#include "unpack.h"

#include <algorithm>

namespace cudaconv {

namespace {

constexpr int kPeriod = 8;  // bytes that are permuted

// Of four bit fields.
bool describe_fields(const PlaneLayout &plane, UnpackPlane *out) {
  if (plane.channels != kMaxChannels) return false;
  out->fields = true;
  out->planes = 1;
  out->chunks = (plane.width + 3) / 4;
  for (int c = 0; c < kMaxChannels; c++) {
    out->field[c] = plane.channel[c].offset;
    out->field_mask[c] = static_cast<uint16_t>((1u << plane.channel[c].depth) - 1);
  }
  return true;
}

// Of containers; out->plane lists the planes.
bool describe_bytes(const FrameLayout &layout, UnpackPlane *out) {
  int from[kPeriod];  // of byte n of the dense planes
  bool taken[kPeriod] = {};
  int bytes = 0;
  for (int i = 0; i < out->planes; i++) {
    const PlaneLayout &plane = layout.plane[out->plane[i]];
    const int size = plane.bytes_per_container();
    const bool swapped = plane.container == Container::U16BE;
    if (plane.container == Container::Packed32 || plane.container != layout.plane[out->plane[0]].container ||
        plane.height != layout.plane[out->plane[0]].height || kPeriod % (plane.step * size) != 0 ||
        kPeriod / plane.step * plane.channels != kPeriod / out->planes)
      return false;
    for (int pixel = 0; pixel < kPeriod / size / plane.step; pixel++)
      for (int c = 0; c < plane.channels; c++) {
        const int container = plane.first + pixel * plane.step + plane.channel[c].offset;
        for (int b = 0; b < size; b++, bytes++) {
          const int byte = container * size + (swapped ? size - 1 - b : b);
          if (byte >= kPeriod || taken[byte]) return false;
          taken[byte] = true;
          from[bytes] = byte;
        }
      }
  }
  for (int n = 0; n < kPeriod; n++) {
    out->unpack[n / 4] |= static_cast<uint32_t>(from[n]) << n % 4 * 4;
    out->pack[from[n] / 4] |= static_cast<uint32_t>(n) << from[n] % 4 * 4;
  }
  return true;
}

// A dense plane of what is filtered of `plane`, with the other channels beside it.
bool make_dense(const PlaneLayout &plane, const Action *action, int number, PlaneLayout *dense) {
  *dense = plane;
  dense->memory_plane = number;
  dense->step = plane.channels;
  dense->first = 0;
  dense->container = plane.container == Container::U8 ? Container::U8 : Container::U16;
  const ChannelLayout *filtered = nullptr;
  for (int c = 0; c < plane.channels; c++) {
    ChannelLayout &channel = dense->channel[c];
    channel.offset = static_cast<uint8_t>(c);
    if (action[c] != Action::Filter) continue;
    if (filtered && (filtered->depth != channel.depth || filtered->shift != channel.shift)) return false;
    filtered = &channel;
  }
  // What is not filtered is kept as it is, whatever its depth: the kernels want them alike.
  for (int c = 0; filtered && c < plane.channels; c++) {
    ChannelLayout &channel = dense->channel[c];
    if (action[c] == Action::Filter) continue;
    if (channel.depth + channel.shift > filtered->depth + filtered->shift || channel.shift < filtered->shift)
      return false;
    channel.depth = filtered->depth;
    channel.shift = filtered->shift;
  }
  return true;
}

}  // namespace

std::shared_ptr<const UnpackedPlan> unpack_plan(const Plan &plan) {
  const FrameLayout &layout = plan.layout;
  if (plan.method != Method::Auto ||
      std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.dense(); }))
    return nullptr;
  auto result = std::make_shared<UnpackedPlan>();
  for (int i = 0; i < layout.planes; i++) {
    const PlaneLayout &plane = layout.plane[i];
    UnpackPlane *const begin = result->plane, *const end = begin + result->memory_planes;
    UnpackPlane *out =
        std::find_if(begin, end, [&](const UnpackPlane &p) { return p.memory_plane == plane.memory_plane; });
    if (out == end) {
      *out = {};
      out->memory_plane = plane.memory_plane;
      out->height = plane.height;
      result->memory_planes++;
    }
    if (out->planes == 2) return nullptr;
    out->plane[out->planes++] = i;
  }
  result->plan = plan;
  result->plan.memory.assign(static_cast<size_t>(layout.planes), {});
  for (int i = 0; i < layout.planes; i++) {
    PlaneLayout &dense = result->plan.layout.plane[i];
    if (!make_dense(layout.plane[i], plan.action[i], i, &dense)) return nullptr;
    MemoryPlane &memory = result->plan.memory[static_cast<size_t>(i)];
    memory.row_bytes = static_cast<size_t>(dense.width) * dense.channels * dense.bytes_per_container();
    memory.height = dense.height;
    memory.runs = {{0, memory.row_bytes}};
  }
  for (int m = 0; m < result->memory_planes; m++) {
    UnpackPlane &out = result->plane[m];
    if (out.planes == 1 && layout.plane[out.plane[0]].container == Container::Packed32) {
      if (!describe_fields(layout.plane[out.plane[0]], &out)) return nullptr;
    } else if (!describe_bytes(layout, &out)) {
      return nullptr;
    }
    for (int i = 0; i < out.planes; i++) {
      out.row_bytes[i] = static_cast<int32_t>(result->plan.memory[static_cast<size_t>(out.plane[i])].row_bytes);
      const int of_chunk = 16 / out.planes;
      if (!out.fields) out.chunks = std::max(out.chunks, (out.row_bytes[i] + of_chunk - 1) / of_chunk);
    }
  }
  return result;
}

}  // namespace cudaconv
