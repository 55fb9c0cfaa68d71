// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Measures how far results are from the exact value. Masks: random masks of real numbers, from 3x3 to 31x31, on frames
// of 8, 10 and 16 bits. Edges: huge and tiny coefficients, divisors and amounts, which must be exact if they are
// integers, else within one code or refused. Blurs: Gaussians and unsharp of any sigma, by border and depth.
//
//   accuracy [MASKS] [EDGES]
//
// Fails if a sample is more than one code off, or if a backend or method gives other bytes than the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend.h"
#include "cases.h"
#include "formats.h"
#include "guarded_frame.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

struct Tally {
  uint64_t samples = 0, different = 0;  // samples that differ from the rounded exact result
  double largest = 0;                   // largest distance from the exact result, in codes
  uint64_t bytes_apart = 0;             // bytes that differ between backends and methods
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
  // Half of the masks only add, so that results are spread over the range. The others also subtract.
  const double lowest = random() % 2 ? 0.0 : -0.5;
  for (int i = 0; i < width * height; i++) s.coefficients.value.push_back(std::max(lowest, real(random)));
  s.coefficients.value[0] += 0.25;
  return s;
}

// ---- Settings at the limits of numbers ------------------------------------------------------------------------------

using Engine = std::mt19937_64;

int below(Engine &random, int n) {
  return static_cast<int>(random() % static_cast<uint64_t>(n));
}

double sign(Engine &random) {
  return random() % 2 ? 1 : -1;
}

// A random integer of up to `bits` bits; half of them are close to a power of two.
double integer(Engine &random, int bits) {
  const double power = std::ldexp(1, below(random, bits + 1));
  return random() % 2 ? power + below(random, 3) - 1
                      : std::floor(power * (1 + static_cast<double>(random() >> 11) / 0x1p53));
}

double real(Engine &random, int decades) {
  const double decade = std::pow(10.0, below(random, 2 * decades + 1) - decades);
  return decade * (random() % 4 ? 1 + static_cast<double>(random() >> 11) / 0x1p50 : 1);
}

FilterSettings edge_settings(Engine &random, int depth) {
  static const Mask named[] = {Mask::Box3,    Mask::Box5,   Mask::Box,     Mask::Gauss3,  Mask::Gauss5,
                               Mask::Gauss9,  Mask::Gauss,  Mask::Gauss,   Mask::Unsharp, Mask::Unsharp,
                               Mask::Sharpen, Mask::Emboss, Mask::Log5,    Mask::SobelX,  Mask::Sobel,
                               Mask::ScharrY, Mask::Scharr, Mask::Prewitt, Mask::Roberts, Mask::Kirsch};
  FilterSettings s;
  s.chroma = Chroma::Filter;
  s.mask = random() % 2 ? Mask::Custom : named[random() % (sizeof(named) / sizeof(named[0]))];
  s.border = random() % 2 ? Border::Replicate : Border::Constant;
  s.negative = static_cast<Negative>(below(random, 3));
  s.magnitude = random() % 2 ? Magnitude::L1 : Magnitude::L2;
  switch (below(random, 5)) {
    case 0:
      s.bias = sign(random) * (1 - below(random, 2) * 0.5);
      break;
    case 1:
      s.bias = std::ldexp(below(random, 2 << depth) - (1 << depth), -depth);
      break;
    case 2:
      s.bias = static_cast<double>(random() >> 11) / 0x1p52 - 1;
      break;
  }
  switch (below(random, 5)) {
    case 0:
      s.divisor = sign(random) * integer(random, 40);
      break;
    case 1:
      s.divisor = sign(random) * real(random, random() % 4 ? 9 : 300);
      break;
    case 2:
      s.divisor = sign(random) * (below(random, 40) / 4.0 + 0.25);
      break;
  }
  if (s.mask == Mask::Gauss || s.mask == Mask::Unsharp) {
    s.size = 1 + 2 * below(random, 8);
    if (random() % 2) s.sigma = std::min(real(random, 3), 40.0);
    s.amount = sign(random) * real(random, 7);
  }
  if (s.mask == Mask::Box) s.size = 1 + 2 * below(random, 20);
  if (s.mask != Mask::Custom) return s;

  Coefficients &c = s.coefficients;
  c.width = 1 + 2 * below(random, 3);
  c.height = 1 + 2 * below(random, 3);
  if (random() % 20 == 0) c.width = c.height = 31;
  const int kind = below(random, 4), bits = below(random, 40), decades = 1 + below(random, 12);
  std::vector<double> row;
  for (int i = 0; i < c.width; i++) row.push_back(sign(random) * integer(random, bits / 2));
  for (int j = 0; j < c.height; j++) {
    const double column = integer(random, bits / 2);
    for (int i = 0; i < c.width; i++) {
      if (kind == 0) c.value.push_back(sign(random) * integer(random, bits));
      if (kind == 1) c.value.push_back(column * row[i]);  // a separable mask
      if (kind == 2) c.value.push_back(sign(random) * real(random, decades));
      if (kind == 3) c.value.push_back(random() % 2 ? sign(random) * integer(random, bits) : real(random, 2));
    }
  }
  // Divisors are close to the sum, so that results are within the range.
  double sum = 0;
  for (double v : c.value) sum += std::fabs(v);
  if (random() % 2) s.divisor = std::ceil(sum) + below(random, 3);
  return s;
}

