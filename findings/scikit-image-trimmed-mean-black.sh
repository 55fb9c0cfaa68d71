#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scikit-image 0.26.0: rank.mean_percentile(), the mean without the extremes, makes flat areas black.
#
# With p0=0.1 and p1=0.9 it should leave out the darkest and the brightest tenth of each window. It counts whole greys
# instead: a grey whose samples reach beyond the 90 % is left out with all of them. In a flat window no grey is left,
# and the result is 0. A slow ramp gets black bands. At an edge the brighter side is lost. With p1=1 all is right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: scikit-image 0.26.0, 5x5, p0=0.1, p1=0.9: flat 200: 0; with p1=1: 200
#       an edge from 200 to 50: 0 0 0 0 50 50 50 50 0 0 0 0;
#       SciPy 1.17.1, trimmed: 200 200 200 200 179 143 107 71 50 50 50 50
#       a ramp, one code in 8 columns: black 27 % of the samples
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-image==0.26.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, scipy, skimage
from scipy import ndimage, stats
from skimage.filters import rank

window = numpy.ones((5, 5), bool)

def trimmed(picture, p1=0.9):
  return rank.mean_percentile(picture, window, p0=0.1, p1=p1)

flat = numpy.full((24, 24), 200, numpy.uint8)
edge = flat.copy()
edge[:, 12:] = 50
ramp = (numpy.add.outer(numpy.arange(64), numpy.arange(64)) / 8 + 100).astype(numpy.uint8)
by_scipy = ndimage.generic_filter(edge.astype(float), lambda samples: stats.trim_mean(samples, 0.1), 5)
text = lambda picture: " ".join("%.0f" % sample for sample in picture[12, 6:18])
greys = [int(trimmed(flat, p1)[12, 12]) for p1 in (0.9, 1)]
black = float((trimmed(ramp) == 0).mean())
print("scikit-image %s, 5x5, p0=0.1, p1=0.9: flat 200: %d; with p1=1: %d" % (skimage.__version__, *greys))
print("an edge from 200 to 50: %s; SciPy %s, trimmed: %s" % (text(trimmed(edge)), scipy.__version__, text(by_scipy)))
print("a ramp, one code in 8 columns: black %.0f %% of the samples" % (100 * black))
sys.exit(not (greys == [0, 200] and trimmed(edge)[12, 12] == 50 and trimmed(edge)[12, 20] == 0 and black > 0.2 and
              by_scipy[12, 6] == 200 and by_scipy[12, 20] == 50))
EOF
