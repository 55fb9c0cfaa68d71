// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests regions of interest: inside, a frame has the bytes of a filter without regions; outside, the bytes of its
// source.
#include <algorithm>
#include <cstring>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

void check_settings(const GstVideoInfo &info, const std::string &filter, const std::string &roi,
                    const Selection &selection) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h(filter + " " + roi, info);
  check_frame(h, in.get(), info, filter, selection);
}

const char *const kFormats[] = {"GRAY8", "I420", "NV12", "Y42B", "YUY2", "RGBA", "I420_10LE", "Y41B"};

}  // namespace

GST_START_TEST(only_the_rectangles_are_filtered) {
  const struct {
    const char *roi;
    std::vector<Region> region;
  } cases[] = {
      {"roi='8,6,16,10'", {{8, 6, 16, 10}}},
      {"roi='7,5,3,3'", {{7, 5, 3, 3}}},  // odd: the rectangle is rounded outwards in chroma
      {"roi='1 1 1 1; 20,3,30,9; 25,4,11,30'", {{1, 1, 1, 1}, {20, 3, 30, 9}, {25, 4, 11, 30}}},
      {"roi='-5,-7,12,11; 40,20,1000,1000'", {{-5, -7, 12, 11}, {40, 20, 1000, 1000}}},
      {"roi='-9,0,9,9; 0,900,5,5; 53,0,1,1; 8,6,16,10'", {{8, 6, 16, 10}}},
      {"roi='0,0,53,37'", {{0, 0, 53, 37}}},
  };
  for (const char *format : kFormats)
    for (const char *filter : {"mask=gauss5", "mask=sobel", "mask=open size=5", "mask=box5 border=keep"})
      for (const auto &c : cases) check_settings(video_info(format, 53, 37), filter, c.roi, {c.region});
}
GST_END_TEST;

// The GPU adds up only the columns of the frame that the region's windows reach.
GST_START_TEST(a_region_of_a_wide_frame_has_the_means_of_large_windows) {
  check_settings(video_info("NV12", 552, 12), "mask=box size=115", "roi='463,0,45,1'", {{{463, 0, 45, 1}}});
}
GST_END_TEST;

// A chroma sample is filtered if any of its pixels is, at any position of regions, and also with roi-invert.
GST_START_TEST(chroma_shows_nothing_of_a_region) {
  Random random = seeded();
  const auto within = [&](int from, int to) { return from + static_cast<int>(random() % (to - from + 1)); };
  for (const char *format : {"I420", "NV12", "Y42B", "YUY2", "Y41B", "YUV9", "I420_10LE", "AYUV"})
    for (const bool invert : {false, true})
      for (const bool ellipse : {false, true})
        for (int turn = 0; turn < 6; turn++) {
          Selection selection = {{}, ellipse, invert, {}};
          std::string roi;
          // Two regions may share a sample's pixels.
          for (int i = 0; i < 1 + turn * 4; i++) {
            const Region r = {within(-3, 40), within(-3, 32), within(1, turn % 2 ? 3 : 20),
                              within(1, turn % 3 ? 4 : 20)};
            selection.region.push_back(r);
            roi += std::to_string(r.x) + "," + std::to_string(r.y) + "," + std::to_string(r.width) + "," +
                   std::to_string(r.height) + ";";
          }
          check_settings(
              video_info(format, 41, 33), "mask=dilate",
              "roi='" + roi + "'" + (invert ? " roi-invert=true" : "") + (ellipse ? " roi-shape=ellipse" : ""),
              selection);
        }
}
GST_END_TEST;

GST_START_TEST(polygons_have_the_pixels_whose_centre_is_inside) {
  const struct {
    const char *roi;
    Selection selection;
  } cases[] = {
      {"roi='4,3 50,6 20,31'", {{}, false, false, {{{4, 3}, {50, 6}, {20, 31}}}}},
      // A star, whose middle is outside by the even-odd rule. Its points have different separators.
      {"roi='10 0 20,30 0,10,25,10 2,30'", {{}, false, false, {{{10, 0}, {20, 30}, {0, 10}, {25, 10}, {2, 30}}}}},
      {"roi='-20,-9 90.5,12 30,200.25; 1,1,6,5' roi-shape=ellipse",
       {{{1, 1, 6, 5}}, true, false, {{{-20, -9}, {90.5, 12}, {30, 200.25}}}}},
      {"roi='5,5 45,5 45,30 5,30; 10,8 40,8 40,28 10,28' roi-invert=true",
       {{}, false, true, {{{5, 5}, {45, 5}, {45, 30}, {5, 30}}, {{10, 8}, {40, 8}, {40, 28}, {10, 28}}}}},
  };
  for (const char *format : kFormats)
    for (const auto &c : cases) check_settings(video_info(format, 53, 37), "mask=gauss5", c.roi, c.selection);
}
GST_END_TEST;

