#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SciPy 1.17.1: signal.wiener() of 8 bits has results far below 0, and removes little of the noise.
#
# The filter needs the mean of the squares in each window. It squares in the type of the picture, and a square of more
# than 255 does not fit in 8 bits. So the variances are wrong, many are below 0, and the result, a double, leaves the
# range of the picture. Samples of int16 from 182 on overflow too, and of uint16 from 256 on. The same picture as
# doubles is right. There is no error. 1.18.1 does the same.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: SciPy 1.17.1, a ramp from 60 to 186 with noise of 10 codes, wiener of 5x5:
#       uint8: -1276 to 187, noise left 5.1 codes; int16: -15 to 286, noise left 35.0 codes;
#       uint16: 40 to 203, noise left 2.0 codes; float64: 40 to 203, noise left 2.0 codes
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1
"$folder/bin/python" - <<'EOF'
import sys
import numpy, scipy
from scipy.signal import wiener

ramp = numpy.add.outer(numpy.arange(64), numpy.arange(64)) + 60.0
noisy = numpy.round(ramp + numpy.random.default_rng(1).normal(0, 10, ramp.shape))
inside = slice(4, -4), slice(4, -4)

def measures(kind):
  result = wiener(noisy.astype(kind), 5)
  left = numpy.sqrt(numpy.mean((result - ramp)[inside] ** 2))
  return float(result.min()), float(result.max()), float(left)

print("SciPy %s, a ramp from 60 to 186 with noise of 10 codes, wiener of 5x5:" % scipy.__version__)
found = {kind: measures(kind) for kind in ("uint8", "int16", "uint16", "float64")}
print("; ".join("%s: %.0f to %.0f, noise left %.1f codes" % (kind, *found[kind]) for kind in found))
sys.exit(not (found["uint8"][0] < -100 and found["uint8"][2] > 4 and found["int16"][2] > 20 and
              found["uint16"] == found["float64"] and found["float64"][0] > 0 and found["float64"][2] < 3))
EOF
