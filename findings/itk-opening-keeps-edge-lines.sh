#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SimpleITK 2.5.7: an opening keeps a line at the edge of the picture that it removes everywhere else.
#
# An opening by 5x5 removes bright lines that are one row wide. GrayscaleMorphologicalOpening does so in the middle of
# the picture. It keeps the first row: its erosion is computed at places outside the picture too, where the window holds
# nothing of the picture but this row. Its safeBorder, on by default, does this; without it the line goes. OpenCV and
# SciPy remove both lines.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: SimpleITK 2.5.7: first row 200, middle row 0; with safeBorder=False: 0, 0
#       SciPy 1.17.1: 0, 0
#       OpenCV 5.0.0: 0, 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 SimpleITK==2.5.7 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy, scipy
import SimpleITK as sitk
from scipy import ndimage

lines = numpy.zeros((32, 32), numpy.uint8)
lines[0] = lines[16] = 200

def by_itk(safe):
  opened = sitk.GrayscaleMorphologicalOpening(sitk.GetImageFromArray(lines), [2, 2], sitk.sitkBox, safe)
  return sitk.GetArrayFromImage(opened)

def rows(picture):
  return int(picture[0, 16]), int(picture[16, 16])

safe, unsafe = rows(by_itk(True)), rows(by_itk(False))
by_scipy = rows(ndimage.grey_opening(lines, (5, 5)))
by_opencv = rows(cv2.morphologyEx(lines, cv2.MORPH_OPEN, numpy.ones((5, 5), numpy.uint8)))
print("SimpleITK %s: first row %d, middle row %d; with safeBorder=False: %d, %d"
      % (sitk.Version_VersionString(), *safe, *unsafe))
print("SciPy %s: %d, %d" % (scipy.__version__, *by_scipy))
print("OpenCV %s: %d, %d" % (cv2.__version__, *by_opencv))
sys.exit(not (safe == (200, 0) and by_scipy == by_opencv == (0, 0)))
EOF
