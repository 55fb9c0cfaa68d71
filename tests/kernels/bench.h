// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace cudaconv::test {

// Prints how long each backend and method takes for a few masks on full-HD frames, beside a plain copy of the same
// bytes. An empty list selects all of its kind.
void run_bench(const std::vector<std::string> &backends, const std::vector<std::string> &masks,
               const std::vector<std::string> &methods);

}  // namespace cudaconv::test
