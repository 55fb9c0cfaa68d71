// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Helpers for all tests of the element: frames in buffers, the reference filter's results for them, and a GstHarness
// with a bus around one cudaconv.
#pragma once

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "filter.h"
#include "imageview.h"

// GStreamer's own macro waits for all tasks, also for tasks of elements that a failed test has left.
#undef GST_END_TEST
#define GST_END_TEST END_TEST

namespace cudaconv::test {

using Random = std::mt19937;
// A random generator with the same numbers in every test and every run.
inline Random seeded() {
  return Random(20240611);
}

struct Unref {
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstEvent *event) const { gst_event_unref(event); }
  void operator()(GstQuery *query) const { gst_query_unref(query); }
  void operator()(GstMessage *message) const { gst_message_unref(message); }
  void operator()(GstStructure *structure) const { gst_structure_free(structure); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

// The value of an environment variable that is a number.
int number_from_environment(const char *name, int otherwise);

// Whether the element, or all of the program, has AddressSanitizer, which takes long and keeps freed memory for a
// while.
bool has_address_sanitizer();

// Bytes on the heap that malloc() has allocated and that are not freed.
size_t heap_bytes();

// Waits until another thread has made the condition true. Gives up after 100 seconds: other programs may take the
// processor for long.
void wait_until(const std::function<bool()> &condition);

// ---- Settings -------------------------------------------------------------------------------------------------------

// Parses a launch line's properties for the reference filter, for example "mask=custom coefficients='1 2 1; 2 4 2; 1 2
// 1' bias=0.5". Reads the properties of FilterSettings and skips all others, for example `backend` and `border-color`.
FilterSettings settings_of(const std::string &properties);

// A nick of an enumeration and its value.
struct Nick {
  const char *nick;
  int value;
};
const std::vector<Nick> &nicks_of(const char *property);

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstVideoInfo video_info(const char *format, int width, int height);

// Format and size of a small frame, for tests that filter many.
const GstVideoInfo &small();

// The layout of samples in memory, from the hand-made tables of tests/kernels. Fails the test for other formats.
FrameLayout layout_of(const GstVideoInfo &info);
// The same for a frame with two fields, or without. With interlace-mode=mixed each buffer says so.
FrameLayout layout_of(const GstVideoInfo &info, bool fields);

// Bytes around the planes of a frame in its buffer; multiples of 4, so that every container stays aligned.
struct Placement {
  int lead = 0;         // before each plane
  int padding = 0;      // added to each stride
  int tail = 0;         // after each plane
  bool upward = false;  // rows are stored from bottom to top
};
constexpr Placement kScattered = {64, 52, 24}, kUpward = {64, 52, 24, true};

// Returns `info` with the strides, offsets and size of `placement`.
GstVideoInfo place(GstVideoInfo info, const Placement &placement);

// A buffer with the strides, offsets and size of `info`, every byte `fill`, and a GstVideoMeta.
GstBuffer *new_placed_buffer(GstVideoInfo info, guint8 fill);

// A frame of random samples and padding: in the default layout without GstVideoMeta, or by `placement` with one.
Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random);
Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random, const Placement &placement);

// The bytes of a frame, and a view of its planes, from its GstVideoMeta or else from `info`.
struct FrameBytes {
  std::vector<uint8_t> bytes;
  FrameView view;  // into bytes

  FrameBytes(GstBuffer *buffer, const GstVideoInfo &info);
  FrameBytes(FrameBytes &&) = default;
};

// Whether `out` equals the reference's result for `in`, byte for byte. Results whose rounding the reference leaves open
// may be off by one code. Bytes of no sample are ignored, or must be `guard` if it is given. `why` receives the first
// difference. The layout comes from tests/kernels, or is given.
bool is_filtered(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::string &properties,
                 std::string *why, int guard = -1);
bool is_filtered(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const FrameLayout &layout,
                 const std::string &properties, std::string *why, int guard = -1);

