// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace cudaconv::test {

// Whether a list of names selects this one. An empty list selects all.
bool wanted(const std::vector<std::string> &list, const std::string &name);

// Prints the time of each backend and method for a few masks on full-HD frames, beside a plain copy of the same bytes.
// The lists are as wanted() takes them.
void run_bench(const std::vector<std::string> &backends, const std::vector<std::string> &masks,
               const std::vector<std::string> &methods);

}  // namespace cudaconv::test
