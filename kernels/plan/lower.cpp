// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/lower.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "plan/bilateral.h"
#include "plan/border.h"

namespace cudaconv {

// ---- Dense planes ---------------------------------------------------------------------------------------------------

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
bool unpack_bytes(const FrameLayout &layout, LoweredPlan &result) {
  for (int i = 0; i < layout.planes; i++) {
    PlaneLayout &dense = result.layout.plane[i];
    dense.memory_plane = i;
    dense.step = dense.channels;
    dense.first = 0;
    dense.container = dense.container == Container::U8 ? Container::U8 : Container::U16;
    for (int c = 0; c < dense.channels; c++) dense.channel[c].offset = static_cast<uint8_t>(c);

    const auto of_memory = [&](const UnpackPlane &p) { return p.memory_plane == layout.plane[i].memory_plane; };
    auto out = std::find_if(result.packed.begin(), result.packed.end(), of_memory);
    if (out == result.packed.end()) out = result.packed.emplace(out);
    if (out->planes == 2) return false;
    out->memory_plane = layout.plane[i].memory_plane;
    out->height = layout.plane[i].height;
    out->plane[out->planes++] = i;
  }
  return std::all_of(result.packed.begin(), result.packed.end(),
                     [&](UnpackPlane &out) { return describe_bytes(layout, &out); });
}

// Makes four bit fields four planes of one channel: kernels are slower on planes where some channels are filtered and
// some are not.
bool unpack_fields(const Plan &plan, LoweredPlan &dense) {
  const PlaneLayout &plane = plan.layout.plane[0];
  if (plan.layout.planes != 1 || plane.channels != kMaxPlanes) return false;
  UnpackPlane &out = dense.packed.emplace_back();
  out.memory_plane = plane.memory_plane;
  out.height = plane.height;
  out.fields = true;
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

// Makes planes that are not dense ones that are. Returns false, with some of the plan changed, where this cannot be
// done: rows are not as UnpackPlane describes, filtered channels differ in depth, or another channel has more bits than
// they.
bool unpack(const Plan &plan, LoweredPlan &result) {
  const bool fields = plan.layout.plane[0].container == Container::Packed32;
  if (!(fields ? unpack_fields(plan, result) : unpack_bytes(plan.layout, result)) || !level_depths(result))
    return false;
  result.memory = memory_planes_of(result.layout);
  for (UnpackPlane &out : result.packed)
    for (int i = 0; i < out.planes; i++) {
      out.row_bytes[i] = static_cast<int32_t>(result.memory[static_cast<size_t>(out.plane[i])].row_bytes);
      const int of_chunk = fields ? 8 : 16 / out.planes;
      out.chunks = std::max(out.chunks, (out.row_bytes[i] + of_chunk - 1) / of_chunk);
    }
  return true;
}

// ---- Large squares --------------------------------------------------------------------------------------------------

// Divides dilations and erosions by squares that are too large for a kernel into several smaller ones, one after the
// other, whose radii add up. Only the last one keeps pixels, and takes them from the frame that the first one reads.
// Example: radius 50 is 31 and then 19.
//
// The bytes are the same as in a single pass. Two pixels of the frame are at most a + b columns and rows apart if and
// only if a pixel between them is at most a from one and b from the other. This holds beside constant samples, too, and
// on the ring that Wrap makes of a row. With the other border modes outside samples equal inside samples of the same
// window. Methods do the passes with modes that differ.
void divide_squares(Plan &plan) {
  if (!reads_within_window(plan.border) && plan.border != Border::Wrap) return;
  if (!is_uniform_dense(plan.layout, Container::U8) && !is_uniform_dense(plan.layout, Container::U16)) return;
  std::vector<Pass> passes;
  int buffers[2] = {0, 0};
  for (Pass &whole : plan.passes) {
    const bool is_square = (whole.op == Op::Minimum || whole.op == Op::Maximum) && whole.element.empty() &&
                           whole.radius_x == whole.radius_y;
    if (!is_square || whole.radius_x <= kLargestSquareRadius) {
      passes.push_back(std::move(whole));
      continue;
    }
    // Windows of the largest size take the least time for their reach.
    int left = whole.radius_x, source = whole.source;
    for (int i = 0; left > 0; i++) {
      const int radius = std::min(left, kLargestSquareRadius);
      left -= radius;
      Pass pass = whole;
      pass.radius_x = pass.radius_y = radius;
      pass.source = source;
      if (left > 0) {
        int &buffer = buffers[i % 2];
        if (!buffer) buffer = ++plan.temporaries;
        pass.target = buffer;
        pass.keep_x = pass.keep_y = 0;
        pass.in_regions = false;
      }
      if (!pass.keep_x) pass.copy_source = source;
      source = pass.target;
      passes.push_back(std::move(pass));
    }
  }
  plan.passes = std::move(passes);
}

// ---- Several passes in one launch -----------------------------------------------------------------------------------

// Whether a pass from `index` on reads frame buffer `frame`.
bool is_read(const Plan &plan, size_t index, int frame) {
  return std::any_of(plan.passes.begin() + static_cast<std::ptrdiff_t>(index), plan.passes.end(),
                     [&](const Pass &pass) { return pass.reads(frame); });
}

bool may_leave_pixels(const Pass &pass) {
  return pass.keep_x || pass.keep_y || pass.in_regions;
}

}  // namespace

Composite find_composite(const Plan &plan, size_t i) {
  const size_t left = plan.passes.size() - i;
  // At edges closings know samples inside their windows alone.
  if (left < 2 || plan.border == Border::Wrap) return {};
  const Pass &first = plan.passes[i], &second = plan.passes[i + 1];
  const Pass *third = left > 2 ? &plan.passes[i + 2] : nullptr;
  const bool dilates = first.op == Op::Maximum, erodes = first.op == Op::Minimum;
  if (!(dilates && second.op == Op::Minimum) && !(erodes && second.op == Op::Maximum)) return {};
  if (may_leave_pixels(first)) return {};
  if (third && (third->op != Op::Difference || third->copy_source != first.source || may_leave_pixels(second)))
    third = nullptr;

  Composite kind;
  if (second.source == first.source) {
    if (!third || !dilates || third->source != first.target || third->operand != second.target) return {};
    kind = {3, true, false};
  } else {
    if (second.source != first.target) return {};
    const int greater = dilates ? second.target : first.source, smaller = dilates ? first.source : second.target;
    kind = {2, false, false};
    if (third && third->source == greater && third->operand == smaller) kind = {3, false, true};
  }
  // The frame buffer between the passes is not written, so no later pass may read it.
  if (is_read(plan, i + kind.passes, first.target)) return {};
  if (kind.passes == 3 && is_read(plan, i + 3, second.target)) return {};
  return kind;
}

LoweredPlan lower(const Plan &plan) {
  LoweredPlan lowered = {plan, {}};
  if (plan.method != Method::Auto) return lowered;
  if (!plan.layout.dense() && !unpack(plan, lowered)) lowered = {plan, {}};
  divide_squares(lowered);
  return lowered;
}

}  // namespace cudaconv
