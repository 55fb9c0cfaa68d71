#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pillow 13.0.0: ImageFilter.Kernel neither correlates nor convolves: it takes the kernel's rows from the bottom up.
#
# The kernel 1 to 9 on a dot of 10 should give 10 20 30 / 40 50 60 / 70 80 90 where a program convolves. Where it
# correlates, this is turned by 180 degrees. Pillow gives it with only the columns turned over. So a kernel for an edge
# in one direction works, and its transpose has the wrong sign.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: Pillow 13.0.0: 30 20 10 / 60 50 40 / 90 80 70
#       SciPy 1.17.1, correlate: 90 80 70 / 60 50 40 / 30 20 10; convolve: 10 20 30 / 40 50 60 / 70 80 90
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pillow==13.0.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, PIL, scipy
from PIL import Image, ImageFilter
from scipy import ndimage

dot = numpy.zeros((7, 7), numpy.uint8)
dot[3, 3] = 10
kernel = numpy.arange(1, 10).reshape(3, 3)

def text(result):
  return " / ".join(" ".join(map(str, row)) for row in numpy.asarray(result)[2:5, 2:5])

pillow = text(Image.fromarray(dot).filter(ImageFilter.Kernel((3, 3), kernel.ravel().tolist(), scale=1)))
correlated, convolved = text(ndimage.correlate(dot, kernel)), text(ndimage.convolve(dot, kernel))
print("Pillow %s: %s" % (PIL.__version__, pillow))
print("SciPy %s, correlate: %s; convolve: %s" % (scipy.__version__, correlated, convolved))
sys.exit(pillow in (correlated, convolved))
EOF
