#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# FFmpeg 9.0.2: unsharp of 13x13 makes pictures of 10 bits nearly twice as bright. 8 bits are right.
#
# A sharpening leaves a flat picture as it is. 13x13 is the largest size. There the blur of 10 bits is right for samples
# up to 254. Above it begins again at 0, as if a sum overflowed. The filter adds the difference to the sample. At 16
# bits this happens from 11x11 on. A negative amount, which blurs, makes the picture dark. A test with 8 bits finds
# nothing. 8.1.2 is right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: ffmpeg version n9.0.2-17-g2a571b6068-20260930
#       unsharp=11:11:1, flat pictures: 8 bits 100: 100, 10 bits 401: 401, 12 bits 1606: 1606, 16 bits 25700: 54428
#       unsharp=13:13:1, flat pictures: 8 bits 100: 100, 10 bits 401: 700, 12 bits 1606: 3401, 16 bits 25700: 55924
#       unsharp=13:13:-1, flat pictures: 8 bits 100: 100, 10 bits 401: 102, 12 bits 1606: 0, 16 bits 25700: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 imageio-ffmpeg==0.8.1
"$folder/bin/python" - <<'EOF'
import subprocess, sys
import imageio_ffmpeg, numpy

ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
flats = {8: 100, 10: 401, 12: 1606, 16: 25700}

def middle(name, bits):
  kind, form = (numpy.uint8, "gray") if bits == 8 else (numpy.uint16, "gray%dle" % bits)
  raw = ["-f", "rawvideo", "-pix_fmt", form]
  command = [ffmpeg, "-v", "error", *raw, "-s", "64x64", "-i", "-", "-vf", name, *raw, "-"]
  flat = numpy.full((64, 64), flats[bits], kind)
  result = subprocess.run(command, input=flat.tobytes(), stdout=subprocess.PIPE, check=True).stdout
  return int(numpy.frombuffer(result, kind).reshape(64, 64)[32, 32])

print(" ".join(subprocess.check_output([ffmpeg, "-version"], text=True).split()[:3]))
names = ("unsharp=11:11:1", "unsharp=13:13:1", "unsharp=13:13:-1")
found = {name: {bits: middle(name, bits) for bits in flats} for name in names}
for name, results in found.items():
  print("%s, flat pictures:" % name,
        ", ".join("%d bits %d: %d" % (bits, flats[bits], result) for bits, result in results.items()))
small, large, blur = found.values()
sys.exit(not (all(small[bits] == flats[bits] for bits in (8, 10, 12)) and small[16] > 2 * flats[16] and
              large[8] == blur[8] == flats[8] and all(large[bits] > 1.7 * flats[bits] for bits in (10, 12, 16)) and
              all(blur[bits] < 0.3 * flats[bits] for bits in (10, 12, 16))))
EOF
