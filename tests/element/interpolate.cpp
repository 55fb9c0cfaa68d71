// SPDX-License-Identifier: LGPL-2.1-or-later
//
// interpolate of roihold: objects that move, and a detector that finds them in few frames.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "regions.h"
#include "regions/history.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;
using cudaconv::gst::Cover;
using cudaconv::gst::RoiHistory;
using cudaconv::gst::RoiList;
using cudaconv::gst::RoiTimes;

namespace {

constexpr GstClockTime kFrame = GST_SECOND / 30;

// An object that moves in a straight line. Sizes and places are pixels, speeds are pixels in a frame of kFrame.
struct Mover {
  double x, y, width, height;
  double across, down = 0, wider = 0, higher = 0;
  gint id = 0;
  const char *type = "face";

  // All pixels that it touches.
  Region at(GstClockTime time) const {
    constexpr double kSlack = 1e-5;  // of timestamps, which are whole nanoseconds
    const double n = static_cast<double>(time) / kFrame, left = x + across * n, top = y + down * n;
    const int x0 = static_cast<int>(std::floor(left + kSlack)), y0 = static_cast<int>(std::floor(top + kSlack));
    return {x0, y0, static_cast<int>(std::ceil(left + width + wider * n - kSlack)) - x0,
            static_cast<int>(std::ceil(top + height + higher * n - kSlack)) - y0};
  }
};

void add_roi(GstBuffer *frame, const Region &r, const char *type, gint id) {
  auto *meta =
      gst_buffer_add_video_region_of_interest_meta(frame, type, static_cast<guint>(r.x), static_cast<guint>(r.y),
                                                   static_cast<guint>(r.width), static_cast<guint>(r.height));
  meta->id = id;
}

// A picture of bright objects on black, which cudaconv fills with black.
struct Clip {
  int width = 720, height = 48;
  std::vector<GstClockTime> times;
  std::vector<Mover> objects;
  std::function<bool(int frame, size_t object)> is_found;
  int cut_off = -1;  // where the detector cuts objects off, in pixels before the edges of the picture; -1: nowhere

  explicit Clip(std::vector<Mover> movers = {}) : objects(std::move(movers)) {}
  Clip &frames(int count, GstClockTime step = kFrame) {
    for (int i = 0; i < count; i++) times.push_back(static_cast<GstClockTime>(i) * step);
    return *this;
  }
  Clip &found_each(int step) {
    is_found = [step](int frame, size_t) { return frame % step == 0; };
    return *this;
  }

  Region detected(const Region &r) const {
    if (cut_off < 0) return r;
    const int left = std::max(r.x, 0), top = std::max(r.y, 0);
    return {left, top, std::min(r.x + r.width, width - cut_off) - left,
            std::min(r.y + r.height, height - cut_off) - top};
  }

  // The frames in which a pixel of an object was shown.
  std::vector<int> shown(const std::string &settings, bool alternate = false) const {
    GstVideoInfo info = video_info("GRAY8", width, height);
    if (alternate) GST_VIDEO_INFO_INTERLACE_MODE(&info) = GST_VIDEO_INTERLACE_MODE_ALTERNATE;
    Harness h("mask=fill roi-meta=true " + settings, info);
    const int rows = alternate ? height / 2 : height;
    for (size_t i = 0; i < times.size(); i++) {
      std::vector<guint8> pixels(static_cast<size_t>(width) * rows);
      Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, pixels.size(), nullptr));
      for (size_t j = 0; j < objects.size(); j++) {
        const Region r = objects[j].at(times[i]);
        const int unseen = std::max(cut_off, 0);  // also at detections
        for (int y = std::max(r.y, 0); y < std::min(r.y + r.height, height - unseen); y++)
          for (int x = std::max(r.x, 0); x < std::min(r.x + r.width, width - unseen); x++)
            if (!alternate || y % 2 == static_cast<int>(i % 2))
              pixels[static_cast<size_t>(alternate ? y / 2 : y) * width + x] = 255;
        if (is_found(static_cast<int>(i), j)) add_roi(frame.get(), detected(r), objects[j].type, objects[j].id);
      }
      gst_buffer_fill(frame.get(), 0, pixels.data(), pixels.size());
      GST_BUFFER_PTS(frame.get()) = times[i];
      if (alternate)
        GST_BUFFER_FLAG_SET(frame.get(), i % 2 ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    std::vector<int> frames;
    for (size_t i = 0; i < times.size(); i++) {
      const Ref<GstBuffer> out = h.pull();
      fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), times[i]);
      GstMapInfo map;
      gst_buffer_map(out.get(), &map, GST_MAP_READ);
      if (std::any_of(map.data, map.data + map.size, [](guint8 v) { return v > 100; }))
        frames.push_back(static_cast<int>(i));
      gst_buffer_unmap(out.get(), &map);
    }
    return frames;
  }
  size_t count_shown(const std::string &settings) const { return shown(settings).size(); }
  void check_covered(const std::string &settings, const std::string &about, bool alternate = false) const {
    const std::vector<int> frames = shown(settings + " interpolate=true", alternate);
    fail_unless(frames.empty(), "%s: %d frames are shown, the first is %d", about.c_str(),
                static_cast<int>(frames.size()), frames.empty() ? -1 : frames[0]);
  }
};

