// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

#include "bilateral.h"
#include "mosaic.h"
#include "shares.h"
#include "weighted.h"

namespace cudaconv::reference {

namespace {

using Integer = __int128;  // large enough for the square of any sum of samples times coefficients
using Real = long double;

// ---- Samples in memory ----------------------------------------------------------------------------------------------

uint8_t *address(const PlaneLayout &layout, const FrameView &view, int x, int y, int channel) {
  const PlaneView &memory = view.plane[layout.memory_plane];
  int container = layout.first + x * layout.step;
  if (layout.container != Container::Packed32) container += layout.channel[channel].offset;
  return memory.data + y * memory.pitch + container * layout.bytes_per_container();
}

uint32_t load(const uint8_t *p, Container container) {
  switch (container) {
    case Container::U8:
      return p[0];
    case Container::U16:
      return p[0] | p[1] << 8;
    case Container::U16BE:
      return p[0] << 8 | p[1];
    case Container::Packed32:
      return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
  }
  std::abort();
}

void store(uint8_t *p, Container container, uint32_t word) {
  uint8_t byte[4];
  for (int i = 0; i < 4; i++) byte[i] = static_cast<uint8_t>(word >> (8 * i));
  switch (container) {
    case Container::U8:
      p[0] = byte[0];
      return;
    case Container::U16:
      p[0] = byte[0], p[1] = byte[1];
      return;
    case Container::U16BE:
      p[0] = byte[1], p[1] = byte[0];
      return;
    case Container::Packed32:
      std::copy(byte, byte + 4, p);
      return;
  }
}

// The lowest bit of the sample within its word.
int lowest_bit(const PlaneLayout &layout, int channel) {
  const ChannelLayout &c = layout.channel[channel];
  return layout.container == Container::Packed32 ? c.offset + c.shift : c.shift;
}

int max_sample(const ChannelLayout &channel) {
  return (1 << channel.depth) - 1;
}

}  // namespace

Frame read(const FrameLayout &layout, const FrameView &view) {
  Frame frame;
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    for (int c = 0; c < plane.channels; c++) {
      Channel channel{plane.width, plane.height, {}, {}};
      for (int y = 0; y < plane.height; y++) {
        for (int x = 0; x < plane.width; x++) {
          uint32_t word = load(address(plane, view, x, y, c), plane.container);
          channel.sample.push_back((word >> lowest_bit(plane, c)) & max_sample(plane.channel[c]));
        }
      }
      frame.plane[p].push_back(channel);
    }
  }
  return frame;
}

void write(const Frame &frame, const FrameLayout &layout, const FrameView &view) {
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    for (int y = 0; y < plane.height; y++) {
      for (int x = 0; x < plane.width; x++) {
        uint32_t fields = 0;
        for (int c = 0; c < plane.channels; c++) {
          uint32_t word = static_cast<uint32_t>(frame.plane[p][c].sample[y * plane.width + x]) << lowest_bit(plane, c);
          fields |= word;
          if (plane.container != Container::Packed32) store(address(plane, view, x, y, c), plane.container, word);
        }
        if (plane.container == Container::Packed32) store(address(plane, view, x, y, 0), plane.container, fields);
      }
    }
  }
}

int position(Border border, int i, int n) {
  if (border == Border::Constant && (i < 0 || i >= n)) return -1;
  if (border == Border::Reflect101 && n == 1) return 0;  // mirrors on both sides of the only sample
  while (i < 0 || i >= n) {
    bool before = i < 0;
    switch (border) {
      case Border::Wrap:
        i = before ? i + n : i - n;
        break;
      case Border::Reflect:
        i = before ? -1 - i : (n - 1) + n - i;
        break;
      case Border::Reflect101:
        i = before ? -i : (n - 1) + (n - 1) - i;
        break;
      default:
        i = before ? 0 : n - 1;
        break;
    }
  }
  return i;
}

std::vector<int> positions(Border border, int n, int length) {
  std::vector<int> list;
  if (n == 0) return list;  // a frame of one row has no second field
  for (int i = 0; i < n + length - 1; i++) list.push_back(position(border, i - length / 2, n));
  return list;
}

namespace {

// ---- Masks ----------------------------------------------------------------------------------------------------------

struct Grid {
  int width, height;
  std::vector<Real> value;  // rows from the top

