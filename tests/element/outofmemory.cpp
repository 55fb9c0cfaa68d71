// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests memory that runs out while a marked frame is filtered: in each run one allocation fails, the first, the second,
// and so on. The frame leaves filtered, or not at all and with an error. So do later frames for which its regions are
// held. Also tests memory that cannot be mapped. Frames are filtered one by one: with frames in flight a frame leaves
// later than its push returns. On a GPU the program is skipped; on the stand-in it runs. Allocations are also points at
// which other threads act.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "between.h"
#include "failingnew.h"
#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr GstClockTime kDuration = 40 * GST_MSECOND;

const GstVideoInfo &gray() {
  static const GstVideoInfo info = video_info("GRAY8", 64, 48);
  return info;
}

struct Case {
  const char *properties;
  bool held = false;    // the regions of earlier frames apply, too
  bool invert = false;  // hides all pixels outside regions
};

// In every case the properties hide at least these rectangles, in frames with the regions kFirst and kSecond.
constexpr Region kFirst = {4, 6, 20, 16}, kSecond = {36, 24, 20, 18};
constexpr char kFixed[] = "roi='4,6,20,16;36,24,20,18'";

const Case kCases[] = {
    {kFixed},
    {"roi='4,6,20,16;36,24,20,18' roi-grow=0.3"},
    {"roi-meta=true"},
    {"roi-meta=true roi-type=face"},
    {"roi-meta=true roi-grow=0.2"},
    {"roi-meta=true roi-feather=6"},
    {"roi-meta=true hold=1000000000", true},
    {"roi-meta=true hold=1000000000 roi-grow=0.2 roi-shape=ellipse", true},
    {"roi-meta=true roi-scale=0.4"},
    {"roi-meta=true roi-scale=0.4 hold=1000000000", true},
    {"roi-meta=true roi-shape=ellipse roi-grow=0.2"},
    {"roi-meta=true roi-invert=true", false, true},
    {"roi='4,6,20,16;36,24,20,18' roi-invert=true", false, true},
};

// The percentage of samples of `region` that are the same in `out` as in `in`.
int shown(GstBuffer *in, GstBuffer *out, const Region &region) {
  const FrameBytes source(in, gray()), result(out, gray());
  int same = 0;
  for (int y = region.y; y < region.y + region.height; y++)
    for (int x = region.x; x < region.x + region.width; x++) {
      const auto at = [&](const FrameBytes &f) { return f.view.plane[0].data[y * f.view.plane[0].pitch + x]; };
      same += at(source) == at(result);
    }
  return 100 * same / (region.width * region.height);
}

// A frame with these regions, and a copy of it, since the frame may be filtered in place.
struct Marked {
  Ref<GstBuffer> frame, source;

  Marked(int number, const std::vector<Region> &regions, Random &random) : frame(random_frame(gray(), random)) {
    source.reset(gst_buffer_copy_deep(frame.get()));
    GST_BUFFER_PTS(frame.get()) = number * kDuration;
    for (const Region &r : regions) add_roi(frame.get(), "face", r.x, r.y, r.width, r.height);
  }
};

class Run {
 public:
  Run(const Case &c, bool in_place)
      : case_(c),
        in_place_(in_place),
        between_(std::string("mask=mosaic size=8 n-threads=2 frames-in-flight=1 ") + c.properties, gray()) {
    gst_element_set_state(between_.element.get(), GST_STATE_PLAYING);
    between_.announce();
  }

