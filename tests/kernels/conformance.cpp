// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares every backend and method with the reference, byte for byte: all samples, and all bytes around them.
//
//   conformance [--backend=cpu,cuda] [--method=..,..] [--mask=..,..] [--border=..,..] [--format=..,..] [--size=WxH]
//               [--seed=N] [--rounds=N | --full | --random=N] [--part=I/N] [--threads=N] [--case=N] [--small] [--list]
//               [--explicit] [--bench]
//
// --full takes an hour of one processor. --part=I/N filters case I and every Nth one after it, so that N processes
// share the work. --threads=N runs N CUDA backends side by side. --explicit leaves out method=auto.
//
// With masks of fractions the reference's result is a real number, and the filter's may be one code away. Then the CPU
// with method=auto is compared with the reference, and everything else with the bytes of the CPU. The exit code is 77
// if only CUDA is selected and there is no device.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "backend.h"
#include "bench.h"
#include "cases.h"
#include "reference.h"
#include "workers.h"
#ifdef HAVE_DEVICE_FRAMES
#include "device_frames.h"
#endif

namespace cudaconv::test {

namespace {

constexpr int kSkipped = 77;  // exit code of a test that Meson reports as skipped

using List = std::vector<std::string>;

struct Options {
  List backends, methods, masks, borders, formats;
  std::optional<Size> size;
  uint64_t seed = 1;
  std::optional<uint64_t> rounds, random, only;
  uint64_t part = 0, parts = 1;
  unsigned cuda_threads = 1;
  bool full = false, small = false, list = false, bench = false, only_explicit = false;
};

// ---- Counting and printing ------------------------------------------------------------------------------------------

class Report {
 public:
  explicit Report(uint64_t seed) : seed_(seed) {}

  void pass(const std::string &backend, Method method) {
    std::lock_guard<std::mutex> lock(mutex_);
    counts_[{backend, method}].passed++;
  }

  void fail(const std::string &backend, Method method, const Case &c, const std::string &what) {
    fail(backend, method, describe(c), what);
  }

  // A failure outside any case.
  void fail(const std::string &backend, const std::string &what) { fail(backend, Method::Auto, "", what); }

  // Counts a refused plan: this method, or every method, does not support the mask.
  void refuse(const std::string &backend, Method method, const Case &c, const std::string &why) {
    std::lock_guard<std::mutex> lock(mutex_);
    counts_[{backend, method}].refused++;
    Refusals &r = refusals_[c.settings.mask][method];
    r.count++;
    if (method == Method::Auto && r.why.empty()) r.why = describe(c.settings) + ": " + why;
  }

  // Prints the summary. Returns whether nothing failed.
  bool summary() const {
    std::printf("\nRefused, by mask:\n");
    for (const auto &[mask, by_method] : refusals_) {
      std::printf("  %-10s", mask_nick(mask));
      for (const auto &[method, r] : by_method) std::printf(" %s:%llu", method_nick(method), number(r.count));
      std::printf("\n");
      const auto automatic = by_method.find(Method::Auto);
      if (automatic != by_method.end()) std::printf("    by every method, e.g. %s\n", automatic->second.why.c_str());
    }
    std::printf("\n%-8s %-14s %10s %10s %10s\n", "backend", "method", "passed", "failed", "refused");
    uint64_t passed = 0;
    for (const auto &[key, n] : counts_) {
      std::printf("%-8s %-14s %10llu %10llu %10llu\n", key.first.c_str(), method_nick(key.second), number(n.passed),
                  number(n.failed), number(n.refused));
      passed += n.passed;
    }
    std::printf("%llu passed, %llu failed\n", number(passed), number(failed_));
    return failed_ == 0 && passed > 0;
  }

 private:
  static constexpr uint64_t kPrinted = 20;
  struct Counts {
    uint64_t passed = 0, failed = 0, refused = 0;
  };
  struct Refusals {
    uint64_t count = 0;
    std::string why;
  };
  static unsigned long long number(uint64_t n) { return n; }

