#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scikit-image 0.26.0: the weights of denoise_bilateral are off centre.
#
# With a large sigma_color only the distance counts. Then one white pixel on black should become a spot that is brightest
# in its middle and looks the same when it is turned over. denoise_bilateral makes a ring that is not
# symmetric, and the pixel itself becomes nearly black. cv2.bilateralFilter makes the spot.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: scikit-image 0.26.0: 0.003 at the pixel; the largest is 0.194 at row -2, column +1 of it; 0.193 from its mirror
#       OpenCV 5.0.0: 0.163 at the pixel; the largest is 0.163 at row +0, column +0 of it; 0.000 from its mirror
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-image==0.26.0 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy, skimage
from skimage.restoration import denoise_bilateral

source = numpy.zeros((15, 15), numpy.float32)
source[7, 7] = 1

def measures(name, spot):
  largest = numpy.unravel_index(spot.argmax(), spot.shape)
  mirrored = float(abs(spot - spot[::-1]).max())
  print("%s: %.3f at the pixel; the largest is %.3f at row %+d, column %+d of it; %.3f from its mirror"
        % (name, spot[7, 7], spot.max(), largest[0] - 7, largest[1] - 7, mirrored))
  return largest == (7, 7), mirrored < 0.001

scikit = measures("scikit-image " + skimage.__version__,
                  denoise_bilateral(source, win_size=5, sigma_color=10, sigma_spatial=1.1))
opencv = measures("OpenCV " + cv2.__version__, cv2.bilateralFilter(source, 5, 10, 1.1))
sys.exit(not (scikit == (False, False) and opencv == (True, True)))
EOF
