// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/launchers.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "cuda/cuda_resources.h"
#include "cuda/device/arch.cuh"
#include "cuda/method_launchers.h"
#include "plan/area.h"
#include "plan/bilateral.h"
#include "plan/border.h"

namespace cudaconv {

namespace {

// Fills in the words that kernels of dense planes need, from the samples of three words, after which the channels
// repeat. All other fields of `part` are already set.
void fill_words(PartParams &part) {
  const int sample_bytes = part.container == Container::U8 ? 1 : 2;
  part.row_is_multiple_of_16 = part.width * part.step * sample_bytes % 16 == 0;
  for (int s = 0; s < 3 * 4 / sample_bytes; s++) {
    const ChannelParams &channel = part.channel[s % part.channels];
    const int word = s * sample_bytes / 4, shift = s * sample_bytes % 4 * 8 + channel.shift;
    const uint32_t mask = (1u << channel.depth) - 1;
    part.has_filtered |= channel.action == Action::Filter;
    part.has_unfiltered |= channel.action != Action::Filter;
    if (channel.action == Action::Filter) part.filter_bits[word] |= mask << shift;
    if (channel.action == Action::Copy) part.copy_bits[word] |= mask << shift;
    if (channel.action == Action::Fill) part.fill_word[word] |= uint32_t{channel.fill} << shift;
    part.border_word[word] |= uint32_t{channel.border_value} << shift;
  }
}

// The virtual architecture, 80 for example, of a kernel's code for the current device. 0 if there is no code and
// `may_lack`.
int architecture_of(const void *kernel, bool may_lack) {
  cudaFuncAttributes attributes;
  const cudaError_t result = cudaFuncGetAttributes(&attributes, kernel);
  if (result == cudaSuccess) return attributes.ptxVersion;
  cudaGetLastError();
  if (may_lack && (result == cudaErrorNoKernelImageForDevice || result == cudaErrorInvalidDeviceFunction)) return 0;
  throw Error(Error::Kind::NoDevice, "the CUDA device cannot run the kernels of this build: " + describe(result));
}

int columns_of_pixel(const FrameParams::Host &host) {
  return host.row / host.area->width;
}

// The tiles that hold a rectangle: where the first one begins, and how many there are across and down.
struct TileRange {
  int x, y;
  int32_t columns, rows;