  Real at(int i, int j) const { return value[j * width + i]; }
  Real sum() const {
    Real s = 0;
    for (Real v : value) s += v;
    return s;
  }
};

Grid transposed(const Grid &g) {
  Grid t{g.height, g.width, {}};
  for (int j = 0; j < t.height; j++)
    for (int i = 0; i < t.width; i++) t.value.push_back(g.at(j, i));
  return t;
}

Grid outer_product(const std::vector<Real> &along_rows, const std::vector<Real> &down_columns) {
  Grid g{static_cast<int>(along_rows.size()), static_cast<int>(down_columns.size()), {}};
  for (Real column : down_columns)
    for (Real row : along_rows) g.value.push_back(column * row);
  return g;
}

Grid outer_product(const std::vector<Real> &v) {
  return outer_product(v, v);
}

Grid ones(int width, int height) {
  return {width, height, std::vector<Real>(width * height, 1)};
}

int width_of(const FilterSettings &s, int otherwise) {
  return s.size ? s.size : otherwise;
}
int height_of(const FilterSettings &s, int otherwise) {
  return s.size_y ? s.size_y : width_of(s, otherwise);
}

std::vector<Real> gaussian_line(int size, double sigma) {
  if (size == 0) size = sigma >= 0 ? 2 * static_cast<int>(std::ceil(3 * sigma)) + 1 : 5;
  if (sigma == 0) size = 1;
  if (sigma < 0) sigma = 0.3 * ((size - 1) * 0.5 - 1) + 0.8;
  std::vector<Real> weight;
  Real sum = 0;
  for (int i = 0; i < size; i++) {
    Real x = i - size / 2;
    weight.push_back(x == 0 ? 1 : std::exp(-x * x / (2 * static_cast<Real>(sigma) * sigma)));
    sum += weight.back();
  }
  for (Real &w : weight) w /= sum;
  return weight;
}

std::vector<Real> gaussian_row(const FilterSettings &s) {
  return gaussian_line(s.size, s.sigma);
}
std::vector<Real> gaussian_column(const FilterSettings &s) {
  return gaussian_line(s.size_y ? s.size_y : s.size, s.sigma_y < 0 ? s.sigma : s.sigma_y);
}

Grid unsharp(const FilterSettings &s) {
  const Real amount = s.amount;
  Grid g = outer_product(gaussian_row(s), gaussian_column(s));
  for (Real &v : g.value) v *= -amount;
  g.value[g.value.size() / 2] += 1 + amount;
  return g;
}

// Rotates the ring of a 3x3 mask clockwise by an eighth of a turn; the centre stays.
Grid turned(const Grid &g) {
  static const int ring[8] = {0, 1, 2, 5, 8, 7, 6, 3};
  Grid t = g;
  for (int k = 0; k < 8; k++) t.value[ring[(k + 1) % 8]] = g.value[ring[k]];
  return t;
}

Grid custom(const Coefficients &c) {
  return {c.width, c.height, {c.value.begin(), c.value.end()}};
}

enum class Combine { Only, Magnitude, Largest };

struct Convolution {
  std::vector<Grid> grids;
  Real own_divisor = 1;
  Combine combine = Combine::Only;
};

Convolution gradient(const Grid &x, char which) {
  if (which == 'x') return {{x}};
  if (which == 'y') return {{transposed(x)}};
  return {{x, transposed(x)}, 1, Combine::Magnitude};
}

Convolution normalized(const Grid &g) {
  return {{g}, g.sum()};
}

Convolution convolution_of(const FilterSettings &s) {
  static const Grid sobel{3, 3, {-1, 0, 1, -2, 0, 2, -1, 0, 1}};
  static const Grid scharr{3, 3, {-3, 0, 3, -10, 0, 10, -3, 0, 3}};
  static const Grid prewitt{3, 3, {-1, 0, 1, -1, 0, 1, -1, 0, 1}};

  switch (s.mask) {
    case Mask::Box3:
      return normalized(ones(3, 3));
    case Mask::Box5:
      return normalized(ones(5, 5));
    case Mask::Box7:
      return normalized(ones(7, 7));
    case Mask::Box:
      return normalized(ones(width_of(s, 5), height_of(s, 5)));
    case Mask::Gauss3:
      return normalized(outer_product({1, 2, 1}));
    case Mask::Gauss5:
      return normalized(outer_product({1, 4, 6, 4, 1}));
    case Mask::Gauss7:
      return normalized(outer_product({2, 7, 14, 18, 14, 7, 2}));
    case Mask::Gauss9:
      return normalized(outer_product({4, 13, 30, 51, 60, 51, 30, 13, 4}));
    case Mask::Gauss:
      return {{outer_product(gaussian_row(s), gaussian_column(s))}};
    case Mask::Sharpen:
      return {{{3, 3, {0, -1, 0, -1, 5, -1, 0, -1, 0}}}};
    case Mask::Unsharp:
      return {{unsharp(s)}};
    case Mask::Emboss:
      return {{{3, 3, {-2, -1, 0, -1, 1, 1, 0, 1, 2}}}};
    case Mask::Laplace:
      return {{{3, 3, {0, 1, 0, 1, -4, 1, 0, 1, 0}}}};
    case Mask::Laplace8:
      return {{{3, 3, {1, 1, 1, 1, -8, 1, 1, 1, 1}}}};
    case Mask::Log5:
      return {{{5, 5, {0, 0, 1,   0, 0,  //
                       0, 1, 2,   1, 0,  //
                       1, 2, -16, 2, 1,  //
                       0, 1, 2,   1, 0,  //
                       0, 0, 1,   0, 0}}}};
    case Mask::SobelX:
      return gradient(sobel, 'x');
    case Mask::SobelY:
      return gradient(sobel, 'y');
    case Mask::Sobel:
      return gradient(sobel, 'm');
    case Mask::ScharrX:
      return gradient(scharr, 'x');
    case Mask::ScharrY:
      return gradient(scharr, 'y');
    case Mask::Scharr:
      return gradient(scharr, 'm');
    case Mask::PrewittX:
      return gradient(prewitt, 'x');
    case Mask::PrewittY:
      return gradient(prewitt, 'y');
    case Mask::Prewitt:
      return gradient(prewitt, 'm');
    case Mask::Roberts:  // p(x,y) - p(x+1,y+1) and p(x+1,y) - p(x,y+1) as 3x3 masks, since the anchor is in the centre
      return {{{3, 3, {0, 0, 0, 0, 1, 0, 0, 0, -1}}, {3, 3, {0, 0, 0, 0, 0, 1, 0, -1, 0}}}, 1, Combine::Magnitude};
    case Mask::Kirsch: {
      Convolution c{{{3, 3, {5, 5, 5, -3, 0, -3, -3, -3, -3}}}, 1, Combine::Largest};
      while (c.grids.size() < 8) c.grids.push_back(turned(c.grids.back()));
      return c;
    }
    case Mask::Custom: {
      Convolution c = normalized(custom(s.coefficients));
      if (c.own_divisor == 0) c.own_divisor = 1;
      return c;
    }
    default:
      std::abort();
  }
}

// The structuring element; its members are not 0.
Grid element_of(const FilterSettings &s) {
  if (s.shape == Shape::Custom) return custom(s.coefficients);
  const int width = width_of(s, 3), height = height_of(s, 3), radius_x = width / 2, radius_y = height / 2;
  Grid g = ones(width, height);
  for (int j = 0; j < height; j++) {
    for (int i = 0; i < width; i++) {
      int dx = i - radius_x, dy = j - radius_y;
      bool member = true;
      if (s.shape == Shape::Cross) member = dx == 0 || dy == 0;
      // As in OpenCV's MORPH_ELLIPSE, each row reaches to the ellipse through the midpoints of the four sides, rounded
      // to pixels. The root times a radius is never half-way between two integers.
      if (s.shape == Shape::Ellipse && dy != 0)
        member = std::abs(dx) <= std::lround(radius_x * std::sqrt(radius_y * radius_y - dy * dy) / radius_y);
      g.value[j * width + i] = member;
    }
  }
  return g;
}

// ---- One pass over one channel --------------------------------------------------------------------------------------

struct Context {
  const FilterSettings &settings;
  int max;           // largest sample value
  int border_value;  // of border=constant
  Shares original;   // of the original in a pixel, see shares.h
  Mosaic mosaic;
  Channel alpha;  // alpha of the frame or field, with alpha=weighted; empty: samples have no weights
  int alpha_sub_x = 0, alpha_sub_y = 0, alpha_border = 0;
  // Bilateral of RGB: the three colours, and which one the channel is. Empty: the channel is filtered alone.
  std::vector<Channel> colours;
  std::vector<int> colours_border;
  size_t colour = 0;
};

// The samples of a channel and, by the border mode, the samples outside it, as far as windows with this radius reach.
class Samples {
 public:
  Samples(const Channel &channel, const Context &context, int radius_x, int radius_y)
      : channel_(channel),
        border_value_(context.border_value),
        radius_x_(radius_x),
        radius_y_(radius_y),
        columns_(positions(context.settings.border, channel.width, 2 * radius_x + 1)),
        rows_(positions(context.settings.border, channel.height, 2 * radius_y + 1)) {}