std::string times(GstClockTime hold, GstClockTime lookahead) {
  return "hold=" + std::to_string(hold) + " lookahead=" + std::to_string(lookahead);
}

// The regions of each frame that leaves a roihold, as text. Frame i has the time i * kFrame, and has the metas of
// `mark`.
std::vector<std::string> regions_of(const std::string &settings, int frames,
                                    const std::function<void(int, GstBuffer *)> &mark, double rate = 1) {
  GstElement *element = gst_element_factory_make("roihold", nullptr);
  gst_object_ref_sink(element);
  const Ref<GstBus> bus(gst_bus_new());
  gst_element_set_bus(element, bus.get());
  set_properties(element, settings);
  Harness h{Ref<GstElement>(element)};
  const GstVideoInfo info = video_info("GRAY8", 200, 100);
  h.set_caps(info);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.rate = rate;
  if (rate < 0) segment.stop = 100 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
  for (int n = 0; n < frames; n++) {
    const int i = rate < 0 ? frames - 1 - n : n;
    Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
    GST_BUFFER_PTS(frame.get()) = static_cast<guint>(i) * kFrame;
    mark(i, frame.get());
    fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  std::vector<std::string> all(static_cast<size_t>(frames));
  for (int n = 0; n < frames; n++) {
    const Ref<GstBuffer> out = h.pull();
    std::vector<std::string> rectangles;
    gpointer state = nullptr;
    while (const GstMeta *meta =
               gst_buffer_iterate_meta_filtered(out.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
      const auto *roi = reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta);
      rectangles.push_back(std::to_string(roi->x) + "," + std::to_string(roi->y) + "," + std::to_string(roi->w) + "," +
                           std::to_string(roi->h) + (roi->id ? " of " + std::to_string(roi->id) : ""));
    }
    std::sort(rectangles.begin(), rectangles.end());
    for (const std::string &r : rectangles) {
      std::string &text = all[static_cast<size_t>(rate < 0 ? frames - 1 - n : n)];
      text += (text.empty() ? "" : "; ") + r;
    }
  }
  return all;
}

}  // namespace

// ---- Linear motion --------------------------------------------------------------------------------------------------

// Each frame between two detections that are hold + lookahead apart is covered, however these share the time.
GST_START_TEST(an_object_in_linear_motion_is_covered) {
  std::string before, after;
  for (int step = 2; step <= 10; step++) {
    before += "\n" + std::to_string(step) + ":";
    after += "\n" + std::to_string(step) + ":";
    for (int speed = 1; speed <= 20; speed++) {
      const bool ids = (speed + step) % 2, grows = speed % 3;
      Clip clip({{10, 12, 24, 20, 1.0 * speed, 0.25, grows ? 0.7 : 0, grows ? -0.2 : 0, ids ? 7 : 0}});
      clip.frames(3 * step + 1).found_each(step);
      const GstClockTime gap = static_cast<guint>(step) * kFrame, held = static_cast<guint>(speed % 4) * gap / 3;
      clip.check_covered(times(held, gap - held),
                         std::to_string(speed) + " pixels, each frame of " + std::to_string(step));
      before += " " + std::to_string(clip.count_shown(times(held, gap - held)));
      after += " " + std::to_string(clip.count_shown(times(held, gap - held) + " interpolate=true"));
    }
  }
  g_print("frames with a shown pixel, of 3 * step + 1, each step by speeds of 1 to 20\nheld:%s\ninterpolated:%s\n",
          before.c_str(), after.c_str());
}
GST_END_TEST;