  // Pushes a frame with `regions` while the n-th allocation fails (0: none). Calls `before` first, under the same
  // condition. Returns whether an allocation failed.
  bool push(
      int number, const std::vector<Region> &regions, long n, const std::function<void()> &before = [] {}) {
    Marked marked(number, regions, random_);
    const int frames = between_.frames;
    GstFlowReturn flow = GST_FLOW_OK;
    const auto go = [&] {
      before();
      flow = in_place_ ? between_.push(std::move(marked.frame)) : between_.push(marked.frame.get());
    };
    bool failed = false;
    if (n)
      failed = with_failing_new(n, go);
    else
      go();
    const bool errors = !take_messages(between_.element.get(), GST_MESSAGE_ERROR).empty();
    const bool left = between_.frames > frames;
    fail_unless(flow == GST_FLOW_OK || errors, "%s, allocation %ld: %s without a message", case_.properties, n,
                gst_flow_get_name(flow));
    fail_unless_equals_int(left, flow == GST_FLOW_OK);
    if (!failed) fail_unless_equals_int(flow, GST_FLOW_OK);
    if (left) check(marked.source.get(), number, regions, n);
    return failed;
  }
  Between &between() { return between_; }

 private:
  void check(GstBuffer *source, int number, const std::vector<Region> &regions, long n) {
    std::vector<Region> hidden = case_.held && number > 0 ? std::vector<Region>{kFirst, kSecond} : regions;
    if (case_.invert) hidden = {{28, 0, 5, 48}, {0, 44, 60, 4}};
    if (!strncmp(case_.properties, "roi=", 4) && !case_.invert) hidden = {kFirst, kSecond};
    if (case_.invert && regions.empty() && strncmp(case_.properties, "roi=", 4)) hidden = {{0, 0, 64, 48}};
    for (Region r : hidden) {
      if (strstr(case_.properties, "ellipse"))
        r = {r.x + r.width / 6, r.y + r.height / 6, r.width * 2 / 3, r.height * 2 / 3};
      const int percent = shown(source, between_.last.get(), r);
      fail_unless(percent < 15, "%s, allocation %ld, frame %d: %d %% of %d,%d,%d,%d is shown", case_.properties, n,
                  number, percent, r.x, r.y, r.width, r.height);
    }
  }

  const Case case_;
  const bool in_place_;
  Between between_;
  Random random_ = seeded();
};

// Runs `frames` with the first allocation failing, then the second, until none fails.
void for_each_allocation(const char *what, const std::function<bool(const Case &, bool in_place, long n)> &frames) {
  long most = 0;
  for (const Case &c : kCases)
    for (const bool in_place : {false, true}) {
      long n = 1;
      while (frames(c, in_place, n)) n++;
      most = std::max(most, n - 1);
    }
  g_print("%s: up to %ld allocations failed, one at a time\n", what, most);
  fail_unless(most > 10);
}

GST_START_TEST(a_marked_frame_leaves_filtered_or_not_at_all) {
  for_each_allocation("first frame", [](const Case &c, bool in_place, long n) {
    Run run(c, in_place);
    const bool failed = run.push(0, {kFirst, kSecond}, n);
    run.push(1, {kSecond}, 0);
    run.push(2, {}, 0);
    return failed;
  });
  for_each_allocation("later frames", [](const Case &c, bool in_place, long n) {
    Run run(c, in_place);
    run.push(0, {kFirst}, 0);
    const bool failed = run.push(1, {kSecond}, n);
    run.push(2, {}, 0);
    run.push(3, {kFirst}, n);
    run.push(4, {}, 0);
    return failed;
  });
}
GST_END_TEST;

// Memory runs out while settings with regions arrive. The settings are not forgotten.
GST_START_TEST(settings_that_arrive_without_memory_are_not_lost) {
  for_each_allocation("settings", [](const Case &c, bool in_place, long n) {
    Run run(c, in_place);
    set_properties(run.between().element.get(), "roi-meta=false");
    g_object_set(part_of(run.between().element.get(), "filter").get(), "roi", nullptr, nullptr);
    run.push(0, {}, 0);
    set_properties(run.between().element.get(), c.properties);
    const bool failed = run.push(1, {kFirst, kSecond}, n);
    run.push(2, {kFirst, kSecond}, 0);
    return failed;
  });
}
GST_END_TEST;

