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

// Whether the first box is one that MP4 and QuickTime files begin with.
bool is_mp4(FILE *file) {
  char head[8] = {};
  if (std::fread(head, 1, sizeof head, file) != sizeof head) return false;
  for (const char *type : {"ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"})
    if (!std::memcmp(head + 4, type, 4)) return true;
  return false;
}

// The box `moov`, which describes all streams; empty where there is none.
std::string description_of(FILE *file) {
  constexpr uint64_t kMost = 256 << 20;
  unsigned char head[16];
  for (long at = 0; std::fseek(file, at, SEEK_SET) == 0 && std::fread(head, 1, 8, file) == 8;) {
    uint64_t size = number(head, 4), used = 8;
    if (size == 1 && std::fread(head + 8, 1, 8, file) == 8) size = number(head + 8, 8), used = 16;
    if (size < used || size > INT64_MAX / 2) break;
    if (!std::memcmp(head + 4, "moov", 4) && size - used < kMost) {
      std::string body(size - used, 0);
      body.resize(std::fread(body.data(), 1, body.size(), file));
      return body;
    }
    at += static_cast<long>(size);
  }
  return "";
}

}  // namespace

Mp4Extras mp4_extras(const std::string &file) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return {};
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return {};
  const std::string streams = is_mp4(from) ? description_of(from) : "";
  std::fclose(from);
  // Whether a box of the type has the word so far behind its type.
  const auto has = [&](const char *type, size_t distance, const char *word) {
    for (size_t at = streams.find(type); at != std::string::npos; at = streams.find(type, at + 4))
      if (at + distance <= streams.size() && streams.compare(at + distance, 4, word) == 0) return true;
    return false;
  };
  // Chapters are a list, or a stream that another one refers to: `tref` has a box, which begins with its size. The
  // handler of a stream comes after eight bytes.
  return {has("chpl", 0, "chpl") || has("tref", 8, "chap"), has("hdlr", 12, "tmcd")};
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

void mend_opus(GstElement *muxer) {
  // The description of all streams is one buffer. In a box of Opus two bytes, the samples to skip, and four, the rate,
  // come after the version and the channels.
  const auto mend = +[](GstPad *, GstPadProbeInfo *info, gpointer) {
    GstBuffer *const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (gst_buffer_memcmp(buffer, 4, "moov", 4) != 0) return GST_PAD_PROBE_OK;
    GstBuffer *const mended = gst_buffer_make_writable(buffer);
    GST_PAD_PROBE_INFO_DATA(info) = mended;
    GstMapInfo map;
    if (!gst_buffer_map(mended, &map, GST_MAP_READWRITE)) return GST_PAD_PROBE_OK;
    guint8 *const end = map.data + map.size;
    constexpr char kType[] = {'d', 'O', 'p', 's'};
    constexpr int kBox = 15;  // bytes
    for (guint8 *box = map.data; (box = std::search(box, end, kType, kType + 4)) < end - kBox; box += 4) {
      if (GST_READ_UINT32_LE(box + 8) >= GST_READ_UINT32_BE(box + 8)) continue;  // a rate is far below 2^24 Hz
      std::reverse(box + 6, box + 8);
      std::reverse(box + 8, box + 12);
    }
    gst_buffer_unmap(mended, &map);
    return GST_PAD_PROBE_OK;
  };
  const Owned<GstPad> out(gst_element_get_static_pad(muxer, "src"));
  gst_pad_add_probe(out.get(), GST_PAD_PROBE_TYPE_BUFFER, mend, nullptr, nullptr);
}

}  // namespace media
