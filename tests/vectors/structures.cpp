// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks that each structure of kernels in the dispatch table has vectors: structures VECTORS
//
// Checks this for GPUs with all kernels and for GPUs with fewer. The exit code is 77 if there is no GPU, since the
// table needs the limits of the device.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend.h"
#include "cuda/dispatch.h"
#include "plan/lower.h"
#include "vector.h"

namespace cudaconv::verify {

namespace {

// The number of vectors by name of a structure, or for methods.
using Counts = std::map<std::string, int>;

Counts count(const std::vector<Vector> &vectors, const KernelSets &kernels) {
  Counts counts;
  for (const Structure &structure : structures()) counts[structure.name] = 0;
  for (const Vector &v : vectors) {
    const std::shared_ptr<const Plan> plan = make_plan(v.settings, v.layout());
    std::set<std::string> names;
    for (const PreparedLaunch &launch : prepare(lower(*plan), kernels))
      names.insert(launch.name() ? launch.name() : "a method");
    for (const std::string &name : names) counts[name]++;
  }
  return counts;
}

int run(const char *path) {
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(std::string("cannot read ") + path);
  const std::vector<Vector> vectors = parse_vectors({std::istreambuf_iterator<char>(in), {}});
  const Counts all = count(vectors, {true}), least = count(vectors, {});
  int failures = 0;
  std::printf("vectors of each structure, with all kernels, and without matrix instructions\n");
  for (const auto &[name, n] : all) {
    std::printf("%8d %8d  %s\n", n, least.at(name), name.c_str());
    failures += n + least.at(name) == 0;
  }
  std::printf("%d structures have none\n", failures);
  return failures ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::verify

int main(int argc, char **argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: structures VECTORS");
    return cudaconv::verify::run(argv[1]);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