GST_START_TEST(caps_that_arrive_without_memory_let_nothing_through) {
  for_each_allocation("caps", [](const Case &c, bool in_place, long n) {
    Run run(c, in_place);
    run.push(0, {kFirst, kSecond}, 0);
    run.between().announce(video_info("GRAY8", 32, 24));
    const bool failed = run.push(1, {kFirst, kSecond}, n, [&] { run.between().announce(gray()); });
    run.push(2, {kFirst, kSecond}, 0);
    return failed;
  });
}
GST_END_TEST;

// Frames wait for later frames. Memory runs out at one of them: the other frames still hide the same regions.
GST_START_TEST(frames_that_wait_hide_what_is_found_later) {
  const Case c = {"roi-meta=true lookahead=80000000 hold=40000000"};
  long most = 0;
  for (const bool in_place : {false, true})
    for (int failing = 0; failing < 7; failing++)
      for (long n = 1;; n++) {
        Between between(std::string("mask=mosaic size=8 n-threads=2 frames-in-flight=1 ") + c.properties, gray());
        gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
        between.announce();
        Random random = seeded();
        std::vector<Marked> marked;
        std::vector<Ref<GstBuffer>> out;
        out.reserve(16);  // the test allocates nothing while the element does
        between.all = &out;
        bool failed = false;
        for (int i = 0; i < 7; i++) {
          marked.emplace_back(i,
                              i == 3   ? std::vector<Region>{kFirst}
                              : i == 4 ? std::vector<Region>{kSecond}
                                       : std::vector<Region>(),
                              random);
          const auto go = [&] {
            if (in_place)
              between.push(std::move(marked[i].frame));
            else
              between.push(marked[i].frame.get());
          };
          if (i == failing)
            failed = with_failing_new(n, go);
          else
            go();
        }
        between.end();
        if (!failed) fail_unless_equals_int(out.size(), 7);
        fail_unless(out.size() >= 5, "allocation %ld of frame %d: %d frames came out", n, failing,
                    static_cast<int>(out.size()));
        for (const Ref<GstBuffer> &frame : out) {
          const auto i = static_cast<int>(GST_BUFFER_PTS(frame.get()) / kDuration);
          for (const auto &[at, region] : {std::pair(3, kFirst), {4, kSecond}}) {
            if (i < at - 2 || i > at + 1) continue;
            const int percent = shown(marked[i].source.get(), frame.get(), region);
            fail_unless(percent < 15, "allocation %ld of frame %d: frame %d shows %d %% of what frame %d had", n,
                        failing, i, percent, at);
          }
        }
        if (!failed) break;
        most = std::max(most, n);
      }
  g_print("waiting: up to %ld allocations failed, one at a time\n", most);
}
GST_END_TEST;

// Frames wait, and types changes. They are searched again and leave. Memory runs out meanwhile: a frame that leaves
// hides what was found in the others.
GST_START_TEST(types_that_change_without_memory_hide_what_they_select) {
  long n = 0;
  for (bool failed = true; failed;) {
    Between between(
        "mask=mosaic size=8 n-threads=2 frames-in-flight=1 roi-meta=true types=cat lookahead=80000000 "
        "hold=1000000000",
        gray());
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    Random random = seeded();
    std::vector<Marked> marked;
    std::vector<Ref<GstBuffer>> out;
    out.reserve(16);  // the test allocates nothing while the element does
    between.all = &out;
    for (int i = 0; i < 6; i++) {
      marked.emplace_back(i, i ? std::vector<Region>() : std::vector<Region>{kFirst}, random);
      if (i == 2) {
        set_properties(between.element.get(), "types=face");
        const Ref<GstPad> sink = between.pad("sink");
        const Ref<GstQuery> query(gst_query_new_drain());
        failed = with_failing_new(++n, [&] { gst_pad_query(sink.get(), query.get()); });
      }
      between.push(marked.back().frame.get());
    }
    between.end();
    fail_unless_equals_int(take_messages(between.element.get(), GST_MESSAGE_ERROR).size(), out.size() < 6);
    fail_unless(out.size() >= 3, "allocation %ld: %d frames came out", n, static_cast<int>(out.size()));
    for (const Ref<GstBuffer> &frame : out) {
      const auto i = static_cast<int>(GST_BUFFER_PTS(frame.get()) / kDuration);
      const int percent = shown(marked[i].source.get(), frame.get(), kFirst);
      fail_unless(percent < 15, "allocation %ld: frame %d shows %d %%", n, i, percent);
    }
  }
  fail_unless(n > 10);
}
GST_END_TEST;

