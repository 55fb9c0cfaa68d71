// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/decimation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "plan/border.h"
#include "plan/fixed_point.h"

namespace cudaconv {

namespace {

constexpr int kMostBits = 10;         // largest depth; deeper samples leave too few bits of fraction
constexpr int kLargestLogFactor = 3;  // above, reducing costs more than the blur saves
// Least ratio of the standard deviation to D. Below it, no blur of coarse samples comes near a Gaussian.
constexpr double kLeastRatio = 2.5;
constexpr int kRoundings = 5;  // roundings before the final rounding
// Number of refits of a blur, and the factor by which they can be expected to reduce its error.
constexpr int kRefits = 12;
constexpr double kMostGain = 1.4;

std::vector<int32_t> four_boxes(int side) {
  std::vector<int32_t> line = {1};
  for (int i = 0; i < 4; i++) {
    std::vector<int32_t> next(line.size() + side - 1, 0);
    for (size_t j = 0; j < line.size(); j++)
      for (int k = 0; k < side; k++) next[j + k] += line[j];
    line = std::move(next);
  }
  return line;
}

// A function of the integers from -reach() to reach(); 0 elsewhere.
class Line {
 public:
  explicit Line(int reach) : value_(2 * static_cast<size_t>(reach) + 1) {}
  int reach() const { return static_cast<int>(value_.size()) / 2; }
  double &operator[](int i) { return value_[static_cast<size_t>(i + reach())]; }
  double at(int i) const { return std::abs(i) > reach() ? 0 : value_[static_cast<size_t>(i + reach())]; }

 private:
  std::vector<double> value_;
};

// Finds the blur of coarse samples that comes nearest to the wanted weights. The first fit is by least squares. Each
// refit() comes nearer to the least sum of absolute differences. The weights of reducing and expanding are fixed.
class Designer {
 public:
  Designer(const std::vector<double> &weights, int log_factor, int depth)
      : weights_(weights),
        target_radius_(static_cast<int>(weights.size()) / 2),
        d_(1 << log_factor),
        fine_bits_(depth > 8 ? Decimation::kFineBits : 0) {
    result_.log_factor = log_factor;
    result_.fraction = Decimation::fraction_of(depth);
    result_.offset = depth > 8 ? 1 << (depth + result_.fraction - 1) : 0;
    result_.reduce = four_boxes(d_);
    result_.expand.resize(d_);
    for (int phase = 0; phase < d_; phase++)
      for (int j = 0; j < 4; j++) {
        const int tap = phase + d_ - j * d_ + 2 * d_ - 2;
        result_.expand[phase][j] = tap >= 0 && tap < 4 * d_ - 3 ? result_.reduce[tap] : 0;
      }
    for (int phase = 0; phase < d_; phase++) make_response(phase);
    result_.blur.resize(2 * ((target_radius_ + d_ - 1) / d_ + 1) + 1);
    fit([](int, int) { return 1.0; });
  }

  const Decimation &result() const { return result_; }

  // The sum of absolute differences between the actual and the wanted weights of a result's samples, for the worst
  // phase.
  double error() const {
    double worst = 0;
    for (int phase = 0; phase < d_; phase++) {
      double sum = 0;
      for (int x = -result_.reach(); x <= result_.reach(); x++) sum += std::fabs(difference(phase, x));
      worst = std::max(worst, sum);
    }
    return worst;
  }

  // Fits the blur again, with squares divided by the present differences. Repeated, this leads to the least sum of
  // absolute differences (iteratively reweighted least squares).
  void refit() {
    constexpr double kLeastDifference = 1e-7;
    fit([&](int phase, int x) { return 1 / std::max(std::fabs(difference(phase, x)), kLeastDifference); });
  }

 private:
  double target(int x) const { return std::abs(x) > target_radius_ ? 0 : weights_[x + target_radius_]; }

  // The weights of reducing and expanding alone, without a blur, of the samples around sample `phase`. The index is the
  // distance from that sample.
  void make_response(int phase) {
    Line line(4 * d_ + 2 * d_);
    for (int j = 0; j < 4; j++)
      for (int i = 0; i < 4 * d_ - 3; i++)
        line[(j - 1) * d_ + i - (2 * d_ - 2) - phase] +=
            std::ldexp(static_cast<double>(result_.expand[phase][j]) * result_.reduce[i], -7 * result_.log_factor);
    response_.push_back(std::move(line));
  }

