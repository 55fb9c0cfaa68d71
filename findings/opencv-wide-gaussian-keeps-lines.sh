#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0: GaussianBlur() of 8 bits with a large sigma keeps a pattern of fine lines.
#
# A Gaussian of sigma 100 makes one grey of lines that are three rows apart. For 8 bits cv2.GaussianBlur() rounds its
# weights to 1/256. The window of sigma 100 has 601 weights, whose sum is 256: more than half of them are 0, the others
# 1 or 2, without any order. So the lines stay, 70 and 93 in place of 85, and are seen where a picture is divided by its
# background. 16 bits and floats are right. The hint ALGO_HINT_ACCURATE changes nothing. 4.14.0 does the same.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenCV 5.0.0, each third row 255, the rest 0: smallest and largest grey away from the border, by sigma
#       uint8: 10: 84 to 86; 30: 76 to 90; 100: 70 to 93
#       uint16, of 255: 10: 85 to 85; 30: 85 to 85; 100: 85 to 85
#       float32: 10: 85 to 85; 30: 85 to 85; 100: 85 to 85
#       of the 601 weights of sigma 100 346 are 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy

lines = numpy.zeros((1200, 8), numpy.uint8)
lines[::3] = 255

def extremes(kind, sigma):
  scale = 257 if kind == numpy.uint16 else 1
  blurred = cv2.GaussianBlur(lines.astype(kind) * kind(scale), (0, 0), sigma)[400:800] / scale
  return round(float(blurred.min())), round(float(blurred.max()))

sigmas = (10, 30, 100)
kinds = {"uint8": numpy.uint8, "uint16, of 255": numpy.uint16, "float32": numpy.float32}
found = {name: {sigma: extremes(kind, sigma) for sigma in sigmas} for name, kind in kinds.items()}
print("OpenCV %s, each third row 255, the rest 0: smallest and largest grey away from the border, by sigma" %
      cv2.__version__)
for name, results in found.items():
  print("%s: %s" % (name, "; ".join("%d: %d to %d" % (sigma, *pair) for sigma, pair in results.items())))
dot = numpy.zeros((1201, 1), numpy.uint8)
dot[600] = 255
weights = numpy.round(cv2.GaussianBlur(dot, (1, 601), 1, sigmaY=100)[300:901, 0] * (256 / 255)).astype(int)
print("of the %d weights of sigma 100 %d are 0" % (len(weights), (weights == 0).sum()))
wide = found["uint8"][100]
sys.exit(not (wide[0] < 80 < 90 < wide[1] and found["uint8"][30][0] < 80 and
              all(found[name][sigma] == (85, 85) for name in list(kinds)[1:] for sigma in sigmas)))
EOF
