// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests detections of GStreamer's element ssdobjectdetector as regions. The element reads tensors, which usually come
// from a model, and here from the test.
#include <cstdio>
#include <cstring>

#include "regions.h"
#include "support.h"

#ifndef CUDACONV_ANALYTICS_MASKS

int main() {
  fprintf(stderr, "SKIP: built without the tensors of gstreamer-analytics-1.0, version 1.26\n");
  return 77;
}

#else

#include <gst/analytics/analytics.h>
#include <glib/gstdio.h>

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr int kWidth = 128, kHeight = 64, kFrames = 4;  // powers of two, so that coordinates as fractions are exact
enum Class { Person, Car, Cat, Unknown };
constexpr const char *kLabels = "person\ncar\ncat\n";

struct Detection {
  Class what;
  float score;
  Region place;
};

// Objects that move to the right from frame to frame. The last frame has no objects and no tensors.
std::vector<Detection> detections_of(int frame) {
  if (frame == kFrames - 1) return {};
  const int x = 5 * frame;
  return {
      {Person, 0.9f, {x + 8, 6, 22, 17}},          {Car, 0.8f, {x + 60, 30, 31, 20}}, {Cat, 0.5f, {x + 20, 15, 30, 25}},
      {Person, 0.2f, {x + 70, 3, 20, 20}},          // below the detector's score threshold
      {Person, 0.9f, {0, 0, kWidth, kHeight - 1}},  // too large for the detector
      {Unknown, 0.9f, {x + 40, 50, 9, 11}}};
}

// A tensor of floats. Models use floats even for the number of detections.
GstTensor *new_tensor(const char *id, const std::vector<float> &values, std::vector<gsize> dims) {
  GstBuffer *data = gst_buffer_new_memdup(values.data(), values.size() * sizeof(float));
  return gst_tensor_new_simple(g_quark_from_string(id), GST_TENSOR_DATA_TYPE_FLOAT32, data,
                               GST_TENSOR_DIM_ORDER_ROW_MAJOR, dims.size(), dims.data());
}

void attach_tensors(GstBuffer *buffer, const std::vector<Detection> &detections) {
  const size_t count = detections.size();
  std::vector<float> boxes, scores, classes;
  for (const Detection &d : detections) {
    for (const int y : {d.place.y, d.place.y + d.place.height}) {
      const int x = y == d.place.y ? d.place.x : d.place.x + d.place.width;
      boxes.push_back(static_cast<float>(y) / kHeight);
      boxes.push_back(static_cast<float>(x) / kWidth);
    }
    scores.push_back(d.score);
    classes.push_back(static_cast<float>(d.what));
  }
  GstTensor *tensors[] = {
      new_tensor("Gst.Model.ObjectDetector.Boxes", boxes, {1, count, 4}),
      new_tensor("Gst.Model.ObjectDetector.Scores", scores, {1, count}),
      new_tensor("Gst.Model.ObjectDetector.Classes", classes, {1, count}),
      new_tensor("Gst.Model.ObjectDetector.NumDetections", {static_cast<float>(count)}, {1}),
  };
  auto **list = static_cast<GstTensor **>(g_memdup2(tensors, sizeof tensors));
  gst_tensor_meta_set(gst_buffer_add_tensor_meta(buffer), G_N_ELEMENTS(tensors), list);
}

// The frames before the detector and behind the filter.
struct Frames {
  std::vector<Ref<GstBuffer> > in, out;
};

