// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Writes the file of test vectors. All results come from the reference filter:
//
//   make-vectors > vectors.txt
//   make-vectors --check=vectors.txt [--every=N]
//
// The second form computes every Nth result again, and the words of all lines, and reports differences from the file.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cases.h"
#include "picture.h"
#include "reference.h"
#include "vector.h"

namespace cudaconv::verify {

namespace {

constexpr int kSamples = 16;

constexpr const char *kHead =
    R"(# Test vectors of cudaconv, one line each. The naive filter of tests/reference makes them:
#   make-vectors > vectors.txt
# cudaconv-verify checks them.
#
# These words have the meaning that they have in a launch line. A missing word has its default:
#   mask size size-y sigma sigma-y sigma-range amount coefficients shape divisor bias negative magnitude threshold
#   iterations border chroma alpha method roi roi-shape roi-invert roi-feather, and format and frame for width and
#   height
# These words are only in vectors:
#   roi-turned   "x,y,width,height,angle; ...": regions rotated about their centre, in radians, clockwise
#   roi-mask     "x,y,width,height,columns,rows; ...": columns x rows members spread over a rectangle
#   field        the frame is field 0 or 1 of a frame with twice as many rows, in which regions count
#   interlaced   rows of two fields alternate
#   in-place     source and target are one frame
#   memory       on a GPU: device, else host
#   seed         the seed of the picture
#   sha256       of the result: the bytes of all samples as stored (whole words if samples are bit fields), plane of
#                memory by plane, row by row, without the bytes between rows
#   samples      if a result may be one code off the exact value: "plane.channel.x.y:value ...". Planes are in the order
#                Y, U, V, A or R, G, B, A, channels in the order of their addresses, x and y in samples. Values without
#                a point are exact
#
# The picture of a seed: splitmix64 makes random numbers of 64 bits,
#   state += 0x9e3779b97f4a7c15; z = state; z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
#   z = (z ^ (z >> 27)) * 0x94d049bb133111eb; next() = z ^ (z >> 31)
# from state = seed. For each plane and each channel in this order (the x of RGBx is a channel), with n = 2^bits:
#   1. next() % n is the sample of border-color, and n - 1 minus that number the sample of fill-color
#   2. kind = next() % 4, v = 0
#   3. for each row, and each sample in it, r = next(). The sample is
#      kind 0: r % n
#      kind 1: v = r / 4 % n if r % 4 = 0, else the last v
#      kind 2: n - 1 if r is odd, else 0
#      kind 3: ((5 * x + 3 * y) * (n / 64 + 1) + r % (n / 16 + 1)) % n, integer quotients
# Then for each roi-mask, row by row: a sample is a member if next() % 3 != 0. Bits below a sample in its word are 0, and
# so are bits of no field.
#
)";

// Draws the samples of a result for a vector, spread over planes and channels.
std::vector<Sample> draw_samples(const reference::Frame &result, const FrameLayout &layout, uint64_t seed) {
  Random random(~seed);
  std::vector<Sample> samples;
  for (int i = 0; i < kSamples; i++) {
    Sample s;
    s.plane = i % layout.planes;
    s.channel = i / layout.planes % layout.plane[s.plane].channels;
    const reference::Channel &channel = result.plane[s.plane][s.channel];
    const size_t at = random() % channel.sample.size();
    s.x = static_cast<int>(at % channel.width);
    s.y = static_cast<int>(at / channel.width);
    s.exact = channel.real.empty();
    s.value = s.exact ? channel.sample[at] : static_cast<double>(channel.real[at]);
    samples.push_back(s);
  }
  return samples;
}

// Adds the result to a vector.
Vector with_result(Vector v) {
  FrameLayout layout = v.layout();
  Regions regions = v.regions;
  const Picture picture = draw_picture(v.seed, layout, regions);
  reference::Frame source;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      source.plane[p].push_back({layout.plane[p].width, layout.plane[p].height, picture.sample[p][c], {}});
  const reference::Frame result = reference::filter(v.settings, layout, source, regions);
  bool real = false;
  for (const auto &plane : result.plane)
    for (const reference::Channel &channel : plane) real |= !channel.real.empty();
  if (real) {
    if (v.settings.iterations > 1) throw std::runtime_error("not defined to the last bit: " + describe(v));
    v.samples = draw_samples(result, layout, v.seed);
    return v;
  }
  std::vector<uint8_t> memory[kMaxPlanes];
  FrameView view;
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    const size_t pitch = static_cast<size_t>(plane.first + plane.width * plane.step + 3) * plane.bytes_per_container();
    std::vector<uint8_t> &bytes = memory[plane.memory_plane];
    bytes.resize(std::max(bytes.size(), pitch * plane.height));
    view.plane[plane.memory_plane].pitch =
        std::max(view.plane[plane.memory_plane].pitch, static_cast<ptrdiff_t>(pitch));
    bytes.resize(std::max<size_t>(bytes.size(), view.plane[plane.memory_plane].pitch * plane.height));
  }
  for (int m = 0; m < kMaxPlanes; m++) view.plane[m].data = memory[m].data();
  reference::write(result, layout, view);
  const std::vector<uint8_t> bytes = visible_bytes(layout, view);
  v.sha256 = sha256(bytes.data(), bytes.size());
  return v;
}

// Makes the lines of every `every`th case. Other lines stay empty.
std::vector<std::string> make_lines(const std::vector<Vector> &cases, size_t every) {
  std::vector<std::string> lines(cases.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); t++)
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < cases.size();)
        if (i % every == 0) lines[i] = to_line(with_result(parse_vector(describe(cases[i]))));
    });
  for (std::thread &t : threads) t.join();
  return lines;
}

std::string read_file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Compares a file with the cases. Returns the exit code.
int check(const std::string &path, size_t every) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line[0] != '#') lines.push_back(line);
  const std::vector<Vector> cases = make_cases();
  const std::vector<std::string> made = make_lines(cases, every);
  size_t wrong = text.rfind(kHead, 0) != 0 || lines.size() != cases.size(), results = 0;
  if (wrong) std::printf("%s: another head, or %zu lines instead of %zu\n", path.c_str(), lines.size(), cases.size());
  for (size_t i = 0; i < std::min(lines.size(), cases.size()); i++) {
    results += !made[i].empty();
    const std::string &want = made[i].empty() ? describe(cases[i]) + " " : made[i];
    if (lines[i].compare(0, made[i].empty() ? want.size() : std::string::npos, want) == 0) continue;
    if (wrong++ < 10) std::printf("in the file: %s\nmade:        %s\n", lines[i].c_str(), want.c_str());
  }
  std::printf("%zu lines, %zu results made again, %zu wrong\n", lines.size(), results, wrong);
  return wrong ? 1 : 0;
}

int run(int argc, char **argv) {
  std::string path;
  size_t every = 1;
  for (int i = 1; i < argc; i++) {
    if (!std::strncmp(argv[i], "--check=", 8))
      path = argv[i] + 8;
    else if (!std::strncmp(argv[i], "--every=", 8) && std::atoi(argv[i] + 8) > 0)
      every = static_cast<size_t>(std::atoi(argv[i] + 8));
    else
      throw std::runtime_error(std::string("unknown argument ") + argv[i]);
  }
  if (!path.empty()) return check(path, every);
  std::fputs(kHead, stdout);
  for (const std::string &line : make_lines(make_cases(), 1)) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace

}  // namespace cudaconv::verify

int main(int argc, char **argv) {
  try {
    return cudaconv::verify::run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
