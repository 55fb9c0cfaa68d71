// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "guarded_frame.h"
#include "picture.h"
#ifdef HAVE_DEVICE_FRAMES
#include "device_frames.h"
#endif

namespace cudaconv::verify {

using test::GuardedFrame;
using test::Placement;

#ifdef HAVE_DEVICE_FRAMES
struct Checker::Device {
  test::DeviceFrames frames;
};
#else
struct Checker::Device {};
#endif

namespace {

uint8_t *address_of(const PlaneLayout &plane, const FrameView &view, int x, int y, int channel) {
  int container = plane.first + x * plane.step;
  if (plane.container != Container::Packed32) container += plane.channel[channel].offset;
  const PlaneView &memory = view.plane[plane.memory_plane];
  return memory.data + y * memory.pitch + container * plane.bytes_per_container();
}

// The position of byte k of a container, counted from the least significant byte.
int place_of(const PlaneLayout &plane, int k) {
  return plane.container == Container::U16BE ? 1 - k : k;
}

int lowest_bit_of(const PlaneLayout &plane, int channel) {
  const ChannelLayout &c = plane.channel[channel];
  return plane.container == Container::Packed32 ? c.offset : c.shift;
}

int get(const PlaneLayout &plane, const FrameView &view, const Sample &s) {
  const uint8_t *p = address_of(plane, view, s.x, s.y, s.channel);
  uint32_t word = 0;
  for (int k = 0; k < plane.bytes_per_container(); k++) word |= static_cast<uint32_t>(p[place_of(plane, k)]) << 8 * k;
  return static_cast<int>(word >> lowest_bit_of(plane, s.channel)) & ((1 << plane.channel[s.channel].depth) - 1);
}

void put(const Picture &picture, const FrameLayout &layout, const FrameView &view) {
  clear_visible_bytes(layout, view);
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    for (int c = 0; c < plane.channels; c++) {
      for (int i = 0; i < plane.width * plane.height; i++) {
        const uint32_t word = static_cast<uint32_t>(picture.sample[p][c][i]) << lowest_bit_of(plane, c);
        uint8_t *to = address_of(plane, view, i % plane.width, i / plane.width, c);
        for (int k = 0; k < plane.bytes_per_container(); k++)
          to[place_of(plane, k)] |= static_cast<uint8_t>(word >> 8 * k);
      }
    }
  }
}

// Whether all bytes except visible bytes are equal.
bool same_around(const FrameLayout &layout, GuardedFrame a, GuardedFrame b) {
  clear_visible_bytes(layout, a.view());
  clear_visible_bytes(layout, b.view());
  return a == b;
}

// Compares a result with the vector's. Returns the fault, or an empty text.
std::string compare(const Vector &v, const FrameLayout &layout, const FrameView &got,
                    const std::vector<uint8_t> &visible) {
  if (!v.sha256.empty()) {
    const std::string hash = sha256(visible.data(), visible.size());
    return hash == v.sha256 ? "" : "the result has sha256 " + hash;
  }
  if (v.samples.empty()) return "the vector has no result";
  for (const Sample &s : v.samples) {
    if (s.plane < 0 || s.plane >= layout.planes) return "the vector has a sample of no plane";
    const PlaneLayout &plane = layout.plane[s.plane];
    if (s.channel < 0 || s.channel >= plane.channels || s.x < 0 || s.x >= plane.width || s.y < 0 || s.y >= plane.height)
      return "the vector has a sample outside its frame";
    const int value = get(plane, got, s);
    // Values are given in thousandths.
    if (s.exact ? value == s.value : std::fabs(value - s.value) <= 1.0006) continue;
    char text[160];
    std::snprintf(text, sizeof text, "plane %d channel %d x %d y %d is %d, should be %.3f%s", s.plane, s.channel, s.x,
                  s.y, value, s.value, s.exact ? "" : " to within 1");
    return text;
  }
  return {};
}

}  // namespace

Checker::Checker(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {
#ifdef HAVE_DEVICE_FRAMES
  if (std::string(backend_->name()) == "cuda") device_ = std::make_unique<Device>();
#endif
}

Checker::~Checker() = default;

Outcome Checker::check(const Vector &v) {
  FrameLayout layout = v.layout();
  Regions regions = v.regions;
  const Picture picture = draw_picture(v.seed, layout, regions);
  // Rows begin and end at any alignment. No byte around them may change.
  const Placement placements[] = {{0, 0, 1, 0}, {1, 1, 1, 3}, {0, 3, 256, 64}, {16, 0, 16, 32}};
  test::Random noise(v.seed);
  GuardedFrame source(layout, placements[v.seed % 4]), target(layout, placements[v.seed / 4 % 4]);
  source.fill(noise);
  put(picture, layout, source.view());
  target.fill(noise);
  if (v.in_place) target = source;
  const GuardedFrame source_before = source, target_before = target;
  try {
    FrameView from = source.view(), to = target.view();
#ifdef HAVE_DEVICE_FRAMES
    std::unique_ptr<test::DeviceFrame> device_source, device_target;
    if (device_ && v.on_device) {
      device_source = std::make_unique<test::DeviceFrame>(device_->frames, source);
      device_target = std::make_unique<test::DeviceFrame>(device_->frames, target);
      from = device_source->view();
      to = device_target->view();
    }
#endif
    if (v.in_place) from = to;
    backend_->retire(backend_->submit(make_plan(v.settings, layout), from, to, regions));
#ifdef HAVE_DEVICE_FRAMES
    if (device_target) device_target->download(target);
#endif
  } catch (const Error &error) {
    if (error.kind() == Error::Kind::Device) throw;
    return {error.what(), {}};
  }
  Outcome outcome;
  outcome.visible = visible_bytes(layout, target.view());
  outcome.wrong = compare(v, layout, target.view(), outcome.visible);
  if (outcome.wrong.empty() && !same_around(layout, target, target_before))
    outcome.wrong = "a byte outside the picture has changed";
  if (outcome.wrong.empty() && source != source_before) outcome.wrong = "the source frame has changed";
  return outcome;
}

}  // namespace cudaconv::verify
