// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mp4extras.h"

#include <glib/gstdio.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

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

}  // namespace media
