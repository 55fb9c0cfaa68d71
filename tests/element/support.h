// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the tests of the element have in common: frames in buffers, the bytes that the reference filter makes of them,
// and a GstHarness around one cudaconv with a bus.
#pragma once

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "filter.h"
#include "imageview.h"

namespace cudaconv::test {

using Random = std::mt19937;
// The same numbers in every test and in every run.
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

// What malloc() has handed out and not got back, in bytes.
size_t heap_bytes();

// ---- Settings -------------------------------------------------------------------------------------------------------

// What a launch line's properties ask for, for the reference: "mask=custom coefficients='1 2 1; 2 4 2; 1 2 1'
// bias=0.5". Takes the properties of FilterSettings; `backend` and `border-color` mean nothing to it.
FilterSettings settings_of(const std::string &properties);

// Every nick of an enumeration and what it stands for.
struct Nick {
  const char *nick;
  int value;
};
const std::vector<Nick> &nicks_of(const char *property);

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstVideoInfo video_info(const char *format, int width, int height);

// Frames for tests that filter many.
const GstVideoInfo &small();

// How the samples lie in memory, by the hand-made tables of tests/kernels. Fails the test for a format not in them.
FrameLayout layout_of(const GstVideoInfo &info);

// Where the planes of a frame lie in its buffer, in bytes; multiples of 4, so that every container stays aligned.
struct Placement {
  int lead = 0;     // before each plane
  int padding = 0;  // added to each stride
  int tail = 0;     // after each plane
};
constexpr Placement kScattered = {64, 52, 24};

// Strides, offsets and size of a frame by `placement`, into `info`.
GstVideoInfo place(GstVideoInfo info, const Placement &placement);

// A buffer with the strides, offsets and size of `info`, every byte `fill`, and a GstVideoMeta.
GstBuffer *new_placed_buffer(GstVideoInfo info, guint8 fill);

// A frame of random samples and padding: in the default layout without GstVideoMeta, or placed, with one.
Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random);
Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random, const Placement &placement);

// The bytes of a frame, and where its planes lie among them by its GstVideoMeta, else by `info`.
struct FrameBytes {
  std::vector<uint8_t> bytes;
  FrameView view;  // into bytes

  FrameBytes(GstBuffer *buffer, const GstVideoInfo &info);
  FrameBytes(FrameBytes &&) = default;
};

// Whether `out` has, byte for byte, what the reference makes of `in`; results that rounding leaves open may be off by
// one code. Bytes that belong to no sample are not looked at, or are `guard`, where it is given. `why` says where they
// differ. Takes the layout of tests/kernels, or the one given.
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

// Whether both have the same samples, wherever they lie.
bool same_samples(GstBuffer *a, GstBuffer *b, const GstVideoInfo &info);

// The samples of a frame of any format through GStreamer's own unpacking, a component a plane, and whether `out` has
// what the reference makes of those of `in`. Knows of the element's and of tests/kernels' layouts nothing.
// `border_value` is what border=constant reads, by component.
bool is_filtered_by_unpacking(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::string &properties,
                              const std::vector<int> &border_value, std::string *why);

// ---- The element ----------------------------------------------------------------------------------------------------

// CUDACONV_TEST_BACKEND: what to run the tests with, "cpu" or "cuda".
const char *test_backend();

// A cudaconv in state NULL with a bus of its own. Properties that do not name a backend get the tests' own. It shares
// the CUDA context of the tests, which takes long to make, unless it is to find one by itself.
Ref<GstElement> new_element(const std::string &properties, bool shares_context = true);

// Sets properties as a launch line does.
void set_properties(GstElement *element, const std::string &properties);

// Whether the element reaches READY with backend=cuda. May be called outside of tests, unlike what can fail one.
bool has_device();

