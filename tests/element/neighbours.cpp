// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the element between GStreamer's own CUDA elements on a real GPU: decoders, scalers, the compositor, and the
// memory of another process. Each pipeline also runs with every filter on the CPU, between a download and an upload.
// All frames of both must be equal, whichever are mapped before their kernels have run. Pipelines with an element that
// this machine lacks are named, and not run.
//
//   CUDACONV_TEST_CLIPS   a folder for the clips of the decoders, which are encoded if they are missing
//   CUDACONV_TEST_RUNS    number of runs of each pipeline on the GPU, 3 by default
//   CUDACONV_TEST_SOURCE  only the sources whose line has this text, such as nvjpegdec
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr int kFrames = 60;  // of source()

std::string clip(const char *name) {
  const char *folder = g_getenv("CUDACONV_TEST_CLIPS");
  return std::string(folder ? folder : g_get_tmp_dir()) + "/" + name;
}

// The line without braces: each {PROPERTIES} is a cudaconv on the GPU, or on the CPU.
std::string with_filters(std::string line, bool on_gpu) {
  for (size_t open; (open = line.find('{')) != line.npos;) {
    const size_t close = line.find('}', open);
    const std::string properties = line.substr(open + 1, close - open - 1);
    line.replace(open, close + 1 - open,
                 on_gpu ? "cudaconv backend=cuda " + properties
                        : "cudadownload ! cudaconv backend=cpu " + properties + " ! cudaupload");
  }
  return line;
}

// Whether GStreamer has all elements of the line. Names the line otherwise.
bool can_run(const std::string &line) {
  GError *error = nullptr;
  GstElement *made = gst_parse_launch_full(line.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (made) gst_object_unref(gst_object_ref_sink(made));
  if (!error) return true;
  g_print("not run: %s: %s\n", line.c_str(), error->message);
  g_error_free(error);
  return false;
}

// A hash of the visible samples.
size_t hash_of(GstBuffer *buffer, GstPad *pad) {
  const Ref<GstCaps> caps(gst_pad_get_current_caps(pad));
  GstVideoInfo info;
  GstVideoFrame frame;
  fail_unless(gst_video_info_from_caps(&info, caps.get()) && gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
  size_t hash = 0;
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); p++) {
    gint component[GST_VIDEO_MAX_COMPONENTS];
    gst_video_format_info_component(frame.info.finfo, p, component);
    const int c = component[0];
    for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, c); y++) {
      const auto *const row = static_cast<const char *>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p)) +
                              y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p);
      const int bytes = GST_VIDEO_FRAME_COMP_WIDTH(&frame, c) * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
      hash = hash * 31 + std::hash<std::string_view>()({row, static_cast<size_t>(bytes)});
    }
  }
  gst_video_frame_unmap(&frame);
  return hash;
}

// What comes to the pipeline's sinks: hashes by sink and time. A frame that comes again, after a seek, must be the
// same.
class Taken {
 public:
  explicit Taken(const Pipeline &pipeline) {
    GstIterator *sinks = gst_bin_iterate_sinks(GST_BIN(pipeline.get()));
    const auto connect = [](const GValue *sink, gpointer self) {
      g_object_set(g_value_get_object(sink), "signal-handoffs", TRUE, "sync", FALSE, nullptr);
      g_signal_connect(g_value_get_object(sink), "handoff", G_CALLBACK(take), self);
    };
    gst_iterator_foreach(sinks, connect, this);
    gst_iterator_free(sinks);
  }

  bool wait_for(size_t frames) {
    std::unique_lock<std::mutex> lock(lock_);
    return more_.wait_for(lock, std::chrono::seconds(60), [&] { return count_ >= frames; });
  }

  using Frames = std::map<std::pair<std::string, GstClockTime>, size_t>;
  Frames frames() {
    const std::lock_guard<std::mutex> lock(lock_);
    fail_unless(different_.empty(), "%s", different_.c_str());
    return frames_;
  }

