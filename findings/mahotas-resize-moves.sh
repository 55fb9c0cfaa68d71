#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# mahotas 1.4.19: shift(), zoom() and imresize() move the picture up and left by one pixel, and do not interpolate.
#
# A shift by 0 and a zoom by 1 leave a picture as it is. In mahotas both, and a resize to the same size, give each sample
# its neighbour below and right, and black for the last row and column. Splines of order 0 to 5 give the same bytes: a
# shift by half a column moves a dot by a whole one and does not spread it. There is no error. SciPy, which has the same
# functions, keeps the picture, and spreads the dot over two columns.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: mahotas 1.4.19: a dot of 100 in row 4, column 4, after shift by 0, zoom by 1, resize to its size: 3 3, 3 3, 3 3
#       shifted by half a column: 100 in row 3, column 4
#       columns 0 10 20 ... 70, resized to 8 columns: 10 20 30 40 50 60 70 0
#       SciPy 1.17.1: shift by 0 and zoom by 1: 4 4, 4 4; by half a column: 50 in row 4, column 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 mahotas==1.4.19
"$folder/bin/python" - <<'EOF'
import sys
import mahotas, numpy, scipy
from mahotas import interpolate
from scipy import ndimage

dot = numpy.zeros((9, 9))
dot[4, 4] = 100
ramp = numpy.tile(numpy.arange(8) * 10.0, (8, 1))

def place(picture):
  """Row and column of the largest sample, the first of several."""
  return tuple(int(place) for place in numpy.unravel_index(picture.round(6).argmax(), picture.shape))

def half(shift):
  picture = shift(dot, (0, 0.5), order=1)
  return (round(float(picture.max())), *place(picture))

found = {order: [place(interpolate.shift(dot, (0, 0), order=order)), place(interpolate.zoom(dot, 1.0, order=order)),
                 place(mahotas.imresize(dot, (9, 9), order=order))] for order in range(6)}
row = mahotas.imresize(ramp, (8, 8))[3].round().astype(int).tolist()
by_scipy = [place(ndimage.shift(dot, (0, 0))), place(ndimage.zoom(dot, 1.0))]
print("mahotas %s: a dot of 100 in row 4, column 4, after shift by 0, zoom by 1, resize to its size: %s"
      % (mahotas.__version__, ", ".join("%d %d" % at for at in found[3])))
print("shifted by half a column: %d in row %d, column %d" % half(interpolate.shift))
print("columns 0 10 20 ... 70, resized to 8 columns:", *row)
print("SciPy %s: shift by 0 and zoom by 1: %s; by half a column: %d in row %d, column %d"
      % (scipy.__version__, ", ".join("%d %d" % at for at in by_scipy), *half(ndimage.shift)))
sys.exit(not (all(places == [(3, 3)] * 3 for places in found.values()) and half(interpolate.shift) == (100, 3, 4) and
              row == [10, 20, 30, 40, 50, 60, 70, 0] and by_scipy == [(4, 4)] * 2 and
              half(ndimage.shift) == (50, 4, 4)))
EOF
