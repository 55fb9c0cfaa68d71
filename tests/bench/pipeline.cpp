// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Measures pipelines from end to end: frames a second, beside the limit of the bus and beside other elements in the
// same run. The sink maps each frame that is in system memory and reads some of its words. Nothing here
// passes or fails by a time; --soak fails where a frame is wrong, or where memory keeps growing.
//
// Origins of frames:
//   pool      the pool that the element proposes
//   recycled  8 buffers of pageable memory, used again and again
//   wrapped   the same pages, in memory objects that are new each time
//   cuda      CUDA memory, in and out
#include <gst/app/gstappsink.h>
#include <gst/base/gstpushsrc.h>
#include <gst/video/video.h>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef HAVE_CUDA
#include <cuda_runtime.h>
#endif

#include "arguments.h"

namespace {

constexpr int kBuffers = 8;          // of pageable memory, in a pool
constexpr int kPictures = 5;         // different pictures, sent in turn
constexpr int kWarmUp = 40;          // frames; more than are in flight, and more than are needed to recognise a pool
constexpr int kPatience = 60;        // seconds beyond the measurement that a pipeline may take
constexpr int kLone = 200;           // frames, each of which is sent when the one before has come
constexpr int kUnderWay = 64;        // frames; more than there ever are between source and sink
constexpr size_t kLatencies = 4096;  // latencies kept, of the first frames

struct Unref {
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstMessage *message) const { gst_message_unref(message); }
  void operator()(GstSample *sample) const { gst_sample_unref(sample); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

// Both clocks are in microseconds.
gint64 now() {
  return g_get_monotonic_time();
}
gint64 cpu_time() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * G_USEC_PER_SEC + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

// ---- The source -----------------------------------------------------------------------------------------------------

struct FrameSize {
  const char *format;
  int width, height;
  GstVideoInfo info() const {
    GstVideoInfo result;
    gst_video_info_set_format(&result, gst_video_format_from_string(format), width, height);
    return result;
  }
  gsize bytes() const { return info().size; }
  std::string text() const { return std::to_string(width) + "x" + std::to_string(height) + " " + format; }
};

enum class Origin { Pool, Recycled, Wrapped };

// The orders for a source, and what it shares with the sink. Has to outlive the source.
struct Feed {
  GstVideoInfo info;
  Ref<GstCaps> caps;
  Origin origin;
  bool lone = false;       // a frame is sent when the one before has come
  bool live = false;       // frames come at their rate, else as fast as they are taken
  bool fill_each = false;  // false: each buffer is filled once, since the source is not to be measured
  gint64 deadline = 0;     // when the stream ends, or
  gint64 length = 0;       // how many microseconds after the frames that warm up, or
  int frames = G_MAXINT;   // after how many frames

  std::vector<std::vector<guint8>> picture;  // kPictures pictures
  std::vector<std::vector<guint8>> pages;    // of Origin::Wrapped
  std::atomic<bool> page_used[kBuffers] = {};
  std::atomic<int> come{0};            // number of frames that have come to the sink
  std::atomic<bool> withheld{false};   // a lone frame has not come within a second
  std::map<const void *, int> filled;  // the picture that a piece of memory contains
  struct Departure {
    gint64 time;
    int picture;
  } departure[kUnderWay] = {};  // for frame n at n % kUnderWay

  Feed(const FrameSize &size, bool on_device, Origin from, int fps = 1000) : origin(from) {
    info = size.info();
    info.fps_n = fps;
    info.fps_d = 1;
    caps.reset(gst_video_info_to_caps(&info));
    if (on_device) gst_caps_set_features_simple(caps.get(), gst_caps_features_new_single("memory:CUDAMemory"));
    guint32 random = 1;
    for (int i = 0; i < kPictures; i++) {
      picture.emplace_back(GST_VIDEO_INFO_SIZE(&info));
      for (guint8 &byte : picture.back()) byte = static_cast<guint8>((random = random * 1664525 + 1013904223) >> 24);
    }
    if (origin == Origin::Wrapped) pages.assign(kBuffers, picture[0]);
  }
  GstClockTime duration() const { return GST_SECOND / info.fps_n; }
};

struct BenchSrc {
  GstPushSrc parent;
  Feed *feed;
  int frame;
  gint64 began;
};
struct BenchSrcClass {
  GstPushSrcClass parent_class;
};
G_DEFINE_TYPE(BenchSrc, bench_src, GST_TYPE_PUSH_SRC)

void fill(const Feed &feed, GstBuffer *buffer, int picture) {
  GstVideoInfo info = feed.info;
  GstVideoFrame from, to;
  GstBuffer *source =
      gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, const_cast<guint8 *>(feed.picture[picture].data()),
                                  feed.picture[picture].size(), 0, feed.picture[picture].size(), nullptr, nullptr);
  if (gst_video_frame_map(&from, &info, source, GST_MAP_READ)) {
    if (gst_video_frame_map(&to, &info, buffer, GST_MAP_WRITE)) {
      gst_video_frame_copy(&to, &from);
      gst_video_frame_unmap(&to);
    }
    gst_video_frame_unmap(&from);
  }
  gst_buffer_unref(source);
}

GstBuffer *wrap_page(Feed &feed) {
  for (;; g_usleep(10)) {
    for (int i = 0; i < kBuffers; i++) {
      if (feed.page_used[i].exchange(true)) continue;
      return gst_buffer_new_wrapped_full(static_cast<GstMemoryFlags>(0), feed.pages[i].data(), feed.pages[i].size(), 0,
                                         feed.pages[i].size(), &feed.page_used[i],
                                         [](gpointer used) { static_cast<std::atomic<bool> *>(used)->store(false); });
    }
  }
}

GstFlowReturn create(GstPushSrc *src, GstBuffer **out) {
  auto *self = reinterpret_cast<BenchSrc *>(src);
  Feed &feed = *self->feed;
  if (self->frame == kWarmUp && feed.length) feed.deadline = now() + feed.length;
  if (self->frame >= feed.frames || (feed.deadline && now() > feed.deadline)) return GST_FLOW_EOS;
  for (const gint64 begin = now(); feed.lone && feed.come < self->frame; g_usleep(20)) {
    if (now() < begin + G_USEC_PER_SEC) continue;
    feed.withheld = true;
    return GST_FLOW_EOS;
  }
  GstBuffer *buffer = nullptr;
  if (feed.origin == Origin::Wrapped) {
    buffer = wrap_page(feed);
  } else {
    GstBufferPool *pool = gst_base_src_get_buffer_pool(GST_BASE_SRC(src));
    if (!pool) return GST_FLOW_ERROR;
    const GstFlowReturn flow = gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr);
    gst_object_unref(pool);
    if (flow != GST_FLOW_OK) return flow;
  }
  const auto [known, is_new] = feed.filled.insert({gst_buffer_peek_memory(buffer, 0), 0});
  if (feed.fill_each || (is_new && feed.origin != Origin::Wrapped))
    fill(feed, buffer, known->second = self->frame % kPictures);
  if (!self->began) self->began = now();
  const auto due = static_cast<gint64>(self->frame * feed.duration() / GST_USECOND) + self->began - now();
  if (feed.live && due > 0) g_usleep(static_cast<gulong>(due));
  GST_BUFFER_PTS(buffer) = self->frame * feed.duration();
  GST_BUFFER_DURATION(buffer) = feed.duration();
  feed.departure[self->frame++ % kUnderWay] = {now(), known->second};
  *out = buffer;
  return GST_FLOW_OK;
}

