#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# mahotas 1.4.19: a mean by convolve() makes every picture of integers black: the weights are cut off to integers.
#
# convolve() casts the mask to the type of the picture before it does anything. The weights 1/9 of a mean, and all of a
# Gaussian's, are 0 as integers. The sum stays in this type too: nine samples of 200 with weights of 1 give 8, which is
# 1800 less 7 times 256. There is no warning. A picture of doubles is right, and convolve1d() of integers keeps the
# weights. SciPy keeps them too.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: flat pictures of 200 by nine weights of 1/9, by nine weights of 1
#       mahotas 1.4.19: uint8 0, 8; uint16 0, 1800; int32 0, 1800; float64 200, 1800; convolve1d of uint8: 199
#       SciPy 1.17.1, convolve: uint8 200, 8; uint16 200, 1800; int32 200, 1800; float64 200, 1800
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 mahotas==1.4.19
"$folder/bin/python" - <<'EOF'
import sys
import mahotas, numpy, scipy
from scipy import ndimage

KINDS = numpy.uint8, numpy.uint16, numpy.int32, numpy.float64
ones = numpy.ones((3, 3))

def middle(convolve, kind, mask):
  return round(float(convolve(numpy.full((9, 9), 200, kind), mask)[4, 4]))

def found(convolve):
  return {kind.__name__: (middle(convolve, kind, ones / 9), middle(convolve, kind, ones)) for kind in KINDS}

def text(results):
  return "; ".join("%s %d, %d" % (kind, *results[kind]) for kind in results)

by_mahotas, by_scipy = found(mahotas.convolve), found(ndimage.convolve)
line = round(float(mahotas.convolve1d(numpy.full((9, 9), 200, numpy.uint8), numpy.full(3, 1 / 3), 0)[4, 4]))
print("flat pictures of 200 by nine weights of 1/9, by nine weights of 1")
print("mahotas %s: %s; convolve1d of uint8: %d" % (mahotas.__version__, text(by_mahotas), line))
print("SciPy %s, convolve: %s" % (scipy.__version__, text(by_scipy)))
sys.exit(not (all(by_mahotas[kind][0] == 0 for kind in ("uint8", "uint16", "int32")) and
              by_mahotas["float64"] == (200, 1800) and by_mahotas["uint8"][1] == 8 and line in (199, 200) and
              all(abs(result[0] - 200) <= 1 for result in by_scipy.values())))
EOF
