#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pictures of turned cameras, whose Exif data say so, through the programs:
# run-orientation.sh CUDACONV_PLAY CUDACONV_PRIVACY PRIVACY_IN_PYTHON
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

player=$(realpath "$1")
privacy=$(realpath "$2")
script=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

python=$(python_with Gst)
no_python=
[ -n "$python" ] || no_python="no GStreamer bindings for Python (python3-gi, gir1.2-gstreamer-1.0)"

cat >pictures.py <<'END'
"""pictures.py make: writes upright.png and, for each orientation N, N.png. The Exif data of every second one are in
little endian, behind the pixels.
pictures.py tag: writes N.jpg, from upright.jpg.
pictures.py compare N WIDTH FILE: compares grey frames in FILE with the picture as N asks for it."""
import struct, sys, zlib
blocks = [[60, 90, 120], [150, 180, 210]]  # of 8x8 pixels
stored = [[blocks[y // 8][x // 8] for x in range(24)] for y in range(16)]
def exif(n):
    order, name = ("<", b"II*\0") if n % 2 else (">", b"MM\0*")
    return name + struct.pack(order + "IH" + 2 * "HHIHH" + "I", 8, 2, 0x100, 3, 1, 24, 0, 0x112, 3, 1, n, 0, 0)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(n):
    pixels = zlib.compress(b"".join(b"\0" + bytes(v for p in row for v in (p, p, p)) for row in stored))
    parts = [chunk(b"eXIf", exif(n)), chunk(b"IDAT", pixels)]
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 16, 8, 2, 0, 0, 0))
            + b"".join(parts[::-1] if n % 2 else parts) + chunk(b"IEND", b""))
def turned(n):  # where the first row and the first column of the stored picture are, by the standard
    across, mirrored = [list(column) for column in zip(*stored)], lambda rows: [row[::-1] for row in rows]
    return {1: stored, 2: mirrored(stored), 3: mirrored(stored[::-1]), 4: stored[::-1], 5: across,
            6: mirrored(across), 7: mirrored(across[::-1]), 8: across[::-1]}.get(n, stored)
if sys.argv[1] == "make":
    for n in range(10):
        open("%d.png" % n, "wb").write(png(n))
elif sys.argv[1] == "tag":
    data = open("upright.jpg", "rb").read()
    for n in range(10):
        tag = b"Exif\0\0" + exif(n)
        other = b"\xff\xff\xe1" + struct.pack(">H", 8) + b"other\0"  # another APP1 segment, after a byte of padding
        open("%d.jpg" % n, "wb").write(data[:2] + other + b"\xff\xe1" + struct.pack(">H", len(tag) + 2) + tag + data[2:])
else:
    want, width, got = turned(int(sys.argv[2])), int(sys.argv[3]), open(sys.argv[4], "rb").read()
    assert len(want[0]) == width, "the picture is %d wide, not %d" % (width, len(want[0]))
    assert len(got) >= width * len(want), len(got)
    far = max(abs(p - got[y * width + x]) for y, row in enumerate(want) for x, p in enumerate(row))
    assert far <= 14, "a pixel differs by %d" % far
END
python3 pictures.py make
gst-launch-1.0 -q filesrc location=1.png ! pngdec ! videoconvert ! video/x-raw,format=Y444,colorimetry=1:4:0:0 \
  ! jpegenc quality=100 ! filesink location=upright.jpg </dev/null
python3 pictures.py tag

is_turned() { # FILE N: its first frame is the picture as the orientation N asks for it
  local width
  gst-launch-1.0 -v filesrc location="$1" ! decodebin ! videoconvert ! video/x-raw,format=GRAY8 ! filesink location=frame.gray \
    </dev/null >caps
  width=$(sed -nE 's/.*filesink0.*width=\(int\)([0-9]+).*/\1/p' caps | head -1)
  python3 pictures.py compare "$2" "$width" frame.gray
}
turns_each() { # INPUT_SUFFIX OUTPUT_SUFFIX "SETTINGS" COMMAND...: 0 and 9 are no orientations
  local n settings orientations=(5 6)
  [ "$2" != png ] || orientations=(0 1 2 3 4 5 6 7 8 9)
  read -ra settings <<<"$3"
  for n in "${orientations[@]}"; do
    rm -f out.*
    echo "orientation $n"
    "${@:4}" -o "out.$2" "$n.$1" "${settings[@]}" && is_turned "out.$2" "$n" || return
    [ "$2" != png ] || [ "$(od -An -tu1 -j25 -N1 out.png)" -eq 2 ] || return # RGB, without alpha
  done
}

echo 1..12
for kind in png jpg; do
  # The median of a pixel of a block is the pixel.
  for output in png webm; do
    expect "$kind into .$output" turns_each $kind $output "mask=identity" "$player" -q
    expect "$kind, with a region, into .$output" turns_each $kind $output "mask=median" "$privacy" -q --region=3,3,1,1
    expect_unless "$no_python" "in Python too" turns_each $kind $output "mask=median" "$python" "$script" --region=3,3,1,1
  done
done
finish
