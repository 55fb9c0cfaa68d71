// SPDX-License-Identifier: LGPL-2.1-or-later
#include "player.h"

#include <gst/app/gstappsink.h>
#include <gst/pbutils/pbutils.h>
#include <gst/video/video.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "../decoders.h"
#include "outlines.h"

namespace tune {

using namespace media;

namespace {

constexpr size_t kMostStarts = 1000;  // a camera has no end

Owned<GstElement> pipeline_of(const Input &input) {
  Words words = words_before_filter(input);
  // Never blocks: a frame that comes too early for the window takes the place of the one before.
  for (const char *word : {"roihold", "name=roihold", "!", "appsink", "name=sink", "max-buffers=1", "drop=true"})
    words.push_back(word);
  std::vector<const gchar *> pointers;
  for (const std::string &word : words) pointers.push_back(word.c_str());
  pointers.push_back(nullptr);
  ErrorSlot error;
  GstElement *pipeline = gst_parse_launchv_full(pointers.data(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error);
  error.check("cannot make the pipeline");
  return Owned<GstElement>(GST_ELEMENT(gst_object_ref_sink(pipeline)));
}

// Reports a decoder that has found streams, but no video. The pipeline would wait for it.
void check_linked(GstElement *decoder) {
  bool linked = false;
  gst_element_foreach_src_pad(
      decoder,
      [](GstElement *, GstPad *pad, gpointer data) -> gboolean {
        *static_cast<bool *>(data) |= gst_pad_is_linked(pad) != FALSE;
        return TRUE;
      },
      &linked);
  if (!linked)
    GST_ELEMENT_ERROR_WITH_DETAILS(decoder, STREAM, WRONG_TYPE, (nullptr), (nullptr),
                                   ("flow-return", G_TYPE_INT, GST_FLOW_NOT_LINKED, nullptr));
}

// The time in the stream. It may be before the segment, which begins at the time of a seek.
std::optional<gint64> stream_time(const GstSegment *segment, GstBuffer *buffer) {
  guint64 time;
  if (gst_segment_to_stream_time_full(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer), &time) != 1) return {};
  return static_cast<gint64>(time);
}

// The text of an error message. A stream without a link is sound: the decoder offers video to the pipeline. `missing`
// is a decoder that is not installed.
std::string error_text(GstMessage *message, const std::string &missing) {
  const GstStructure *details = nullptr;
  gst_message_parse_error_details(message, &details);
  gint flow = GST_FLOW_OK;
  if (details && gst_structure_get_int(details, "flow-return", &flow) && flow == GST_FLOW_NOT_LINKED)
    return missing.empty() ? "there is no video in it"
                           : "there is no " + missing + "; gstreamer1.0-libav has most decoders";
  return message_text(message, gst_message_parse_error);
}

}  // namespace

Player::Player(const Input &input, GstCaps *caps, TakeFrame take_frame, TakeError take_error, TakeError take_warning)
    : take_frame_(std::move(take_frame)),
      take_error_(std::move(take_error)),
      take_warning_(std::move(take_warning)),
      pipeline_(pipeline_of(input)),
      roihold_(find(pipeline_.get(), "roihold")),
      bus_(gst_element_get_bus(pipeline_.get())) {
  const Owned<GstElement> sink = find(pipeline_.get(), "sink");
  gst_app_sink_set_caps(GST_APP_SINK(sink.get()), caps);
  GstAppSinkCallbacks callbacks = {};
  callbacks.new_preroll = [](GstAppSink *from, gpointer self) {
    static_cast<Player *>(self)->take_sample(gst_app_sink_pull_preroll(from));
    return GST_FLOW_OK;
  };
  callbacks.new_sample = [](GstAppSink *from, gpointer self) {
    static_cast<Player *>(self)->take_sample(gst_app_sink_pull_sample(from));
    return GST_FLOW_OK;
  };
  gst_app_sink_set_callbacks(GST_APP_SINK(sink.get()), &callbacks, this, nullptr);
  const Owned<GstPad> marked(gst_element_get_static_pad(roihold_.get(), "sink"));
  gst_pad_add_probe(marked.get(), GST_PAD_PROBE_TYPE_BUFFER, keep_frame, this, nullptr);
  const Owned<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
  const auto kinds = static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH);
  gst_pad_add_probe(pad.get(), kinds, cut_lead, this, nullptr);
  const auto watch = [](const GValue *value, gpointer) {
    g_signal_connect(g_value_get_object(value), "no-more-pads", G_CALLBACK(check_linked), nullptr);
  };
  GstIterator *elements = gst_bin_iterate_elements(GST_BIN(pipeline_.get()));
  gst_iterator_foreach(elements, watch, nullptr);
  gst_iterator_free(elements);
  g_signal_connect(pipeline_.get(), "deep-element-added", G_CALLBACK(watch_decoder), this);
  gst_bus_add_watch(bus_.get(), take_message, this);
}

