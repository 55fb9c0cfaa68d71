#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: a filter that takes no floats gives float grey more contrast, and cuts off its blacks and whites.
#
# Before a filter that does not take grayf32, such as avgblur or median, FFmpeg converts to gray16. This conversion
# takes the floats for limited range and the integers for full range, also with -color_range pc and setrange: 0.2
# becomes 0.16, 0.8 becomes 0.86, and all below 0.06 and above 0.92 are lost. The way back changes nothing. So a median,
# which should not touch a flat picture, does. gray8 as target and float RGB, gbrpf32, are right. 8.1.2 does the same;
# in 7.0.2 the way back undoes it.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       flat pictures of 0.05, 0.2, 0.5, 0.8, 0.95
#       grayf32, gblur, which takes floats: 0.050 0.200 0.500 0.800 0.950
#       grayf32, median: 0.000 0.161 0.511 0.862 1.000; with setrange=full: 0.000 0.161 0.511 0.862 1.000
#       grayf32, to gray16 and back: 0.000 0.161 0.511 0.862 1.000; to gray and back: 0.051 0.200 0.502 0.800 0.949
#       gbrpf32, median: 0.050 0.200 0.500 0.800 0.950
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
greys = (0.05, 0.2, 0.5, 0.8, 0.95)

def filtered(name, form="grayf32le", planes=1):
  """The middle of flat pictures."""
  raw = ["-f", "rawvideo", "-pix_fmt", form]
  command = [ffmpeg, "-v", "error", *raw, "-s", "32x32", "-i", "-", "-vf", name, *raw, "-"]
  frames = numpy.repeat(numpy.float32(greys), planes * 32 * 32)
  result = subprocess.run(command, input=frames.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return numpy.frombuffer(result, numpy.float32).reshape(len(greys), planes, 32, 32)[:, 0, 16, 16]

def text(samples):
  return " ".join("%.3f" % sample for sample in samples)

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
print("flat pictures of", ", ".join(map(str, greys)))
blur, median, ranged = filtered("gblur=sigma=1"), filtered("median=2"), filtered("setrange=full,median=2")
wide, narrow, colours = filtered("format=gray16le"), filtered("format=gray"), filtered("median=2", "gbrpf32le", 3)
print("grayf32, gblur, which takes floats:", text(blur))
print("grayf32, median: %s; with setrange=full: %s" % (text(median), text(ranged)))
print("grayf32, to gray16 and back: %s; to gray and back: %s" % (text(wide), text(narrow)))
print("gbrpf32, median:", text(colours))
right = lambda samples: abs(samples - numpy.float32(greys)).max() < 0.003
sys.exit(not (right(blur) and right(narrow) and right(colours) and median[0] == 0 and median[1] < 0.17 and
              median[3] > 0.85 and median[4] > 0.99 and all((other == median).all() for other in (ranged, wide))))
EOF
