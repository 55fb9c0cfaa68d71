// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks one vector on one backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "vector.h"

namespace cudaconv::verify {

struct Outcome {
  std::string wrong;             // the fault; empty: none
  std::vector<uint8_t> visible;  // the visible bytes of the result
};

class Checker {
 public:
  // Frames are filtered on the calling thread's CUDA device, if the backend uses one.
  explicit Checker(std::unique_ptr<Backend> backend);
  ~Checker();

  const Backend &backend() const { return *backend_; }

  // Filters and compares. Does not throw for faults of a vector: a refused setting counts as wrong.
  Outcome check(const Vector &vector);

 private:
  struct Device;

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;  // nullptr: frames are in host memory
};

}  // namespace cudaconv::verify