// Whether all coefficients are integers whose results are promised to be exact.
bool is_exact(const FilterSettings &s) {
  return std::all_of(s.coefficients.value.begin(), s.coefficients.value.end(),
                     [](double v) { return std::fabs(v) < 1 << 30; });
}

bool edges(int count, Backend &cpu, Backend *cuda) {
  int exact = 0, near = 0, refused = 0, wrong = 0, apart = 0;
  double largest = 0;
  const char *const names[] = {"GRAY8", "I420_10LE", "P012_LE", "GRAY16_LE"};
  for (int n = 0; n < count; n++) {
    Engine random(n);
    const Format &format = format_named(names[n % 4]);
    FrameLayout layout = format.layout(5, 4);
    for (int p = 0; p < layout.planes; p++)
      layout.plane[p].border_value[0] = (1 << layout.plane[p].channel[0].depth) - 1;
    FilterSettings settings = edge_settings(random, layout.plane[0].channel[0].depth);
    GuardedFrame source(layout, {0, 0, 1, 0}), got(layout, {0, 0, 1, 0});
    source.fill(random);
    if (n % 3 == 0)  // all samples have the largest value: sums reach their bounds
      for (GuardedFrame::Block &block : source.blocks()) std::fill(block.bytes.begin(), block.bytes.end(), 0xff);
    if (n % 3 == 1)
      for (GuardedFrame::Block &block : source.blocks())
        for (size_t i = 0; i < block.bytes.size(); i++) block.bytes[i] = random() / 2 % 2 ? 0xff : 0;
    try {
      cpu.retire(cpu.submit(make_plan(settings, layout), source.view(), got.view()));
    } catch (const Error &error) {
      refused++;
      // An error must name a setting; other errors fail the test.
      const std::string text = error.what();
      const bool named = text.find("coefficients") != text.npos || text.find("divisor=") != text.npos ||
                         text.find("amount=") != text.npos || text.find("sigma=") != text.npos;
      if (error.kind() == Error::Kind::Settings && named) continue;
      if (wrong++ < 10) std::printf("FAILED edge %d: refused with \"%s\"\n", n, error.what());
      continue;
    }
    const reference::Frame want = reference::filter(settings, layout, reference::read(layout, source.view()));
    const reference::Frame have = reference::read(layout, got.view());
    bool right = true, integers = true;
    double off = 0;
    for (int p = 0; p < layout.planes; p++)
      for (size_t c = 0; c < have.plane[p].size(); c++) {
        const reference::Channel &e = want.plane[p][c];
        integers = e.real.empty();
        for (size_t i = 0; i < e.sample.size(); i++) {
          const double distance =
              std::fabs(have.plane[p][c].sample[i] - static_cast<double>(integers ? e.sample[i] : e.real[i]));
          right = right && distance <= (integers && is_exact(settings) ? 0 : 1.000001);
          off = std::max(off, distance);
        }
      }
    (integers ? exact : near)++;
    largest = std::max(largest, off);
    if (!right && wrong++ < 10) {
      std::printf("FAILED edge %d: %s format=%s: %g codes off%s\n", n, describe(settings).c_str(), format.name, off,
                  integers ? ", and should be exact" : "");
    }
    // Only some masks: with the largest, a GPU takes as long for these few pixels as for a whole frame.
    if (!cuda || n % 40) continue;
    for (Method method : {Method::Auto, Method::Constant, Method::Tiled, Method::Blocked}) {
      settings.method = method;
      GuardedFrame by_cuda(layout, {0, 0, 1, 0});
      cuda->retire(cuda->submit(make_plan(settings, layout), source.view(), by_cuda.view()));
      if (by_cuda != got && apart++ < 10)
        std::printf("FAILED edge %d: %s format=%s: CUDA's method %s gives other bytes\n", n, describe(settings).c_str(),
                    format.name, method_nick(method));
    }
  }
  std::printf("edges      %d settings: %d exact, %d at most %.4f codes from the exact result, %d refused, %d wrong; ",
              count, exact, near, largest, refused, wrong);
  if (cuda)
    std::printf("%d differ between CPU and CUDA\n", apart);
  else
    std::printf("CUDA not compared\n");
  return !wrong && !apart;
}