// Memory runs out for a frame. Then types changes, perhaps back, and the frames that wait leave. They hide what it
// selects now.
GST_START_TEST(types_that_change_after_a_frame_without_memory_count) {
  for (const char *before : {"face", "cat"}) {
    long n = 0;
    bool warned = false;
    for (bool failed = true; failed;) {
      Between between(
          std::string("mask=mosaic size=8 n-threads=2 frames-in-flight=1 roi-meta=true lookahead=80000000 types=") +
              before,
          gray());
      gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
      between.announce();
      Random random = seeded();
      std::vector<Marked> marked;
      std::vector<Ref<GstBuffer>> out;
      for (const int number : {0, 1, 10}) {
        marked.emplace_back(number, std::vector<Region>{number ? kSecond : kFirst}, random);
        if (number == 10) set_properties(between.element.get(), "types=cat");
        const auto go = [&] { between.push(marked.back().frame.get()); };
        if (number < 10)
          go();
        else
          failed = with_failing_new(++n, go);
      }
      set_properties(between.element.get(), "types=face");
      out.reserve(16);  // the test allocates nothing while the element does
      between.all = &out;
      between.end();
      for (const Ref<GstMessage> &message : take_messages(between.element.get(), GST_MESSAGE_WARNING))
        warned |=
            report_of(message.get()).text == "all of a frame is a region, since its regions could not be found again";
      for (const Ref<GstBuffer> &frame : out) {
        const auto i = static_cast<int>(GST_BUFFER_PTS(frame.get()) / kDuration);
        if (i > 1) continue;
        const int percent = shown(marked[i].source.get(), frame.get(), i ? kSecond : kFirst);
        fail_unless(percent < 15, "types=%s, allocation %ld: frame %d shows %d %%", before, n, i, percent);
      }
    }
    fail_unless(n > 10 && warned == (std::string(before) == "face"));  // else there is no second search
  }
}
GST_END_TEST;

// Memory runs out for some frames. Regions of these are not known: as long as they would be held, all is hidden.
GST_START_TEST(regions_of_any_number_of_frames_are_missed) {
  for (const int missed : {1, 300}) {
    Between between("mask=mosaic size=8 n-threads=1 frames-in-flight=1 roi-meta=true hold=1000000000", gray());
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    Random random = seeded();
    for (int i = 0; i < missed; i++) {
      Marked marked(i, {kFirst}, random);
      fail_unless(with_failing_new(1, [&] { between.push(marked.frame.get()); }));
    }
    fail_unless_equals_int(between.frames, 0);
    for (const auto &[later, held] : {std::pair(0, true), {24, true}, {25, false}}) {
      Marked marked(missed + later, {}, random);
      fail_unless_equals_int(between.push(marked.frame.get()), GST_FLOW_OK);
      const int first = shown(marked.source.get(), between.last.get(), kFirst);
      const int second = shown(marked.source.get(), between.last.get(), kSecond);
      fail_unless(held ? first < 15 && second < 15 : first == 100 && second == 100, "%d frames, %d later: %d and %d %%",
                  missed, later, first, second);
    }
  }
}
GST_END_TEST;

