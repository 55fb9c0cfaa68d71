// SPDX-License-Identifier: LGPL-2.1-or-later
#include "filter.h"

namespace tune {

using namespace media;

namespace {

Owned<GstElement> make_cudaconv() {
  GstElement *element = gst_element_factory_make("cudaconv", "cudaconv");
  if (!element) throw Failure("GStreamer does not find cudaconv: set GST_PLUGIN_PATH, or install the plugin");
  return Owned<GstElement>(GST_ELEMENT(gst_object_ref_sink(element)));
}

Owned<GstPad> linked(GstElement *element, const char *name) {
  const Owned<GstPad> pad(gst_element_get_static_pad(element, name));
  const bool source = GST_PAD_IS_SRC(pad.get());
  // Without a template it would take only the caps that it has already.
  static GstStaticPadTemplate any = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  GstPad *peer = source ? gst_pad_new_from_static_template(&any, "sink") : gst_pad_new(nullptr, GST_PAD_SRC);
  Owned<GstPad> owned(GST_PAD(gst_object_ref_sink(peer)));
  const GstPadLinkReturn ret = source ? gst_pad_link(pad.get(), peer) : gst_pad_link(peer, pad.get());
  if (ret != GST_PAD_LINK_OK) throw Failure("cannot link to cudaconv");
  gst_pad_set_active(peer, TRUE);
  return owned;
}

}  // namespace

Filter::Filter() : element_(make_cudaconv()), bus_(gst_bus_new()) {
  gst_element_set_bus(element(), bus());
  to_ = linked(element(), "sink");
  from_ = linked(element(), "src");
  gst_pad_set_element_private(from_.get(), this);
  gst_pad_set_chain_function(from_.get(), take);
  gst_pad_set_event_function(from_.get(), take_event);
}

Filter::~Filter() {
  gst_element_set_state(element(), GST_STATE_NULL);
  gst_pad_set_active(to_.get(), FALSE);
  gst_pad_set_active(from_.get(), FALSE);
  gst_element_set_bus(element(), nullptr);
  gst_clear_buffer(&out_);
}

GstFlowReturn Filter::take(GstPad *pad, GstObject *, GstBuffer *buffer) {
  auto *self = static_cast<Filter *>(gst_pad_get_element_private(pad));
  gst_clear_buffer(&self->out_);
  self->out_ = buffer;
  return GST_FLOW_OK;
}

gboolean Filter::take_event(GstPad *pad, GstObject *, GstEvent *event) {
  auto *self = static_cast<Filter *>(gst_pad_get_element_private(pad));
  if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    self->out_caps_.reset(gst_caps_ref(caps));
  }
  gst_event_unref(event);
  return TRUE;
}

bool Filter::start(GstCaps *caps) {
  if (caps_ && gst_caps_is_equal(caps_.get(), caps)) return true;
  if (!caps_) {
    if (gst_element_set_state(element(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) return false;
    gst_pad_push_event(to_.get(), gst_event_new_stream_start("tune"));
  }
  if (!gst_pad_push_event(to_.get(), gst_event_new_caps(caps))) return false;
  if (!caps_) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_pad_push_event(to_.get(), gst_event_new_segment(&segment));
  }
  caps_.reset(gst_caps_ref(caps));
  return true;
}

Owned<GstSample> Filter::filter(GstSample *sample) {
  gst_clear_buffer(&out_);
  bool good = start(gst_sample_get_caps(sample));
  // The element may work in place, and the frame is needed again: it must not be writable.
  GstBuffer *buffer = gst_buffer_ref(gst_sample_get_buffer(sample));
  if (good)
    good = gst_pad_push(to_.get(), buffer) == GST_FLOW_OK;
  else
    gst_buffer_unref(buffer);
  if (good) {
    GstQuery *drain = gst_query_new_drain();  // waits for frames in flight
    gst_pad_peer_query(to_.get(), drain);
    gst_query_unref(drain);
  } else {
    gst_element_set_state(element(), GST_STATE_NULL);
    caps_.reset();
    gst_clear_buffer(&out_);
  }
  if (!out_) return {};
  return Owned<GstSample>(gst_sample_new(out_, out_caps_.get(), nullptr, nullptr));
}

}  // namespace tune
