#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 5.0.0, wheel for x86: bilateralFilter of grey pictures cuts fractions off: half a code darker.
#
# The wheel has Intel's IPP, and calls it for one channel of 8 bits: half of the samples are one code too low. Without
# IPP, after cv2.ipp.setUseIPP(False), the same call rounds. So its bytes depend on the build and the processor.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed. 77: OpenCV has no
# IPP here.
# Seen: OpenCV 5.0.0 with IPP 2026.0.0 on random samples, size 5: 48 % of the samples differ from the rounded exact mean,
#       mean error -0.48 codes; without IPP 0 %, mean error 0.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy

SIZE, COLOUR, SPACE = 5, 25.5, 1.1
grey = numpy.random.default_rng(7).integers(0, 256, (96, 128), dtype=numpy.uint8)

# The mean of the samples of a disc, weighted by their distance and by their difference from the middle.
radius = SIZE // 2
padded, middle = numpy.pad(grey.astype(float), radius, mode="reflect"), grey.astype(float)
total, weights = numpy.zeros(grey.shape), numpy.zeros(grey.shape)
for dy in range(-radius, radius + 1):
  for dx in range(-radius, radius + 1):
    if dx * dx + dy * dy > radius * radius: continue
    other = padded[radius + dy:][:grey.shape[0], radius + dx:][:, :grey.shape[1]]
    weight = numpy.exp(-(dx * dx + dy * dy) / (2 * SPACE**2) - (other - middle)**2 / (2 * COLOUR**2))
    total, weights = total + weight * other, weights + weight
exact = total / weights

def differ(ipp):
  cv2.ipp.setUseIPP(ipp)
  result = cv2.bilateralFilter(grey, SIZE, COLOUR, SPACE, borderType=cv2.BORDER_REFLECT_101)
  share = numpy.mean(result != numpy.floor(exact + 0.5))
  print("OpenCV %s, IPP %s: %.0f %% of the samples differ, mean error %.2f codes" %
        (cv2.__version__, "on" if cv2.ipp.useIPP() else "off", 100 * share, numpy.mean(result - exact)))
  return share

cv2.ipp.setUseIPP(True)
if not cv2.ipp.useIPP(): sys.exit(77)
sys.exit(not (differ(True) > 0.4 and differ(False) < 0.01))
EOF
