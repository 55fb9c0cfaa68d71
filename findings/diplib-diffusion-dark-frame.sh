#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# DIPlib 3.6.1: anisotropic diffusion gives dark areas a black frame; bright ones it leaves as they are.
#
# A diffusion leaves a flat picture as it is. PeronaMalikDiffusion() takes all samples outside the picture for 0, an edge
# that K decides to keep or to blur. K is 10 by default. Samples far above it keep their grey at the border. A flat 5
# becomes 1.1 in the corners, and more iterations take the black inwards. Pictures of 0 to 1 get the frame too. There is
# no setting for the border. RobustAnisotropicDiffusion() does the same, GaussianAnisotropicDiffusion() does not.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: DIPlib 3.6.1, flat pictures of 32x32, corner and middle
#       PeronaMalikDiffusion: 1: 0.2 1; 5: 1.1 5; 20: 19.3 20; 100: 100 100
#       RobustAnisotropicDiffusion: 1: 0.2 1; 5: 1.3 5; 20: 20 20; 100: 100 100
#       GaussianAnisotropicDiffusion: 1: 1 1; 5: 5 5; 20: 20 20; 100: 100 100
#       PeronaMalikDiffusion, 500 iterations: 5: 0 0.8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 diplib==3.6.1
"$folder/bin/python" - <<'EOF'
import sys
import diplib, numpy

NAMES = "PeronaMalikDiffusion", "RobustAnisotropicDiffusion", "GaussianAnisotropicDiffusion"
GREYS = 1, 5, 20, 100

def diffused(name, grey, iterations=5):
  """Samples in the corner and in the middle."""
  flat = diplib.Image(numpy.full((32, 32), grey, numpy.float32))
  result = numpy.array(getattr(diplib, name)(flat, iterations))
  return round(float(result[0, 0]), 1), round(float(result[16, 16]), 1)

print("DIPlib %s, flat pictures of 32x32, corner and middle" % diplib.__version__)
found = {name: {grey: diffused(name, grey) for grey in GREYS} for name in NAMES}
for name in NAMES:
  print("%s: %s" % (name, "; ".join("%d: %g %g" % (grey, *found[name][grey]) for grey in GREYS)))
long = diffused(NAMES[0], 5, 500)
print("%s, 500 iterations: 5: %g %g" % (NAMES[0], *long))
sys.exit(not (all(found[name][5][0] < 2 and found[name][5][1] == 5 and found[name][100] == (100, 100)
                  for name in NAMES[:2]) and
              all(found[NAMES[2]][grey] == (grey, grey) for grey in GREYS) and long[1] < 2))
EOF