// The last report is made when the stream ends.
GST_START_TEST(a_report_without_memory_is_an_error) {
  for (long n = 1;; n++) {
    Run run({"roi-meta=true report=true"}, true);
    run.push(0, {kFirst}, 0);
    const bool failed = with_failing_new(n, [&] { run.between().end(); });
    fail_unless_equals_int(take_messages(run.between().element.get(), GST_MESSAGE_ERROR).size(), failed);
    if (!failed) break;
  }
}
GST_END_TEST;

GST_START_TEST(a_caps_query_without_memory_has_an_answer) {
  for (long n = 1;; n++) {
    Between between("", gray());
    Ref<GstCaps> caps;
    const bool failed =
        with_failing_new(n, [&] { caps.reset(gst_pad_query_caps(between.pad("sink").get(), nullptr)); });
    fail_if(gst_caps_is_empty(caps.get()));
    if (!failed) break;
  }
}
GST_END_TEST;

// A pool of two buffers, which are taken out.
Ref<GstBufferPool> pool_of(GstBuffer *(&frames)[2]) {
  Ref<GstBufferPool> pool(gst_buffer_pool_new());
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, nullptr, GST_VIDEO_INFO_SIZE(&gray()), 2, 2);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  for (GstBuffer *&frame : frames)
    fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &frame, nullptr), GST_FLOW_OK);
  return pool;
}

// Where upstream has no buffer left, a thread of the element lets the oldest frame go. It first makes a warning, which
// is left out where there is no memory for it.
GST_START_TEST(a_thread_without_memory_is_an_error) {
  for (long n = 1; n < 8; n++) {
    Between between("mask=fill frames-in-flight=1 roi-meta=true lookahead=1000000000", gray());
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    GstBuffer *frames[2];  // upstream keeps the last one
    const Ref<GstBufferPool> pool = pool_of(frames);
    GST_BUFFER_PTS(frames[0]) = 0;
    fail_unless_equals_int(between.push(Ref<GstBuffer>(frames[0])), GST_FLOW_OK);
    take_messages(between.element.get(), GST_MESSAGE_ANY);
    const Ref<GstBus> bus(gst_element_get_bus(between.element.get()));
    const bool failed = with_failing_new(n, [&] {
      for (int i = 0; i < 500 && !between.frames && !gst_bus_have_pending(bus.get()); i++) g_usleep(10000);
      for (int i = 0; i < 5 && !between.frames; i++) g_usleep(10000);
    });
    const auto errors = static_cast<int>(take_messages(between.element.get(), GST_MESSAGE_ERROR).size());
    fail_unless_equals_int(errors + between.frames, 1);
    fail_unless(failed || between.frames);
    gst_buffer_unref(frames[1]);
    between.last.reset();
    gst_element_set_state(between.element.get(), GST_STATE_NULL);
    gst_buffer_pool_set_active(pool.get(), FALSE);
  }
}
GST_END_TEST;

// Pushes a frame, and has another thread call `act` at the n-th allocation meanwhile. Returns whether it was called.
bool push_while(Between *between, GstBuffer *frame, long n, const std::function<void()> &act) {
  std::atomic<bool> done{false};
  std::thread thread;
  const auto call = [&] {
    thread = std::thread([&] {
      act();
      done = true;
    });
    for (int i = 0; i < 20 && !done; i++) g_usleep(1000);  // the element may hold a lock
  };
  const bool called = with_call_in_new(n, call, [&] { between->push(frame); });
  if (called) thread.join();
  return called;
}

// An application sets types while a frame comes, at each allocation in turn. The frame waits, and leaves with what
// types selects by then.
GST_START_TEST(types_that_change_while_a_frame_comes_count) {
  for (long n = 1;; n++) {
    Between between("mask=fill n-threads=1 frames-in-flight=1 roi-meta=true types=cat lookahead=80000000", gray());
    const Ref<GstElement> hold = part_of(between.element.get(), "hold");
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    std::vector<Ref<GstBuffer>> out;
    between.all = &out;
    Random random = seeded();
    Marked marked(0, {kFirst}, random);
    const bool called =
        push_while(&between, marked.frame.get(), n, [&] { g_object_set(hold.get(), "types", "face", nullptr); });
    fail_unless(out.empty());
    between.end();
    fail_unless_equals_int(out.size(), 1);
    if (!called) break;
    fail_unless(shown(marked.source.get(), out[0].get(), kFirst) < 15, "set at allocation %ld", n);
  }
}
GST_END_TEST;

