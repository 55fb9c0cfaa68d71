// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests faults of a real GPU: an illegal access in the element's context, and device memory that is used up before the
// element starts, while frames flow, or by another process. Each test prints a line: frames in, out and wrong, the
// messages, and the backend after a restart. A context that another program part destroys is not tested: its handle is
// a dangling pointer, on which the driver ends the process.
//
// failures.cpp makes every call of the CUDA runtime fail, on the stand-in.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "gstcudacompat.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr char kMask[] = "mask=gauss5";

// Large frames, for which the driver has no memory in reserve.
const GstVideoInfo &large() {
  static const GstVideoInfo info = video_info("GRAY8", 2048, 1080);
  return info;
}

// A reference to the context of the element, which is in READY or above.
Ref<GstCudaContext> context_of(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context(GST_CUDA_CONTEXT_TYPE));
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  fail_unless(gst_pad_query(pad.get(), query.get()), "the element has no CUDA context");
  GstContext *context = nullptr;
  gst_query_parse_context(query.get(), &context);
  GstCudaContext *found = nullptr;
  gst_structure_get(gst_context_get_structure(context), GST_CUDA_CONTEXT_TYPE, GST_TYPE_CUDA_CONTEXT, &found, nullptr);
  return Ref<GstCudaContext>(found);
}

