// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Measures how much of a region remains visible if roi-scale adapts the filter to the size of the region.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// Whether this build has the mask.
bool has_mask(const char *nick) {
  Harness h;
  GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(h.element()), "mask");
  return g_enum_get_value_by_nick(G_PARAM_SPEC_ENUM(spec)->enum_class, nick) != nullptr;
}

// A frame with a square in the middle, which is a region, and grey around it.
struct Scene {
  static constexpr int margin = 8;
  int side;
  GstVideoInfo info;
  Ref<GstBuffer> in;

  // value(x, y) gives a pixel of the square; x and y are from 0 to 1 across and down.
  template <typename Value>
  Scene(int length, const Value &value)
      : side(length),
        info(video_info("GRAY8", side + 2 * margin, side + 2 * margin)),
        in(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr)) {
    FrameBytes frame(in.get(), info);
    std::fill(frame.bytes.begin(), frame.bytes.end(), 128);
    for (int y = 0; y < side; y++)
      for (int x = 0; x < side; x++) at(frame, x, y) = value((x + 0.5) / side, (y + 0.5) / side);
    gst_buffer_fill(in.get(), 0, frame.bytes.data(), frame.bytes.size());
    add_roi(in.get(), "face", margin, margin, side, side);
  }
  uint8_t &at(const FrameBytes &frame, int x, int y) const {
    const PlaneView &view = frame.view.plane[0];
    return view.data[(margin + y) * view.pitch + margin + x];
  }
  FrameBytes filtered(const std::string &properties) const {
    Harness h(properties + " roi-meta=true", info);
    return FrameBytes(h.filter(in.get()).get(), info);
  }
};

// The largest difference between two pixels in a row of the square, as a fraction of the range. Their distance is
// `distance` times the side.
double contrast(const Scene &scene, const FrameBytes &frame, double distance) {
  const int step = std::max(1, static_cast<int>(distance * scene.side));
  int most = 0;
  for (int y = 0; y < scene.side; y++)
    for (int x = 0; x + step < scene.side; x++)
      most = std::max(most, std::abs(scene.at(frame, x + step, y) - scene.at(frame, x, y)));
  return most / 255.0;
}

// The largest number of different samples in a row of the square; each change between neighbours begins a new one.
int samples(const Scene &scene, const FrameBytes &frame) {
  int most = 0;
  for (int y = 0; y < scene.side; y++) {
    int here = 1;
    for (int x = 1; x < scene.side; x++) here += scene.at(frame, x, y) != scene.at(frame, x - 1, y);
    most = std::max(most, here);
  }
  return most;
}

constexpr int kSides[] = {32, 33, 47, 64, 100, 250, 500, 999, 2000};

}  // namespace

// Compares filters whose strength follows the size of the region with a filter of fixed strength. Measures the
// remaining contrast of a step and of a checkerboard with 16 fields across the region, twice as fine as the details
// that may remain.
GST_START_TEST(large_regions_keep_as_little_contrast_as_small_ones) {
  const bool mosaic = has_mask("mosaic");
  const std::string scaled = mosaic ? "mask=mosaic roi-scale=0.125" : "mask=box roi-scale=0.125";
  const std::string fixed = "mask=box size=31";
  for (const int side : kSides) {
    if (!mosaic && side > 1000) continue;
    const Scene board(
        side, [](double x, double y) { return (static_cast<int>(x * 16) + static_cast<int>(y * 16)) % 2 ? 255 : 0; });
    const Scene step(side, [](double x, double) { return x < 0.47 ? 0 : 255; });
    const double board_left = contrast(board, board.filtered(scaled), 1 / 16.0),
                 board_fixed = contrast(board, board.filtered(fixed), 1 / 16.0),
                 // The part of the step within a sixteenth of the region. With blocks, it may be the whole step.
        step_left = contrast(step, step.filtered(scaled), 1 / 16.0),
                 step_fixed = contrast(step, step.filtered(fixed), 1 / 16.0);
    g_print("side %4d: checkerboard %.2f (fixed strength %.2f), step %.2f (%.2f)\n", side, board_left, board_fixed,
            step_left, step_fixed);
    // The region's edge may cut a block down to a field of the checkerboard.
    fail_unless(board_left < 0.6, "%d: %.2f", side, board_left);
    if (side >= 999) fail_unless(board_fixed > 0.9 && step_fixed > 0.9, "%d: %.2f", side, board_fixed);
    if (!mosaic) fail_unless(step_left < 0.75, "%d: %.2f", side, step_left);
  }
}
GST_END_TEST;

// The recommended settings for privacy leave at most eight samples.
GST_START_TEST(at_most_eight_samples_are_left_across_a_region) {
  if (!has_mask("mosaic")) return;
  Random random = seeded();
  for (const int side : kSides) {
    const Scene noise(side, [&](double x, double) { return static_cast<int>(200 * x + random() % 40); });
    const int left = samples(noise, noise.filtered("mask=mosaic roi-scale=0.125"));
    fail_unless(left <= 8 && left >= 6, "%d: %d", side, left);
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("contrast");
  TCase *tc = tcase_create("contrast");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, large_regions_keep_as_little_contrast_as_small_ones);
  tcase_add_test(tc, at_most_eight_samples_are_left_across_a_region);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "contrast", make_suite, !strcmp(test_backend(), "cuda"));
}