Player::~Player() {
  gst_bus_remove_watch(bus_.get());
  gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
}

void Player::play() {
  playing_ = true;
  gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
}

void Player::pause() {
  playing_ = false;
  gst_element_set_state(pipeline_.get(), GST_STATE_PAUSED);
}

void Player::watch_decoder(GstBin *, GstBin *, GstElement *element, gpointer self) {
  mend_range(element);
  mend_durations(element);
  if (!GST_IS_VIDEO_DECODER(element)) return;
  const Owned<GstPad> pad(gst_element_get_static_pad(element, "sink"));
  const auto kinds = static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_FLUSH);
  gst_pad_add_probe(pad.get(), kinds, note_start, self, nullptr);
}

// To go back by one frame, one has to know when it starts: frames last for any time.
GstPadProbeReturn Player::note_start(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
  auto *self = static_cast<Player *>(data);
  const std::lock_guard<std::mutex> guard(self->lock_);
  if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)) {
    self->starts_.clear();
    return GST_PAD_PROBE_OK;
  }
  const GstSegment *segment;
  GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
  if (!event) return GST_PAD_PROBE_OK;
  gst_event_parse_segment(event, &segment);
  if (const auto time = stream_time(segment, GST_PAD_PROBE_INFO_BUFFER(info))) self->starts_.insert(*time);
  if (self->starts_.size() > kMostStarts) self->starts_.erase(self->starts_.begin());
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

void Player::take_sample(GstSample *lent) {
  if (!lent) return;
  Owned<GstSample> sample(gst_sample_copy(lent));  // the sink writes to its own one, but not while it is held
  gst_sample_unref(lent);
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample.get()))) return;
  GstBuffer *buffer = gst_sample_get_buffer(sample.get());
  has_frame_ = true;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    shown_ = stream_time(gst_sample_get_segment(sample.get()), buffer).value_or(0);
    // A decoder cuts off what is before the time of a seek.
    const auto next = starts_.upper_bound(shown_);
    if (shown_ == sought_) shown_ = next != starts_.begin() ? *std::prev(next) : sought_start_;
    length_ = info.fps_n > 0 ? gst_util_uint64_scale(GST_SECOND, info.fps_d, info.fps_n) : 40 * GST_MSECOND;
  }
  take_frame_(std::move(sample));
}

void Player::seek(gint64 time) {
  if (!seekable()) return;
  time = std::clamp<gint64>(time, 0, duration_ - 1);
  if (seeking_) {
    next_seek_ = time;
    return;
  }
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (sought_ != time) sought_ = sought_start_ = time;
  }
  guint64 hold = 0, lookahead = 0;
  gboolean interpolate = FALSE;
  g_object_get(roihold_.get(), "hold", &hold, "lookahead", &lookahead, "interpolate", &interpolate, nullptr);
  if (interpolate) hold += std::min(lookahead, G_MAXUINT64 - hold);
  const auto lead = static_cast<gint64>(std::min<guint64>(hold, static_cast<guint64>(time)));
  {
    const std::lock_guard<std::mutex> guard(lock_);
    lead_ = lead;
  }
  const auto flags = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
  seeking_ = gst_element_seek_simple(pipeline_.get(), GST_FORMAT_TIME, flags, time - lead);
}

// A seek goes back by `hold`, so that the roihold knows the regions of the frames before; with `interpolate` by the
// time from one detection to the next. The sink gets a segment that begins at the time of the seek, and drops these
// frames.
GstPadProbeReturn Player::cut_lead(GstPad *, GstPadProbeInfo *info, gpointer data) {
  auto *self = static_cast<Player *>(data);
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  const std::lock_guard<std::mutex> guard(self->lock_);
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) self->flushed_lead_ = std::exchange(self->lead_, 0);
  if (GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return GST_PAD_PROBE_OK;
  GstSegment segment;
  gst_event_copy_segment(event, &segment);
  const auto lead = static_cast<guint64>(std::exchange(self->flushed_lead_, 0));
  if (segment.format != GST_FORMAT_TIME || lead == 0) return GST_PAD_PROBE_OK;
  segment.start += lead;
  segment.time += lead;
  segment.position = segment.start;
  GstEvent *const cut = gst_event_new_segment(&segment);
  gst_event_set_seqnum(cut, gst_event_get_seqnum(event));
  gst_event_unref(event);
  GST_PAD_PROBE_INFO_DATA(info) = cut;
  return GST_PAD_PROBE_OK;
}