  void fail(const std::string &backend, Method method, const std::string &where, const std::string &what) {
    std::lock_guard<std::mutex> lock(mutex_);
    counts_[{backend, method}].failed++;
    failed_++;
    // Several methods often fail in the same way. Only the first of equal failures is printed.
    if (printed_.size() == kPrinted || !printed_.insert({backend, where, what}).second) return;
    std::printf("FAILED backend=%s method=%s seed=%llu %s\n    %s\n", backend.c_str(), method_nick(method),
                number(seed_), where.c_str(), what.c_str());
    std::fflush(stdout);
  }

  mutable std::mutex mutex_;
  const uint64_t seed_;
  uint64_t failed_ = 0;
  std::set<std::tuple<std::string, std::string, std::string>> printed_;  // backend, case, failure
  std::map<std::pair<std::string, Method>, Counts> counts_;
  std::map<Mask, std::map<Method, Refusals>> refusals_;
};

// Describes the first sample that differs; if all samples are equal, the first byte that differs.
std::string first_difference(const FrameLayout &layout, const GuardedFrame &want, const GuardedFrame &got) {
  std::ostringstream out;
  const reference::Frame a = reference::read(layout, want.view()), b = reference::read(layout, got.view());
  for (int p = 0; p < layout.planes; p++) {
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const reference::Channel &channel = a.plane[p][c];
      for (size_t i = 0; i < channel.sample.size(); i++) {
        if (channel.sample[i] == b.plane[p][c].sample[i]) continue;
        out << "plane " << p << " channel " << c << " x " << i % channel.width << " y " << i / channel.width
            << ": want " << channel.sample[i] << ", got " << b.plane[p][c].sample[i];
        return out.str();
      }
    }
  }
  for (size_t m = 0; m < want.blocks().size(); m++) {
    const GuardedFrame::Block &x = want.blocks()[m], &y = got.blocks()[m];
    const auto at = std::mismatch(x.bytes.begin(), x.bytes.end(), y.bytes.begin());
    if (at.first == x.bytes.end()) continue;
    const ptrdiff_t byte = at.first - x.bytes.begin() - static_cast<ptrdiff_t>(x.offset);
    out << "a byte or bits outside the samples: memory plane " << m << ", " << byte << " bytes from row 0 (pitch "
        << x.pitch << "): want " << int{*at.first} << ", got " << int{*at.second};
    return out.str();
  }
  return "no difference";
}

// ---- One case -------------------------------------------------------------------------------------------------------

// Fills a channel with samples. Patterns continue through all rows, so that planes of any shape have them.
void fill_samples(reference::Channel &channel, int max, Content content, Random &random) {
  const int spread = std::min(3, max);
  const size_t impulse = random() % channel.sample.size();
  const bool inverted = random() % 2;
  for (size_t i = 0; i < channel.sample.size(); i++) {
    const int x = static_cast<int>(i % channel.width), y = static_cast<int>(i / channel.width);
    int v = 0;
    switch (content) {
      case Content::Random:
        v = static_cast<int>(random() % (max + 1));
        break;
      case Content::NearZero:
        v = static_cast<int>(random() % (spread + 1));
        break;
      case Content::NearFull:
        v = max - static_cast<int>(random() % (spread + 1));
        break;
      case Content::Checkerboard:
        v = (x + y) % 2 ? max : 0;
        break;
      case Content::Impulse:
        v = (i == impulse) != inverted ? max : 0;
        break;
      case Content::Extremes:
        v = random() % 2 ? max : 0;
        break;
      case Content::EveryTwo:
        v = y % 2 ? 0 : (x % 2 ? y : x) / 2 % (max + 1);
        break;
    }
    channel.sample[i] = v;
  }
}

// A case that is ready to run: two sources with the same samples and different padding, the target before the filter,
// and its expected bytes.
struct Prepared {
  Case c;
  FrameLayout layout;
  std::vector<GuardedFrame> sources;
  std::optional<GuardedFrame> blank, want;
  std::string refusal;  // not empty: the CPU refuses the mask, and nothing is compared
};

// Compares a result of the CPU with the exact real numbers, to within `most` codes. Returns the first difference, or an
// empty text.
std::string check_real(const FrameLayout &layout, const reference::Frame &exact, const reference::Frame &got,
                       long double most) {
  for (int p = 0; p < layout.planes; p++) {
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const reference::Channel &channel = exact.plane[p][c];
      for (size_t i = 0; i < channel.sample.size(); i++) {
        const int v = got.plane[p][c].sample[i];
        const bool real = !channel.real.empty();
        if (real ? std::abs(v - channel.real[i]) <= most + 1e-6L : v == channel.sample[i]) continue;
        std::ostringstream out;
        out << "plane " << p << " channel " << c << " x " << i % channel.width << " y " << i / channel.width
            << ": want " << (real ? channel.real[i] : channel.sample[i]);
        if (real) out << " to within " << most;
        out << ", got " << v;
        return out.str();
      }
    }
  }
  return {};
}

