#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Hides what a model finds, by onnxinference and a decoder: run-inference.sh
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/tap.sh
. "$here/../tap.sh"

for element in onnxinference yolov8tensordec; do
  gst-inspect-1.0 --exists "$element" && continue
  echo "1..0 # SKIP no element $element"
  exit
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
python3 "$here/make-model.py" model.onnx
printf 'bright\r\n' >labels.txt

# A dark picture of 64x64 pixels with a bright quadrant at the top right.
python3 - <<'EOF'
row = bytes([9] * 96 + [250] * 96)
open("in.rgb", "wb").write(row * 32 + bytes([9] * 192 * 32))
EOF

# Filters the picture: filter ELEMENTS... -- SETTING...; the elements are from the inference to cudaconv.
filter() {
  local elements=()
  while [ "$1" != -- ]; do elements+=("$1"); shift; done
  shift
  timeout 60 gst-launch-1.0 filesrc location=in.rgb ! \
    rawvideoparse format=rgb width=64 height=64 framerate=10/1 ! "${elements[@]}" ! \
    cudaconv backend=cpu roi-meta=true mask=fill fill-color=0xffff0000 "$@" ! filesink location=out.rgb 2>&1 | tee log
}
# red COLUMN ROW WIDTH HEIGHT: passes if this rectangle of the result is red, and all other pixels are as they were
red() {
  python3 - "$@" <<'EOF'
import sys
x0, y0, width, height = map(int, sys.argv[1:])
source, got = open("in.rgb", "rb").read(), open("out.rgb", "rb").read()
wrong = 0
for y in range(64):
  for x in range(64):
    inside = x0 <= x < x0 + width and y0 <= y < y0 + height
    at = 3 * (64 * y + x)
    wrong += got[at:at + 3] != (bytes([255, 0, 0]) if inside else source[at:at + 3])
sys.exit(f"{wrong} pixels are wrong" if wrong or len(got) != len(source) else 0)
EOF
}
infer=(onnxinference model-file=model.onnx)
decode=(yolov8tensordec label-file=labels.txt)

held() { # TYPE SETTING...: with a roihold that selects a type
  filter "${infer[@]}" ! "${decode[@]}" ! roihold types="$1" hold=100 -- "${@:2}"
}
finds() { # SETTING...
  filter "${infer[@]}" ! "${decode[@]}" -- "$@" && red 32 0 32 32
}
passes() { # SETTING...
  filter "${infer[@]}" ! "${decode[@]}" -- "$@" && red 0 0 0 0
}
# Hides all, and says why.
undecoded() {
  filter "${infer[@]}" -- && red 0 0 64 64 && grep -q 'tensors that no element has decoded' log
}
held_finds() { held bright && red 32 0 32 32; }
held_passes() { held dark && red 0 0 0 0 && held bright roi-type=dark && red 0 0 0 0; }
held_undecoded() {
  filter "${infer[@]}" ! roihold types=bright -- && red 0 0 64 64 && grep -q 'tensors that no element has decoded' log
}

echo 1..7
expect "what a model finds is hidden" finds
expect "its label ends with the line of the file" finds roi-type=bright
expect "other labels are not hidden" passes roi-type=dark
expect "tensors without a decoder hide the frame" undecoded
expect "roihold takes what a model finds" held_finds
expect "it selects by label" held_passes
expect "tensors without a decoder hide the frame behind it" held_undecoded
finish
