// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests SavedPixels: it saves all pixels that filtering in place changes.
#include "backend.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvformat.h"
#include "gstcudaconvframe.h"
#include "plan/polygon.h"
#include "support.h"

// Caps with CUDA memory are not needed here.
const std::vector<const char *> &cudaconv::gst::cuda_memory_formats() {
  static const std::vector<const char *> none;
  return none;
}

using namespace cudaconv;
using namespace cudaconv::test;
using cudaconv::gst::describe_frame;
using cudaconv::gst::MappedFrame;
using cudaconv::gst::SavedPixels;

namespace {

Regions regions_at(std::vector<Region> region, bool ellipse = false, bool invert = false) {
  Regions regions;
  regions.active = true;
  regions.ellipse = ellipse;
  regions.invert = invert;
  regions.region = std::move(region);
  return regions;
}

// Regions of every kind, in a frame of 53 x 48 pixels.
std::vector<std::vector<Regions>> kinds() {
  Regions masks = regions_at({});
  masks.mask.push_back({{11, 9, 17, 21}, 2, 2, {1, 0, 0, 1}});
  Regions field = regions_at({{5, 7, 20, 11}});
  field.first_row = 1;
  field.row_step = 2;
  Region turned = {14, 12, 25, 7};
  turned.rotation = 0.7;
  Regions polygon = regions_at({});
  polygon.pixels = {polygon_pixels({{3, 4}, {51.5, 9}, {20, 60}}, 0.1, 53, 48)};
  return {{regions_at({{7, 5, 19, 12}})},
          {regions_at({{7, 5, 1, 1}, {8, 9, 3, 3}, {-7, -9, 12, 13}, {50, 44, G_MAXINT, G_MAXINT}})},
          {regions_at({{3, 3, 30, 31}}, true)},
          {regions_at({{3, 3, 30, 31}}, false, true)},
          {regions_at({{0, 0, 53, 48}, {1, 1, 50, 40}})},
          {regions_at({turned})},
          {regions_at({turned}, true)},
          {masks},
          {polygon},
          {field},
          {regions_at({{1, 2, 9, 9}}), regions_at({{31, 21, 7, 15}}, true), masks},
          {regions_at({})},
          {Regions()}};
}

// A filter that changes nearly every sample that it filters.
FilterSettings flat() {
  FilterSettings settings;
  settings.mask = Mask::Custom;
  settings.coefficients = {1, 1, {0}};
  settings.bias = 0.3;
  settings.chroma = Chroma::Filter;
  settings.alpha = Alpha::Filter;
  return settings;
}

std::vector<uint8_t> bytes_of(GstBuffer *buffer) {
  std::vector<uint8_t> bytes(gst_buffer_get_size(buffer));
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  return bytes;
}

void check_format(const char *format, bool interlaced, Random &random) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(
      &info, gst_video_format_from_string(format),
      interlaced ? GST_VIDEO_INTERLACE_MODE_INTERLEAVED : GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, 53, 48);
  FrameLayout layout;
  fail_unless(describe_frame(info, 0xff000000, &layout, interlaced), "%s", format);
  const auto serially = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  const std::unique_ptr<Backend> backend = make_cpu_backend(serially, 1);
  const std::shared_ptr<const Plan> plan = make_plan(flat(), layout);
  int number = 0;
  for (const std::vector<Regions> &kind : kinds()) {
    const Ref<GstBuffer> frame = random_frame(info, random, kScattered);
    const std::vector<uint8_t> before = bytes_of(frame.get());
    std::vector<PlannedRegions> planned;
    bool all_or_some = false;
    for (const Regions &regions : kind) {
      planned.push_back({plan, regions});
      all_or_some |= !regions.active || regions.invert || !regions.region.empty() || !regions.mask.empty() ||
                     !regions.pixels.empty();
    }
    {
      const MappedFrame mapped(frame.get(), info, layout, {}, GST_MAP_READWRITE, {});
      const SavedPixels saved(mapped.view(), layout, planned);
      backend->retire(backend->submit(planned, mapped.view(), mapped.view(), nullptr));
      fail_unless_equals_int(bytes_of(frame.get()) != before, all_or_some);
      saved.put_back(mapped.view());
    }
    fail_unless(bytes_of(frame.get()) == before, "%s, interlaced %d, kind %d", format, interlaced, number);
    number++;
  }
}

}  // namespace

GST_START_TEST(saved_pixels_restore_the_frame) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "GRAY16_LE", "I420", "NV12", "Y42B", "YUY2", "UYVY", "RGB", "RGBA", "AYUV",
                             "I420_10LE", "P010_10LE", "A420", "RGB10A2_LE"})
    for (const bool interlaced : {false, true}) check_format(format, interlaced, random);
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("saved");
  TCase *tc = tcase_create("saved");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, saved_pixels_restore_the_frame);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "saved", make_suite, false);
}
