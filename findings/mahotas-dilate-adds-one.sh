#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# mahotas 1.4.19: a dilation by a flat element makes the picture brighter by 1, and an erosion darker by 1.
#
# A structuring element of booleans says which neighbours count. mahotas adds its values, so True is a height of 1: a
# flat picture of 100 becomes 101 or 99. Both in a row, an opening, give 100 again, but a flat picture of 1 becomes 0.
# SciPy's `footprint` of booleans keeps each grey.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: mahotas 1.4.19: dilate 101, erode 99, open of 100 100, open of 1 0
#       SciPy 1.17.1: dilate 100, erode 100, open of 100 100, open of 1 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 mahotas==1.4.19
"$folder/bin/python" - <<'EOF'
import sys
import mahotas, numpy, scipy
from scipy import ndimage

element = numpy.ones((3, 3), bool)

def flat(grey):
  return numpy.full((16, 16), grey, numpy.uint8)

def measures(name, dilate, erode, opened):
  seen = tuple(int(f(flat(grey))[8, 8]) for f, grey in ((dilate, 100), (erode, 100), (opened, 100), (opened, 1)))
  print("%s: dilate %d, erode %d, open of 100 %d, open of 1 %d" % (name, *seen))
  return seen

by_mahotas = measures("mahotas " + mahotas.__version__, lambda a: mahotas.dilate(a, element),
                      lambda a: mahotas.erode(a, element), lambda a: mahotas.open(a, element))
by_scipy = measures("SciPy " + scipy.__version__, lambda a: ndimage.grey_dilation(a, footprint=element),
                    lambda a: ndimage.grey_erosion(a, footprint=element),
                    lambda a: ndimage.grey_opening(a, footprint=element))
sys.exit(not (by_mahotas == (101, 99, 100, 0) and by_scipy == (100, 100, 100, 1)))
EOF
