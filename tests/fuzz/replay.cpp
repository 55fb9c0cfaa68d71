// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Runs a fuzz target on every file of the given folders, instead of libFuzzer, with any compiler.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  std::vector<std::filesystem::path> files;
  try {
    for (int i = 1; i < argc; i++)
      for (const auto &entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::sort(files.begin(), files.end());
  for (const auto &file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    // The name is printed before the run, so that it is the last line if the file ends the program.
    std::printf("%s\n", file.filename().c_str());
    std::fflush(stdout);
    // The vector is exactly as large as the file, so that a sanitizer finds an access to the first byte behind it.
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  if (files.empty()) std::fprintf(stderr, "no files to run\n");
  return files.empty();
}
