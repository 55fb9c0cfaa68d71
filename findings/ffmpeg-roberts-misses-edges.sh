#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: the filter roberts does not see horizontal edges.
#
# The cross of Roberts is two differences along the diagonals, which see edges of every direction. FFmpeg's filter takes
# two differences along the row: the edge between a black and a white half, one above the other, gives 0 everywhere.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       roberts: horizontal edge 0, vertical edge 255
#       sobel: horizontal edge 255, vertical edge 255
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
raw = ["-f", "rawvideo", "-pix_fmt", "gray"]

def largest(name, picture):
  command = [ffmpeg, "-v", "error", *raw, "-s", "32x32", "-i", "-", "-vf", name, *raw, "-"]
  result = subprocess.run(command, input=picture.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return max(result)

below = numpy.zeros((32, 32), numpy.uint8)
below[16:] = 200
beside = numpy.ascontiguousarray(below.T)
print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
found = {name: (largest(name, below), largest(name, beside)) for name in ("roberts", "sobel")}
for name, (horizontal, vertical) in found.items():
  print("%s: horizontal edge %d, vertical edge %d" % (name, horizontal, vertical))
sys.exit(not (found["roberts"][0] == 0 and found["roberts"][1] > 0 and min(found["sobel"]) > 0))
EOF
