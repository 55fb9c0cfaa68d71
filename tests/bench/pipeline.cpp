// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames end to end: how many a pipeline gets through, beside what the bus could carry and what other elements do in
// the same run. Nothing here passes or fails by a time; --soak fails where a frame is wrong.
//
// Where frames come from:
//   pool      the pool that the element proposes
//   recycled  8 buffers of pageable memory that come round again and again
//   wrapped   the same pages in memory objects that are new each time
//   cuda      CUDA memory, in and out
#include <gst/app/gstappsink.h>
#include <gst/base/gstpushsrc.h>
#include <gst/video/video.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef HAVE_CUDA
#include <cuda_runtime.h>
#endif

namespace {

constexpr int kBuffers = 8;    // of pageable memory
constexpr int kPictures = 5;   // different ones, one after the other
constexpr int kWarmUp = 40;    // frames, more than are in flight, and more than it takes to tell a pool
constexpr int kPatience = 60;  // seconds beyond the measurement that a pipeline may take

struct Unref {
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstMessage *message) const { gst_message_unref(message); }
  void operator()(GstSample *sample) const { gst_sample_unref(sample); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

// Microseconds.
gint64 now() {
  return g_get_monotonic_time();
}
gint64 cpu_time() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * G_USEC_PER_SEC + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

// ---- The source
// ------------------------------------------------------------------------------------------------------

enum class Origin { Pool, Recycled, Wrapped };

// What a source is to do. Outlives it.
struct Feed {
  GstVideoInfo info;
  Ref<GstCaps> caps;
  Origin origin;
  bool fill_each = false;  // else each buffer is filled once, since it is not the source that is to be measured
  gint64 deadline = 0;     // the stream ends then, or
  int frames = G_MAXINT;   // after so many

  std::vector<std::vector<guint8>> picture;  // kPictures of them
  std::vector<std::vector<guint8>> pages;    // of Origin::Wrapped
  std::atomic<bool> page_used[kBuffers] = {};
  std::map<const void *, bool> filled;
  gint64 started = 0;  // the latest frame

  Feed(const char *format, int width, int height, bool on_device, Origin from) : origin(from) {
    gst_video_info_set_format(&info, gst_video_format_from_string(format), width, height);
    info.fps_n = 1000;  // a millisecond a frame, so that timestamps count
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
};

struct BenchSrc {
  GstPushSrc parent;
  Feed *feed;
  int frame;
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
  if (self->frame >= feed.frames || (feed.deadline && now() > feed.deadline)) return GST_FLOW_EOS;
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
  const bool known = std::exchange(feed.filled[gst_buffer_peek_memory(buffer, 0)], true);
  if (feed.fill_each || (!known && feed.origin != Origin::Wrapped)) fill(feed, buffer, self->frame % kPictures);
  GST_BUFFER_PTS(buffer) = self->frame++ * GST_MSECOND;
  GST_BUFFER_DURATION(buffer) = GST_MSECOND;
  feed.started = now();
  *out = buffer;
  return GST_FLOW_OK;
}

// Takes the pool that downstream proposes, or one of its own.
gboolean decide_allocation(GstBaseSrc *src, GstQuery *query) {
  const Feed &feed = *reinterpret_cast<BenchSrc *>(src)->feed;
  if (feed.origin == Origin::Pool) return GST_BASE_SRC_CLASS(bench_src_parent_class)->decide_allocation(src, query);
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

// ---- A pipeline
// ------------------------------------------------------------------------------------------------------

guint64 checksum(const GstVideoFrame &frame) {
  guint64 sum = 1469598103934665603u;
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); p++) {
    gint component[GST_VIDEO_MAX_COMPONENTS];
    gst_video_format_info_component(frame.info.finfo, p, component);
    const gsize bytes = static_cast<gsize>(GST_VIDEO_FRAME_COMP_WIDTH(&frame, component[0])) *
                        GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, component[0]);
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, component[0]); y++) {
      const auto *row = static_cast<const guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p)) +
                        static_cast<gsize>(y) * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p);
      guint64 word;
      gsize x = 0;
      for (; x + sizeof word <= bytes; x += sizeof word) {
        std::memcpy(&word, row + x, sizeof word);
        sum = (sum ^ word) * 1099511628211u;
      }
      for (; x < bytes; x++) sum = (sum ^ row[x]) * 1099511628211u;
    }
  }
  return sum;
}

// A source, some elements, a sink that looks at the frames.
class Pipeline {
 public:
  // Throws where there is no such element. `elements` as for gst-launch-1.0.
  Pipeline(Feed &feed, const std::string &elements, bool host_out, const std::vector<guint64> *expected = nullptr)
      : feed_(feed), host_out_(host_out), expected_(expected) {
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
    latency_.reserve(1 << 20);
  }
  ~Pipeline() {
    if (pipeline_) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
  }

