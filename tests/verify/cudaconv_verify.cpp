// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks whether results are right on this machine. Filters the frames of the test vectors, which are built into the
// program, on the CPU and on each CUDA device. Compares the results with the vectors.
//
// Exit codes: 0: all results are right. 1: a result is wrong. 2: bad arguments. 77: only CUDA is selected, and there is
// no device.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "check.h"
#include "coverage.h"
#include "devices.h"
#include "picture.h"

namespace cudaconv::verify {

extern const char kVectors[];  // the text of vectors.txt

namespace {

constexpr const char *kUsage = R"(Usage: cudaconv-verify [OPTION...]

Filters small frames on the CPU and on each GPU. Compares the results with the results of a simple independent filter,
which are in this program. Copy the last line into your bug report.

  --backend=WHICH   cpu, cuda or all (the default)
  --only=TEXT       vectors whose line contains TEXT, such as "mask=sobel " or format=NV12
  --every=N         each Nth vector
  --list            print the vectors, and check nothing
  --coverage        print what the vectors cover, and check nothing
  --vectors=FILE    vectors from a file
  --version         print the version
  --help            print this text
)";

constexpr int kExitUsage = 2, kExitNoDevice = 77;
constexpr size_t kPrinted = 10;  // wrong vectors per device

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  bool cpu = true, cuda = true, list = false, coverage = false, help = false, version = false;
  std::string only, file;
  size_t every = 1;
};

// The findings on one backend and device.
struct Report {
  std::string device;
  size_t checked = 0;
  std::map<size_t, std::string> wrong;  // by index of the vector
  std::map<std::string, int> kernels;   // number of frames by name of kernels
  double seconds = 0;
  std::string gave_up;  // the reason why not all vectors were checked; empty: all were
};

Options parse(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (argument == "--backend=cpu")
      o.cuda = false;
    else if (argument == "--backend=cuda")
      o.cpu = false;
    else if (argument == "--backend=all")
      o.cpu = o.cuda = true;
    else if (key == "--only" && !value.empty())
      o.only = value;
    else if (key == "--every" && std::atoi(value.c_str()) > 0)
      o.every = static_cast<size_t>(std::atoi(value.c_str()));
    else if (key == "--vectors" && !value.empty())
      o.file = value;
    else if (argument == "--list")
      o.list = true;
    else if (argument == "--coverage")
      o.coverage = true;
    else if (argument == "--version")
      o.version = true;
    else if (argument == "--help")
      o.help = true;
    else
      throw UsageError("cannot read " + argument);
  }
  return o;
}

std::string read_vectors(const Options &o) {
  if (o.file.empty()) return kVectors;
  std::ifstream in(o.file, std::ios::binary);
  if (!in) throw UsageError("cannot read " + o.file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Vector> select(const std::vector<Vector> &all, const Options &o) {
  std::vector<Vector> selected;
  size_t found = 0;
  for (const Vector &v : all)
    if ((o.only.empty() || to_line(v).find(o.only) != std::string::npos) && found++ % o.every == 0)
      selected.push_back(v);
  if (selected.empty()) throw UsageError("no vector has this text");
  return selected;
}

void print_coverage(const std::vector<Vector> &vectors) {
  std::printf("%zu vectors; of them have\n", vectors.size());
  for (const auto &[category, counts] : coverage_of(vectors)) {
    std::printf("\n%s\n", category.c_str());
    for (const auto &[value, count] : counts) std::printf("%8d  %s\n", count, value.c_str());
  }
}

// Describes the first byte in which two results differ.
std::string first_difference(const std::vector<uint8_t> &cpu, const std::vector<uint8_t> &got) {
  const auto at = std::mismatch(cpu.begin(), cpu.end(), got.begin(), got.end());
  if (at.first == cpu.end() || at.second == got.end()) return {};
  return "; byte " + std::to_string(at.first - cpu.begin()) + " of the result is " + std::to_string(*at.second) +
         ", on the CPU " + std::to_string(*at.first);
}

class Verification {
 public:
  Verification(const std::vector<Vector> &vectors, bool keep)
      : vectors_(vectors), keep_(keep), results_(keep ? vectors.size() : 0) {}

  Report on_cpu() {
    return timed([this](Report &report) {
      report.device = "cpu";
      std::atomic<size_t> next{0};
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); i++)
        threads.emplace_back([&] { guarded(report, [&] { run_cpu(next, report); }); });
      for (std::thread &t : threads) t.join();
      if (!report.kernels.empty()) report.device += " (" + report.kernels.begin()->first + ")";
    });
  }

  Report on_device(int device) {
    return timed([this, device](Report &report) {
      report.device = "cuda " + std::to_string(device);
      guarded(report, [&] {
        report.device += " (" + use_device(device) + ")";
        Checker checker(make_cuda_backend());
        for (size_t i = 0; i < vectors_.size(); i++) {
          Outcome outcome = checker.check(vectors_[i]);
          if (keep_ && outcome.visible != results_[i]) {
            if (outcome.wrong.empty()) outcome.wrong = "the bytes differ from the CPU's";
            outcome.wrong += first_difference(results_[i], outcome.visible);
          }
          add(report, i, outcome, checker.backend());
        }
      });
    });
  }

 private:
  template <typename F>
  static Report timed(F f) {
    Report report;
    const auto start = std::chrono::steady_clock::now();
    f(report);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  }

  // Calls `f`. An exception, for example when a device fails, ends the check of this device.
  template <typename F>
  void guarded(Report &report, F f) {
    try {
      f();
    } catch (const std::exception &error) {
      std::lock_guard<std::mutex> lock(mutex_);
      report.gave_up = error.what();
    }
  }

  void add(Report &report, size_t i, const Outcome &outcome, const Backend &backend) {
    const char *kernels = backend.stats().kernels;
    std::lock_guard<std::mutex> lock(mutex_);
    report.checked++;
    report.kernels[kernels ? kernels : "a method"]++;
    if (!outcome.wrong.empty()) report.wrong[i] = outcome.wrong;
  }

  // The CPU filters frames in one piece, or in several pieces from last to first.
  void run_cpu(std::atomic<size_t> &next, Report &report) {
    const ParallelFor forwards = [](int n, const std::function<void(int)> &body) {
      for (int i = 0; i < n; i++) body(i);
    };
    const ParallelFor backwards = [](int n, const std::function<void(int)> &body) {
      while (n-- > 0) body(n);
    };
    Checker whole(make_cpu_backend(forwards, 1)), pieces(make_cpu_backend(backwards, 5));
    for (size_t i; (i = next++) < vectors_.size();) {
      Checker &checker = i % 2 ? pieces : whole;
      Outcome outcome = checker.check(vectors_[i]);
      add(report, i, outcome, checker.backend());
      if (keep_) results_[i] = std::move(outcome.visible);
    }
  }

  const std::vector<Vector> &vectors_;
  const bool keep_;  // keeps the CPU's results, to compare the GPU's with them
  std::vector<std::vector<uint8_t>> results_;
  std::mutex mutex_;
};