 private:
  static void take(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data) {
    auto *const self = static_cast<Taken *>(data);
    const size_t hash = hash_of(buffer, pad);
    const std::lock_guard<std::mutex> lock(self->lock_);
    const auto [frame, is_new] = self->frames_.insert({{GST_OBJECT_NAME(sink), GST_BUFFER_PTS(buffer)}, hash});
    if (!is_new && frame->second != hash) self->different_ = "a frame differs after a seek";
    self->count_++;
    self->more_.notify_all();
  }

  std::mutex lock_;
  std::condition_variable more_;
  Frames frames_;
  size_t count_ = 0;
  std::string different_;
};

enum class End { kEos, kSeek, kStop };  // at the end of the stream; after a flushing seek; in the middle

Taken::Frames run(const std::string &line, End end = End::kEos, size_t frames = 0) {
  static GstContext *context = nullptr;  // of all pipelines, since making one takes up to a second
  Pipeline pipeline(line);
  if (context) gst_element_set_context(pipeline.get(), context);
  Taken taken(pipeline);
  pipeline.go_to(GST_STATE_PLAYING);
  if (end != End::kEos && !taken.wait_for(frames))
    fail("%s: no frames come; %s", line.c_str(), pipeline.wait_for_end().c_str());
  if (end == End::kSeek)
    fail_unless(gst_element_seek_simple(pipeline.get(), GST_FORMAT_TIME,
                                        static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT), 0));
  if (end != End::kStop) {
    const std::string why = pipeline.wait_for_end();
    fail_unless(why.empty(), "%s: %s", line.c_str(), why.c_str());
  }
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  if (!context) context = gst_element_get_context(pipeline.get(), "gst.cuda.context");
  return taken.frames();
}

// Runs the line on the CPU once and on the GPU many times: to the end, with a stop while frames come, and with a seek
// then unless the frames behind one depend on time.
void check(const std::string &line, bool seeks = true) {
  if (!can_run(with_filters(line, true)) || !can_run(with_filters(line, false))) return;
  const Taken::Frames right = run(with_filters(line, false));
  fail_unless(right.size() >= kFrames, "%s: only %zu frames", line.c_str(), right.size());
  const int runs = number_from_environment("CUDACONV_TEST_RUNS", 3);
  for (int i = 0; i < runs; i++) {
    const End end = i % 3 == 0 ? End::kEos : i % 3 == 1 || !seeks ? End::kStop : End::kSeek;
    const Taken::Frames got = run(with_filters(line, true), end, 1 + i % (kFrames / 2));
    if (end == End::kEos) fail_unless_equals_int(got.size(), right.size());
    for (const auto &[where, hash] : got) {
      const auto same = right.find(where);
      fail_unless(same != right.end() && same->second == hash, "%s: run %d, %s at %" GST_TIME_FORMAT " is wrong",
                  line.c_str(), i, where.first.c_str(), GST_TIME_ARGS(where.second));
    }
  }
  g_print("%d runs: %s\n", runs, line.c_str());
}

// A picture that moves everywhere.
std::string source(const char *format, const char *properties = "kt=3 num-buffers=60") {
  return std::string("videotestsrc pattern=zone-plate kx2=20 ky2=20 ") + properties +
         " ! video/x-raw,format=" + format + ",width=642,height=362,framerate=30/1 ! ";
}

// A decoder on the GPU, of a clip that is encoded if it is missing. Empty if that cannot be.
std::string decoder(const char *name, const std::string &encoder, const std::string &line) {
  const std::string path = clip(name);
  if (!g_file_test(path.c_str(), G_FILE_TEST_EXISTS)) {
    const std::string encode = source("I420") + encoder + " ! matroskamux ! filesink location=" + path + ".part";
    if (!can_run(encode)) return "";
    Pipeline pipeline(encode);
    pipeline.go_to(GST_STATE_PLAYING);
    const std::string why = pipeline.wait_for_end();
    fail_unless(why.empty() && std::rename((path + ".part").c_str(), path.c_str()) == 0, "%s: %s", name, why.c_str());
  }
  return "filesrc location=" + path + " ! matroskademux ! " + line + " ! video/x-raw(memory:CUDAMemory) ! ";
}

