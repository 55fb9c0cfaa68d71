// SPDX-License-Identifier: LGPL-2.1-or-later
#include "layouts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>

namespace cudaconv::verify {

namespace {

// `samples`: the bits of a sample; BE: big endian; <<n: shifted up by n bits in a 16-bit word. Or "fields": ten bits
// each, from the lowest bit of a 32-bit word up; an A has two bits.
//
// `planes`: for each plane the channels of a pixel in order of address: L: luma, grey or a colour; C: chroma; A: alpha;
// X: unused. After a colon: the pixels of the frame that a pixel covers. After an @: the number of the plane of memory,
// if it is not the next. LCLC and CLCL are two pixels of packed 4:2:2.
struct Entry {
  const char *samples, *names, *planes;
};

constexpr Entry kEntries[] = {
    {"8", "GRAY8", "L"},
    {"8", "RGB BGR", "LLL"},
    {"8", "RGBA BGRA RBGA", "LLLA"},
    {"8", "ARGB ABGR", "ALLL"},
    {"8", "RGBx BGRx", "LLLX"},
    {"8", "xRGB xBGR", "XLLL"},
    {"8", "RGBP", "L L L"},
    {"8", "BGRP", "L@2 L@1 L@0"},
    {"8", "GBR", "L@2 L@0 L@1"},
    {"8", "GBRA", "L@2 L@0 L@1 A@3"},
    {"8", "I420", "L C:2x2 C:2x2"},
    {"8", "YV12", "L C:2x2@2 C:2x2@1"},
    {"8", "Y42B", "L C:2x1 C:2x1"},
    {"8", "Y444", "L C C"},
    {"8", "Y41B", "L C:4x1 C:4x1"},
    {"8", "YUV9", "L C:4x4 C:4x4"},
    {"8", "YVU9", "L C:4x4@2 C:4x4@1"},
    {"8", "NV12 NV21", "L CC:2x2"},
    {"8", "NV16 NV61", "L CC:2x1"},
    {"8", "NV24", "L CC"},
    {"8", "A420", "L C:2x2 C:2x2 A"},
    {"8", "A422", "L C:2x1 C:2x1 A"},
    {"8", "A444", "L C C A"},
    {"8", "AV12", "L CC:2x2 A"},
    {"8", "AYUV", "ALCC"},
    {"8", "VUYA", "CCLA"},
    {"8", "v308", "LCC"},
    {"8", "IYU2", "CLC"},
    {"8", "YUY2 YVYU", "LCLC"},
    {"8", "UYVY VYUY", "CLCL"},
    {"10<<6", "P010_10LE", "L CC:2x2"},
    {"10BE<<6", "P010_10BE", "L CC:2x2"},
    {"12<<4", "P012_LE", "L CC:2x2"},
    {"12BE<<4", "P012_BE", "L CC:2x2"},
    {"16", "P016_LE", "L CC:2x2"},
    {"16BE", "P016_BE", "L CC:2x2"},
    {"10", "I420_10LE", "L C:2x2 C:2x2"},
    {"10BE", "I420_10BE", "L C:2x2 C:2x2"},
    {"12", "I420_12LE", "L C:2x2 C:2x2"},
    {"12BE", "I420_12BE", "L C:2x2 C:2x2"},
    {"10", "I422_10LE", "L C:2x1 C:2x1"},
    {"10BE", "I422_10BE", "L C:2x1 C:2x1"},
    {"12", "I422_12LE", "L C:2x1 C:2x1"},
    {"12BE", "I422_12BE", "L C:2x1 C:2x1"},
    {"10", "Y444_10LE", "L C C"},
    {"10BE", "Y444_10BE", "L C C"},
    {"12", "Y444_12LE", "L C C"},
    {"12BE", "Y444_12BE", "L C C"},
    {"16", "Y444_16LE", "L C C"},
    {"16BE", "Y444_16BE", "L C C"},
    {"10", "A420_10LE", "L C:2x2 C:2x2 A"},
    {"10BE", "A420_10BE", "L C:2x2 C:2x2 A"},
    {"12", "A420_12LE", "L C:2x2 C:2x2 A"},
    {"12BE", "A420_12BE", "L C:2x2 C:2x2 A"},
    {"16", "A420_16LE", "L C:2x2 C:2x2 A"},
    {"16BE", "A420_16BE", "L C:2x2 C:2x2 A"},
    {"10", "A422_10LE", "L C:2x1 C:2x1 A"},
    {"10BE", "A422_10BE", "L C:2x1 C:2x1 A"},
    {"12", "A422_12LE", "L C:2x1 C:2x1 A"},
    {"12BE", "A422_12BE", "L C:2x1 C:2x1 A"},
    {"16", "A422_16LE", "L C:2x1 C:2x1 A"},
    {"16BE", "A422_16BE", "L C:2x1 C:2x1 A"},
    {"10", "A444_10LE", "L C C A"},
    {"10BE", "A444_10BE", "L C C A"},
    {"12", "A444_12LE", "L C C A"},
    {"12BE", "A444_12BE", "L C C A"},
    {"16", "A444_16LE", "L C C A"},
    {"16BE", "A444_16BE", "L C C A"},
    {"10", "GBR_10LE", "L@2 L@0 L@1"},
    {"10BE", "GBR_10BE", "L@2 L@0 L@1"},
    {"12", "GBR_12LE", "L@2 L@0 L@1"},
    {"12BE", "GBR_12BE", "L@2 L@0 L@1"},
    {"16", "GBR_16LE", "L@2 L@0 L@1"},
    {"16BE", "GBR_16BE", "L@2 L@0 L@1"},
    {"10", "GBRA_10LE", "L@2 L@0 L@1 A@3"},
    {"10BE", "GBRA_10BE", "L@2 L@0 L@1 A@3"},
    {"12", "GBRA_12LE", "L@2 L@0 L@1 A@3"},
    {"12BE", "GBRA_12BE", "L@2 L@0 L@1 A@3"},
    {"16", "ARGB64 ARGB64_LE ABGR64_LE", "ALLL"},
    {"16BE", "ARGB64_BE ABGR64_BE", "ALLL"},
    {"16", "RGBA64_LE BGRA64_LE", "LLLA"},
    {"16BE", "RGBA64_BE BGRA64_BE", "LLLA"},
    {"16", "AYUV64", "ALCC"},
    {"12<<4", "Y412_LE", "CLCA"},
    {"12BE<<4", "Y412_BE", "CLCA"},
    {"16", "Y416_LE", "CLCA"},
    {"16BE", "Y416_BE", "CLCA"},
    {"10<<6", "Y210", "LCLC"},
    {"12<<4", "Y212_LE", "LCLC"},
    {"12BE<<4", "Y212_BE", "LCLC"},
    {"16", "Y216_LE", "LCLC"},
    {"16BE", "Y216_BE", "LCLC"},
    {"16", "v216", "CLCL"},
    {"fields", "Y410", "CLCA"},
    {"fields", "BGR10A2_LE RGB10A2_LE", "LLLA"},
    {"fields", "BGR10x2_LE RGB10x2_LE", "LLL"},
    {"16", "GRAY16_LE", "L"},
    {"16BE", "GRAY16_BE", "L"},
    {"10", "GRAY10_LE16", "L"},
};

std::vector<std::string> words_of(const std::string &text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

struct Samples {
  Container container = Container::U8;
  int depth = 8, shift = 0;
};

Samples samples_of(const std::string &text) {
  if (text == "fields") return {Container::Packed32, 10, 0};
  Samples s;
  s.depth = std::atoi(text.c_str());
  if (s.depth > 8) s.container = text.find("BE") == std::string::npos ? Container::U16 : Container::U16BE;
  const size_t shift = text.find("<<");
  if (shift != std::string::npos) s.shift = std::atoi(text.c_str() + shift + 2);
  return s;
}

Role role_of(char letter) {
  return letter == 'C' ? Role::Chroma : letter == 'A' ? Role::Alpha : letter == 'X' ? Role::Padding : Role::Luma;
}

int log2_of(int n) {
  return n == 4 ? 2 : n == 2 ? 1 : 0;
}

void add_channel(PlaneLayout &plane, Role role, int position, const Samples &samples) {
  ChannelLayout &channel = plane.channel[plane.channels++];
  const bool fields = samples.container == Container::Packed32;
  channel.role = role;
  channel.offset = static_cast<uint8_t>(fields ? 10 * position : position);
  channel.depth = static_cast<uint8_t>(fields && role == Role::Alpha ? 2 : samples.depth);
  channel.shift = static_cast<uint8_t>(samples.shift);
}

// In packed 4:2:2, every other container is a pixel of luma. A pixel of chroma is every fourth container, and the
// second container after it.
void add_packed422(FrameLayout &layout, const std::string &pattern, int width, int height, const Samples &samples) {
  for (const char letter : {'L', 'C'}) {
    PlaneLayout &plane = layout.plane[layout.planes++];
    const bool chroma = letter == 'C';
    plane.width = chroma ? (width + 1) / 2 : width;
    plane.height = height;
    plane.sub_x = chroma;
    plane.step = chroma ? 4 : 2;
    plane.first = static_cast<int>(pattern.find(letter));
    plane.container = samples.container;
    add_channel(plane, role_of(letter), 0, samples);
    if (chroma) add_channel(plane, role_of(letter), 2, samples);
  }
}

void add_plane(FrameLayout &layout, const std::string &text, int width, int height, const Samples &samples) {
  PlaneLayout &plane = layout.plane[layout.planes];
  plane.memory_plane = layout.planes++;
  int span_x = 1, span_y = 1;
  const size_t span = text.find(':'), memory = text.find('@');
  if (span != std::string::npos && std::sscanf(text.c_str() + span, ":%dx%d", &span_x, &span_y) != 2) std::abort();
  if (memory != std::string::npos) plane.memory_plane = std::atoi(text.c_str() + memory + 1);
  plane.width = (width + span_x - 1) / span_x;
  plane.height = (height + span_y - 1) / span_y;
  plane.sub_x = log2_of(span_x);
  plane.sub_y = log2_of(span_y);
  plane.container = samples.container;
  const std::string letters = text.substr(0, std::min(span, memory));
  for (const char letter : letters) add_channel(plane, role_of(letter), plane.channels, samples);
  plane.step = samples.container == Container::Packed32 ? 1 : plane.channels;
}

}  // namespace

const std::vector<std::string> &format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Entry &entry : kEntries)
      for (const std::string &name : words_of(entry.names)) all.push_back(name);
    return all;
  }();
  return names;
}

FrameLayout layout_of(const std::string &format, int width, int height) {
  static const std::map<std::string, const Entry *> entries = [] {
    std::map<std::string, const Entry *> all;
    for (const Entry &entry : kEntries)
      for (const std::string &name : words_of(entry.names)) all[name] = &entry;
    return all;
  }();
  const auto at = entries.find(format);
  if (at == entries.end()) throw std::runtime_error("no format " + format);
  const Entry &entry = *at->second;
  const Samples samples = samples_of(entry.samples);
  FrameLayout layout;
  if (!std::strcmp(entry.planes, "LCLC") || !std::strcmp(entry.planes, "CLCL"))
    add_packed422(layout, entry.planes, width, height, samples);
  else
    for (const std::string &plane : words_of(entry.planes)) add_plane(layout, plane, width, height, samples);
  return layout;
}

}  // namespace cudaconv::verify
