// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An element between two pads of the test, without a harness or a bin.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "support.h"

namespace cudaconv::test {

class Between {
 public:
  Between(const std::string &properties, const GstVideoInfo &info)
      : element(new_element(properties)),
        info_(info),
        source_(GST_PAD(gst_object_ref_sink(gst_pad_new("source", GST_PAD_SRC)))),
        sink_(GST_PAD(gst_object_ref_sink(gst_pad_new("sink", GST_PAD_SINK)))) {
    gst_pad_set_chain_function(sink_.get(), chain);
    gst_pad_set_event_function(sink_.get(), [](GstPad *, GstObject *, GstEvent *event) -> gboolean {
      gst_event_unref(event);
      return TRUE;
    });
    gst_pad_set_element_private(sink_.get(), this);
    const Ref<GstPad> in = pad("sink"), out = pad("src");
    fail_unless_equals_int(gst_pad_link(source_.get(), in.get()), GST_PAD_LINK_OK);
    fail_unless_equals_int(gst_pad_link(out.get(), sink_.get()), GST_PAD_LINK_OK);
    gst_pad_set_active(sink_.get(), TRUE);
    gst_pad_set_active(source_.get(), TRUE);
    // GStreamer warns about these, since a deactivated pad forgets its events.
    gst_check_add_log_filter(
        "GStreamer", G_LOG_LEVEL_WARNING,
        g_regex_new("Got data flow before|Sticky event misordering", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
        nullptr, nullptr, nullptr);
  }
  ~Between() {
    gst_element_set_state(element.get(), GST_STATE_NULL);
    gst_element_set_bus(element.get(), nullptr);  // messages on a bus hold the element
    gst_check_clear_log_filter();
  }
  Between(const Between &) = delete;

  Ref<GstPad> pad(const char *name) const { return Ref<GstPad>(gst_element_get_static_pad(element.get(), name)); }
  void announce() { announce(info_); }
  void announce(const GstVideoInfo &info) {
    info_ = info;
    gst_pad_push_event(source_.get(), gst_event_new_stream_start("stream"));
    const Ref<GstCaps> caps(gst_video_info_to_caps(&info_));
    gst_pad_push_event(source_.get(), gst_event_new_caps(caps.get()));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_push_event(source_.get(), gst_event_new_segment(&segment));
  }
  void end() { gst_pad_push_event(source_.get(), gst_event_new_eos()); }
  // Pushes `frame`; the caller keeps its reference.
  GstFlowReturn push(GstBuffer *frame) { return push(Ref<GstBuffer>(gst_buffer_ref(frame))); }
  // Pushes a frame without another reference, which may be filtered in place.
  GstFlowReturn push(Ref<GstBuffer> frame) {
    const GstFlowReturn flow = gst_pad_push(source_.get(), frame.release());
    flows[-flow & 15]++;
    return flow;
  }
  int count(GstFlowReturn flow) const { return flows[-flow & 15]; }

  const Ref<GstElement> element;
  Ref<GstBuffer> expected;                     // if set, every frame that comes out must equal this frame
  std::vector<Ref<GstBuffer>> *all = nullptr;  // if set, receives all frames that come out
  Ref<GstBuffer> last;                         // the last frame that came out
  std::atomic<int> flows[16] = {}, frames{0}, wrong{0};

 private:
  static GstFlowReturn chain(GstPad *pad, GstObject *, GstBuffer *buffer) {
    auto *between = static_cast<Between *>(gst_pad_get_element_private(pad));
    between->last.reset(buffer);
    if (between->all) between->all->emplace_back(gst_buffer_ref(buffer));
    between->frames++;
    if (between->expected && !same_samples(buffer, between->expected.get(), between->info_)) between->wrong++;
    return GST_FLOW_OK;
  }

  GstVideoInfo info_;
  const Ref<GstPad> source_, sink_;
};

}  // namespace cudaconv::test
