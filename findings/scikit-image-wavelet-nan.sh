#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scikit-image 0.26.0: denoise_wavelet() makes NaN of each sample of a ramp, of stripes, of a picture enlarged twice.
#
# Without sigma the noise is estimated from the differences along both axes in blocks of 2x2. Where all of them are 0,
# the estimate is the median of nothing, NaN, and so is the whole result. A picture needs not be flat for this: a ramp
# has no differences along both axes, nor has a picture whose samples were doubled. Only warnings of NumPy are printed.
# sigma=0, for no noise, gives NaN too, and a sigma of 1e-9 the picture. One sample that differs, in a corner, makes all
# samples right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: scikit-image 0.26.0, PyWavelets 1.8.0, samples of 4096 that are NaN:
#       noise: 0, flat: 4096, ramp: 4096, stripes: 4096, noise enlarged twice: 4096
#       the ramp with sigma=0: 4096, sigma=1e-9: 0; with one other sample: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-image==0.26.0 \
  PyWavelets==1.8.0
"$folder/bin/python" -W ignore - <<'EOF'
import sys
import numpy, pywt, skimage
from skimage.restoration import denoise_wavelet

random = numpy.random.default_rng(1)
noise = random.integers(0, 256, (64, 64), numpy.uint8)
ramp = numpy.tile(numpy.arange(64, dtype=numpy.uint8) * 3, (64, 1))
pictures = {"noise": noise, "flat": numpy.full((64, 64), 200, numpy.uint8), "ramp": ramp,
            "stripes": numpy.tile(noise[0], (64, 1)),
            "noise enlarged twice": noise[:32, :32].repeat(2, 0).repeat(2, 1)}

def lost(picture, sigma=None):
  return int(numpy.isnan(denoise_wavelet(picture, sigma=sigma)).sum())

dotted = ramp.copy()
dotted[0, 0] = 1
print("scikit-image %s, PyWavelets %s, samples of 4096 that are NaN:" % (skimage.__version__, pywt.__version__))
found = {name: lost(pictures[name]) for name in pictures}
print(", ".join("%s: %d" % (name, found[name]) for name in found))
fixed = lost(ramp, 0), lost(ramp, 1e-9), lost(dotted)
print("the ramp with sigma=0: %d, sigma=1e-9: %d; with one other sample: %d" % fixed)
sys.exit(not (list(found.values()) == [0] + [4096] * 4 and fixed == (4096, 0, 0)))
EOF
