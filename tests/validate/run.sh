#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs whole pipelines under gst-validate, which watches every pad, and changes them while they run: run.sh
#
# NAME.validatetest is a pipeline and its actions. NAME/flow-expectations are the events and the checksums of frames at
# its sink. Any issue that gst-validate finds is a failure, except the issues in NAME.overrides. Some pipelines use the
# raw bytes of pipelines/city.webm as frames. This command makes the expectations of a scenario again:
#
#   GST_PLUGIN_PATH_1_0=BUILD/gst GST_VALIDATE_CONFIG=validateflow,generate-expectations=true \
#     gst-validate-1.0 --set-test-file tests/validate/NAME.validatetest
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

if ! command -v gst-validate-1.0 >/dev/null; then
  echo "1..0 # SKIP no gst-validate-1.0 (GStreamer's gst-devtools)"
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
