// SPDX-License-Identifier: LGPL-2.1-or-later
#include "maskparser.h"

#include <charconv>
#include <cmath>
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

class Parser {
 public:
  explicit Parser(const std::string &text) : at_(text.data()), end_(text.data() + text.size()) {}

  Coefficients parse() {
    while (at_ != end_) parse_row();
    if (rows_ == 0) refuse("it has no numbers");

    Coefficients result;
    if (rows_ == 1 && (value_.size() == 9 || value_.size() == 25 || value_.size() == 49)) {
      rows_ = width_ = static_cast<size_t>(std::lround(std::sqrt(value_.size())));
    }
    if (width_ % 2 == 0) refuse("rows have " + count(width_, "number") + ", which is not odd");
    if (rows_ % 2 == 0) refuse("it has " + count(rows_, "row") + ", which is not odd");
    if (width_ > kLargestSide || rows_ > kLargestSide)
      refuse("a mask of " + std::to_string(width_) + "x" + std::to_string(rows_) +
             " is too large; 31x31 is the largest");
    result.width = static_cast<int>(width_);
    result.height = static_cast<int>(rows_);
    result.value = std::move(value_);
    return result;
  }

 private:
  [[noreturn]] static void refuse(const std::string &text) {
    throw Error(Error::Kind::Settings, "coefficients: " + text);
  }

  [[noreturn]] void refuse_here(const std::string &text) const {
    refuse("row " + std::to_string(rows_ + 1) + ", column " + std::to_string(columns_ + 1) + ": " + text);
  }

  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) at_++;
  }

  bool at_row_end() const { return at_ == end_ || ends_row(*at_); }

  void parse_row() {
    columns_ = 0;
    skip_blanks();
    if (at_ == end_) return;
    if (*at_ == '\n') {  // an empty line separates nothing
      at_++;
      return;
    }
    for (;;) {
      parse_number();
      skip_blanks();
      if (at_row_end()) break;
      if (*at_ == ',') {
        at_++;
        skip_blanks();
      }
    }
    if (at_ != end_) at_++;

    if (rows_ == 0) width_ = columns_;
    if (columns_ != width_)
      refuse("row " + std::to_string(rows_ + 1) + " has " + count(columns_, "number") + ", row 1 has " +
             std::to_string(width_));
    rows_++;
  }

  void parse_number() {
    const char *start = at_;
    const char *word_end = at_;
    while (word_end != end_ && !is_blank(*word_end) && !ends_row(*word_end) && *word_end != ',') word_end++;
    const std::string word(start, word_end);
    if (word.empty()) refuse_here("a number is missing");

    if (*start == '+') start++;  // from_chars takes no plus sign
    double number = 0;
    const auto [stop, error] = std::from_chars(start, word_end, number);
    if (error == std::errc::result_out_of_range) refuse_here("\"" + word + "\" is out of range");
    const bool two_signs = start != at_ && start != word_end && *start == '-';
    if (error != std::errc() || stop != word_end || two_signs) refuse_here("\"" + word + "\" is not a number");
    if (!std::isfinite(number)) refuse_here("\"" + word + "\" is not a finite number");
    value_.push_back(number);
    at_ = word_end;
    columns_++;
  }

  const char *at_;
  const char *const end_;
  size_t rows_ = 0, width_ = 0;  // complete rows, numbers in the first
  size_t columns_ = 0;           // numbers so far in the present row
  std::vector<double> value_;
};

}  // namespace

Coefficients parse_coefficients(const std::string &text) {
  return Parser(text).parse();
}

}  // namespace cudaconv