// Sources whose frames are in CUDA memory.
const std::vector<std::string> &sources() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> all = {source("NV12") + "cudaupload ! ", source("RGBA") + "cudaupload ! ",
                                    decoder("h264.mkv", "x264enc key-int-max=10", "h264parse ! nvh264dec"),
                                    decoder("vp9.mkv", "vp9enc deadline=1", "vp9parse ! nvvp9dec"),
                                    decoder("jpeg.mkv", "jpegenc", "jpegparse ! nvjpegdec")};
    const char *only = g_getenv("CUDACONV_TEST_SOURCE");
    const auto leaves_out = [&](const std::string &line) {
      return line.empty() || (only && line.find(only) == line.npos) ||
             (line.find("nvjpegdec") != line.npos && strcmp(planar_format(), "I420") != 0);  // it gives I420
    };
    all.erase(std::remove_if(all.begin(), all.end(), leaves_out), all.end());
    return all;
  }();
  return found;
}

GST_START_TEST(three_in_a_row_are_right_behind_every_decoder) {
  for (const std::string &source : sources())
    check(source + "{mask=gauss5} ! {mask=sobel} ! {mask=dilate} ! fakesink name=s");
}
GST_END_TEST;

GST_START_TEST(filters_of_several_kernels_are_right_behind_every_decoder) {
  for (const std::string &source : sources()) {
    check(source + "{mask=open size=5} ! {mask=gauss sigma=20} ! fakesink name=s");
    check(source +
          "{mask=gauss sigma=8 roi=\"20,30,200,100;25%,25%,50%,50%\" roi-feather=9} ! "
          "{mask=mosaic roi=\"300,100 500,120 400,300\" roi-shape=ellipse} ! fakesink name=s");
  }
}
GST_END_TEST;

GST_START_TEST(queues_and_branches_change_nothing) {
  for (const std::string &source : sources()) {
    check(source +
          "queue max-size-buffers=2 ! {mask=gauss5} ! queue max-size-buffers=1 ! {mask=median size=5} ! "
          "queue ! fakesink name=s");
    check(source +
          "tee name=t t. ! queue ! {mask=gauss5} ! {mask=sobel} ! fakesink name=a "
          "t. ! queue ! {mask=gauss sigma=8 roi=10,10,100,100} ! fakesink name=b t. ! queue ! fakesink name=c");
    check(source +
          "{mask=gauss5} ! tee name=t t. ! queue ! {mask=mosaic roi=9,9,90,90} ! fakesink name=a "
          "t. ! queue ! fakesink name=b");
  }
}
GST_END_TEST;

GST_START_TEST(frames_may_leave_for_system_memory_and_come_from_it) {
  for (const std::string &source : sources()) {
    check(source + "{mask=gauss5} ! cudadownload ! videoconvert ! video/x-raw,format=I420 ! fakesink name=s");
    check(source + "{mask=gauss5} ! cudadownload ! cudaupload ! {mask=sobel} ! fakesink name=s");
  }
}
GST_END_TEST;

GST_START_TEST(scalers_and_converters_before_and_behind) {
  for (const std::string &source : sources())
    for (const char *scaler : {"cudaconvertscale", "cudascale"}) {
      const std::string scaled = std::string(scaler) + " ! video/x-raw(memory:CUDAMemory),width=322,height=242 ! ";
      check(source + scaled + "{mask=gauss5} ! {mask=sobel} ! fakesink name=s");
      check(source + "{mask=gauss5} ! {mask=sobel} ! " + scaled + "fakesink name=s");
    }
}
GST_END_TEST;