  void start() {
    if (gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
      fail("it does not start");
  }
  // Until the stream has ended. Throws where it fails, or takes too long.
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
  double frames_per_second() const { return measured() ? measured() * 1e6 / (end_ - begin_) : 0; }
  double cpu_us() const { return measured() ? static_cast<double>(cpu_end_ - cpu_begin_) / measured() : 0; }
  // Of a frame from source to sink, in microseconds, the median.
  double latency() const {
    if (latency_.size() <= kWarmUp) return 0;
    std::vector<gint64> sorted(latency_.begin() + kWarmUp, latency_.end());
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return static_cast<double>(sorted[sorted.size() / 2]);
  }
  const std::vector<guint64> &checksums() const { return checksums_; }
  bool keep_checksums = false;

  // A number of the statistics of the cudaconv named "first".
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
  int measured() const { return std::max(frames_ - kWarmUp, 0); }

  void take(GstSample *sample) {
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    if (host_out_) {
      GstVideoFrame frame;
      if (!gst_video_frame_map(&frame, &feed_.info, buffer, GST_MAP_READ)) {
        wrong_++;
      } else {
        if (keep_checksums) checksums_.push_back(checksum(frame));
        if (expected_ && checksum(frame) != (*expected_)[frames_ % expected_->size()]) wrong_++;
        gst_video_frame_unmap(&frame);
      }
    }
    if (GST_BUFFER_PTS(buffer) != static_cast<GstClockTime>(frames_) * GST_MSECOND) wrong_++;
    if (latency_.size() < latency_.capacity()) latency_.push_back(now() - feed_.started);
    if (++frames_ != kWarmUp) return;
    begin_ = now();
    cpu_begin_ = cpu_time();
  }

  Feed &feed_;
  const bool host_out_;
  const std::vector<guint64> *const expected_;
  Ref<GstElement> pipeline_;
  std::atomic<int> frames_{0}, wrong_{0};
  gint64 begin_ = 0, end_ = 0, cpu_begin_ = 0, cpu_end_ = 0;
  std::vector<gint64> latency_;
  std::vector<guint64> checksums_;
};

// ---- What is measured
// ------------------------------------------------------------------------------------------------

struct Result {
  std::string frame, what;
  double fps = 0, latency_us = 0, cpu_us = 0, gpu_us = 0, staged_share = 0;
};

struct Options {
  double seconds = 2;
  std::string backend, only, mask = "gauss5";
  const char *json = nullptr;
  int soak = 0, devices = 0;
};

bool has_element(const char *name) {
  const Ref<GstElementFactory> factory(gst_element_factory_find(name));
  return factory != nullptr;
}

std::string cudaconv(const Options &o, const std::string &more = "") {
  return "cudaconv name=first backend=" + o.backend + " mask=" + o.mask + " " + more;
}

struct FrameSize {
  const char *format;
  int width, height;
  std::string text() const { return std::to_string(width) + "x" + std::to_string(height) + " " + format; }
};

// Prints what comes of `elements`; a pipeline that cannot be made or fails is named, and the rest goes on.
void measure(const Options &o, const FrameSize &size, const std::string &what, const std::string &elements,
             Origin origin, bool on_device, std::vector<Result> &results) {
  Result result{size.text(), what};
  if ((result.frame + " " + what).find(o.only) == std::string::npos) return;
  try {
    Feed feed(size.format, size.width, size.height, on_device, origin);
    feed.deadline = now() + static_cast<gint64>((o.seconds + 0.5) * G_USEC_PER_SEC);
    Pipeline pipeline(feed, elements, !on_device);
    pipeline.start();
    pipeline.wait(static_cast<int>(o.seconds));
    result.fps = pipeline.frames_per_second();
    result.cpu_us = pipeline.cpu_us();
    if (const guint64 frames = pipeline.stat("frames"))
      result.gpu_us = static_cast<double>(pipeline.stat("device-time")) / static_cast<double>(frames) / 1e3;
    const guint64 copied = pipeline.stat("bytes-uploaded") + pipeline.stat("bytes-downloaded");
    if (copied) result.staged_share = static_cast<double>(pipeline.stat("bytes-staged")) / static_cast<double>(copied);
    if (pipeline.wrong())
      std::printf("%-20s %-34s %d frames out of order\n", result.frame.c_str(), what.c_str(), pipeline.wrong());
    if (elements.find("cudaconv") == 0) {
      Feed one(size.format, size.width, size.height, on_device, origin);
      one.frames = 400;
      Pipeline alone(one, "cudaconv frames-in-flight=1 " + elements.substr(std::strlen("cudaconv ")), !on_device);
      alone.start();
      alone.wait(0);
      result.latency_us = alone.latency();
    }
    std::printf("%-20s %-34s %10.1f %12.1f %12.1f %10.1f %9.0f%%\n", result.frame.c_str(), what.c_str(), result.fps,
                result.latency_us, result.cpu_us, result.gpu_us, 100 * result.staged_share);
    results.push_back(result);
  } catch (const std::exception &e) {
    std::printf("%-20s %-34s %s\n", result.frame.c_str(), what.c_str(), e.what());
  }
  std::fflush(stdout);
}

#ifdef HAVE_CUDA
// Both ways at once, pinned, on two streams: frames a second, 0 where that fails.
double bus_floor(gsize bytes) {
  constexpr int kCopies = 200;
  void *host[2] = {}, *device[2] = {};
  cudaStream_t stream[2] = {};
  bool ok = true;
  for (int i = 0; i < 2; i++)
    ok = ok && cudaHostAlloc(&host[i], bytes, cudaHostAllocDefault) == cudaSuccess &&
         cudaMalloc(&device[i], bytes) == cudaSuccess &&
         cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking) == cudaSuccess;
  double best = 0;
  for (int round = 0; ok && round < 4; round++) {
    const gint64 begin = now();
    for (int i = 0; ok && i < kCopies; i++)
      ok = cudaMemcpyAsync(device[0], host[0], bytes, cudaMemcpyHostToDevice, stream[0]) == cudaSuccess &&
           cudaMemcpyAsync(host[1], device[1], bytes, cudaMemcpyDeviceToHost, stream[1]) == cudaSuccess;
    ok = ok && cudaStreamSynchronize(stream[0]) == cudaSuccess && cudaStreamSynchronize(stream[1]) == cudaSuccess;
    if (ok && round) best = std::max(best, kCopies * 1e6 / static_cast<double>(now() - begin));
  }
  for (int i = 0; i < 2; i++) {
    if (stream[i]) cudaStreamDestroy(stream[i]);
    if (device[i]) cudaFree(device[i]);
    if (host[i]) cudaFreeHost(host[i]);
  }
  return ok ? best : 0;
}
#endif

