#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks that pipelines/gallery has every mask, and draws the picture in pipelines/pictures: run-gallery.sh TOP_FOLDER
# BUILD
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
width, height = 5 * 244 - 4, (count + 4) // 5 * 153
assert len(new) == width * height, "%d bytes, not %dx%d" % (len(new), width, height)
assert len(old) == len(new), "pipelines/pictures/gallery.jpg has another size"
def picture(sheet, i):
    x, y = i % 5 * 244, i // 5 * 153
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

echo "1..2"
expect "every mask is in the list" every_mask
expect_unless "$missing" "it draws pipelines/pictures/gallery.jpg" as_committed
finish
