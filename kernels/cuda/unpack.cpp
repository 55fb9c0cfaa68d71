// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/unpack.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cudaconv {

namespace {

constexpr int kPeriod = 8;  // bytes that are permuted together

// Describes planes of 8- or 16-bit containers as a permutation; out->plane lists the planes. Returns false if they are
// not one.
bool describe_bytes(const FrameLayout &layout, UnpackPlane *out) {
  int from[kPeriod];  // by byte of the dense planes, where it comes from
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

// Gives samples that are not filtered the depth and rounding of those that are, since the kernels want them equal and
// copy the others unchanged. Returns false where filtered samples differ in depth, or other samples have more bits than
// they.
bool level_depths(Plan &plan) {
  std::vector<std::pair<int, int>> filtered, others;  // plane and channel
  for (int i = 0; i < plan.layout.planes; i++)
    for (int c = 0; c < plan.layout.plane[i].channels; c++)
      (plan.action[i][c] == Action::Filter ? filtered : others).emplace_back(i, c);
  if (filtered.empty()) return true;
  const auto [plane, number] = filtered[0];
  const ChannelLayout like = plan.layout.plane[plane].channel[number];
  for (const auto &[i, c] : filtered) {
    const ChannelLayout &channel = plan.layout.plane[i].channel[c];
    if (channel.depth != like.depth || channel.shift != like.shift) return false;
  }
  for (const auto &[i, c] : others) {
    ChannelLayout &channel = plan.layout.plane[i].channel[c];
    if (channel.depth + channel.shift > like.depth + like.shift || channel.shift < like.shift) return false;
    channel.depth = like.depth;
    channel.shift = like.shift;
    for (Pass &pass : plan.passes) pass.rounding[i][c] = pass.rounding[plane][number];
  }
  return true;
}

// Makes each plane a dense plane.
bool unpack_bytes(const Plan &plan, UnpackedPlan &result) {
  const FrameLayout &layout = plan.layout;
  for (int i = 0; i < layout.planes; i++) {
    PlaneLayout &dense = result.plan.layout.plane[i];
    dense.memory_plane = i;
    dense.step = dense.channels;
    dense.first = 0;
    dense.container = dense.container == Container::U8 ? Container::U8 : Container::U16;
    for (int c = 0; c < dense.channels; c++) dense.channel[c].offset = static_cast<uint8_t>(c);

    UnpackPlane *const begin = result.plane, *const end = begin + result.memory_planes;
    UnpackPlane *const out =
        std::find_if(begin, end, [&](const UnpackPlane &p) { return p.memory_plane == layout.plane[i].memory_plane; });
    if (out == end) result.memory_planes++;
    if (out->planes == 2) return false;
    out->memory_plane = layout.plane[i].memory_plane;
    out->height = layout.plane[i].height;
    out->plane[out->planes++] = i;
  }
  return std::all_of(result.plane, result.plane + result.memory_planes,
                     [&](UnpackPlane &out) { return describe_bytes(layout, &out); });
}

// Makes four bit fields four planes of one channel: kernels are slower on planes where some channels are filtered and
// some are not.
bool unpack_fields(const Plan &plan, UnpackedPlan &result) {
  const PlaneLayout &plane = plan.layout.plane[0];
  if (plan.layout.planes != 1 || plane.channels != kMaxPlanes) return false;
  result.memory_planes = 1;
  UnpackPlane &out = result.plane[0];
  out.memory_plane = plane.memory_plane;
  out.height = plane.height;
  out.fields = true;
  Plan &dense = result.plan;
  dense.layout.planes = out.planes = kMaxPlanes;
  dense.parts.clear();
  for (int c = 0; c < kMaxPlanes; c++) {
    const ChannelLayout &channel = plane.channel[c];
    out.plane[c] = c;
    out.field[c] = channel.offset;
    out.field_mask[c] = static_cast<uint16_t>((1u << channel.depth) - 1);
    PlaneLayout &to = dense.layout.plane[c];
    to = plane;
    to.channels = to.step = 1;
    to.first = 0;
    to.memory_plane = c;
    to.container = Container::U16;
    to.channel[0] = channel;
    to.channel[0].offset = 0;
    to.border_value[0] = plane.border_value[c];
    dense.action[c][0] = plan.action[0][c];
    dense.fill[c][0] = plan.fill[0][c];
    for (size_t i = 0; i < plan.passes.size(); i++) dense.passes[i].rounding[c][0] = plan.passes[i].rounding[0][c];
    for (Plan::Part part : plan.parts) {
      part.plane = c;
      dense.parts.push_back(part);
    }
  }
  for (Pass &pass : dense.passes)
    if (pass.bilateral) pass.bilateral = std::make_shared<BilateralTables>(pass.bilateral->spread());
  return true;
}

}  // namespace

std::shared_ptr<const UnpackedPlan> unpack_plan(const Plan &plan) {
  const FrameLayout &layout = plan.layout;
  if (plan.method != Method::Auto ||
      std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.dense(); }))
    return nullptr;
  auto result = std::make_shared<UnpackedPlan>();
  result->plan = plan;
  const bool fields = layout.plane[0].container == Container::Packed32;
  if (!(fields ? unpack_fields(plan, *result) : unpack_bytes(plan, *result)) || !level_depths(result->plan))
    return nullptr;
  result->plan.memory = memory_planes_of(result->plan.layout);
  for (int m = 0; m < result->memory_planes; m++) {
    UnpackPlane &out = result->plane[m];
    for (int i = 0; i < out.planes; i++) {
      out.row_bytes[i] = static_cast<int32_t>(result->plan.memory[static_cast<size_t>(out.plane[i])].row_bytes);
      const int of_chunk = fields ? 8 : 16 / out.planes;
      out.chunks = std::max(out.chunks, (out.row_bytes[i] + of_chunk - 1) / of_chunk);
    }
  }
  return result;
}

}  // namespace cudaconv
