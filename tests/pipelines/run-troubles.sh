#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks that README.md explains the messages about common mistakes: run-troubles.sh TOP_FOLDER BUILD
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

readme=$(realpath "$1")/README.md
plugin=$(realpath "$2")/gst/libgstcudaconv.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

export LC_ALL=C  # GLib and GStreamer translate their messages
# prints TEXT PATTERN COMMAND...: passes if README.md has TEXT, and a line of COMMAND's output has PATTERN. COMMAND may
# fail.
prints() {
  grep -qF -- "$1" "$readme" || { echo "README.md does not have: $1"; return 1; }
  ("${@:3}" </dev/null || true) 2>&1 | tee "$scratch/log"
  grep -qa -- "$2" "$scratch/log"
}
says() { # TEXT COMMAND...: COMMAND prints TEXT, a quotation in README.md; "..." is any text
  expect "$1" prints "$1" "$(sed -e 's/[][\.*^$]/\\&/g' -e 's/ *\\\.\\\.\\\. */.*/g' <<<"$1")" "${@:2}"
}
filter() { # SETTING...
  timeout 60 gst-launch-1.0 videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48 ! cudaconv "$@" ! fakesink
}
with() { local -x "$1"; "${@:2}"; } # VARIABLE=VALUE COMMAND...
plugins_of() { # FOLDER COMMAND...: runs COMMAND with no other plugins
  env -u GST_PLUGIN_PATH GST_PLUGIN_PATH_1_0="$1" GST_PLUGIN_SYSTEM_PATH_1_0="$scratch/empty" \
    GST_REGISTRY_1_0="$1/registry" timeout 60 "${@:2}"
}
mkdir "$scratch/empty" "$scratch/damaged"
head -c 100000 "$plugin" >"$scratch/damaged/libgstcudaconv.so"

# decodebin has only sound. gst-launch-1.0 prints both messages, now and then only the second one: it ends at the error.
# On a busy machine decodebin sometimes waits for ever.
wrong_stream() {
  local try
  gst-launch-1.0 -q audiotestsrc num-buffers=9 ! vorbisenc ! oggmux ! filesink location="$scratch/sound.ogg" || return
  for try in 1 2 3 4 5; do
    echo "try $try"
    timeout 10 gst-launch-1.0 filesrc location="$scratch/sound.ogg" ! decodebin ! cudaconv ! fakesink || true
  done
}
# autovideosink without the elements that show windows, and with one, but without a display.
no_window() {
  local plugins
  plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
  mkdir -p "$scratch/headless" "$scratch/blind"
  ln -sf "$plugins"/libgst{coreelements,autodetect,videotestsrc}.so "$plugin" "$scratch/headless"
  ln -sf "$plugins"/libgst{coreelements,autodetect,videotestsrc,ximagesink}.so "$plugin" "$scratch/blind"
  plugins_of "$scratch/headless" gst-launch-1.0 videotestsrc num-buffers=3 ! cudaconv ! autovideosink &&
    DISPLAY='' plugins_of "$scratch/blind" gst-launch-1.0 videotestsrc num-buffers=3 ! cudaconv ! autovideosink &&
    grep -q '^| no window, .* no display' "$readme" && echo "no window, and exit code 0"
}
profile() { # SETTING...: of H.264 behind a filter in RGB
  timeout 60 gst-launch-1.0 -v videotestsrc num-buffers=2 ! video/x-raw,format=RGB ! cudaconv ! videoconvert "$@" ! x264enc ! fakesink
}
plays_everywhere() {
  prints 'browsers and phones do not play' 'profile=(string)high-4:4:4' profile &&
    prints format=I420 'profile=(string)high,' profile ! video/x-raw,format=I420
}
exists() { gst-inspect-1.0 --exists --atleast-version=0.1 cudaconv && grep -qF -- '--exists --atleast-version=0.1' "$readme"; }

echo "1..19"
says 'no element "cudaconv"' plugins_of "$scratch/empty" gst-launch-1.0 cudaconv
says 'No such element or plugin' plugins_of "$scratch/empty" gst-inspect-1.0 cudaconv
expect "a plugin that does not load" prints 'gst-inspect-1.0 -b' 'libgstcudaconv\.so' \
  plugins_of "$scratch/damaged" gst-inspect-1.0 -b
says 'Frames are filtered on the CPU: ...' with CUDA_VISIBLE_DEVICES= filter
says 'backend=cuda' with CUDA_VISIBLE_DEVICES= filter backend=cuda
says 'could not set property "mask" ... to "gaussian"' filter mask=gaussian
says 'value "300.000000" ... is invalid or out of range' filter mask=gauss sigma=300
says 'could not link ... cudaconv0' timeout 60 gst-launch-1.0 videotestsrc ! video/x-bayer ! cudaconv ! fakesink
says "can't handle caps" filter ! video/x-raw,width=65
says 'sigma has no effect with mask=gauss5; it is used by ...' filter sigma=3
says 'nothing is filtered: all rectangles of roi ... lie outside the picture' filter roi=64,0,9,9
says 'Delayed linking failed' wrong_stream
says 'streaming stopped, reason not-linked' wrong_stream
says 'roi-grow has no effect without roi or roi-meta' filter roi-grow=0.5
says 'no window, and exit code 0' no_window
no_h264=
gst-inspect-1.0 --exists x264enc || no_h264="no element x264enc"
expect_unless "$no_h264" "an .mp4 that few players play" plays_everywhere
expect "gst-inspect-1.0 --exists" exists
expect "the log has the chosen method" prints 'GST_DEBUG=cudaconv:5' 'frames.*: method=auto border=replicate' \
  with GST_DEBUG=cudaconv:5 filter mask=sobel
expect "and the statistics" prints 'GST_DEBUG=cudaconv:4' 'application/x-cudaconv-stats, frames=(guint64)3,' \
  with GST_DEBUG=cudaconv:4 filter mask=sobel
finish
