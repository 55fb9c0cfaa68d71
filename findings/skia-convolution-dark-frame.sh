#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Skia 144: without a cropRect, a matrix convolution of any tile mode makes the picture's edge dark or transparent.
#
# The tile mode says what lies outside the picture. Clamp repeats the edge, and a mean of a flat picture stays flat.
# ImageFilters.Blur does so. MatrixConvolution takes clamp, repeat and mirror, and still counts transparent black. With
# convolveAlpha off the edge is 60 in place of 100; with it on, alpha is 153. Only with a cropRect of the size of the
# picture does the mode count. An erosion has no mode and makes the outermost rows transparent, with a cropRect too.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: skia-python 144.1, a flat 100 of alpha 255: grey and alpha in the first and in the middle row
#       kClamp: colours 60 255, 100 255; alpha too 100 153, 100 255; cropRect 100 255, 100 255; Blur 100 255, 100 255
#       kRepeat: colours 60 255, 100 255; alpha too 100 153, 100 255; cropRect 100 255, 100 255; Blur 100 255, 100 255
#       kMirror: colours 60 255, 100 255; alpha too 100 153, 100 255; cropRect 100 255, 100 255; Blur 100 255, 100 255
#       Erode: 0 0, 100 255; with a cropRect 0 0, 100 255
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 skia-python==144.1
"$folder/bin/python" - <<'EOF'
import sys
import numpy, skia

SIZE = 33
flat = numpy.full((SIZE, SIZE, 4), 100, numpy.uint8)
flat[..., 3] = 255
modes = ("kClamp", "kRepeat", "kMirror")
whole = skia.IRect.MakeWH(SIZE, SIZE)

def edge(kind):
  """Grey and alpha of the first row of a flat, opaque 100, and of the middle row."""
  surface = skia.Surface.MakeRaster(skia.ImageInfo.MakeN32Premul(SIZE, SIZE))
  paint = skia.Paint()
  paint.setImageFilter(kind)
  with surface as canvas:
    canvas.clear(0)
    canvas.drawImage(skia.Image.fromarray(flat), 0, 0, skia.SamplingOptions(), paint)
  result = surface.toarray()
  return tuple(result[row, SIZE // 2, channel].item() for row in (0, SIZE // 2) for channel in (0, 3))

def mean(mode, alpha, crop):
  return skia.ImageFilters.MatrixConvolution((5, 5), [1 / 25] * 25, 1, 0, (2, 2), getattr(skia.TileMode, mode), alpha,
                                             None, crop)

print("skia-python %s, a flat 100 of alpha 255: grey and alpha in the first and in the middle row" % skia.__version__)
found = {}
for mode in modes:
  found[mode] = [edge(mean(mode, alpha, crop)) for alpha, crop in ((False, None), (True, None), (True, whole))]
  found[mode].append(edge(skia.ImageFilters.Blur(2, 2, getattr(skia.TileMode, mode))))
  print("%s: colours %d %d, %d %d; alpha too %d %d, %d %d; cropRect %d %d, %d %d; Blur %d %d, %d %d" %
        (mode, *(sample for result in found[mode] for sample in result)))
erosions = [edge(skia.ImageFilters.Erode(2, 2, None, crop)) for crop in (None, whole)]
print("Erode: %d %d, %d %d; with a cropRect %d %d, %d %d" % (*erosions[0], *erosions[1]))
same = (100, 255, 100, 255)
sys.exit(not (all(found[mode] == [(60, 255, 100, 255), (100, 153, 100, 255), same, same] for mode in modes) and
              erosions == [(0, 0, 100, 255)] * 2))
EOF