// Rectangles include every pixel that they touch.
GST_START_TEST(percentages_are_fractions_of_the_picture) {
  for (const char *format : kFormats) {
    check_settings(video_info(format, 64, 48), "mask=gauss5", "roi='25%,25%,50%,50%'", {{{16, 12, 32, 24}}});
    check_settings(video_info(format, 53, 37), "mask=gauss5", "roi='0,0,20%,100%; 90%,5,20%,2; 10,10,50%,2.5'",
                   {{{0, 0, 11, 37}, {47, 5, 6, 2}, {10, 10, 27, 3}}});
    check_settings(video_info(format, 1000, 8), "mask=gauss5", "roi='33.3%,0,33.4%,12.5%'", {{{333, 0, 334, 1}}});
    check_settings(video_info(format, 53, 37), "mask=gauss5", "roi='0,0 100%,50% 20%,100%'",
                   {{}, false, false, {{{0, 0}, {53, 18.5}, {10.6, 37}}}});
  }
  // Percentages follow the picture's size.
  Random random = seeded();
  Harness h("mask=gauss5 roi='0,50%,50%,50%'", video_info("I420", 40, 20));
  for (const int scale : {1, 2, 3}) {
    const GstVideoInfo info = video_info("I420", 40 * scale, 20 * scale);
    h.set_caps(info);
    const Ref<GstBuffer> in = random_frame(info, random);
    check_frame(h, in.get(), info, "mask=gauss5", {{{0, 10 * scale, 20 * scale, 10 * scale}}});
  }
  // For a field, the picture is the whole frame.
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_INTERLACE_MODE_ALTERNATE, 53, 40);
  Harness fields("mask=gauss5 roi='0,25%,100%,50%; 10,80% 40,80% 40,100% 10,100%'", info);
  const Ref<GstBuffer> in = random_frame(info, random);
  GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD);
  check_frame(fields, in.get(), info, "mask=gauss5", {{{0, 5, 53, 10}, {10, 16, 30, 4}}});
}
GST_END_TEST;

// A polygon grows by each of its pixels, so it keeps all pixels that it had.
GST_START_TEST(polygons_grow_and_scale_like_rectangles) {
  const GstVideoInfo info = video_info("GRAY8", 90, 70);
  check_settings(info, "mask=gauss5", "roi='20,20 40,20 40,30 20,30' roi-grow=0.5", {{{10, 15, 40, 20}}});
  // An angle. The middle of its box is outside.
  check_settings(info, "mask=gauss5", "roi='10,10 50,10 50,14 14,14 14,50 10,50' roi-grow=0.1",
                 {{{6, 6, 48, 12}, {6, 6, 12, 48}}});
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness polygon("mask=mosaic roi='8,6 56,6 56,46 8,46' roi-scale=0.25", info);
  Harness rectangle("mask=mosaic roi='8,6,48,40' roi-scale=0.25", info);
  fail_unless(same_samples(polygon.filter(in.get()).get(), rectangle.filter(in.get()).get(), info));
}
GST_END_TEST;

GST_START_TEST(an_ellipse_is_inscribed_in_its_rectangle) {
  const std::vector<Region> region = {{4, 2, 21, 30}, {30, -6, 40, 18}, {2, 34, 1, 1}};
  for (const char *format : kFormats)
    check_settings(video_info(format, 53, 37), "mask=median",
                   "roi='4,2,21,30; 30,-6,40,18; 2,34,1,1' roi-shape=ellipse", {region, true});
}
GST_END_TEST;