// Writes to an unmapped address. The context is unusable from then on.
void access_illegally(GstElement *element) {
  constexpr char kStore[] =
      ".version 6.3\n.target sm_75\n.address_size 64\n"
      ".visible .entry store() {\n.reg .b64 %address;\n.reg .b32 %value;\n"
      "mov.u64 %address, 64;\nmov.u32 %value, 1;\nst.global.u32 [%address], %value;\nret;\n}\n";
  const Ref<GstCudaContext> context = context_of(element);
  fail_unless(gst_cuda_context_push(context.get()));
  CUmodule module;
  CUfunction store;
  fail_unless_equals_int(CuModuleLoadData(&module, kStore), CUDA_SUCCESS);
  fail_unless_equals_int(CuModuleGetFunction(&store, module, "store"), CUDA_SUCCESS);
  fail_unless_equals_int(CuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  fail_unless(CuStreamSynchronize(nullptr) != CUDA_SUCCESS, "the illegal access did not fail");
  gst_cuda_context_pop(nullptr);
}

// Allocates all device memory, in a separate context. The destructor frees it.
class AllMemory {
 public:
  AllMemory() : context_(gst_cuda_context_new(0)) {
    // Without a device it allocates nothing: the other process has no test to fail.
    if (!context_ || !gst_cuda_context_push(context_.get())) return;
    for (size_t bytes = size_t{1} << 34; bytes >= 1 << 16; bytes /= 2) {
      CUdeviceptr memory;
      while (CuMemAlloc(&memory, bytes) == CUDA_SUCCESS) memory_.push_back(memory);
    }
    gst_cuda_context_pop(nullptr);
  }
  ~AllMemory() {
    if (memory_.empty()) return;
    gst_cuda_context_push(context_.get());
    for (const CUdeviceptr memory : memory_) CuMemFree(memory);
    gst_cuda_context_pop(nullptr);
  }
  AllMemory(const AllMemory &) = delete;

  bool empty() const { return memory_.empty(); }

 private:
  const Ref<GstCudaContext> context_;
  std::vector<CUdeviceptr> memory_;
};

struct Counts {
  int in = 0, out = 0, wrong = 0;
};

// Pushes frames through an element with its own context, and checks that they come out in order.
class Run {
 public:
  Run(const std::string &backend, int in_flight, int device = -1)
      : backend_(backend),
        harness_(new_element("backend=" + backend + " " + kMask + " frames-in-flight=" + std::to_string(in_flight) +
                                 " cuda-device-id=" + std::to_string(device),
                             false)) {}

  GstElement *element() const { return harness_.element(); }
  Harness &harness() { return harness_; }

  // Pushes frames until one is refused.
  void push(const GstVideoInfo &info, int frames) {
    harness_.set_caps(info);
    for (int i = 0; i < frames; i++) {
      in_.push_back({random_frame(info, random_), info});
      GST_BUFFER_PTS(in_.back().buffer.get()) = in_.size() - 1;  // refused frames have a number too
      if (harness_.push(in_.back().buffer.get()) != GST_FLOW_OK) return;
      counts_.in++;
    }
  }
  // Takes the frames that have come out, and counts wrong frames.
  void take() {
    harness_.settle();
    while (GstBuffer *buffer = gst_harness_try_pull(harness_.get())) {
      const Ref<GstBuffer> out(buffer);
      const auto n = static_cast<size_t>(GST_BUFFER_PTS(buffer));
      fail_unless(n >= next_ && n < in_.size(), "frame %zu comes out where %zu was the next", n, next_);
      next_ = n + 1;
      counts_.out++;
      std::string why;
      counts_.wrong += !is_filtered(in_[n].buffer.get(), buffer, in_[n].info, kMask, &why);
    }
  }
  const Counts &counts() const { return counts_; }

  // Prints the line of the table. Fails the test if a frame is wrong, lost without an error, or from before the fault
  // and lost. With backend=auto, also fails if any frame is lost or more than one warning is posted. With backend=cuda,
  // also fails if more than one error or any warning is posted.
  void report(const char *fault, int before) {
    take();
    const std::vector<Report> errors = harness_.take(GST_MESSAGE_ERROR), warnings = harness_.take(GST_MESSAGE_WARNING);
    printf("%-36s %-5s %2d in %2d out %d wrong; %zu warnings, %zu errors%s%s\n", fault, backend_.c_str(), counts_.in,
           counts_.out, counts_.wrong, warnings.size(), errors.size(), errors.empty() && warnings.empty() ? "" : ": ",
           !errors.empty()     ? errors[0].text.c_str()
           : !warnings.empty() ? warnings[0].text.c_str()
                               : "");
    fflush(stdout);
    fail_unless_equals_int(counts_.wrong, 0);
    fail_unless(counts_.out >= before, "frames from before the fault are lost");
    if (backend_ == "auto") {
      fail_unless_equals_int(counts_.out, static_cast<int>(in_.size()));
      fail_unless(errors.empty() && warnings.size() <= 1);
    } else {
      fail_unless(errors.size() <= 1 && warnings.empty());
      fail_unless(!errors.empty() || counts_.out == static_cast<int>(in_.size()), "frames are lost without an error");
    }
  }

  // Stops the element, starts it and filters a frame. Returns the backend that filtered it, or "not".
  std::string restart() {
    if (gst_element_set_state(element(), GST_STATE_NULL) != GST_STATE_CHANGE_SUCCESS ||
        gst_element_set_state(element(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
      return "not";
    harness_.set_caps(video_info("RGBA", 8, 8));
    harness_.set_caps(small());
    const Ref<GstBuffer> in = random_frame(small(), random_);
    if (harness_.push(in.get()) != GST_FLOW_OK) return "not";
    harness_.settle();
    const Ref<GstBuffer> out(gst_harness_try_pull(harness_.get()));
    fail_unless(out != nullptr, "the frame after the restart is lost");
    assert_filtered(in.get(), out.get(), small(), kMask);
    return stat_string(harness_, "backend");
  }
  void expect_restart(const char *backend) {
    const std::string now = restart();
    std::string why;
    for (const GstMessageType type : {GST_MESSAGE_ERROR, GST_MESSAGE_WARNING})
      for (const Report &report : harness_.take(type)) why += report.text + " ";
    printf("%-36s after a restart: %s %s\n", "", now.c_str(), why.c_str());
    fflush(stdout);
    assert_same_text(now, backend);
  }

 private:
  struct Frame {
    Ref<GstBuffer> buffer;
    GstVideoInfo info;
  };
  const std::string backend_;
  Harness harness_;
  Random random_ = seeded();
  std::vector<Frame> in_;
  size_t next_ = 0;
  Counts counts_;
};

// From the command line "faults BACKEND FRAMES_IN_FLIGHT", for one case in a separate process: a fault can outlast the
// context.
const char *backend_of_process;
int in_flight_of_process;

void run_in_processes(const char *name) {
  for (const char *backend : {"auto", "cuda"}) {
    for (const char *in_flight : {"1", "4"}) {
      char program[] = "/proc/self/exe";
      char *arguments[] = {program, const_cast<char *>(backend), const_cast<char *>(in_flight), nullptr};
      gchar **const environment = g_environ_setenv(g_get_environ(), "CK_RUN_CASE", name, TRUE);
      int status = 0;
      fail_unless(g_spawn_sync(nullptr, arguments, environment, G_SPAWN_DEFAULT, nullptr, nullptr, nullptr, nullptr,
                               &status, nullptr));
      g_strfreev(environment);
      fail_unless(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, backend=%s frames-in-flight=%s: status %d", name,
                  backend, in_flight, status);
    }
  }
}

// After an illegal access the driver works only in a new process, so each case has its own process.
GST_START_TEST(an_illegal_access_in_the_elements_context) {
  if (!backend_of_process) return run_in_processes("illegal-access");
  Run run(backend_of_process, in_flight_of_process);
  run.push(small(), 3);
  run.take();
  fail_unless_equals_int(run.counts().out, 3);
  access_illegally(run.element());
  run.push(small(), 6);
  run.report("an illegal access", 3);
  run.expect_restart(!strcmp(backend_of_process, "auto") ? "cpu" : "not");
}
GST_END_TEST;

// The context of one GPU fails. The driver may then refuse the contexts of other GPUs in the process, too, as that of
// release 580 does: with backend=auto the CPU goes on with their frames. None is wrong, and none is lost.
GST_START_TEST(an_illegal_access_on_one_of_two_gpus) {
  if (!gst_cuda_load_library() || !Ref<GstCudaContext>(gst_cuda_context_new(1))) {
    g_printerr("SKIP: no second GPU for a fault on one of two\n");
    return;
  }
  if (!backend_of_process) return run_in_processes("illegal-access-of-two");
  Run failing(backend_of_process, in_flight_of_process, 0), other(backend_of_process, in_flight_of_process, 1);
  for (Run *run : {&failing, &other}) {
    run->push(small(), 3);
    run->take();
    fail_unless_equals_int(run->counts().out, 3);
  }
  access_illegally(failing.element());
  failing.push(small(), 6);
  other.push(small(), 6);
  failing.report("an illegal access on GPU 0", 3);
  other.report("the same, frames on GPU 1", 3);
  const std::string now = other.restart();
  for (const GstMessageType type : {GST_MESSAGE_ERROR, GST_MESSAGE_WARNING}) other.harness().take(type);
  printf("%-36s frames on GPU 1 after a restart: %s\n", "", now.c_str());
  if (!strcmp(backend_of_process, "auto"))
    fail_unless(now == "cpu" || now == "cuda", "after a restart: %s", now.c_str());
}
GST_END_TEST;

GST_START_TEST(memory_is_used_up_while_frames_flow) {
  for (const char *backend : {"auto", "cuda"}) {
    Run run(backend, 2);
    run.push(small(), 2);
    run.take();
    {
      const AllMemory all;
      fail_if(all.empty());
      run.push(large(), 2);
      run.report("memory is used up", 2);
    }
    run.expect_restart("cuda");
  }
}
GST_END_TEST;

GST_START_TEST(memory_is_used_up_before_the_start) {
  for (const char *backend : {"auto", "cuda"}) {
    Ref<GstElement> element = new_element(std::string("backend=") + backend + " " + kMask, false);
    {
      const AllMemory all;
      fail_if(all.empty());
      const bool started = gst_element_set_state(element.get(), GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
      const std::vector<Ref<GstMessage>> errors = take_messages(element.get(), GST_MESSAGE_ERROR);
      printf("%-36s %-5s %s%s%s\n", "memory is used up before the start", backend,
             started ? "starts" : "does not start", errors.empty() ? "" : ": ",
             errors.empty() ? "" : report_of(errors[0].get()).text.c_str());
      fail_unless(started || !strcmp(backend, "cuda"), "backend=auto does not start");
      fail_unless_equals_int(errors.size(), started ? 0 : 1);
      gst_element_set_state(element.get(), GST_STATE_NULL);
    }
    gst_element_set_bus(element.get(), nullptr);
    Run run(backend, 2);
    {
      const AllMemory all;
      run.expect_restart(!strcmp(backend, "auto") ? "cpu" : "not");
    }
    run.expect_restart("cuda");
  }
}
GST_END_TEST;

// Another process repeatedly takes all free device memory, while this process filters frames.
GST_START_TEST(another_process_uses_up_memory) {
  // The elements start before the other process, which may leave no memory for a context.
  std::vector<std::unique_ptr<Run>> runs;
  for (const char *backend : {"auto", "cuda"}) {
    runs.push_back(std::make_unique<Run>(backend, 4));
    runs.back()->push(small(), 1);
    runs.back()->take();
  }
  int ready[2];
  fail_unless_equals_int(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    // CUDA does not survive a fork: the other process executes the program again.
    dup2(ready[1], 1);
    execl("/proc/self/exe", "faults", "--take-memory", nullptr);
    _exit(1);
  }
  close(ready[1]);
  char byte;
  fail_unless(read(ready[0], &byte, 1) == 1, "the other process did not start");
  for (const std::unique_ptr<Run> &run : runs) {
    for (int i = 0; i < 4; i++) {
      run->push(i % 2 ? large() : small(), 3);
      run->take();
    }
    run->report("another process takes memory", 1);
  }
  runs.clear();
  close(ready[0]);
  int status;
  fail_unless_equals_int(waitpid(other, &status, 0), other);
  fail_unless(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process failed");
  Run run("cuda", 1);
  run.expect_restart("cuda");
}
GST_END_TEST;

// The body of the other process: takes all memory and frees it repeatedly, for some seconds.
int take_memory() {
  if (!gst_cuda_load_library()) return 1;
  const gint64 end = g_get_monotonic_time() + 4 * G_USEC_PER_SEC;
  for (bool first = true; g_get_monotonic_time() < end; first = false) {
    const AllMemory all;
    if (first && write(1, "+", 1) != 1) return 1;
    g_usleep(50000);
  }
  return 0;
}

Suite *make_suite() {
  Suite *suite = suite_create("faults");
  // Each test has its own test case, so that CK_RUN_CASE=NAME runs it alone.
  const auto add = [&](const char *name, auto test) {
    TCase *tc = tcase_create(name);
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, test);
  };
  add("memory-while", memory_is_used_up_while_frames_flow);
  add("memory-before", memory_is_used_up_before_the_start);
  add("two-processes", another_process_uses_up_memory);
  add("illegal-access-of-two", an_illegal_access_on_one_of_two_gpus);
  add("illegal-access", an_illegal_access_in_the_elements_context);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--take-memory")) {
    gst_init(nullptr, nullptr);
    return take_memory();
  }
  if (argc > 2) {
    backend_of_process = argv[1];
    in_flight_of_process = atoi(argv[2]);
  }
  return run_suite(1, argv, "faults", make_suite, true);
}
