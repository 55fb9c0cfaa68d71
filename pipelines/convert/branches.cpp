// SPDX-License-Identifier: LGPL-2.1-or-later
#include "branches.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "encoders.h"

namespace media {

namespace {

// A branch holds this much while the muxer waits for another: minutes of encoded video.
constexpr guint kHeldBytes = 64 << 20;
// How long a live input may take from the first encoded frame to the first data of its other streams, in milliseconds.
constexpr guint kPatience = 10000;

constexpr auto kData =
    GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM);

GstBuffer *header_of(const GstStructure *sound, guint number) {
  const GValue *headers = gst_structure_get_value(sound, "streamheader");
  if (!headers || !GST_VALUE_HOLDS_ARRAY(headers) || number >= gst_value_array_get_size(headers)) return nullptr;
  const GValue *header = gst_value_array_get_value(headers, number);
  return GST_VALUE_HOLDS_BUFFER(header) ? gst_value_get_buffer(header) : nullptr;
}

bool equal(GstBuffer *a, GstBuffer *b) {
  if (!a || !b) return a == b;
  GstMapInfo map;
  if (gst_buffer_get_size(a) != gst_buffer_get_size(b) || !gst_buffer_map(a, &map, GST_MAP_READ)) return false;
  const bool same = gst_buffer_memcmp(b, 0, map.data, map.size) == 0;
  gst_buffer_unmap(a, &map);
  return same;
}

// Whether one track may hold both sounds: a decoder that got the first headers also decodes the second sound. The
// second header of Vorbis and Opus has tags. The frames of FLAC do not need theirs.
bool continues(const GstCaps *first, const GstCaps *next) {
  const GstStructure *const a = gst_caps_get_structure(first, 0), *const b = gst_caps_get_structure(next, 0);
  if (!gst_structure_has_name(a, "audio/x-flac"))
    for (const guint number : {0, 2})
      if (!equal(header_of(a, number), header_of(b, number))) return false;
  const Owned<GstStructure> x(gst_structure_copy(a)), y(gst_structure_copy(b));
  for (const Owned<GstStructure> *each : {&x, &y}) gst_structure_remove_field(each->get(), "streamheader");
  return gst_structure_is_equal(x.get(), y.get());
}

// In a thread of its own, since a full queue waits for the muxer.
void send_end(GstElement *on_behalf, GstPad *pad) {
  gst_element_call_async(
      on_behalf, [](GstElement *, gpointer to) { gst_pad_send_event(GST_PAD(to), gst_event_new_eos()); },
      gst_object_ref(pad), gst_object_unref);
}

}  // namespace

void add_chain(GstElement *pipeline, const std::vector<GstElement *> &chain) {
  for (GstElement *element : chain) gst_bin_add(GST_BIN(pipeline), element);
  for (size_t i = 1; i < chain.size(); i++)
    if (!gst_element_link(chain[i - 1], chain[i])) throw Failure("a stream cannot be linked");
  for (auto element = chain.rbegin(); element != chain.rend(); ++element) gst_element_sync_state_with_parent(*element);
}

struct Branches::Branch {
  Branches *owner;
  Kind kind;
  std::string name;
  GstElement *tail;  // a queue, whose src pad is blocked until the muxer starts; not owned
  Owned<GstPad> sink, entry, out, muxed;
  Owned<GstPad> source;  // none: the branch is free
  Owned<GstCaps> caps;   // of the first stream
  gulong gate = 0;
  bool ready = false;                       // data waits at the gate
  bool empty = false;                       // the end came without data
  bool ended = false;                       // takes no stream any more
  bool later = false;                       // this stream is not its first
  GstSegment segment;                       // of the first stream, which is the output's
  Owned<GstEvent> beginning;                // the segment of a later stream, until its first data tells its time
  gint64 shift = 0;                         // nanoseconds from the time of the stream to that of the output
  GstClockTime last = GST_CLOCK_TIME_NONE;  // of the last frame of video, or of sound that is encoded
  GstClockTime least = 0;                   // from there to the next one
  GstClockTime end = 0;                     // running time of what came last
};

Branches::Branches(GstElement *pipeline, GstElement *muxer, GstElement *sink)
    : pipeline_(pipeline), muxer_(muxer), sink_(sink) {}

Branches::~Branches() {
  while (g_source_remove_by_user_data(this)) continue;
}

