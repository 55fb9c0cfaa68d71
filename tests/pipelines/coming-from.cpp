// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Holds pipelines/coming-from.md to the bytes of other programs: coming-from PAGE FOLDER RESULTS
//
// Each launch line of PAGE filters the images a.gray8 and c.rgb of FOLDER. The page has to say how far the result is
// from the bytes that the other program gave. FOLDER/calls.tsv lists the calls: the program, the call, and how many
// rows and columns at each edge count as the border. RESULTS has the bytes of both images for each call, in this order.
//
// To add a call, append its line to calls.tsv, append its bytes to what results.bin.xz holds, and write its row into
// PAGE with any result. The test prints the result that it should be.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

using namespace cudaconv::test;

namespace {

constexpr int kWidth = 64, kHeight = 48;
constexpr int kComponents = 1 + 3;  // of a.gray8 and c.rgb

std::string page_path, folder, results_path;

using Bytes = std::vector<uint8_t>;

// A program, and a call of it.
using Call = std::pair<std::string, std::string>;

struct Row {
  int line_number = 0;
  Call call;
  std::string launch_line, result;  // as the page says
};

// Numbers of calls by how near the nearest line comes.
struct Counts {
  int equal = 0, within_one = 0, but_at_border = 0, more = 0;

  std::string text() const {
    std::ostringstream text;
    text << equal + within_one + but_at_border + more;
    for (int n : {equal, within_one, but_at_border, more}) text << " | " << n;
    return " | " + text.str() + " |";
  }
};

struct Page {
  std::vector<Row> rows;
  std::map<std::string, std::string> counts;  // lines of the first table, by program, and of "all"
};

// The bytes of another program for a call.
struct Expected {
  int band = 0;  // of the border
  size_t offset = 0;
};

// Of all samples of both images.
struct Difference {
  int inside = 0, border = 0;  // the largest
  int samples = 0;             // that differ

  // "equal", or for example "1, 0.3 %" or "2; border 14, 15 %".
  std::string text() const {
    if (samples == 0) return "equal";
    const double percent = 100.0 * samples / (kWidth * kHeight * kComponents);
    char share[16];
    std::snprintf(share, sizeof share, percent < 0.1 ? "<0.1" : percent < 10 ? "%.1f" : "%.0f", percent);
    std::ostringstream text;
    text << inside;
    if (border != inside) text << "; border " << border;
    text << ", " << share << " %";
    return text.str();
  }
};

bool operator<(const Difference &a, const Difference &b) {
  return std::make_pair(a.inside, a.border) < std::make_pair(b.inside, b.border);
}

Bytes bytes_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  fail_unless(file.good(), "%s cannot be read", path.c_str());
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> lines_of(const std::string &path) {
  std::ifstream file(path);
  fail_unless(file.good(), "%s cannot be read", path.c_str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The parts without blanks around them.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    parts.push_back(first == std::string::npos ? std::string() : part.substr(first, last + 1 - first));
  }
  return parts;
}

// "call" of "`call`"; an empty text without quotes.
std::string unquoted(const std::string &cell) {
  const bool quoted = cell.size() > 2 && cell.front() == '`' && cell.back() == '`';
  return quoted ? cell.substr(1, cell.size() - 2) : std::string();
}

// The rows of calls are below the heading of their program: | `call` | `launch line` | differs | why |. The first table
// has the numbers of calls: | [program](#heading) | version | calls | equal | ... |.
Page read_page() {
  Page page;
  std::string program;
  int line_number = 0;
  for (const std::string &line : lines_of(page_path)) {
    line_number++;
    if (line.compare(0, 3, "## ") == 0) program = line.substr(3);
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 2 || !cells[0].empty()) continue;
    const size_t link = cells[1].find("](#");
    if (link != std::string::npos) page.counts[cells[1].substr(1, link - 1)] = line;
    if (cells[1] == "all") page.counts["all"] = line;
    if (cells.size() == 5 && !unquoted(cells[1]).empty() && !unquoted(cells[2]).empty())
      page.rows.push_back({line_number, {program, unquoted(cells[1])}, unquoted(cells[2]), cells[3]});
  }
  return page;
}

std::map<Call, Expected> read_calls() {
  std::map<Call, Expected> calls;
  for (const std::string &line : lines_of(folder + "/calls.tsv")) {
    const std::vector<std::string> parts = split(line, '\t');
    fail_unless_equals_int(parts.size(), 3);
    const Expected expected = {atoi(parts[2].c_str()), calls.size() * kWidth * kHeight * kComponents};
    fail_unless(calls.emplace(Call(parts[0], parts[1]), expected).second, "%s is there twice", line.c_str());
  }
  return calls;
}

