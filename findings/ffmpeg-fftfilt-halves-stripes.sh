#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: fftfilt with a weight of 1, which passes all frequencies, halves the contrast of the finest columns.
#
# The filter multiplies the Fourier transform of a picture by a weight. The weight 1 is the default for luma and changes
# nothing. But the highest frequency along rows comes back with half of its amplitude: columns of 0 and 200 by turns
# become 50 and 150. A dot gets a dotted line through its whole row, and noise changes in nine of ten samples.
# Rows of 0 and 200 stay, and so does a flat picture. So a filter made to keep fine detail removes some.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       columns of 0 and 200: 50 150 50 150 50 150; rows: 0 200 0 200 0 200; noise: 90 % of the samples changed
#       the row of a dot of 255: 0 4 0 4 251 4 0 4 0 4 0 4 0 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()

def filtered(picture):
  raw = ["-f", "rawvideo", "-pix_fmt", "gray"]
  command = [ffmpeg, "-v", "error", *raw, "-s", "64x64", "-i", "-", "-vf", "fftfilt=weight_Y=1", *raw, "-"]
  result = subprocess.run(command, input=picture.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return numpy.frombuffer(result, numpy.uint8).reshape(64, 64)

def text(samples):
  return " ".join("%d" % sample for sample in samples)

rows = numpy.zeros((64, 64), numpy.uint8)
rows[1::2] = 200
dot = numpy.zeros((64, 64), numpy.uint8)
dot[20, 30] = 255
noise = numpy.random.default_rng(0).integers(64, 192, (64, 64)).astype(numpy.uint8)
of_columns, of_rows, of_dot = filtered(rows.T.copy())[32, 30:36], filtered(rows)[30:36, 32], filtered(dot)
changed = 100 * (filtered(noise) != noise).mean()
print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
print("columns of 0 and 200: %s; rows: %s; noise: %d %% of the samples changed"
      % (text(of_columns), text(of_rows), changed))
print("the row of a dot of 255: %s" % text(of_dot[20, 26:40]))
flat = numpy.full((64, 64), 100, numpy.uint8)
sys.exit(not (of_columns.tolist() == [50, 150] * 3 and of_rows.tolist() == [0, 200] * 3 and changed > 50 and
              (of_dot[20, 1::2] > 2).all() and not of_dot[19].any() and
              (filtered(flat) == 100).all()))
EOF