  // The unknowns that the weight of sample x depends on, and their factors.
  using Terms = std::vector<std::pair<int, double>>;

  // Linear equations for the blur's middle weight and the pairs of weights around it. The last unknown is the
  // multiplier that makes the sum 1.
  class Equations {
   public:
    explicit Equations(int radius) : radius_(radius), rows_(radius + 2, std::vector<double>(radius + 3)) {
      for (int a = 0; a <= radius; a++) rows_[a][radius + 1] = rows_[radius + 1][a] = a ? 2 : 1;
      rows_[radius + 1][radius + 2] = 1;
    }
    // Adds `factor` times the square of the difference between `terms` and `value` to the sum that is minimised.
    void add(const Terms &terms, double value, double factor) {
      for (const auto &[a, of_a] : terms) {
        for (const auto &[b, of_b] : terms) rows_[a][b] += factor * of_a * of_b;
        rows_[a][radius_ + 2] += factor * of_a * value;
      }
    }
    // Gaussian elimination. The last element of each row is its right side.
    std::vector<double> solve() {
      std::vector<std::vector<double>> &rows = rows_;
      const size_t n = rows.size();
      for (size_t i = 0; i < n; i++) {
        const auto pivot = std::max_element(rows.begin() + i, rows.end(), [i](const auto &a, const auto &b) {
          return std::fabs(a[i]) < std::fabs(b[i]);
        });
        std::swap(rows[i], *pivot);
        for (size_t j = i + 1; j < n; j++) {
          const double factor = rows[j][i] / rows[i][i];
          for (size_t k = i; k <= n; k++) rows[j][k] -= factor * rows[i][k];
        }
      }
      std::vector<double> x(n);
      for (size_t i = n; i-- > 0;) {
        x[i] = rows[i][n];
        for (size_t k = i + 1; k < n; k++) x[i] -= rows[i][k] * x[k];
        x[i] /= rows[i][i];
      }
      return x;
    }

   private:
    const int radius_;
    std::vector<std::vector<double>> rows_;
  };

  Terms terms(int phase, int x) const {
    const Line &response = response_[phase];
    const int radius = result_.radius(), near = response.reach() / d_ + 1;
    Terms terms;
    const auto add = [&](int unknown, double factor) {
      if (factor != 0) terms.emplace_back(unknown, factor);
    };
    const int cell = x / d_;
    for (int a = std::max(0, std::abs(cell) - near); a <= std::min(radius, std::abs(cell) + near); a++)
      add(a, a ? response.at(x - a * d_) + response.at(x + a * d_) : response.at(x));
    return terms;
  }

  // The actual minus the wanted weight of sample x, with the blur in integers.
  double difference(int phase, int x) const {
    const Line &response = response_[phase];
    const int radius = result_.radius(), near = response.reach() / d_ + 1, cell = x / d_;
    double weight = 0;
    for (int l = std::max(-radius, cell - near); l <= std::min(radius, cell + near); l++)
      weight += blur_[l + radius] * response.at(x - l * d_);
    return weight - target(x);
  }

  // Fits the blur by least squares over all phases, each square times factor(phase, x).
  template <typename Factor>
  void fit(Factor factor) {
    Equations equations(result_.radius());
    for (int phase = 0; phase < d_; phase++)
      for (int x = -result_.reach(); x <= result_.reach(); x++)
        equations.add(terms(phase, x), target(x), factor(phase, x));
    take(equations.solve());
  }

  void take(const std::vector<double> &half) {
    const int radius = result_.radius();
    std::vector<double> blur;
    for (int l = -radius; l <= radius; l++) blur.push_back(half[std::abs(l)]);
    const int bits = Decimation::kBlurBits + fine_bits_;
    result_.blur = fixed_point(blur, bits, 1);
    blur_.clear();
    for (int32_t weight : result_.blur) blur_.push_back(std::ldexp(weight, -bits));
    if (!fine_bits_) return;
    result_.fine.clear();
    for (int32_t &weight : result_.blur) {
      const int32_t nearest = (weight + (1 << (fine_bits_ - 1))) >> fine_bits_;
      result_.fine.push_back(weight - nearest * (1 << fine_bits_));
      weight = nearest;
    }
  }

