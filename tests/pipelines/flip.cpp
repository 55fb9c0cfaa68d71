// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Asks videoflip, in a pipeline of the example programs, for its caps while tags turn the picture: each time the size
// of the question is an answer.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "media.h"

namespace {

using namespace media;

constexpr int kTurns = 2000;

void turn(GstPad *pad, std::atomic<bool> *done) {
  gst_pad_send_event(pad, gst_event_new_stream_start("video"));
  for (int i = 0; i < kTurns; i++) {
    GstTagList *tags =
        gst_tag_list_new(GST_TAG_IMAGE_ORIENTATION, i % 2 ? "rotate-0" : "rotate-90", static_cast<void *>(nullptr));
    gst_pad_send_event(pad, gst_event_new_tag(tags));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  *done = true;
}

int empty_answers() {
  const Owned<GstElement> pipeline = make_pipeline("videoflip name=flip video-direction=auto ! fakesink");
  const Owned<GstElement> flip = find(pipeline.get(), "flip");
  const Owned<GstPad> pad(gst_element_get_static_pad(flip.get(), "sink"));
  const Owned<GstCaps> size(gst_caps_from_string("video/x-raw,format=I420,width=720,height=404"));
  gst_element_set_state(pipeline.get(), GST_STATE_PAUSED);
  std::atomic<bool> done{false};
  std::thread turner(turn, pad.get(), &done);
  int asked = 0, empty = 0;
  for (; !done; asked++) {
    const Owned<GstCaps> caps(gst_pad_query_caps(pad.get(), size.get()));
    if (gst_caps_is_empty(caps.get()) || !gst_pad_query_accept_caps(pad.get(), size.get())) empty++;
  }
  turner.join();
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  std::printf("%d of %d answers were empty, in %d turns\n", empty, asked, kTurns);
  return empty;
}

}  // namespace

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  return empty_answers() ? 1 : 0;
}