// Times need not be regular. Fields of a frame may have the same time.
// Detectors cut off what is outside the picture: objects enter and leave at each edge, and at corners.
GST_START_TEST(objects_at_the_edges_of_the_picture_are_covered) {
  const struct {
    const char *about;
    Mover object;
  } cases[] = {
      {"left to right", {-10, 30, 24, 20, 6}},
      {"right to left", {110, 30, 24, 20, -6}},
      {"down", {40, -12, 24, 20, 0, 4}},
      {"up", {40, 70, 24, 20, 0, -4}},
      {"from corner to corner", {-10, -8, 24, 20, 6, 4}},
      {"back to the corner", {112, 72, 24, 20, -6, -4}},
      {"while it grows", {-10, 30, 24, 20, 5, 0, 0.5, 0.4}},
  };
  for (const auto &c : cases)
    for (const int cut_off : {0, 1})
      for (const gint id : {0, 7})
        for (const int step : {3, 7, 21}) {
          Mover object = c.object;
          object.id = id;
          Clip clip({object});
          clip.width = 120;
          clip.height = 80;
          clip.frames(22).found_each(step);
          clip.cut_off = cut_off;
          const GstClockTime gap = static_cast<guint>(step) * kFrame;
          clip.check_covered(times(gap - gap / 3, gap / 3), std::string(c.about) + ", cut off " +
                                                                std::to_string(cut_off) + " pixels before, each " +
                                                                std::to_string(step) + " frames");
        }
}
GST_END_TEST;

GST_START_TEST(objects_move_by_time) {
  Random random = seeded();
  for (int run = 0; run < 40; run++) {
    Clip clip({{10, 8, 20, 18, 3.0 + run % 9, 0.3, 0.1, 0.2, run % 2}});
    GstClockTime time = 0, longest = 0, last = 0;
    std::vector<bool> found;
    for (int i = 0; i < 41; i++, time += GST_MSECOND * (5 + random() % 55) + random() % 1000) {
      clip.times.push_back(time);
      found.push_back(i % 40 == 0 || random() % 5 == 0);
      if (!found.back()) continue;
      longest = std::max(longest, time - last);
      last = time;
    }
    clip.is_found = [&](int i, size_t) { return found[static_cast<size_t>(i)]; };
    clip.check_covered(times(longest / 3, longest - longest / 3), "irregular, run " + std::to_string(run));
  }
  for (const int step : {4, 6, 7})  // pairs of fields at one time, or fields half a frame apart
    for (const bool apart : {false, true}) {
      Clip clip({{10, 8, 20, 20, 6, 0.5, 0, 0, step % 2}});
      for (int i = 0; i < 8 * step + 1; i++)
        clip.times.push_back(apart ? static_cast<guint>(i) * kFrame / 2 : static_cast<guint>(i / 2) * kFrame);
      clip.found_each(step);
      const GstClockTime gap = (static_cast<guint>(step) / 2 + 1) * kFrame;
      clip.check_covered(times(gap / 2, gap - gap / 2), "fields, each of " + std::to_string(step), true);
    }
}
GST_END_TEST;

// The ellipse inscribed in an object is covered by the one in the region.
GST_START_TEST(ellipses_move_too) {
  RoiHistory history;
  history.set_picture({{400, 300}, {400, 300}, {}});
  const RoiTimes all = {10, 10, 10};
  RoiList list;
  list.add({7, 3, 31, 17}, {"face"}, 5);
  history.add(list, 0, {}, all);
  list.region[0].region = {58, 22, 13, 40};
  history.add(list, 7, {}, all);
  for (int t = 1; t < 7; t++) {
    const RoiList found = history.in_force(t, all, {});
    fail_unless_equals_int(found.region.size(), 1);
    fail_unless(found.region[0].cover == Cover::Moved && found.region[0].id == 5);
    const Region r = for_ellipse(found.region[0]);
    fail_unless(for_invert(found.region[0], false).width == 0);  // whether it is there is not known
    const double part = t / 7.0, w = 31 - 18 * part, h = 17 + 23 * part, x = 7 + 51 * part + w / 2,
                 y = 3 + 19 * part + h / 2;
    for (int i = 0; i < 360; i++) {
      const double px = x + w / 2 * std::cos(i * G_PI / 180), py = y + h / 2 * std::sin(i * G_PI / 180);
      const double dx = (px - r.x - r.width / 2.0) / (r.width / 2.0),
                   dy = (py - r.y - r.height / 2.0) / (r.height / 2.0);
      fail_unless(dx * dx + dy * dy <= 1.0001, "%d of 7, %d degrees", t, i);
    }
  }
}
GST_END_TEST;

