#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks that pipelines/gallery has every mask, that it and pipelines/noise draw the pictures in pipelines/pictures, and
# that the manual has the figures of pipelines/noise:
# run-gallery.sh TOP_FOLDER BUILD
#
# Output is in the Test Anything Protocol.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

top=$(realpath "$1")
CUDACONV_BUILD=$(realpath "$2")
export CUDACONV_BUILD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

missing=
for element in vp8dec videocrop videobox textoverlay compositor jpegenc jpegdec; do
  gst-inspect-1.0 --exists "$element" || missing="no element $element"
done

every_mask() {
  gst-inspect-1.0 --no-colors cudaconv | sed -n '/"GstCudaConvMask"/,/^  [a-z]/p' |
    sed -nE 's/^ +\([0-9]+\): ([a-z0-9-]+) +- .*/\1/p' | sort >"$scratch/masks" &&
    [ -s "$scratch/masks" ] &&
    "$top/pipelines/gallery" --list | sed -E 's/^mask=([^ ]+).*/\1/' | sort -u >"$scratch/listed" &&
    diff "$scratch/masks" "$scratch/listed"
}
pixels() { # JPEG FILE: as grey samples
  gst-launch-1.0 -q filesrc location="$1" ! jpegdec ! videoconvert ! video/x-raw,format=GRAY8 ! filesink location="$2"
}
# Each picture is nearly the same in both sheets; texts depend on fonts. In a sheet all pictures differ from the first.
as_committed() {
  "$top/pipelines/gallery" "$scratch/new.jpg" &&
    pixels "$scratch/new.jpg" "$scratch/new.raw" &&
    pixels "$top/pipelines/pictures/gallery.jpg" "$scratch/old.raw" || return
  python3 - "$scratch"/{new,old}.raw "$("$top/pipelines/gallery" --list | wc -l)" <<'END'
import sys
new, old = (open(name, "rb").read() for name in sys.argv[1:3])
count = int(sys.argv[3])
width, height = 5 * 244 - 4, (count + 4) // 5 * 154
assert len(new) == width * height, "%d bytes, not %dx%d" % (len(new), width, height)
assert len(old) == len(new), "pipelines/pictures/gallery.jpg has another size"
def picture(sheet, i):
    x, y = i % 5 * 244, i // 5 * 154
    return [b for row in range(y, y + 135) for b in sheet[row * width + x:row * width + x + 240]]
def difference(a, b):
    return sum(abs(p - q) for p, q in zip(a, b)) / len(a)
for i in range(count):
    now = picture(new, i)
    changed = difference(now, picture(old, i))
    assert changed < 2, "picture %d was not drawn by: pipelines/gallery pipelines/pictures/gallery.jpg" % i
    assert i == 0 or difference(now, picture(new, 0)) > 2, "picture %d is not filtered" % i
END
}

noise_as_committed() {
  "$top/pipelines/noise" "$scratch/noise.jpg" | tee "$scratch/printed" &&
    pixels "$scratch/noise.jpg" "$scratch/new.raw" &&
    pixels "$top/pipelines/pictures/noise.jpg" "$scratch/old.raw" || return
  python3 - "$scratch"/{new,old}.raw <<'END'
import sys
new, old = (open(name, "rb").read() for name in sys.argv[1:])
assert len(new) == len(old), "pipelines/pictures/noise.jpg has another size"
changed = sum(abs(a - b) for a, b in zip(new, old)) / len(new)
assert changed < 2, "it was not drawn by: pipelines/noise pipelines/pictures/noise.jpg"
END
}

# The table of the section Noise, as pipelines/noise printed it.
figures() {
  sed -n '/^## Noise/,/^## Borders/s/^| \(.*\) | \([0-9.]* dB\) | .*/\2 \1/p' "$top/gst/README.md" | tr -d '\140' |
    sort >"$scratch/listed"
  sort "$scratch/printed" | diff "$scratch/listed" -
}

for element in rawvideoparse videoscale; do
  gst-inspect-1.0 --exists "$element" || missing="there is no element $element"
done

echo "1..4"
expect "every mask is in the list" every_mask
expect_unless "$missing" "pipelines/pictures/gallery.jpg is what it draws" as_committed
expect_unless "$missing" "pipelines/pictures/noise.jpg is what pipelines/noise draws" noise_as_committed
expect_unless "$missing" "the manual has its figures" figures
finish
