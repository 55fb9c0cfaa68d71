#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libvips 8.18.7: the approximate mean is five times too dark, and more layers make it darker, to black.
#
# conva() approximates a mask by layers of boxes; "larger values for layers give more accurate results". A mean is one
# box and needs one layer. Its result is divided by all the layers that were asked for, 5 by default, so a flat 200
# becomes 40. convasep(), for a row and a column, divides twice, and gives 0 here. A Gaussian uses all the layers and
# keeps 200, so that a test with one finds nothing. conv(precision="approximate") and convsep() call the same code.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: libvips 8.18.7, a flat picture of 200, mean of 5x5: conv 200, conva 40, convasep 0
#       conva with layers of 1, 2, 5, 10, 20: 200, 100, 40, 20, 10
#       conva of a Gaussian with the same: 200, 200, 200, 200, 200
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check pyvips==3.2.0 pyvips-binary==8.18.7
"$folder/bin/python" - <<'EOF'
import sys
import pyvips

flat = (pyvips.Image.black(64, 64) + 200).cast("uchar")
mean = pyvips.Image.new_from_array([[1] * 5] * 5, scale=25)
row = pyvips.Image.new_from_array([[1] * 5], scale=5)
gaussian = pyvips.Image.gaussmat(2, 0.05)
layers = (1, 2, 5, 10, 20)

def middle(image):
  return int(image(32, 32)[0])

version = ".".join(str(pyvips.version(part)) for part in range(3))
exact, mean_5, separable = middle(flat.conv(mean)), middle(flat.conva(mean)), middle(flat.convasep(row))
of_mean = [middle(flat.conva(mean, layers=count)) for count in layers]
of_gaussian = [middle(flat.conva(gaussian, layers=count)) for count in layers]
print("libvips %s, a flat picture of 200, mean of 5x5: conv %d, conva %d, convasep %d"
      % (version, exact, mean_5, separable))
print("conva with layers of %s: %s" % (", ".join(map(str, layers)), ", ".join(map(str, of_mean))))
print("conva of a Gaussian with the same:", ", ".join(map(str, of_gaussian)))
sys.exit(not (exact == 200 and separable == 0 and of_mean == [200, 100, 40, 20, 10] and set(of_gaussian) == {200}))
EOF