// A turned rectangle is in the one that moves, also while it turns. Masks do not move.
GST_START_TEST(turned_rectangles_and_masks) {
  const RoiTimes all = {10, 10, 10};
  for (const double turn : {0.0, 0.4, 1.5}) {
    RoiHistory history;
    history.set_picture({{400, 300}, {400, 300}, {}});
    const Region from = {40, 50, 60, 12, 0.3}, to = {140, 90, 20, 30, 0.3 + turn};
    RoiList list;
    list.add(from, {"face"}, 5);
    auto mask = std::make_shared<cudaconv::gst::RoiMask>();
    mask->mask = {{0, 0, 2, 1}, 2, 1, {1, 1}};
    list.mask.push_back(mask);
    history.add(list, 0, {}, all);
    list.region[0].region = to;
    list.mask.clear();
    history.add(list, 8, {}, all);
    for (int t = 1; t < 8; t++) {
      const RoiList found = history.in_force(t, all, {});
      fail_unless(found.region.size() == 1 && found.mask.size() == 1 && found.mask[0] == mask);
      const Region r = found.region[0].region;
      const double part = t / 8.0, angle = from.rotation + turn * part;
      const double w = 60 - 40 * part, h = 12 + 18 * part, x = 70 + 80 * part, y = 56 + 49 * part;
      for (const int i : {-1, 1})
        for (const int j : {-1, 1}) {
          const double px = x + (i * w * std::cos(angle) - j * h * std::sin(angle)) / 2;
          const double py = y + (i * w * std::sin(angle) + j * h * std::cos(angle)) / 2;
          fail_unless(px >= r.x - 1e-6 && py >= r.y - 1e-6 && px <= r.x + r.width + 1e-6 &&
                      py <= r.y + r.height + 1e-6);
        }
    }
  }
}
GST_END_TEST;

// ---- Several objects ------------------------------------------------------------------------------------------------

// Two objects of a type cross. Without ids they have to be found twice before.
GST_START_TEST(objects_that_cross) {
  for (int step = 2; step <= 10; step++)
    for (int speed = 1; speed <= 20; speed++)
      for (const int ids : {0, 1}) {
        const double start = 10, end = start + speed * step * 5.5 + 7 * ids;
        Clip clip({{start, 10, 24, 20, 1.0 * speed, 0.2, 0, 0, 3 * ids},
                   {end, 18, 22, 20, -1.0 * speed, 0, 0.1, 0, 4 * ids}});
        clip.width = 1200;
        clip.frames(6 * step + 1).found_each(step);
        const GstClockTime gap = static_cast<guint>(step) * kFrame;
        clip.check_covered(times(gap / 2, gap - gap / 2), std::to_string(speed) + " pixels, each of " +
                                                              std::to_string(step) + ", ids " + std::to_string(ids));
      }
}
GST_END_TEST;

// A detector misses one of two objects every other time, and the other one never.
GST_START_TEST(an_object_is_lost_for_a_while) {
  for (int step = 2; step <= 5; step++)
    for (int speed = 1; speed <= 20; speed++)
      for (const int ids : {0, 1}) {
        Clip clip({{10, 4, 20, 14, 1.0 * speed, 0, 0, 0, 3 * ids}, {40, 60, 20, 14, 0.8 * speed, 0, 0.1, 0, 4 * ids}});
        clip.height = 90;
        clip.frames(6 * step + 1);
        clip.is_found = [&](int i, size_t object) { return i % (object ? step : 2 * step) == 0; };
        const GstClockTime gap = 2 * static_cast<guint>(step) * kFrame;
        clip.check_covered(times(gap / 2, gap - gap / 2), std::to_string(speed) + " pixels, each of " +
                                                              std::to_string(step) + ", ids " + std::to_string(ids));
      }
}
GST_END_TEST;

// A detector misses an object where it finds a new one. Ids tell them apart.
GST_START_TEST(a_new_object_takes_no_others_place) {
  const auto regions = regions_of(times(3 * kFrame, 3 * kFrame) + " interpolate=true", 7, [](int i, GstBuffer *frame) {
    if (i == 0 || i == 6) add_roi(frame, {10 * i, 8, 20, 10}, "face", 3);
    if (i == 2 || i == 4) add_roi(frame, {100, 50, 20, 10}, "face", 4);
  });
  for (int i = 1; i < 6; i++) {
    const std::string &all = regions[static_cast<size_t>(i)];
    fail_unless(all.find(std::to_string(10 * i) + ",8,20,10 of 3") != std::string::npos, "%d: %s", i, all.c_str());
  }
}
GST_END_TEST;