void print(const Report &report, const std::vector<Vector> &vectors) {
  std::printf("%s: %zu of %zu vectors checked in %.1f s, %zu right, %zu wrong\n", report.device.c_str(), report.checked,
              vectors.size(), report.seconds, report.checked - report.wrong.size(), report.wrong.size());
  if (report.kernels.size() > 1) {
    std::printf("  frames by kernels:");
    for (const auto &[name, count] : report.kernels) std::printf(" %s %d", name.c_str(), count);
    std::printf("\n");
  }
  if (!report.gave_up.empty()) std::printf("  given up: %s\n", report.gave_up.c_str());
  size_t printed = 0;
  for (const auto &[i, what] : report.wrong) {
    if (printed++ == kPrinted) {
      std::printf("  and %zu more\n", report.wrong.size() - kPrinted);
      break;
    }
    std::printf("  WRONG, line %d: %s\n    %s\n", vectors[i].line, describe(vectors[i]).c_str(), what.c_str());
  }
  std::fflush(stdout);
}

// Prints the line for bug reports.
void print_last_line(const std::vector<Report> &reports, const std::string &text) {
  std::string line = std::string("cudaconv ") + CUDACONV_VERSION;
  for (const Report &r : reports)
    line += (line.find(':') == std::string::npos ? ": " : "; ") + r.device + " " + std::to_string(r.checked) +
            " vectors, " + std::to_string(r.wrong.size()) + " wrong" + (r.gave_up.empty() ? "" : ", given up");
  std::printf("%s; file %s\n", line.c_str(), sha256(text.data(), text.size()).substr(0, 16).c_str());
}

int verify(const Options &o) {
  const std::string text = read_vectors(o);
  const std::vector<Vector> vectors = select(parse_vectors(text), o);
  if (o.list)
    for (const Vector &v : vectors) std::printf("%s\n", to_line(v).c_str());
  if (o.coverage) print_coverage(vectors);
  if (o.list || o.coverage) return 0;

  // The plugin that this program is linked to. GStreamer may find another one.
  Dl_info plugin;
  if (dladdr(reinterpret_cast<void *>(&make_cpu_backend), &plugin)) std::printf("checks %s\n", plugin.dli_fname);
  std::string why;
  const int devices = o.cuda ? cuda_device_count(&why) : 0;
  if (o.cuda && devices == 0) std::printf("no CUDA device: %s\n", why.c_str());
  if (!o.cpu && devices == 0) return kExitNoDevice;
  std::vector<Report> reports;
  Verification verification(vectors, o.cpu && devices > 0);
  if (o.cpu) {
    reports.push_back(verification.on_cpu());
    print(reports.back(), vectors);
  }
  for (int device = 0; device < devices; device++) {
    reports.push_back(verification.on_device(device));
    print(reports.back(), vectors);
  }
  print_last_line(reports, text);
  const bool right = std::all_of(reports.begin(), reports.end(), [&](const Report &r) {
    return r.wrong.empty() && r.gave_up.empty() && r.checked == vectors.size();
  });
  return right ? 0 : 1;
}

}  // namespace

}  // namespace cudaconv::verify

int main(int argc, char **argv) {
  using namespace cudaconv::verify;
  try {
    const Options options = parse(argc, argv);
    if (options.help) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (options.version) {
      std::printf("cudaconv-verify %s\n", CUDACONV_VERSION);
      return 0;
    }
    return verify(options);
  } catch (const UsageError &error) {
    std::fprintf(stderr, "cudaconv-verify: %s\n\n%s", error.what(), kUsage);
    return kExitUsage;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cudaconv-verify: %s\n", error.what());
    return kExitUsage;
  }
}
