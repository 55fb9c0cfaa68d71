// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Fuzzes settings and regions on a frame of any format. The CPU filters with a plan, or an Error gives the reason why
// not. The source and all bytes outside the picture do not change. The result is the same with other strides, with
// another number of threads, and in place.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend.h"
#include "bytes.h"
#include "guarded_frame.h"
#include "layouts.h"
#include "picture.h"

using namespace cudaconv;
using test::GuardedFrame;

namespace {

constexpr int kLargestSide = 64;    // largest side of a frame
constexpr int kMostIterations = 4;  // more iterations only take longer

template <typename Enum, size_t n>
Enum one_of(fuzz::Bytes &bytes, const Named<Enum> (&names)[n]) {
  return names[bytes.below(n)].value;
}

// Makes coefficients of any values. Their number is right, since the parser checks it.
Coefficients read_coefficients(fuzz::Bytes &bytes) {
  Coefficients c;
  const int shape = bytes.byte();  // 0: none
  if (shape == 0) return c;
  c.width = 2 * (shape % 16) + 1;
  c.height = 2 * (shape / 16) + 1;
  const int kind = bytes.byte();
  for (int i = 0; i < c.width * c.height; i++) {
    if (bytes.empty() && i > 0)
      c.value.push_back(c.value[i / 2]);
    else
      c.value.push_back(kind < 0x80 ? bytes.raw<int8_t>() : bytes.number());
    if (!std::isfinite(c.value.back())) c.value.back() = 1;
  }
  return c;
}

FilterSettings read_settings(fuzz::Bytes &bytes) {
  FilterSettings s;
  s.mask = one_of(bytes, kMaskNames);
  s.size = bytes.raw<int16_t>();
  s.sigma = bytes.number();
  if (s.mask == Mask::Bilateral) s.sigma_range = bytes.number();
  s.amount = bytes.number();
  s.shape = one_of(bytes, kShapeNames);
  s.divisor = bytes.number();
  s.bias = bytes.number();
  s.negative = one_of(bytes, kNegativeNames);
  s.magnitude = one_of(bytes, kMagnitudeNames);
  s.iterations = bytes.raw<int8_t>() % (kMostIterations + 1);
  s.border = one_of(bytes, kBorderNames);
  s.chroma = one_of(bytes, kChromaNames);
  s.alpha = one_of(bytes, kAlphaNames);
  s.method = one_of(bytes, kMethodNames);
  return s;
}

// Short inputs end before these settings; their windows are square.
void read_more(fuzz::Bytes &bytes, FilterSettings *s) {
  if (bytes.empty()) return;
  s->size_y = bytes.raw<int16_t>();
  const int more = bytes.byte();
  if (more & 1) s->sigma_y = bytes.number();
  if (more & 2) s->threshold = bytes.number();
}

FrameLayout read_layout(fuzz::Bytes &bytes) {
  const std::vector<std::string> &names = verify::format_names();
  const std::string &format = names[bytes.byte() % names.size()];
  const int width = 1 + bytes.below(kLargestSide), height = 1 + bytes.below(kLargestSide);
  FrameLayout layout = verify::layout_of(format, width, height);
  layout.interlaced = bytes.flag();
  return layout;
}

Regions read_regions(fuzz::Bytes &bytes) {
  Regions regions;
  const int flags = bytes.byte();
  if (!(flags & 1)) return regions;
  regions.active = true;
  regions.ellipse = flags & 2;
  regions.invert = flags & 4;
  if (flags & 128 && !regions.invert) regions.feather = bytes.raw<uint16_t>();
  if (flags & 8) {  // the frame is one field
    regions.row_step = 2;
    regions.first_row = flags >> 4 & 1;
  }
  if (flags & 32) {  // every second column
    regions.column_step = 2;
    regions.first_column = flags >> 6 & 1;
  }
  for (int n = bytes.below(8); n > 0; n--) {
    Region r = {bytes.integer(), bytes.integer(), bytes.integer(), bytes.integer()};
    r.rotation = bytes.flag() ? bytes.number() : 0;
    if (r.width > 0 && r.height > 0 && std::isfinite(r.rotation)) regions.region.push_back(r);
  }
  for (int n = bytes.below(3); n > 0; n--) {
    RegionMask m;
    m.box = {bytes.integer(), bytes.integer(), bytes.integer(), bytes.integer()};
    m.width = 1 + bytes.below(20);
    m.height = 1 + bytes.below(20);
    const uint64_t members = bytes.raw<uint64_t>();
    for (int i = 0; i < m.width * m.height; i++) m.member.push_back(members >> (i % 61 + i / 61) % 64 & 1);
    if (m.box.width > 0 && m.box.height > 0) regions.mask.push_back(m);
  }
  return regions;
}

// Makes a frame. Sums are largest if all samples are largest, or all samples under coefficients of one sign.
GuardedFrame make_source(fuzz::Bytes &bytes, FrameLayout &layout) {
  const int kind = bytes.byte();
  test::Random random(kind);
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      layout.plane[p].border_value[c] =
          static_cast<uint16_t>((kind & 4 ? 0xffff : random()) & ((1u << layout.plane[p].channel[c].depth) - 1));
  test::Placement placement = {0, 0, 1, 0};
  if (kind & 8) placement = {1, 3, 1, 5};
  placement.upward = kind & 16;
  GuardedFrame frame(layout, placement);
  frame.fill(random);
  for (auto &block : frame.blocks())
    for (uint8_t &byte : block.bytes) byte = kind % 4 == 0 ? byte : kind % 4 == 1 || byte & 1 ? 255 : 0;
  return frame;
}

// Filters a frame and returns the visible bytes of the result.
std::vector<uint8_t> filter(Backend &backend, const std::vector<PlannedRegions> &planned, const GuardedFrame &source,
                            GuardedFrame target) {
  const FrameLayout &layout = planned[0].plan->layout;
  const bool in_place = target == source;
  const GuardedFrame source_before = source;
  GuardedFrame around = target;
  const FrameView to = target.view();
  backend.retire(backend.submit(planned, in_place ? to : source.view(), to, nullptr));
  if (source != source_before) fuzz::fault("the source has changed");
  const std::vector<uint8_t> visible = verify::visible_bytes(layout, to);
  verify::clear_visible_bytes(layout, to);
  verify::clear_visible_bytes(layout, around.view());
  if (target != around) fuzz::fault("a byte outside the picture has changed");
  return visible;
}

void check(fuzz::Bytes &bytes) {
  FilterSettings settings = read_settings(bytes), other = settings;
  other.size = bytes.raw<int16_t>();
  other.sigma = bytes.number();
  FrameLayout layout = read_layout(bytes);
  const GuardedFrame source = make_source(bytes, layout);
  const int threads = 1 + bytes.below(8);
  const Regions regions = read_regions(bytes);
  // Two plans, each with its own regions, as with roi-scale.
  const Regions more = regions.active && bytes.flag() ? read_regions(bytes) : Regions();
  settings.coefficients = other.coefficients = read_coefficients(bytes);
  read_more(bytes, &settings);
  read_more(bytes, &other);
  settings.luma = other.luma = one_of(bytes, kLumaNames);

  std::vector<PlannedRegions> planned = {{make_plan(settings, layout), regions}};
  describe(*planned[0].plan);
  if (more.active) planned.push_back({make_plan(other, layout), more});
  const auto one_by_one = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  const auto last_first = [](int n, const std::function<void(int)> &body) {
    while (n > 0) body(--n);
  };
  const GuardedFrame tight(layout, {0, 0, 1, 0}), loose(layout, {3, 5, 8, 7});
  const auto once = make_cpu_backend(one_by_one, 1), again = make_cpu_backend(last_first, threads);
  const std::vector<uint8_t> result = filter(*once, planned, source, tight);
  if (filter(*again, planned, source, regions.active ? source : loose) != result)
    fuzz::fault("another result with " + std::to_string(threads) + " threads");
  // The second result must not depend on state that the first frame left in the backend.
  if (filter(*again, planned, source, loose) != result) fuzz::fault("another result the second time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Bytes bytes(data, size);
  try {
    check(bytes);
  } catch (const Error &error) {
    const std::string text = error.what();
    if (error.kind() != Error::Kind::Settings) fuzz::fault("an error of another kind: " + text);
    if (text.find('=') == std::string::npos && text.find("coefficients") == std::string::npos)
      fuzz::fault("the message names no property and value: " + text);
  }
  return 0;
}