  const std::vector<double> &weights_;
  const int target_radius_, d_, fine_bits_;
  Decimation result_;
  std::vector<double> blur_;    // the weights of the integer blur
  std::vector<Line> response_;  // by phase
};

// How far the negative weights of a blur can take coarse samples out of the range of samples, on either side.
double outside_of(const Decimation &decimation) {
  double outside = 0;
  for (int32_t weight : decimation.blur) outside += weight < 0 ? -std::ldexp(weight, -Decimation::kBlurBits) : 0;
  for (int32_t weight : decimation.fine)
    outside += std::ldexp(std::abs(weight), -Decimation::kBlurBits - Decimation::kFineBits);
  return outside;
}

// Whether coarse samples and weights fit 16 bits.
bool fit_16_bits(const Decimation &x, const Decimation &y, int depth) {
  const double range = std::ldexp(1, depth + x.fraction) * (1 + 2 * outside_of(x)) * (1 + 2 * outside_of(y));
  const auto fit = [](const std::vector<int32_t> &blur) {
    return std::all_of(blur.begin(), blur.end(), [](int32_t w) { return w <= INT16_MAX; });
  };
  return range - x.offset < INT16_MAX - 2 && fit(x.blur) && fit(y.blur);
}

double variance_of(const std::vector<double> &weights) {
  const int middle = static_cast<int>(weights.size()) / 2;
  double variance = 0;
  for (int i = 0; i < static_cast<int>(weights.size()); i++) variance += weights[i] * (i - middle) * (i - middle);
  return variance;
}

}  // namespace

CoarseLine coarse_line(const Decimation &decimation, Border border, int length) {
  const CoarseLine expanded = expanded_line(decimation, length);
  const int radius = decimation.radius(), d = decimation.factor();
  const int first = expanded.first - radius, last = expanded.first + expanded.count - 1 + radius;
  if (!is_uniform_outside(border)) return {first, last - first + 1};
  // Coarse samples from here outwards come only from samples outside the frame, which are all equal.
  const int before = -2, after = (length + 2 * d - 2 + d - 1) / d;
  const int begin = std::max(first, before);
  return {begin, std::min(last, after) - begin + 1};
}

Decimations make_decimations(const std::vector<double> &row, const std::vector<double> &column, int depth,
                             double allowed) {
  if (depth > kMostBits) return {};
  const double variance = std::min(variance_of(row), variance_of(column));
  const bool same = row == column;
  for (int log_factor = kLargestLogFactor; log_factor >= 1; log_factor--) {
    if (variance < std::ldexp(kLeastRatio * kLeastRatio, 2 * log_factor)) continue;
    Designer x(row, log_factor, depth);
    std::optional<Designer> other;
    if (!same) other.emplace(column, log_factor, depth);
    Designer &y = same ? x : *other;
    // The errors of the weights add up to 0, so samples count from the middle of the range, which halves the error.
    const double largest = std::ldexp(1, depth) - 1;
    const auto error = [&](double of_x, double of_y) {
      return (((of_x + of_y) / 2 + of_x * of_y) * largest + std::ldexp(kRoundings * 0.5, -x.result().fraction)) * 1.001;
    };
    double of_x = x.error(), of_y = y.error();
    const bool can_help = error(of_x / kMostGain, of_y / kMostGain) <= allowed;
    for (int i = 0; i < kRefits && can_help && error(of_x, of_y) > allowed; i++) {
      x.refit();
      if (!same) y.refit();
      of_x = x.error();
      of_y = y.error();
    }
    if (error(of_x, of_y) > allowed || !fit_16_bits(x.result(), y.result(), depth)) continue;
    const auto of_rows = std::make_shared<const Decimation>(x.result());
    return {of_rows, same ? of_rows : std::make_shared<const Decimation>(y.result())};
  }
  return {};
}

}  // namespace cudaconv
