// SPDX-License-Identifier: LGPL-2.1-or-later
#include "maskparser.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "error.h"

namespace cudaconv {

namespace {

constexpr size_t kLargestSide = 31;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool ends_row(char c) {
  return c == ';' || c == '\n';
}

std::string count(size_t n, const char *noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// Numbers in rows, as all properties that hold several write them.
class RowReader {
 public:
  // `property`, `row` and `number` are what messages call the text and its parts.
  RowReader(const std::string &text, const char *property, const char *row, const char *number)
      : at_(text.data()), end_(at_ + text.size()), property_(property), row_(row), number_(number) {}

  // The numbers of the next row, at least one. False at the end of the text.
  bool next(std::vector<double> *numbers) {
    numbers->clear();
    for (skip_blanks(); at_ != end_ && *at_ == '\n'; skip_blanks()) at_++;  // an empty line separates nothing
    if (at_ == end_) return false;
    rows_++;
    for (;;) {
      numbers->push_back(parse_number(numbers->size() + 1));
      skip_blanks();
      if (at_ == end_ || ends_row(*at_)) break;
      if (*at_ == ',') {
        at_++;
        skip_blanks();
      }
    }
    if (at_ != end_) at_++;
    return true;
  }

  size_t rows() const { return rows_; }  // so far

  [[noreturn]] void refuse(const std::string &why) const {
    throw Error(Error::Kind::Settings, std::string(property_) + ": " + why);
  }
  // Both count from 1.
  [[noreturn]] void refuse_row(size_t row, const std::string &why) const {
    refuse(std::string(row_) + " " + std::to_string(row) + why);
  }
  [[noreturn]] void refuse_number(size_t number, const std::string &why) const {
    refuse_row(rows_, std::string(", ") + number_ + " " + std::to_string(number) + ": " + why);
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) at_++;
  }

  double parse_number(size_t index) {
    const char *start = at_;
    const char *word_end = at_;
    while (word_end != end_ && !is_blank(*word_end) && !ends_row(*word_end) && *word_end != ',') word_end++;
    const std::string word(start, word_end);
    if (word.empty()) refuse_number(index, "a number is missing");

    if (*start == '+') start++;  // from_chars takes no plus sign
    double number = 0;
    const auto [stop, error] = std::from_chars(start, word_end, number);
    if (error == std::errc::result_out_of_range) refuse_number(index, "\"" + word + "\" is out of range");
    const bool two_signs = start != at_ && start != word_end && *start == '-';
    if (error != std::errc() || stop != word_end || two_signs) refuse_number(index, "\"" + word + "\" is not a number");
    if (!std::isfinite(number)) refuse_number(index, "\"" + word + "\" is not a finite number");
    at_ = word_end;
    return number;
  }

  const char *at_;
  const char *const end_;
  const char *const property_, *const row_, *const number_;
  size_t rows_ = 0;
};

}  // namespace

Coefficients parse_coefficients(const std::string &text) {
  RowReader reader(text, "coefficients", "row", "column");
  std::vector<double> value, row;
  size_t width = 0;
  while (reader.next(&row)) {
    if (value.empty()) width = row.size();
    if (row.size() != width)
      reader.refuse_row(reader.rows(), " has " + count(row.size(), "number") + ", row 1 has " + std::to_string(width));
    value.insert(value.end(), row.begin(), row.end());
  }
  size_t height = reader.rows();
  if (height == 0) reader.refuse("it has no numbers");

  if (height == 1 && (width == 9 || width == 25 || width == 49))
    height = width = static_cast<size_t>(std::lround(std::sqrt(width)));
  if (width % 2 == 0) reader.refuse("rows have " + count(width, "number") + ", which is not odd");
  if (height % 2 == 0) reader.refuse("it has " + count(height, "row") + ", which is not odd");
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
      if (row[i] != std::floor(row[i])) reader.refuse_number(i + 1, "not a whole number");
      if (std::abs(row[i]) > std::numeric_limits<int>::max()) reader.refuse_number(i + 1, "too large");
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
