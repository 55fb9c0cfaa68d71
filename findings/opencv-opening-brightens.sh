#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0: an opening with an element that is not symmetric brightens pixels, and does not repeat to itself.
#
# An opening is an erosion and a dilation by the element turned by 180 degrees. cv2.morphologyEx(MORPH_OPEN) does not
# turn it, and its anchor stays in the middle. So the result may lie above the source, which no opening does, and a
# second opening changes the result of the first. scipy.ndimage.grey_opening turns the element.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenCV 5.0.0: brighter than the source: 1367 of 4096; changed by a second opening: 3497
#       SciPy 1.17.0: brighter: 0; changed: 0
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

source = numpy.random.default_rng(1).integers(0, 256, (64, 64), numpy.uint8)
element = numpy.array([[0, 0, 0], [0, 1, 1], [0, 1, 0]], numpy.uint8)

def by_opencv(picture):
  return cv2.morphologyEx(picture, cv2.MORPH_OPEN, element, borderType=cv2.BORDER_REPLICATE)

def by_scipy(picture):
  return ndimage.grey_opening(picture, footprint=element, mode="nearest")

def counts(opening):
  once = opening(source)
  return int((once > source).sum()), int((opening(once) != once).sum())

opencv, other = counts(by_opencv), counts(by_scipy)
print("OpenCV %s: brighter than the source: %d of %d; changed by a second opening: %d"
      % (cv2.__version__, opencv[0], source.size, opencv[1]))
print("SciPy %s: brighter: %d; changed: %d" % (scipy.__version__, *other))
sys.exit(not (opencv[0] > 0 and opencv[1] > 0 and other == (0, 0)))
EOF