GST_START_TEST(a_compositor_of_two_filtered_streams) {
  for (const std::string &a : sources())
    check("cudacompositor name=c sink_1::xpos=320 ! fakesink name=s " + a + "{mask=gauss5} ! queue ! c.sink_0 " +
              source("NV12") + "cudaupload ! {mask=sobel} ! queue ! c.sink_1",
          false);
}
GST_END_TEST;

GST_START_TEST(two_decoders_side_by_side) {
  std::string all;
  for (size_t i = 0; i < sources().size(); i++)
    all += sources()[i] + "{mask=gauss sigma=3} ! {mask=dilate size=7} ! fakesink name=s" + std::to_string(i) + " ";
  check(all);
}
GST_END_TEST;

// CUDA memory of another process, which runs this program with its pipeline in the environment.
constexpr char kServed[] = "CUDACONV_TEST_SERVED";

GST_START_TEST(memory_of_another_process) {
  // Names of sockets are short.
  const std::string address = std::string(g_get_tmp_dir()) + "/cudaconv-" + std::to_string(getpid()) + ".socket";
  const std::string filtered = "cudaupload ! {mask=gauss5} ! ";
  // The server goes on until its reader has gone. Four pictures come again and again.
  const std::string serve =
      with_filters(source("NV12", "kt=64 is-live=true") + filtered + "cudaipcsink sync=false address=" + address, true);
  const std::string receive =
      "cudaipcsrc connection-timeout=60 address=" + address + " ! {mask=sobel} ! fakesink name=s";
  if (!can_run(with_filters(receive, true)) || !can_run(serve)) return;
  std::set<size_t> right;
  for (const auto &[where, hash] :
       run(with_filters(source("NV12", "kt=64 num-buffers=8") + filtered + "{mask=sobel} ! fakesink name=s", false)))
    right.insert(hash);
  const int runs = number_from_environment("CUDACONV_TEST_RUNS", 3);
  for (int i = 0; i < runs; i++) {
    char program[] = "/proc/self/exe";
    gchar *argv[] = {program, nullptr};
    gchar **environment = g_environ_setenv(g_get_environ(), kServed, serve.c_str(), TRUE);
    GPid server;
    fail_unless(
        g_spawn_async(nullptr, argv, environment, G_SPAWN_DO_NOT_REAP_CHILD, nullptr, nullptr, &server, nullptr));
    g_strfreev(environment);
    const Taken::Frames got = run(with_filters(receive, true), End::kStop, 10);
    kill(server, SIGTERM);
    waitpid(server, nullptr, 0);
    std::remove(address.c_str());  // else the next server cannot bind it
    for (const auto &[where, hash] : got)
      fail_unless(right.count(hash), "run %d: the frame at %" GST_TIME_FORMAT " is wrong", i,
                  GST_TIME_ARGS(where.second));
  }
  g_print("%d runs: %s\n", runs, receive.c_str());
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("neighbours");
  TCase *tc = tcase_create("general");
  tcase_set_timeout(tc, 0);
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, three_in_a_row_are_right_behind_every_decoder);
  tcase_add_test(tc, filters_of_several_kernels_are_right_behind_every_decoder);
  tcase_add_test(tc, queues_and_branches_change_nothing);
  tcase_add_test(tc, frames_may_leave_for_system_memory_and_come_from_it);
  tcase_add_test(tc, scalers_and_converters_before_and_behind);
  tcase_add_test(tc, a_compositor_of_two_filtered_streams);
  tcase_add_test(tc, two_decoders_side_by_side);
  tcase_add_test(tc, memory_of_another_process);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  if (const char *served = g_getenv(kServed)) {
    gst_init(&argc, &argv);
    GstElement *pipeline = gst_parse_launch(served, nullptr);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    const Ref<GstBus> bus(gst_element_get_bus(pipeline));
    const Ref<GstMessage> end(gst_bus_timed_pop_filtered(
        bus.get(), GST_CLOCK_TIME_NONE, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    return GST_MESSAGE_TYPE(end.get()) != GST_MESSAGE_EOS;
  }
  return run_suite(argc, argv, "neighbours", make_suite, true);
}