GST_START_TEST(the_blocks_of_a_mosaic_begin_with_the_regions) {
  constexpr int kSize = 8;
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=mosaic size=8 roi='4,3,20,11; 30,20,99,9'", info);
  const Ref<GstBuffer> out = h.filter(in.get());
  const FrameBytes source(in.get(), info), got(out.get(), info);
  const auto sample = [](const FrameBytes &frame, int x, int y) {
    return frame.view.plane[0].data[y * frame.view.plane[0].pitch + x];
  };
  for (const Region &r : {Region{4, 3, 20, 11}, Region{30, 20, 23, 9}})
    for (int y = r.y; y < r.y + r.height; y++)
      for (int x = r.x; x < r.x + r.width; x++) {
        const int x0 = x - (x - r.x) % kSize, y0 = y - (y - r.y) % kSize;
        int sum = 0, n = 0;
        for (int j = y0; j < std::min(y0 + kSize, r.y + r.height); j++)
          for (int i = x0; i < std::min(x0 + kSize, r.x + r.width); i++, n++) sum += sample(source, i, j);
        fail_unless_equals_int(sample(got, x, y), (sum + n / 2) / n);
      }
}
GST_END_TEST;

GST_START_TEST(everything_but_the_regions_is_filtered) {
  const std::vector<Region> region = {{4, 3, 20, 11}, {11, 9, 25, 17}};
  for (const char *format : kFormats) {
    const GstVideoInfo info = video_info(format, 53, 37);
    for (const bool ellipse : {false, true})
      check_settings(info, "mask=dilate",
                     std::string("roi='4,3,20,11; 11,9,25,17' roi-invert=true") + (ellipse ? " roi-shape=ellipse" : ""),
                     {region, ellipse, true});
    check_settings(info, "mask=dilate", "roi='900,0,1,1' roi-invert=true", {{}, false, true});
  }
}
GST_END_TEST;

GST_START_TEST(without_regions_all_or_nothing_is_filtered) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  const Selection everything = {{{0, 0, 53, 37}}};
  check_settings(info, "mask=gauss5", "", everything);
  check_settings(info, "mask=gauss5", "roi-meta=true", {});
  check_settings(info, "mask=gauss5", "roi-meta=true roi-invert=true", everything);
}
GST_END_TEST;

GST_START_TEST(regions_of_interlaced_frames_count_rows_of_the_frame) {
  for (const char *format : {"GRAY8", "Y42B", "RGBA"}) {
    GstVideoInfo info;
    gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format),
                                         GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 53, 37);
    check_settings(info, "mask=gauss5", "roi='7,5,9,8; 30,12,4,1; 40,3,5,90'",
                   {{{7, 5, 9, 8}, {30, 12, 4, 1}, {40, 3, 5, 90}}});
  }
}
GST_END_TEST;

GST_START_TEST(regions_of_single_fields_count_rows_of_the_frame) {
  for (const char *format : {"GRAY8", "I420"}) {
    GstVideoInfo info;
    gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format),
                                         GST_VIDEO_INTERLACE_MODE_ALTERNATE, 53, 41);
    Random random = seeded();
    Harness h("mask=gauss5 roi='7,5,9,8; 30,12,4,1; 40,-3,5,8; 50,8,2,2147483647; 20,40,4,1; 26,41,4,1' roi-meta=true",
              info);
    for (const bool bottom : {false, true}) {
      const Ref<GstBuffer> in = random_frame(info, random);
      GST_BUFFER_FLAG_SET(in.get(), bottom ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
      add_roi(in.get(), "face", 0, 31, 3, 1);
      // Rows 5 to 12 of the frame are rows 3 to 6 of the top field and 2 to 5 of the bottom one; row 12 is 6 of the top
      // one. Both fields of 41 rows have 21 rows: row 41 is the last one of the bottom field.
      const Selection top = {{{7, 3, 9, 4}, {30, 6, 4, 1}, {40, 0, 5, 3}, {50, 4, 2, 17}, {20, 20, 4, 1}}};
      const Selection low = {{{7, 2, 9, 4}, {40, 0, 5, 2}, {0, 15, 3, 1}, {50, 4, 2, 17}, {26, 20, 4, 1}}};
      check_frame(h, in.get(), info, "mask=gauss5", bottom ? low : top);
    }
    // So a region of row 41 alone is not outside the picture.
    Harness last("mask=gauss5 roi='0,41,53,1'", info);
    last.filter(random_frame(info, random).get());
    fail_unless(last.take(GST_MESSAGE_WARNING).empty());
  }
}
GST_END_TEST;

