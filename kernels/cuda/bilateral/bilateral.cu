// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for Op::Bilateral.
#include "cuda/bilateral/bilateral.cuh"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

namespace bilateral {

namespace {

// Fills in the rings. A pixel and the one opposite are a pair. The tile has been filled in.
void fill_rings(const Pass &pass, TileParams &p) {
  std::map<int32_t, std::vector<uint32_t>> pairs;  // by the weight of the distance
  const int pitch = pitch_of(p.tile);
  for (int y = 0; y <= pass.radius_y; y++)
    for (int x = y ? -pass.radius_x : 1; x <= pass.radius_x; x++) {
      const int32_t weight = pass.mask[0].value[(y + pass.radius_y) * pass.width() + x + pass.radius_x];
      const auto offset = static_cast<uint32_t>(y * pitch + x * p.tile.step);
      if (weight) pairs[weight].push_back((offset & 0xffff) | (0 - offset) << 16);
    }
  constexpr size_t kMost = 128;  // pairs of a ring: sums of 256 products fit 32 bits
  uint32_t *to = p.pair;
  for (const auto &[weight, list] : pairs) {
    to = std::copy(list.begin(), list.end(), to);
    for (size_t left = list.size(), count; left; left -= count) {
      count = std::min(left, kMost);
      p.ring[p.rings++] = {static_cast<int32_t>(count), static_cast<uint32_t>(weight)};
    }
  }
}

template <typename Windows>
KernelLaunch<TileParams> launch_of(const Pass &pass, int step, TileParams &p) {
  p.tile = make_u8x4_tile(kWidth, kHeight, pass.radius_x, pass.radius_y, step);
  const size_t bytes = Windows::Table::kBytes + sizeof(uint32_t) * (kHeight + 2 * pass.radius_y) * pitch_of(p.tile);
  if (bytes > current_limits().block_bytes) return {};
  fill_rings(pass, p);
  return {tile_kernel<Windows>, cut_u8x4_tiles(p, p.tile), kThreads, bytes};
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<TileParams> choose(const PassQuery &query, TileParams &p) {
  const Pass &pass = query.pass();
  const bool words = is_uniform_dense(query, Container::U16);
  if (pass.op != Op::Bilateral || pass.weighs_alpha || (!words && !is_uniform_dense(query)) ||
      pass.copy_source != pass.source)
    return {};
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  const RangeTable &table = pass.bilateral->of_depth(sample.depth);
  p.shift = table.shift;
  p.last = static_cast<int>(table.entry.size()) - 1;
  if (!words) {
    for (int i = 0; i < 256; i++) p.entry[i] = range_weight(table.entry.data(), table.shift, p.last, i);
    p.sample_bits = ~0u;
    return launch_of<FourWindows>(pass, 1, p);
  }
  std::copy(table.entry.begin(), table.entry.end(), p.entry);
  p.sample_shift = sample.shift;
  p.max = (1 << sample.depth) - 1;
  p.sample_bits = static_cast<uint32_t>(p.max << sample.shift) * 0x10001u;
  return launch_of<TwoWindows>(pass, halve_pixels(p), p);
}

}  // namespace

}  // namespace bilateral

Prepared prepare_bilateral(const PassQuery &query) {
  return prepare_chosen<bilateral::TileParams>(query, bilateral::choose);
}

void launch_bilateral_alpha(const PassRun &run) {
  const Pass &pass = run.pass();
  bilateral::AlphaParams p = {};
  fill_frame(run, p);
  p.alpha_channel = alpha_of(run.plan.layout).channel;
  for (size_t i = 0; i < run.plan.parts.size(); i++)
    p.alpha[i] = {static_cast<int32_t>(alpha_part(run.plan, i)), alpha_grid(run.plan, i)};
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  fill_range(pass, p.range);
  std::copy(pass.mask[0].value.begin(), pass.mask[0].value.end(), p.space);
  const unsigned blocks = cut_tiles(p, bilateral::kSamplesWidth, bilateral::kSamplesHeight);
  PassRun named = run;
  named.name = "bilateral_alpha";
  enqueue(named,
          KernelLaunch<bilateral::AlphaParams>{bilateral::alpha_kernel, blocks,
                                               dim3(bilateral::kSamplesWidth * bilateral::kSamplesHeight), 0},
          p);
}

}  // namespace cudaconv
