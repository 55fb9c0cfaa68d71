// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the promises of the CUDA backend other than the right bytes: it gives up when it is cancelled, does not run far
// ahead of the GPU, and works with one thread that submits and another that retires. The exit code is 77 if there is no
// device.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "formats.h"
#include "guarded_frame.h"
#include "reference.h"
#ifdef HAVE_STANDIN
#include "cuda/cuda_resources.h"
#include "cuda/frame_copy.h"
#include "cuda/regions/put_in_place.h"
#include "cuda/region_job.h"
#include "failingnew.h"
#include "standin.h"
#endif

namespace cudaconv::test {

namespace {

std::atomic<int> failures{0};

void expect(bool right, const std::string &what) {
  if (right) return;
  failures++;
  std::printf("FAILED %s\n", what.c_str());
}

FilterSettings repeated(Mask mask, int iterations, Method method = Method::Auto) {
  FilterSettings s;
  s.mask = mask;
  s.iterations = iterations;
  s.method = method;
  return s;
}

// A frame to filter, its target, and the bytes expected there.
struct Work {
  Work(const char *format, int width, int height, const FilterSettings &settings, int seed)
      : layout(format_named(format).layout(width, height)),
        plan(make_plan(settings, layout)),
        source(layout, {0, 3, 1, 5}),
        target(layout, {0, 3, 1, 5}),
        want(target) {
    Random random(seed);
    source.fill(random);
    target.fill(random);
    want = target;
    reference::write(reference::filter(settings, layout, reference::read(layout, source.view())), layout, want.view());
  }
  bool is_right() const { return target == want; }