  int32_t tiles() const { return columns * rows; }
};

TileRange tiles_of(const PixelRect &rect, const FrameParams::Host &host) {
  const int begin = rect.x0 * columns_of_pixel(host), end = rect.x1 * columns_of_pixel(host);
  // PartParams::first_row holds 16 bits.
  const int x = begin / host.step_x * host.step_x, y = std::min(rect.y0, UINT16_MAX) / host.step_y * host.step_y;
  return {x, y, (end - x + host.tile_width - 1) / host.tile_width,
          (rect.y1 - y + host.tile_height - 1) / host.tile_height};
}

}  // namespace

DeviceLimits current_limits() {
  static std::mutex mutex;
  static auto &known = *new std::map<int, DeviceLimits>;  // never destroyed: threads may filter while the process exits
  int device;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  const auto ask = [&](cudaDeviceAttr attribute) {
    int value;
    check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
    return value;
  };
  const DeviceLimits limits = {ask(cudaDevAttrMultiProcessorCount),
                               static_cast<size_t>(ask(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
                               static_cast<size_t>(ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor))};
  known[device] = limits;
  return limits;
}

KernelSets find_kernels() {
  architecture_of(any_method(), false);
  return {has_in(architecture_of(any_mma(), true), Feature::IntegerMma)};
}

void fill_frame(const PassQuery &query, FrameParams &p) {
  const Plan &plan = query.plan;
  const Pass &pass = query.pass();
  // Keep reads outside samples like Replicate: pixels whose window crosses an edge are copied in the end.
  p.border = plan.border == Border::Keep ? Border::Replicate : plan.border;
  p.keep_x = pass.keep_x;
  p.keep_y = pass.keep_y;
  p.sum_gain = pass.sum_gain;
  p.center_gain = pass.center_gain;
  p.sum_shift = pass.sum_shift;
  p.has_gain = pass.has_gain();
  p.norm = pass.norm;
  int roundings = 0;
  for (size_t i = 0; query.areas && i < plan.parts.size(); i++) p.host[i].area = &(*query.areas)[i];
  for (const Plan::Part &part : plan.parts) {
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    PartParams &out = p.part[p.parts++];
    out.number = static_cast<uint8_t>(p.parts - 1);
    out.width = layout.width;
    out.height = part.height;
    out.channels = layout.channels;
    out.step = layout.step;
    out.first = layout.first;
    out.container = layout.container;
    for (int c = 0; c < layout.channels; c++) {
      const ChannelLayout &channel = layout.channel[c];
      const Rounding &rounding = pass.rounding[part.plane][c];
      int r = 0;
      while (r < roundings && p.rounding[r].max != rounding.max) r++;
      if (r == roundings) p.rounding[roundings++] = rounding;
      const uint8_t range = pass.bilateral ? pass.bilateral->table[part.plane][c] : 0;
      out.channel[c] = {plan.action[part.plane][c],
                        channel.offset,
                        channel.shift,
                        channel.depth,
                        static_cast<uint8_t>(r),
                        range,
                        plan.fill[part.plane][c],
                        layout.border_value[c]};
    }
    fill_words(out);
  }
}

void fill_addresses(const PassRun &run, size_t last, FrameParams &p) {
  const Plan &plan = run.plan;
  const Pass &pass = run.pass();
  const auto buffer = [&](int which) -> const FrameView & {
    return which == Pass::kInput    ? run.buffers.source
           : which == Pass::kOutput ? run.buffers.target
                                    : run.buffers.temporary[which - 1];
  };
  for (int i = 0; i < p.parts; i++) {
    PartParams &out = p.part[i];
    const auto rows = [&](int which, int64_t *pitch) {
      const PlaneView view = part_of(buffer(which), plan, plan.parts[out.number]);
      *pitch = view.pitch;
      return view.data;
    };
    out.source = rows(pass.source, &out.source_pitch);
    out.operand = rows(pass.operand, &out.operand_pitch);
    out.copy = rows(pass.copy_source, &out.copy_pitch);
    out.target = rows(plan.passes[last].target, &out.target_pitch);
  }
}

int aligned_columns(const PartParams &part, int row) {
  constexpr int kAlignment = 16;
  const int sample_bytes = part.container == Container::U8 ? 1 : part.container == Container::Packed32 ? 4 : 2;
  const int pixel_bytes = part.step * sample_bytes, column_bytes = std::max(part.width * pixel_bytes / row, 1);
  return std::lcm(kAlignment, pixel_bytes) / column_bytes;
}

int64_t blocks_of_area(const FrameParams::Host &host) {
  constexpr size_t kMostCounted = 16;  // rectangles, since launchers ask for dozens of sizes of tiles
  const std::vector<PixelRect> &rectangles = host.area->rectangles;
  const size_t step = rectangles.size() / kMostCounted + 1;
  int64_t counted = 0, tiles = 0;
  for (size_t i = 0; i < rectangles.size(); i += step, counted++) tiles += tiles_of(rectangles[i], host).tiles();
  return counted ? tiles * static_cast<int64_t>(rectangles.size()) / counted : 0;
}

PixelRect tiled_bounds(const PartParams &part, const FrameParams::Host &host) {
  const int width = part.width, height = part.height;
  if (!host.area) return {0, 0, width, height};
  PixelRect bounds = host.area->bounds;
  if (bounds.empty()) return bounds;
  const int unit = columns_of_pixel(host);
  // A tile may end within a pixel, so one more counts.
  bounds.x0 = bounds.x0 * unit / host.tile_width * host.tile_width / unit;
  bounds.x1 =
      std::min(width, ((bounds.x1 * unit + host.tile_width - 1) / host.tile_width * host.tile_width) / unit + 1);
  bounds.y0 = bounds.y0 / host.tile_height * host.tile_height;
  bounds.y1 = std::min(height, (bounds.y1 + host.tile_height - 1) / host.tile_height * host.tile_height);
  return bounds;
}

PixelRect read_bounds(const PartParams &part, const FrameParams::Host &host, Border border, int radius_x,
                      int radius_y) {
  if (!host.area) return {0, 0, part.width, part.height};
  PixelRect r = host.area->bounds;
  if (r.empty()) return r;
  r = {r.x0 - radius_x, r.y0 - radius_y, r.x1 + radius_x, r.y1 + radius_y};
  // With other modes a sample beyond an edge may stand for any of the row or column.
  if (!reads_within_window(border)) {
    if (r.x0 < 0 || r.x1 > part.width) r.x0 = 0, r.x1 = part.width;
    if (r.y0 < 0 || r.y1 > part.height) r.y0 = 0, r.y1 = part.height;
  }
  return {std::max(r.x0, 0), std::max(r.y0, 0), std::min(r.x1, part.width), std::min(r.y1, part.height)};
}

// Lists the tiles of the areas in p.host.
static unsigned list_tiles(FrameParams &p, std::vector<uint32_t> *tiles) {
  uint32_t first = 0;  // the number of a part's first tile
  for (int i = 0; i < p.parts; i++) {
    const FrameParams::Host &host = p.host[i];
    PartParams &part = p.part[i];
    p.first_block[i] = static_cast<int32_t>(first);
    number_columns(part, static_cast<int>(pieces_of(host.row, host.step_x)), host.step_x);
    for (const PixelRect &rect : host.area->rectangles) {
      const TileRange range = tiles_of(rect, host);
      for (int t = 0; t < range.tiles(); t++) {
        const int x = range.x + t % range.columns * host.tile_width;
        const int y = range.y + t / range.columns * host.tile_height;
        tiles->push_back(first + static_cast<uint32_t>(y * part.tiles_x + x / host.step_x));
      }
    }
    first += static_cast<uint32_t>(part.height * part.tiles_x);
  }
  return static_cast<unsigned>(tiles->size());
}

unsigned cut_areas(FrameParams &p, std::vector<uint32_t> *tiles) {
  const auto add = [&](size_t sum, const FrameParams::Host &host) { return sum + host.area->rectangles.size(); };
  if (std::accumulate(p.host, p.host + p.parts, size_t{0}, add) > kMaxParts) return list_tiles(p, tiles);
  PartParams part[kMaxParts];
  int32_t parts = 0, blocks = 0;
  for (int i = 0; i < p.parts; i++)
    for (const PixelRect &rect : p.host[i].area->rectangles) {
      const TileRange range = tiles_of(rect, p.host[i]);
      PartParams &out = part[parts] = p.part[i];
      number_columns(out, range.columns, p.host[i].tile_width);
      out.first_column = range.x;
      out.first_row = static_cast<uint16_t>(range.y);
      p.first_block[parts++] = blocks;
      blocks += range.tiles();
    }
  p.parts = parts;
  std::copy(part, part + parts, p.part);
  return static_cast<unsigned>(blocks);
}

}  // namespace cudaconv
