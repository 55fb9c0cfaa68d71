// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers of the kernels for mosaics.
#include "cuda/mosaic/mosaic.cuh"

#include <algorithm>

#include "cuda/launchers.h"

namespace cudaconv {

namespace {

using MosaicKernel = void (*)(MosaicParams);

void enqueue_tiles(const PassRun &run, const char *name, MosaicKernel kernel, size_t shared_bytes) {
  MosaicParams p = {};
  fill_frame(run, p);
  std::copy(run.buffers.mosaic->begin(), run.buffers.mosaic->end(), p.tiles);
  int32_t blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    p.first_block[i] = blocks;
    blocks += p.tiles[i].tiles;
  }
  if (!blocks) return;
  const auto enqueue_all = [=, boxes = run.buffers.mosaic_boxes, stream = run.stream](const uint32_t *) {
    MosaicParams with_boxes = p;
    with_boxes.box = boxes ? *boxes : nullptr;
    enqueue(name, kernel, dim3(static_cast<unsigned>(blocks)), dim3(kMosaicThreads), shared_bytes, stream, with_boxes);
  };
  if (run.deferred)
    run.deferred->add(enqueue_all);
  else
    enqueue_all(nullptr);
}

}  // namespace

int takes_mosaic(const PassQuery &query) {
  return query.pass().op == Op::Mosaic && has_mosaic_tiles(query.plan);
}

void launch_mosaic(const PassRun &run) {
  const bool words = run.plan.layout.plane[0].container == Container::U16;
  enqueue_tiles(run, "mosaic", words ? mosaic_kernel<uint16_t> : mosaic_kernel<uint8_t>,
                kMosaicSumBytes + kMosaicMeanBytes);
}

void launch_mosaic_samples(const PassRun &run) {
  enqueue_tiles(run, "mosaic_samples", mosaic_samples_kernel, sizeof(uint32_t) * kMaxChannels * kMosaicThreads / 32);
}

}  // namespace cudaconv
