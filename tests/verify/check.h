// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One vector on one backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "vector.h"

namespace cudaconv::verify {

struct Outcome {
  std::string wrong;             // what is; empty: nothing
  std::vector<uint8_t> visible;  // bytes of the result
};

class Checker {
 public:
  // Filters on the calling thread's device, if on any.
  explicit Checker(std::unique_ptr<Backend> backend);
  ~Checker();

  const Backend &backend() const { return *backend_; }

  // Throws nothing that the vector is to blame for: a setting that is refused is wrong.
  Outcome check(const Vector &vector);

 private:
  struct Device;

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;  // nullptr: frames are in host memory
};

}  // namespace cudaconv::verify
