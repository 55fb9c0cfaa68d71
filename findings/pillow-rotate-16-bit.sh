#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pillow 13.0.0: rotate() and transform() of 16-bit pictures, bilinear or bicubic, take single bytes for samples.
#
# A picture of mode I;16, as 16-bit PNG files have it, loses its content: the results are below 256, and from the lower
# and the upper bytes by turns. Even a transform that moves nothing does this. There is no error, as other functions
# have it for this mode. NEAREST, resize(), and the modes I and F are right, and so is rotate(180), which does not
# interpolate. 10.4.0 does the same.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: Pillow 13.0.0, the middle row of a ramp, 0 4000 8000 ..., transformed by the identity
#       I;16, NEAREST: 0 4000 8000 12000 16000 20000 24000 28000
#       I;16, BILINEAR: 0 0 160 15 64 31 224 46
#       I;16, BICUBIC: 0 0 160 15 64 31 224 46
#       I, BILINEAR: 0 4000 8000 12000 16000 20000 24000 28000
#       a flat picture of 30000, rotated by 10 degrees, in its middle: I;16, BILINEAR 54, I, BILINEAR 30000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pillow==13.0.0
"$folder/bin/python" - <<'EOF'
import sys
import numpy, PIL
from PIL import Image

kinds = {"I;16": numpy.uint16, "I": numpy.int32}
ramp = numpy.tile(numpy.arange(16) * 4000, (16, 1))

def moved(mode, filtering):
  """The middle row after a transform that moves nothing."""
  image = Image.fromarray(ramp.astype(kinds[mode]))
  assert image.mode == mode
  return numpy.asarray(image.transform(image.size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, 0), filtering))[8].tolist()

def turned(mode):
  flat = Image.fromarray(numpy.full((32, 32), 30000, kinds[mode]))
  return int(numpy.asarray(flat.rotate(10, Image.Resampling.BILINEAR))[16, 16])

print("Pillow %s, the middle row of a ramp, 0 4000 8000 ..., transformed by the identity" % PIL.__version__)
found = {}
for mode, name in (("I;16", "NEAREST"), ("I;16", "BILINEAR"), ("I;16", "BICUBIC"), ("I", "BILINEAR")):
  found[mode, name] = moved(mode, Image.Resampling[name])
  print("%s, %s:" % (mode, name), *found[mode, name][:8])
short, long = turned("I;16"), turned("I")
print("a flat picture of 30000, rotated by 10 degrees, in its middle: I;16, BILINEAR %d, I, BILINEAR %d"
      % (short, long))
sys.exit(not (found["I;16", "NEAREST"] == found["I", "BILINEAR"] == ramp[8].tolist() and long == 30000 and
              max(found["I;16", "BILINEAR"] + found["I;16", "BICUBIC"] + [short]) < 256))
EOF