void measure_all(const Options &o, std::vector<Result> &results) {
  std::printf("%-20s %-34s %10s %12s %12s %10s %10s\n", "", "", "frames/s", "latency us", "CPU us/frame", "GPU us",
              "staged");
  for (const FrameSize &size :
       {FrameSize{"NV12", 1920, 1080}, FrameSize{"NV12", 3840, 2160}, FrameSize{"RGBA", 3840, 2160}}) {
    const std::string filter = cudaconv(o);
    if (o.backend == "cuda") {
#ifdef HAVE_CUDA
      GstVideoInfo info;
      gst_video_info_set_format(&info, gst_video_format_from_string(size.format), size.width, size.height);
      if ((size.text() + " bus, both ways").find(o.only) != std::string::npos) {
        Result floor{size.text(), "bus, both ways"};
        floor.fps = bus_floor(GST_VIDEO_INFO_SIZE(&info));
        std::printf("%-20s %-34s %10.1f\n", floor.frame.c_str(), floor.what.c_str(), floor.fps);
        results.push_back(floor);
      }
#endif
    }
    measure(o, size, "pool", filter, Origin::Pool, false, results);
    measure(o, size, "recycled", filter, Origin::Recycled, false, results);
    measure(o, size, "wrapped", filter, Origin::Wrapped, false, results);
    if (o.backend == "cuda")
      measure(o, size, "cuda", filter + " ! video/x-raw(memory:CUDAMemory)", Origin::Pool, true, results);
  }
  if (o.backend == "cpu") {
    for (const char *format : {"GRAY8", "RGB"}) {
      const FrameSize size = {format, 1920, 1080};
      measure(o, size, "recycled", cudaconv(o), Origin::Recycled, false, results);
      if (has_element("cvsmooth"))
        measure(o, size, "cvsmooth, gaussian 5x5", "cvsmooth name=first type=gaussian kernel-width=5 kernel-height=5",
                Origin::Recycled, false, results);
    }
  }
}

// ---- Many streams
// ----------------------------------------------------------------------------------------------------

