// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An operator new for the whole program, including the plugin, that can be made to fail.
#pragma once

#include <functional>

namespace cudaconv::test {

// Calls `f`. The n-th allocation from now on fails, n from 1; all others succeed. Returns whether one failed.
bool with_failing_new(long n, const std::function<void()> &f);

// Calls `f`. The n-th allocation from now on calls `call` first. Returns whether it was called.
bool with_call_in_new(long n, const std::function<void()> &call, const std::function<void()> &f);

}  // namespace cudaconv::test
