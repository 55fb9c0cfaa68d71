#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0: the ellipse of 5x5 is no circle: it has other rows than columns, and a turned picture another dilation.
#
# cv2.getStructuringElement(MORPH_ELLIPSE) rounds the width of each row: a row is as wide as its middle line says. The
# first and the last row touch the ellipse in one point. So 5x5 has rows of 1 5 5 5 1 samples, and columns of 3 3 5 3 3.
# A picture that lies on its side (a phone's, a scan) is dilated otherwise than the upright one. The discs of
# scikit-image are the same both ways.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenCV 5.0.0: 5x5: rows 1 5 5 5 1, columns 3 3 5 3 3; samples that differ when the picture lies on its side:
#       3x3: 0, 5x5: 3316, 7x7: 1844, 9x9: 1085, 15x15: 582, 31x31: 85
#       scikit-image 0.26.0, disk(2): 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.3.5 scikit-image==0.26.0 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy, skimage
from skimage import morphology

source = numpy.random.default_rng(1).integers(0, 256, (96, 96), numpy.uint8)

def ellipse(size):
  return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))

def differ(dilate):
  return int((dilate(source.T.copy()) != dilate(source).T).sum())

element = ellipse(5)
opencv = {size: differ(lambda picture: cv2.dilate(picture, ellipse(size))) for size in (3, 5, 7, 9, 15, 31)}
other = differ(lambda picture: morphology.dilation(picture, morphology.disk(2)))
print("OpenCV %s: 5x5: rows" % cv2.__version__, *element.sum(1), "columns", *element.sum(0))
print("samples of %d that differ when the picture lies on its side:" % source.size,
      ", ".join("%dx%d: %d" % (size, size, count) for size, count in opencv.items()))
print("scikit-image %s, disk(2): %d" % (skimage.__version__, other))
sys.exit(not (list(element.sum(1)) == [1, 5, 5, 5, 1] and opencv[3] == other == 0 and
              all(count for size, count in opencv.items() if size > 3)))
EOF