bool has_real(const reference::Frame &frame) {
  for (const auto &plane : frame.plane)
    for (const reference::Channel &channel : plane)
      if (!channel.real.empty()) return true;
  return false;
}

std::shared_ptr<const Prepared> prepare(const Case &c, uint64_t seed, Backend &cpu, Report &report) {
  auto prepared = std::make_shared<Prepared>();
  Random random = random_for(seed ^ 0x5eed, c.number);
  FrameLayout &layout = prepared->layout;
  layout = c.format->layout(c.size.width, c.size.height);
  if (c.interlaced) layout = with_fields(layout, c.format->name != std::string_view("P010_10LE"));
  prepared->c = c;

  reference::Frame source;
  for (int p = 0; p < layout.planes; p++) {
    PlaneLayout &plane = layout.plane[p];
    for (int i = 0; i < plane.channels; i++) {
      const int max = (1 << plane.channel[i].depth) - 1;
      plane.border_value[i] = static_cast<uint16_t>(random() % (max + 1));
      plane.fill_value[i] = static_cast<uint16_t>(max - plane.border_value[i]);
      source.plane[p].push_back({plane.width, plane.height, std::vector<int>(plane.width * plane.height), {}});
      fill_samples(source.plane[p].back(), max, c.content, random);
    }
  }
  for (int i = 0; i < 2; i++) {
    GuardedFrame &frame = prepared->sources.emplace_back(layout, placements()[c.source_placement]);
    frame.fill(random);
    reference::write(source, layout, frame.view());
    // Unused bits are only dirty without regions, since pixels outside regions keep them.
    if (!c.regions.active) frame.dirty_unused_bits(layout, random);
  }
  if (c.in_place) {
    prepared->blank = prepared->sources[0];
  } else {
    prepared->blank.emplace(layout, placements()[c.target_placement]);
    prepared->blank->fill(random);
  }
  prepared->want = prepared->blank;

  reference::Frame result = reference::filter(c.settings, layout, source, c.regions);
  if (has_real(result)) {
    // Each iteration is compared separately, since each is within one code of the exact result for its input.
    FilterSettings once = c.settings;
    once.iterations = 1;
    // A sum near the threshold may be on either side of it. So the sums are compared first, in all pixels.
    once.threshold = 0;
    const Regions regions = c.settings.threshold > 0 ? Regions{} : c.regions;
    reference::Frame in = source;
    for (int i = 0; i < c.settings.iterations; i++) {
      GuardedFrame from(layout, placements()[0]), to(layout, placements()[0]);
      reference::write(in, layout, from.view());
      try {
        cpu.retire(cpu.submit(make_plan(once, layout), from.view(), to.view(), regions));
      } catch (const Error &error) {
        prepared->refusal = error.what();
        return prepared;
      }
      result = reference::read(layout, to.view());
      const std::string wrong = check_real(layout, reference::filter(once, layout, in, regions), result,
                                           regions.feather ? 1.5L : 1);  // pixels that fade are rounded twice
      if (!wrong.empty()) report.fail("cpu", Method::Auto, c, wrong);
      if (c.settings.threshold > 0)
        result =
            reference::in_regions(reference::above_threshold(c.settings, layout, result, in), in, layout, c.regions);
      in = result;
    }
  }
  reference::write(result, layout, prepared->want->view());
  return prepared;
}

