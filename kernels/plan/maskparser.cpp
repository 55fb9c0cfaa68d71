// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/maskparser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "plan/messages.h"

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

// The bracket that closes `c`, or 0 if `c` opens none.
char closer_of(char c) {
  switch (c) {
    case '[':
      return ']';
    case '(':
      return ')';
    case '{':
      return '}';
    case '<':
      return '>';
    default:
      return 0;
  }
}
bool closes(char c) {
  return c == ']' || c == ')' || c == '}' || c == '>';
}

// Reads rows of numbers, in the notation of all properties that hold several: plain, or in brackets as other programs
// print lists of lists, one pair around each row, around all rows, or both.
class RowReader {
 public:
  // `property`, `row` and `number` are the words for the text and its parts in messages.
  // `width` is the length of all rows; 0: rows end as the text says.
  RowReader(std::string_view text, const char *property, const char *row, const char *number, size_t width = 0)
      : at_(text.data()), end_(at_ + text.size()), property_(property), row_(row), number_(number), width_(width) {}

  // Reads the numbers of the next row, at least one. False at the end of the text.
  bool next(std::vector<double> *numbers) {
    numbers->clear();
    if (!find_row()) return false;
    for (;;) {
      numbers->push_back(parse_number(numbers->size() + 1));
      skip_blanks();
      const size_t here = numbers->size() + 1;
      if (at_ == end_) {
        refuse_open_bracket(here);
        break;
      }
      if (closes(*at_)) {
        close(here);
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
  bool marked() const { return marked_; }  // whether brackets or a ';' say what a row is

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
  enum class Before { Nothing, Opening, Closing, Comma, RowEnd };  // what was read before a row

  // Newlines count as blanks within the brackets of a row, and where rows have a fixed width.
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

  // Skips what separates rows, up to the first number of the next row. False at the end of the text.
  bool find_row() {
    const size_t next = rows_ + 1;
    for (;;) {
      skip_blanks();
      if (skip_type()) continue;
      if (at_ == end_) {
        if (!closers_.empty()) rows_ = next;
        refuse_open_bracket(1);
        return false;
      }
      if (*at_ == '\n') {  // an empty line separates nothing
        at_++;
      } else if (before_ == Before::Closing && (*at_ == ',' || *at_ == ';')) {
        at_++;
        before_ = Before::Comma;
      } else if (closer_of(*at_)) {
        rows_ = next;
        if (width_) refuse_number(1, quoted({*at_}) + " within a kernel of fixed width");
        if (closers_.size() == kDeepest) refuse_number(1, quoted({*at_}) + " is one bracket too many");
        if (rows_ > 1 && row_depth_ == closers_.size())
          refuse_number(1, quoted({*at_}) + " opens a bracket that the rows before it are not in");
        rows_ = next - 1;
        marked_ = true;
        closers_ += closer_of(*at_++);
        before_ = Before::Opening;
      } else if (closes(*at_)) {
        rows_ = next;
        if (before_ == Before::Opening) refuse_number(1, "a number is missing");
        close(1);
        rows_ = next - 1;
      } else {
        rows_ = next;
        if (rows_ > 1 && row_depth_ != closers_.size())
          refuse_number(1, "the row is not in as many brackets as those before it");
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
    if (width_ && (word == "-" || word == "nan")) {  // ImageMagick's words for what does not belong to the kernel
      at_ = word_end;
      return 0;
    }
    const char *const slash = std::find(at_, word_end, '/');
    double number = parse_decimal(at_, slash, index, word);
    if (slash != word_end) {
      const double divisor = parse_decimal(slash + 1, word_end, index, word);
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
      refuse_number(index, quoted(word) + " is beyond what a number can be, 1e-308 to 1e308 or 0");
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
  std::string closers_;   // closing brackets of those that are open
  size_t row_depth_ = 0;  // how many brackets were around the rows so far
  Before before_ = Before::Nothing;
};

[[noreturn]] void refuse_coefficients(const std::string &why) {
  refuse("coefficients: " + why);
}

// ImageMagick's geometry before the numbers of a kernel, such as "3:", "3x1:" or "3x3+1+1:".
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
    const bool good = error == std::errc() && stop != at;
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

// Whether GObject has made the text of an array of doubles: "< 0.333333, 0.333333 >". It cuts them off after six
// digits, and writes the decimal point of the locale.
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
                  " is too large; 31x31 is the largest");

  Coefficients result;
  result.width = static_cast<int>(width);
  result.height = static_cast<int>(height);
  result.value = std::move(value);
  return result;
}

std::vector<Region> parse_regions(const std::string &text) {
  RowReader reader(text, "roi", "rectangle", "number");
  std::vector<Region> result;
  for (std::vector<double> row; reader.next(&row);) {
    if (row.size() != 4)
      reader.refuse_row(reader.rows(), " has " + count(row.size(), "number") + "; x, y, width and height are needed");
    int value[4];
    for (int i = 0; i < 4; i++) {
      constexpr int kLargest = std::numeric_limits<int>::max();
      if (row[i] != std::floor(row[i])) reader.refuse_number(i + 1, number_text(row[i]) + " is not a whole number");
      if (std::abs(row[i]) > kLargest)
        reader.refuse_number(i + 1, number_text(row[i]) + " is outside -" + std::to_string(kLargest) + " to " +
                                        std::to_string(kLargest));
      value[i] = static_cast<int>(row[i]);
    }
    for (int i = 2; i < 4; i++)
      if (value[i] <= 0)
        reader.refuse_number(
            i + 1, std::string(i == 2 ? "width " : "height ") + std::to_string(value[i]) + " makes an empty region");
    result.push_back({value[0], value[1], value[2], value[3]});
  }
  if (result.empty()) reader.refuse("it has no rectangle");
  return result;
}

}  // namespace cudaconv
