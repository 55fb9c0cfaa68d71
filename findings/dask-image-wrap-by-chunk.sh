#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# dask-image 2026.5.0: filters with mode="wrap" continue a picture with the other side of a chunk, not of the picture.
#
# Chunks divide the work and should not change results. With mode="wrap", for tiles and panoramas, the window at the left
# edge takes samples from the right edge. gaussian_filter(), median_filter() and others of dask-image take them from the
# right edge of the first chunk. So the seam of a panorama shows, but only where a picture is larger than a chunk: one
# chunk is right. convolve() is right with each chunk size. The seams between chunks are right everywhere.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: dask-image 2026.5.0, 64x64 random samples of 0 to 255, mode wrap, the largest difference from SciPy 1.17.1
#       gaussian_filter: one chunk 0, chunks of 32x32 27.2, of 16x16 23.5
#       uniform_filter: one chunk 0, chunks of 32x32 42.1, of 16x16 41.2
#       median_filter: one chunk 0, chunks of 32x32 74.6, of 16x16 76.9
#       maximum_filter: one chunk 0, chunks of 32x32 44.9, of 16x16 84.2
#       convolve: one chunk 0, chunks of 32x32 0, of 16x16 0
#       mode reflect, chunks of 16x16, all: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 dask==2026.8.0 \
  dask-image==2026.5.0
"$folder/bin/python" - <<'EOF'
import sys
from importlib import metadata
import dask.array, numpy, scipy
from dask_image import ndfilters
from scipy import ndimage

picture = numpy.random.default_rng(0).random((64, 64)) * 255
filters = {"gaussian_filter": 2, "uniform_filter": 5, "median_filter": 5, "maximum_filter": 5,
           "convolve": numpy.ones((5, 5)) / 25}

def difference(name, chunk, mode):
  """From SciPy's result: the largest anywhere, and away from the edges of the picture."""
  here = getattr(ndfilters, name)(dask.array.from_array(picture, chunks=chunk), filters[name], mode=mode).compute()
  different = numpy.abs(here - getattr(ndimage, name)(picture, filters[name], mode=mode))
  return round(float(different.max()), 1), round(float(different[8:-8, 8:-8].max()), 1)

print("dask-image %s, 64x64 random samples of 0 to 255, mode wrap, the largest difference from SciPy %s"
      % (metadata.version("dask-image"), scipy.__version__))
found = {name: [difference(name, chunk, "wrap") for chunk in (64, 32, 16)] for name in filters}
for name in found:
  print("%s: one chunk %g, chunks of 32x32 %g, of 16x16 %g" % (name, *(largest for largest, _ in found[name])))
reflect = max(difference(name, 16, "reflect")[0] for name in filters)
print("mode reflect, chunks of 16x16, all: %g" % reflect)
sys.exit(not (all(found[name][0][0] == 0 and found[name][1][0] > 5 for name in filters if name != "convolve") and
              found["convolve"] == [(0, 0)] * 3 and all(inner == 0 for name in found for _, inner in found[name]) and
              reflect == 0))
EOF
