#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scikit-image 0.26.0: equalize_adapthist() makes a flat picture white, also a black one, with each clip limit.
#
# A limited contrast changes little where there is nothing to see. equalize_adapthist() stretches the picture to the
# full range before it equalizes, and once more at the end. So a lens cap, a flat 0, becomes 255. One sample of 101 in a
# flat 100 makes the others black, and one of 99 leaves them white: a video flickers. A clip limit of 0.001 gives the
# same. CLAHE of OpenCV moves these greys by 8 codes at most.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen, the sample in the middle:
#       scikit-image 0.26.0: flat 0: 255; flat 100: 255; flat 200: 255; 100 with one 101: 0; 100 with one 99: 255
#       OpenCV 5.0.0, clip limit 2: flat 0: 8; flat 100: 108; flat 200: 207; 100 with one 101: 108; with one 99: 108
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-image==0.26.0 \
  opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy, skimage
from skimage import exposure

def picture(grey, corner):
  """Flat but for a sample in a corner."""
  samples = numpy.full((64, 64), grey, numpy.uint8)
  samples[3, 3] = corner
  return samples

pictures = {"flat 0": picture(0, 0), "flat 100": picture(100, 100), "flat 200": picture(200, 200),
            "100 with one 101": picture(100, 101), "100 with one 99": picture(100, 99)}

def by_skimage(limit):
  return [int((exposure.equalize_adapthist(pictures[name], clip_limit=limit)[32, 32] * 255).round())
          for name in pictures]

def text(values):
  return "; ".join("%s: %d" % pair for pair in zip(pictures, values))

found = by_skimage(0.01)
by_opencv = [int(cv2.createCLAHE(2, (8, 8)).apply(pictures[name])[32, 32]) for name in pictures]
print("scikit-image %s: %s" % (skimage.__version__, text(found)))
print("OpenCV %s, clip limit 2: %s" % (cv2.__version__, text(by_opencv)))
sys.exit(not (found == by_skimage(0.001) == [255, 255, 255, 0, 255] and
              all(abs(here - grey) < 10 for here, grey in zip(by_opencv, (0, 100, 200, 100, 100)))))
EOF
