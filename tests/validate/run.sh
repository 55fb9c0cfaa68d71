#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Whole pipelines under gst-validate, which watches every pad, and has something done to them while they run: run.sh
#
# NAME.validatetest is a pipeline and what is done to it, NAME/flow-expectations the events and the checksums of the
# frames that reach its sink. Any issue that gst-validate finds is a failure; what is in NAME.overrides is no issue. Some
# take the bytes of pipelines/city.webm, as they lie there, for frames. These make the expectations of a scenario anew:
#
#   GST_PLUGIN_PATH_1_0=BUILD/gst GST_VALIDATE_CONFIG=validateflow,generate-expectations=true \
#     gst-validate-1.0 --set-test-file tests/validate/NAME.validatetest
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 says where the plugin is.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

if ! command -v gst-validate-1.0 >/dev/null; then
  echo "1..0 # SKIP there is no gst-validate-1.0 (of GStreamer's gst-devtools)"
  exit
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GST_VALIDATE=fatal-issues GST_VALIDATE_LOGSDIR=$scratch
export GST_VALIDATE_CONFIG="validateflow,generate-expectations=false:core,fail-on-missing-plugin=true"

passes() { # TEST
  local overrides=${1%.validatetest}.overrides
  [ ! -e "$overrides" ] || local -x GST_VALIDATE_OVERRIDE=$overrides
  timeout 20 gst-validate-1.0 --set-test-file "$1"
}

tests=("$(realpath "$(dirname "$0")")"/*.validatetest)
echo "1..${#tests[@]}"
for test in "${tests[@]}"; do
  expect "$(basename "$test" .validatetest)" passes "$test"
done
finish
