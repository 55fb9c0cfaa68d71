#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# kornia-rs 0.2.0: the ellipse of dilate() and erode() is a smaller shape off the centre: 5x5 is a square of 4x4.
#
# An element of odd size is symmetric around its sample. kernel="ellipse" of 3x3 has the 2x2 samples up and left of it,
# 5x5 has 4x4, 7x7 an ellipse of 6x6. So a dilation by 5x5 grows by 2 to one side and by 1 to the other. A closing,
# dilate and erode, moves a square by a pixel up and left. "box" and "cross" are centred. OpenCV's ellipse is too.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: kornia-rs 0.2.0, OpenCV 5.0.0
#       kornia, ellipse of 3x3: rows -1 to 0, 4 samples; a closed square moves by -1.0 -1.0
#       opencv, ellipse of 3x3: rows -1 to 1, 5 samples; a closed square moves by 0.0 0.0
#       kornia, ellipse of 5x5: rows -2 to 1, 16 samples; a closed square moves by -1.0 -1.0
#       opencv, ellipse of 5x5: rows -2 to 2, 17 samples; a closed square moves by 0.0 0.0
#       kornia, ellipse of 7x7: rows -3 to 2, 32 samples; a closed square moves by -1.0 -1.0
#       opencv, ellipse of 7x7: rows -3 to 3, 33 samples; a closed square moves by 0.0 0.0
#       kornia, box of 5x5: rows -2 to 2, 25 samples; a closed square moves by 0.0 0.0
#       opencv, box of 5x5: rows -2 to 2, 25 samples; a closed square moves by 0.0 0.0
#       kornia, cross of 5x5: rows -2 to 2, 9 samples; a closed square moves by 0.0 0.0
#       opencv, cross of 5x5: rows -2 to 2, 9 samples; a closed square moves by 0.0 0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 kornia-rs==0.2.0 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
from importlib import metadata
import cv2, numpy
from kornia_rs import imgproc

def picture(size):
  result = numpy.zeros((41, 41, 1), numpy.uint8)
  result[20 - size // 2:21 + size // 2, 20 - size // 2:21 + size // 2] = 255
  return result

def kornia(name, source, shape, size):
  return getattr(imgproc, name)(source, kernel=shape, size=(size, size))

def opencv(name, source, shape, size):
  kind = {"box": cv2.MORPH_RECT, "cross": cv2.MORPH_CROSS, "ellipse": cv2.MORPH_ELLIPSE}[shape]
  return getattr(cv2, name)(source[..., 0], cv2.getStructuringElement(kind, (size, size)))[..., None]

def measured(by, shape, size):
  """First and last row of a dilated dot, from its own row, its samples, and how far a closing moves a square."""
  dot = numpy.argwhere(by("dilate", picture(1), shape, size)[..., 0])
  closed = by("erode", by("dilate", picture(9), shape, size), shape, size)
  return (*(int(row) - 20 for row in (dot[:, 0].min(), dot[:, 0].max())), len(dot),
          *(float(place) - 20 for place in numpy.argwhere(closed[..., 0]).mean(0)))

def text(result):
  return "rows %d to %d, %d samples; a closed square moves by %.1f %.1f" % result

print("kornia-rs %s, OpenCV %s" % (metadata.version("kornia-rs"), cv2.__version__))
found = {}
for shape, size in (("ellipse", 3), ("ellipse", 5), ("ellipse", 7), ("box", 5), ("cross", 5)):
  for program in (kornia, opencv):
    result = found[program, shape, size] = measured(program, shape, size)
    print("%s, %s of %dx%d: %s" % (program.__name__, shape, size, size, text(result)))
sys.exit(not all(result[:2] == (-(size // 2), size // 2 - 1) and result[3:] == (-1, -1)
                 if program is kornia and shape == "ellipse" else result[0] == -result[1] and result[3:] == (0, 0)
                 for (program, shape, size), result in found.items()))
EOF