// The same, where the frame before need no longer wait, and leaves before the regions of this one are known.
GST_START_TEST(types_that_change_while_a_frame_comes_and_one_leaves_count) {
  for (long n = 1;; n++) {
    Between between("mask=fill n-threads=1 frames-in-flight=1 roi-meta=true types=cat lookahead=80000000", gray());
    const Ref<GstElement> hold = part_of(between.element.get(), "hold");
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    std::vector<Ref<GstBuffer>> out;
    between.all = &out;
    Random random = seeded();
    Marked before(0, {}, random), marked(1, {kFirst}, random);
    fail_unless_equals_int(between.push(before.frame.get()), GST_FLOW_OK);
    const bool called = push_while(&between, marked.frame.get(), n, [&] {
      g_object_set(hold.get(), "types", "face", "lookahead", guint64{0}, nullptr);
      for (int i = 0; i < 10 && !between.frames; i++) g_usleep(1000);
    });
    between.end();
    fail_unless_equals_int(out.size(), 2);
    if (!called) break;
    fail_unless(shown(marked.source.get(), out[1].get(), kFirst) < 15, "set at allocation %ld", n);
  }
}
GST_END_TEST;

// Other threads flush, restart, pause and ask while a frame comes, at each allocation in turn. No frame shows its
// regions, and all come in order. None is lost where nothing interrupts the stream.
GST_START_TEST(what_other_threads_do_while_a_frame_comes_shows_nothing) {
  struct Act {
    bool interrupts;
    std::function<void(Between *)> call;
  };
  const Act acts[] = {
      {true,
       [](Between *between) {
         const Ref<GstPad> sink = between->pad("sink");
         gst_pad_send_event(sink.get(), gst_event_new_flush_start());
         gst_pad_send_event(sink.get(), gst_event_new_flush_stop(TRUE));
       }},
      {true,
       [](Between *between) {
         gst_element_set_state(between->element.get(), GST_STATE_READY);
         gst_element_set_state(between->element.get(), GST_STATE_PLAYING);
       }},
      {false, [](Between *between) { gst_element_set_state(between->element.get(), GST_STATE_PAUSED); }},
      {false,
       [](Between *between) {
         const Ref<GstQuery> query(gst_query_new_latency());
         gst_pad_query(between->pad("src").get(), query.get());
         stats_of(between->element.get());
       }},
  };
  for (const Act &act : acts)
    for (long n = 1;; n++) {
      Between between("mask=fill n-threads=2 roi-meta=true hold=40000000", gray());
      gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
      between.announce();
      std::vector<Ref<GstBuffer>> out;
      between.all = &out;
      Random random = seeded();
      std::vector<Marked> marked;
      bool called = false;
      for (int i = 0; i < 4; i++) {
        marked.emplace_back(i, std::vector<Region>{kFirst}, random);
        if (i != 1) {
          between.push(marked[i].frame.get());
          continue;
        }
        called = push_while(&between, marked[i].frame.get(), n, [&] { act.call(&between); });
        if (called && act.interrupts) between.announce();
      }
      between.end();
      fail_unless(take_messages(between.element.get(), GST_MESSAGE_ERROR).empty());
      if (!called || !act.interrupts) fail_unless_equals_int(out.size(), 4);
      fail_unless(out.size() >= 2);
      int last = -1;
      for (const Ref<GstBuffer> &frame : out) {
        const auto i = static_cast<int>(GST_BUFFER_PTS(frame.get()) / kDuration);
        fail_unless(i > last);
        last = i;
        fail_unless(shown(marked[i].source.get(), frame.get(), kFirst) < 15, "act %d at allocation %ld: frame %d",
                    static_cast<int>(&act - acts), n, i);
      }
      if (!called) break;
    }
}
GST_END_TEST;

