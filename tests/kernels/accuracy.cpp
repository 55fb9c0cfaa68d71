// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How far masks of real numbers are from the exact result: random masks from 3x3 to 31x31 on frames of 8, 10 and 16
// bits.
//
//   accuracy [MASKS]
//
// Fails where a sample is more than one code off, or where a backend or method gives other bytes than the CPU.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "backend.h"
#include "formats.h"
#include "guarded_frame.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

struct Tally {
  uint64_t samples = 0, different = 0;  // from the exact result, rounded
  double largest = 0;                   // distance from the exact result, in codes
  uint64_t bytes_apart = 0;             // between backends and methods
};

FilterSettings random_mask(std::mt19937 &random) {
  std::uniform_real_distribution<double> real(-1, 1);
  FilterSettings s;
  s.mask = Mask::Custom;
  s.chroma = Chroma::Filter;
  s.border = static_cast<Border>(random() % 5);
  const int width = 3 + 2 * static_cast<int>(random() % 15), height = 3 + 2 * static_cast<int>(random() % 15);
  s.coefficients.width = width;
  s.coefficients.height = height;
  // Some only add, so that results are spread over the range; some also subtract.
  const double lowest = random() % 2 ? 0.0 : -0.5;
  for (int i = 0; i < width * height; i++) s.coefficients.value.push_back(std::max(lowest, real(random)));
  s.coefficients.value[0] += 0.25;
  return s;
}

int run(int masks) {
  std::string why;
  std::unique_ptr<Backend> cuda;
  if (cuda_device_count(&why) > 0)
    cuda = make_cuda_backend();
  else
    std::printf("without CUDA: %s\n", why.c_str());
  const auto cpu = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);

  bool good = true;
  for (const char *name : {"GRAY8", "I420_10LE", "GRAY16_LE"}) {
    const Format *format = nullptr;
    for (const Format &f : formats())
      if (!std::strcmp(f.name, name)) format = &f;
    if (!format) {
      std::printf("there is no format %s\n", name);
      return 1;
    }
    Tally tally;
    for (int n = 0; n < masks; n++) {
      std::mt19937 random(n);
      FilterSettings settings = random_mask(random);
      const FrameLayout layout = format->layout(37, 23);
      Random contents(n);
      GuardedFrame source(layout, {0, 3, 1, 5}), by_cpu(layout, {0, 3, 1, 5});
      source.fill(contents);
      by_cpu.fill(contents);
      const GuardedFrame before = by_cpu;
      const auto plan = make_plan(settings, layout);
      cpu->retire(cpu->submit(plan, source.view(), by_cpu.view()));

      const reference::Frame exact = reference::filter(settings, layout, reference::read(layout, source.view()));
      const reference::Frame got = reference::read(layout, by_cpu.view());
      for (int p = 0; p < layout.planes; p++)
        for (size_t c = 0; c < got.plane[p].size(); c++) {
          const reference::Channel &e = exact.plane[p][c];
          for (size_t i = 0; i < e.sample.size(); i++) {
            const int sample = got.plane[p][c].sample[i];
            tally.samples++;
            tally.different += sample != e.sample[i];
            const double want = e.real.empty() ? e.sample[i] : static_cast<double>(e.real[i]);
            tally.largest = std::max(tally.largest, std::fabs(sample - want));
          }
        }
      if (!cuda) continue;
      for (Method method :
           {Method::Auto, Method::Global, Method::Constant, Method::Tiled, Method::TiledCached, Method::Blocked}) {
        settings.method = method;
        GuardedFrame by_cuda = before;
        cuda->retire(cuda->submit(make_plan(settings, layout), source.view(), by_cuda.view()));
        for (size_t b = 0; b < by_cuda.blocks().size(); b++)
          for (size_t i = 0; i < by_cuda.blocks()[b].bytes.size(); i++)
            tally.bytes_apart += by_cuda.blocks()[b].bytes[i] != by_cpu.blocks()[b].bytes[i];
      }
    }
    std::printf("%-10s %d masks, %llu samples: at most %.4f codes from the exact result; %llu round to another code; ",
                name, masks, static_cast<unsigned long long>(tally.samples), tally.largest,
                static_cast<unsigned long long>(tally.different));
    if (cuda)
      std::printf("%llu bytes differ between CPU and CUDA\n", static_cast<unsigned long long>(tally.bytes_apart));
    else
      std::printf("CUDA not compared\n");
    good = good && tally.largest <= 1 && tally.bytes_apart == 0;
  }
  return good ? 0 : 1;
}

}  // namespace

}  // namespace cudaconv::test

int main(int argc, char **argv) {
  try {
    return cudaconv::test::run(argc > 1 ? std::atoi(argv[1]) : 60);
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