GST_START_TEST(metas_of_the_wanted_types_are_regions) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  Random random = seeded();
  Ref<GstBuffer> bare = random_frame(info, random), detected = random_frame(info, random);
  add_roi(detected.get(), "face", 3, 4, 11, 12);
  add_roi(detected.get(), "plate", 30, 4, 9, 6);
  add_roi(detected.get(), "Face", 20, 20, 5, 5);
  add_roi(detected.get(), "face", 44, 30, G_MAXUINT, G_MAXUINT);
  add_roi(detected.get(), "face", 15, 15, 0, 9);
  gst_buffer_add_video_region_of_interest_meta_id(detected.get(), 0, 0, 30, 4, 4);
  const Region face = {3, 4, 11, 12}, plate = {30, 4, 9, 6}, capital = {20, 20, 5, 5}, corner = {44, 30, 100, 100},
               nameless = {0, 30, 4, 4}, fixed = {40, 20, 6, 6};

  const std::string filter = "mask=gauss5";
  Harness h(filter + " roi-meta=true", info);
  check_frame(h, detected.get(), info, filter, {{face, plate, capital, corner, nameless}});
  check_frame(h, bare.get(), info, filter, {});
  h.set("roi-type=face");
  check_frame(h, detected.get(), info, filter, {{face, corner}});
  h.set("roi-type=' plate ,, Face'");
  check_frame(h, detected.get(), info, filter, {{plate, capital}});
  h.set("roi='40,20,6,6'");
  check_frame(h, detected.get(), info, filter, {{plate, capital, fixed}});
  check_frame(h, bare.get(), info, filter, {{fixed}});
  h.set("roi= roi-type=' , '");
  check_frame(h, detected.get(), info, filter, {{face, plate, capital, corner, nameless}});
  h.set("roi='40,20,6,6' roi-type=fac roi-invert=true");
  check_frame(h, detected.get(), info, filter, {{fixed}, false, true});
  h.set("roi-meta=false roi-type=face");
  check_frame(h, detected.get(), info, filter, {{fixed}, false, true});

  // All types except some, also with other types named.
  h.set("roi= roi-meta=true roi-invert=false roi-type='!face'");
  check_frame(h, detected.get(), info, filter, {{plate, capital, nameless}});
  check_frame(h, bare.get(), info, filter, {});
  h.set("roi-type='! plate, !Face,'");
  check_frame(h, detected.get(), info, filter, {{face, corner, nameless}});
  h.set("roi-type='face,plate,!plate'");
  check_frame(h, detected.get(), info, filter, {{face, corner}});
  h.set("roi-type='*,-face'");
  check_frame(h, detected.get(), info, filter, {{plate, capital, nameless}});
  h.set("roi-type='!'");
  check_frame(h, detected.get(), info, filter, {{face, plate, capital, corner, nameless}});

  const Ref<GstBuffer> out = h.filter(detected.get());
  fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), 6);
}
GST_END_TEST;

// How a sink shows the picture, and padding around it, are no matter of regions.
// If each meta looked at all others, this would take longer than a test may.
GST_START_TEST(very_many_metas_are_copied) {
  const GstVideoInfo info = video_info("GRAY8", 8, 8);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  constexpr guint kMetas = 200000;
  for (guint i = 0; i < kMetas; i++) add_roi(in.get(), "face", i % 8, 1, 2, 3);
  for (const char *before : {"", "roihold ! roihold ! "}) {
    Harness h(new_bin(std::string(before) + "cudaconv mask=gauss3 backend=" + test_backend()));
    h.set_caps(info);
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss3");
    fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), kMetas);
  }
}
GST_END_TEST;

GST_START_TEST(orientation_and_padding_do_not_move_regions) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  Random random = seeded();
  for (const bool padded : {false, true}) {
    for (const bool stereo : {false, true}) {
      const Ref<GstBuffer> in = padded ? random_frame(info, random, kScattered) : random_frame(info, random);
      add_roi(in.get(), "face", 6, 5, 11, 12);
      GstVideoAffineTransformationMeta *turned = gst_buffer_add_video_affine_transformation_meta(in.get());
      const gfloat flip[16] = {-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
      gst_video_affine_transformation_meta_apply_matrix(turned, flip);
      GstVideoInfo shown = info;
      shown.par_n = 2;
      if (stereo) {
        GST_VIDEO_INFO_MULTIVIEW_MODE(&shown) = GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE;
        GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW);
      }
      Harness h("mask=fill roi-meta=true", shown);
      push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_IMAGE_ORIENTATION, "rotate-90", nullptr)));
      check_frame(h, in.get(), info, "mask=fill", {{{6, 5, 11, 12}}});
      const Ref<GstBuffer> out = h.filter(in.get());
      fail_unless(gst_buffer_get_video_affine_transformation_meta(out.get()) != nullptr);
    }
  }
}
GST_END_TEST;

