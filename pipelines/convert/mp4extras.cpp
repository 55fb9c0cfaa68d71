// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4extras.h"

#include <glib/gstdio.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../media.h"

namespace media {

namespace {

uint64_t number(const unsigned char *bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; i++) value = value << 8 | bytes[i];
  return value;
}

// A table of counts and values, read value by value.
struct Runs {
  const guint8 *at = nullptr, *end = nullptr;
  guint32 left = 0;
  gint64 value = 0;

  explicit Runs(const std::vector<Box> &boxes) {
    if (!boxes.empty() && boxes[0].end - boxes[0].data >= 8) at = boxes[0].data + 8, end = boxes[0].end;
  }
  bool next() {
    for (; !left; at += 8) {
      if (end - at < 8) return false;
      left = GST_READ_UINT32_BE(at);
      value = static_cast<gint32>(GST_READ_UINT32_BE(at + 4));
    }
    left--;
    return true;
  }
};

// Where the frame of a track that is shown last ends, in units of the media.
gint64 end_of(const Box &samples) {
  Runs durations(samples.inside("stts")), offsets(samples.inside("ctts"));
  gint64 begin = 0, end = 0;
  for (; durations.next(); begin += durations.value)
    end = std::max(end, begin + durations.value + (offsets.next() ? offsets.value : 0));
  return end;
}

// The last frame or packet has no duration where the input tells none, and players leave it out. It gets the duration
// of the one before it, which is returned.
guint32 lengthen_last(const Box &samples) {
  const std::vector<Box> times = samples.inside("stts");
  constexpr int kHead = 8, kTwoRuns = 16;  // bytes
  if (times.empty() || times[0].end - times[0].data < kHead + kTwoRuns) return 0;
  guint8 *const last = times[0].end - 4;
  const guint32 before = GST_READ_UINT32_BE(last - 8);
  if (GST_READ_UINT32_BE(last)) return 0;
  GST_WRITE_UINT32_BE(last, before);
  return before;
}

bool is_shown_or_heard(const Box &media) {
  const std::vector<Box> handlers = media.inside("hdlr");
  return !handlers.empty() && (handlers[0].has(8, "vide") || handlers[0].has(8, "soun"));
}

// Shows the media of a track to their end. Returns the duration of the track in units of the whole.
guint64 show_to_end(const Box &track, const Box &media, guint32 scale) {
  guint64 sum = 0;
  const Length own(media.inside("mdhd"));
  const std::vector<Edit> edits = edits_of(track);
  for (const Box &information : media.inside("minf"))
    for (const Box &samples : information.inside("stbl")) {
      if (own.scale && is_shown_or_heard(media)) own.set(own.get() + lengthen_last(samples));
      if (const gint64 end = end_of(samples); own.scale && !edits.empty() && end > edits.back().entry) {
        const Edit &last = edits.back();
        const guint64 length = gst_util_uint64_scale(end - std::max<gint64>(last.entry, 0), scale, own.scale);
        if (last.entry >= 0 && length > last.duration.get()) last.duration.set(length);
      }
    }
  for (const Edit &edit : edits) sum += edit.duration.get();
  for (const Box &head : track.inside("tkhd")) {
    const bool wide = head.end > head.data && *head.data == 1;
    const Number length = {head.data + (wide ? 28 : 20), wide};
    if (head.end - head.data >= 36 && sum > length.get()) length.set(sum);
  }
  return sum;
}

}  // namespace

bool has_chapters(const Box &movie) {
  for (const Box &data : movie.inside("udta"))
    if (!data.inside("chpl").empty()) return true;
  for (const Box &track : movie.inside("trak"))
    for (const Box &references : track.inside("tref"))
      if (!references.inside("chap").empty()) return true;
  return false;
}

bool has_timecodes(const Box &movie) {
  for (const Box &track : movie.inside("trak"))
    for (const Box &media : track.inside("mdia"))
      for (const Box &handler : media.inside("hdlr"))
        if (handler.has(8, "tmcd")) return true;
  return false;
}

int transport_programs(const std::string &file) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return 0;
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return 0;
  std::string head(1 << 20, 0);  // the table of programs comes several times a second
  head.resize(std::fread(head.data(), 1, head.size(), from));
  std::fclose(from);
  constexpr size_t kPacket = 188;  // bytes
  for (size_t at = 0; at + kPacket <= head.size() && head[at] == 0x47; at += kPacket) {
    const auto *const packet = reinterpret_cast<const unsigned char *>(head.data()) + at, *const end = packet + kPacket;
    const bool begins = packet[1] & 0x40, is_table = (number(packet + 1, 2) & 0x1fff) == 0;
    if (!begins || !is_table) continue;
    const unsigned char *table = packet + 4 + (packet[3] & 0x20 ? 1 + packet[4] : 0);
    if (table < end) table += 1 + *table;
    if (table + 8 >= end) continue;
    const int length = static_cast<int>(number(table + 1, 2) & 0xfff);
    const unsigned char *const last = std::min(end, table + 3 + length - 4);
    int count = 0;
    for (const unsigned char *program = table + 8; program + 4 <= last; program += 4) count += number(program, 2) != 0;
    return count;
  }
  return 0;
}

void mend_durations_of(GstElement *muxer) {
  const auto mend = [](const Box &movie) {
    const Length whole(movie.inside("mvhd"));
    for (const Box &track : movie.inside("trak"))
      for (const Box &media : track.inside("mdia"))
        if (whole.scale)
          if (const guint64 length = show_to_end(track, media, whole.scale); length > whole.get()) whole.set(length);
  };
  watch_movie(Owned<GstPad>(gst_element_get_static_pad(muxer, "src")).get(), mend);
}

void mend_opus(GstElement *muxer) {
  // In a box of Opus two bytes, the samples to skip, and four, the rate, come after the version and the channels.
  const auto mend = [](const Box &movie) {
    constexpr char kType[] = {'d', 'O', 'p', 's'};
    constexpr int kBox = 15;  // bytes
    for (guint8 *box = movie.data; (box = std::search(box, movie.end, kType, kType + 4)) < movie.end - kBox; box += 4) {
      if (GST_READ_UINT32_LE(box + 8) >= GST_READ_UINT32_BE(box + 8)) continue;  // a rate is far below 2^24 Hz
      std::reverse(box + 6, box + 8);
      std::reverse(box + 8, box + 12);
    }
  };
  watch_movie(Owned<GstPad>(gst_element_get_static_pad(muxer, "src")).get(), mend);
}

}  // namespace media
