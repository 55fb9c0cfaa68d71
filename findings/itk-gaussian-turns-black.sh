#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ITK, by SimpleITK 2.5.7: DiscreteGaussian() of sigma 27 and more makes every 8-bit picture black, and floats NaN; of
# sigma 20 it blurs as much as one of 15.8.
#
# Its weights are modified Bessel functions of the variance, divided by an exponential function of it. Beyond a variance
# of some 709 both are too large for a double, and no weight is a number. There is no error. Below that, the window has
# at most 2 x 32 + 1 weights, unless maximumKernelWidth is larger, so that large Gaussians are cut off and become
# narrower. SmoothingRecursiveGaussian() has neither limit.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: SimpleITK 2.5.7, a flat picture of 100, sigma 26: uint8 98, float32 100; sigma 27: uint8 0, float32 nan;
#       sigma 27 with maximumKernelWidth=1000: float32 nan; SmoothingRecursiveGaussian, sigma 27: float32 100
#       standard deviation of a dot, sigma 20: 15.8; with maximumKernelWidth=1000: 20.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.3.5 SimpleITK==2.5.7
"$folder/bin/python" - <<'EOF'
import math
import sys
import numpy, SimpleITK

def blurred(picture, sigma, width=32):
  image = SimpleITK.GetImageFromArray(picture)
  return SimpleITK.GetArrayFromImage(SimpleITK.DiscreteGaussian(image, float(sigma**2), width))

def flat(kind, sigma, width=32):
  return float(blurred(numpy.full((64, 64), 100, kind), sigma, width)[32, 32])

def deviation(sigma, width=32):
  dot = numpy.zeros((401, 401), numpy.float32)
  dot[200, 200] = 1
  row = blurred(dot, sigma, width).sum(0)
  return math.sqrt((row * (numpy.arange(401) - 200) ** 2).sum() / row.sum())

image = SimpleITK.GetImageFromArray(numpy.full((64, 64), 100, numpy.float32))
smooth = float(SimpleITK.GetArrayFromImage(SimpleITK.SmoothingRecursiveGaussian(image, 27))[32, 32])
found = {(kind, sigma): flat(kind, sigma) for kind in ("uint8", "float32") for sigma in (26, 27)}
wide = flat("float32", 27, 1000)
dots = deviation(20), deviation(20, 1000)
print("SimpleITK %s, a flat picture of 100," % SimpleITK.__version__,
      "; ".join("sigma %d: uint8 %.0f, float32 %.0f" % (sigma, found["uint8", sigma], found["float32", sigma])
                for sigma in (26, 27)))
print("sigma 27 with maximumKernelWidth=1000: float32 %.0f; SmoothingRecursiveGaussian, sigma 27: float32 %.0f"
      % (wide, smooth))
print("standard deviation of a dot, sigma 20: %.1f; with maximumKernelWidth=1000: %.1f" % dots)
sys.exit(not (found["uint8", 27] == 0 and math.isnan(found["float32", 27]) and math.isnan(wide) and
              round(found["float32", 26]) == round(smooth) == 100 and dots[0] < 16 < 19 < dots[1]))
EOF
