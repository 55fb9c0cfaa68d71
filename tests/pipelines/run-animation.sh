#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Several properties that change while cudaconv-play writes a video: run-animation.sh CUDACONV_PLAY
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

player=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# The luma of the frames of a clip that goes through a blur, in NAME.raw: filtered NAME ARGUMENT...
filtered() {
  "$player" -q -o "$1.mkv" clip.mkv mask=gauss "${@:2}" && gst-launch-1.0 -q filesrc location="$1.mkv" ! decodebin \
    ! videoconvert ! video/x-raw,format=GRAY8 ! filesink location="$1.raw" </dev/null && [ -s "$1.raw" ]
}
# How strongly the rows and the columns of the first and of the last frame change: strength NAME
strength() {
  python3 - "$1.raw" <<'END'
import sys
data, width, height = open(sys.argv[1], "rb").read(), 160, 120
frames = [data[at:at + width * height] for at in range(0, len(data), width * height)]
assert len(frames) == 10 and len(frames[-1]) == width * height, len(frames)
for frame in (frames[0], frames[-1]):
    for step in (1, width):  # along a row, down a column
        print(sum(abs(frame[p] - frame[p + step]) for p in range(width * (height - 1) - 1)))
END
}
moves_both() { # the first along the rows, the second down the columns
  filtered both --animate=sigma=0:6 --animate=sigma-y=0:3 || return
  local first_x first_y last_x last_y
  { read -r first_x && read -r first_y && read -r last_x && read -r last_y; } < <(strength both)
  echo "changes along rows: $first_x, then $last_x; down columns: $first_y, then $last_y"
  [ $((3 * last_x)) -lt "$first_x" ] && [ $((3 * last_y)) -lt "$first_y" ]
}
moves_each() { # in any order, and not as one alone
  filtered turned --animate=sigma-y=0:3 --animate=sigma=0:6 && cmp both.raw turned.raw &&
    filtered x --animate=sigma=0:6 sigma-y=0 && filtered y --animate=sigma-y=0:3 sigma=0 &&
    ! cmp -s both.raw x.raw && ! cmp -s both.raw y.raw
}
refuses_twice() {
  local code=0 output
  output=$("$player" -o twice.mkv clip.mkv mask=gauss --animate=sigma=0:6 --animate=sigma=1:2 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" = 1 ] && [[ $output == *"--animate names the property sigma twice"* ]] && [ ! -e twice.mkv ]
}

gst-launch-1.0 -q videotestsrc num-buffers=10 pattern=checkers-8 ! video/x-raw,format=I420,width=160,height=120 \
  ! matroskamux ! filesink location=clip.mkv </dev/null
echo "1..3"
expect "two properties change" moves_both
expect "each has its own course" moves_each
expect "one property twice is an error" refuses_twice
finish
