#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0: stylization() and edgePreservingFilter(NORMCONV_FILTER) make small smooth pictures all black.
#
# The filter takes means over a range that grows with sigma_s, 60 by default. A picture that is smaller than the range
# in one direction becomes 0 in all three channels: thumbnails of up to some 90 rows or columns, also with a drawing on
# a flat ground. There is no error. Edges shorten the range, so that a test with noise finds nothing. RECURS_FILTER, the
# default of edgePreservingFilter(), is right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenCV 5.0.0, a dark rectangle on 200: the ground by stylization, NORMCONV_FILTER, RECURS_FILTER
#       80x80: 0 0 200; 640x80: 0 0 200; 80x640: 0 0 200; 120x120: 200 200 200; 640x480: 200 200 200
#       sigma_s=200, flat 200, 640x200: 0; noise of 80x80, sigma_s=60: mean 128
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy

def drawing(rows, columns):
  """A dark rectangle on a light ground."""
  picture = numpy.full((rows, columns, 3), 200, numpy.uint8)
  picture[20:50, 20:60] = 20
  return picture

def ground(picture):
  """The result near a corner, by each filter."""
  results = (cv2.stylization(picture), cv2.edgePreservingFilter(picture, flags=cv2.NORMCONV_FILTER),
             cv2.edgePreservingFilter(picture, flags=cv2.RECURS_FILTER))
  return tuple(int(result[5, 5, 1]) for result in results), int(results[0].max())

print("OpenCV %s, a dark rectangle on 200: the ground by stylization, NORMCONV_FILTER, RECURS_FILTER" % cv2.__version__)
found = {size: ground(drawing(*size)) for size in ((80, 80), (80, 640), (640, 80), (120, 120), (480, 640))}
print("; ".join("%dx%d: %d %d %d" % (columns, rows, *found[rows, columns][0]) for rows, columns in found))
noise = numpy.random.default_rng(1).integers(0, 256, (80, 80, 3), numpy.uint8)
wide = int(cv2.edgePreservingFilter(numpy.full((200, 640, 3), 200, numpy.uint8), flags=2, sigma_s=200)[5, 5, 1])
noisy = float(cv2.edgePreservingFilter(noise, flags=2).mean())
print("sigma_s=200, flat 200, 640x200: %d; noise of 80x80, sigma_s=60: mean %.0f" % (wide, noisy))
small = [found[size] for size in found if min(size) < 90]
large = [found[size] for size in found if min(size) > 90]
sys.exit(not (all(result == (0, 0, 200) and largest == 0 for result, largest in small) and
              all(min(result) > 190 for result, _ in large) and wide == 0 and noisy > 100))
EOF