// Takes the pool that downstream proposes, or makes one where it proposes none.
gboolean decide_allocation(GstBaseSrc *src, GstQuery *query) {
  const Feed &feed = *reinterpret_cast<BenchSrc *>(src)->feed;
  if (feed.origin == Origin::Pool && gst_query_get_n_allocation_pools(query) > 0)
    return GST_BASE_SRC_CLASS(bench_src_parent_class)->decide_allocation(src, query);
  GstBufferPool *pool = gst_buffer_pool_new();
  GstStructure *config = gst_buffer_pool_get_config(pool);
  const auto size = static_cast<guint>(GST_VIDEO_INFO_SIZE(&feed.info));
  gst_buffer_pool_config_set_params(config, feed.caps.get(), size, kBuffers, kBuffers);
  const bool done = gst_buffer_pool_set_config(pool, config);
  while (gst_query_get_n_allocation_pools(query) > 0) gst_query_remove_nth_allocation_pool(query, 0);
  gst_query_add_allocation_pool(query, pool, size, kBuffers, kBuffers);
  gst_object_unref(pool);
  return done;
}

void bench_src_class_init(BenchSrcClass *klass) {
  GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS(klass);
  GST_PUSH_SRC_CLASS(klass)->create = create;
  src_class->get_caps = [](GstBaseSrc *src, GstCaps *) {
    return gst_caps_ref(reinterpret_cast<BenchSrc *>(src)->feed->caps.get());
  };
  src_class->decide_allocation = decide_allocation;
  src_class->is_seekable = [](GstBaseSrc *) -> gboolean { return FALSE; };
  GstCaps *any = gst_caps_new_any();
  gst_element_class_add_pad_template(GST_ELEMENT_CLASS(klass),
                                     gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, any));
  gst_caps_unref(any);
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "Benchmark source", "Source", "Frames", "cudaconv");
}

void bench_src_init(BenchSrc *self) {
  gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
}

// ---- A pipeline -----------------------------------------------------------------------------------------------------

// How much of a frame is read: all of it, or some words spread over it, which takes next to no time and still shows
// whether the frame has come and has been filtered.
enum class Look { Whole, Words };

guint64 checksum(const GstVideoFrame &frame, Look look) {
  guint64 sum = 1469598103934665603u;
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); p++) {
    gint component[GST_VIDEO_MAX_COMPONENTS];
    gst_video_format_info_component(frame.info.finfo, p, component);
    const gsize bytes = static_cast<gsize>(GST_VIDEO_FRAME_COMP_WIDTH(&frame, component[0])) *
                        GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, component[0]);
    const gint height = GST_VIDEO_FRAME_COMP_HEIGHT(&frame, component[0]);
    for (gint y = 0; y < height; y += look == Look::Whole ? 1 : MAX(height / 32, 1)) {
      const auto *row = static_cast<const guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p)) +
                        static_cast<gsize>(y) * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p);
      guint64 word;
      gsize x = 0, end = bytes;
      if (look == Look::Words) {
        x = y * sizeof word % (bytes - sizeof word);
        end = x + sizeof word;
      }
      for (; x + sizeof word <= end; x += sizeof word) {
        std::memcpy(&word, row + x, sizeof word);
        sum = (sum ^ word) * 1099511628211u;
      }
      for (; x < end; x++) sum = (sum ^ row[x]) * 1099511628211u;
    }
  }
  return sum;
}

// The checksums of the filtered pictures.
struct Expected {
  Look look = Look::Words;
  std::vector<guint64> of_picture;  // empty: not known
};

