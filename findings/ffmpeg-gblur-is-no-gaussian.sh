#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: gblur, "Gaussian blur", falls off as an exponential with its default of one step.
#
# At sigma 2 each sample away from the middle of a dot is half of the one before: 28 14 7 4 2. A Gaussian has
# 10 9 6 3 1. `steps` comes nearer, but its largest value, 6, still keeps 13 in the middle.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       gblur=sigma=2: 28 14 7 4 2
#       gblur=sigma=2:steps=6: 13 10 6 3 1
#       a Gaussian of sigma 2: 10 9 6 3 1
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
dot = numpy.zeros((41, 41), numpy.uint8)
dot[20, 20] = 255

def right_half(name):
  command = [ffmpeg, "-v", "error", *raw, "-s", "41x41", "-i", "-", "-vf", name, *raw, "-"]
  result = subprocess.run(command, input=dot.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  samples = numpy.frombuffer(result, numpy.uint8).reshape(41, 41)[20, 20:25]
  print("%s: %s" % (name, " ".join(map(str, samples))))
  return samples.astype(int)

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
one, six = right_half("gblur=sigma=2"), right_half("gblur=sigma=2:steps=6")
weights = numpy.exp(-numpy.arange(-20, 21) ** 2 / 8)
gaussian = numpy.round(255 * weights[20] * weights[20:25] / weights.sum() ** 2).astype(int)
print("a Gaussian of sigma 2: %s" % " ".join(map(str, gaussian)))
halves = all(abs(one[i] - one[i - 1] / 2) <= 1 for i in range(1, 5))
sys.exit(not (halves and one[0] > 2 * gaussian[0] and six[0] > gaussian[0] + 2))
EOF
