// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Exceptions: from threads of the CPU backend to the caller, and from there into messages.
#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>

#include "gstcudaconvframe.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvworkers.h"
#undef GST_CAT_DEFAULT  // gst-check defines it too
#include "support.h"

GST_DEBUG_CATEGORY(gst_cuda_conv_debug);

using namespace cudaconv;
using cudaconv::gst::FrameError;
using cudaconv::gst::guarded;
using cudaconv::gst::make_parallel_for;
using namespace cudaconv::test;

namespace {

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
    std::atomic<int> sum{0};
    parallel_for(20, [&](int i) { sum += i; });
    fail_unless_equals_int(sum, 190);
  }
}
GST_END_TEST;

// Calls guarded() with a function that throws, and returns the messages that this posts.
std::vector<Ref<GstMessage>> messages_of(const std::function<void()> &throw_it) {
  const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr))));
  const int answer = guarded(element.get(), 1, [&] {
    throw_it();
    return 2;
  });
  fail_unless_equals_int(answer, 1);
  return take_messages(element.get(), GST_MESSAGE_ERROR);
}

GST_START_TEST(each_kind_of_exception_is_an_error_of_its_own) {
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
  // Cancelled work is no error, since a flush or a stop has asked for it.
  fail_unless(messages_of([] { throw Error(Error::Kind::Cancelled, "given up"); }).empty());
}
GST_END_TEST;

Suite *make_suite() {
  GST_DEBUG_CATEGORY_INIT(gst_cuda_conv_debug, "cudaconv", 0, "2D convolution and morphology");
  Suite *suite = suite_create("exceptions");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, an_exception_of_any_thread_is_thrown_to_the_caller);
  tcase_add_test(tc, each_kind_of_exception_is_an_error_of_its_own);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "exceptions", make_suite, false);
}
