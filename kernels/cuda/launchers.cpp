// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/launchers.h"

#include "cuda/cuda_resources.h"

namespace cudaconv {

namespace {

// Fills in the masks of a row's words that kernels of dense planes need; all other fields of `part` are already set.
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

// The virtual architecture of the code of a kernel that the current device runs, such as 80.
int architecture_of(const void *kernel) {
  cudaFuncAttributes attributes;
  const cudaError_t result = cudaFuncGetAttributes(&attributes, kernel);
  if (result == cudaSuccess) return attributes.ptxVersion;
  cudaGetLastError();
  throw Error(Error::Kind::NoDevice, std::string("the CUDA device cannot run the kernels of this build: ") +
                                         cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
}

}  // namespace

bool leaves_pixels(const PassRun &run, const Pass &pass) {
  return pass.keep_x || pass.keep_y || (run.buffers.regions->active && pass.in_regions);
}

KernelSets find_kernels() {
  architecture_of(any_method());
  return {architecture_of(any_mma()) >= 80, architecture_of(any_sliding()) >= 90};
}

void fill_frame(const PassQuery &query, FrameParams &p) {
  const Plan &plan = query.plan;
  const Pass &pass = query.pass();
  // Windows that cross an edge have kept pixels for results.
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
  const Regions &regions = *run.buffers.regions;
  p.in_regions = regions.active && pass.in_regions;
  p.ellipse = regions.ellipse;
  p.invert = regions.invert;
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
    out.input = rows(Pass::kInput, &out.input_pitch);
    out.target = rows(plan.passes[last].target, &out.target_pitch);
    if (p.in_regions) {
      const FrameBuffers::PartRegions &here = run.buffers.part_regions[i];
      out.region = run.buffers.region + here.first;
      out.regions = here.count;
    }
  }
}

}  // namespace cudaconv
