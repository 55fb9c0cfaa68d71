// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Elements that play while the process exits: an application's objects may be destroyed after those of the plugin. The
// check library works in its tests only, so this program does without.
#include <gst/check/gstharness.h>

#include <cstdlib>
#include <string>

namespace {

// What elements with several masks make of a frame, and the caps that they take.
std::string results() {
  std::string results;
  for (const char *mask : {"sobel", "gauss9", "roberts", "log5"}) {
    GstHarness *h = gst_harness_new_parse((std::string("cudaconv backend=cpu mask=") + mask).c_str());
    gst_harness_set_sink_caps_str(h, "video/x-raw,format={GRAY8,RGBA,NV12}");  // the element has another order
    gst_harness_set_src_caps_str(h, "video/x-raw,format=GRAY8,width=48,height=32,framerate=25/1");
    std::string frame(48 * 32, '\0');
    for (size_t i = 0; i < frame.size(); i++) frame[i] = static_cast<char>(i * i / 7);
    gst_harness_push(h, gst_buffer_new_memdup(frame.data(), frame.size()));
    GstBuffer *out = gst_harness_pull(h);
    if (out) gst_buffer_extract(out, 0, frame.data(), frame.size());
    gst_clear_buffer(&out);
    GstCaps *caps = gst_pad_peer_query_caps(h->srcpad, nullptr);
    g_autofree gchar *text = gst_caps_to_string(caps);
    gst_caps_unref(caps);
    gst_harness_teardown(h);
    results += frame + text;
  }
  return results;
}

std::string before;

}  // namespace

int main(int argc, char **argv) {
  std::atexit([] {  // before the plugin makes its first object: runs when the last one is destroyed
    if (results() == before) return;
    g_printerr("frames or caps differ while the process exits\n");
    std::_Exit(1);
  });
  gst_init(&argc, &argv);
  before = results();
  return 0;
}
