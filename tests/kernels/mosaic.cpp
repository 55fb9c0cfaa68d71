// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the positions of a mosaic's blocks, their distribution over the threads of a GPU, and means at the limits.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "backend.h"
#include "checks.h"
#include "cuda/mosaic/tiles.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/mosaic.h"
#include "plan/region_rows.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

FilterSettings setting_of(int size) {
  FilterSettings settings;
  settings.mask = Mask::Mosaic;
  settings.size = size;
  return settings;
}

std::shared_ptr<const Plan> plan_of(const FrameLayout &layout, int size) {
  return make_plan(setting_of(size), layout);
}

Regions within(std::vector<Region> list) {
  Regions regions;
  regions.active = true;
  regions.region = std::move(list);
  return regions;
}

std::unique_ptr<Backend> cpu_backend() {
  return make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      3);
}

bool is_box(const MosaicBox &b, std::initializer_list<int> want) {
  const int got[] = {b.x, b.y, b.width, b.height, b.phase_x, b.phase_y};
  return std::equal(std::begin(got), std::end(got), want.begin(), want.end());
}

void test_boxes() {
  const auto boxes = [](const char *format, int size, const Regions &regions, size_t part, bool interlaced = false) {
    FrameLayout layout = format_named(format).layout(64, 48);
    if (interlaced) layout = with_fields(layout);
    return mosaic_parts(regions, *plan_of(layout, size))[part].boxes;
  };
  std::vector<MosaicBox> got = boxes("NV12", 8, {}, 1);
  expect(got.size() == 1 && is_box(got[0], {0, 0, 32, 24, 0, 0}), "without regions the frame is the box");
  Regions regions = within({{5, 7, 20, 10}});
  got = boxes("NV12", 8, regions, 0);
  expect(got.size() == 1 && is_box(got[0], {5, 7, 20, 10, 0, 0}), "a region is a box");
  got = boxes("NV12", 8, regions, 1);  // chroma begins one luma pixel earlier, in a block's last row and column
  expect(got.size() == 1 && is_box(got[0], {2, 3, 11, 6, 7, 7}), "a box of chroma");
  got = boxes("NV12", 8, regions, 1, true);  // rows 7, 9, ..., 15
  expect(got.size() == 1 && is_box(got[0], {5, 3, 20, 5, 0, 0}), "a box of a field");
  got = boxes("NV12", 8, regions, 3, true);  // chroma: rows 5, 9 and 13
  expect(got.size() == 1 && is_box(got[0], {2, 1, 11, 3, 7, 6}), "a box of a field of chroma");
  regions.invert = true;
  got = boxes("GRAY8", 8, regions, 0);
  expect(got.size() == 1 && is_box(got[0], {0, 0, 64, 48, 0, 0}), "inverted regions leave the frame");
  got = boxes("GRAY8", 8, within({{-5, -17, 20, 30}}), 0);
  expect(got.size() == 1 && is_box(got[0], {0, 0, 15, 13, 5, 1}), "blocks begin outside the frame");
  // The third region meets only the rectangle around the first two. The last two meet outside the frame, where they are
  // not joined.
  got = boxes("GRAY8", 8, within({{2, 2, 4, 20}, {4, 20, 30, 4}, {20, 4, 4, 4}, {60, -9, 9, 12}, {62, 40, 9, 4}}), 0);
  expect(got.size() == 3 && is_box(got[1], {2, 2, 32, 22, 0, 0}), "boxes are joined until none meet");
  got = boxes("GRAY8", 8, within({{0, -9, 9, 9}, {90, 0, 5, 5}, {3, 3, 0, 5}}), 0);
  expect(got.empty(), "no boxes of regions without pixels");
  // Blocks stay where they are, and go on into a soft edge.
  Regions soft = within({{25, 20, 10, 9}, {90, 0, 5, 5}});
  soft.feather = 3 * 256 - 100;
  got = boxes("GRAY8", 2, soft, 0);
  expect(got.size() == 1 && is_box(got[0], {21, 16, 17, 16, 0, 0}), "a box with a soft edge, of small blocks");
  got = boxes("GRAY8", 30, soft, 0);
  expect(got.size() == 1 && is_box(got[0], {0, 0, 38, 32, 5, 10}), "a box with a soft edge, of large blocks");
  // Neighbours that share a pixel of chroma.
  expect(boxes("GRAY8", 8, within({{1, 2, 4, 4}, {5, 2, 4, 4}}), 0).size() == 2, "neighbours");
  expect(boxes("NV12", 8, within({{1, 2, 4, 4}, {5, 2, 4, 4}}), 0).size() == 1, "neighbours that share chroma");
  Region turned = {20, 10, 20, 10};
  turned.rotation = 1.57079632679489662;
  got = boxes("GRAY8", 8, within({turned}), 0);
  expect(got.size() == 1 && is_box(got[0], {25, 5, 10, 20, 0, 0}), "the rectangle around a rotated region");
}