#define assert_filtered(in, out, info, ...)                                                             \
  do {                                                                                                  \
    std::string why_;                                                                                   \
    if (!::cudaconv::test::is_filtered_as(&why_, in, out, info, __VA_ARGS__)) fail("%s", why_.c_str()); \
  } while (0)
template <typename... Rest>
bool is_filtered_as(std::string *why, GstBuffer *in, GstBuffer *out, const GstVideoInfo &info,
                    const std::string &properties, Rest... guard) {
  return is_filtered(in, out, info, properties, why, guard...);
}
template <typename... Rest>
bool is_filtered_as(std::string *why, GstBuffer *in, GstBuffer *out, const GstVideoInfo &info,
                    const FrameLayout &layout, const std::string &properties, Rest... guard) {
  return is_filtered(in, out, info, layout, properties, why, guard...);
}

// Whether both have the same samples, with any strides and offsets.
bool same_samples(GstBuffer *a, GstBuffer *b, const GstVideoInfo &info);

// Whether `out` has the reference's samples for `in`. GStreamer's unpacking reads the samples, one component a plane:
// for any format, and independent of the layouts of the element and of tests/kernels. `border_value`: the samples that
// border=constant reads, by component.
bool is_filtered_by_unpacking(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::string &properties,
                              const std::vector<int> &border_value, std::string *why);

// ---- The element ----------------------------------------------------------------------------------------------------

// The backend of the tests, "cpu" or "cuda": the environment variable CUDACONV_TEST_BACKEND.
const char *test_backend();

// Whether the CPU reads all samples of such frames in CUDA memory back. GStreamer 1.24 puts the last plane of planar
// 4:2:0 half a row off, and copies only the columns of the first plane.
bool reads_back(const GstVideoInfo &info);
// "I420", or "Y444" where frames of I420 are not read back.
const char *planar_format();

// A cudaconv in state NULL with its own bus; a bin of a roihold and a cudaconv if `properties` name some of roihold.
// Its backend is test_backend() unless `properties` name one. Unless `shares_context` is false, it gets the CUDA
// context that all tests share, since making one takes long.
Ref<GstElement> new_element(const std::string &properties, bool shares_context = true);

// A bin of elements from a launch line, with its own bus, the shared context, and pads "sink" and "src".
Ref<GstElement> new_bin(const std::string &line);

// The roihold, "hold", or the cudaconv, "filter", of such a bin; another element itself.
Ref<GstElement> part_of(GstElement *element, const char *name);

// Sets properties like a launch line.
void set_properties(GstElement *element, const std::string &properties);

// The property `stats`; of a bin, that of its cudaconv with the fields of its roihold.
Ref<GstStructure> stats_of(GstElement *element);

// Whether the element reaches READY with backend=cuda. It never fails a test, so it may be called outside tests.
bool has_device();

// Releases the CUDA context that all tests share, for tests of contexts. Later elements find or make their own.
void forget_context();

// The messages of one kind, oldest first. Messages of other kinds are dropped.
std::vector<Ref<GstMessage>> take_messages(GstElement *element, GstMessageType type);
// Domain, code and text of an error, warning or info message.
struct Report {
  GQuark domain = 0;
  int code = 0;
  std::string text, debug;
};
Report report_of(GstMessage *message);

class Harness {
 public:
  // Sets the element to PLAYING.
  explicit Harness(const std::string &properties = "") : Harness(new_element(properties)) {}
  explicit Harness(Ref<GstElement> element);
  // Also sets the caps of `info`.
  Harness(const std::string &properties, const GstVideoInfo &info);
  ~Harness();
  Harness(const Harness &) = delete;

  GstHarness *get() const { return harness_; }
  GstElement *element() const { return element_.get(); }

  void set_caps(const GstVideoInfo &info);
  void set(const std::string &properties) { set_properties(element(), properties); }

