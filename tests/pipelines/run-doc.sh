#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes a page of each element by hotdoc, where it is, and looks into them: run-doc.sh SOURCE
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

folder=$(realpath "$1")/gst/doc
if ! hotdoc --has-extension gst-extension >/dev/null 2>&1; then
  echo "1..0 # SKIP there is no hotdoc with its extension for GStreamer"
  exit
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"  # hotdoc keeps its own files there
touch start
index=$scratch/html/gst-index.html
elements=(cudaconv roihold)
page_of() { echo "$scratch/html/$1.html"; } # ELEMENT

# Links to GLib and GStreamer lead nowhere without their documentation.
is_made() {
  "$folder/describe.py" >"$scratch/cache.json"
  hotdoc run --conf-file "$folder/hotdoc.json" --gst-cache-file "$scratch/cache.json" \
    --output "$scratch" 2>&1 | tee "$scratch/log"
  local element
  for element in "${elements[@]}"; do
    [ -s "$(page_of "$element")" ] && grep -q "href=\"$element.html" "$index" || return
  done
  ! grep -E 'WARNING|ERROR' "$scratch/log" | grep -v 'mandatory-link-not-found'
}
has_properties() { # and the values of enumerations
  local element name missing=
  for element in "${elements[@]}"; do
    for name in $(gst-inspect-1.0 --no-colors "$element" |
      awk '/^[A-Z]/ { inside = /^Element Prop/ } inside && /^  [a-z]/ && !/^  (name|parent|qos) / { print $1 }
           inside && /^ +\([0-9]+\): / { print $2 }'); do
      grep -qE "(>|^ *)$name<" "$(page_of "$element")" || missing+=" $element:$name"
    done
  done
  echo "missing:$missing"
  [ -z "$missing" ]
}
has_pictures() { # each is a file
  local pictures
  mapfile -t pictures < <(grep -oE 'src="pictures/[^"]*' "$(page_of cudaconv)" | cut -d '"' -f 2)
  [ ${#pictures[@]} -ge 5 ] && cd "$scratch/html" && ls -l "${pictures[@]}"
}
is_made_everywhere() { # in a language that GStreamer has
  LC_ALL=de_DE.UTF-8 "$folder/describe.py" | cmp - "$scratch/cache.json"
}
leaves_source_alone() { [ -z "$(find "$folder" -newer "$scratch/start" -type f)" ]; }

echo "1..5"
expect "the pages are made without warnings" is_made
expect "they are the same in another language" is_made_everywhere
expect "they have all properties and values" has_properties
expect "the page of cudaconv has pictures" has_pictures
expect "nothing is written beside the sources" leaves_source_alone
finish