  FrameLayout layout;
  std::shared_ptr<const Plan> plan;
  GuardedFrame source, target, want;
};

void expect_right(Backend &backend, const std::string &where) {
  Work work("NV12", 37, 9, repeated(Mask::Open, 1), 7);
  backend.retire(backend.submit(work.plan, work.source.view(), work.target.view()));
  expect(work.is_right(), "a frame is right " + where);
}

// Cancels submit() after `when` has returned, and checks that it gives up. Returns the time in milliseconds.
double give_up(Backend &backend, const FilterSettings &settings, const FrameLayout &layout,
               const std::function<void()> &when, const std::string &what) {
  using Clock = std::chrono::steady_clock;
  GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
  Random random(1);
  source.fill(random);
  std::atomic<bool> cancelled{false}, ended{false};
  Clock::time_point asked;
  std::thread other([&] {
    when();
    expect(!ended, "submit() still runs " + what);
    asked = Clock::now();
    cancelled = true;
  });
  bool given_up = false;
  try {
    backend.retire(backend.submit(make_plan(settings, layout), source.view(), target.view(), {}, &cancelled));
  } catch (const Error &error) {
    given_up = error.kind() == Error::Kind::Cancelled;
  }
  const Clock::time_point end = Clock::now();
  ended = true;
  other.join();
  expect(given_up, "submit() gives up " + what);
  expect_right(backend, "after submit() gave up " + what);
  return std::chrono::duration<double, std::milli>(end - asked).count();
}

void test_cancellation(Backend &backend) {
  std::atomic<bool> cancelled{true};
  Work work("GRAY8", 33, 5, repeated(Mask::Gauss3, 1), 1);
  bool given_up = false;
  try {
    backend.submit(work.plan, work.source.view(), work.target.view(), {}, &cancelled);
  } catch (const Error &error) {
    given_up = error.kind() == Error::Kind::Cancelled;
  }
  expect(given_up, "submit() gives up if it is cancelled from the start");
  expect_right(backend, "after submit() gave up from the start");
#ifdef HAVE_STANDIN
  constexpr int kPasses = 5000;
  const int before = standin::calls("cudaLaunchKernel");
  give_up(
      backend, repeated(Mask::Gauss3, kPasses), work.layout,
      [&] {
        while (standin::calls("cudaLaunchKernel") < before + 20) std::this_thread::yield();
      },
      "between passes");
  expect(standin::calls("cudaLaunchKernel") < before + kPasses, "passes after the cancellation are not launched");
#else
  const double took = give_up(
      backend, repeated(Mask::Median, 20000), format_named("RGBA").layout(7680, 4320),
      [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, "between passes");
  std::printf("gave up within %.1f ms\n", took);
  expect(took < 100, "submit() gives up within 100 ms");
#endif
}

#ifdef HAVE_STANDIN
// The CPU waits for the GPU, by events, only if a plan has more passes than may be enqueued.
void test_launches_ahead() {
  for (const int passes : {8, 30}) {
    const auto fresh = make_cuda_backend();
    Backend &backend = *fresh;
    Work work("GRAY8", 33, 5, repeated(Mask::Gauss3, passes), 1);
    expect_right(backend, "in a new slot");
    const auto count = [](const char *call) { return standin::calls(call); };
    const int polls_before = count("cudaEventQuery"), events_before = count("cudaEventCreateWithFlags");
    backend.retire(backend.submit(work.plan, work.source.view(), work.target.view()));
    const std::string of = " of a plan of " + std::to_string(passes) + " passes: ";
    const int polls = count("cudaEventQuery") - polls_before;
    const int events = count("cudaEventCreateWithFlags") - events_before;
    expect(polls > passes - 8, "polls" + of + std::to_string(polls));
    expect(events == (passes > 8 ? 8 : 0), "new events" + of + std::to_string(events));
    expect(work.is_right(), "bytes" + of);
  }
}

// A second frame of the same kind asks the driver nothing: kernels, grids and parameters are chosen once.
void test_chosen_once() {
  struct Masks {
    Mask mask;
    int size;
    double sigma;
  };
  const Masks all[] = {{Mask::Gauss5, 0, 0},   {Mask::Gauss, 9, 2},     {Mask::Custom, 7, 0},  {Mask::Custom, 21, 0},
                       {Mask::Dilate, 15, 0},  {Mask::Dilate, 63, 0},   {Mask::Median, 7, 0},  {Mask::Median, 31, 0},
                       {Mask::Box, 31, 0},     {Mask::Box, 255, 0},     {Mask::Gauss, 0, 25},  {Mask::Open, 3, 0},
                       {Mask::Gradient, 9, 0}, {Mask::Unsharp, 0, 2.5}, {Mask::Mosaic, 16, 0}, {Mask::Gauss, 0, 100}};
  const auto one_by_one = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  for (const char *format : {"RGBA", "NV12", "P010_10LE", "RGB"})
    for (const Masks &m : all) {
      FilterSettings s = repeated(m.mask, 1);
      s.size = m.size;
      s.sigma = m.sigma;
      if (m.mask == Mask::Custom) {
        s.coefficients.width = s.coefficients.height = m.size;
        for (int i = 0; i < m.size * m.size; i++) s.coefficients.value.push_back(i * i % 11 - 3);
      }
      const auto fresh = make_cuda_backend(), cpu = make_cpu_backend(one_by_one, 1);
      Work work(format, 66, 20, s, 3);
      cpu->retire(cpu->submit(work.plan, work.source.view(), work.want.view()));
      const auto submit = [&] { fresh->retire(fresh->submit(work.plan, work.source.view(), work.target.view())); };
      submit();
      int before[4], asked = 0;
      const char *const queries[] = {"cudaDeviceGetAttribute", "cudaFuncSetAttribute", "cudaFuncGetAttributes",
                                     "cudaMalloc"};
      for (int i = 0; i < 4; i++) before[i] = standin::calls(queries[i]);
      const int calls_before = standin::calls();
      submit();
      for (int i = 0; i < 4; i++) asked += standin::calls(queries[i]) - before[i];
      const std::string what = std::string(format) + " mask=" + mask_nick(m.mask) + " size=" + std::to_string(m.size);
      expect(asked == 0, what + ": asks the driver " + std::to_string(asked) + " times a frame");
      expect(work.is_right(), what + ": bytes");
      std::printf("%-40s %3d calls of the driver a frame\n", what.c_str(), standin::calls() - calls_before);
    }
}

void test_failures(Backend &backend) {
  Work work("GRAY8", 33, 5, repeated(Mask::Gauss3, 1), 1);
  standin::fail_call("cudaMemcpy2DAsync", 1, cudaErrorInvalidValue);
  try {
    backend.submit(work.plan, work.source.view(), work.target.view());
    expect(false, "a failed copy is an error");
  } catch (const Error &error) {
    expect(error.kind() == Error::Kind::Device, "kind of a failed copy");
    expect(std::strstr(error.file(), "frame_copy.cpp"), std::string("a failed copy names the file ") + error.file());
  }
  expect_right(backend, "after a failed copy");
}

// A frame is a graph as soon as its kernels came twice, with its own parameters. Where threads take turns, a frame of
// one kernel is none. After an error frames are right again.
void test_graphs() {
  const auto filter = [&](Backend &backend, int i) {
    const FilterSettings settings[] = {repeated(Mask::Gauss3, 4), repeated(Mask::Median, 3), repeated(Mask::Gauss5, 1)};
    const int kind = i % 3;
    Work work(kind == 1 ? "NV12" : "GRAY8", 32 + 16 * (i % 5), 20 + i % 7, settings[kind], i);
    backend.retire(backend.submit(work.plan, work.source.view(), work.target.view()));
    expect(work.is_right(), "frame " + std::to_string(i) + " where frames are graphs");
  };
  constexpr int kTimed = 18, kFrames = 60;  // frames of the backend that may be timed and so are no graphs
  {
    const auto backend = make_cuda_backend();
    for (int i = 0; i < kTimed; i++) filter(*backend, i);
    const int before = standin::calls("cudaGraphLaunch");
    for (int i = kTimed; i < kFrames; i++) filter(*backend, i);
    const int launched = standin::calls("cudaGraphLaunch") - before;
    expect(launched >= 34 && launched <= 38, std::to_string(launched) + " graphs for 42 frames");
  }
  {
    const auto backend = make_cuda_backend();
    const int before = standin::calls("cudaGraphLaunch"), one_kernel = 2;
    for (int i = 0; i < kFrames; i++) {
      filter(*backend, 3 * i + one_kernel);
      std::thread([&] { filter(*backend, 3 * i + one_kernel); }).join();
    }
    const int launched = standin::calls("cudaGraphLaunch") - before;
    expect(launched == 0, std::to_string(launched) + " graphs of one kernel where two threads take turns");
  }
  for (const char *call : {"cudaGraphCreate", "cudaGraphAddKernelNode", "cudaGraphInstantiate",
                           "cudaGraphExecKernelNodeSetParams", "cudaGraphLaunch"}) {
    const auto backend = make_cuda_backend();
    int failed = 0;
    for (int i = 0; i < kFrames; i++) {
      if (i == kTimed) standin::fail_call(call, 2, cudaErrorMemoryAllocation);
      try {
        filter(*backend, i);
      } catch (const Error &error) {
        failed++;
        expect(std::strstr(error.what(), call), std::string(error.what()) + " names " + call);
      }
    }
    expect(failed == 1, std::string(call) + ": frames that fail: " + std::to_string(failed));
  }
}

// Copies within the device write the bytes of their rectangles alone, also where rows go from bottom to top, and where
// they begin at odd addresses.
void test_copies_on_the_device() {
  constexpr int kPitch = 96, kRows = 70;
  constexpr size_t kBytes = kPitch * kRows;
  const Stream stream;
  DeviceBuffer memory[2];
  for (DeviceBuffer &buffer : memory) buffer.reserve(kBytes);
  Random random(1);
  for (const bool upward : {false, true})
    for (const size_t begin : {16u, 17u}) {
      std::vector<uint8_t> source(kBytes), target(kBytes), got(kBytes);
      for (std::vector<uint8_t> *bytes : {&source, &target})
        for (uint8_t &byte : *bytes) byte = static_cast<uint8_t>(random());
      check(cudaMemcpy(memory[0].data(), source.data(), kBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      check(cudaMemcpy(memory[1].data(), target.data(), kBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      FrameView from, to;
      from.plane[0] = {memory[0].data() + (upward ? kBytes - kPitch : 0), upward ? -kPitch : kPitch};
      to.plane[0] = {memory[1].data(), kPitch};
      const CopyRect rects[] = {{0, begin, 37, 3, kRows}, {0, 64, 16, 0, 1}};
      copy_rects({rects[0], rects[1]}, from, to, cudaMemcpyDeviceToDevice, stream.get());
      check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
      check(cudaMemcpy(got.data(), memory[1].data(), kBytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
      for (const CopyRect &r : rects)
        for (int y = r.y0; y < r.y1; y++)
          std::memcpy(&target[y * kPitch + r.begin], &source[(upward ? kRows - 1 - y : y) * kPitch + r.begin],
                      r.length);
      expect(got == target, "a copy on the device from byte " + std::to_string(begin) + (upward ? ", upward" : ""));
    }
}

// When memory runs out, even at the end of submit(), nothing of the frame is in flight. The list of frames in flight
// allocates last, for one frame of many.
void test_memory_runs_out(Backend &backend) {
  constexpr int kFrames = 80;
  const auto fails = [&](long n) {
    const auto work = std::make_unique<Work>("GRAY8", 33, 5, repeated(Mask::Gauss3, 1), 1);
    Ticket ticket = 0;
    const bool failed = with_failing_new(n, [&] {
      try {
        ticket = backend.submit(work->plan, work->source.view(), work->target.view());
      } catch (const std::bad_alloc &) {
      }
    });
    if (!ticket) return true;
    backend.retire(ticket);
    expect(work->is_right(), "a frame is right where memory is short");
    return failed;
  };
  long usual = 1;
  while (fails(usual)) usual++;
  for (int i = 0; i < kFrames; i++)
    for (long n = std::max(usual - 8, 1l); fails(n);) n++;
  expect_right(backend, "after memory has run out");
}
#endif

// The reason why no context can be made is named, and does not reappear in the next call. The current device stays.
void test_why_no_context(Backend &backend) {
  expect(why_no_context(0).empty(), "a context can be made: " + why_no_context(0));
  expect(!why_no_context(999).empty(), "there is no device 999");
#ifdef HAVE_STANDIN
  standin::fail_call("cudaFree", 1, cudaErrorMemoryAllocation);
  const std::string why = why_no_context(0);
  expect(why.find("out of memory") != why.npos, "why a context cannot be made: \"" + why + "\"");
  expect(why.find("new process") == why.npos, "memory is available again: \"" + why + "\"");
  try {
    check(cudaErrorIllegalAddress, "a call");
  } catch (const Error &) {
  }
  standin::fail_call("cudaFree", 1, cudaErrorDevicesUnavailable);
  const std::string later = why_no_context(0);
  expect(later.find("cudaErrorIllegalAddress") != later.npos && later.find("new process") != later.npos,
         "an error that only a new process gets rid of: \"" + later + "\"");
  // The thread keeps its device, and so its context: cudaSetDevice() might not bring them back.
  standin::fail_call("cudaSetDevice", 2, cudaErrorDevicesUnavailable);
  why_no_context(1);
  expect(cudaGetLastError() == cudaSuccess, "no error is left behind");
  int device = -1;
  expect(cudaGetDevice(&device) == cudaSuccess && device == 0, "the current device stays");
#endif
  expect_right(backend, "after calls of why_no_context()");
}

// A small frame of two planes is copied by the calling thread, a large one by several.
void test_threads_that_copy() {
  int calls = 0;
  const auto backend = make_cuda_backend(nullptr, [&](int n, const std::function<void(int)> &body) {
    calls++;
    for (int i = n - 1; i >= 0; i--) body(i);
  });
  for (const int side : {320, 640}) {
    Work work("NV12", side, side, repeated(Mask::Gauss3, 1), side);
    calls = 0;
    backend->retire(backend->submit(work.plan, work.source.view(), work.target.view()));
    expect(work.is_right(), "a copied frame");
    expect(calls == (side == 320 ? 0 : 2), std::to_string(side) + ": copies by threads: " + std::to_string(calls));
  }
}

// border=keep on planes that are neither dense nor unpacked.
void test_kept_pixels(Backend &backend) {
  FilterSettings settings = repeated(Mask::Box, 1);
  settings.size = 67;
  settings.border = Border::Keep;
  Work work("RGB10x2_LE", 100, 80, settings, 1);
  backend.retire(backend.submit(work.plan, work.source.view(), work.target.view()));
  expect(work.is_right(), "kept pixels of bit fields");
}

// One thread submits, another one retires, and a third one asks stats().
void test_threads(Backend &backend) {
  constexpr int kFrames = 120;
  constexpr size_t kInFlight = 4;
  std::vector<Work> work;
  const FilterSettings settings[] = {repeated(Mask::Gauss3, 1), repeated(Mask::Sobel, 1, Method::Global),
                                     repeated(Mask::Gauss3, 12), repeated(Mask::Open, 1)};
  for (int i = 0; i < kFrames; i++) work.emplace_back(i % 3 ? "GRAY8" : "YUY2", 21 + i % 5, 4, settings[i % 4], i);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Ticket> tickets;
  size_t retired = 0;
  std::thread submits([&] {
    for (Work &w : work) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return tickets.size() - retired < kInFlight; });
      lock.unlock();
      const Ticket ticket = backend.submit(w.plan, w.source.view(), w.target.view());
      lock.lock();
      tickets.push_back(ticket);
      changed.notify_all();
    }
  });
  std::atomic<bool> ended{false};
  std::thread asks([&] {
    while (!ended) {
      backend.stats();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kFrames; i++) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return tickets.size() > retired; });
    const Ticket ticket = tickets[retired];
    lock.unlock();
    backend.retire(ticket);
    expect(work[i].is_right(), "frame " + std::to_string(i) + ", retired by another thread");
    lock.lock();
    retired++;
    changed.notify_all();
  }
  submits.join();
  ended = true;
  asks.join();
}

// Two threads may retire at the same time, for example when an element stops. Each finds its own frame complete.
void test_two_that_retire(Backend &backend) {
  for (int round = 0; round < 60; round++) {
    std::vector<Work> work;
    std::vector<Ticket> tickets;
    for (int i = 0; i < 2; i++) work.emplace_back("GRAY8", 21, 4, repeated(Mask::Gauss3, 1 + round % 3), 2 * round + i);
    for (Work &w : work) tickets.push_back(backend.submit(w.plan, w.source.view(), w.target.view()));
    std::atomic<int> ready{0};
    const auto retire = [&](int i) {
      ready++;
      while (ready < 2) std::this_thread::yield();
      backend.retire(tickets[i]);
      expect(work[i].is_right(), "frame " + std::to_string(i) + ", with two threads that retire");
    };
    std::thread other(retire, round % 2);
    retire(1 - round % 2);
    other.join();
  }
}

#ifdef HAVE_STANDIN
// Rows that are as far apart as kernels can take: 2 GiB from row to row of a field. Frames whose rows are farther apart
// are copied. The pages between rows take no memory.
void test_far_rows(Backend &backend) {
  constexpr ptrdiff_t kPitch = (ptrdiff_t{1} << 30) - 16;
  const FrameLayout layout = with_fields(format_named("RGBA").layout(21, 6));
  GuardedFrame source(layout, {0, 0, 256, 0}), target(layout, {0, 0, 256, 0}), want(layout, {0, 0, 256, 0});
  Random random(1);
  source.fill(random);
  const auto rows = layout.plane[0].height;
  const size_t bytes = kPitch * rows, row_bytes = 4 * layout.plane[0].width;
  void *memory[2];
  FrameView far[2];
  for (int i = 0; i < 2; i++) {
    memory[i] = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory[i] == MAP_FAILED) {
      std::printf("SKIP far rows: no addresses for %zu bytes\n", bytes);
      return;
    }
    far[i].plane[0] = {static_cast<uint8_t *>(memory[i]), kPitch};
    far[i].on_device = true;
  }
  const auto copy = [&](const PlaneView &from, const PlaneView &to) {
    for (int y = 0; y < rows; y++) std::memcpy(to.data + y * to.pitch, from.data + y * from.pitch, row_bytes);
  };
  copy(source.view().plane[0], far[0].plane[0]);
  for (const Mask mask : {Mask::Gauss5, Mask::Sobel, Mask::Dilate, Mask::Box, Mask::Median}) {
    FilterSettings settings = repeated(mask, 1);
    if (mask == Mask::Box || mask == Mask::Median) settings.size = 7;
    target = want;
    reference::write(reference::filter(settings, layout, reference::read(layout, source.view())), layout, want.view());
    backend.retire(backend.submit(make_plan(settings, layout), far[0], far[1]));
    copy(far[1].plane[0], target.view().plane[0]);
    expect(target == want, std::string("far rows, mask=") + mask_nick(mask));
  }
  for (void *each : memory) munmap(each, bytes);
  const std::vector<MemoryPlane> planes = memory_planes_of(layout);
  expect(is_aligned(far[0], planes), "far rows are used where they are");
  far[0].plane[0].pitch += 16;
  expect(!is_aligned(far[0], planes), "rows that are farther apart are copied");
}

// Few rectangles travel with the launch that puts them in place. Other pixels are lists within a rectangle.
void test_selections() {
  const FrameLayout layout = format_named("GRAY8").layout(300, 200);
  const auto plan = make_plan({}, layout);
  std::vector<uint8_t> lists;
  const auto select = [&](int squares, bool ellipse, int feather) {
    Regions regions;
    regions.active = true;
    regions.ellipse = ellipse;
    regions.feather = feather;
    for (int i = 0; i < squares; i++) regions.region.push_back({10 + 15 * i, 10, 9, 9});
    return select_regions(*plan, RegionWork(*plan, regions, Cancellation(nullptr)), &lists);
  };
  const Selection few = select(kMostSelectedRects, false, 0);
  expect(few.rects.size() == kMostSelectedRects && few.rows.empty() && lists.empty(), "rectangles without a list");
  for (const Selection &listed : {select(kMostSelectedRects + 1, false, 0), select(4, true, 0), select(1, false, 256)})
    expect(listed.rects.size() == 1 && listed.rows.size() == 1 && !lists.empty() && lists.size() % 16 == 0,
           "lists within a rectangle");
}

// The regions of a frame that is unpacked are worked out twice: for its dense planes, and for its copies.
void test_cancelled_regions() {
  using Clock = std::chrono::steady_clock;
  const auto plan = make_plan({}, format_named("YUY2").layout(256, 256));
  Regions regions;
  regions.active = regions.ellipse = true;
  regions.feather = 8 * 256;
  for (int i = 0; i < 5000; i++) regions.region.push_back({i % 250, i / 20, 9, 9});
  const auto make_job = [&](const std::atomic<bool> *cancelled) {
    PreparedPlans prepared(find_kernels());
    return make_region_job({{plan, regions}}, true, prepared, Cancellation(cancelled));
  };
  const Clock::time_point begin = Clock::now();
  expect(make_job(nullptr)->has_copies, "regions of a frame that is filtered in place have copies");
  const Clock::duration took = Clock::now() - begin;
  for (int i = 0; i < 40; i++) {
    std::atomic<bool> cancelled{false};
    std::thread other([&] {
      std::this_thread::sleep_for(took * i / 40);
      cancelled = true;
    });
    try {
      make_job(&cancelled);
    } catch (const Error &error) {
      expect(error.kind() == Error::Kind::Cancelled, "regions are cancelled");
    }
    other.join();
  }
}

// A frame that is given up at any allocation leaves its slot to the next frame, which has the same regions.
void test_cancelled_lists() {
  const auto backend = make_cuda_backend();
  const FrameLayout layout = format_named("GRAY8").layout(64, 48);
  const auto plan = make_plan({}, layout);
  GuardedFrame source(layout, {0, 0, 16, 0});
  Random random(3);
  source.fill(random);
  Regions regions[2];
  GuardedFrame want[2] = {source, source};
  for (int i = 0; i < 2; i++) {
    regions[i].active = regions[i].ellipse = true;
    regions[i].region = {{4 + 8 * i, 6, 40, 30}};
    reference::write(reference::filter({}, layout, reference::read(layout, source.view()), regions[i]), layout,
                     want[i].view());
  }
  const auto filter = [&](int i, const std::atomic<bool> &cancelled) {
    GuardedFrame got = source;
    backend->retire(backend->submit(plan, source.view(), got.view(), regions[i], &cancelled));
    expect(got == want[i], "regions after a frame that was given up");
  };
  std::atomic<bool> cancelled{false};
  for (int i = 0; i < 40; i++) filter(i % 2, cancelled);
  int given_up = 0;
  for (int n = 1; n < 200; n++) {
    with_call_in_new(
        n, [&] { cancelled = true; },
        [&] {
          try {
            filter(n % 2, cancelled);
          } catch (const Error &error) {
            given_up += error.kind() == Error::Kind::Cancelled;
          }
        });
    cancelled = false;
    filter(n % 2, cancelled);
  }
  expect(given_up > 10, "frames with regions are given up");
}
#endif

int run() {
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  const auto backend = make_cuda_backend();
  test_cancellation(*backend);
#ifdef HAVE_STANDIN
  test_launches_ahead();
  test_chosen_once();
  test_failures(*backend);
  test_graphs();
  test_copies_on_the_device();
  test_memory_runs_out(*backend);
  test_selections();
  test_cancelled_regions();
  test_cancelled_lists();
  test_far_rows(*backend);
#endif
  test_why_no_context(*backend);
  test_threads_that_copy();
  test_kept_pixels(*backend);
  test_threads(*backend);
  test_two_that_retire(*backend);
  std::printf("%d failed\n", failures.load());
  return failures ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  try {
    return cudaconv::test::run();
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