  int operator()(int x, int y) const {
    int column = columns_[x + radius_x_], row = rows_[y + radius_y_];
    return column < 0 || row < 0 ? border_value_ : channel_.sample[row * channel_.width + column];
  }

 private:
  const Channel &channel_;
  const int border_value_, radius_x_, radius_y_;
  const std::vector<int> columns_, rows_;
};

struct Value {
  int sample;
  bool exact;
  Real real;
};

// Makes a channel with out(x, y) at each pixel. With border=keep, pixels closer to an edge than the margin are copied
// from `kept`.
template <typename F>
Channel for_each_sample(const Channel &kept, const Context &context, int margin_x, int margin_y, F out) {
  Channel result{kept.width, kept.height, {}, {}};
  bool keep = context.settings.border == Border::Keep;
  for (int y = 0; y < kept.height; y++) {
    for (int x = 0; x < kept.width; x++) {
      bool crosses = x < margin_x || x >= kept.width - margin_x || y < margin_y || y >= kept.height - margin_y;
      int copy = kept.sample[y * kept.width + x];
      Value v = keep && crosses ? Value{copy, true, static_cast<Real>(copy)} : out(x, y);
      result.sample.push_back(v.sample);
      result.real.push_back(v.exact ? v.sample : v.real);
    }
  }
  return result;
}

bool is_integer(Real v) {
  return v == std::floor(v) && std::abs(v) < 0x1p31L;
}

// The sum of coefficients times samples around (x, y). It is exact in 64 bits if coefficients are integers below 2^31.
template <typename Number>
Number correlate(const Grid &g, const std::vector<Number> &coefficient, const Samples &sample, int x, int y) {
  Number sum = 0;
  for (int j = 0; j < g.height; j++)
    for (int i = 0; i < g.width; i++)
      sum += coefficient[j * g.width + i] * sample(x + i - g.width / 2, y + j - g.height / 2);
  return sum;
}

// floor(v + 1/2) clamped to [0, max], by its definition: the largest n with v >= n - 1/2. at_least(m): whether v >=
// m/2.
template <typename F>
int nearest(int max, F at_least) {
  int low = 0, high = max;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (at_least(2 * middle - 1))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

bool takes_absolute(const FilterSettings &s) {
  if (s.negative != Negative::Auto) return s.negative == Negative::Absolute;
  switch (s.mask) {
    case Mask::SobelX:
    case Mask::SobelY:
    case Mask::ScharrX:
    case Mask::ScharrY:
    case Mask::PrewittX:
    case Mask::PrewittY:
    case Mask::Laplace:
    case Mask::Laplace8:
    case Mask::Log5:
      return true;
    default:
      return false;
  }
}

// A mask of more than a thousand pixels, as the product of a row and a column. It is summed along rows, then along
// columns. For unsharp, the result is a multiple of this sum plus a multiple of the pixel.
struct Large {
  std::vector<Real> row, column;
  Real gain = 1, pixel = 0, divisor = 1;
};

bool large_of(const FilterSettings &s, Large *large) {
  if (s.mask == Mask::Box) {
    large->row.assign(width_of(s, 5), 1);
    large->column.assign(height_of(s, 5), 1);
  } else if (s.mask == Mask::Gauss || s.mask == Mask::Unsharp) {
    large->row = gaussian_row(s);
    large->column = gaussian_column(s);
  }
  const size_t count = large->row.size() * large->column.size();
  if (count <= 1000) return false;
  if (s.mask == Mask::Box) large->divisor = static_cast<Real>(count);
  if (s.mask == Mask::Unsharp) {
    large->gain = -static_cast<Real>(s.amount);
    large->pixel = 1 + static_cast<Real>(s.amount);
  }
  if (s.divisor != 0 && s.mask != Mask::Unsharp) large->divisor = s.divisor;
  return true;
}

// Convolves with a large mask in long doubles. Their 64 bits hold every sum of a box exactly.
Channel convolve_large(const Channel &in, const Context &context, const Large &large) {
  const FilterSettings &s = context.settings;
  const int radius_x = static_cast<int>(large.row.size()) / 2, radius_y = static_cast<int>(large.column.size()) / 2;
  const Real bias = static_cast<Real>(s.bias) * (context.max + 1);
  const Samples sample(in, context, radius_x, 0);
  const std::vector<int> rows_at = positions(s.border, in.height, 2 * radius_y + 1);
  const auto along = [](const std::vector<Real> &line, auto value) {
    const int length = static_cast<int>(line.size());
    Real sum = 0;
    for (int i = 0; i < length; i++) sum += line[i] * value(i - length / 2);
    return sum;
  };
  std::vector<Real> rows;
  for (int y = 0; y < in.height; y++)
    for (int x = 0; x < in.width; x++) rows.push_back(along(large.row, [&](int i) { return sample(x + i, y); }));
  const Real outside = along(large.row, [&](int) { return context.border_value; });
  const bool exact = s.mask == Mask::Box && is_integer(large.divisor) && is_integer(bias);
  Channel out = for_each_sample(in, context, radius_x, radius_y, [&](int x, int y) {
    const Real sum = along(large.column, [&](int i) {
      const int row = rows_at[y + i + radius_y];
      return row < 0 ? outside : rows[row * in.width + x];
    });
    const Real total = large.gain * sum + large.pixel * sample(x, y);
    Real v = total / large.divisor + bias;
    if (takes_absolute(s)) v = std::abs(v);
    const Real max = context.max;
    int nearest_below = static_cast<int>(std::clamp<Real>(std::floor(v + 0.5L), 0, max));
    if (exact) {  // a rounded quotient could be on the other side of a half
      const auto at_least = [&](Integer m, Integer t) {
        const Integer d = static_cast<Integer>(large.divisor);
        return d > 0 ? 2 * t >= m * d : 2 * t <= m * d;
      };
      const Integer t = static_cast<Integer>(total) + static_cast<Integer>(bias) * static_cast<Integer>(large.divisor);
      nearest_below =
          nearest(context.max, [&](int m) { return at_least(m, t) || (takes_absolute(s) && at_least(m, -t)); });
    }
    return Value{nearest_below, exact, std::clamp<Real>(v, 0, max)};
  });
  if (exact) out.real.clear();
  return out;
}

Channel convolve(const Channel &in, const Context &context) {
  const FilterSettings &s = context.settings;
  Large large;
  if (large_of(s, &large)) return convolve_large(in, context, large);
  Convolution c = convolution_of(s);
  Real divisor = s.divisor != 0 && s.mask != Mask::Unsharp ? static_cast<Real>(s.divisor) : c.own_divisor;
  Real bias = static_cast<Real>(s.bias) * (context.max + 1);
  bool absolute = takes_absolute(s);
  bool euclidean = c.combine == Combine::Magnitude && s.magnitude == Magnitude::L2;
  int radius_x = c.grids[0].width / 2, radius_y = c.grids[0].height / 2;
  Samples sample(in, context, radius_x, radius_y);

  // Weights of a Gaussian are real numbers, even if a single weight is 1.
  bool exact = s.mask != Mask::Gauss && s.mask != Mask::Unsharp && is_integer(divisor) && is_integer(bias);
  for (const Grid &g : c.grids) exact = exact && std::all_of(g.value.begin(), g.value.end(), is_integer);

  std::vector<std::vector<int64_t>> integers;
  for (const Grid &g : c.grids)
    if (exact) integers.emplace_back(g.value.begin(), g.value.end());

  auto exactly = [&](int x, int y) {
    std::vector<Integer> sums;
    for (size_t k = 0; k < c.grids.size(); k++) sums.push_back(correlate(c.grids[k], integers[k], sample, x, y));
    // v = r / d + b, where r is a sum or the square root of a sum.
    Integer d = static_cast<Integer>(divisor), b = static_cast<Integer>(bias), r = sums[0];
    if (c.combine == Combine::Largest) r = *std::max_element(sums.begin(), sums.end());
    if (c.combine == Combine::Magnitude) {
      Integer gx = sums[0] < 0 ? -sums[0] : sums[0], gy = sums[1] < 0 ? -sums[1] : sums[1];
      r = euclidean ? gx * gx + gy * gy : gx + gy;
    }
    // Compares with q/2: r itself if it is a sum, its square if it is a root.
    auto response_at_least = [&](Integer q) { return !euclidean ? 2 * r >= q : q <= 0 || 4 * r >= q * q; };
    auto response_at_most = [&](Integer q) { return !euclidean ? 2 * r <= q : q >= 0 && 4 * r <= q * q; };
    auto v_at_least = [&](Integer m) {
      return d > 0 ? response_at_least((m - 2 * b) * d) : response_at_most((m - 2 * b) * d);
    };
    auto v_at_most = [&](Integer m) {
      return d > 0 ? response_at_most((m - 2 * b) * d) : response_at_least((m - 2 * b) * d);
    };
    int result = nearest(context.max, [&](int m) { return v_at_least(m) || (absolute && v_at_most(-m)); });
    return Value{result, true, 0};
  };

  auto approximately = [&](int x, int y) {
    std::vector<Real> sums;
    for (const Grid &g : c.grids) sums.push_back(correlate(g, g.value, sample, x, y));
    Real r = sums[0];
    if (c.combine == Combine::Largest) r = *std::max_element(sums.begin(), sums.end());
    if (c.combine == Combine::Magnitude)
      r = euclidean ? std::hypot(sums[0], sums[1]) : std::abs(sums[0]) + std::abs(sums[1]);
    Real v = r / divisor + bias;
    if (absolute) v = std::abs(v);
    Real max = context.max;
    return Value{static_cast<int>(std::clamp<Real>(std::floor(v + 0.5L), 0, max)), false, std::clamp<Real>(v, 0, max)};
  };

  Channel out = exact ? for_each_sample(in, context, radius_x, radius_y, exactly)
                      : for_each_sample(in, context, radius_x, radius_y, approximately);
  if (exact) out.real.clear();
  return out;
}

Channel median(const Channel &in, const Context &context) {
  int radius_x = width_of(context.settings, 3) / 2, radius_y = height_of(context.settings, 3) / 2;
  Samples sample(in, context, radius_x, radius_y);
  Channel out = for_each_sample(in, context, radius_x, radius_y, [&](int x, int y) {
    std::vector<int> window;
    for (int dy = -radius_y; dy <= radius_y; dy++)
      for (int dx = -radius_x; dx <= radius_x; dx++) window.push_back(sample(x + dx, y + dy));
    std::sort(window.begin(), window.end());
    return Value{window[window.size() / 2], true, 0};
  });
  out.real.clear();
  return out;
}

// ---- Morphology -----------------------------------------------------------------------------------------------------

enum class Step { First, Second };  // of an opening or a closing

// Dilation or erosion over members at (dx, dy) of the pixel. The second step of an opening or a closing has them at
// (-dx, -dy).
Channel extreme(const Channel &in, const Context &context, bool largest, Step step) {
  Grid element = element_of(context.settings);
  int way = step == Step::First ? 1 : -1;
  int radius_x = element.width / 2, radius_y = element.height / 2;
  Samples sample(in, context, radius_x, radius_y);
  std::vector<std::pair<int, int>> members;
  for (int j = 0; j < element.height; j++)
    for (int i = 0; i < element.width; i++)
      if (element.at(i, j) != 0) members.emplace_back(way * (i - radius_x), way * (j - radius_y));
  Channel out = for_each_sample(in, context, radius_x, radius_y, [&](int x, int y) {
    int result = largest ? 0 : context.max;
    for (const auto &[dx, dy] : members) {
      int v = sample(x + dx, y + dy);
      result = largest ? std::max(result, v) : std::min(result, v);
    }
    return Value{result, true, 0};
  });
  out.real.clear();
  return out;
}

Channel dilate(Channel c, const Context &context, Step step = Step::First) {
  for (int n = 0; n < context.settings.iterations; n++) c = extreme(c, context, true, step);
  return c;
}

Channel erode(Channel c, const Context &context, Step step = Step::First) {
  for (int n = 0; n < context.settings.iterations; n++) c = extreme(c, context, false, step);
  return c;
}

Channel opening(const Channel &c, const Context &context) {
  return dilate(erode(c, context), context, Step::Second);
}

Channel closing(const Channel &c, const Context &context) {
  return erode(dilate(c, context), context, Step::Second);
}

// a - b. `passes`: the number of passes in the longer of the two chains from `source` to a and to b.
Channel difference(const Channel &a, const Channel &b, const Channel &source, const Context &context, int passes) {
  Grid element = element_of(context.settings);
  int margin_x = element.width / 2 * passes, margin_y = element.height / 2 * passes;
  Channel out = for_each_sample(source, context, margin_x, margin_y, [&](int x, int y) {
    int i = y * source.width + x;
    return Value{std::max(a.sample[i] - b.sample[i], 0), true, 0};
  });
  out.real.clear();
  return out;
}

// ---- One channel ----------------------------------------------------------------------------------------------------

// Takes the pixels that regions do not filter from `source`, and mixes pixels that fade.
Channel in_regions(const Channel &out, const Channel &source, const Shares &original) {
  Channel result = out;
  for (int y = 0; y < out.height; y++) {
    for (int x = 0; x < out.width; x++) {
      const int share = original(x, y), i = y * out.width + x;
      result.sample[i] = mixed(out.sample[i], source.sample[i], share);
      if (!result.real.empty()) result.real[i] += (source.sample[i] - out.real[i]) * share / 256;
    }
  }
  return result;
}

// Takes the samples that the filter changes by no more than the threshold from `source`. A difference within a
// millionth of a code of the threshold equals it.
Channel above_threshold(const Channel &out, const Channel &source, const FilterSettings &s, int max) {
  const Real threshold = static_cast<Real>(s.threshold) * max + 1e-6L;
  Channel result = out;
  for (size_t i = 0; s.threshold > 0 && i < out.sample.size(); i++) {
    if (std::abs(out.sample[i] - source.sample[i]) > threshold) continue;
    result.sample[i] = source.sample[i];
    if (!result.real.empty()) result.real[i] = source.sample[i];
  }
  return result;
}

bool takes_weights(const FilterSettings &s) {
  return s.alpha == Alpha::Weighted && s.mask != Mask::Identity && s.mask != Mask::Fill && s.mask != Mask::Mosaic &&
         s.mask != Mask::Median && (s.mask < Mask::Dilate || s.mask > Mask::Blackhat);
}

Channel bilateral(const Channel &in, const Context &context) {
  int depth = 0;
  while (1 << depth <= context.max) depth++;
  Channel weights;
  const bool weighted = !context.alpha.sample.empty();
  if (weighted) weights = weights_of(context.alpha, in.width, in.height, context.alpha_sub_x, context.alpha_sub_y);
  std::vector<const Channel *> channels;
  for (const Channel &colour : context.colours) channels.push_back(&colour);
  if (channels.empty()) channels.push_back(&in);
  const std::vector<int> border =
      context.colours.empty() ? std::vector<int>{context.border_value} : context.colours_border;
  Channel out = bilateral(channels, weighted ? &weights : nullptr,
                          bilateral_mask(context.settings, depth, border, context.alpha_border))[context.colour];
  out.real.clear();
  return out;
}

Channel weighted(const Channel &in, const Context &context) {
  const FilterSettings &s = context.settings;
  Convolution c = convolution_of(s);
  const Grid &g = c.grids[0];
  Real divisor = s.divisor != 0 ? static_cast<Real>(s.divisor) : c.own_divisor;
  Real bias = static_cast<Real>(s.bias) * (context.max + 1);
  bool exact = s.mask != Mask::Gauss && is_integer(divisor) && is_integer(bias) &&
               std::all_of(g.value.begin(), g.value.end(), is_integer);
  return weighted_mean(in, weights_of(context.alpha, in.width, in.height, context.alpha_sub_x, context.alpha_sub_y),
                       {g.width, g.height, g.value, divisor, bias, exact, takes_absolute(s), s.border, context.max,
                        context.border_value, context.alpha_border});
}

// Whether each iteration acts like a separate element.
bool repeats_whole(Mask mask) {
  switch (mask) {
    case Mask::Open:
    case Mask::Close:
    case Mask::Gradient:
    case Mask::Tophat:
    case Mask::Blackhat:
    case Mask::Mosaic:
      return false;
    default:
      return true;
  }
}

// One iteration, for filters whose iterations repeat the whole filter.
Channel run(const Channel &in, const Context &context) {
  if (context.settings.mask == Mask::Bilateral) return bilateral(in, context);
  if (!context.alpha.sample.empty()) return weighted(in, context);
  switch (context.settings.mask) {
    case Mask::Dilate:
      return extreme(in, context, true, Step::First);
    case Mask::Erode:
      return extreme(in, context, false, Step::First);
    case Mask::Median:
      return median(in, context);
    default:
      return convolve(in, context);
  }
}

Channel filter_field(const Channel &in, const Context &context) {
  int n = context.settings.iterations;
  // Filters of several passes read whole frames between passes: regions apply only to the last pass.
  const auto at_the_end = [&](const Channel &out) {
    return in_regions(above_threshold(out, in, context.settings, context.max), in, context.original);
  };
  switch (context.settings.mask) {
    case Mask::Open:
      return at_the_end(opening(in, context));
    case Mask::Close:
      return at_the_end(closing(in, context));
    case Mask::Gradient:
      return at_the_end(difference(dilate(in, context), erode(in, context), in, context, n));
    case Mask::Tophat:
      return at_the_end(difference(in, opening(in, context), in, context, 2 * n));
    case Mask::Blackhat:
      return at_the_end(difference(closing(in, context), in, in, context, 2 * n));
    case Mask::Mosaic:
      return at_the_end(mosaic(in, context.mosaic));
    default:
      break;
  }
  // Each iteration acts like a separate element.
  Channel out = in;
  for (int i = 0; i < n; i++)
    out = in_regions(above_threshold(run(out, context), out, context.settings, context.max), out, context.original);
  return out;
}

Channel filter_interlaced(const Channel &in, Context context, const Regions &regions, int columns, int rows,
                          const PlaneLayout &plane) {
  const auto split = [](const Channel &from, Channel *field) {
    for (int y = 0; y < from.height; y++) {
      Channel &f = field[y % 2];
      f.width = from.width;
      f.height++;
      f.sample.insert(f.sample.end(), &from.sample[y * from.width], &from.sample[y * from.width] + from.width);
    }
  };
  Channel field[2], alpha[2];
  split(in, field);
  split(context.alpha, alpha);
  const std::vector<Channel> colours = context.colours;
  for (int k = 0; k < 2; k++) {
    context.original = shares_of(regions, columns, rows, plane, true, k);
    context.mosaic.first_row = k;
    context.alpha = alpha[k];
    for (size_t i = 0; i < colours.size(); i++) {
      Channel of_field[2];
      split(colours[i], of_field);
      context.colours[i] = of_field[k];
    }
    field[k] = filter_field(field[k], context);
  }
  Channel out{in.width, in.height, {}, {}};
  for (int y = 0; y < in.height; y++) {
    const Channel &f = field[y % 2];
    auto append_row = [&](auto &to, const auto &from) {
      if (!from.empty()) to.insert(to.end(), &from[y / 2 * in.width], &from[y / 2 * in.width] + in.width);
    };
    append_row(out.sample, f.sample);
    append_row(out.real, f.real);
  }
  return out;
}

bool has_neutral_chroma(Mask mask) {
  switch (mask) {
    case Mask::SobelX:
    case Mask::SobelY:
    case Mask::Sobel:
    case Mask::ScharrX:
    case Mask::ScharrY:
    case Mask::Scharr:
    case Mask::PrewittX:
    case Mask::PrewittY:
    case Mask::Prewitt:
    case Mask::Roberts:
    case Mask::Kirsch:
    case Mask::Laplace:
    case Mask::Laplace8:
    case Mask::Log5:
    case Mask::Emboss:
    case Mask::Gradient:
    case Mask::Tophat:
    case Mask::Blackhat:
      return true;
    default:
      return false;
  }
}

bool is_neutral(const FilterSettings &s, const ChannelLayout &channel) {
  return channel.role == Role::Chroma &&
         (s.chroma == Chroma::Neutral || (s.chroma == Chroma::Auto && has_neutral_chroma(s.mask)));
}

// Whether the frame has red, green and blue. Luma and grey have one channel.
bool is_rgb(const FrameLayout &layout) {
  int primaries = 0;
  for (const PlaneLayout &plane : layout.plane)
    for (int c = 0; c < plane.channels; c++) primaries += plane.channel[c].role == Role::Luma;
  return primaries == 3;
}

int border_alpha(const FrameLayout &layout) {
  for (const PlaneLayout &plane : layout.plane)
    for (int c = 0; c < plane.channels; c++)
      if (plane.channel[c].role == Role::Alpha) return plane.border_value[c];
  return 0;
}

bool adds_differences(const FilterSettings &s, const FrameLayout &layout) {
  return s.mask == Mask::Bilateral && is_rgb(layout);
}

void add_colours(const FrameLayout &layout, const Frame &frame, int plane, int channel, Context &context) {
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) {
      if (layout.plane[p].channel[c].role != Role::Luma) continue;
      if (p == plane && c == channel) context.colour = context.colours.size();
      context.colours.push_back(frame.plane[p][c]);
      context.colours_border.push_back(layout.plane[p].border_value[c]);
    }
}

// The size of the frame is the size of its planes that are not subsampled.
std::pair<int, int> size_of(const FrameLayout &layout) {
  int columns = 0, rows = 0;
  for (int i = 0; i < layout.planes; i++) {
    if (layout.plane[i].sub_x == 0) columns = layout.plane[i].width;
    if (layout.plane[i].sub_y == 0) rows = layout.plane[i].height;
  }
  return {columns, rows};
}

// `alpha`: the weights of colours; nullptr: no weights.
Channel filter_channel(const FilterSettings &s, const FrameLayout &layout, int p, int c, const Frame &frame,
                       const Channel *alpha, const Regions &regions) {
  const Channel &in = frame.plane[p][c];
  const PlaneLayout &plane = layout.plane[p];
  const ChannelLayout &channel = plane.channel[c];
  const bool fills = s.mask == Mask::Fill;
  if (s.mask == Mask::Identity || (channel.role == Role::Padding && !fills)) return in;
  if (channel.role == Role::Alpha && s.alpha == Alpha::Copy && !fills) return in;
  if (channel.role == Role::Luma && s.luma == Luma::Copy && !is_rgb(layout) && !fills) return in;
  Context context{s, max_sample(channel), plane.border_value[c], {}, {}, {}, 0, 0, 0, {}, {}, 0};
  const auto [columns, rows] = size_of(layout);
  const int row_step = layout.interlaced ? 2 : 1;
  context.mosaic = {width_of(s, 16), height_of(s, 16), &regions,    columns, rows,    1,
                    row_step,        plane.sub_x,      plane.sub_y, 0,       row_step};
  for (int i = 0; i < layout.planes; i++) {
    context.mosaic.unit_x = std::max(context.mosaic.unit_x, 1 << layout.plane[i].sub_x);
    context.mosaic.unit_y = std::max(context.mosaic.unit_y, row_step << layout.plane[i].sub_y);
  }
  context.original = shares_of(regions, columns, rows, plane, layout.interlaced);
  if (fills)
    return in_regions({in.width, in.height, std::vector<int>(in.sample.size(), plane.fill_value[c]), {}}, in,
                      context.original);
  if (channel.role == Role::Chroma && s.chroma == Chroma::Copy) return in;
  if (is_neutral(s, channel)) {
    Channel neutral{in.width, in.height, std::vector<int>(in.sample.size(), 1 << (channel.depth - 1)), {}};
    // Pixels that fade do so in each iteration.
    Channel out = in;
    for (int i = repeats_whole(s.mask) ? s.iterations : 1; i > 0; i--) out = in_regions(neutral, out, context.original);
    return out;
  }
  if (alpha && channel.role != Role::Alpha) {
    context.alpha = *alpha;
    context.alpha_sub_x = plane.sub_x;
    context.alpha_sub_y = plane.sub_y;
    context.alpha_border = border_alpha(layout);
  }
  if (adds_differences(s, layout) && channel.role == Role::Luma) add_colours(layout, frame, p, c, context);
  return layout.interlaced ? filter_interlaced(in, context, regions, columns, rows, plane) : filter_field(in, context);
}

}  // namespace

