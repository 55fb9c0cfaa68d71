// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/launchers.h"

#include <algorithm>
#include <cmath>

#include "cuda/cuda_resources.h"
#include "cuda/device/arch.cuh"

namespace cudaconv {

namespace {

// Fills in the words that kernels of dense planes need; all other fields of `part` are already set.
void fill_words(PartParams &part) {
  const int sample_bytes = part.container == Container::U8 ? 1 : 2;
  part.row_is_multiple_of_16 = part.width * part.step * sample_bytes % 16 == 0;
  for_samples_of_words(part, [&](const ChannelParams &channel, int word, int shift) {
    const uint32_t mask = (1u << channel.depth) - 1;
    part.has_filtered |= channel.action == Action::Filter;
    part.has_unfiltered |= channel.action != Action::Filter;
    if (channel.action == Action::Filter) part.filter_bits[word] |= mask << shift;
    if (channel.action == Action::Copy) part.copy_bits[word] |= mask << shift;
    if (channel.action == Action::Fill) part.fill_word[word] |= uint32_t{channel.fill} << shift;
    part.border_word[word] |= uint32_t{channel.border_value} << shift;
  });
}

// The virtual architecture, such as 80, from which the code of a kernel for the current device was compiled.
int architecture_of(const void *kernel) {
  cudaFuncAttributes attributes;
  const cudaError_t result = cudaFuncGetAttributes(&attributes, kernel);
  if (result == cudaSuccess) return attributes.ptxVersion;
  cudaGetLastError();
  throw Error(Error::Kind::NoDevice, std::string("the CUDA device cannot run the kernels of this build: ") +
                                         cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
}

}  // namespace

KernelSets find_kernels() {
  architecture_of(any_method());
  return {has_in(architecture_of(any_mma()), Feature::IntegerMma),
          has_in(architecture_of(any_sliding()), Feature::MaskKernels)};
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
  for (const Plan::Part &part : plan.parts) {
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    PartParams &out = p.part[p.parts++];
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
      out.channel[c] = {plan.action[part.plane][c], channel.offset,           channel.shift,         channel.depth,
                        static_cast<uint8_t>(r),    plan.fill[part.plane][c], layout.border_value[c]};
    }
    fill_words(out);
  }
}

void fill_frame(const PassRun &run, size_t last, FrameParams &p) {
  fill_frame(static_cast<const PassQuery &>(run), p);
  const Plan &plan = run.plan;
  const Pass &pass = run.pass();
  const auto buffer = [&](int which) -> const FrameView & {
    return which == Pass::kInput    ? run.buffers.source
           : which == Pass::kOutput ? run.buffers.target
                                    : run.buffers.temporary[which - 1];
  };
  for (int i = 0; i < p.parts; i++) {
    const Plan::Part &part = plan.parts[i];
    PartParams &out = p.part[i];
    const auto rows = [&](int which, int64_t *pitch) {
      const PlaneView &view = buffer(which).plane[plan.layout.plane[part.plane].memory_plane];
      *pitch = view.pitch * part.row_step;
      return view.data + part.first_row * view.pitch;
    };
    out.source = rows(pass.source, &out.source_pitch);
    out.subtrahend = rows(pass.subtrahend, &out.subtrahend_pitch);
    out.copy = rows(pass.copy_source, &out.copy_pitch);
    out.target = rows(plan.passes[last].target, &out.target_pitch);
    if (run.areas) p.host[i].area = (*run.areas)[i];
  }
}

PartArea::PartArea(const Area &area) : width(area.width()), rectangles(area.rectangles()), bounds(area.bounds()) {
  for (const PixelRect &r : rectangles) {
    pixels += static_cast<double>(r.pixels());
    widths += r.width();
    heights += r.height();
  }
}

// The estimate: a rectangle at any position reaches into 1 + (width - 1) / tile width columns of tiles on average. In
// each, tiles begin with its first row, so that half a tile on average lies below its last.
int64_t blocks_of_area(const FrameParams::Host &host) {
  const PartArea &area = *host.area;
  const double width = static_cast<double>(host.tile_width) * area.width / host.row, height = host.tile_height;
  return static_cast<int64_t>(std::ceil(area.pixels / (width * height) + area.widths / width / 2 +
                                        area.heights / height + static_cast<double>(area.rectangles.size()) / 2));
}

size_t DeferredLaunches::list_tiles(FrameParams &p) {
  struct Rows {
    int begin, end;
  };
  const size_t before = tiles_.size();
  std::vector<std::vector<Rows>> needed;  // by columns of tiles
  uint32_t first_number = 0;
  for (int i = 0; i < p.parts; i++) {
    const FrameParams::Host &host = p.host[i];
    const int columns = p.part[i].tiles_x;
    const int64_t unit = host.row / host.area->width;  // units of a pixel
    needed.assign(columns, {});
    for (const PixelRect &r : host.area->rectangles) {
      const auto right = static_cast<int>((r.x1 * unit + host.tile_width - 1) / host.tile_width);
      for (auto column = static_cast<int>(r.x0 * unit / host.tile_width); column < right; column++)
        needed[column].push_back({r.y0, r.y1});
    }
    for (int column = 0; column < columns; column++) {
      std::vector<Rows> &rows = needed[column];
      std::sort(rows.begin(), rows.end(), [](const Rows &a, const Rows &b) { return a.begin < b.begin; });
      int done = 0;  // rows above this one lie in tiles
      for (const Rows &r : rows)
        while (done < r.end) {
          if (done < r.begin) done = r.begin / p.list_step * p.list_step;
          tiles_.push_back(first_number + static_cast<uint32_t>(done / p.list_step * columns + column));
          done += host.tile_height;
        }
    }
    p.first_block[i] = static_cast<int32_t>(first_number);
    first_number += static_cast<uint32_t>((p.part[i].height + p.list_step - 1) / p.list_step * columns);
  }
  // Row by row, because neighbours read the same halos.
  std::sort(tiles_.begin() + static_cast<ptrdiff_t>(before), tiles_.end());
  return tiles_.size() - before;
}

}  // namespace cudaconv
