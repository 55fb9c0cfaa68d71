// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/maskparser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>

#include "plan/messages.h"
#include "plan/polygon.h"

namespace cudaconv {

namespace {

constexpr size_t kLargestSide = 31;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool ends_row(char c) {
  return c == ';' || c == '\n';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string count(size_t n, const char *noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

constexpr std::string_view kOpeners = "[({<", kClosers = "])}>";

// The bracket that closes `c`, or 0 if `c` opens none.
char closer_of(char c) {
  const size_t i = kOpeners.find(c);
  return i == std::string_view::npos ? 0 : kClosers[i];
}
bool closes(char c) {
  return kClosers.find(c) != std::string_view::npos;
}

// Reads rows of numbers, for all properties that hold rows. Numbers are plain, or in brackets as other programs print
// lists of lists: a pair around each row, around all rows, or both.
class RowReader {
 public:
  // `property`, `row` and `number` are words for the text and its parts in messages.
  // `width` is the length of all rows; 0: rows end as the text says.
  RowReader(std::string_view text, const char *property, const char *row, const char *number, size_t width = 0)
      : at_(text.data()), end_(at_ + text.size()), property_(property), row_(row), number_(number), width_(width) {}

  // Reads the numbers of the next row, at least one. False at the end of the text.
  bool next(std::vector<double> *numbers) {
    numbers->clear();
    percentages_.clear();
    commas_.clear();
    if (!find_row()) return false;
    for (;;) {
      numbers->push_back(parse_number(numbers->size() + 1));
      skip_blanks();
      const size_t here = numbers->size() + 1;
      if (at_ == end_ || closes(*at_)) {
        at_ == end_ ? refuse_open_bracket(here) : close(here);
        break;
      }
      if (ends_row(*at_)) {
        if (width_) refuse_number(here, quoted({*at_}) + " within a kernel of fixed width");
        if (closers_.size() == kDeepest) refuse_number(here, quoted({*at_}) + " within the brackets of a row");
        marked_ = marked_ || *at_ == ';';
        at_++;
        before_ = Before::RowEnd;
        break;
      }
      commas_.push_back(*at_ == ',');
      if (*at_ == ',') {
        at_++;
        skip_blanks();
      }
      if (numbers->size() == width_) break;
      skip_type();
      if (at_ != end_ && closer_of(*at_)) refuse_number(here, quoted({*at_}) + " within a row");
    }
    return true;
  }

  size_t rows() const { return rows_; }    // rows read so far
  bool marked() const { return marked_; }  // whether brackets or a ';' mark rows

  // From now on numbers may end in '%'.
  void take_percentages() { takes_percentages_ = true; }
  bool is_percentage(size_t i) const { return percentages_[i]; }  // of the row read last
  // Whether commas and blanks alternate between the numbers of the row read last, "x,y x,y".
  bool is_list_of_pairs() const {
    for (size_t i = 0; i < commas_.size(); i++)
      if (commas_[i] != (i % 2 == 0)) return false;
    return true;
  }

  [[noreturn]] void refuse(const std::string &why, const char *file = __builtin_FILE(),
                           int line = __builtin_LINE()) const {
    cudaconv::refuse(std::string(property_) + ": " + why, file, line);
  }
  // `row` and `number` count from 1.
  [[noreturn]] void refuse_row(size_t row, const std::string &why, const char *file = __builtin_FILE(),
                               int line = __builtin_LINE()) const {
    refuse(std::string(row_) + " " + std::to_string(row) + why, file, line);
  }
  [[noreturn]] void refuse_number(size_t number, const std::string &why, const char *file = __builtin_FILE(),
                                  int line = __builtin_LINE()) const {
    refuse_row(rows_, std::string(", ") + number_ + " " + std::to_string(number) + ": " + why, file, line);
  }

 private:
  static constexpr size_t kDeepest = 2;                            // nesting of brackets
  enum class Before { Nothing, Opening, Closing, Comma, RowEnd };  // text before a row

  // Newlines count as blanks within the brackets of a row, and if rows have a fixed width.
  void skip_blanks() {
    while (at_ != end_ && (is_blank(*at_) || (*at_ == '\n' && (width_ || closers_.size() == kDeepest)))) at_++;
  }

  // Skips a type in parentheses, as GStreamer writes it before values: (int)1.
  bool skip_type() {
    if (end_ - at_ < 2 || *at_ != '(' || !is_letter(at_[1])) return false;
    const char *close = std::find(at_, end_, ')');
    if (close == end_) return false;
    at_ = close + 1;
    skip_blanks();
    return true;
  }

  // Skips separators, up to the first number of the next row. False at the end of the text.
  bool find_row() {
    rows_++;  // messages name this row
    for (;;) {
      skip_blanks();
      if (skip_type()) continue;
      if (at_ == end_) {
        refuse_open_bracket(1);
        rows_--;
        return false;
      }
      if (*at_ == '\n') {  // an empty line separates nothing
        at_++;
      } else if (before_ == Before::Closing && (*at_ == ',' || *at_ == ';')) {
        at_++;
        before_ = Before::Comma;
      } else if (closer_of(*at_)) {
        if (width_) refuse_number(1, quoted({*at_}) + " within a kernel of fixed width");
        if (closers_.size() == kDeepest) refuse_number(1, quoted({*at_}) + " is one bracket too many");
        if (rows_ > 1 && row_depth_ == closers_.size())
          refuse_number(1, quoted({*at_}) + " opens a bracket that the rows before do not have");
        marked_ = true;
        closers_ += closer_of(*at_++);
        before_ = Before::Opening;
      } else if (closes(*at_)) {
        if (before_ == Before::Opening) refuse_number(1, "a number is missing");
        close(1);
      } else {
        if (rows_ > 1 && row_depth_ != closers_.size())
          refuse_number(1, "the brackets differ from the brackets of the rows before");
        row_depth_ = closers_.size();
        return true;
      }
    }
  }

  void close(size_t number) {
    if (closers_.empty()) refuse_number(number, quoted({*at_}) + " closes no bracket");
    if (*at_ != closers_.back())
      refuse_number(number, quoted({*at_}) + " where " + quoted({closers_.back()}) + " has to close the bracket");
    closers_.pop_back();
    at_++;
    before_ = Before::Closing;
  }

  void refuse_open_bracket(size_t number) {
    if (!closers_.empty()) refuse_number(number, quoted({closers_.back()}) + " is missing at the end");
  }

  double parse_number(size_t index) {
    skip_type();
    const char *word_end = at_;
    while (word_end != end_ && !is_blank(*word_end) && !ends_row(*word_end) && *word_end != ',' &&
           !closer_of(*word_end) && !closes(*word_end))
      word_end++;
    const std::string word(at_, word_end);
    if (word.empty()) refuse_number(index, "a number is missing");
    if (width_ && (word == "-" || word == "nan")) {  // ImageMagick's words for positions outside the kernel
      at_ = word_end;
      return 0;
    }
    percentages_.push_back(takes_percentages_ && word.back() == '%');
    const char *const number_end = word_end - percentages_.back();
    const char *const slash = std::find(at_, number_end, '/');
    double number = parse_decimal(at_, slash, index, word);
    if (slash != number_end) {
      const double divisor = parse_decimal(slash + 1, number_end, index, word);
      if (divisor == 0) refuse_number(index, quoted(word) + " divides by 0");
      number /= divisor;
    }
    if (!std::isfinite(number)) refuse_number(index, quoted(word) + " is not a finite number");
    at_ = word_end;
    return number;
  }

  // `word` is the whole number, quoted in messages.
  double parse_decimal(const char *begin, const char *end, size_t index, const std::string &word) const {
    const bool plus = begin != end && *begin == '+';  // from_chars takes no plus sign
    double number = 0;
    const auto [stop, error] = std::from_chars(begin + plus, end, number);
    if (error == std::errc::result_out_of_range)
      refuse_number(index, quoted(word) + " is beyond the range of numbers, 0 or 1e-308 to 1e308");
    const bool two_signs = plus && end - begin > 1 && begin[1] == '-';
    if (error != std::errc() || stop != end || two_signs) refuse_number(index, quoted(word) + " is not a number");
    return number;
  }

  const char *at_;
  const char *const end_;
  const char *const property_, *const row_, *const number_;
  const size_t width_;
  size_t rows_ = 0;
  bool marked_ = false;
  std::string closers_;   // the closing brackets that are still missing
  size_t row_depth_ = 0;  // number of brackets around each of the rows so far
  Before before_ = Before::Nothing;
  bool takes_percentages_ = false;
  std::vector<bool> percentages_, commas_;  // of the row: by number; by separator
};

[[noreturn]] void refuse_coefficients(const std::string &why) {
  refuse("coefficients: " + why);
}

// ImageMagick's geometry before the numbers of a kernel, for example "3:", "3x1:" or "3x3+1+1:".
struct Geometry {
  size_t width = 0, height = 0;  // 0: the text has no geometry
  size_t length = 0;             // characters, with the ':'
};

Geometry read_geometry(const std::string &text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {};
  const char *at = text.data();
  const char *const end = at + colon;
  const auto read = [&](size_t *number) {
    const auto [stop, error] = std::from_chars(at, end, *number);
    const bool good = error == std::errc() && stop != at && *number <= UINT16_MAX;  // products of two stay exact
    at = stop;
    return good;
  };
  const auto skip = [&](char c) { return at != end && *at == c && ++at; };
  const auto skip_spaces = [&] {
    while (at != end && (is_blank(*at) || *at == '\n')) at++;
  };
  Geometry g;
  g.length = colon + 1;
  skip_spaces();
  bool good = read(&g.width);
  g.height = g.width;
  if (good && skip('x')) good = read(&g.height);
  size_t x = g.width / 2, y = g.height / 2;
  if (good && skip('+')) good = read(&x) && skip('+') && read(&y);
  skip_spaces();
  if (!good || at != end || !g.width || !g.height)
    refuse_coefficients(quoted(text.substr(0, colon)) + " before the ':' is not the size of a kernel, such as 3x3");
  if (x != g.width / 2 || y != g.height / 2)
    refuse_coefficients("the origin of a kernel has to be its centre, +" + std::to_string(g.width / 2) + "+" +
                        std::to_string(g.height / 2));
  return g;
}

// Whether GObject wrote the text from an array of doubles: "< 0.333333, 0.333333 >". GObject cuts doubles off after six
// digits, and uses the decimal point of the locale.
bool is_array_of_doubles(const std::string &text) {
  if ((text.rfind("< ", 0) != 0 && text.rfind("{ ", 0) != 0) || text.find('(') != std::string::npos) return false;
  for (size_t point = text.find_first_of(".,"); point != std::string::npos;
       point = text.find_first_of(".,", point + 1)) {
    size_t end = point + 1;
    while (end < text.size() && is_digit(text[end])) end++;
    const bool ends = text.compare(end, 1, " ") == 0 || text.compare(end, 2, ", ") == 0;
    if (is_digit(text[point - 1]) && end - point == 7 && ends) return true;
  }
  return false;
}

}  // namespace

Coefficients parse_coefficients(const std::string &text) {
  if (is_array_of_doubles(text))
    refuse_coefficients(
        "the numbers of an array of doubles come rounded to six digits; set a string, such as \"1 2 1\"");
  const Geometry geometry = read_geometry(text);
  RowReader reader(std::string_view(text).substr(geometry.length), "coefficients", "row", "column", geometry.width);
  std::vector<double> value, row;
  size_t width = 0;
  while (reader.next(&row)) {
    if (value.empty()) width = row.size();
    if (!geometry.length && row.size() != width)
      reader.refuse_row(reader.rows(), " has " + count(row.size(), "number") + ", row 1 has " + std::to_string(width));
    value.insert(value.end(), row.begin(), row.end());
  }
  size_t height = reader.rows();
  if (height == 0) reader.refuse("it has no numbers");

  if (value.size() != geometry.width * geometry.height && geometry.length)
    reader.refuse_row(height, " ends the kernel with " + count(value.size(), "number") + "; " +
                                  std::to_string(geometry.width) + "x" + std::to_string(geometry.height) + " has " +
                                  std::to_string(geometry.width * geometry.height));
  if (height == 1 && !geometry.length && !reader.marked() && (width == 9 || width == 25 || width == 49))
    height = width = static_cast<size_t>(std::lround(std::sqrt(width)));
  const char *const wanted = ", which is not odd; both sides of a mask are odd, 1 to 31";
  if (width % 2 == 0) reader.refuse("rows have " + count(width, "number") + wanted);
  if (height % 2 == 0) reader.refuse("it has " + count(height, "row") + wanted);
  if (width > kLargestSide || height > kLargestSide)
    reader.refuse("a mask of " + std::to_string(width) + "x" + std::to_string(height) +
                  " is too large; use at most 31x31");

  return {static_cast<int>(width), static_cast<int>(height), std::move(value)};
}

namespace {

// Whether all points are on one line, for every size of the picture.
bool is_line(const WrittenRegion &region) {
  std::vector<Point> points;
  for (size_t i = 0; i < region.number.size(); i += 2) {
    const auto &x = region.number[i], &y = region.number[i + 1];
    if (x.percent != region.number[0].percent || y.percent != region.number[1].percent) return false;
    points.push_back({x.value, y.value});
  }
  return are_on_a_line(points);
}

}  // namespace

std::vector<WrittenRegion> parse_regions(const std::string &text) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  RowReader reader(text, "roi", "region", "number");
  reader.take_percentages();
  std::vector<WrittenRegion> result;
  for (std::vector<double> row; reader.next(&row);) {
    if (row.size() == 4 && reader.is_list_of_pairs())
      reader.refuse_row(reader.rows(), " has 2 points; a polygon has three or more");
    if (row.size() != 4 && (row.size() < 6 || row.size() % 2))
      reader.refuse_row(reader.rows(), " has " + count(row.size(), "number") +
                                           "; a rectangle is x,y,width,height, a polygon x,y of three points or more");
    WrittenRegion &region = result.emplace_back();
    for (size_t i = 0; i < row.size(); i++) {
      if (std::abs(row[i]) > kLargest)
        reader.refuse_number(i + 1, number_text(row[i]) + " is outside -" + std::to_string(kLargest) + " to " +
                                        std::to_string(kLargest));
      if (row.size() == 4 && i >= 2 && row[i] <= 0)
        reader.refuse_number(
            i + 1, std::string(i == 2 ? "width " : "height ") + number_text(row[i]) + " makes an empty region");
      region.number.push_back({row[i], reader.is_percentage(i)});
    }
    if (region.is_polygon() && is_line(region))
      reader.refuse_row(reader.rows(), ": its points are on a line, which makes an empty region");
  }
  if (result.empty()) reader.refuse("it has no region");
  return result;
}

}  // namespace cudaconv