// ---- One backend ----------------------------------------------------------------------------------------------------

// Submits cases to a backend and compares the results. Several frames, each with its own plan, may be in flight.
class Runner {
 public:
  Runner(std::unique_ptr<Backend> backend, Report &report) : backend_(std::move(backend)), report_(report) {
#ifdef HAVE_DEVICE_FRAMES
    if (std::string(backend_->name()) == "cuda") home_ = std::make_unique<DeviceFrames>();
#endif
  }

  Backend &backend() {
    return *backend_;
  }

  void check(const std::shared_ptr<const Prepared> &prepared, Method method) {
    const Case &c = prepared->c;
    FilterSettings settings = c.settings;
    settings.method = method;
    std::shared_ptr<const Plan> plan;
    try {
      plan = make_plan(settings, prepared->layout);
    } catch (const Error &error) {
      if (error.kind() == Error::Kind::Settings)
        report_.refuse(backend_->name(), method, c, error.what());
      else
        report_.fail(backend_->name(), method, c, error.what());
      return;
    }
    if (!prepared->refusal.empty()) {
      report_.fail(backend_->name(), method, c, "has a plan, but the CPU refuses: " + prepared->refusal);
      return;
    }
    const GuardedFrame *source = &prepared->sources[static_cast<int>(method) % 2];
    const GuardedFrame before = *source;
    Pending p{0, prepared, method, *prepared->blank};
    FrameView src = source->view(), dst = p.target.view();
#ifdef HAVE_DEVICE_FRAMES
    if (home_ && c.number % 3 == 0) {
      p.device_source = std::make_unique<DeviceFrame>(*home_, *source);
      p.device_target = std::make_unique<DeviceFrame>(*home_, p.target);
      src = p.device_source->view();
      dst = p.device_target->view();
    }
#endif
    if (c.in_place) src = dst;
    in_flight_.push_back(std::move(p));
    try {
      // The views stay valid: moving a vector does not move its buffer.
      in_flight_.back().ticket = backend_->submit(std::move(plan), src, dst, c.regions);
    } catch (const Error &error) {
      in_flight_.pop_back();
      report_.fail(backend_->name(), method, c, std::string("submit: ") + error.what());
      if (error.kind() == Error::Kind::Device) throw;
      return;
    }
    retire_down_to(c.number % 4);
    if (*source != before) report_.fail(backend_->name(), method, c, "the source frame has changed");
  }

  void finish() {
    retire_down_to(0);
    const uint64_t frames = backend_->stats().frames;
    if (frames != retired_) {
      report_.fail(backend_->name(), "the statistics say " + std::to_string(frames) + " frames, and " +
                                         std::to_string(retired_) + " were retired");
    }
  }

 private:
  struct Pending {
    Ticket ticket;
    std::shared_ptr<const Prepared> prepared;
    Method method;
    GuardedFrame target;
#ifdef HAVE_DEVICE_FRAMES
    std::unique_ptr<DeviceFrame> device_source = {}, device_target = {};
#endif
  };

