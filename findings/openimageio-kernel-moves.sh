#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenImageIO 3.2.2: convolve() by a mask from an array moves the picture up and left by half of the mask.
#
# A mask belongs to the sample under its middle. ImageBufAlgo.convolve() takes the pixel at the origin of the mask's
# image. make_kernel() puts it in the middle, so that a test with its masks finds nothing. An image from an array, or
# from a file, has it in the upper left corner: a mean of 5x5 moves everything by two pixels. Setting x and y of the
# mask's spec to minus half of its size centres it. The mask is not turned, so this is a correlation.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenImageIO 3.2.2.0, how far away the middle of a dot's spot is, in columns and rows
#       mean of 3x3: from an array -1 -1, with x and y set 0 0, make_kernel() 0 0
#       mean of 5x5: from an array -2 -2, with x and y set 0 0, make_kernel() 0 0
#       mean of 9x9: from an array -4 -4, with x and y set 0 0, make_kernel() 0 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 openimageio==3.2.2.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy
import OpenImageIO

def of_array(size):
  return OpenImageIO.ImageBuf(numpy.ones((size, size, 1), numpy.float32))

def centred(size):
  result = of_array(size)
  result.specmod().x = result.specmod().y = -(size // 2)
  return result

def made(size):
  return OpenImageIO.ImageBufAlgo.make_kernel("box", size, size)

dot = numpy.zeros((41, 41, 1), numpy.float32)
dot[20, 20] = 1

def moved(mask):
  """How far away the middle of a dot's spot is, in columns and rows."""
  result = OpenImageIO.ImageBufAlgo.convolve(OpenImageIO.ImageBuf(dot), mask)
  place = numpy.argwhere(result.get_pixels(OpenImageIO.FLOAT)[..., 0] > 0).mean(0) - 20
  return float(place[1]), float(place[0])

print("OpenImageIO %s, how far away the middle of a dot's spot is, in columns and rows" % OpenImageIO.__version__)
found = {size: [moved(kind(size)) for kind in (of_array, centred, made)] for size in (3, 5, 9)}
for size, (array, middle, kernel) in found.items():
  print("mean of %dx%d: from an array %g %g, with x and y set %g %g, make_kernel() %g %g" %
        (size, size, *array, *middle, *kernel))
sys.exit(not all(places == [(-(size // 2), -(size // 2)), (0, 0), (0, 0)] for size, places in found.items()))
EOF
