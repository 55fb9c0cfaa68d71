#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pillow 13.0.0: ImageMorph takes the grey 254 for black and the grey 1 for white: it reads the lowest bit of a sample.
#
# ImageMorph wants "a binary image" of mode 1 or L. A mask of 0 and 255 works. A mask of 0 and 128, or of 0 and 254, is
# an empty one to it: each operator gives black, and get_on_pixels(), which looks at the whole sample, still lists the
# pixels. A mask of 0 and 1 works again, and so does a photo, where odd greys are white. There is no error.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: Pillow 13.0.0, a square of 4x4 of one grey on black, white samples after dilation8, pixels by get_on_pixels
#       255: 36, 16; 254: 0, 16; 129: 36, 16; 128: 0, 16; 1: 36, 16
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pillow==13.0.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, PIL
from PIL import Image, ImageMorph

def counts(grey):
  """White samples after a dilation of the square, and pixels that count as on."""
  square = numpy.zeros((12, 12), numpy.uint8)
  square[4:8, 4:8] = grey
  operator = ImageMorph.MorphOp(op_name="dilation8")
  picture = Image.fromarray(square)
  return int(numpy.count_nonzero(operator.apply(picture)[1])), len(operator.get_on_pixels(picture))

print("Pillow %s, a square of 4x4 of one grey on black, white samples after dilation8, pixels by get_on_pixels"
      % PIL.__version__)
found = {grey: counts(grey) for grey in (255, 254, 129, 128, 1)}
print("; ".join("%d: %d, %d" % (grey, *found[grey]) for grey in found))
sys.exit(found != {grey: (36 * (grey % 2), 16) for grey in found})
EOF
