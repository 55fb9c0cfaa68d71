#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pillow 13.0.0: a dilation by ImageMorph makes white areas smaller where they touch the edge of the picture.
#
# A dilation adds pixels and removes none. ImageMorph's dilation4 and dilation8 set the outermost rows and columns to
# black, also where they were white. So a white picture gets a black frame. The other operators do the same. apply()
# returns the number of changed pixels, and leaves the frame out: it is 0. SciPy's dilation leaves the picture as it is.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: Pillow 13.0.0, a white picture of 8x8: dilation4: 36 white, 0 changed; dilation8: 36 white, 0 changed
#       SciPy 1.17.1, binary_dilation: 64 white
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pillow==13.0.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, PIL, scipy
from PIL import Image, ImageMorph
from scipy import ndimage

white = numpy.full((8, 8), 255, numpy.uint8)

def dilated(name):
  changed, picture = ImageMorph.MorphOp(op_name=name).apply(Image.fromarray(white))
  return int(numpy.count_nonzero(picture)), changed

found = {name: dilated(name) for name in ("dilation4", "dilation8")}
by_scipy = int(ndimage.binary_dilation(white > 0).sum())
print("Pillow %s, a white picture of 8x8: %s" % (PIL.__version__, "; ".join(
  "%s: %d white, %d changed" % (name, *found[name]) for name in found)))
print("SciPy %s, binary_dilation: %d white" % (scipy.__version__, by_scipy))
sys.exit(not (set(found.values()) == {(36, 0)} and by_scipy == 64))
EOF