void Branches::add(Kind kind, const std::string &name, GstPad *source, GstElement *head, GstElement *entry,
                   GstElement *last, const char *request) {
  auto b = std::make_unique<Branch>();
  b->owner = this;
  b->kind = kind;
  b->name = name;
  b->tail = make("queue");
  g_object_set(b->tail, "max-size-buffers", 0, "max-size-time", guint64(0), "max-size-bytes", kHeldBytes, nullptr);
  add_chain(pipeline_, {b->tail});
  b->sink.reset(gst_element_get_static_pad(head, "sink"));
  b->entry.reset(gst_element_get_static_pad(entry, "sink"));
  b->out.reset(gst_element_get_static_pad(b->tail, "src"));
  b->muxed.reset(gst_element_request_pad_simple(muxer_, request));
  b->source.reset(GST_PAD(gst_object_ref(source)));
  b->caps.reset(gst_pad_get_current_caps(source));
  gst_segment_init(&b->segment, GST_FORMAT_TIME);
  b->gate =
      gst_pad_add_probe(b->out.get(), GstPadProbeType(GST_PAD_PROBE_TYPE_BLOCK | kData), on_gate, b.get(), nullptr);
  gst_pad_add_probe(b->sink.get(), GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                    on_source, b.get(), nullptr);
  if (kind == Kind::kVideo) gst_pad_add_probe(b->entry.get(), GST_PAD_PROBE_TYPE_BUFFER, on_entry, b.get(), nullptr);
  g_signal_connect(b->tail, "overrun", G_CALLBACK(on_overrun), b.get());
  if (!b->muxed || gst_pad_link(b->out.get(), b->muxed.get()) != GST_PAD_LINK_OK)
    throw Failure("the container does not take the stream");
  if (!gst_element_link(last, b->tail)) throw Failure("a stream cannot be linked");
  const Owned<GstPad> sink(GST_PAD(gst_object_ref(b->sink.get())));
  {
    const std::lock_guard guard(lock_);
    branches_.push_back(std::move(b));
  }
  if (gst_pad_link_full(source, sink.get(), GST_PAD_LINK_CHECK_NOTHING) != GST_PAD_LINK_OK)
    throw Failure("a stream cannot be linked");
}

bool Branches::join(Kind kind, GstPad *source) {
  const Owned<GstCaps> caps(gst_pad_get_current_caps(source));
  Branch *found = nullptr;
  {
    const std::lock_guard guard(lock_);
    for (const auto &b : branches_)
      if (!found && b->kind == kind && !b->source && !b->ended &&
          (kind != Kind::kCoded || (caps && b->caps && continues(b->caps.get(), caps.get()))))
        found = b.get();
    if (!found) return false;
    found->later = true;
    found->source.reset(GST_PAD(gst_object_ref(source)));
  }
  return gst_pad_link_full(source, found->sink.get(), GST_PAD_LINK_CHECK_NOTHING) == GST_PAD_LINK_OK;
}

void Branches::leave(GstPad *source) {
  const std::lock_guard guard(lock_);
  bool others = false;
  for (const auto &b : branches_) {
    if (b->source.get() == source) b->source.reset();
    others |= b->source != nullptr;
  }
  if (!others) has_offset_ = false;
}

void Branches::complete() {
  const std::lock_guard guard(lock_);
  if (known_)
    for (const auto &b : branches_) {
      if (b->source || b->ended) continue;
      std::fprintf(stderr, "warning: the input goes on without %s\n", b->name.c_str());
      b->ended = true;
      send_end(pipeline_, b->sink.get());
    }
  known_ = closed_ = true;
  g_idle_add(decide, this);
}

bool Branches::goes_on_with(const GstCaps *coded) {
  const std::lock_guard guard(lock_);
  return std::any_of(branches_.begin(), branches_.end(), [&](const auto &b) {
    return b->kind == Kind::kCoded && !b->ended && b->caps && continues(b->caps.get(), coded);
  });
}

void Branches::finish() {
  const std::lock_guard guard(lock_);
  finishing_ = known_ = closed_ = true;
  for (const auto &b : branches_) {
    gst_pad_add_probe(b->out.get(), GST_PAD_PROBE_TYPE_BUFFER, cut_off, b.get(), nullptr);
    if (!b->ended) end(b.get());
  }
  g_idle_add(decide, this);
}

// At the queue `entry`: what waits before it is not needed.
void Branches::end(Branch *b) {
  b->ended = true;
  send_end(pipeline_, b->entry.get());
}

// ---- From the input -------------------------------------------------------------------------------------------------