  // Pushes `in` and returns the output. The caller keeps its reference. Fails the test unless one buffer comes out.
  Ref<GstBuffer> filter(GstBuffer *in);
  // Pushes `in`; the caller keeps its reference.
  GstFlowReturn push(GstBuffer *in);
  // Waits for the next frame to come out. Fails the test if none does.
  Ref<GstBuffer> pull();
  // Waits until nothing is in flight, like a serialized query.
  void settle() const;

  // The messages posted since the last call. The destructor fails the test if an error or a warning is left.
  std::vector<Report> take(GstMessageType type);
  Report take_one(GstMessageType type);

  // The property `stats`, after all frames have been pushed.
  Ref<GstStructure> stats() const;

 private:
  Ref<GstElement> element_;
  GstHarness *harness_;
  std::vector<Ref<GstMessage>> messages_;
  guint64 frames_ = 0;
};

// Copies both texts, which may be temporaries: fail_unless_equals_string() would only keep a pointer.
#define assert_same_text(a, b)                                                                     \
  do {                                                                                             \
    const std::string got_ = a, want_ = b;                                                         \
    fail_unless(got_ == want_, #a " is \"%s\" and should be \"%s\"", got_.c_str(), want_.c_str()); \
  } while (0)

guint64 stat(const Harness &h, const char *field);
std::string stat_string(const Harness &h, const char *field);

// Pushes an event (transfer full) into the element. Fails the test if it is refused.
void push_event(Harness &h, GstEvent *event);

// Records, in order, the names of events and "buffer" for what comes out of the element. A blank follows each name.
// Records until the destructor.
class Order {
 public:
  explicit Order(Harness &h);
  ~Order() { gst_pad_remove_probe(pad_, probe_); }
  Order(const Order &) = delete;

  // The items recorded since the last call.
  std::string take() { return std::exchange(items_, {}); }

 private:
  GstPad *const pad_;
  gulong probe_;
  std::string items_;
};

// Blocks downstream until the destructor: a thread that pushes to it waits.
class Blocked {
 public:
  explicit Blocked(Harness &h);
  ~Blocked() { gst_pad_remove_probe(pad_.get(), probe_); }
  Blocked(const Blocked &) = delete;

 private:
  const Ref<GstPad> pad_;
  gulong probe_;
};

// Answers the element's ALLOCATION queries instead of the harness, with GstVideoMeta and this pool of at least `min`
// and at most `max` buffers (0: any number). The caller keeps its reference to the pool.
void offer_pool(Harness &h, GstBufferPool *pool, guint max = 0, guint min = 1);

// Runs an element for each of `properties`, all at the same time, in separate threads. The environment variable
// CUDACONV_TEST_FRAMES is the number of small frames that each filters, 500 by default. Fails the test if a frame is
// wrong, lost or out of order.
void check_side_by_side(const std::vector<std::string> &properties);

// A pipeline from a launch line, first in state NULL. The destructor stops it.
class Pipeline {
 public:
  // Fails the test if the line is not a pipeline.
  explicit Pipeline(const std::string &line);
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;

  GstElement *get() const { return pipeline_.get(); }
  Ref<GstElement> element(const char *name) const;
  // Sets the state and waits for it. Returns whether it is reached.
  bool go_to(GstState state);
  // Waits for the end of the stream and takes all messages up to it. Returns an empty text, or the reason why the end
  // did not come.
  std::string wait_for_end();

 private:
  Ref<GstElement> pipeline_;
};

// A buffer of memory that can be neither mapped nor copied, nor shared with other buffers.
Ref<GstBuffer> unmappable_buffer(gsize size);

// A pool whose buffers have the layout of `info`, with every byte `fill`.
GstBufferPool *new_placed_pool(const GstVideoInfo &info, guint8 fill);

// Call this from main(). Registers the element if it is linked into the program, and runs the suite. If the suite needs
// a device and there is none, prints the reason to standard error and returns 77.
int run_suite(int argc, char **argv, const char *name, Suite *(*make_suite)(), bool needs_device);

}  // namespace cudaconv::test
