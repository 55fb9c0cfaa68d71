// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Measures what streams of one process cost the host: frames a second of all streams, processor time and context
// switches a frame, device memory. Each stream is a thread that pushes one buffer again and again through its elements.
// Nothing here passes or fails by a time.
//
// CUDA contexts, by --context:
//   default  those that the elements find or make
//   own      one for each stream, set by the application
//   one      one for all streams of a GPU, set by the application
//
// With --devices=N, streams take turns on the first N GPUs. With --streams=N, each row is measured with N streams.
#include <gst/video/video.h>
#ifdef HAVE_CUDA
#include <cuda_runtime.h>

#include "gstcudacompat.h"
#endif

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"

namespace {

struct Options {
  double seconds = 1.5;
  std::string backend = "cuda", only, context = "default";
  int devices = 1, streams = 0;  // streams: 0: as each row says
};

// A setting and how many streams are filtered with it.
struct Row {
  const char *what;
  std::string elements;  // as for gst-launch-1.0
  int streams = 1;
  bool on_device = true;
  int rate = 0;  // frames a second of each stream; 0: as many as are taken
};

gint64 now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Usage {
  double cpu_us;
  double voluntary, forced;  // context switches
  static Usage now() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    const auto us = [](const timeval &t) {
      return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return {us(u.ru_utime) + us(u.ru_stime), static_cast<double>(u.ru_nvcsw), static_cast<double>(u.ru_nivcsw)};
  }
};

double device_megabytes() {
#ifdef HAVE_CUDA
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return static_cast<double>(total - free) / 1e6;
#endif
  return 0;
}

// The elements of a row on a GPU.
std::string on_device(std::string elements, int device) {
  const std::string name = "cudaconv ", with = name + "cuda-device-id=" + std::to_string(device) + " ";
  for (size_t at = 0; (at = elements.find(name, at)) != std::string::npos; at += with.size())
    elements.replace(at, name.size(), with);
  return elements;
}

// The pads of a stream and its elements between them.
class Stream {
 public:
  Stream(const Options &o, const Row &row, int device, GstContext *context) : rate_(row.rate) {
    GError *error = nullptr;
    bin_ = gst_parse_bin_from_description(on_device(row.elements, device).c_str(), TRUE, &error);
    if (!bin_) throw std::runtime_error(error->message);
    gst_object_ref_sink(bin_);
    if (context) gst_element_set_context(bin_, context);
    source_ = gst_pad_new("source", GST_PAD_SRC);
    sink_ = gst_pad_new("sink", GST_PAD_SINK);
    gst_pad_set_element_private(sink_, this);
    gst_pad_set_chain_function(sink_, [](GstPad *pad, GstObject *, GstBuffer *buffer) {
      static_cast<Stream *>(gst_pad_get_element_private(pad))->take(buffer);
      return GST_FLOW_OK;
    });
    gst_pad_set_event_function(sink_, [](GstPad *, GstObject *, GstEvent *event) -> gboolean {
      gst_event_unref(event);
      return TRUE;
    });
    gst_pad_set_query_function(sink_, [](GstPad *pad, GstObject *parent, GstQuery *query) -> gboolean {
      if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return gst_pad_query_default(pad, parent, query);
      gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
      return TRUE;
    });
    GstPad *in = gst_element_get_static_pad(bin_, "sink"), *out = gst_element_get_static_pad(bin_, "src");
    const bool linked = gst_pad_link(source_, in) == GST_PAD_LINK_OK && gst_pad_link(out, sink_) == GST_PAD_LINK_OK;
    gst_object_unref(in);
    gst_object_unref(out);
    gst_pad_set_active(sink_, TRUE);
    gst_pad_set_active(source_, TRUE);
    if (!linked || gst_element_set_state(bin_, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
      throw std::runtime_error("the elements do not start");
    GstCaps *caps = gst_caps_from_string("video/x-raw,format=NV12,width=1920,height=1080,framerate=30/1");
    if (row.on_device && o.backend == "cuda")
      gst_caps_set_features_simple(caps, gst_caps_features_new_single("memory:CUDAMemory"));
    gst_pad_push_event(source_, gst_event_new_stream_start("stream"));
    gst_pad_push_event(source_, gst_event_new_caps(caps));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_push_event(source_, gst_event_new_segment(&segment));
    buffer_ = new_buffer(caps);
    gst_caps_unref(caps);
  }
  ~Stream() {
    stop();
    gst_buffer_unref(buffer_);
    gst_pad_set_active(source_, FALSE);
    gst_element_set_state(bin_, GST_STATE_NULL);
    gst_pad_set_active(sink_, FALSE);
    gst_object_unref(source_);
    gst_object_unref(sink_);
    gst_object_unref(bin_);
  }
  Stream(const Stream &) = delete;

  void start() { thread_ = std::thread(&Stream::run, this); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  long frames() const { return frames_; }
  // The frames before this call do not count in latencies().
  void begin() { first_ = frames_; }
  // To be called after stop().
  std::vector<gint64> latencies() const {
    return {latencies_.begin() + std::min<long>(first_, latencies_.size()), latencies_.end()};
  }

 private:
  // A frame from the pool that the element proposes.
  GstBuffer *new_buffer(GstCaps *caps) {
    GstQuery *query = gst_query_new_allocation(caps, TRUE);
    GstBufferPool *pool = nullptr;
    if (gst_pad_peer_query(source_, query) && gst_query_get_n_allocation_pools(query))
      gst_query_parse_nth_allocation_pool(query, 0, &pool, nullptr, nullptr, nullptr);
    gst_query_unref(query);
    GstBuffer *buffer = nullptr;
    if (!pool || !gst_buffer_pool_set_active(pool, TRUE) ||
        gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr) != GST_FLOW_OK)
      throw std::runtime_error("the element proposes no pool");
    gst_object_unref(pool);
    gst_buffer_memset(buffer, 0, 77, gst_buffer_get_size(buffer));
    return buffer;
  }

  void run() {
    const gint64 begin = now();
    for (gint64 n = 0; !stop_; n++) {
      if (rate_) {
        const gint64 due = begin + n * G_USEC_PER_SEC / rate_ - now();
        if (due > 0) g_usleep(static_cast<gulong>(due));
        GstBuffer *copy = gst_buffer_copy(buffer_);  // shares the memory; has a time of its own
        GST_BUFFER_OFFSET(copy) = static_cast<guint64>(now());
        if (gst_pad_push(source_, copy) != GST_FLOW_OK) return;
      } else if (gst_pad_push(source_, gst_buffer_ref(buffer_)) != GST_FLOW_OK) {
        return;
      }
    }
    gst_pad_push_event(source_, gst_event_new_eos());
  }

  void take(GstBuffer *buffer) {
    if (rate_) latencies_.push_back(now() - static_cast<gint64>(GST_BUFFER_OFFSET(buffer)));
    gst_buffer_unref(buffer);
    frames_++;
  }

  const int rate_;
  GstElement *bin_;
  GstPad *source_, *sink_;
  GstBuffer *buffer_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<long> frames_{0};
  long first_ = 0;
  std::vector<gint64> latencies_;
};

// A context of its own on a GPU for an application to set; nullptr where there is none.
GstContext *new_context(int device) {
#ifdef HAVE_CUDA
  GstCudaContext *made = gst_cuda_load_library() ? gst_cuda_context_new(device) : nullptr;
  if (!made) return nullptr;
  GstContext *context = gst_context_new_cuda_context(made);
  gst_object_unref(made);
  return context;
#else
  (void)device;
  return nullptr;
#endif
}

void print_latencies(const Row &row, const std::vector<std::unique_ptr<Stream>> &streams) {
  std::vector<gint64> all;
  for (const auto &stream : streams) {
    const std::vector<gint64> some = stream->latencies();
    all.insert(all.end(), some.begin(), some.end());
  }
  if (all.empty()) return;
  std::sort(all.begin(), all.end());
  const auto late = std::count_if(all.begin(), all.end(), [&](gint64 t) { return t > G_USEC_PER_SEC / row.rate; });
  std::printf("  latency 50 %% %ld us, 99 %% %ld us, later than a frame %ld of %zu",
              static_cast<long>(all[all.size() / 2]), static_cast<long>(all[all.size() * 99 / 100]),
              static_cast<long>(late), all.size());
}

void measure(const Options &o, const Row &row) {
  const double memory = device_megabytes();
  std::vector<GstContext *> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < row.streams; i++) {
    const int device = i % o.devices;
    if (o.context == "own" || (o.context == "one" && i < o.devices)) contexts.push_back(new_context(device));
    GstContext *const context = contexts.empty() ? nullptr : contexts[i % contexts.size()];
    streams.push_back(std::make_unique<Stream>(o, row, device, context));
  }
  for (GstContext *context : contexts)
    if (context) gst_context_unref(context);
  for (const auto &stream : streams) stream->start();
  const auto frames = [&] {
    long sum = 0;
    for (const auto &stream : streams) sum += stream->frames();
    return static_cast<double>(sum);
  };
  g_usleep(G_USEC_PER_SEC / 2);  // until pools are filled and kernels loaded
  const double taken = device_megabytes() - memory;
  const Usage before = Usage::now();
  for (const auto &stream : streams) stream->begin();
  const gint64 begin = now();
  const double first = frames();
  g_usleep(static_cast<gulong>(o.seconds * G_USEC_PER_SEC));
  const double count = frames() - first;
  const auto time = static_cast<double>(now() - begin);
  const Usage after = Usage::now();
  for (const auto &stream : streams) stream->stop();
  std::printf("%-30s %4d %-8s %10.0f frames/s %9.1f us %6.2f %6.2f switches %7.0f MB  %5.1f processors", row.what,
              row.streams, o.context.c_str(), count * 1e6 / time, (after.cpu_us - before.cpu_us) / count,
              (after.voluntary - before.voluntary) / count, (after.forced - before.forced) / count, taken,
              (after.cpu_us - before.cpu_us) / time);
  if (row.rate) print_latencies(row, streams);
  std::printf("\n");
  std::fflush(stdout);
}

std::vector<Row> rows(const Options &o) {
  const auto filter = [&](const std::string &setting) { return "cudaconv backend=" + o.backend + " " + setting; };
  const std::string gauss5 = filter("mask=gauss5"), next = " ! ";
  std::string seven = "coefficients=\"";
  for (int y = 0; y < 7; y++)
    for (int x = 0; x < 7; x++) seven += std::to_string((x * 3 + y * 5) % 7 + 1) + (x < 6 ? " " : y < 6 ? "; " : "\"");
  std::string eight;
  for (int i = 0; i < 8; i++)
    eight += std::to_string(100 + 400 * (i % 4)) + "," + std::to_string(100 + 500 * (i / 4)) + ",400,300;";
  eight.pop_back();
  return {
      {"gauss5", gauss5},
      {"gauss5", gauss5, 4},
      {"gauss5", gauss5, 16},
      {"three in a row", gauss5 + next + gauss5 + next + gauss5},
      {"three in a row", gauss5 + next + gauss5 + next + gauss5, 4},
      {"gauss7", filter("mask=gauss7")},
      {"custom 7x7", filter("mask=custom " + seven)},
      {"dilate 15", filter("mask=dilate size=15")},
      {"gauss sigma 8", filter("mask=gauss sigma=8")},
      {"gauss sigma 8, a region", filter("mask=gauss sigma=8 roi=\"700,300,400,300\"")},
      {"gauss sigma 8, a region", filter("mask=gauss sigma=8 roi=\"700,300,400,300\""), 16},
      {"gauss sigma 8, eight regions", filter("mask=gauss sigma=8 roi=\"" + eight + "\"")},
      {"open 5", filter("mask=open size=5")},
      {"bilateral 5", filter("mask=bilateral size=5")},
      {"gauss sigma 20", filter("mask=gauss sigma=20")},
      {"gauss sigma 20", filter("mask=gauss sigma=20"), 16},
      {"median 15", filter("mask=median size=15"), 4},
      {"gauss5, system memory", gauss5, 16, false},
      {"gauss5, live", gauss5, 1, true, 30},
      {"gauss5, live, system memory", gauss5, 1, false, 30},
      {"gauss5, live, system memory", gauss5, 16, false, 30},
      {"gauss5, live, system memory", gauss5, 64, false, 30},
  };
}

int run(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    if (const char *v = value_of(argv[i], "--seconds="))
      o.seconds = std::atof(v);
    else if (const char *v = value_of(argv[i], "--backend="))
      o.backend = v;
    else if (const char *v = value_of(argv[i], "--only="))
      o.only = v;
    else if (const char *v = value_of(argv[i], "--context="))
      o.context = v;
    else if (const char *v = value_of(argv[i], "--devices="))
      o.devices = std::max(1, std::atoi(v));
    else if (const char *v = value_of(argv[i], "--streams="))
      o.streams = std::max(1, std::atoi(v));
    else {
      std::fprintf(stderr,
                   "usage: %s [--backend=cuda|cpu] [--seconds=N] [--only=TEXT] [--context=default|own|one] "
                   "[--devices=N] [--streams=N]\n",
                   argv[0]);
      return 2;
    }
  }
  if (o.backend == "cuda" && device_megabytes() == 0) {
    std::printf("SKIP: there is no CUDA device\n");
    return 77;
  }
  std::printf("%-30s %4s %-8s %19s %12s %22s %10s\n", "what", "n", "context", "all streams", "CPU a frame",
              "own, forced a frame", "device");
  for (Row row : rows(o)) {
    if (std::string(row.what).find(o.only) == std::string::npos) continue;
    if (o.streams) row.streams = o.streams;
    try {
      measure(o, row);
    } catch (const std::exception &e) {
      std::printf("%-30s %4d %s\n", row.what, row.streams, e.what());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  return run_benchmark(argc, argv, run);
}