// Two that were found as one go apart. Both are covered on their way from the one rectangle.
GST_START_TEST(an_object_splits) {
  for (const int ids : {0, 1})
    for (int speed = 1; speed <= 20; speed++) {
      const auto regions =
          regions_of(times(5 * kFrame, 5 * kFrame) + " interpolate=true", 11, [&](int i, GstBuffer *frame) {
            if (i == 5) add_roi(frame, {70, 20, 60, 30}, "face", 3 * ids);
            if (i == 10) add_roi(frame, {70 - 3 * speed, 20, 30, 30}, "face", 3 * ids);
            if (i == 10) add_roi(frame, {100 + 3 * speed, 20, 30, 30}, "face", 4 * ids);
          });
      for (int i = 6; i < 10; i++) {
        int left = 200, right = 0;
        const char *text = regions[static_cast<size_t>(i)].c_str();
        for (int x, w; sscanf(text, "%d,%*d,%d", &x, &w) == 2; text = strchr(text, ';') + 2) {
          left = std::min(left, x);
          right = std::max(right, x + w);
          if (!strchr(text, ';')) break;
        }
        const double part = (i - 5) / 5.0;
        fail_unless(left <= 70 - 3 * speed * part && right >= 130 + 3 * speed * part, "%d: %s", i,
                    regions[static_cast<size_t>(i)].c_str());
      }
    }
}
GST_END_TEST;

// ---- What takes the place of held regions ---------------------------------------------------------------------------

// With an id an object is in one place. Hold counts from its last detection, and lookahead from its first.
GST_START_TEST(with_an_id_an_object_is_in_one_place) {
  const auto mark = [](int id) {
    return [id](int i, GstBuffer *frame) {
      if (i == 4 || i == 8) add_roi(frame, {(i - 4) * 10, 8, 20, 10}, "face", id);
    };
  };
  const std::string settings = times(2 * kFrame, 2 * kFrame);
  const std::vector<std::string> with = regions_of(settings + " interpolate=true", 12, mark(6)),
                                 guessed = regions_of(settings + " interpolate=true", 12, mark(0)),
                                 without = regions_of(settings, 12, mark(6));
  const char *const moved[] = {"",
                               "",
                               "0,8,20,10 of 6",
                               "0,8,20,10 of 6",
                               "0,8,20,10 of 6",
                               "10,8,20,10 of 6",
                               "20,8,20,10 of 6",
                               "30,8,20,10 of 6",
                               "40,8,20,10 of 6",
                               "40,8,20,10 of 6",
                               "40,8,20,10 of 6",
                               ""};
  for (size_t i = 0; i < 12; i++) assert_same_text(with[i], moved[i]);
  // Without one the regions that are held stay.
  assert_same_text(guessed[5], "0,8,20,10; 10,8,20,10");
  assert_same_text(guessed[6], "0,8,20,10; 20,8,20,10; 40,8,20,10");
  assert_same_text(guessed[7], "30,8,20,10; 40,8,20,10");
  assert_same_text(without[6], "0,8,20,10 of 6; 40,8,20,10 of 6");
  // Playing backwards, too.
  const std::vector<std::string> back = regions_of(settings + " interpolate=true", 12, mark(6), -1);
  for (size_t i = 0; i < 12; i++) assert_same_text(back[i], moved[i]);
  // Farther apart, objects do not move.
  const std::string shorter = times(2 * kFrame, 2 * kFrame - 1);
  const std::vector<std::string> far = regions_of(shorter + " interpolate=true", 12, mark(6)),
                                 held = regions_of(shorter, 12, mark(6));
  for (size_t i = 0; i < 12; i++) assert_same_text(far[i], held[i]);
}
GST_END_TEST;