// A pipeline of a source, some elements, and a sink that checks the frames.
class Pipeline {
 public:
  // `elements` are as for gst-launch-1.0, the first with the name "first". Throws where there is no such element.
  Pipeline(Feed &feed, const std::string &elements, bool host_out, Expected expected)
      : feed_(feed), host_out_(host_out), expected_(std::move(expected)) {
    GError *error = nullptr;
    GstElement *made = gst_parse_launch((elements + " ! appsink name=sink sync=false max-buffers=2").c_str(), &error);
    if (error) {
      const std::string why = error->message;
      g_error_free(error);
      if (made) gst_object_unref(gst_object_ref_sink(made));
      throw std::runtime_error(why);
    }
    pipeline_.reset(GST_ELEMENT(gst_object_ref_sink(made)));
    auto *src = static_cast<BenchSrc *>(g_object_new(bench_src_get_type(), "name", "src", nullptr));
    src->feed = &feed;
    gst_base_src_set_live(GST_BASE_SRC(src), feed.live);
    gst_bin_add(GST_BIN(pipeline_.get()), GST_ELEMENT(src));
    const Ref<GstElement> first(gst_bin_get_by_name(GST_BIN(pipeline_.get()), "first"));
    if (!gst_element_link(GST_ELEMENT(src), first.get())) throw std::runtime_error("the source cannot be linked");
    const Ref<GstElement> sink(gst_bin_get_by_name(GST_BIN(pipeline_.get()), "sink"));
    GstAppSinkCallbacks callbacks = {};
    callbacks.new_sample = [](GstAppSink *appsink, gpointer self) {
      static_cast<Pipeline *>(self)->take(Ref<GstSample>(gst_app_sink_pull_sample(appsink)).get());
      return GST_FLOW_OK;
    };
    callbacks.new_preroll = [](GstAppSink *, gpointer) { return GST_FLOW_OK; };
    gst_app_sink_set_callbacks(GST_APP_SINK(sink.get()), &callbacks, this, nullptr);
    latency_.reserve(kLatencies);
  }
  ~Pipeline() {
    if (pipeline_) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
  }