  void retire_down_to(size_t left) {
    while (in_flight_.size() > left) {
      Pending p = std::move(in_flight_.front());
      in_flight_.pop_front();
      const Case &c = p.prepared->c;
      try {
        backend_->retire(p.ticket);
#ifdef HAVE_DEVICE_FRAMES
        if (p.device_target) p.device_target->download(p.target);
#endif
      } catch (const Error &error) {
        report_.fail(backend_->name(), p.method, c, std::string("retire: ") + error.what());
        throw;
      }
      retired_++;
      if (p.target == *p.prepared->want)
        report_.pass(backend_->name(), p.method);
      else
        report_.fail(backend_->name(), p.method, c, first_difference(p.prepared->layout, *p.prepared->want, p.target));
    }
  }

#ifdef HAVE_DEVICE_FRAMES
  std::unique_ptr<DeviceFrames> home_;
#endif
  std::unique_ptr<Backend> backend_;
  Report &report_;
  std::deque<Pending> in_flight_;
  uint64_t retired_ = 0;
};

// ---- All cases ------------------------------------------------------------------------------------------------------

bool selected(const Options &o, const Case &c) {
  return wanted(o.masks, mask_nick(c.settings.mask)) && wanted(o.borders, border_nick(c.settings.border)) &&
         wanted(o.formats, c.format->name);
}

class Conformance {
 public:
  Conformance(const Options &options, const Cases &cases) : options_(options), cases_(cases), report_(options.seed) {}

  // Runs all cases and returns the exit code.
  int run() {
    if (wanted(options_.backends, "cpu")) {
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); i++)
        threads.emplace_back([this] { guarded("cpu", [this] { run_cpu(); }); });
      for (std::thread &t : threads) t.join();
    }
    if (wanted(options_.backends, "cuda")) {
      std::string why;
      if (cuda_device_count(&why) > 0) {
        std::atomic<uint64_t> next{options_.only.value_or(0)};
        std::vector<std::thread> threads;
        for (unsigned i = 1; i < options_.cuda_threads; i++)
          threads.emplace_back([&] { guarded("cuda", [&] { run_cuda(next); }); });
        guarded("cuda", [&] { run_cuda(next); });
        for (std::thread &t : threads) t.join();
      } else {
        std::printf("no CUDA device: %s\n", why.c_str());
        if (!wanted(options_.backends, "cpu")) return kSkipped;
      }
    }
    return report_.summary() ? 0 : 1;
  }

 private:
  // Calls `f`. An exception from a backend is a failure and ends the test of this backend.
  template <typename F>
  void guarded(const char *backend, F f) {
    try {
      f();
    } catch (const std::exception &error) {
      report_.fail(backend, std::string("given up: ") + error.what());
    }
  }

  template <typename F>
  void for_each_case(std::atomic<uint64_t> &next, F f) {
    const uint64_t end = options_.only ? *options_.only + 1 : cases_.count();
    for (uint64_t n; (n = next++) < end;) {
      if (!options_.only && n % options_.parts != options_.part) continue;
      Case c = cases_[n];
      if (!selected(options_, c)) continue;
      if (options_.size) c.size = *options_.size;
      f(c);
    }
  }

  void check_methods(Runner &runner, const std::shared_ptr<const Prepared> &prepared) {
    for (Method method : methods())
      if ((method != Method::Auto || !options_.only_explicit) && wanted(options_.methods, method_nick(method)))
        runner.check(prepared, method);
  }

  void run_cpu() {
    // The CPU filters each frame in one piece, in several pieces from last to first, or on several threads.
    Workers workers(3);
    const ParallelFor forwards = [](int n, const std::function<void(int)> &body) {
      for (int i = 0; i < n; i++) body(i);
    };
    const ParallelFor backwards = [](int n, const std::function<void(int)> &body) {
      while (n-- > 0) body(n);
    };
    std::deque<Runner> runners;
    runners.emplace_back(make_cpu_backend(forwards, 1), report_);
    runners.emplace_back(make_cpu_backend(backwards, 5), report_);
    runners.emplace_back(make_cpu_backend(std::ref(workers), 3), report_);
    const auto exact = make_cpu_backend(forwards, 1);
    for_each_case(next_, [&](const Case &c) {
      check_methods(runners[c.number / 4 % runners.size()], prepare(c, options_.seed, *exact, report_));
    });
    for (Runner &r : runners) r.finish();
  }

  void run_cuda(std::atomic<uint64_t> &next) {
    const auto serial = [](int n, const std::function<void(int)> &body) {
      for (int i = 0; i < n; i++) body(i);
    };
    const auto cpu = make_cpu_backend(serial, 1);
    Runner runner(make_cuda_backend(), report_);
    for_each_case(next, [&](const Case &c) { check_methods(runner, prepare(c, options_.seed, *cpu, report_)); });
    runner.finish();
  }

  const Options &options_;
  const Cases &cases_;
  Report report_;
  std::atomic<uint64_t> next_{options_.only.value_or(0)};
};