void Player::refresh() {
  again_ = !ended_;
  if (seekable()) {
    // A seek that is under way has not shown its frame yet.
    if (!playing_) seek(next_seek_.value_or(seeking_ ? sought_time() : position()));
  } else if (ended_) {
    ended_ = false;
    send_again();
  }
}

GstPadProbeReturn Player::keep_frame(GstPad *, GstPadProbeInfo *info, gpointer data) {
  auto *self = static_cast<Player *>(data);
  GstBuffer *const buffer = note_regions(GST_PAD_PROBE_INFO_BUFFER(info));
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  const std::lock_guard<std::mutex> guard(self->lock_);
  self->frame_.reset(gst_buffer_ref(buffer));
  return GST_PAD_PROBE_OK;
}

// Sends the only frame of a picture to the roihold once more, from another thread: nothing else comes to it.
void Player::send_again() {
  struct Again {
    Owned<GstPad> pad;
    Owned<GstEvent> segment;
    Owned<GstBuffer> frame;
  };
  auto again = std::make_unique<Again>();
  again->pad.reset(gst_element_get_static_pad(roihold_.get(), "sink"));
  again->segment.reset(gst_pad_get_sticky_event(again->pad.get(), GST_EVENT_SEGMENT, 0));
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (frame_) again->frame.reset(gst_buffer_ref(frame_.get()));
  }
  if (!again->segment || !again->frame) return;
  gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);  // a sink that pauses would hold the frame
  gst_element_call_async(
      roihold_.get(),
      [](GstElement *, gpointer data) {
        auto *self = static_cast<Again *>(data);
        for (GstEvent *event : {gst_event_new_flush_start(), gst_event_new_flush_stop(TRUE), self->segment.release()})
          gst_pad_send_event(self->pad.get(), event);
        gst_pad_chain(self->pad.get(), self->frame.release());
        gst_pad_send_event(self->pad.get(), gst_event_new_eos());
      },
      again.release(), [](gpointer data) { delete static_cast<Again *>(data); });
}

void Player::step(bool forwards) {
  if (playing_) pause();
  if (forwards) {
    gst_element_send_event(pipeline_.get(), gst_event_new_step(GST_FORMAT_BUFFERS, 1, 1, TRUE, FALSE));
    return;
  }
  gint64 time;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto start = starts_.find(shown_);
    const bool known = start != starts_.end() && start != starts_.begin();
    sought_start_ = known ? *std::prev(start) : std::max<gint64>(shown_ - length_, 0);
    // Times are rounded in files: a time well within the frame before is sure to find it.
    sought_ = time = sought_start_ + std::min(length_, shown_ - sought_start_) / 4;
  }
  seek(time);
}

gint64 Player::sought_time() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return sought_;
}

gint64 Player::position() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return shown_;
}

void Player::look_at_duration() {
  if (!gst_element_query_duration(pipeline_.get(), GST_FORMAT_TIME, &duration_)) duration_ = -1;
}

gboolean Player::take_message(GstBus *, GstMessage *message, gpointer data) {
  auto *self = static_cast<Player *>(data);
  switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
      self->seeking_ = false;
      self->take_error_(error_text(message, self->missing_));
      break;
    case GST_MESSAGE_ELEMENT:
      if (gst_is_missing_plugin_message(message))
        self->missing_ = Owned<gchar>(gst_missing_plugin_message_get_description(message)).get();
      break;
    case GST_MESSAGE_ASYNC_DONE:
      self->seeking_ = false;
      self->look_at_duration();
      if (const auto time = std::exchange(self->next_seek_, std::nullopt)) self->seek(*time);
      break;
    case GST_MESSAGE_DURATION_CHANGED:
      self->look_at_duration();
      break;
    case GST_MESSAGE_EOS:
      if (!self->has_frame_) {
        self->take_error_("no frame of it can be decoded");
      } else if (self->seekable()) {
        self->has_frame_ = false;
        self->seek(0);
      } else {
        self->ended_ = true;
        if (self->again_) self->refresh();
      }
      break;
    case GST_MESSAGE_WARNING:
      if (self->take_warning_ && GST_MESSAGE_SRC(message) == GST_OBJECT_CAST(self->roihold_.get()))
        self->take_warning_(message_text(message, gst_message_parse_warning, false));
      break;
    case GST_MESSAGE_LATENCY:
      gst_bin_recalculate_latency(GST_BIN(self->pipeline_.get()));
      break;
    default:
      break;
  }
  return G_SOURCE_CONTINUE;
}

}  // namespace tune
