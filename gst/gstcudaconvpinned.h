// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Pinned system memory, which the GPU reads and writes directly.
#pragma once

#include <gst/gst.h>

#include <memory>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

// Makes an allocator of pinned memory, or of plain memory where no more can be pinned. Both are GStreamer's ordinary
// system memory. Transfer full. Each memory holds a reference to the device.
GstAllocator *new_pinned_allocator(const std::shared_ptr<Device> &device);

// Whether `allocator` is one of new_pinned_allocator().
bool is_pinned_allocator(GstAllocator *allocator);

// Whether the buffer is one piece of pinned memory. Also pins memory that others have allocated, until it is freed,
// once it has been used often enough for that to pay.
bool is_pinned(GstBuffer *buffer, const std::shared_ptr<Device> &device);

}  // namespace cudaconv::gst