void list(const Cases &cases) {
  std::printf("masks:");
  for (const Named<Mask> &mask : kMaskNames) std::printf(" %s", mask.nick);
  std::printf("\nmethods:");
  for (Method m : methods()) std::printf(" %s", method_nick(m));
  std::printf("\nborders:");
  for (Border b : borders()) std::printf(" %s", border_nick(b));
  std::printf("\nformats:");
  for (const Format &f : formats()) std::printf(" %s", f.name);
  std::printf("\nsizes:");
  for (Size s : cases.sizes()) std::printf(" %dx%d", s.width, s.height);
  std::printf("\nvariants:\n");
  for (const FilterSettings &s : cases.variants()) std::printf("  %s\n", describe(s).c_str());
}

List split(const std::string &text) {
  List list;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) list.push_back(word);
  return list;
}

Options parse(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (key == "--backend")
      o.backends = split(value);
    else if (key == "--method")
      o.methods = split(value);
    else if (key == "--mask")
      o.masks = split(value);
    else if (key == "--border")
      o.borders = split(value);
    else if (key == "--format")
      o.formats = split(value);
    else if (key == "--seed")
      o.seed = std::stoull(value);
    else if (key == "--rounds")
      o.rounds = std::stoull(value);
    else if (key == "--random")
      o.random = std::stoull(value);
    else if (key == "--case")
      o.only = std::stoull(value);
    else if (key == "--threads")
      o.cuda_threads = static_cast<unsigned>(std::stoul(value));
    else if (argument == "--full")
      o.full = true;
    else if (argument == "--small")
      o.small = true;
    else if (argument == "--list")
      o.list = true;
    else if (argument == "--explicit")
      o.only_explicit = true;
    else if (argument == "--bench")
      o.bench = true;
    else if (unsigned long part, parts;
             key == "--part" && std::sscanf(value.c_str(), "%lu/%lu", &part, &parts) == 2 && part < parts)
      o.part = part, o.parts = parts;
    else if (Size s; key == "--size" && std::sscanf(value.c_str(), "%dx%d", &s.width, &s.height) == 2 && s.width > 0 &&
                     s.height > 0)
      o.size = s;
    else
      throw std::invalid_argument("unknown argument " + argument);
  }
  return o;
}

int conformance(int argc, char **argv) {
  const Options options = parse(argc, argv);
  if (options.bench) {
    run_bench(options.backends, options.masks, options.methods);
    return 0;
  }
  const Cases::Kind kind = options.random ? Cases::Kind::Random
                           : options.full ? Cases::Kind::Whole
                                          : Cases::Kind::Thinned;
  const uint64_t rounds = options.rounds.value_or(options.small ? 1 : 32);
  const Cases cases(kind, options.seed, options.small, options.random.value_or(rounds));
  if (options.list) {
    list(cases);
    return 0;
  }
  std::printf("%s\n", cases.rule().c_str());
  std::fflush(stdout);
  return Conformance(options, cases).run();
}

}  // namespace

}  // namespace cudaconv::test

int main(int argc, char **argv) {
  try {
    return cudaconv::test::conformance(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
