#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs every launch line of pipelines/ and of the manuals without a display or a camera: run-pipelines.sh TOP_FOLDER
#
# Each line runs twice: unchanged, and with every cudaconv in passthrough. In both runs all frames must come out, and
# the frames of the two runs must differ. Output is in the Test Anything Protocol. Lines that need a GPU or a detector
# are skipped without one. GST_PLUGIN_PATH_1_0 is the plugin's folder.
set -euo pipefail
set -f

top=$1
frames=5
cascade=/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml
cd "$top"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints a missing element if it needs a GPU or an optional package. Any other missing element fails the test.
missing_element() {
  local word
  for word in $1; do
    case $word in
      cudaupload | cudadownload | nv*dec | nv*enc | facedetect | rsvgdec)
        gst-inspect-1.0 --exists "$word" || { echo "$word"; return; } ;;
    esac
    if [ "$word" = facedetect ] && [ ! -r "$cascade" ]; then echo "$cascade"; return; fi
  done
}

# Changes a launch line to test sources and to files for its frames: headless LINE FOLDER
headless() {
  sed -e "s/v4l2src/videotestsrc/; s/videotestsrc/videotestsrc num-buffers=$frames/g" \
    -e "s|autovideosink|multifilesink location='$2/%05d.raw'|" \
    -e "s|filesink location=build/\([^ ]*\)|filesink location='$2/\1'|" <<<"$1"
}

passthrough() {
  sed -E "s/! *cudaconv( +([a-z-]+=(\"[^\"]*\"|[^ ]+)|'@[^']*'))*/! cudaconv mask=identity/g" <<<"$1"
}

# Runs a launch line, and writes its frames to files in FOLDER: play LINE FOLDER
play() {
  mkdir -p "$2"
  headless "$1" "$2" | xargs timeout 60 gst-launch-1.0 -q -- >"$2.log" 2>&1
}

not_ok() { # NUMBER NAME REASON [LOG]
  echo "not ok $1 - $2: $3"
  [ -z "${4:-}" ] || sed 's/^/# /' "$4"
  failed=1
}

check() { # NUMBER NAME LINE
  local number=$1 name=$2 line=$3 element out=$scratch/$1
  element=$(missing_element "$line")
  if [ -n "$element" ]; then
    echo "ok $number - $name # SKIP no element $element"
    return
  fi
  if ! play "$line" "$out/filtered"; then
    not_ok "$number" "$name" "it does not run" "$out/filtered.log"
    return
  fi
  if ! play "$(passthrough "$line")" "$out/plain"; then
    not_ok "$number" "$name" "it does not run in passthrough" "$out/plain.log"
    return
  fi
  local filtered plain
  filtered=$(find "$out/filtered" -type f | wc -l)
  plain=$(find "$out/plain" -type f | wc -l)
  if [[ $line == *videotestsrc* || $line == *v4l2src* ]] && [ "$plain" != "$frames" ]; then
    not_ok "$number" "$name" "$plain frames of $frames came out"
  elif [ "$plain" = 0 ] || [ "$filtered" != "$plain" ]; then
    not_ok "$number" "$name" "$filtered frames came out, and $plain unfiltered"
  elif diff -rq "$out/filtered" "$out/plain" >/dev/null; then
    not_ok "$number" "$name" "the filter changed nothing"
  else
    echo "ok $number - $name"
  fi
  rm -rf "$out"
}

names=() lines=()
set +f
for file in pipelines/*.launch; do
  names+=("$(basename "$file")")
  lines+=("$(grep -v '^#' "$file" | tr '\n' ' ')")
done
set -f
for file in README.md gst/README.md tests/bench/README.md; do
  while read -r line; do
    [[ $line == *...* ]] && continue  # not a complete line
    names+=("$file: ${line#gst-launch-1.0 }")
    lines+=("${line#gst-launch-1.0 }")
  done < <(grep -E '^ *gst-launch-1.0 ' "$file")
done

failed=0
echo "1..${#lines[@]}"
for i in "${!lines[@]}"; do check $((i + 1)) "${names[i]}" "${lines[i]}"; done
exit $failed