// Upstream sends its last buffer, and the oldest frame leaves before its look-ahead is over. The warning of that is
// left out where there is no memory for it.
GST_START_TEST(a_frame_leaves_early_without_memory_for_the_warning) {
  for (long n = 1;; n++) {
    Between between("mask=fill frames-in-flight=1 roi-meta=true lookahead=1000000000", gray());
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    GstBuffer *frames[2];
    const Ref<GstBufferPool> pool = pool_of(frames);
    GST_BUFFER_PTS(frames[0]) = 0;
    GST_BUFFER_PTS(frames[1]) = kDuration;
    fail_unless_equals_int(between.push(Ref<GstBuffer>(frames[0])), GST_FLOW_OK);
    GstFlowReturn flow = GST_FLOW_OK;
    const bool failed = with_failing_new(n, [&] { flow = between.push(Ref<GstBuffer>(frames[1])); });
    const bool errors = !take_messages(between.element.get(), GST_MESSAGE_ERROR).empty();
    fail_unless_equals_int(errors, flow != GST_FLOW_OK);
    fail_unless_equals_int(between.frames, flow == GST_FLOW_OK);
    between.last.reset();
    gst_buffer_pool_set_active(pool.get(), FALSE);
    if (!failed) break;
  }
}
GST_END_TEST;

GST_START_TEST(a_property_without_memory_is_an_error) {
  for (const auto &of : {std::pair("cudaconv", "coefficients"), {"roihold", "types"}}) {
    const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make(of.first, nullptr))));
    const Ref<GstBus> bus(gst_bus_new());
    gst_element_set_bus(element.get(), bus.get());
    const std::string text(100, '1');
    for (long n = 1;; n++) {
      const bool failed = with_failing_new(n, [&] { g_object_set(element.get(), of.second, text.c_str(), nullptr); });
      fail_unless_equals_int(take_messages(element.get(), GST_MESSAGE_ERROR).size(), failed);
      if (!failed) break;
      g_object_set(element.get(), of.second, nullptr, nullptr);
    }
    gst_element_set_bus(element.get(), nullptr);
  }
}
GST_END_TEST;

// An allocator of memory that fails to be mapped once.
struct Unmappable {
  GstAllocator parent;
};
struct UnmappableClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(Unmappable, unmappable, GST_TYPE_ALLOCATOR)
int maps_left = 0;  // up to the one that fails
struct Bytes {
  GstMemory memory;
  guint8 *data;
};
void unmappable_class_init(UnmappableClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->alloc = [](GstAllocator *allocator, gsize size, GstAllocationParams *) {
    auto *bytes = g_new0(Bytes, 1);
    bytes->data = static_cast<guint8 *>(g_malloc0(size));
    gst_memory_init(&bytes->memory, static_cast<GstMemoryFlags>(0), allocator, nullptr, size, 0, 0, size);
    return &bytes->memory;
  };
  GST_ALLOCATOR_CLASS(klass)->free = [](GstAllocator *, GstMemory *memory) {
    g_free(reinterpret_cast<Bytes *>(memory)->data);
    g_free(memory);
  };
}
void unmappable_init(Unmappable *allocator) {
  allocator->parent.mem_map = [](GstMemory *memory, gsize, GstMapFlags) -> gpointer {
    return maps_left > 0 && --maps_left == 0 ? nullptr : reinterpret_cast<Bytes *>(memory)->data;
  };
  allocator->parent.mem_unmap = [](GstMemory *) {};
}

