// SPDX-License-Identifier: LGPL-2.1-or-later
#include "chapters.h"

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

bool has_mp4_chapters(const std::string &file) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return false;
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return false;
  unsigned char head[8] = {};
  const bool is_mp4 = std::fread(head, 1, sizeof head, from) == sizeof head && !std::memcmp(head + 4, "ftyp", 4);
  const std::string streams = is_mp4 ? description_of(from) : "";
  std::fclose(from);
  if (streams.find("chpl") != std::string::npos) return true;  // a list of chapters
  // A stream that refers to one of them: the box `tref` begins with a size and `chap`.
  for (size_t at = streams.find("tref"); at != std::string::npos; at = streams.find("tref", at + 4))
    if (at + 12 <= streams.size() && streams.compare(at + 8, 4, "chap") == 0) return true;
  return false;
}

}  // namespace media