double resident_megabytes() {
  long pages = 0, resident = 0;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

double device_megabytes(const Options &o) {
#ifdef HAVE_CUDA
  size_t free = 0, total = 0;
  if (o.backend == "cuda" && cudaMemGetInfo(&free, &total) == cudaSuccess)
    return static_cast<double>(total - free) / 1e6;
#else
  (void)o;
#endif
  return 0;
}

// What comes of the pictures, by the CPU.
std::vector<guint64> expected_of(const Options &o, const std::string &mask) {
  Options cpu = o;
  cpu.backend = "cpu";
  cpu.mask = mask;
  Feed feed("NV12", 1920, 1080, false, Origin::Pool);
  feed.fill_each = true;
  feed.frames = kPictures;
  Pipeline pipeline(feed, cudaconv(cpu), true);
  pipeline.keep_checksums = true;
  pipeline.start();
  pipeline.wait(0);
  return pipeline.checksums();
}

// Several streams at once for so long, every frame looked at. Whether all were right.
bool soak(const Options &o) {
  const char *masks[] = {"gauss5", "sobel", "dilate", "median"};
  const Origin origins[] = {Origin::Pool, Origin::Recycled, Origin::Wrapped, Origin::Pool};
  std::vector<std::vector<guint64>> expected;
  for (const char *mask : masks) expected.push_back(expected_of(o, mask));
  std::vector<std::unique_ptr<Feed>> feeds;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  const gint64 deadline = now() + o.soak * G_USEC_PER_SEC;
  for (int i = 0; i < 4; i++) {
    feeds.push_back(std::make_unique<Feed>("NV12", 1920, 1080, false, origins[i]));
    feeds[i]->fill_each = true;
    feeds[i]->deadline = deadline;
    Options here = o;
    here.mask = masks[i];
    pipelines.push_back(std::make_unique<Pipeline>(*feeds[i], cudaconv(here), true, &expected[i]));
  }
  for (const auto &pipeline : pipelines) pipeline->start();
  g_usleep(static_cast<gulong>(o.soak) * G_USEC_PER_SEC / 5);
  const double host = resident_megabytes(), device = device_megabytes(o);
  const gint64 rest = deadline - now() - G_USEC_PER_SEC / 5;
  if (rest > 0) g_usleep(static_cast<gulong>(rest));
  const double host_end = resident_megabytes(), device_end = device_megabytes(o);
  int wrong = 0, frames = 0;
  for (const auto &pipeline : pipelines) {
    pipeline->wait(o.soak);
    wrong += pipeline->wrong();
    frames += pipeline->frames();
  }
  std::printf(
      "%d frames in %d s, %d of them wrong; host memory %.1f MB, grown by %.1f MB; device memory %.1f MB, grown "
      "by %.1f MB\n",
      frames, o.soak, wrong, host_end, host_end - host, device_end, device_end - device);
  return wrong == 0 && frames > 0;
}

void spread(const Options &o) {
  constexpr int kStreams = 8;
  std::vector<std::unique_ptr<Feed>> feeds;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (int i = 0; i < kStreams; i++) {
    feeds.push_back(std::make_unique<Feed>("NV12", 1920, 1080, false, Origin::Pool));
    pipelines.push_back(std::make_unique<Pipeline>(
        *feeds[i], cudaconv(o, "cuda-device-id=" + std::to_string(o.backend == "cuda" ? i % o.devices : -1)), true));
  }
  const gint64 deadline = now() + static_cast<gint64>((o.seconds + 2) * G_USEC_PER_SEC);
  for (const auto &feed : feeds) feed->deadline = deadline;
  for (const auto &pipeline : pipelines) pipeline->start();
  double total = 0;
  for (const auto &pipeline : pipelines) {
    pipeline->wait(static_cast<int>(o.seconds) + 2);
    total += pipeline->frames_per_second();
  }
  std::printf("%d streams of 1920x1080 NV12 on %d devices: %.1f frames/s\n", kStreams, o.devices, total);
}

void write_json(const char *path, const Options &o, const std::vector<Result> &results) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  std::fprintf(file, "{\"backend\": \"%s\", \"mask\": \"%s\", \"results\": [", o.backend.c_str(), o.mask.c_str());
  const char *separator = "\n";
  for (const Result &r : results) {
    std::fprintf(file,
                 "%s  {\"frame\": \"%s\", \"what\": \"%s\", \"frames_per_second\": %.1f, \"latency_us\": %.1f, "
                 "\"cpu_us\": %.1f, \"gpu_us\": %.2f, \"staged\": %.3f}",
                 separator, r.frame.c_str(), r.what.c_str(), r.fps, r.latency_us, r.cpu_us, r.gpu_us, r.staged_share);
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
    const std::string argument = argv[i];
    const auto value = [&](const char *name) -> const char * {
      const size_t length = std::strlen(name);
      return argument.compare(0, length, name) ? nullptr : argv[i] + length;
    };
    if (const char *v = value("--seconds="))
      o.seconds = std::atof(v);
    else if (const char *v = value("--backend="))
      o.backend = v;
    else if (const char *v = value("--mask="))
      o.mask = v;
    else if (const char *v = value("--only="))
      o.only = v;
    else if (const char *v = value("--json="))
      o.json = v;
    else if (const char *v = value("--soak="))
      o.soak = std::atoi(v);
    else if (const char *v = value("--devices="))
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
  std::vector<Result> results;
  measure_all(o, results);
  if (o.json) write_json(o.json, o, results);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