// Labels come from files of other systems, and are whole lines there.
GST_START_TEST(types_may_have_blanks_and_commas) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  add_roi(in.get(), "face\r", 3, 4, 11, 12);
  add_roi(in.get(), " \tcat, tabby ", 30, 4, 9, 6);
  const Region face = {3, 4, 11, 12}, cat = {30, 4, 9, 6};
  const std::string filter = "mask=gauss5";
  Harness h(filter + " roi-meta=true", info);
  const struct {
    const char *types;
    std::vector<Region> wanted;
  } cases[] = {{"face", {face}}, {"cat", {cat}},   {"tabby", {cat}},      {"'cat, tabby'", {cat}},
               {"dog", {}},      {"!face", {cat}}, {"!cat", {face, cat}}, {"'!cat,!tabby'", {face}}};
  for (const auto &c : cases) {
    h.set(std::string("roi-type=") + c.types);
    check_frame(h, in.get(), info, filter, {c.wanted});
  }
  const Ref<GstStructure> stats = h.stats();
  const GValue *types = gst_structure_get_value(stats.get(), "regions-by-type");
  guint64 faces = 0;
  fail_unless(gst_structure_get_uint64(gst_value_get_structure(types), "face", &faces) && faces == 3);
}
GST_END_TEST;

GST_START_TEST(regions_may_change_with_every_frame) {
  const GstVideoInfo info = video_info("NV12", 53, 37);
  Random random = seeded();
  const std::string filter = "mask=median";
  Harness h(filter, info);
  for (int i = 0; i < 20; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    const Region r = {2 * i, i, 10, 7};
    gchar *roi = g_strdup_printf("%d,%d,%d,%d", r.x, r.y, r.width, r.height);
    g_object_set(h.element(), "roi", roi, nullptr);
    check_frame(h, in.get(), info, filter, {{r}});
    g_free(roi);
  }
  const Ref<GstBuffer> in = random_frame(info, random);
  g_object_set(h.element(), "roi", nullptr, nullptr);
  check_frame(h, in.get(), info, filter, {{{0, 0, 53, 37}}});
}
GST_END_TEST;

GST_START_TEST(identity_is_passthrough_with_regions_too) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  Random random = seeded();
  Harness h("mask=identity roi='1,1,5,5' roi-meta=true", info);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  fail_unless(out.get() == in.get());
}
GST_END_TEST;

bool wants_metas(Harness &h, const GstVideoInfo &info) {
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  return gst_query_find_allocation_meta(query.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, nullptr);
}

// Upstream attaches metas only if it is asked for them, and asks again when a reconfigure event says that the answer
// may have changed.
GST_START_TEST(upstream_is_asked_for_metas) {
  const GstVideoInfo info = video_info("I420", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  fail_unless(wants_metas(*std::make_unique<Harness>("roi-meta=true", info), info));
  Harness h("roi='1,1,5,5'", info);
  fail_if(wants_metas(h, info));
  h.filter(in.get());
  const auto told_to_ask = [&] {
    bool told = false;
    while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) {
      told |= GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE;
      gst_event_unref(event);
    }
    return told;
  };
  told_to_ask();
  for (bool metas : {true, false}) {
    h.set(std::string("mask=box3 roi-meta=") + (metas ? "true" : "false"));
    h.filter(in.get());
    fail_unless(told_to_ask());
    fail_unless_equals_int(wants_metas(h, info), metas);
    h.set("mask=gauss5");
    h.filter(in.get());
    fail_if(told_to_ask());
  }
}
GST_END_TEST;

