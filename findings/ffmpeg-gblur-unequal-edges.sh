#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: gblur counts the first column and row up to four times as much as the last ones; dblur the other way.
#
# A blur of a mirrored picture is the mirrored blur. The results of gblur differ between the edges. A white column at
# the left edge spreads to 136 and 119 at sigma 10, one at the right edge to 34 and 29. A Gaussian that repeats the edge
# gives 133 on both sides. The upper and the lower edge differ as left and right do. dblur has 46 at the left and 140 at
# the right edge. Flat pictures stay as they are, so a test with one finds nothing.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       gblur=sigma=2: left 170 85 42 21, right 128 64 32 16
#       gblur=sigma=10: left 136 119 103 89, right 34 29 25 22
#       dblur=angle=0:radius=5: left 46 38 31 25, right 140 115 94 77
#       a Gaussian that repeats the edge: sigma 2: 153 102 57 26, sigma 10: 133 122 112 102
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

SIZE = 65
ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
names = ("gblur=sigma=2", "gblur=sigma=10", "dblur=angle=0:radius=5")

def filtered(name, picture):
  raw = ["-f", "rawvideo", "-pix_fmt", "gray"]
  command = [ffmpeg, "-v", "error", *raw, "-s", "%dx%d" % (SIZE, SIZE), "-i", "-", "-vf", name, *raw, "-"]
  result = subprocess.run(command, input=picture.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return numpy.frombuffer(result, numpy.uint8).reshape(SIZE, SIZE)

def edge(name, turns):
  """The first samples from the edge inwards, where the line at the edge is white, in a picture turned by so much."""
  picture = numpy.zeros((SIZE, SIZE), numpy.uint8)
  picture[:, 0] = 255
  return numpy.rot90(filtered(name, numpy.rot90(picture, turns).copy()), -turns)[SIZE // 2, :4].tolist()

def text(samples):
  return " ".join("%d" % sample for sample in samples)

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
left, right = ({name: edge(name, turns) for name in names} for turns in (0, 2))
upper, lower = ({name: edge(name, turns) for name in names[:2]} for turns in (3, 1))
for name in names:
  print("%s: left %s, right %s" % (name, text(left[name]), text(right[name])))
true = []
for sigma in 2, 10:
  weights = numpy.exp(-numpy.arange(-100, 101) ** 2 / (2 * sigma ** 2))
  true.append([round(255 * float(weights[100 + at:].sum() / weights.sum())) for at in range(4)])
print("a Gaussian that repeats the edge: sigma 2: %s, sigma 10: %s" % (text(true[0]), text(true[1])))
flat = numpy.full((SIZE, SIZE), 100, numpy.uint8)
sys.exit(not (all(upper[name] == left[name] and lower[name] == right[name] for name in names[:2]) and
              left[names[0]][0] > 1.2 * right[names[0]][0] and left[names[1]][0] > 3.5 * right[names[1]][0] and
              right[names[2]][0] > 2.5 * left[names[2]][0] and
              all((filtered(name, flat) == 100).all() for name in names)))
EOF
