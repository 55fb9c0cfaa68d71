#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Hides a face at many widths, by the launch lines of the manuals with several encoders, and by the example programs:
# run-widths.sh CUDACONV_PRIVACY TOP_FOLDER
#
# Detectors of OpenCV are blind where rows are padded, and print no error. Output is in the Test Anything Protocol.
# GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

program=$(realpath "$1")
top=$(realpath "$2")
script=$top/pipelines/cudaconv-privacy.py
photo=$top/tests/pipelines/face.jpg
cascade=/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml
export OPENCV_LOG_LEVEL=OFF
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# Prints the first of these elements that is not installed.
missing() { for element; do gst-inspect-1.0 --exists "$element" || { echo "no element $element" && return; }; done; }
no_detector=$(missing facedetect)
[ -r "$cascade" ] || no_detector=${no_detector:-there is no $cascade (opencv-data)}
python=$(python_with Gst)
no_python=
[ -n "$python" ] || no_python="no GStreamer bindings for Python (python3-gi, gir1.2-gstreamer-1.0)"

# ---- Launch lines ---------------------------------------------------------------------------------------------------

size="videoscale ! video/x-raw,width=[16,32752,16] !"
# The commands of a text, each on a line and without the quotes of a shell. Parts of commands begin with "... !".
lines() {
  sed 's/\\-/-/g; s/^ *#.*//; s|^//||' "$1" | tr -d "\"'\`" | tr -s '\\\n ' ' ' |
    sed 's/gst-launch-1.0/\n&/g; s/\.\.\. ! /\n/g'
}
# Each facedetect of the file that has settings comes with a width that it can read, right before roihold or cudaconv:
# has_order FILE
has_order() {
  local found
  found=$(lines "$1" | grep -oE '([^!]*! ){2}facedetect display=false[^!]*(! [a-z]+)?')
  echo "$found"
  [ -n "$found" ] && ! grep -vF "$size" <<<"$found" &&
    ! grep -E 'facedetect[^!]*! [a-z]' <<<"$found" | grep -vE '! (roihold|cudaconv)'
}
# Prints the elements of a line, from videoconvert to cudaconv. They fill faces with green: elements_of FILE
elements_of() {
  lines "$1" | grep -oE "videoconvert ! videoscale ! [^!]*! facedetect [^!]*! roihold [^!]*! cudaconv [^!]*" | head -n 1 |
    sed 's/mask=mosaic/mask=fill fill-color=0xff00ff00/; s/roi-scale=[0-9.]* *//'
}
# In each frame the middle of the face is green: is_green FILE WIDTH, where WIDTH is of the frame before the scaler.
is_green() {
  python3 - "$@" <<'PYTHON'
import sys
data, width, height, frames = open(sys.argv[1], "rb").read(), int(sys.argv[2]), 240, 2
row, rest = divmod(len(data), height * frames)
assert rest == 0 and row % 48 == 0 and abs(row // 3 - width) <= 8, (len(data), width)
x, y = round(((width - 240) // 2 + 116) * row / 3 / width), 124
for frame in range(frames):
    r, g, b = data[(frame * height + y) * row + 3 * x:][:3]
    assert g > 180 and r < 90 and b < 90, "frame %d: %d,%d,%d" % (frame, r, g, b)
PYTHON
}
hides() { # ENCODER WIDTH
  echo "$1, $2 columns"
  gst-launch-1.0 -q filesrc location="$photo" ! jpegdec ! imagefreeze num-buffers=2 ! videoconvert \
    ! videobox autocrop=true ! video/x-raw,width="$2",height=240,framerate=25/1 ! "${elements[@]}" \
    ! videoconvert ! "$1" ! matroskamux ! filesink location=hidden.mkv </dev/null &&
    gst-launch-1.0 -q filesrc location=hidden.mkv ! decodebin ! videoconvert ! video/x-raw,format=RGB \
      ! filesink location=hidden.raw </dev/null && is_green hidden.raw "$2"
}
hides_at_all() { # FILE ENCODER WIDTH...: by the line of the file
  local -a elements
  read -ra elements < <(elements_of "$1")
  echo "${elements[@]}"
  [ ${#elements[@]} -gt 8 ] || return
  local width
  for width in "${@:3}"; do hides "$2" "$width" || return; done
}

# ---- The programs ---------------------------------------------------------------------------------------------------

make_clip() { # WIDTH HEIGHT: the face in the middle of a clip
  gst-launch-1.0 -q filesrc location="$photo" ! jpegdec ! imagefreeze num-buffers=2 ! videoconvert \
    ! videobox autocrop=true ! video/x-raw,width="$1",height="$2",framerate=25/1 ! jpegenc quality=95 ! matroskamux \
    ! filesink location=clip.mkv </dev/null
}
# Frames of RGB, whose rows have no padding, differ from those before the filter near the face, and nowhere else:
# only_face WIDTH
only_face() {
  gst-launch-1.0 -q filesrc location=clip.mkv ! matroskademux ! jpegdec ! videoconvert ! video/x-raw,format=RGB \
    ! filesink location=plain.rgb </dev/null
  python3 - "$1" <<'PYTHON'
import sys
width, height = int(sys.argv[1]), 240
row, padded = 3 * width, (3 * width + 3) // 4 * 4
a, b = (open(name, "rb").read() for name in ("hidden.rgb", "plain.rgb"))
assert len(a) == 2 * height * row and len(b) == 2 * height * padded, (len(a), len(b), row)
left, right = (width - 240) // 2, (width + 240) // 2
count = 0
for line in range(2 * height):
    x, y = a[line * row:][:row], b[line * padded:][:row]
    assert x[:3 * left] == y[:3 * left] and x[3 * right:] == y[3 * right:], "row %d" % line
    count += x != y
print("%d rows of the face are changed" % count)
assert count > 160
PYTHON
}
finds_face() { # COMMAND...
  local width
  for width in 322 323 324 1366; do
    echo "$width columns"
    make_clip "$width" 240 && "$@" -o hidden.rgb clip.mkv >said && cat said || return
    [ "$(cat said)" = "2 frames: 1 face in 2" ] && only_face "$width" || return
  done
}
keeps_size() { # COMMAND...: of a video file
  local size
  for size in 854,240 323,241; do
    make_clip "${size%,*}" "${size#*,}" && "$@" -o hidden.webm clip.mkv >said && cat said || return
    gst-launch-1.0 -v filesrc location=hidden.webm ! decodebin ! fakesink 2>&1 </dev/null | tee caps.txt
    [ "$(cat said)" = "2 frames: 1 face in 2" ] &&
      grep -q "fakesink.*width=(int)${size%,*}, height=(int)${size#*,}" caps.txt || return
  done
}
takes_small_clips() { # COMMAND...: which are smaller than the smallest face
  local size
  for size in 16,16 17,17 31,29; do
    make_clip "${size%,*}" "${size#*,}" && "$@" -o small.rgb clip.mkv 2>&1 | tee said || return
    grep -q "2 frames: no face in 2" said || return
  done
}

encoders=("vp8enc vp8dec" "x264enc avdec_h264" "jpegenc jpegdec")
orders=(README.md gst/README.md pipelines/README.md pipelines/privacy.launch pipelines/man/cudaconv-tune.1
  pipelines/cudaconv-tune.cpp)
echo "1..$((${#orders[@]} + ${#encoders[@]} + 1 + 6))"
for file in "${orders[@]}"; do expect "$file: the order of elements" has_order "$top/$file"; done
for pair in "${encoders[@]}"; do
  # shellcheck disable=SC2086  # two words
  expect_unless "${no_detector:-$(missing $pair)}" "README.md: ten widths, ${pair% *}" \
    hides_at_all "$top/README.md" "${pair% *}" 300 321 600 720 854 856 1080 1280 1366 1367
done
expect_unless "${no_detector:-$(missing vp8enc vp8dec)}" "privacy.launch: three widths" \
  hides_at_all "$top/pipelines/privacy.launch" vp8enc 300 854 1366
expect_unless "$no_detector" "cudaconv-privacy finds the face" finds_face "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" finds_face "$python" "$script"
expect_unless "$no_detector" "the size stays" keeps_size "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" keeps_size "$python" "$script"
expect_unless "$no_detector" "clips smaller than a face" takes_small_clips "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" takes_small_clips "$python" "$script"
finish
