// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests that cudaconv-verify finds faults: selftest VECTORS
//
// It filters with settings that differ slightly from a vector's, and with backends that make small mistakes.
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "check.h"
#include "coverage.h"
#include "vector.h"

namespace cudaconv::verify {

namespace {

int failures = 0;

void expect(bool passed, const std::string &what) {
  if (passed) return;
  failures++;
  std::printf("FAILED %s\n", what.c_str());
}

std::unique_ptr<Backend> cpu() {
  return make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
}

// A right backend, except for the changes that `harm` makes to frames.
class Harmful : public Backend {
 public:
  using Harm = std::function<void(const Plan &plan, const FrameView &src, const FrameView &dst)>;

  explicit Harmful(Harm harm) : harm_(std::move(harm)) {}

  using Backend::submit;
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    const Ticket ticket = backend_->submit(planned, src, dst, cancelled);
    harm_(*planned.front().plan, src, dst);
    return ticket;
  }
  const char *name() const override { return backend_->name(); }
  void retire(Ticket ticket) override { backend_->retire(ticket); }
  Method method_of(const Plan &plan) const override { return backend_->method_of(plan); }
  BackendStats stats() const override { return backend_->stats(); }

 private:
  Harm harm_;
  std::unique_ptr<Backend> backend_ = cpu();
};

size_t count_wrong(Checker &checker, const std::vector<Vector> &vectors) {
  size_t wrong = 0;
  for (const Vector &v : vectors) wrong += !checker.check(v).wrong.empty();
  return wrong;
}

// The vectors of mask=gauss5 with default settings.
std::vector<Vector> gauss5_of(const std::vector<Vector> &all) {
  std::vector<Vector> list;
  for (const Vector &v : all) {
    const FilterSettings &s = v.settings;
    if (s.mask == Mask::Gauss5 && s.divisor == 0 && s.iterations == 1 && s.alpha != Alpha::Weighted) list.push_back(v);
  }
  return list;
}

// A custom mask that equals gauss5, and then each coefficient larger by one.
void test_coefficients(const std::vector<Vector> &all) {
  std::vector<Vector> vectors = gauss5_of(all);
  expect(vectors.size() >= 20, "there are vectors of gauss5");
  Coefficients gauss5;
  gauss5.width = gauss5.height = 5;
  for (const double y : {1, 4, 6, 4, 1})
    for (const double x : {1, 4, 6, 4, 1}) gauss5.value.push_back(y * x);
  for (Vector &v : vectors) {
    v.settings.mask = Mask::Custom;
    v.settings.coefficients = gauss5;
    v.settings.divisor = 256;
  }
  Checker checker(cpu());
  expect(count_wrong(checker, vectors) == 0, "gauss5 by its coefficients");
  for (size_t i = 0; i < gauss5.value.size(); i++) {
    for (Vector &v : vectors) {
      v.settings.coefficients = gauss5;
      v.settings.coefficients.value[i]++;
    }
    expect(count_wrong(checker, vectors) > vectors.size() / 2,
           "gauss5 except for coefficient " + std::to_string(i) + " is wrong");
  }
}

void test_settings(const std::vector<Vector> &all) {
  const std::vector<Vector> vectors = gauss5_of(all);
  Checker checker(cpu());
  for (const Named<Border> &border : kBorderNames) {
    size_t other = 0, wrong = 0;
    for (Vector v : vectors) {
      other += v.settings.border != border.value;
      v.settings.border = border.value;
      wrong += !checker.check(v).wrong.empty();
    }
    expect(wrong > other / 2 && wrong <= other, std::string("frames of other borders with border ") + border.nick);
  }
  size_t found = 0;
  for (Vector v : vectors) {
    v.seed++;
    found += !checker.check(v).wrong.empty();
  }
  expect(found == vectors.size(), "another picture is wrong");
  Vector refused = vectors.front();
  refused.settings.mask = Mask::Median;
  refused.settings.size = 4;
  expect(!checker.check(refused).wrong.empty(), "a refused setting is wrong");
}

// Vectors whose results are samples. Exact samples are compared exactly, others to within one code.
void test_samples(const std::vector<Vector> &all) {
  Checker checker(cpu());
  int near = 0, exact = 0;
  for (const Vector &v : all) {
    if (v.samples.empty()) continue;
    for (size_t i = 0; i < v.samples.size(); i += 8) {
      Vector changed = v;
      Sample &sample = changed.samples[i];
      (sample.exact ? exact : near)++;
      sample.value += sample.exact ? 1 : 2.01;
      expect(!checker.check(changed).wrong.empty(), "a wrong sample: " + to_line(changed));
    }
  }
  expect(near > 100 && exact > 50, "there are samples of both kinds");
  Vector none = all.front();
  none.sha256.clear();
  expect(!checker.check(none).wrong.empty(), "a vector without a result is wrong");
}

void test_backends(const std::vector<Vector> &all) {
  std::vector<Vector> vectors;
  for (size_t i = 0; i < all.size(); i += 53)
    if (!all[i].sha256.empty()) vectors.push_back(all[i]);
  const auto wrong = [&](Harmful::Harm harm) {
    Checker checker(std::make_unique<Harmful>(std::move(harm)));
    return count_wrong(checker, vectors);
  };
  expect(wrong([](const Plan &, const FrameView &, const FrameView &) {}) == 0, "a backend that is right");
  // Changes the lowest bit of the last sample of the last plane.
  const auto last = [](const Plan &plan, const FrameView &view) {
    const PlaneLayout &p = plan.layout.plane[plan.layout.planes - 1];
    const size_t container =
        p.first + (p.width - 1) * p.step + (p.container == Container::Packed32 ? 0 : p.channel[0].offset);
    return view.plane[p.memory_plane].data + (p.height - 1) * view.plane[p.memory_plane].pitch +
           container * p.bytes_per_container();
  };
  expect(wrong([&](const Plan &plan, const FrameView &, const FrameView &dst) { *last(plan, dst) ^= 1; }) ==
             vectors.size(),
         "a bit of a result that is wrong");
  // Changes the byte after the first row, if there is one.
  size_t padded = 0;
  const size_t found = wrong([&](const Plan &plan, const FrameView &, const FrameView &dst) {
    const size_t row = plan.memory[0].row_bytes;
    if (plan.memory[0].height < 2 || dst.plane[0].pitch <= static_cast<ptrdiff_t>(row)) return;
    padded++;
    dst.plane[0].data[row] ^= 1;
  });
  expect(padded > 10 && found == padded, "a byte outside the picture");
  size_t apart = 0;
  const size_t changed = wrong([&](const Plan &plan, const FrameView &src, const FrameView &dst) {
    if (src.plane[0].data == dst.plane[0].data) return;
    apart++;
    *last(plan, src) ^= 1;
  });
  expect(apart > 10 && changed == apart, "a changed source frame");
}

void test_lines(const std::vector<Vector> &all) {
  for (const Vector &v : all)
    expect(to_line(parse_vector(to_line(v))) == to_line(v), "written and read again: " + to_line(v));
  for (const std::string bad :
       {"mask", "mask=gauss4", "size=x", "frame=0x4", "coefficients=\"1 2; 3\"", "roi=\"1,2,3\"", "samples=\"1:2\"",
        "colour=red", "mask=median format=NV13 frame=4x4"}) {
    std::string error;
    try {
      parse_vectors("# a head\n" + bad + "\n");
    } catch (const std::exception &e) {
      error = e.what();
    }
    expect(error.find("line 2") != std::string::npos, bad + " is refused, with its line: " + error);
  }
  for (const std::string &gap : gaps_in(all)) expect(false, "no vector for " + gap);
  expect(all.size() >= 5000, "there are 5000 vectors");
}

int run(const char *path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(std::string("cannot read ") + path);
  const std::vector<Vector> all = parse_vectors({std::istreambuf_iterator<char>(in), {}});
  test_lines(all);
  test_coefficients(all);
  test_settings(all);
  test_samples(all);
  test_backends(all);
  std::printf("%zu vectors, %d failed\n", all.size(), failures);
  return failures ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::verify

int main(int argc, char **argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: selftest VECTORS");
    return cudaconv::verify::run(argv[1]);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
