#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OpenCV 4.7.0 to 5.0.0: stackBlur() darkens 16-bit pictures by a quarter, and makes bright int16 negative.
#
# A blur leaves a flat picture as it is. cv2.stackBlur() takes uint8, uint16, int16 and float32. On x86-64 its 16-bit
# results are wrong, by the size: 5, 7 and 9 lose a quarter, 31 loses two thirds of uint16 and the sign of int16. 3 and
# 11 are right, and so are 8 bits and floats. The columns at the right edge are right too, so that a test with a small
# picture finds nothing.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: OpenCV 5.0.0, a flat picture of 51400 (uint16) and 25400 (int16), the most frequent result:
#       size 3: 51400 25400, 5: 39130 19463, 7: 37425 18637, 9: 36564 18221, 31: 18632 -7368
#       uint8 and float32 of 200: 200 at each size
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.3.5 opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy

def flat(value, kind, size):
  """The most frequent sample of a flat picture's blur."""
  values, counts = numpy.unique(cv2.stackBlur(numpy.full((480, 640), value, kind), (size, size)), return_counts=True)
  return int(values[counts.argmax()])

print("OpenCV %s, a flat picture of 51400 (uint16) and 25400 (int16), the most frequent result:" % cv2.__version__)
sizes = (3, 5, 7, 9, 31)
found = {size: (flat(51400, numpy.uint16, size), flat(25400, numpy.int16, size)) for size in sizes}
print(", ".join("%d: %d %d" % (size, *found[size]) for size in sizes))
others = {flat(200, kind, size) for kind in (numpy.uint8, numpy.float32) for size in sizes}
print("uint8 and float32 of 200:", *others)
sys.exit(not (found[3] == (51400, 25400) and all(found[size][0] < 0.8 * 51400 for size in sizes[1:]) and
              found[31][1] < 0 and others == {200}))
EOF
