// SPDX-License-Identifier: LGPL-2.1-or-later
#include "boxes.h"

#include <gst/base/gstadapter.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "media.h"

namespace media {

std::vector<Box> Box::inside(const char *type) const {
  std::vector<Box> found;
  guint32 size;  // with its own eight bytes
  for (guint8 *at = data; end - at >= 8 && (size = GST_READ_UINT32_BE(at)) >= 8 && size <= end - at; at += size)
    if (!std::memcmp(at + 4, type, 4)) found.push_back({at + 8, at + size});
  return found;
}

bool Box::has(ptrdiff_t distance, const char *letters) const {
  return end - data >= distance + 4 && !std::memcmp(data + distance, letters, 4);
}

guint64 Number::get() const {
  return wide ? GST_READ_UINT64_BE(at) : GST_READ_UINT32_BE(at);
}

void Number::set(guint64 number) const {
  if (wide)
    GST_WRITE_UINT64_BE(at, number);
  else
    GST_WRITE_UINT32_BE(at, static_cast<guint32>(std::min<guint64>(number, G_MAXUINT32 - 1)));
}

Length::Length(const std::vector<Box> &boxes) {
  if (boxes.empty() || boxes[0].end - boxes[0].data < 20) return;
  wide = *boxes[0].data == 1;
  if (wide && boxes[0].end - boxes[0].data < 32) return;
  at = boxes[0].data + (wide ? 24 : 16);
  scale = GST_READ_UINT32_BE(at - 4);
}

std::vector<Edit> edits_of(const Box &track) {
  std::vector<Edit> edits;
  for (const Box &all : track.inside("edts"))
    for (const Box &list : all.inside("elst")) {
      const bool wide = list.end > list.data && *list.data == 1;
      const int size = wide ? 20 : 12;
      for (guint8 *at = list.data + 8; list.end - at >= size; at += size)
        edits.push_back(
            {{at, wide},
             wide ? static_cast<gint64>(GST_READ_UINT64_BE(at + 8)) : static_cast<gint32>(GST_READ_UINT32_BE(at + 4))});
    }
  return edits;
}

namespace {

constexpr gsize kHead = 8, kWideHead = 16;  // bytes of the size and the type; and of a size of 64 bits
constexpr guint64 kMost = 256 << 20;        // bytes of a description that is looked at

// A pad, and what waits there.
struct Watch {
  std::vector<std::function<void(const Box &)>> looks;
  GstAdapter *pieces = gst_adapter_new();
  guint64 skipped = 0;  // bytes to the next box
  bool done = false;    // the box has passed

  ~Watch() { g_object_unref(pieces); }

  GstBuffer *show(GstBuffer *box) {
    GstMapInfo map;
    box = gst_buffer_make_writable(box);
    if (!gst_buffer_map(box, &map, GST_MAP_READWRITE)) return box;
    for (const auto &look : looks) look({map.data + kHead, map.data + map.size});
    gst_buffer_unmap(box, &map);
    return box;
  }

  // The data that may go on; nullptr: nothing yet.
  GstBuffer *next() {
    const gsize ready = gst_adapter_available(pieces);
    if (ready && done) return gst_adapter_take_buffer(pieces, ready);
    if (ready && skipped) {
      const gsize part = std::min<guint64>(ready, skipped);
      skipped -= part;
      return gst_adapter_take_buffer(pieces, part);
    }
    guint8 head[kWideHead] = {};
    if (ready < kHead) return nullptr;
    gst_adapter_copy(pieces, head, 0, std::min(ready, kWideHead));
    const bool wide = GST_READ_UINT32_BE(head) == 1;
    if (wide && ready < kWideHead) return nullptr;
    const guint64 size = wide ? GST_READ_UINT64_BE(head + kHead) : GST_READ_UINT32_BE(head);
    const bool found = !wide && size < kMost && !std::memcmp(head + 4, "moov", 4);
    if (found && ready < size) return nullptr;
    done = found || size < kHead;  // the last box may have no size
    if (found) return show(gst_adapter_take_buffer(pieces, size));
    skipped = size;
    return next();
  }
};

GstPadProbeReturn on_data(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
  auto *const watch = static_cast<Watch *>(data);
  const auto pass = [&] {
    GstFlowReturn flow = GST_FLOW_OK;
    while (GstBuffer *part = flow == GST_FLOW_OK ? watch->next() : nullptr)
      flow = GST_PAD_CHAINFUNC(pad)(pad, GST_OBJECT_PARENT(pad), part);  // not through the probe again
    return flow;
  };
  if (info->type & (GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH)) {
    const GstEventType type = GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info));
    if (type == GST_EVENT_EOS) watch->done = true, pass();
    if (type == GST_EVENT_FLUSH_STOP || type == GST_EVENT_SEGMENT) {  // the input goes on elsewhere, at a box
      gst_adapter_clear(watch->pieces);
      watch->skipped = 0;
    }
    return GST_PAD_PROBE_OK;
  }
  if (watch->done) return GST_PAD_PROBE_OK;
  GstBuffer *const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  guint8 size[4];
  if (gst_buffer_memcmp(buffer, 4, "moov", 4) == 0 && gst_buffer_extract(buffer, 0, size, 4) == 4 &&
      gst_buffer_get_size(buffer) == GST_READ_UINT32_BE(size)) {
    GST_PAD_PROBE_INFO_DATA(info) = watch->show(buffer);
  } else if (info->type & GST_PAD_PROBE_TYPE_PUSH && GST_PAD_IS_SINK(pad)) {
    gst_adapter_push(watch->pieces, buffer);
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = pass();
    return GST_PAD_PROBE_HANDLED;
  }
  return GST_PAD_PROBE_OK;
}

}  // namespace

void watch_movie(GstPad *pad, std::function<void(const Box &movie)> look) {
  constexpr char kWatch[] = "cudaconv-movie";  // where the pad keeps it
  auto *watch = static_cast<Watch *>(g_object_get_data(G_OBJECT(pad), kWatch));
  if (!watch) {
    watch = new Watch;
    g_object_set_data_full(G_OBJECT(pad), kWatch, watch, [](gpointer data) { delete static_cast<Watch *>(data); });
    gst_pad_add_probe(pad,
                      GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM |
                                      GST_PAD_PROBE_TYPE_EVENT_FLUSH | GST_PAD_PROBE_TYPE_SCHEDULING),
                      on_data, watch, nullptr);
  }
  watch->looks.push_back(std::move(look));
}

}  // namespace media
