#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SimpleITK 2.5.7: LaplacianSharpening() sharpens an edge only if the picture has something else, and a flat picture
# turns black, or NaN in floats.
#
# The manual says that each sample is computed by a convolution. But the differences are first stretched to the range
# of the whole picture, and the result is cut off to the samples that the source has. So an edge between 100 and 150
# stays as it is. One white pixel in a corner, 15 columns away, makes the bright side of the edge 160. A flat picture has
# the range 0, which is divided by. A convolution gives 50 and 200 at the edge each time.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: SimpleITK 2.5.7: a flat picture of 100: uint8 0, float32 nan
#       an edge: uint8 100 100 150 150, float32 100 100 150 150
#       the same with a white pixel in a corner: uint8 100 100 160 150, float32 100 100 160 150
#       OpenCV 5.0.0, filter2D: 100 50 200 150, with the white pixel 100 50 200 150
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 SimpleITK==2.5.7 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy
import SimpleITK as sitk

MASK = numpy.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], numpy.float32)
flat = numpy.full((32, 32), 100, numpy.uint8)
edge = flat.copy()
edge[:, 16:] = 150
dot = edge.copy()
dot[1, 1] = 255

def sharpened(picture, kind):
  """Four samples across the edge, far below the dot."""
  result = sitk.GetArrayFromImage(sitk.LaplacianSharpening(sitk.GetImageFromArray(picture.astype(kind))))
  return result[24, 14:18].round().tolist()

def text(samples):
  return " ".join("%g" % sample for sample in samples)

kinds = numpy.uint8, numpy.float32
black = [sharpened(flat, kind) for kind in kinds]
alone = [sharpened(edge, kind) for kind in kinds]
dotted = [sharpened(dot, kind) for kind in kinds]
by_opencv = [cv2.filter2D(picture, -1, MASK)[24, 14:18].tolist() for picture in (edge, dot)]
print("SimpleITK %s: a flat picture of 100: uint8 %g, float32 %g"
      % (sitk.Version_VersionString(), black[0][0], black[1][0]))
print("an edge: uint8 %s, float32 %s" % (text(alone[0]), text(alone[1])))
print("the same with a white pixel in a corner: uint8 %s, float32 %s" % (text(dotted[0]), text(dotted[1])))
print("OpenCV %s, filter2D: %s, with the white pixel %s" % (cv2.__version__, text(by_opencv[0]), text(by_opencv[1])))
sys.exit(not (black[0] == [0] * 4 and numpy.isnan(black[1]).all() and alone == [[100, 100, 150, 150]] * 2 and
              dotted == [[100, 100, 160, 150]] * 2 and by_opencv == [[100, 50, 200, 150]] * 2))
EOF