// The block of a pixel follows from its position in the frame, and blocks have no gaps between them.
void test_blocks() {
  for (int size : {1, 2, 3, 4, 5, 8, 16, 255})
    for (int log_step : {0, 1, 2, 3}) {
      const MosaicAxis axis = size <= 1 << log_step ? MosaicAxis{} : MosaicAxis{size, log_step};
      for (int phase = 0; phase < axis.size; phase++)
        for (int length : {1, 2, 7, 300}) {
          const int blocks = mosaic_blocks(axis, phase, length);
          bool right = mosaic_begin(axis, phase, blocks, length) == length;
          for (int b = 0; b < blocks; b++) {
            const int begin = mosaic_begin(axis, phase, b, length), end = mosaic_begin(axis, phase, b + 1, length);
            right &= begin < end && end - begin <= axis.length();
            for (int i = begin; i < end; i++) right &= mosaic_block(axis, phase, i) == b;
          }
          expect(right, "blocks of " + std::to_string(size) + " by steps of 2^" + std::to_string(log_step));
        }
    }
}

bool meet(const Region &a, const Region &b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

// Joins regions by the definition of boxes, one pair after the other.
std::vector<Region> joined(std::vector<Region> list) {
  for (size_t i = 0; i < list.size(); i++)
    for (size_t j = 0; j < i; j++) {
      if (!meet(list[i], list[j])) continue;
      Region &a = list[j];
      const Region b = list[i];
      const int right = std::max(a.x + a.width, b.x + b.width), bottom = std::max(a.y + a.height, b.y + b.height);
      a.x = std::min(a.x, b.x);
      a.y = std::min(a.y, b.y);
      a.width = right - a.x;
      a.height = bottom - a.y;
      list.erase(list.begin() + i);
      i = j = 0;
      break;
    }
  return list;
}

void test_joining() {
  Random random(1);
  const auto plan = plan_of(format_named("GRAY8").layout(400, 300), 7);
  for (int turn = 0; turn < 400; turn++) {
    const int most = static_cast<int>(1 + random() % (turn % 3 ? 30 : 120));
    const auto upto = [&](int n) { return static_cast<int>(random() % n); };
    std::vector<Region> list;
    for (int i = 0; i < turn % 200; i++) {
      const int w = 1 + upto(most), h = 1 + upto(turn % 2 ? most : 4);
      list.push_back({upto(400 - w + 1), upto(300 - h + 1), w, h});
    }
    std::vector<std::vector<int>> want, got;
    for (const Region &r : joined(list)) want.push_back({r.x, r.y, r.width, r.height});
    const std::vector<MosaicPart> parts = mosaic_parts(within(list), *plan);
    for (const MosaicBox &b : parts[0].boxes) got.push_back({b.x, b.y, b.width, b.height});
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    expect(want == got, "joined boxes, turn " + std::to_string(turn));
  }
}

// The boxes of a frame are found quickly, also if each joins the next, and if all are long.
void test_many_boxes() {
  constexpr int kBoxes = 10000;
  const auto plan = plan_of(format_named("NV12").layout(3840, 2160), 16);
  Random random(1);
  for (const char *kind : {"apart", "anywhere", "staircase", "lines", "nested"}) {
    std::vector<Region> list;
    for (int i = 0; i < kBoxes; i++) {
      const int x = static_cast<int>(random() % 3800), y = static_cast<int>(random() % 2120);
      switch (kind[1]) {
        case 'p':
          list.push_back({i % 120 * 32, i / 120 * 24, 30, 22});
          break;
        case 'n':
          list.push_back({x, y, 12, 12});
          break;
        case 't':
          list.push_back({i % 3800, i % 2100, 4, 4});
          break;
        case 'i':
          list.push_back({0, i % 540 * 4, 3840, 2});
          break;
        default:
          list.push_back({i % 900, i % 1000, 3840 - i % 900 * 2, 2160 - i % 1000 * 2});
      }
    }
    const std::clock_t begin = std::clock();  // of the processor, however busy the machine is
    const size_t left = mosaic_parts(within(list), *plan)[0].boxes.size();
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%d boxes %s: %zu remain, %.1f ms\n", kBoxes, kind, left, 1e3 * seconds);
    expect(seconds < 0.5, std::string("boxes ") + kind + " take well below a second");
  }
}

// The threads of each tile cover its bytes once, and the tiles of a box cover its blocks.
void test_tiles() {
  Random random(3);
  for (const Format &format : formats())
    for (int size : {1, 2, 3, 5, 8, 16, 17, 64, 255}) {
      const FrameLayout layout = format.layout(301, 95);
      const auto plan = plan_of(layout, size);
      Regions regions = within({{7, 3, 150, 40}, {200, 9, 13, 80}, {-5, 50, 20, 20}, {299, 0, 9, 9}});
      regions.invert = random() % 2;
      std::vector<MosaicTiledBox> list;
      const std::vector<MosaicTiles> all = cut_mosaic(mosaic_parts(regions, *plan), *plan, &list);
      const std::vector<MosaicPart> parts = mosaic_parts(regions, *plan);
      for (size_t i = 0; i < all.size(); i++) {
        const MosaicTiles &tiles = all[i];
        const PlaneLayout &plane = layout.plane[plan->parts[i].plane];
        int count = 0;
        bool right = tiles.boxes == static_cast<int>(parts[i].boxes.size());
        for (int b = 0; right && b < tiles.boxes; b++) {
          const MosaicTiledBox &box = tiles.boxes > 1 ? list[tiles.first_box + b] : tiles.box;
          const int across = mosaic_blocks(tiles.x, box.phase_x, box.width);
          right &= box.first_tile == count && box.tiles_x == (across + tiles.blocks - 1) / tiles.blocks;
          count += box.tiles_x * mosaic_blocks(tiles.y, box.phase_y, box.height);
          for (int first = 0; has_mosaic_tiles(*plan) && first < across; first += tiles.blocks) {
            const auto byte = [&](int block) {
              return (box.x + mosaic_begin(tiles.x, box.phase_x, block, box.width)) * plane.channels *
                     plane.bytes_per_container();
            };
            right &= byte(std::min(first + tiles.blocks, across)) - byte(first) / 16 * 16 <= 16 << tiles.log_threads;
          }
        }
        expect(right && count == tiles.tiles, std::string("tiles of ") + format.name + " " + std::to_string(size));
      }
    }
}

// Tall tiles have slices, unless their sums do not fit the scratch memory of the plan.
void test_slices() {
  const auto sliced = [](const FrameLayout &layout, int size, const Regions &regions) {
    const auto plan = plan_of(layout, size);
    std::vector<MosaicTiledBox> list;
    const std::vector<MosaicPart> parts = mosaic_parts(regions, *plan);
    const std::vector<MosaicTiles> all = cut_mosaic(parts, *plan, &list);
    int64_t sums = 0;
    for (size_t i = 0; i < all.size(); i++) sums += all[i].sums(layout.plane[plan->parts[i].plane].channels);
    expect(!has_slices(all) || sums * sizeof(uint32_t) <= mosaic_sum_bytes(*plan, plan->passes[0]),
           "sums fit in scratch memory");
    size_t boxes = 0;
    for (const MosaicPart &part : parts) boxes += part.boxes.size() > 1 ? part.boxes.size() : 0;
    expect(list.size() == boxes, "each box is listed once");
    return has_slices(all);
  };
  const FrameLayout layout = format_named("RGBA").layout(1920, 1080);
  expect(sliced(layout, 255, {}) && sliced(layout, 65, {}), "tall tiles have slices");
  expect(!sliced(layout, 64, {}), "tiles of 64 rows have no slices");
  std::vector<Region> regions = {{0, 0, 600, 600}};
  expect(sliced(layout, 255, within(regions)), "tall tiles of regions have slices");
  for (int i = 0; i < 2000; i++) regions.push_back({700 + i % 100 * 5, i / 100 * 5, 1, 1});
  expect(!sliced(layout, 255, within(regions)), "tiles of many regions have no slices");
}

// The largest possible sums, and sums of blocks that are nearly as bright.
void test_largest_sums() {
  const auto backend = cpu_backend();
  for (const char *name : {"GRAY8", "GRAY16_LE"})
    for (int dark = 0; dark < 3; dark++) {
      const FrameLayout layout = format_named(name).layout(300, 260);
      const auto plan = plan_of(layout, 255);
      reference::Frame samples;
      const int max = (1 << layout.plane[0].channel[0].depth) - 1;
      samples.plane[0].push_back({300, 260, std::vector<int>(300 * 260, max), {}});
      // Makes samples darker by one code until the mean of the first block is at half a code, or below.
      for (int i = 0; i < (dark ? 32511 + dark : 0); i++) samples.plane[0][0].sample[i / 255 * 300 + i % 255]--;
      GuardedFrame source(layout, {0, 0, 1, 0}), got(layout, {0, 0, 1, 0}), want(layout, {0, 0, 1, 0});
      reference::write(samples, layout, source.view());
      FilterSettings settings;
      settings.mask = Mask::Mosaic;
      settings.size = 255;
      reference::write(reference::filter(settings, layout, samples), layout, want.view());
      backend->retire(backend->submit(plan, source.view(), got.view()));
      expect(got == want, std::string("the largest sums of ") + name);
      const int mean = reference::read(layout, got.view()).plane[0][0].sample[0];
      expect(mean == max - (dark == 2), std::string("a mean around half a code of ") + name);
    }
}

// A field in a separate buffer has the same blocks as in the rows of the frame.
void test_fields() {
  const auto backend = cpu_backend();
  for (int size : {1, 2, 5, 16}) {
    const FrameLayout layout = with_fields(format_named("GRAY8").layout(37, 41));
    Random random(size);
    GuardedFrame source(layout, {0, 0, 1, 0}), want(layout, {0, 0, 1, 0}), got(layout, {0, 0, 1, 0});
    source.fill(random);
    backend->retire(backend->submit(plan_of(layout, size), source.view(), want.view()));
    for (int field = 0; field < 2; field++) {
      const FrameLayout half = format_named("GRAY8").layout(37, (41 + 1 - field) / 2);
      FrameView from = source.view(), to = got.view();
      for (FrameView *view : {&from, &to}) {
        view->plane[0].data += field * view->plane[0].pitch;
        view->plane[0].pitch *= 2;
      }
      Regions regions;
      regions.first_row = field;
      regions.row_step = 2;
      backend->retire(backend->submit(plan_of(half, size), from, to, regions));
    }
    expect(got == want, "separate fields, size " + std::to_string(size));
  }
}

// Regions of single rows, down to the last rows of frames of any height, where a field may lack a row of chroma. No box
// is empty, and blocks are the reference's.
void test_last_rows() {
  const auto backend = cpu_backend();
  for (const Format &format : formats())
    for (int height = 1; height <= 20; height++)
      for (const bool room : {false, true}) {
        const FrameLayout layout = with_fields(format.layout(9, height), room);
        const auto plan = plan_of(layout, 4);
        Random random(height);
        GuardedFrame source(layout, {0, 3, 1, 5});
        source.fill(random);
        const reference::Frame samples = reference::read(layout, source.view());
        reference::write(samples, layout, source.view());
        for (int row = std::max(0, height - 5); row < height; row++) {
          const Regions regions = within({{2, row, 5, 1}});
          const std::string where = std::string(format.name) + ", row " + std::to_string(row) + " of " +
                                    std::to_string(height) + (room ? ", room" : "");
          const std::vector<MosaicPart> parts = mosaic_parts(regions, *plan);
          bool empty = false;
          for (const MosaicPart &part : parts)
            for (const MosaicBox &box : part.boxes) empty |= box.width < 1 || box.height < 1;
          expect(!empty, "no box is empty: " + where);
          if (empty) continue;
          std::vector<MosaicTiledBox> boxes;
          cut_mosaic(parts, *plan, &boxes);
          GuardedFrame got = source, want = source;
          backend->retire(backend->submit(plan, source.view(), got.view(), regions));
          reference::write(reference::filter(setting_of(4), layout, samples, regions), layout, want.view());
          expect(got == want, "blocks of the last rows: " + where);
        }
      }
}

// Quarter turns with rounded angles. A rectangle has no pixels beside it, and each pixel of a region is in a box.
void test_quarter_turns() {
  const auto backend = cpu_backend();
  const FrameLayout layout = format_named("GRAY8").layout(49, 102);
  const auto plan = plan_of(layout, 31);
  Random random(5);
  GuardedFrame source(layout, {0, 3, 1, 5});
  source.fill(random);
  const auto filter = [&](const Region &region) {
    GuardedFrame got = source;
    backend->retire(backend->submit(plan, source.view(), got.view(), within({region})));
    return got;
  };
  for (int turns = -4; turns <= 8; turns++)
    for (const double off : {0.0, 1e-15, 2e-8, -2e-8, 8e-8, 1e-6, 1e-5}) {
      Region turned = {10, 49, 34, 36};
      turned.rotation = turns * 1.57079632679489662 + off;
      const Regions regions = within({turned});
      const std::string where =
          std::to_string(turns) + " quarter turns and " + std::to_string(off * 1e9) + " nanoradians";
      const Region upright = turns % 2 ? Region{9, 50, 36, 34} : Region{10, 49, 34, 36};
      if (std::fabs(off) < 2.5e-8 && turned.rotation != 0) expect(filter(turned) == filter(upright), where);
      const auto rows = region_rows(regions, *plan, Cancellation(nullptr))[0];
      const std::vector<MosaicPart> parts = mosaic_parts(regions, *plan);
      const MosaicBox &box = parts[0].boxes[0];
      bool all = true;
      for (int y = 0; y < rows->rows(); y++)
        for (size_t i = rows->row(y).begin; i < rows->row(y).end; i++) {
          const PixelRun &run = rows->runs()[i];
          all = all && y >= box.y && y < box.y + box.height && run.begin >= box.x && run.end <= box.x + box.width;
        }
      expect(all, "all pixels are in the box: " + where);
    }
}

}  // namespace

int mosaic() {
  test_boxes();
  test_blocks();
  test_joining();
  test_many_boxes();
  test_tiles();
  test_slices();
  test_largest_sums();
  test_fields();
  test_last_rows();
  test_quarter_turns();
  return report();
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::mosaic();
}
