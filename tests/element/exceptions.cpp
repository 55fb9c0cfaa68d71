// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests exceptions: from threads of the CPU backend to the caller, and from there to messages. Also tests a system that
// starts no more threads.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "failingnew.h"
#include "gstcudaconvframe.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvworkers.h"
#undef GST_CAT_DEFAULT  // gst-check defines it, too
#include "support.h"

using namespace cudaconv;
using cudaconv::gst::FrameError;
using cudaconv::gst::guarded;
using cudaconv::gst::make_parallel_for;
using namespace cudaconv::test;

namespace {

std::atomic<int> threads_left{1000};  // threads that the system still starts

}  // namespace

// Replaces the system's function, to act like a limit on processes.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*call)(void *), void *data) {
  if (threads_left <= 0) return EAGAIN;
  threads_left--;
  return reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, call,
                                                                                         data);
}

namespace {

// The sum of 0 to 19, computed with a ParallelFor.
int sum_by(const ParallelFor &parallel_for) {
  std::atomic<int> sum{0};
  parallel_for(20, [&](int i) { sum += i; });
  return sum;
}

GST_START_TEST(threads_that_the_system_refuses_are_not_needed) {
  for (int allowed : {0, 1, 3}) {
    threads_left = allowed;
    {
      const ParallelFor parallel_for = make_parallel_for(4);
      for (int i = 0; i < 20; i++) fail_unless_equals_int(sum_by(parallel_for), 190);
      if (allowed == 1) threads_left = 1000;  // the process may start threads again
      fail_unless_equals_int(sum_by(parallel_for), 190);
      threads_left = 0;
    }  // ends all its threads
    threads_left = 1000;
  }
}
GST_END_TEST;

// When a call returns, failed or not, no thread works any more.
GST_START_TEST(memory_that_runs_out_leaves_no_thread_at_work) {
  const ParallelFor parallel_for = make_parallel_for(4);
  for (long n = 1; n < 20; n++)
    for (int repeats = 0; repeats < 50; repeats++) {
      std::atomic<bool> returned{false};
      std::atomic<int> late{0};
      with_failing_new(n, [&] {
        try {
          parallel_for(20, [&](int) { late += returned; });
        } catch (const std::bad_alloc &) {
        }
        returned = true;
      });
      g_thread_yield();
      fail_unless_equals_int(late, 0);
    }
  fail_unless_equals_int(sum_by(parallel_for), 190);
}
GST_END_TEST;

// Both threads of an element with frames in flight copy pixels at the same time.
GST_START_TEST(several_callers_share_the_threads) {
  const ParallelFor parallel_for = make_parallel_for(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; c++)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; i++) wrong += sum_by(parallel_for) != 190;
    });
  for (std::thread &caller : callers) caller.join();
  fail_unless_equals_int(wrong, 0);
}
GST_END_TEST;

GST_START_TEST(an_exception_of_any_thread_is_thrown_to_the_caller) {
  for (int threads : {1, 4}) {
    const ParallelFor parallel_for = make_parallel_for(threads);
    for (int failing = 0; failing < 20; failing++) {
      std::atomic<int> calls{0};
      std::string caught;
      try {
        parallel_for(20, [&](int i) {
          calls++;
          if (i == failing) throw std::runtime_error("piece " + std::to_string(i));
        });
      } catch (const std::runtime_error &e) {
        caught = e.what();
      }
      assert_same_text(caught, "piece " + std::to_string(failing));
      fail_unless(calls > failing);
    }
    // After an exception the threads are still usable.
    fail_unless_equals_int(sum_by(parallel_for), 190);
  }
}
GST_END_TEST;

// Calls guarded() with a function that throws, and returns the posted messages.
std::vector<Ref<GstMessage>> messages_of(const std::function<void()> &throw_it) {
  const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr))));
  const int answer = guarded(element.get(), 1, [&] {
    throw_it();
    return 2;
  });
  fail_unless_equals_int(answer, 1);
  return take_messages(element.get(), GST_MESSAGE_ERROR);
}

GST_START_TEST(each_kind_of_exception_is_a_different_error) {
  const struct {
    std::function<void()> throw_it;
    GQuark domain;
    int code;
    const char *text, *debug;
  } cases[] = {
      {[] { throw Error(Error::Kind::Settings, "size=4", "mask.cpp", 17); }, GST_LIBRARY_ERROR,
       GST_LIBRARY_ERROR_SETTINGS, "size=4", "mask.cpp(17)"},
      {[] { throw Error(Error::Kind::Format, "v210", "plan.cpp", 18); }, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
       "v210", "plan.cpp(18)"},
      {[] { throw Error(Error::Kind::NoDevice, "no device", "a.cpp", 19); }, GST_RESOURCE_ERROR,
       GST_RESOURCE_ERROR_NOT_FOUND, "no device", "a.cpp(19)"},
      {[] { throw Error(Error::Kind::Device, "cudaMalloc", "b.cpp", 20); }, GST_RESOURCE_ERROR,
       GST_RESOURCE_ERROR_FAILED, "cudaMalloc", "b.cpp(20)"},
      {[] { throw FrameError("An input buffer is short."); }, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED,
       "An input buffer is short.", ""},
      {[] { throw std::bad_alloc(); }, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT,
       "There is not enough memory.", ""},
      {[] { throw std::length_error("too long"); }, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "too long", ""},
  };
  for (const auto &c : cases) {
    const std::vector<Ref<GstMessage>> messages = messages_of(c.throw_it);
    fail_unless_equals_int(messages.size(), 1);
    const Report report = report_of(messages[0].get());
    fail_unless(report.domain == c.domain && report.code == c.code, "%s", c.text);
    assert_same_text(report.text, c.text);
    fail_unless(report.debug.rfind(c.debug, 0) == 0, "%s", report.debug.c_str());
  }
  // Cancelled work is no error, since a flush or a stop requested it.
  fail_unless(messages_of([] { throw Error(Error::Kind::Cancelled, "given up"); }).empty());
}
GST_END_TEST;

Suite *make_suite() {
  cudaconv::gst::init_debug();
  Suite *suite = suite_create("exceptions");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, threads_that_the_system_refuses_are_not_needed);
  tcase_add_test(tc, memory_that_runs_out_leaves_no_thread_at_work);
  tcase_add_test(tc, several_callers_share_the_threads);
  tcase_add_test(tc, an_exception_of_any_thread_is_thrown_to_the_caller);
  tcase_add_test(tc, each_kind_of_exception_is_a_different_error);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "exceptions", make_suite, false);
}