// A copy of a frame in memory of the allocator, with a GstVideoMeta, so that each plane is mapped alone.
Ref<GstBuffer> copy_in(GstAllocator *allocator, GstBuffer *frame, GstVideoInfo info) {
  Ref<GstBuffer> copy(gst_buffer_new_allocate(allocator, GST_VIDEO_INFO_SIZE(&info), nullptr));
  GstMapInfo map;
  fail_unless(gst_buffer_map(frame, &map, GST_MAP_READ));
  gst_buffer_fill(copy.get(), 0, map.data, map.size);
  gst_buffer_unmap(frame, &map);
  gst_buffer_add_video_meta_full(copy.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                 GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                 GST_VIDEO_INFO_N_PLANES(&info), info.offset, info.stride);
  return copy;
}

// GstBuffer replaces memory that cannot be mapped by a copy, also when other planes of the frame are mapped in that
// memory. The frame leaves filtered, or not at all and with an error.
GST_START_TEST(a_plane_that_cannot_be_mapped_hides_no_less) {
  const std::string properties = "mask=fill roi='4,6,20,16;36,24,20,18'";
  const GstVideoInfo info = video_info("I420", 64, 48);
  const Ref<GstAllocator> allocator(GST_ALLOCATOR(gst_object_ref_sink(g_object_new(unmappable_get_type(), nullptr))));
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  const Ref<GstBuffer> want = Harness(properties, info).filter(frame.get());
  for (const bool in_place : {true, false})
    for (int n = 1; n < 12; n++) {
      Harness h(properties);
      gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
      if (!in_place)
        gst_harness_set_propose_allocator(h.get(), GST_ALLOCATOR(gst_object_ref(allocator.get())), nullptr);
      h.set_caps(info);
      Ref<GstBuffer> in = copy_in(allocator.get(), frame.get(), info);
      maps_left = n;
      const GstFlowReturn flow = gst_harness_push(h.get(), in.release());
      maps_left = 0;
      const size_t errors = h.take(GST_MESSAGE_ERROR).size();
      fail_unless_equals_int(errors, flow != GST_FLOW_OK);
      if (errors) continue;
      const Ref<GstBuffer> out = h.pull();
      fail_unless(same_samples(out.get(), want.get(), info), "%s, map %d", in_place ? "in place" : "copied", n);
    }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("outofmemory");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_marked_frame_leaves_filtered_or_not_at_all);
  tcase_add_test(tc, settings_that_arrive_without_memory_are_not_lost);
  tcase_add_test(tc, frames_that_wait_hide_what_is_found_later);
  tcase_add_test(tc, types_that_change_without_memory_hide_what_they_select);
  tcase_add_test(tc, types_that_change_after_a_frame_without_memory_count);
  tcase_add_test(tc, regions_of_any_number_of_frames_are_missed);
  tcase_add_test(tc, caps_that_arrive_without_memory_let_nothing_through);
  tcase_add_test(tc, a_report_without_memory_is_an_error);
  tcase_add_test(tc, a_caps_query_without_memory_has_an_answer);
  tcase_add_test(tc, a_thread_without_memory_is_an_error);
  tcase_add_test(tc, types_that_change_while_a_frame_comes_count);
  tcase_add_test(tc, types_that_change_while_a_frame_comes_and_one_leaves_count);
  tcase_add_test(tc, what_other_threads_do_while_a_frame_comes_shows_nothing);
  tcase_add_test(tc, a_frame_leaves_early_without_memory_for_the_warning);
  tcase_add_test(tc, a_property_without_memory_is_an_error);
  tcase_add_test(tc, a_plane_that_cannot_be_mapped_hides_no_less);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
#ifndef CUDACONV_TEST_STATIC
  // The driver's libraries share this operator new, and no exception may pass through them.
  if (!strcmp(test_backend(), "cuda")) {
    g_printerr("SKIP: with a GPU the allocation that fails may be the driver's\n");
    return 77;
  }
#endif
  return run_suite(argc, argv, "outofmemory", make_suite, false);
}
