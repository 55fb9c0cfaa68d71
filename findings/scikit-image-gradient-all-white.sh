#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scikit-image 0.26.0: rank.gradient_percentile() with its default arguments makes every picture white.
#
# The gradient is the largest sample of a window minus the smallest; with percentiles it leaves extremes out. The
# defaults p0=0 and p1=1 leave none out, and should give the plain gradient. But no sample is found as the smallest at
# p0=0, and none as the largest at p1=1: 0 and 255 are taken. So p0=0 alone gives the largest sample, and p1=1 alone 255
# less the smallest. Percentiles in between are right here, and so is the difference of two rank.percentile().
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: scikit-image 0.26.0, an edge from 50 to 200, window 5x5
#       gradient: 0 0 0 150 150 150 150 0 0 0
#       gradient_percentile: 255 255 255 255 255 255 255 255 255 255
#       p0=0, p1=0.9: 50 50 50 200 200 200 200 200 200 200
#       p0=0.1, p1=1: 205 205 205 205 205 205 205 55 55 55
#       p0=0.1, p1=0.9: 0 0 0 150 150 150 150 0 0 0
#       percentile by 1 minus by 0: 0 0 0 150 150 150 150 0 0 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-image==0.26.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, skimage
from skimage.filters import rank

window = numpy.ones((5, 5), numpy.uint8)
edge = numpy.full((20, 20), 50, numpy.uint8)
edge[:, 10:] = 200
noise = numpy.random.default_rng(1).integers(0, 256, (20, 20), dtype=numpy.uint8)

def row(name, picture):
  values = picture[10, 5:15].tolist()
  print("%s: %s" % (name, " ".join(str(value) for value in values)))
  return values

def between(p0, p1):
  return rank.gradient_percentile(edge, window, p0=p0, p1=p1)

print("scikit-image %s, an edge from 50 to 200, window 5x5" % skimage.__version__)
plain = row("gradient", rank.gradient(edge, window))
row("gradient_percentile", rank.gradient_percentile(edge, window))
row("p0=0, p1=0.9", between(0, 0.9))
row("p0=0.1, p1=1", between(0.1, 1))
middle = row("p0=0.1, p1=0.9", between(0.1, 0.9))
difference = row("percentile by 1 minus by 0", rank.percentile(edge, window, p0=1).astype(int) -
                 rank.percentile(edge, window, p0=0))
white = all((rank.gradient_percentile(picture, window) == 255).all() for picture in (edge, noise))
sys.exit(not (plain == middle == difference == [0] * 3 + [150] * 4 + [0] * 3 and white))
EOF