// Runs a launch line as it is, with the backend of the test. Converts its result to the format of the image.
Bytes filtered(std::string line, const Bytes &image, const char *format) {
  for (size_t at = 0; (at = line.find("cudaconv ", at)) != std::string::npos; at += strlen("cudaconv "))
    line.insert(at + strlen("cudaconv "), std::string("backend=") + test_backend() + " ");
  Harness h(new_bin(line + " ! videoconvert ! capsfilter caps=video/x-raw,format=" + format));
  h.set_caps(video_info(format, kWidth, kHeight));
  const Ref<GstBuffer> in(gst_buffer_new_memdup(image.data(), image.size())), out = h.filter(in.get());
  Bytes bytes(gst_buffer_get_size(out.get()));
  fail_unless_equals_int(bytes.size(), image.size());
  gst_buffer_extract(out.get(), 0, bytes.data(), bytes.size());
  return bytes;
}

void compare(const Bytes &got, const uint8_t *expected, int components, int band, Difference *difference) {
  for (size_t i = 0; i < got.size(); i++) {
    const int x = i / components % kWidth, y = i / components / kWidth;
    const bool inside = x >= band && x < kWidth - band && y >= band && y < kHeight - band;
    int &largest = inside ? difference->inside : difference->border;
    largest = std::max(largest, std::abs(got[i] - expected[i]));
    difference->samples += got[i] != expected[i];
  }
}

void count(const Difference &nearest, Counts *counts) {
  int &n = nearest.samples == 0                         ? counts->equal
           : nearest.inside <= 1 && nearest.border <= 1 ? counts->within_one
           : nearest.inside <= 1                        ? counts->but_at_border
                                                        : counts->more;
  n++;
}

GST_START_TEST(the_page_says_how_far_each_launch_line_is_from_the_other_program) {
  const Page page = read_page();
  const std::map<Call, Expected> calls = read_calls();
  const Bytes gray = bytes_of(folder + "/a.gray8"), rgb = bytes_of(folder + "/c.rgb"), results = bytes_of(results_path);
  fail_unless_equals_int(results.size(), calls.size() * (gray.size() + rgb.size()));
  std::string wrong;
  std::map<Call, Difference> nearest;
  for (const Row &row : page.rows) {
    const auto call = calls.find(row.call);
    if (call == calls.end()) {
      wrong += "line " + std::to_string(row.line_number) + ": " + row.call.second + " is not in calls.tsv\n";
      continue;
    }
    const auto &[band, offset] = call->second;
    Difference difference;
    compare(filtered(row.launch_line, gray, "GRAY8"), &results[offset], 1, band, &difference);
    compare(filtered(row.launch_line, rgb, "RGB"), &results[offset + gray.size()], 3, band, &difference);
    if (difference.text() != row.result)
      wrong += "line " + std::to_string(row.line_number) + ": " + row.call.second + " is \"" + difference.text() +
               "\", not \"" + row.result + "\"\n";
    const auto [before, is_new] = nearest.emplace(row.call, difference);
    if (!is_new) before->second = std::min(before->second, difference);
  }
  std::map<std::string, Counts> counts;
  for (const auto &[call, difference] : nearest) {
    count(difference, &counts[call.first]);
    count(difference, &counts["all"]);
  }
  for (const auto &[call, expected] : calls)
    if (!nearest.count(call)) wrong += "the page lacks " + call.first + ", " + call.second + "\n";
  for (const auto &[program, numbers] : counts) {
    const auto line = page.counts.find(program);
    const std::string text = numbers.text();
    if (line == page.counts.end() || !g_str_has_suffix(line->second.c_str(), text.c_str()))
      wrong += "the numbers of " + program + " are" + text + "\n";
  }
  g_printerr("%s", wrong.c_str());  // it may be too long for a message of the test
  fail_unless(wrong.empty(), "%s is not right", page_path.c_str());
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("coming-from");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, the_page_says_how_far_each_launch_line_is_from_the_other_program);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: coming-from PAGE FOLDER RESULTS\n");
    return 2;
  }
  page_path = argv[1];
  folder = argv[2];
  results_path = argv[3];
  return run_suite(argc, argv, "coming-from", make_suite, !strcmp(test_backend(), "cuda"));
}
