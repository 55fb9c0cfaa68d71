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
