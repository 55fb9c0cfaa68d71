#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the example player over a clip: run-player.sh CUDACONV_PLAY CLIP
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

self=$(realpath "$0")
player=$(realpath "$1")
clip=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

decodes() { # FILE FRAMES
  mkdir -p "$1.frames"
  gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! \
    multifilesink location="$1.frames/%05d" </dev/null
  local found=("$1.frames"/*)
  echo "${#found[@]} frames of $2"
  [ "${#found[@]}" = "$2" ]
}
video() { # FILE ARGUMENT...: every frame of the clip comes out, and the report names a backend
  "$player" -o "$1" --width=320 "${@:2}" "$clip" mask=gauss sigma=3 && decodes "$1" 78
}
differ() {
  [ -d "$1" ] && [ -d "$2" ] && ! diff -rq "$1" "$2"
}
picture() {
  "$player" -o sobel.png --at=1 "$clip" mask=sobel && decodes sobel.png 1
}
# refuses TEXT ARGUMENT...: passes where the player exits with 1, prints TEXT, and leaves no file
refuses() {
  local code=0 output
  output=$("$player" -o refused.webm "${@:2}" 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" = 1 ] && [[ $output == *"$1"* ]] && [ -z "$(find . -name 'refused*')" ]
}
in_no_window() { # TEXT ARGUMENT...: exits with 1 and says TEXT where there is no display
  local output
  ! output=$(env -u DISPLAY -u WAYLAND_DISPLAY "$player" "${@:2}" 2>&1) && echo "$output" && [[ $output == *"$1"* ]]
}

echo "1..11"
expect "a video" video plain.webm
expect "a property that changes with time" video animated.webm --animate=sigma=0.5:8
expect "the change shows" differ plain.webm.frames animated.webm.frames
expect "a picture" picture
expect "a file that is not there" refuses "nothing-there" nothing-there.mp4
expect "a file that is no video" refuses "decode" "$self"
expect "a property that is not there" refuses "no property msk" "$clip" msk=sobel
expect "a value that is not there" refuses "mask=gaussian is not a value of that property; these are: identity box3" \
  "$clip" mask=gaussian
expect "no display" in_no_window "no display" "$clip" mask=sobel
expect "no display, but first a property that is not there" in_no_window "no property msk" "$clip" msk=sobel
expect "a filter that cannot be carried out" refuses "coefficients" "$clip" mask=custom coefficients="1 2; x"
finish
