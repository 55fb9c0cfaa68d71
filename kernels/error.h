// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stdexcept>
#include <string>

#include "export.h"

namespace cudaconv {

// The exception that kernels/ throws. The text is a sentence for the user. File and line, for developers, name the
// place that found the cause. Functions that only throw get them from their callers, by the same default arguments.
class CUDACONV_EXPORT Error : public std::runtime_error {
 public:
  enum class Kind {
    Settings,   // the filter settings cannot be carried out as asked
    Format,     // the frame's format, not a setting, cannot be filtered
    NoDevice,   // no usable CUDA device
    Device,     // a CUDA call failed; the text names the call and the driver's reason
    Cancelled,  // submit() was told to give up
  };

  Error(Kind kind, const std::string &text, const char *file = __builtin_FILE(), int line = __builtin_LINE())
      : std::runtime_error(text), kind_(kind), file_(file), line_(line) {}
  Kind kind() const { return kind_; }
  const char *file() const { return file_; }
  int line() const { return line_; }

 private:
  Kind kind_;
  const char *file_;
  int line_;
};

}  // namespace cudaconv