// The messages of one kind, oldest first; those of other kinds are dropped.
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
  // The element goes to PLAYING.
  explicit Harness(const std::string &properties = "") : Harness(new_element(properties)) {}
  explicit Harness(Ref<GstElement> element);
  // Takes the caps of `info` as well.
  Harness(const std::string &properties, const GstVideoInfo &info);
  ~Harness();
  Harness(const Harness &) = delete;

  GstHarness *get() const { return harness_; }
  GstElement *element() const { return element_.get(); }

  void set_caps(const GstVideoInfo &info);
  void set(const std::string &properties) { set_properties(element(), properties); }

  // Pushes `in`, which stays the caller's, and takes what comes out; fails the test where that is not one buffer.
  Ref<GstBuffer> filter(GstBuffer *in);
  // Pushes `in`, which stays the caller's.
  GstFlowReturn push(GstBuffer *in);
  // Waits for the next frame to come out; fails the test where none does.
  Ref<GstBuffer> pull();
  // Waits until nothing is in flight, as a serialized query does.
  void settle() const;

  // What has been posted since the last call. The destructor fails the test where an error or a warning is left.
  std::vector<Report> take(GstMessageType type);
  Report take_one(GstMessageType type);

  // Of all frames that have been pushed.
  Ref<GstStructure> stats() const;

 private:
  Ref<GstElement> element_;
  GstHarness *harness_;
  std::vector<Ref<GstMessage>> messages_;
  guint64 frames_ = 0;
};

// fail_unless_equals_string() keeps a pointer to what may be a temporary.
#define assert_same_text(a, b)                                                                     \
  do {                                                                                             \
    const std::string got_ = a, want_ = b;                                                         \
    fail_unless(got_ == want_, #a " is \"%s\" and should be \"%s\"", got_.c_str(), want_.c_str()); \
  } while (0)

guint64 stat(const Harness &h, const char *field);
std::string stat_string(const Harness &h, const char *field);

// Pushes an event, which is taken, into the element; fails the test where it is refused.
void push_event(Harness &h, GstEvent *event);

// What comes out of the element while this lives, in order: the names of events, and "buffer", each with a blank
// behind.
class Order {
 public:
  explicit Order(Harness &h);
  ~Order() { gst_pad_remove_probe(pad_, probe_); }
  Order(const Order &) = delete;

  // Since the last call.
  std::string take() { return std::exchange(items_, {}); }

 private:
  GstPad *const pad_;
  gulong probe_;
  std::string items_;
};

// Downstream takes nothing for as long as this lives: who pushes to it waits.
class Blocked {
 public:
  explicit Blocked(Harness &h);
  ~Blocked() { gst_pad_remove_probe(pad_.get(), probe_); }
  Blocked(const Blocked &) = delete;

 private:
  const Ref<GstPad> pad_;
  gulong probe_;
};

// Has downstream, instead of the harness, answer the ALLOCATION queries of the element: with this pool of at most `max`
// buffers, 0 being any number, and that it takes any strides. The pool is the caller's.
void offer_pool(Harness &h, GstBufferPool *pool, guint max = 0);

// An element for each of `properties`, all at once in threads of their own: each filters as many small frames as the
// environment's CUDACONV_TEST_FRAMES says, 500 by default. Fails the test where one is wrong, lost or out of order.
void check_side_by_side(const std::vector<std::string> &properties);

// A pipeline by a launch line, in NULL. It stops when the object goes.
class Pipeline {
 public:
  // Fails the test where there is no such pipeline.
  explicit Pipeline(const std::string &line);
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;

  GstElement *get() const { return pipeline_.get(); }
  Ref<GstElement> element(const char *name) const;
  // Waits until the state is reached. Whether it is.
  bool go_to(GstState state);
  // Waits for the end of the stream, and takes all messages up to it. Empty, or the reason why it has not come to it.
  std::string wait_for_end();

 private:
  Ref<GstElement> pipeline_;
};

// A pool whose buffers are placed as `info` says, every byte `fill`.
GstBufferPool *new_placed_pool(const GstVideoInfo &info, guint8 fill);

// For main(). Registers the element where it is linked into the program, and runs the suite. Returns 77, and says why
// on the standard error, where there is no device and the suite needs one.
int run_suite(int argc, char **argv, const char *name, Suite *(*make_suite)(), bool needs_device);

}  // namespace cudaconv::test
