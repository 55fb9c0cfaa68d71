#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: lenscorrection with i=bilinear moves the picture by half a pixel and blurs it; shear loses two lines.
#
# A correction by 0 leaves a picture as it is. lenscorrection does so with its default, nearest. With i=bilinear
# everything moves up and left by half a pixel, at odd and even sizes. Noise keeps half of its deviation, as a mean of
# four samples does. shear by 0 makes the last row and the last column black, with nearest too. perspective and rotate
# by 0 change nothing.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       lenscorrection=i=nearest, 64x48: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
#       lenscorrection=i=nearest, 67x49: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
#       lenscorrection=i=bilinear, 64x48: moved left 0.50, up 0.50; noise: deviation times 0.49, 3056 samples changed
#       lenscorrection=i=bilinear, 67x49: moved left 0.50, up 0.50; noise: deviation times 0.49, 3270 samples changed
#       shear=0:0, 64x48: moved left 0.00, up 0.00; noise: deviation times 1.00, 111 samples changed
#       shear=0:0, 67x49: moved left 0.00, up 0.00; noise: deviation times 1.00, 115 samples changed
#       perspective, 64x48: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
#       perspective, 67x49: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
#       rotate=0, 64x48: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
#       rotate=0, 67x49: moved left 0.00, up 0.00; noise: deviation times 1.00, 0 samples changed
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
names = ("lenscorrection=i=nearest", "lenscorrection=i=bilinear", "shear=0:0", "perspective", "rotate=0")
sizes = ((64, 48), (67, 49))

def filtered(name, picture):
  rows, columns = picture.shape
  raw = ["-f", "rawvideo", "-pix_fmt", "gray"]
  command = [ffmpeg, "-v", "error", *raw, "-s", "%dx%d" % (columns, rows), "-i", "-", "-vf", name, *raw, "-"]
  result = subprocess.run(command, input=picture.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return numpy.frombuffer(result, numpy.uint8).reshape(rows, columns)

def measured(name, columns, rows):
  """Move to the left and up, deviation of noise by the source's, and how many samples of noise have changed."""
  ramp = numpy.tile(numpy.arange(columns, dtype=numpy.uint8) * 2 + 20, (rows, 1))
  upright = numpy.tile(numpy.arange(rows, dtype=numpy.uint8) * 2 + 20, (columns, 1)).T.copy()
  noise = numpy.random.default_rng(0).integers(1, 256, (rows, columns)).astype(numpy.uint8)
  inside = slice(8, -8), slice(8, -8)
  left, up = (float((filtered(name, picture)[inside].astype(int) - picture[inside]).mean() / 2)
              for picture in (ramp, upright))
  result = filtered(name, noise)
  return left, up, float(result[inside].std() / noise[inside].std()), int((result != noise).sum())

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
found = {name: [measured(name, *size) for size in sizes] for name in names}
for name in names:
  for size, result in zip(sizes, found[name]):
    print("%s, %dx%d: moved left %.2f, up %.2f; noise: deviation times %.2f, %d samples changed"
          % (name, *size, *result))
sys.exit(not (all(result == (0, 0, 1, 0) for name in names if name not in names[1:3] for result in found[name]) and
              all(0.3 < left < 0.7 and 0.3 < up < 0.7 and deviation < 0.6
                  for left, up, deviation, _ in found[names[1]]) and
              all(result == (0, 0, 1, columns + rows - 1)
                  for result, (columns, rows) in zip(found[names[2]], sizes))))
EOF