const struct {
  const char *roi, *text;
} kBad[] = {
    {"1,2,3", "roi: region 1 has 3 numbers; a rectangle is x,y,width,height, a polygon x,y of three points or more"},
    {"1,2,3,4; 1,2,3,4,5",
     "roi: region 2 has 5 numbers; a rectangle is x,y,width,height, a polygon x,y of three points or more"},
    {"1,2 3,4", "roi: region 1 has 2 points; a polygon has three or more"},
    {"1,2,3,4; 1,1 5,5 3,3", "roi: region 2: its points are on a line, which makes an empty region"},
    {"1,1 1,1 1,1", "roi: region 1: its points are on a line, which makes an empty region"},
    {"1,2,3,4; 5,6,0,8", "roi: region 2, number 3: width 0 makes an empty region"},
    {"1,2,3,-4", "roi: region 1, number 4: height -4 makes an empty region"},
    {"1,two,3,4", "roi: region 1, number 2: \"two\" is not a number"},
    {"1,2,%,4", "roi: region 1, number 3: \"%\" is not a number"},
    {"1,2,5%%,4", "roi: region 1, number 3: \"5%%\" is not a number"},
    {"1,,3,4", "roi: region 1, number 2: a number is missing"},
    {"1,2,3e9,4", "roi: region 1, number 3: 3000000000 is outside -2147483647 to 2147483647"},
    {" ", "roi: it has no region"},
    {";", "roi: region 1, number 1: a number is missing"},
};

GST_START_TEST(bad_rectangles_are_an_error_at_the_start) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  for (const auto &bad : kBad) {
    Harness h;
    g_object_set(h.element(), "roi", bad.roi, nullptr);
    GstCaps *caps = gst_video_info_to_caps(&info);
    gst_pad_push_event(h.get()->srcpad, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    const Report error = h.take_one(GST_MESSAGE_ERROR);
    fail_unless(error.domain == GST_LIBRARY_ERROR && error.code == GST_LIBRARY_ERROR_SETTINGS);
    fail_unless_equals_string(error.text.c_str(), bad.text);
  }
}
GST_END_TEST;

// An element that turns pictures sends caps twice before the first frame.
GST_START_TEST(caps_without_a_frame_warn_of_no_rectangle) {
  const GstVideoInfo lying = video_info("GRAY8", 53, 37), upright = video_info("GRAY8", 37, 53);
  Random random = seeded();
  Harness h("mask=gauss5 roi=4,40,9,9", lying);
  h.set_caps(upright);
  check_frame(h, random_frame(upright, random).get(), upright, "mask=gauss5", {{{4, 40, 9, 9}}});
  fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  h.set_caps(lying);
  h.filter(random_frame(lying, random).get());
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "nothing is filtered: all rectangles of roi, such as 4,40,9,9, lie outside the picture of 53x37");
}
GST_END_TEST;

GST_START_TEST(rectangles_that_are_all_outside_are_a_warning) {
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=gauss5 roi='-9,0,9,9; 0,900,5,5; 53,0,1,1'", info);
  for (int i = 0; i < 3; i++) {
    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless(same_samples(in.get(), out.get(), info));
  }
  const Report warning = h.take_one(GST_MESSAGE_WARNING);
  assert_same_text(warning.text,
                   "nothing is filtered: all rectangles of roi, such as -9,0,9,9, lie outside the picture of 53x37");
  Harness polygon("mask=gauss5 roi='60,5 70,5 65,20; 3,3 3.2,3 3.1,3.4'", info);
  const Ref<GstBuffer> unchanged = polygon.filter(in.get());
  fail_unless(same_samples(in.get(), unchanged.get(), info));
  assert_same_text(polygon.take_one(GST_MESSAGE_WARNING).text,
                   "nothing is filtered: all regions of roi, such as the polygon within 60,5,10,15, lie outside the "
                   "picture of 53x37 or have none of its pixels");
  // Numbers that were meant to be fractions of the picture.
  Harness parts("mask=gauss5 roi='5,5,9,9; 0.25,0.25,0.5,0.5'", info);
  check_frame(parts, in.get(), info, "mask=gauss5", {{{5, 5, 9, 9}, {0, 0, 1, 1}}});
  assert_same_text(
      parts.take_one(GST_MESSAGE_WARNING).text,
      "roi: region 2 is less than a pixel wide or high; parts of the picture are percentages, such as 25%");
  // No warning with roi-meta, since other regions may come with a frame.
  Harness with_metas("mask=gauss5 roi='53,0,1,1' roi-meta=true", info);
  with_metas.filter(in.get());
}
GST_END_TEST;

// An application that moves a region out of the picture changes it with each frame.
GST_START_TEST(a_region_that_moves_outside_is_a_warning_once_a_second) {
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=gauss5", info);
  const auto move = [&](int x) {
    h.set("roi='" + std::to_string(x) + "," + std::to_string(-x) + ",9,9'");
    h.filter(in.get());
  };
  for (int i = 0; i < 5; i++) move(60 + i);
  h.take_one(GST_MESSAGE_WARNING);
  g_usleep(G_USEC_PER_SEC + G_USEC_PER_SEC / 10);
  move(60);
  fail_unless_equals_int(h.take(GST_MESSAGE_WARNING).size(), 0);  // the numbers are known
  move(70);
  h.take_one(GST_MESSAGE_WARNING);
}
GST_END_TEST;

