// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Marks what the plugin's shared library exports of kernels/, for cudaconv-verify. Everything else is hidden.
#define CUDACONV_EXPORT __attribute__((visibility("default")))