GstPadProbeReturn before_detector(GstPad *, GstPadProbeInfo *info, gpointer data) {
  auto *frames = static_cast<Frames *>(data);
  GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  info->data = buffer;
  const std::vector<Detection> detections = detections_of(static_cast<int>(frames->in.size()));
  frames->in.emplace_back(gst_buffer_copy_deep(buffer));
  if (!detections.empty()) attach_tensors(buffer, detections);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn after_filter(GstPad *, GstPadProbeInfo *info, gpointer data) {
  static_cast<Frames *>(data)->out.emplace_back(gst_buffer_ref(GST_PAD_PROBE_INFO_BUFFER(info)));
  return GST_PAD_PROBE_OK;
}

void add_probe(const Pipeline &pipeline, const char *element, const char *pad, GstPadProbeCallback probe,
               Frames *frames) {
  const Ref<GstPad> at(gst_element_get_static_pad(pipeline.element(element).get(), pad));
  gst_pad_add_probe(at.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, frames, nullptr);
}

// The number of detections of the buffer; -1 if it has no meta for them.
int detections_in(GstBuffer *buffer) {
  GstAnalyticsRelationMeta *meta = gst_buffer_get_analytics_relation_meta(buffer);
  return meta ? static_cast<int>(gst_analytics_relation_get_length(meta)) : -1;
}

// A temporary file with the names of the classes.
struct LabelFile {
  char *name = nullptr;
  LabelFile() {
    const int file = g_file_open_tmp("labels-XXXXXX", &name, nullptr);
    fail_unless(file >= 0 && g_file_set_contents(name, kLabels, -1, nullptr));
    g_close(file, nullptr);
  }
  ~LabelFile() {
    g_unlink(name);
    g_free(name);
  }
};

// Checks that the detections of the classes `wanted`, and nothing else, are filtered.
void check(const char *format, const std::string &properties, const std::vector<Class> &wanted) {
  const LabelFile labels;
  const GstVideoInfo info = video_info(format, kWidth, kHeight);
  Frames frames;
  Pipeline pipeline("videotestsrc num-buffers=" + std::to_string(kFrames) +
                    " pattern=zone-plate kx2=12 ky2=9 kt=5 ! video/x-raw,format=" + format +
                    ",width=128,height=64 ! ssdobjectdetector name=detector label-file=" + labels.name +
                    " ! cudaconv name=filter mask=gauss5 roi-meta=true backend=" + test_backend() + " " + properties +
                    " ! fakesink");
  add_probe(pipeline, "detector", "sink", before_detector, &frames);
  add_probe(pipeline, "filter", "src", after_filter, &frames);
  fail_unless(pipeline.go_to(GST_STATE_PLAYING));
  assert_same_text(pipeline.wait_for_end(), "");
  fail_unless_equals_int(frames.out.size(), kFrames);
  for (int i = 0; i < kFrames; i++) {
    Selection selection;
    for (const Detection &d : detections_of(i))
      for (const Class c : wanted)
        if (d.what == c && d.score > 0.3f && d.place.width < kWidth) selection.region.push_back(d.place);
    fail_unless_equals_int(detections_in(frames.in[i].get()), -1);
    fail_unless_equals_int(detections_in(frames.out[i].get()), i < kFrames - 1 ? 4 : -1);
    check_layers(frames.in[i].get(), frames.out[i].get(), info, {{"mask=gauss5", selection}});
  }
}

}  // namespace

GST_START_TEST(detections_are_regions) {
  for (const char *format : {"GRAY8", "I420", "RGBx", "P010_10LE"}) {
    check(format, "", {Person, Car, Cat, Unknown});
    check(format, "roi-type=person", {Person});
    check(format, "roi-type=cat,car", {Cat, Car});
    check(format, "roi-type=dog", {});
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("detector");
  TCase *tc = tcase_create("detector");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, detections_are_regions);
  return suite;
}

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  const Ref<GstElement> detector(gst_element_factory_make("ssdobjectdetector", nullptr));
  if (!detector) {
    fprintf(stderr, "SKIP: no element ssdobjectdetector (gstreamer1.0-plugins-bad)\n");
    return 77;
  }
  if (gst_plugin_feature_check_version(GST_PLUGIN_FEATURE(gst_element_get_factory(detector.get())), 1, 27, 0)) {
    fprintf(stderr, "SKIP: ssdobjectdetector has other tensor names since GStreamer 1.27\n");
    return 77;
  }
  return run_suite(argc, argv, "detector", make_suite, !strcmp(test_backend(), "cuda"));
}

#endif
