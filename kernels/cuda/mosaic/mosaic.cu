// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for mosaics.
#include "cuda/mosaic/mosaic.cuh"

#include <algorithm>
#include <initializer_list>

#include "cuda/method_launchers.h"

namespace cudaconv {

using namespace mosaic;

namespace {

// Enqueues a launch for each of the steps.
void enqueue_tiles(const PassRun &run, const char *name, void (*kernel)(MosaicParams),
                   std::initializer_list<MosaicSteps> steps, size_t shared_bytes) {
  MosaicParams p = {};
  fill_frame(run, p);
  std::copy(run.buffers.mosaic->begin(), run.buffers.mosaic->end(), p.tiles);
  p.box = run.buffers.mosaic_boxes;
  p.sums = static_cast<uint32_t *>(run.buffers.scratch);
  const unsigned blocks = number_blocks(p, [&](int i) { return BlockCount{p.tiles[i].tiles * p.tiles[i].slices, 1}; });
  for (const MosaicSteps step : steps) {
    p.steps = step;
    enqueue(name, kernel, blocks, kMosaicThreads, shared_bytes, *run.launches, p);
  }
}

template <typename Sample>
void enqueue_dense(const PassRun &run) {
  constexpr size_t kBytes = kMosaicSumBytes + kMosaicMeanBytes;
  if (has_slices(*run.buffers.mosaic))
    enqueue_tiles(run, "mosaic", mosaic_kernel<Sample>, {MosaicSteps::Sums, MosaicSteps::Means}, kBytes);
  else
    enqueue_tiles(run, "mosaic", mosaic_kernel<Sample>, {MosaicSteps::All}, kBytes);
}

}  // namespace

Prepared prepare_mosaic(const PassQuery &query) {
  if (query.pass().op != Op::Mosaic || !has_mosaic_tiles(query.plan)) return {};
  const bool words = query.plan.layout.plane[0].container == Container::U16;
  return {1, words ? enqueue_dense<uint16_t> : enqueue_dense<uint8_t>, mosaic_sum_bytes(query.plan, query.pass())};
}

void launch_mosaic_samples(const PassRun &run) {
  enqueue_tiles(run, "mosaic_samples", mosaic_kernel<void>, {MosaicSteps::All},
                sizeof(uint32_t) * kMaxChannels * kMosaicThreads / 32);
}

}  // namespace cudaconv
