#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SciPy 1.17.1: gaussian_filter makes flat 8-bit pictures up to two codes darker, for some sigmas and greys.
#
# The result of an integer picture is cut off, not rounded, after each of the two axes. The sum of the weights is 1 but
# for the last bit of a double. Where it is below 1, a flat picture of 200 becomes 199.999..., and so 199, then 198. It
# depends on sigma and on the grey, and on the processor: NumPy's exp() differs in its last bit from one to the other.
# The same filter on doubles, rounded, keeps each grey.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: SciPy 1.17.1: of 256 flat greys, darker by one code and by two:
#       sigma 0.5: 41, 20; sigma 1: 0, 0; sigma 2: 0, 0; sigma 2.5: 12, 231; sigma 3: 7, 0
#       (an Intel with AVX-512; an AMD EPYC the same but sigma 2: 1, 0)
#       on doubles, rounded: none
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1
"$folder/bin/python" - <<'EOF'
import sys
import numpy, scipy
from scipy.ndimage import gaussian_filter

def darker(sigma, kind):
  codes = [0, 0, 0]
  for grey in range(256):
    blurred = numpy.round(gaussian_filter(numpy.full((32, 32), grey, kind), sigma)).astype(int)
    codes[grey - blurred.max()] += blurred.min() == blurred.max()
  return int(codes[1]), int(codes[2])

sigmas = (0.5, 1, 2, 2.5, 3)
of_bytes = {sigma: darker(sigma, numpy.uint8) for sigma in sigmas}
of_doubles = {darker(sigma, float) for sigma in sigmas}
print("SciPy %s: of 256 flat greys, darker by one code and by two:" % scipy.__version__)
print("; ".join("sigma %g: %d, %d" % (sigma, *codes) for sigma, codes in of_bytes.items()))
print("on doubles, rounded: %s" % ("none" if of_doubles == {(0, 0)} else of_doubles))
sys.exit(not (sum(of_bytes[2.5]) > 0 and of_bytes[1] == (0, 0) and of_doubles == {(0, 0)}))
EOF
