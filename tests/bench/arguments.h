// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the benchmarks of pipelines share: their arguments, and their main().
#pragma once

#include <gst/gst.h>

#include <cstdio>
#include <cstring>
#include <exception>

// The value of an argument that begins with this name, such as "--seconds="; null if the argument has another name.
inline const char *value_of(const char *argument, const char *name) {
  const size_t length = std::strlen(name);
  return std::strncmp(argument, name, length) ? nullptr : argument + length;
}

// Calls run() once GStreamer is initialised. Exceptions are printed.
inline int run_benchmark(int argc, char **argv, int (*run)(int, char **)) {
  gst_init(&argc, &argv);
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