  void start() {
    if (gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
      fail("it does not start");
  }
  // Waits until the stream has ended. Throws where it fails or takes too long.
  void wait(int seconds) {
    const Ref<GstBus> bus(gst_element_get_bus(pipeline_.get()));
    const Ref<GstMessage> message(
        gst_bus_timed_pop_filtered(bus.get(), (seconds + kPatience) * GST_SECOND,
                                   static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
    end_ = now();
    cpu_end_ = cpu_time();
    if (!message) fail("it has not ended in time");
    if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
      GError *error = nullptr;
      gst_message_parse_error(message.get(), &error, nullptr);
      const std::string why = error->message;
      g_error_free(error);
      fail(why);
    }
  }

  int frames() const { return frames_; }
  int wrong() const { return wrong_; }
  void fail_if_wrong() const {
    if (wrong_) fail(std::to_string(wrong_) + " frames are wrong");
  }
  double frames_per_second() const { return measured() * 1e6 / static_cast<double>(end_ - begin_); }
  double cpu_us() const { return static_cast<double>(cpu_end_ - cpu_begin_) / measured(); }
  // The latency from source to sink, in microseconds, that `percent` of the frames do not exceed.
  double latency(int percent) const {
    measured();
    std::vector<gint64> sorted(latency_.begin() + kWarmUp, latency_.end());
    const auto at = sorted.begin() + (sorted.size() - 1) * percent / 100;
    std::nth_element(sorted.begin(), at, sorted.end());
    return static_cast<double>(*at);
  }
  // The latency that the elements report, in microseconds.
  double reported_latency() const {
    GstQuery *query = gst_query_new_latency();
    GstClockTime min = 0;
    if (gst_element_query(pipeline_.get(), query)) gst_query_parse_latency(query, nullptr, &min, nullptr);
    gst_query_unref(query);
    return static_cast<double>(min) / GST_USECOND;
  }
  // The kinds of memory negotiated behind each cudaconv, from the source on: "CUDA" or "system".
  std::string memories() const {
    std::string result;
    GstIterator *elements = gst_bin_iterate_sorted(GST_BIN(pipeline_.get()));  // begins at the sinks
    gst_iterator_foreach(
        elements,
        [](const GValue *item, gpointer text) {
          auto *element = static_cast<GstElement *>(g_value_get_object(item));
          GstElementFactory *factory = gst_element_get_factory(element);
          if (!factory || std::strcmp(GST_OBJECT_NAME(factory), "cudaconv")) return;
          const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
          GstCaps *caps = gst_pad_get_current_caps(pad.get());
          const bool cuda = caps && gst_caps_features_contains(gst_caps_get_features(caps, 0), "memory:CUDAMemory");
          if (caps) gst_caps_unref(caps);
          auto *so_far = static_cast<std::string *>(text);
          *so_far = (cuda ? " CUDA" : " system") + *so_far;
        },
        &result);
    gst_iterator_free(elements);
    return result.substr(result.empty() ? 0 : 1);
  }
  const std::vector<guint64> &checksums() const { return checksums_; }
  bool keep_checksums = false;

  // A number in the statistics of the cudaconv named "first".
  guint64 stat(const char *field) const {
    const Ref<GstElement> first(gst_bin_get_by_name(GST_BIN(pipeline_.get()), "first"));
    if (!g_object_class_find_property(G_OBJECT_GET_CLASS(first.get()), "stats")) return 0;
    GstStructure *stats = nullptr;
    guint64 value = 0;
    g_object_get(first.get(), "stats", &stats, nullptr);
    gst_structure_get_uint64(stats, field, &value);
    gst_structure_free(stats);
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string &why) const { throw std::runtime_error(why); }
  // The number of frames after those that warm up. Throws where there are none.
  int measured() const {
    if (frames_ <= kWarmUp) fail("too few frames came");
    return frames_ - kWarmUp;
  }

  void take(GstSample *sample) {
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    const Feed::Departure &departure = feed_.departure[frames_ % kUnderWay];
    GstVideoFrame frame;
    const bool mapped = host_out_ && gst_video_frame_map(&frame, &feed_.info, buffer, GST_MAP_READ);
    if (latency_.size() < kLatencies) latency_.push_back(now() - departure.time);
    bool right = mapped == host_out_ && GST_BUFFER_PTS(buffer) == frames_ * feed_.duration();
    if (mapped) {
      const guint64 sum = checksum(frame, expected_.look);
      gst_video_frame_unmap(&frame);
      if (keep_checksums) checksums_.push_back(sum);
      right &= expected_.of_picture.empty() || sum == expected_.of_picture[departure.picture];
    }
    if (!right) wrong_++;
    feed_.come = frames_ + 1;
    if (++frames_ != kWarmUp) return;
    begin_ = now();
    cpu_begin_ = cpu_time();
  }

  Feed &feed_;
  const bool host_out_;
  const Expected expected_;
  Ref<GstElement> pipeline_;
  std::atomic<int> frames_{0}, wrong_{0};
  gint64 begin_ = 0, end_ = 0, cpu_begin_ = 0, cpu_end_ = 0;
  std::vector<gint64> latency_;
  std::vector<guint64> checksums_;
};

// ---- What is measured -----------------------------------------------------------------------------------------------

struct Options {
  double seconds = 2;
  std::string backend, only, mask = "gauss5";
  const char *json = nullptr;
  int soak = 0, devices = 0;
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A row of the table: the pipeline to run, and the results.
struct Row {
  FrameSize size;
  std::string what, elements;
  Origin origin = Origin::Recycled;
  bool on_device = false;

  double fps = kNone;
  double times_unfiltered = kNone;  // frames a second relative to upload and download by GStreamer's own elements
  double latency_us = kNone;        // of one frame at a time
  double floor_us = kNone;          // the part of latency_us that copies and kernels take
  double cpu_us = kNone, gpu_us = kNone, staged_share = kNone;
  double reported_us = kNone;  // of a live pipeline: the latency by query
  double late_us = kNone;      // of a live pipeline: the latency of the slowest hundredth
  double worst_us = kNone;     // the longest latency of lone frames
  double times_bus = kNone;    // frames a second relative to those over the bus
  std::string memory = {};     // kinds of memory behind each element of a chain

  std::string name() const { return size.text() + " " + what; }
};

bool is_wanted(const Options &o, const Row &row) {
  return row.name().find(o.only) != std::string::npos;
}

void print_header(std::initializer_list<const char *> titles) {
  std::printf("%51s", "");
  for (const char *title : titles) std::printf("%12s", title);
  std::printf("\n");
}

void print_name(const Row &row) {
  std::printf("%-15s %-35s", row.size.text().c_str(), row.what.c_str());
}

// Prints numbers with at least three digits.
void print_numbers(std::initializer_list<double> numbers) {
  for (double number : numbers) {
    if (std::isnan(number))
      std::printf("%12s", "");
    else
      std::printf("%12.*f", number < 10 ? 2 : number < 1000 ? 1 : 0, number);
  }
}

bool has_element(const char *name) {
  const Ref<GstElementFactory> factory(gst_element_factory_find(name));
  return factory != nullptr;
}

std::string cudaconv(const Options &o, const std::string &more = "") {
  return "cudaconv name=first backend=" + o.backend + " mask=" + o.mask + " " + more;
}

bool is_cudaconv(const Row &row) {
  return row.elements.find("cudaconv") == 0;
}

// A chain of `n` elements, with the elements `between` between them.
std::string chain(const Options &o, int n, const std::string &between = "") {
  std::string elements = cudaconv(o);
  for (int i = 1; i < n; i++) elements += between + " ! cudaconv backend=" + o.backend + " mask=" + o.mask;
  return elements;
}

// The checksums of the pictures after `filters` filters, made by the CPU.
Expected expected_of(const FrameSize &size, const std::string &mask, Look look, int filters = 1) {
  Feed feed(size, false, Origin::Recycled);
  feed.fill_each = true;
  feed.frames = kPictures;
  Options by_cpu;
  by_cpu.backend = "cpu";
  by_cpu.mask = mask;
  Pipeline pipeline(feed, chain(by_cpu, filters), true, {look, {}});
  pipeline.keep_checksums = true;
  pipeline.start();
  pipeline.wait(0);
  return {look, pipeline.checksums()};
}

// Microseconds of kernels for each frame, by the element's statistics.
double kernel_us(const Pipeline &pipeline) {
  const auto frames = static_cast<double>(pipeline.stat("frames"));
  return frames > 0 ? static_cast<double>(pipeline.stat("device-time")) / frames / 1e3 : kNone;
}

#ifdef HAVE_CUDA
// Copies of frames in pinned memory over the bus, without any element.
class Bus {
 public:
  explicit Bus(gsize bytes) : bytes_(bytes) {
    for (int i = 0; i < 2; i++)
      ok_ = ok_ && cudaHostAlloc(&host_[i], bytes, cudaHostAllocDefault) == cudaSuccess &&
            cudaMalloc(&device_[i], bytes) == cudaSuccess &&
            cudaStreamCreateWithFlags(&stream_[i], cudaStreamNonBlocking) == cudaSuccess &&
            cudaEventCreate(&event_[i]) == cudaSuccess;
  }
  ~Bus() {
    for (int i = 0; i < 2; i++) {
      if (event_[i]) cudaEventDestroy(event_[i]);
      if (stream_[i]) cudaStreamDestroy(stream_[i]);
      if (device_[i]) cudaFree(device_[i]);
      if (host_[i]) cudaFreeHost(host_[i]);
    }
  }
  Bus(const Bus &) = delete;

  // Frames a second in both directions at once; 0 where that fails.
  double both_ways() {
    double best = 0;
    for (int round = 0; ok_ && round < 4; round++) {
      const gint64 begin = now();
      for (int i = 0; i < kCopies; i++) ok_ = ok_ && upload(0) && download(1);
      ok_ = ok_ && cudaStreamSynchronize(stream_[0]) == cudaSuccess && cudaStreamSynchronize(stream_[1]) == cudaSuccess;
      if (ok_ && round) best = std::max(best, kCopies * 1e6 / static_cast<double>(now() - begin));
    }
    return ok_ ? best : 0;
  }

  // Microseconds that a frame takes to the device and then back, by the GPU's clock: the median. 0 where that fails.
  double there_and_back_us() {
    std::vector<float> times;
    for (int i = 0; ok_ && i < kCopies; i++) {
      float milliseconds = 0;
      ok_ = cudaEventRecord(event_[0], stream_[0]) == cudaSuccess && upload(0) && download(0) &&
            cudaEventRecord(event_[1], stream_[0]) == cudaSuccess && cudaEventSynchronize(event_[1]) == cudaSuccess &&
            cudaEventElapsedTime(&milliseconds, event_[0], event_[1]) == cudaSuccess;
      times.push_back(milliseconds);
    }
    if (!ok_) return 0;
    std::nth_element(times.begin(), times.begin() + kCopies / 2, times.end());
    return 1e3 * times[kCopies / 2];
  }

 private:
  static constexpr int kCopies = 200;

  bool upload(int i) const {
    return cudaMemcpyAsync(device_[i], host_[i], bytes_, cudaMemcpyHostToDevice, stream_[i]) == cudaSuccess;
  }
  bool download(int i) const {
    return cudaMemcpyAsync(host_[i], device_[i], bytes_, cudaMemcpyDeviceToHost, stream_[i]) == cudaSuccess;
  }

  const gsize bytes_;
  bool ok_ = true;
  void *host_[2] = {}, *device_[2] = {};
  cudaStream_t stream_[2] = {};
  cudaEvent_t event_[2] = {};
};
#endif

// Microseconds that the copies of a frame in pinned memory take; 0 where there are none.
double copies_us(const Options &o, const Row &row) {
#ifdef HAVE_CUDA
  if (o.backend == "cuda" && !row.on_device) return Bus(row.size.bytes()).there_and_back_us();
#else
  (void)o;
  (void)row;
#endif
  return 0;
}

// Measures how many frames pass within the time that the options give.
void measure_throughput(const Options &o, const Expected &expected, Row &row) {
  Feed feed(row.size, row.on_device, row.origin);
  feed.length = static_cast<gint64>(o.seconds * G_USEC_PER_SEC);
  Pipeline pipeline(feed, row.elements, !row.on_device, expected);
  pipeline.start();
  pipeline.wait(static_cast<int>(o.seconds));
  pipeline.fail_if_wrong();
  row.fps = pipeline.frames_per_second();
  row.cpu_us = pipeline.cpu_us();
  row.gpu_us = kernel_us(pipeline);
  const guint64 copied = pipeline.stat("bytes-uploaded") + pipeline.stat("bytes-downloaded");
  if (copied) row.staged_share = static_cast<double>(pipeline.stat("bytes-staged")) / static_cast<double>(copied);
}

// Measures the latency of frames. Each is sent when the one before has come.
void measure_latency(const Options &o, const Expected &expected, Row &row) {
  Feed feed(row.size, row.on_device, row.origin);
  feed.frames = 400;
  Pipeline pipeline(feed, "cudaconv frames-in-flight=1 " + row.elements.substr(std::strlen("cudaconv ")),
                    !row.on_device, expected);
  pipeline.start();
  pipeline.wait(0);
  pipeline.fail_if_wrong();
  row.latency_us = pipeline.latency(50);
  if (o.backend == "cuda") row.floor_us = copies_us(o, row) + kernel_us(pipeline);
}

// Measures a row of the table, and compares it with `unfiltered_fps`. A pipeline that cannot be made, or that fails, is
// reported, and the measurement goes on.
void measure(const Options &o, const Expected &expected, double unfiltered_fps, Row row, std::vector<Row> &rows) {
  if (!is_wanted(o, row)) return;
  print_name(row);
  try {
    measure_throughput(o, expected, row);
    row.times_unfiltered = row.fps / unfiltered_fps;
    if (is_cudaconv(row)) measure_latency(o, expected, row);
    print_numbers({row.fps, row.times_unfiltered, row.latency_us, row.floor_us, row.cpu_us, row.gpu_us});
    if (!std::isnan(row.staged_share)) std::printf("%11.0f%%", 100 * row.staged_share);
    std::printf("\n");
    rows.push_back(row);
  } catch (const std::exception &e) {
    std::printf("  %s\n", e.what());
  }
  std::fflush(stdout);
}

// Measures frames a second over the bus; kNone where there is none, or where it is not wanted.
double measure_bus(const Options &o, const FrameSize &size, std::vector<Row> &rows) {
  Row bus{size, "bus, both ways", {}};
#ifdef HAVE_CUDA
  if (o.backend == "cuda" && is_wanted(o, bus)) {
    bus.fps = Bus(size.bytes()).both_ways();
    print_name(bus);
    print_numbers({bus.fps});
    std::printf("\n");
    rows.push_back(bus);
  }
#else
  (void)o;
  (void)rows;
#endif
  return bus.fps;
}

void measure_frames_per_second(const Options &o, std::vector<Row> &rows) {
  print_header({"frames/s", "x no filter", "latency us", "floor us", "CPU us", "GPU us", "staged"});
  for (const FrameSize &size :
       {FrameSize{"NV12", 1920, 1080}, FrameSize{"NV12", 3840, 2160}, FrameSize{"RGBA", 3840, 2160}}) {
    const std::string filter = cudaconv(o);
    const Expected filtered = expected_of(size, o.mask, Look::Words);
    double unfiltered_fps = kNone;
    if (o.backend == "cuda") {
      measure_bus(o, size, rows);
      // The caps between the two keep them from passing frames on as they are.
      const Row unfiltered{size, "cudaupload ! queue ! cudadownload",
                           "cudaupload name=first ! video/x-raw(memory:CUDAMemory) ! queue ! cudadownload"};
      const size_t before = rows.size();
      if (has_element("cudaupload")) measure(o, expected_of(size, "identity", Look::Words), kNone, unfiltered, rows);
      if (rows.size() > before) unfiltered_fps = rows.back().fps;
      // The 9x9 blur of OpenGL's effects, which works in RGBA.
      if (has_element("gleffects_blur"))
        measure(o, {}, unfiltered_fps,
                {size, "OpenGL: upload, blur, download",
                 std::string("glupload name=first ! glcolorconvert ! gleffects_blur ! glcolorconvert ! ") +
                     "video/x-raw(memory:GLMemory),format=" + size.format + " ! gldownload ! video/x-raw"},
                rows);
    }
    measure(o, filtered, unfiltered_fps, {size, "pool", filter, Origin::Pool}, rows);
    measure(o, filtered, unfiltered_fps, {size, "recycled", filter, Origin::Recycled}, rows);
    measure(o, filtered, unfiltered_fps, {size, "wrapped", filter, Origin::Wrapped}, rows);
    if (o.backend == "cuda")
      measure(o, {}, unfiltered_fps, {size, "cuda", filter + " ! video/x-raw(memory:CUDAMemory)", Origin::Pool, true},
              rows);
  }
  if (o.backend == "cpu") {
    for (const char *format : {"GRAY8", "RGB"}) {
      const FrameSize size = {format, 1920, 1080};
      measure(o, expected_of(size, o.mask, Look::Words), kNone, {size, "recycled", cudaconv(o)}, rows);
      if (has_element("cvsmooth"))
        measure(o, {}, kNone,
                {size, "cvsmooth, gaussian 5x5", "cvsmooth name=first type=gaussian kernel-width=5 kernel-height=5"},
                rows);
    }
  }
}

// Measures several elements in a row between system memory on both sides, and lists the memory between them.
void measure_chains(const Options &o, std::vector<Row> &rows) {
  const FrameSize size = {"NV12", 3840, 2160};
  const std::string in_cuda = " ! video/x-raw(memory:CUDAMemory)";
  struct Chain {
    int filters;
    const char *what;
    std::string elements;
    bool needs_cuda;
  };
  std::vector<Chain> chains;
  for (int n : {1, 2, 3, 5}) chains.push_back({n, "", chain(o, n), false});
  for (int n : {2, 3, 5}) chains.push_back({n, ", CUDA memory by caps", chain(o, n, in_cuda), true});
  const std::string second = " ! queue ! cudaconv backend=" + o.backend + " mask=" + o.mask,
                    aside = " ! tee name=t t. ! queue ! fakesink sync=false async=false t.";
  chains.push_back({3, ", queue and tee between", cudaconv(o) + second + aside + second, false});
  chains.push_back(
      {3, ", queue, tee and caps between", cudaconv(o) + in_cuda + second + in_cuda + aside + second, true});
  bool first = true;
  double bus_fps = kNone;
  for (const Chain &c : chains) {
    Row row{size, "chain of " + std::to_string(c.filters) + c.what, c.elements + " ! video/x-raw", Origin::Pool};
    if (!is_wanted(o, row) || (c.needs_cuda && o.backend != "cuda")) continue;
    if (std::exchange(first, false)) {
      print_header({"frames/s", "x the bus", "CPU us", "memory"});
      Options always = o;
      always.only.clear();
      bus_fps = measure_bus(always, size, rows);
    }
    print_name(row);
    try {
      Feed feed(size, false, row.origin);
      feed.length = static_cast<gint64>(o.seconds * G_USEC_PER_SEC);
      Pipeline pipeline(feed, row.elements, true, expected_of(size, o.mask, Look::Words, c.filters));
      pipeline.start();
      pipeline.wait(static_cast<int>(o.seconds));
      pipeline.fail_if_wrong();
      row.fps = pipeline.frames_per_second();
      row.times_bus = row.fps / bus_fps;
      row.cpu_us = pipeline.cpu_us();
      row.memory = pipeline.memories();
      print_numbers({row.fps, row.times_bus, row.cpu_us});
      std::printf("      %s\n", row.memory.c_str());
      rows.push_back(row);
    } catch (const std::exception &e) {
      std::printf("  %s\n", e.what());
    }
    std::fflush(stdout);
  }
}

// Measures frames one at a time: each is sent when the one before has come. By default and with frames-in-flight=1.
void measure_lone_frames(const Options &o, std::vector<Row> &rows) {
  bool first = true;
  for (const FrameSize &size : {FrameSize{"NV12", 1920, 1080}, FrameSize{"NV12", 3840, 2160}}) {
    for (const char *properties : {"", "frames-in-flight=1"}) {
      const std::string setting = *properties ? properties : "by default";
      Row row{size, "lone frame, " + setting, cudaconv(o, properties), Origin::Pool};
      if (!is_wanted(o, row)) continue;
      if (std::exchange(first, false)) print_header({"latency us", "worst us", "floor us"});
      print_name(row);
      try {
        Feed feed(size, false, row.origin);
        feed.lone = true;
        feed.frames = kWarmUp + kLone;
        Pipeline pipeline(feed, row.elements, true, expected_of(size, o.mask, Look::Words));
        pipeline.start();
        pipeline.wait(0);
        if (feed.withheld) throw std::runtime_error("a frame does not come unless another follows");
        pipeline.fail_if_wrong();
        row.latency_us = pipeline.latency(50);
        row.worst_us = pipeline.latency(100);
        if (o.backend == "cuda") row.floor_us = copies_us(o, row) + kernel_us(pipeline);
        print_numbers({row.latency_us, row.worst_us, row.floor_us});
        std::printf("\n");
        rows.push_back(row);
      } catch (const std::exception &e) {
        std::printf("  %s\n", e.what());
      }
      std::fflush(stdout);
    }
  }
}

// Measures frames that come at their rate, as from a camera: the latency that the element reports, and the real one.
void measure_live(const Options &o, std::vector<Row> &rows) {
  constexpr int kRate = 60;  // frames a second
  bool first = true;
  for (const char *properties : {"", "frames-in-flight=1", "frames-in-flight=4"}) {
    const std::string setting = *properties ? properties : "by default";
    Row row{{"NV12", 1920, 1080}, "live, 60 frames/s, " + setting, cudaconv(o, properties), Origin::Pool};
    if (!is_wanted(o, row)) continue;
    if (std::exchange(first, false)) print_header({"reported us", "latency us", "99 % us"});
    Feed feed(row.size, false, row.origin, kRate);
    feed.live = true;
    feed.frames = kWarmUp + static_cast<int>(o.seconds * kRate);
    Pipeline pipeline(feed, row.elements, true, expected_of(row.size, o.mask, Look::Words));
    pipeline.start();
    pipeline.wait(static_cast<int>(o.seconds));
    pipeline.fail_if_wrong();
    row.reported_us = pipeline.reported_latency();
    row.latency_us = pipeline.latency(50);
    row.late_us = pipeline.latency(99);
    print_name(row);
    print_numbers({row.reported_us, row.latency_us, row.late_us});
    std::printf("\n");
    rows.push_back(row);
  }
}

// ---- Many streams ---------------------------------------------------------------------------------------------------

struct Memory {
  double resident, heap, device;  // megabytes; `heap` is what malloc() has handed out

  static Memory now(const Options &o) {
    Memory memory = {};
    long pages = 0, resident = 0;
    if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
      std::fclose(file);
    }
    memory.resident = static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
    const struct mallinfo2 heap = mallinfo2();
    memory.heap = static_cast<double>(heap.uordblks + heap.hblkhd) / 1e6;
#ifdef HAVE_CUDA
    size_t free = 0, total = 0;
    if (o.backend == "cuda" && cudaMemGetInfo(&free, &total) == cudaSuccess)
      memory.device = static_cast<double>(total - free) / 1e6;
#else
    (void)o;
#endif
    return memory;
  }
};

// Runs several streams at once for `soak` seconds, and checks every byte of every frame. Returns whether all frames
// were right, and memory did not grow once the pools were filled.
bool soak(const Options &o) {
  constexpr int kParts = 10;
  constexpr double kSlack = 8;  // megabytes: two frames or so
  const FrameSize size = {"NV12", 1920, 1080};
  const char *masks[] = {"gauss5", "sobel", "dilate", "median"};
  const Origin origins[] = {Origin::Pool, Origin::Recycled, Origin::Wrapped, Origin::Pool};
  std::vector<std::unique_ptr<Feed>> feeds;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (int i = 0; i < 4; i++) {
    feeds.push_back(std::make_unique<Feed>(size, false, origins[i]));
    feeds[i]->fill_each = true;
    Options here = o;
    here.mask = masks[i];
    pipelines.push_back(
        std::make_unique<Pipeline>(*feeds[i], cudaconv(here), true, expected_of(size, masks[i], Look::Whole)));
  }
  Memory::now(o);  // the first call itself takes some 90 MB, for the context of the runtime
  const gint64 begin = now(), length = o.soak * G_USEC_PER_SEC;
  for (const auto &feed : feeds) feed->deadline = begin + length + G_USEC_PER_SEC / 2;
  for (const auto &pipeline : pipelines) pipeline->start();
  const auto sum = [&](auto count) {
    int total = 0;
    for (const auto &pipeline : pipelines) total += count(*pipeline);
    return total;
  };
  const auto frames = [&] { return sum([](const Pipeline &pipeline) { return pipeline.frames(); }); };
  std::printf("%8s %10s %14s %10s %12s\n", "seconds", "frames", "resident MB", "heap MB", "device MB");
  Memory memory[kParts];
  for (int i = 0; i < kParts; i++) {
    if (const gint64 rest = begin + (i + 1) * length / kParts - now(); rest > 0) g_usleep(static_cast<gulong>(rest));
    memory[i] = Memory::now(o);
    std::printf("%8.1f %10d %14.1f %10.1f %12.1f\n", static_cast<double>(now() - begin) / 1e6, frames(),
                memory[i].resident, memory[i].heap, memory[i].device);
    std::fflush(stdout);
  }
  for (const auto &pipeline : pipelines) pipeline->wait(o.soak);
  const int wrong = sum([](const Pipeline &pipeline) { return pipeline.wrong(); });
  const Memory &first = memory[1], &last = memory[kParts - 1];
  const double resident = last.resident - first.resident, heap = last.heap - first.heap,
               device = last.device - first.device;
  std::printf(
      "%d frames, %d of them wrong; grown since the second row: resident %.1f MB, heap %.1f MB, device %.1f MB\n",
      frames(), wrong, resident, heap, device);
  return wrong == 0 && frames() > 0 && std::max({resident, heap, device}) < kSlack;
}

void spread(const Options &o) {
  constexpr int kStreams = 8;
  const FrameSize size = {"NV12", 1920, 1080};
  const Expected expected = expected_of(size, o.mask, Look::Words);
  std::vector<std::unique_ptr<Feed>> feeds;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (int i = 0; i < kStreams; i++) {
    feeds.push_back(std::make_unique<Feed>(size, false, Origin::Pool));
    const int device = o.backend == "cuda" ? i % o.devices : -1;
    pipelines.push_back(
        std::make_unique<Pipeline>(*feeds[i], cudaconv(o, "cuda-device-id=" + std::to_string(device)), true, expected));
  }
  const gint64 deadline = now() + static_cast<gint64>((o.seconds + 2) * G_USEC_PER_SEC);
  for (const auto &feed : feeds) feed->deadline = deadline;
  for (const auto &pipeline : pipelines) pipeline->start();
  double total = 0;
  int wrong = 0;
  for (const auto &pipeline : pipelines) {
    pipeline->wait(static_cast<int>(o.seconds) + 2);
    total += pipeline->frames_per_second();
    wrong += pipeline->wrong();
  }
  std::printf("%d streams of %s on %d devices: %.1f frames/s, %d frames wrong\n", kStreams, size.text().c_str(),
              o.devices, total, wrong);
}

void write_json(const char *path, const Options &o, const std::vector<Row> &rows) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  std::fprintf(file, "{\"backend\": \"%s\", \"mask\": \"%s\", \"results\": [", o.backend.c_str(), o.mask.c_str());
  const char *separator = "\n";
  for (const Row &r : rows) {
    std::fprintf(file, "%s  {\"frame\": \"%s\", \"what\": \"%s\"", separator, r.size.text().c_str(), r.what.c_str());
    const std::pair<const char *, double> numbers[] = {
        {"frames_per_second", r.fps}, {"times_unfiltered", r.times_unfiltered},
        {"latency_us", r.latency_us}, {"latency_floor_us", r.floor_us},
        {"cpu_us", r.cpu_us},         {"gpu_us", r.gpu_us},
        {"staged", r.staged_share},   {"reported_latency_us", r.reported_us},
        {"latency_99_us", r.late_us}, {"latency_worst_us", r.worst_us},
        {"times_bus", r.times_bus}};
    for (const auto &[name, number] : numbers)
      if (!std::isnan(number)) std::fprintf(file, ", \"%s\": %.3f", name, number);
    if (!r.memory.empty()) std::fprintf(file, ", \"memory\": \"%s\"", r.memory.c_str());
    std::fprintf(file, "}");
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

bool has_device() {
  GstElement *made = gst_element_factory_make("cudaconv", nullptr);
  if (!made) throw std::runtime_error("there is no element cudaconv: is GST_PLUGIN_PATH_1_0 set?");
  const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(made)));
  gst_util_set_object_arg(G_OBJECT(made), "backend", "cuda");
  const bool ready = gst_element_set_state(made, GST_STATE_READY) == GST_STATE_CHANGE_SUCCESS;
  gst_element_set_state(made, GST_STATE_NULL);
  return ready;
}

int run(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    if (const char *v = value_of(argv[i], "--seconds="))
      o.seconds = std::atof(v);
    else if (const char *v = value_of(argv[i], "--backend="))
      o.backend = v;
    else if (const char *v = value_of(argv[i], "--mask="))
      o.mask = v;
    else if (const char *v = value_of(argv[i], "--only="))
      o.only = v;
    else if (const char *v = value_of(argv[i], "--json="))
      o.json = v;
    else if (const char *v = value_of(argv[i], "--soak="))
      o.soak = std::atoi(v);
    else if (const char *v = value_of(argv[i], "--devices="))
      o.devices = std::atoi(v);
    else {
      std::fprintf(stderr,
                   "usage: %s [--backend=cuda|cpu] [--seconds=N] [--mask=NICK] [--only=TEXT] [--json=FILE]\n"
                   "       [--soak=SECONDS | --devices=N]\n",
                   argv[0]);
      return 2;
    }
  }
  if (o.backend != "cpu" && !has_device()) {
    if (o.backend == "cuda") {
      std::printf("SKIP: there is no CUDA device\n");
      return 77;
    }
    o.backend = "cpu";
  }
  if (o.backend.empty()) o.backend = "cuda";
  std::printf("backend %s, mask %s\n", o.backend.c_str(), o.mask.c_str());
  if (o.soak > 0) return soak(o) ? 0 : 1;
  if (o.devices > 0) {
    spread(o);
    return 0;
  }
  std::vector<Row> rows;
  measure_frames_per_second(o, rows);
  measure_chains(o, rows);
  measure_lone_frames(o, rows);
  measure_live(o, rows);
  if (o.json) write_json(o.json, o, rows);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  return run_benchmark(argc, argv, run);
}
