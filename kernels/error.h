// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <stdexcept>
#include <string>

namespace cudaconv {

// Everything that kernels/ reports. The text is a sentence for the user.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    Settings,  // the filter settings cannot be carried out as asked
    NoDevice,  // no usable CUDA device
    Device,    // a CUDA call failed; the text names the call and the driver's reason
  };

  Error(Kind kind, const std::string &text) : std::runtime_error(text), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace cudaconv