// Some trackers give what they have lost the id -1. All objects with it are no single object.
GST_START_TEST(a_negative_id_is_none) {
  const auto mark = [](int id) {
    return [id](int i, GstBuffer *frame) {
      if (i == 4 || i == 8) add_roi(frame, {(i - 4) * 30, (i - 4) * 10, 20, 10}, "face", id);
    };
  };
  const std::string settings = times(2 * kFrame, 2 * kFrame) + " interpolate=true";
  const std::vector<std::string> with = regions_of(settings, 12, mark(-1)), without = regions_of(settings, 12, mark(0));
  for (const size_t i : {5, 6, 7}) assert_same_text(with[i], without[i]);
  fail_unless(with[5].find("0,0,20,10") == 0, "%s", with[5].c_str());
}
GST_END_TEST;

// Nor where two detections without ids overlap each other and nothing else. A third one makes it a guess.
GST_START_TEST(without_ids_an_object_that_overlaps_itself_is_in_one_place) {
  for (const bool third : {false, true}) {
    const std::vector<std::string> moved =
        regions_of(times(2 * kFrame, 2 * kFrame) + " interpolate=true", 12, [&](int i, GstBuffer *frame) {
          if (i == 4 || i == 8) add_roi(frame, {(i - 4) * 4, 8, 20, 10}, "face", 0);
          if (third && i == 8) add_roi(frame, {8, 12, 20, 10}, "face", 0);
        });
    assert_same_text(moved[4], "0,8,20,10");
    const std::string expected[] = {"4,8,20,10", "8,8,20,10", "12,8,20,10"};
    for (size_t i = 0; i < 3; i++) {
      if (third)
        fail_unless(moved[5 + i].find(expected[i]) != std::string::npos, "%s", moved[5 + i].c_str());
      else
        assert_same_text(moved[5 + i], expected[i]);
    }
    if (third) fail_unless(moved[5].rfind("0,8,20,10; ", 0) == 0, "%s", moved[5].c_str());
  }
}
GST_END_TEST;

// A detector may give one rectangle two types. Where it finds only one of them again, the other one is held.
GST_START_TEST(a_rectangle_of_two_types_is_held_for_the_type_that_is_lost) {
  for (const int both : {4, 8})
    for (const int id : {0, 6}) {
      const std::vector<std::string> found =
          regions_of(times(2 * kFrame, 2 * kFrame) + " interpolate=true", 12, [&](int i, GstBuffer *frame) {
            if (i != 4 && i != 8) return;
            add_roi(frame, {(i - 4) * 4, 8, 20, 10}, "face", id);
            if (i == both) add_roi(frame, {(i - 4) * 4, 8, 20, 10}, "plate", id);
          });
      const std::string place = std::to_string((both - 4) * 4) + ",8,20,10";
      for (const int i : {5, 6, 7}) {
        const bool is_held = std::abs(i - both) <= 2,
                   has = found[static_cast<size_t>(i)].find(place) == 0 ||
                         found[static_cast<size_t>(i)].find("; " + place) != std::string::npos;
        fail_unless(has == is_held, "%d, both at %d, id %d: %s", i, both, id, found[static_cast<size_t>(i)].c_str());
      }
    }
  // Both fields of a frame may have one time and equal detections: all of them are of the object that has moved.
  const RoiTimes all = {10, 10, 10};
  RoiHistory history;
  history.set_picture({{400, 300}, {400, 300}, {}});
  for (const int64_t time : {0, 0, 8}) {
    RoiList list;
    list.add({time ? 8 : 0, 3, 31, 17}, {"face"}, 5);
    history.add(list, time, {}, all);
  }
  fail_unless_equals_int(history.in_force(4, all, {}).region.size(), 1);
}
GST_END_TEST;