// Regions of metas may begin left of the picture or above it. These coordinates are numbers above 2^31.
GST_START_TEST(regions_of_metas_may_begin_outside) {
  for (const char *format : kFormats) {
    const GstVideoInfo info = video_info(format, 53, 37);
    Random random = seeded();
    const Ref<GstBuffer> in = random_frame(info, random);
    gst_buffer_add_video_region_of_interest_meta(in.get(), "face", static_cast<guint>(-5), static_cast<guint>(-7), 20,
                                                 16);
    gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 40, static_cast<guint>(-3), G_MAXUINT, 12);
    gst_buffer_add_video_region_of_interest_meta(in.get(), "face", static_cast<guint>(-30), 2, 30, 12);
    // Sizes may be as large: these end in the picture.
    gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 1u << 31, 20, (1u << 31) + 7, 3);
    gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 24, (1u << 31) + 5, 3, (1u << 31) + 24);
    Harness h("mask=gauss5 roi-meta=true", info);
    check_frame(h, in.get(), info, "mask=gauss5",
                {{{-5, -7, 20, 16}, {40, -3, 1000, 12}, {-9, 20, 16, 3}, {24, -9, 3, 38}}});
  }
}
GST_END_TEST;

GST_START_TEST(bad_rectangles_are_a_warning_while_playing) {
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const std::string filter = "mask=gauss5";
  Harness h(filter + " roi='3,3,20,20'", info);
  for (const auto &bad : kBad) {
    g_object_set(h.element(), "roi", bad.roi, nullptr);
    for (int i = 0; i < 2; i++) check_frame(h, in.get(), info, filter, {{{3, 3, 20, 20}}});
    const Report warning = h.take_one(GST_MESSAGE_WARNING);
    fail_unless_equals_string(warning.text.c_str(), bad.text);
  }
  h.set("roi='1,1,4,4'");
  check_frame(h, in.get(), info, filter, {{{1, 1, 4, 4}}});
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("roi");
  TCase *tc = tcase_create("roi");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, only_the_rectangles_are_filtered);
  tcase_add_test(tc, a_region_of_a_wide_frame_has_the_means_of_large_windows);
  tcase_add_test(tc, chroma_shows_nothing_of_a_region);
  tcase_add_test(tc, polygons_have_the_pixels_whose_centre_is_inside);
  tcase_add_test(tc, percentages_are_fractions_of_the_picture);
  tcase_add_test(tc, polygons_grow_and_scale_like_rectangles);
  tcase_add_test(tc, an_ellipse_is_inscribed_in_its_rectangle);
  tcase_add_test(tc, the_blocks_of_a_mosaic_begin_with_the_regions);
  tcase_add_test(tc, everything_but_the_regions_is_filtered);
  tcase_add_test(tc, without_regions_all_or_nothing_is_filtered);
  tcase_add_test(tc, regions_of_interlaced_frames_count_rows_of_the_frame);
  tcase_add_test(tc, regions_of_single_fields_count_rows_of_the_frame);
  tcase_add_test(tc, metas_of_the_wanted_types_are_regions);
  tcase_add_test(tc, orientation_and_padding_do_not_move_regions);
  tcase_add_test(tc, types_may_have_blanks_and_commas);
  tcase_add_test(tc, regions_may_change_with_every_frame);
  tcase_add_test(tc, identity_is_passthrough_with_regions_too);
  tcase_add_test(tc, upstream_is_asked_for_metas);
  tcase_add_test(tc, bad_rectangles_are_an_error_at_the_start);
  tcase_add_test(tc, caps_without_a_frame_warn_of_no_rectangle);
  tcase_add_test(tc, rectangles_that_are_all_outside_are_a_warning);
  tcase_add_test(tc, a_region_that_moves_outside_is_a_warning_once_a_second);
  tcase_add_test(tc, regions_of_metas_may_begin_outside);
  tcase_add_test(tc, bad_rectangles_are_a_warning_while_playing);
  tcase_add_test(tc, very_many_metas_are_copied);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "roi", make_suite, !strcmp(test_backend(), "cuda"));
}
