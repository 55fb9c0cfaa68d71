// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/messages.h"

#include <charconv>
#include <cmath>

namespace cudaconv {

namespace {

constexpr int kQuotedCharacters = 40;

// The number of bytes of the UTF-8 character at `at`; 0 if it is invalid or cannot be printed.
size_t character_bytes(const char *at, const char *end) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(at[i]); };
  const size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes == 1) return byte(0) >= ' ' && byte(0) != 0x7f;
  if (bytes == 0 || byte(0) > 0xf4 || static_cast<size_t>(end - at) < bytes) return 0;
  for (size_t i = 1; i < bytes; i++)
    if (byte(i) >> 6 != 2) return 0;
  // Rejects control characters, overlong forms, surrogates, and code points above U+10FFFF.
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
  if ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) >= 0xa0)) return 0;
  if ((byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) >= 0x90)) return 0;
  return bytes;
}

}  // namespace

std::string number_text(double v) {
  char text[32];
  const bool integer = v == std::floor(v) && std::fabs(v) < 1e15;  // 2000000000, not 2e+09
  const auto end = integer ? std::to_chars(text, text + sizeof(text), static_cast<long long>(v))
                           : std::to_chars(text, text + sizeof(text), v);
  return std::string(text, end.ptr);
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  const char *at = text.data(), *const end = at + text.size();
  for (int i = 0; at != end && i < kQuotedCharacters; i++) {
    const size_t bytes = character_bytes(at, end);
    result += bytes ? std::string(at, bytes) : "?";
    at += bytes ? bytes : 1;
  }
  return result + (at == end ? "\"" : "...\"");
}

void refuse(const std::string &text, const char *file, int line) {
  throw Error(Error::Kind::Settings, text, file, line);
}

}  // namespace cudaconv
