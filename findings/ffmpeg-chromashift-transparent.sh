#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: chromashift, and geq without an expression for alpha, make the whole picture transparent.
#
# A filter of colours that takes formats with alpha hands alpha on, as rgbashift, convolution and hue do. chromashift
# takes yuva444p, and its alpha comes out as 0, also with a shift of 0. RGBA, which is
# converted for it, becomes transparent too. geq with lum, cb and cr, or r, g and b, sets alpha to 0; a='alpha(X,Y)'
# keeps it. There is no warning, and without alpha the pictures are right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       alpha of three frames whose alpha is 200, smallest and largest
#       chromashift=cbh=2: rgba 0 0, yuva444p 0 0, yuva420p 0 0
#       chromashift: rgba 0 0, yuva444p 0 0, yuva420p 0 0
#       geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)': rgba 0 0, yuva444p 0 0, yuva420p 0 0
#       geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='alpha(X,Y)': rgba 201 201, yuva444p 200 200, yuva420p 200 200
#       rgbashift=rh=2: rgba 200 200, yuva444p 200 200, yuva420p 200 200
#       hue=h=30: rgba 201 201, yuva444p 200 200, yuva420p 200 200
#       convolution=1 2 1 2 4 2 1 2 1: rgba 200 200, yuva444p 200 200, yuva420p 200 200
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
geq = "geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)'"
names = ("chromashift=cbh=2", "chromashift", geq, geq + ":a='alpha(X,Y)'", "rgbashift=rh=2", "hue=h=30",
         "convolution=1 2 1 2 4 2 1 2 1")
forms = ("rgba", "yuva444p", "yuva420p")

def alphas(name, form):
  """Smallest and largest alpha of three frames of alpha 200, whose luma or red is kept."""
  raw = ["-f", "rawvideo", "-pix_fmt"]
  command = [ffmpeg, "-v", "error", *raw, form, "-s", "64x64", "-i", "-", "-vf", name, *raw, form, "-"]
  area = 64 * 64
  if form == "rgba":
    frame = numpy.tile(numpy.array([100, 100, 100, 200], numpy.uint8), area)
  else:
    chroma = 2 * (area if form == "yuva444p" else area // 4)
    frame = numpy.repeat(numpy.array([100, 128, 200], numpy.uint8), [area, chroma, area])
  result = subprocess.run(command, input=3 * frame.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  result = numpy.frombuffer(result, numpy.uint8).reshape(3, -1)
  alpha = result[:, 3::4] if form == "rgba" else result[:, -area:]
  assert abs(result[:, 0].astype(int) - 100).max() <= 1
  return int(alpha.min()), int(alpha.max())

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
print("alpha of three frames whose alpha is 200, smallest and largest")
found = {name: {form: alphas(name, form) for form in forms} for name in names}
for name in names:
  print("%s: %s" % (name, ", ".join("%s %d %d" % (form, *found[name][form]) for form in forms)))
sys.exit(not all(alpha == (0, 0) if name in names[:3] else min(alpha) >= 199 and max(alpha) <= 201
                 for name in names for alpha in found[name].values()))
EOF