// Where nothing is certain, each pixel that is hidden without interpolate is hidden with it. Detections come and go at
// random, and each has another id.
GST_START_TEST(guesses_hide_no_less) {
  Random random = seeded();
  const GstVideoInfo info = video_info("GRAY8", 96, 64);
  int less = 0, more = 0;
  for (int run = 0; run < 60; run++) {
    std::vector<std::vector<std::pair<Region, int>>> found;
    int next = 1;
    for (int i = 0; i < 40; i++) {
      found.emplace_back();
      for (unsigned j = random() % 3 ? 0 : random() % 4; j > 0; j--) {
        const auto side = [&] { return static_cast<int>(4 + random() % 20); };
        found.back().push_back(
            {{static_cast<int>(random() % 90), static_cast<int>(random() % 60), side(), side()}, next++});
      }
    }
    std::vector<std::vector<guint8>> frames[2];
    const std::string settings = times((random() % 6) * kFrame, (1 + random() % 6) * kFrame);
    for (const bool interpolate : {false, true}) {
      Harness h("mask=fill roi-meta=true " + settings + (interpolate ? " interpolate=true" : ""), info);
      for (size_t i = 0; i < found.size(); i++) {
        Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
        gst_buffer_memset(frame.get(), 0, 255, static_cast<gsize>(-1));
        GST_BUFFER_PTS(frame.get()) = i * kFrame;
        for (const auto &[region, id] : found[i]) add_roi(frame.get(), region, random() % 2 ? "face" : "dog", id);
        fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
      }
      push_event(h, gst_event_new_eos());
      for (size_t i = 0; i < found.size(); i++) {
        const Ref<GstBuffer> out = h.pull();
        std::vector<guint8> pixels(GST_VIDEO_INFO_SIZE(&info));
        gst_buffer_extract(out.get(), 0, pixels.data(), pixels.size());
        frames[interpolate].push_back(std::move(pixels));
      }
    }
    for (size_t i = 0; i < found.size(); i++)
      for (size_t k = 0; k < frames[0][i].size(); k++) {
        less += frames[0][i][k] == 0 && frames[1][i][k] != 0;
        more += frames[0][i][k] != 0 && frames[1][i][k] == 0;
      }
    fail_unless(less == 0, "run %d: %d pixels", run, less);
  }
  fail_unless(more > 0);
}
GST_END_TEST;

// Some detectors number the detections of each frame, so that ids of two objects change places.
GST_START_TEST(ids_that_number_the_detections_of_a_frame) {
  for (int step = 2; step <= 10; step++) {
    const auto regions = regions_of(times(0, static_cast<guint>(step) * kFrame) + " interpolate=true", 2 * step + 1,
                                    [&](int i, GstBuffer *frame) {
                                      if (i % step) return;
                                      const bool swaps = i / step % 2;
                                      add_roi(frame, {10 + 4 * i, 4, 24, 14}, "face", swaps ? 2 : 1);
                                      add_roi(frame, {10 + 4 * i, 60, 24, 14}, "face", swaps ? 1 : 2);
                                    });
    for (int i = 0; i <= 2 * step; i++)
      for (const char *y : {",4,24,14", ",60,24,14"})
        fail_unless(regions[static_cast<size_t>(i)].find(std::to_string(10 + 4 * i) + y) != std::string::npos, "%d: %s",
                    i, regions[static_cast<size_t>(i)].c_str());
  }
}
GST_END_TEST;

// ---- Times and settings ---------------------------------------------------------------------------------------------

// Nothing moves where time steps back, or over a gap of time. What was held then stays so.
GST_START_TEST(nothing_moves_where_time_jumps) {
  for (const bool interpolate : {false, true}) {
    Harness h("mask=fill roi-meta=true " + times(4 * kFrame, 4 * kFrame) + (interpolate ? " interpolate=true" : ""),
              video_info("GRAY8", 96, 64));
    const int numbers[] = {100, 101, 102, 98, 99, 100, 101, 102, 300, 301, 302, 303, 304};
    for (size_t i = 0; i < std::size(numbers); i++) {
      Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, 96 * 64, nullptr));
      gst_buffer_memset(frame.get(), 0, 255, static_cast<gsize>(-1));
      GST_BUFFER_PTS(frame.get()) = static_cast<guint>(numbers[i]) * kFrame;
      if (i == 1) add_roi(frame.get(), {0, 0, 10, 10}, "face", 5);
      if (i == 3) add_roi(frame.get(), {60, 30, 10, 10}, "face", 5);
      if (i == 9) add_roi(frame.get(), {30, 30, 10, 10}, "face", 5);
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    for (size_t i = 0; i < std::size(numbers); i++) {
      const Ref<GstBuffer> out = h.pull();
      const auto hidden = [&](int x, int y) {
        guint8 value;
        gst_buffer_extract(out.get(), static_cast<gsize>(y) * 96 + x, &value, 1);
        return value == 0;
      };
      fail_unless_equals_int(hidden(5, 5), i < 8);
      fail_unless_equals_int(hidden(65, 35), i < 8);
      fail_unless_equals_int(hidden(35, 35), i >= 8);
      fail_unless(!hidden(20, 15) && !hidden(50, 28));
    }
  }
}
GST_END_TEST;

