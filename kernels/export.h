// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Marks the symbols of kernels/ that the plugin exports for cudaconv-verify. All others are hidden.
#define CUDACONV_EXPORT __attribute__((visibility("default")))
