// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for medians by networks.
#include "cuda/median/median_network.cuh"

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

using namespace median;

namespace {

template <typename Shape>
KernelLaunch<U8x4Params> launch_of(int step, U8x4Params &p) {
  p.tile = make_u8x4_tile(Shape::kWidth, Shape::kHeight, Shape::kSize / 2, Shape::kSize / 2, step);
  const size_t rows = Shape::kHeight + Shape::kSize - 1, pitch = p.tile.whole_row();
  const size_t pairs = FourMedians<Shape>::kPairs * FourMedians<Shape>::kPair;
  const size_t bytes = sizeof(uint32_t) * (rows * pitch + Shape::kHeight * Shape::kWidth + pairs * Shape::kThreads);
  return {network_median_kernel<Shape>, cut_u8x4_tiles(p, p.tile), Shape::kThreads, bytes};
}

template <bool kWords>
KernelLaunch<U8x4Params> choose_size(int size, int step, U8x4Params &p) {
  if (size == 7) return launch_of<NetworkMedianShape<7, kWords>>(step, p);
  if (size == 9) return launch_of<NetworkMedianShape<9, kWords>>(step, p);
  if (size == 11) return launch_of<NetworkMedianShape<11, kWords>>(step, p);
  if (size == 13) return launch_of<NetworkMedianShape<13, kWords>>(step, p);
  if (size == 15) return launch_of<NetworkMedianShape<15, kWords>>(step, p);
  return {};
}

KernelLaunch<U8x4Params> choose(const PassQuery &query, U8x4Params &p) {
  const Pass &pass = query.pass();
  const int step = fill_u8x4s(query, p);
  if (!step || pass.op != Op::Median || pass.width() != pass.height() || pass.copy_source != pass.source) return {};
  return p.sample_bits ? choose_size<true>(pass.width(), step, p) : choose_size<false>(pass.width(), step, p);
}

}  // namespace

Prepared prepare_median_network(const PassQuery &query) {
  return prepare_chosen<U8x4Params>(query, choose);
}

}  // namespace cudaconv