// Frames wait for the next detection of what they show: for hold and lookahead.
GST_START_TEST(both_times_are_latency) {
  Harness h("roi-meta=true mask=fill " + times(3 * kFrame, 2 * kFrame), video_info("GRAY8", 96, 64));
  const auto latency = [&] { return gst_harness_query_latency(h.get()) / kFrame; };
  fail_unless_equals_uint64(latency(), 2);
  h.set("interpolate=true");
  fail_unless_equals_uint64(latency(), 5);
  h.set("interpolate=true lookahead=0");
  fail_unless_equals_uint64(latency(), 3);
  h.set("hold=0");
  fail_unless_equals_uint64(latency(), 0);
  take_messages(h.element(), GST_MESSAGE_ANY);
}
GST_END_TEST;

// Turned on, it counts for the frames that wait. Turned off, regions are held again.
GST_START_TEST(it_changes_while_frames_wait) {
  for (const bool on : {true, false}) {
    Harness h("mask=fill roi-meta=true " + times(3 * kFrame, 6 * kFrame) + (on ? "" : " interpolate=true"),
              video_info("GRAY8", 96, 64));
    for (int i = 0; i < 6; i++) {
      Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, 96 * 64, nullptr));
      gst_buffer_memset(frame.get(), 0, 255, static_cast<gsize>(-1));
      GST_BUFFER_PTS(frame.get()) = static_cast<guint>(i) * kFrame;
      if (i % 4 == 0) add_roi(frame.get(), {10 * i, 20, 10, 10}, "face", 5);
      if (i == 3) h.set(on ? "types=face interpolate=true" : "interpolate=false");
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 6; i++) {
      const Ref<GstBuffer> out = h.pull();
      guint8 value[3];
      for (int k = 0; k < 3; k++) gst_buffer_extract(out.get(), static_cast<gsize>(25) * 96 + 5 + 20 * k, &value[k], 1);
      if (i == 2) fail_unless((value[0] == 0) != on && (value[1] == 0) == on && (value[2] == 0) != on);
    }
  }
}
GST_END_TEST;

// More objects in a frame than are matched are held as without it, in little time.
GST_START_TEST(a_crowd_is_held) {
  for (const int count : {200, 3000}) {
    RoiHistory history;
    history.set_picture({{4000, 3000}, {4000, 3000}, {}});
    const RoiTimes all = {10, 10, 20};
    for (int t = 0; t < 20; t += 4) {
      RoiList list;
      for (int i = 0; i < count; i++) list.add({i % 60 * 60 + t, i / 60 * 50, 30, 30}, {"face"}, i + 1);
      history.add(list, t, {}, all);
    }
    const RoiList found = history.in_force(6, all, {});
    if (count == 200) fail_unless_equals_int(found.region.size(), 200);
    for (int i = 0; i < count; i++) {
      const auto covers = [&](int x, int y) {
        return std::any_of(found.region.begin(), found.region.end(), [&](const auto &one) {
          const Region &r = one.region;
          return r.x <= x && r.y <= y && r.x + r.width >= x + 30 && r.y + r.height >= y + 30;
        });
      };
      fail_unless(covers(i % 60 * 60 + (count == 200 ? 6 : 4), i / 60 * 50), "%d of %d", i, count);
    }
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("interpolate");
  TCase *tc = tcase_create("interpolate");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, an_object_in_linear_motion_is_covered);
  tcase_add_test(tc, objects_at_the_edges_of_the_picture_are_covered);
  tcase_add_test(tc, objects_move_by_time);
  tcase_add_test(tc, ellipses_move_too);
  tcase_add_test(tc, turned_rectangles_and_masks);
  tcase_add_test(tc, objects_that_cross);
  tcase_add_test(tc, an_object_is_lost_for_a_while);
  tcase_add_test(tc, a_new_object_takes_no_others_place);
  tcase_add_test(tc, an_object_splits);
  tcase_add_test(tc, with_an_id_an_object_is_in_one_place);
  tcase_add_test(tc, a_negative_id_is_none);
  tcase_add_test(tc, without_ids_an_object_that_overlaps_itself_is_in_one_place);
  tcase_add_test(tc, a_rectangle_of_two_types_is_held_for_the_type_that_is_lost);
  tcase_add_test(tc, guesses_hide_no_less);
  tcase_add_test(tc, ids_that_number_the_detections_of_a_frame);
  tcase_add_test(tc, nothing_moves_where_time_jumps);
  tcase_add_test(tc, both_times_are_latency);
  tcase_add_test(tc, it_changes_while_frames_wait);
  tcase_add_test(tc, a_crowd_is_held);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "interpolate", make_suite, false);
}
