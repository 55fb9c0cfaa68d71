// SPDX-License-Identifier: LGPL-2.1-or-later
//
// operator new of the whole program, plugin included, which can be made to fail.
#pragma once

#include <functional>

namespace cudaconv::test {

// Calls `f` while the n-th allocation from now on fails, n from 1, and all others succeed. Returns whether one failed.
bool with_failing_new(long n, const std::function<void()> &f);

}  // namespace cudaconv::test
