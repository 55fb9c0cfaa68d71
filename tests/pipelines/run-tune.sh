#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The window of cudaconv-tune, on a display that nobody sees: run-tune.sh CUDACONV_TUNE TEST_PROGRAM CLIP
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

tune=$(realpath "$1")
program=$(realpath "$2")
clip=$(realpath "$3")
if ! command -v Xvfb >/dev/null; then
  echo "1..0 # SKIP there is no Xvfb (xvfb)"
  exit
fi
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$clip" city.webm
clip=$scratch/city.webm  # which a launch line needs not quote
# No presets, settings or themes of the user.
export XDG_DATA_HOME=$scratch XDG_CONFIG_HOME=$scratch NO_AT_BRIDGE=1 GTK_THEME=Adwaita GDK_BACKEND=x11 GDK_SCALE=1

start_display 1400x1000
export DISPLAY=$display

refuses() { # TEXT ARGUMENT...
  local code=0 output
  output=$(timeout 60 "$tune" "${@:2}" 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" = 1 ] && [[ $output == *"$1"* ]]
}
says_no_more_of_detector() { # than what is wrong
  refuses "syntax error" --detector="facedetect display=false !" "$clip" | tee said && ! grep haarcascade said
}
without_decoder() { GST_PLUGIN_FEATURE_RANK=vp8dec:NONE,avdec_vp8:NONE refuses "there is no VP8 decoder" both.mkv; }
without_display() { DISPLAY='' refuses "no display" "$clip"; }

echo "no video" >text.mp4
gst-launch-1.0 -q audiotestsrc num-buffers=9 ! wavenc ! filesink location=sound.wav
gst-launch-1.0 -q matroskamux name=m ! filesink location=both.mkv videotestsrc num-buffers=5 ! vp8enc ! queue ! m. \
  audiotestsrc num-buffers=9 ! vorbisenc ! queue ! m.
gst-launch-1.0 -q videotestsrc num-buffers=1 ! jpegenc ! filesink location=photo.jpg
LC_ALL=C sed 's/\xff\xc0\x00\x11\x08/\xff\xc0\x00\x11\x0c/' photo.jpg >deep.jpg
gst-launch-1.0 -q videotestsrc num-buffers=5 ! video/x-raw,format=GRAY8,width=8,height=1 ! matroskamux \
  ! filesink location=row.mkv
slow="videotestsrc num-buffers=10 ! video/x-raw,format=I420,width=64,height=48,framerate=5/1"
slow+=" ! capssetter caps=video/x-raw,framerate=25/1"
# shellcheck disable=SC2086  # launch lines
for end in "vp8enc deadline=1 ! matroskamux ! filesink location=slow.mkv" "matroskamux ! filesink location=raw.mkv"; do
  gst-launch-1.0 -q $slow ! $end
done
if gst-inspect-1.0 --exists x264enc && gst-inspect-1.0 --exists avdec_h264; then
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48,colorimetry=1:3:5:1 ! x264enc \
    ! mp4mux ! filesink location=full.mp4
fi
for part in {00..19}; do
  [ "$part" -lt 10 ] && size=width=64,height=48 || size=width=32,height=80
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! "video/x-raw,$size" ! jpegenc ! filesink location="part$part.jpg"
done
gst-launch-1.0 -q multifilesrc location=part%02d.jpg caps=image/jpeg,width=64,height=48,framerate=25/1 ! avimux \
  ! filesink location=change.avi 2>/dev/null  # multifilesrc has no times
echo "1..52"
expect "a file that is not there" refuses "nothing-there.mp4: No such file" nothing-there.mp4
expect "a file that is no video" refuses "text.mp4: " text.mp4
expect "a file without video" refuses "there is no video in it" sound.wav
expect "a file without a decoder for its video" without_decoder
expect "a file that its decoder does not support" refuses "deep.jpg: no frame of it can be decoded" deep.jpg
expect "a folder" refuses "is a folder" "$scratch"
expect "a value that is not there" refuses "mask=gaussian is not a value of that property" "$clip" mask=gaussian
expect "a property that is not there" refuses "no property msk" msk=sobel
expect "a detector that is not there" refuses "nosuchelement" --detector=nosuchelement
no_detector=
gst-inspect-1.0 --exists facedetect || no_detector="no element facedetect"
expect_unless "$no_detector" "OpenCV's warnings" says_no_more_of_detector
expect "no display" without_display
"$program" "$clip" $((number + 1)) || failed=1
finish