// A later part begins where the others end, at the earliest: some inputs start their time anew, or let parts overlap.
void Branches::begin_part(Branch *b, GstClockTime time) {
  GstSegment segment;
  gst_event_copy_segment(Owned<GstEvent>(std::move(b->beginning)).get(), &segment);
  const GstClockTime begin = gst_segment_to_running_time(&segment, GST_FORMAT_TIME, time);
  const std::lock_guard guard(lock_);
  if (!GST_CLOCK_TIME_IS_VALID(begin)) return;
  if (!has_offset_) {
    GstClockTime end = 0;
    for (const auto &each : branches_) end = std::max(end, each->end);
    offset_ = begin < end ? end - begin : 0;
    has_offset_ = true;
  }
  const GstClockTime then =
      gst_segment_position_from_running_time(&b->segment, GST_FORMAT_TIME, std::max(begin + offset_, b->end));
  b->shift = static_cast<gint64>(then) - static_cast<gint64>(time);
}

// Encoders and muxers get one segment, and times that go on.
GstPadProbeReturn Branches::on_event(Branch *b, GstPadProbeInfo *info) {
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  GstClockTime time, duration;
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_STREAM_START:
      return b->later ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
    case GST_EVENT_CAPS:  // as they continue the first caps, the muxer needs no new ones
      return b->later && b->kind == Kind::kCoded ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
    case GST_EVENT_SEGMENT:
      if (b->later) {
        b->beginning.reset(gst_event_ref(event));
        return GST_PAD_PROBE_DROP;
      }
      gst_event_copy_segment(event, &b->segment);
      b->segment.stop = GST_CLOCK_TIME_NONE;
      GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_segment(&b->segment);
      gst_event_unref(event);
      return GST_PAD_PROBE_OK;
    case GST_EVENT_GAP:
      gst_event_parse_gap(event, &time, &duration);
      if (b->beginning) b->owner->begin_part(b, time);
      if (b->shift) {
        GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_gap(time + b->shift, duration);
        gst_event_unref(event);
      }
      return GST_PAD_PROBE_OK;
    default:
      return GST_PAD_PROBE_OK;
  }
}

