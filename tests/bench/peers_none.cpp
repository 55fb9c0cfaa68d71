// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peers.h"

namespace cudaconv::bench {

std::optional<Enqueue> npp_filter(const FilterSettings &, int) {
  return std::nullopt;
}

}  // namespace cudaconv::bench
