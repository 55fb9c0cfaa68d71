#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# G'MIC 3.6.3: `bilateral` moves details by up to half of its spatial sigma: 10 pixels at sigma 20.
#
# With a large second sigma a bilateral filter blurs, and a dot becomes a spot around its place. G'MIC first adds up the
# samples of each cell of a grid, as wide as sigma. All samples of a cell then count as if they were in one place. So at
# sigma 5 dots in five neighbouring columns become the same spot. A dot that moves stays, and then jumps by five
# columns. With a sampling of 1, the third argument, it keeps its place. `blur` keeps it too.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: G'MIC 3.6.3, a line one column wide, in columns 40 to 51: how far away the middle of its spot is
#       bilateral 3,1000: -1 1 0 -1 1 0 -1 1 0 -1 1 0
#       bilateral 5,1000: 0 -1 -2 2 1 0 -1 -2 2 1 0 -1
#       bilateral 20,1000: 1 0 -1 -2 -3 -4 -5 -6 -7 -8 10 9
#       bilateral 5,1000,1,200: 0 0 0 0 0 0 0 0 0 0 0 0
#       blur 5: 0 0 0 0 0 0 0 0 0 0 0 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 gmic==3.6.3.post1
"$folder/bin/python" - <<'EOF'
import sys
import gmic, numpy

COLUMNS = range(40, 52)

def moved(command, column):
  """From the line to the middle of its spot, in columns. G'MIC's axes are x, y, z, channel."""
  line = numpy.zeros((120, 40, 1, 1), numpy.float32)
  line[column] = 200
  results = gmic.run("v - " + command, gmic.ImageList([gmic.Image(line)]))
  profile = numpy.squeeze(results[0].to_numpy())[:, 20].astype(float)
  return round(float((profile * numpy.arange(120)).sum() / profile.sum() - column))

print("G'MIC %s, a line one column wide, in columns %d to %d: how far away the middle of its spot is"
      % (gmic.__version__, COLUMNS[0], COLUMNS[-1]))
found = {}
for command in ("bilateral 3,1000", "bilateral 5,1000", "bilateral 20,1000", "bilateral 5,1000,1,200", "blur 5"):
  found[command] = [moved(command, column) for column in COLUMNS]
  print("%s: %s" % (command, " ".join(str(distance) for distance in found[command])))
sys.exit(not (found["bilateral 5,1000"][:11] == [0, -1, -2, 2, 1] * 2 + [0] and
              max(abs(distance) for distance in found["bilateral 20,1000"]) > 8 and
              found["bilateral 5,1000,1,200"] == found["blur 5"] == [0] * len(COLUMNS)))
EOF
