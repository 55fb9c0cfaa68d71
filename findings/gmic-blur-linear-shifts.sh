#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# G'MIC 3.6.3: `blur_linear` moves the picture by half a pixel: up and left, or down and right, by its size.
#
# A blur along rows leaves the rows where they are. `blur_linear 5,0,0`, along rows, moves each sample by half a row and
# half a column, and mixes two rows. An odd size moves up and left, an even one down and right; a picture with an odd
# width and an even height moves down and left. The angle does not matter. `blur_x` keeps the place.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: G'MIC 3.6.3, how far away the middle of a dot's spot is, in columns and rows
#       blur_linear 5,0,0: 57x41 -0.5 -0.5, 64x64 0.5 0.5, 57x64 -0.5 0.5
#       blur_linear 5,0,90: 57x41 -0.5 -0.5, 64x64 0.5 0.5, 57x64 -0.5 0.5
#       blur_linear 3,1,30: 57x41 -0.5 -0.5, 64x64 0.5 0.5, 57x64 -0.5 0.5
#       blur_x 5: 57x41 0 0, 64x64 0 0, 57x64 0 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 gmic==3.6.3.post1
"$folder/bin/python" - <<'EOF'
import sys
import gmic, numpy

def moved(command, width, height):
  """Columns and rows from a dot to the middle of its spot. G'MIC's axes are x, y, z, channel."""
  dot = numpy.zeros((width, height, 1, 1), numpy.float32)
  dot[28, 20] = 200
  results = gmic.run("v - " + command, gmic.ImageList([gmic.Image(dot)]))
  spot = numpy.squeeze(results[0].to_numpy()).astype(float) / 200
  columns, rows = numpy.mgrid[:width, :height]
  # Adding 0 makes 0 of -0.
  return round((spot * columns).sum() / spot.sum() - 28, 1) + 0, round((spot * rows).sum() / spot.sum() - 20, 1) + 0

print("G'MIC %s, how far away the middle of a dot's spot is, in columns and rows" % gmic.__version__)
sizes = (57, 41), (64, 64), (57, 64)
found = {}
for command in ("blur_linear 5,0,0", "blur_linear 5,0,90", "blur_linear 3,1,30", "blur_x 5"):
  found[command] = [moved(command, *size) for size in sizes]
  print("%s: %s" % (command, ", ".join("%dx%d %g %g" % (*size, *at) for size, at in zip(sizes, found[command]))))
sys.exit(not (all(found[command] == [(-0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)] for command in found if "linear" in command)
              and found["blur_x 5"] == [(0, 0)] * 3))
EOF