bool is_mean(Mask mask) {
  if (mask == Mask::Bilateral) return true;
  FilterSettings s;
  s.mask = mask;
  s.alpha = Alpha::Weighted;
  if (!takes_weights(s) || mask == Mask::Custom) return false;
  const Convolution c = convolution_of(s);
  const std::vector<Real> &value = c.grids[0].value;
  return c.combine == Combine::Only && std::all_of(value.begin(), value.end(), [](Real v) { return v >= 0; });
}

Frame above_threshold(const FilterSettings &settings, const FrameLayout &layout, const Frame &result,
                      const Frame &source) {
  Frame out = result;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const ChannelLayout &channel = layout.plane[p].channel[c];
      if (is_neutral(settings, channel)) continue;
      out.plane[p][c] = above_threshold(out.plane[p][c], source.plane[p][c], settings, max_sample(channel));
    }
  return out;
}

Frame in_regions(const Frame &filtered, const Frame &original, const FrameLayout &layout, const Regions &regions) {
  Frame out;
  const auto [columns, rows] = size_of(layout);
  for (int p = 0; p < layout.planes; p++) {
    const auto shares = shares_of(regions, columns, rows, layout.plane[p], layout.interlaced);
    for (int c = 0; c < layout.plane[p].channels; c++)
      out.plane[p].push_back(in_regions(filtered.plane[p][c], original.plane[p][c], shares));
  }
  return out;
}

Frame filter(const FilterSettings &settings, const FrameLayout &layout, const Frame &source, const Regions &regions) {
  const auto alpha_of = [&](const Frame &frame) -> const Channel * {
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++)
        if (layout.plane[p].channel[c].role == Role::Alpha) return &frame.plane[p][c];
    return nullptr;
  };
  const bool weighted = takes_weights(settings) && alpha_of(source);
  // Colours of each iteration need the alpha, or the other colours, of the iteration before.
  const bool together = weighted || adds_differences(settings, layout);
  FilterSettings once = settings;
  if (together) once.iterations = 1;
  Frame in = source, out;
  for (int i = 0; i < (together ? settings.iterations : 1); i++) {
    out = {};
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++)
        out.plane[p].push_back(filter_channel(once, layout, p, c, in, weighted ? alpha_of(in) : nullptr, regions));
    in = out;
  }
  return out;
}

}  // namespace cudaconv::reference