// ---- Blurs of any sigma ---------------------------------------------------------------------------------------------

// Runs of black and of white, the largest possible steps, over the whole frame or a few pixels.
void draw_steps(Random &random, GuardedFrame *frame) {
  for (GuardedFrame::Block &block : frame->blocks()) {
    const size_t run = 1 + random() % 97;
    uint8_t value = 0;
    for (size_t i = 0; i < block.bytes.size(); i++) {
      if (i % run == 0 && random() % 2) value = static_cast<uint8_t>(~value);
      block.bytes[i] = value;
    }
  }
}

struct Blur {
  double sigma, sigma_y = kSigmaYAsX, bias = 0;
  Mask mask = Mask::Gauss;
};

// The blurs of two sigmas have row sums that lose many bits, with few bits in the factors of columns.
constexpr Blur kBlurs[] = {{3},
                           {8},
                           {11},
                           {15},
                           {21.5},
                           {44},
                           {90},
                           {175},
                           {250},
                           {30, 0, 0.25},
                           {128, 1, -0.25},
                           {250, 0},
                           {250, 0.5},
                           {15, kSigmaYAsX, 0, Mask::Unsharp},
                           {43, kSigmaYAsX, 0, Mask::Unsharp},
                           {55, kSigmaYAsX, 0, Mask::Unsharp},
                           {120, kSigmaYAsX, 0, Mask::Unsharp},
                           {250, kSigmaYAsX, 0, Mask::Unsharp}};

// Prints the largest distance from the exact result in codes, one line for each blur and format. Returns whether all
// are small enough.
bool blurs(Backend &cpu, Backend *cuda) {
  bool good = true;
  int turn = 0;
  for (const char *name : {"GRAY8", "I420_10LE", "GRAY16_LE"}) {
    const FrameLayout layout = format_named(name).layout(150, 40);
    for (const Blur &blur : kBlurs) {
      std::printf("%-10s %-7s sigma %-5g %-5g bias %-5g", name, mask_nick(blur.mask), blur.sigma, blur.sigma_y,
                  blur.bias);
      uint64_t apart = 0;
      for (const Border border : borders()) {
        FilterSettings settings;
        settings.mask = blur.mask;
        settings.sigma = blur.sigma;
        settings.sigma_y = blur.sigma_y;
        settings.bias = blur.bias;
        settings.border = border;
        // By turns random samples and the largest steps: the reference takes long.
        const bool steps = turn++ % 2;
        Random random(steps + 7);
        GuardedFrame source(layout, {0, 0, 1, 0}), got(layout, {0, 0, 1, 0});
        if (steps)
          draw_steps(random, &source);
        else
          source.fill(random);
        const auto plan = make_plan(settings, layout);
        cpu.retire(cpu.submit(plan, source.view(), got.view()));
        const reference::Channel want =
            reference::filter(settings, layout, reference::read(layout, source.view())).plane[0][0];
        const reference::Channel have = reference::read(layout, got.view()).plane[0][0];
        double largest = 0;
        for (size_t i = 0; i < want.real.size(); i++)
          largest = std::max(largest, std::fabs(static_cast<double>(have.sample[i] - want.real[i])));
        if (cuda) {
          GuardedFrame by_cuda(layout, {0, 0, 1, 0});
          cuda->retire(cuda->submit(plan, source.view(), by_cuda.view()));
          apart += by_cuda != got;
        }
        std::printf(" %s %.4f", border_nick(border), largest);
        good = good && largest <= 1;
      }
      std::printf(cuda ? "; %llu frames differ between CPU and CUDA\n" : "\n", static_cast<unsigned long long>(apart));
      good = good && apart == 0;
    }
  }
  return good;
}

int run(int masks, int edge_count) {
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
    const Format &format = format_named(name);
    Tally tally;
    for (int n = 0; n < masks; n++) {
      std::mt19937 random(n);
      FilterSettings settings = random_mask(random);
      const FrameLayout layout = format.layout(37, 23);
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
  good = edges(edge_count, *cpu, cuda.get()) && good;
  good = blurs(*cpu, cuda.get()) && good;
  return good ? 0 : 1;
}

}  // namespace

}  // namespace cudaconv::test

int main(int argc, char **argv) {
  try {
    return cudaconv::test::run(argc > 1 ? std::atoi(argv[1]) : 60, argc > 2 ? std::atoi(argv[2]) : 20000);
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
