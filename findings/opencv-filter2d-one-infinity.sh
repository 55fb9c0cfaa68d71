#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0: one infinite sample ruins its window in filter2D() of 11x11, and the whole picture in one of 13x13.
#
# A convolution spreads a sample over its window. From some size on cv2.filter2D() convolves by a Fourier transform,
# where each sample of a block takes part in all of its results. So one infinity or NaN, as depth maps and HDR pictures
# have them, turns all of a small picture into NaN. cv2.blur() of float32 keeps running sums: from 7x7 on all samples
# below and right of the window's corner are lost. Whoever enlarges a mask that worked loses the picture.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen, one infinity in 96x96 float32, results that are not finite:
#       OpenCV 5.0.0 filter2D 7x7: 49, 11x11: 121, 13x13: 9216
#       OpenCV 5.0.0 blur     7x7: 2601, 11x11: 2809, 13x13: 2916
#       SciPy 1.17.0 convolve 7x7: 49, 11x11: 121, 13x13: 169
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.3.5 scipy==1.17.0 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy, scipy
from scipy import ndimage

picture = numpy.random.default_rng(1).integers(0, 256, (96, 96)).astype(numpy.float32)
picture[48, 48] = numpy.inf
sizes = (7, 11, 13)

def mean(size):
  return numpy.full((size, size), 1 / size**2, numpy.float32)

def ruined(convolve):
  with numpy.errstate(invalid="ignore"):
    return [int((~numpy.isfinite(convolve(size))).sum()) for size in sizes]

found = {
    "OpenCV %s filter2D" % cv2.__version__: ruined(lambda size: cv2.filter2D(picture, -1, mean(size))),
    "OpenCV %s blur" % cv2.__version__: ruined(lambda size: cv2.blur(picture, (size, size))),
    "SciPy %s convolve" % scipy.__version__: ruined(lambda size: ndimage.convolve(picture, mean(size))),
}
for what, counts in found.items():
  print(what + ":", ", ".join("%dx%d: %d" % (size, size, count) for size, count in zip(sizes, counts)))
sys.exit(list(found.values()) != [[49, 121, 9216], [2601, 2809, 2916], [49, 121, 169]])
EOF