GstPadProbeReturn Branches::on_source(GstPad *, GstPadProbeInfo *info, gpointer branch) {
  auto *b = static_cast<Branch *>(branch);
  if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) return on_event(b, info);
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  // Headers, which come in the caps too. mp4mux takes those that Ogg has before Opus for sound without a time.
  if (b->kind == Kind::kCoded && GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_HEADER)) return GST_PAD_PROBE_DROP;
  if (b->beginning) b->owner->begin_part(b, GST_BUFFER_PTS(buffer));
  if (b->shift) {
    GST_PAD_PROBE_INFO_DATA(info) = buffer = gst_buffer_make_writable(buffer);
    if (GST_BUFFER_PTS_IS_VALID(buffer)) GST_BUFFER_PTS(buffer) += b->shift;
    if (GST_BUFFER_DTS_IS_VALID(buffer)) GST_BUFFER_DTS(buffer) += b->shift;
  }
  // Muxers drop sound that begins before the segment: of a packet across its start the end is heard, as in .mp4 whose
  // edit list leaves priming out. tsdemux rounds times: sound that begins with the video may come microseconds before.
  const GstClockTime start = b->segment.start, came = GST_BUFFER_PTS(buffer);
  const GstClockTime lasts = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0;
  if (b->kind == Kind::kCoded && came < start && (came + GST_MSECOND > start || came + lasts > start + GST_MSECOND)) {
    GST_PAD_PROBE_INFO_DATA(info) = buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_PTS(buffer) = GST_BUFFER_DTS(buffer) = start;
    if (came + lasts > start) GST_BUFFER_DURATION(buffer) = came + lasts - start;
  }
  // After a delay a camera's frames come all at once, with one time. Encoders and muxers need each at its own. All
  // sound of more than 65,535 Hz has one time if qtdemux reads it uncompressed from a file of FFmpeg's.
  if ((b->kind == Kind::kVideo || b->kind == Kind::kSound) && GST_BUFFER_PTS_IS_VALID(buffer)) {
    if (GST_CLOCK_TIME_IS_VALID(b->last) && GST_BUFFER_PTS(buffer) <= b->last) {
      GST_PAD_PROBE_INFO_DATA(info) = buffer = gst_buffer_make_writable(buffer);
      GST_BUFFER_PTS(buffer) = b->last + b->least;
    }
    b->last = GST_BUFFER_PTS(buffer);
    b->least = GST_MSECOND;  // that WebM tells apart
    if (b->kind == Kind::kSound && GST_BUFFER_DURATION_IS_VALID(buffer)) b->least = GST_BUFFER_DURATION(buffer);
  }
  const GstClockTime begin = gst_segment_to_running_time(&b->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  const GstClockTime length = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 1;
  const std::lock_guard guard(b->owner->lock_);
  if (GST_CLOCK_TIME_IS_VALID(begin)) b->end = std::max(b->end, begin + length);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn Branches::on_entry(GstPad *pad, GstPadProbeInfo *info, gpointer branch) {
  const GstClockTime time = time_at(pad, GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
  if (GST_CLOCK_TIME_IS_VALID(time)) static_cast<Branch *>(branch)->owner->last_frame_ = time;
  return GST_PAD_PROBE_OK;
}

// ---- To the muxer ---------------------------------------------------------------------------------------------------

// All streams end together. Parsers may end with data that has no time: muxers refuse it, and the file would be lost.
GstPadProbeReturn Branches::cut_off(GstPad *pad, GstPadProbeInfo *info, gpointer branch) {
  const GstClockTime time = time_at(pad, GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
  const bool wanted = GST_CLOCK_TIME_IS_VALID(time) && time <= static_cast<Branch *>(branch)->owner->last_frame_;
  return wanted ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

GstPadProbeReturn Branches::on_gate(GstPad *, GstPadProbeInfo *info, gpointer branch) {
  auto *b = static_cast<Branch *>(branch);
  Branches *const self = b->owner;
  const bool event = info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM;
  const GstEventType type = event ? GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) : GST_EVENT_UNKNOWN;
  const bool ends = type == GST_EVENT_EOS;
  const std::lock_guard guard(self->lock_);
  b->ready |= !event || (b->kind == Kind::kText && type == GST_EVENT_CAPS);  // a text may be minutes away
  b->empty |= ends && !b->ready;
  if (b->kind == Kind::kVideo && b->ready && !self->timer_)
    self->timer_ = g_timeout_add(kPatience, lose_patience, self);
  g_idle_add(decide, self);
  return event && !ends ? GST_PAD_PROBE_PASS : GST_PAD_PROBE_OK;
}

// Another branch gets nothing, and the muxer waits for it.
void Branches::on_overrun(GstElement *, gpointer branch) {
  const auto *full = static_cast<Branch *>(branch);
  Branches *const self = full->owner;
  const std::lock_guard guard(self->lock_);
  if (!self->started_) {
    self->impatient_ = true;
    g_idle_add(decide, self);
    return;
  }
  for (const auto &b : self->branches_) {
    guint waiting = 0;
    g_object_get(b->tail, "current-level-buffers", &waiting, nullptr);
    if (b.get() == full || b->ended || b->kind == Kind::kText || waiting) continue;
    std::fprintf(stderr, "warning: %s has stopped, and is left out from there on\n", b->name.c_str());
    self->end(b.get());
  }
}

// A camera may announce sound that it never sends. Other inputs may take their time.
gboolean Branches::lose_patience(gpointer branches) {
  auto *self = static_cast<Branches *>(branches);
  const std::lock_guard guard(self->lock_);
  self->impatient_ |= self->is_live();
  g_idle_add(decide, self);
  return G_SOURCE_REMOVE;
}

bool Branches::is_live() {
  gboolean live = FALSE;
  GstQuery *query = gst_query_new_latency();
  for (const auto &b : branches_)
    if (b->source && gst_pad_query(b->source.get(), query)) {
      gst_query_parse_latency(query, &live, nullptr, nullptr);
      if (live) break;
    }
  gst_query_unref(query);
  return live;
}

gboolean Branches::decide(gpointer branches) {
  auto *self = static_cast<Branches *>(branches);
  const std::lock_guard guard(self->lock_);
  bool all = self->known_ && !self->branches_.empty(), video = false;
  for (const auto &b : self->branches_) {
    all &= b->ready || b->empty;
    video |= b->kind == Kind::kVideo && (b->ready || b->empty);
  }
  if (!self->started_ && (all || (self->impatient_ && video))) self->start();
  return G_SOURCE_REMOVE;
}

void Branches::start() {
  started_ = closed_ = true;
  if (!known_) std::fprintf(stderr, "warning: what else the input announces has not come, and is left out\n");
  bool any = false;
  for (const auto &b : branches_) {
    if (!b->ready) discard(b.get());
    any |= b->ready;
  }
  for (const auto &b : branches_)
    if (b->ready) gst_pad_remove_probe(b->out.get(), b->gate);
  if (!any) send_end(pipeline_, Owned<GstPad>(gst_element_get_static_pad(sink_, "sink")).get());
}

void Branches::discard(Branch *b) {
  if (!finishing_) std::fprintf(stderr, "warning: %s has no data, and is left out\n", b->name.c_str());
  b->ended = true;
  gst_pad_add_probe(
      b->sink.get(), kData, [](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_DROP; }, nullptr, nullptr);
  gst_pad_unlink(b->out.get(), b->muxed.get());
  gst_element_release_request_pad(muxer_, b->muxed.get());
}

}  // namespace media
