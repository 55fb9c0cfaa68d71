// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Replaces the CUDA backend in a build without CUDA.
#include "backend.h"

namespace cudaconv {

namespace {
constexpr char kWhy[] = "this cudaconv was built without CUDA";
}

std::unique_ptr<Backend> make_cuda_backend(void *, ParallelFor) {
  throw Error(Error::Kind::NoDevice, kWhy);
}

std::string why_no_context(int) {
  return kWhy;
}

int cuda_device_count(std::string *why) {
  if (why) *why = kWhy;
  return 0;
}

void *new_pinned_memory(size_t) {
  return nullptr;
}
void delete_pinned_memory(void *) {}
bool pin_memory(void *, size_t) {
  return false;
}
void unpin_memory(void *) {}

}  // namespace cudaconv
