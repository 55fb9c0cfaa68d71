// SPDX-License-Identifier: LGPL-2.1-or-later
//
// System memory that the GPU copies from and to by itself, because it is pinned.
#pragma once

#include <gst/gst.h>

#include <memory>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

// Allocates pinned memory, and plain memory where there is no more of it. Both are GStreamer's ordinary system memory.
// Transfer full. What it has allocated keeps the device.
GstAllocator *new_pinned_allocator(std::shared_ptr<Device> device);

// Whether it is such an allocator.
bool is_pinned_allocator(GstAllocator *allocator);

// Whether the buffer is one piece of pinned memory. Memory that others have allocated is pinned here, for as long as it
// exists, when it has come round often enough for that to pay.
bool is_pinned(GstBuffer *buffer, const std::shared_ptr<Device> &device);

// Whether buffers of this pool are nothing but plain memory, which pinned memory could replace.
bool is_plain_pool(GstBufferPool *pool);

}  // namespace cudaconv::gst
