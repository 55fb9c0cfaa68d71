# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests in the Test Anything Protocol. Sourced by scripts under `set -euo pipefail` that print how many tests they have,
# "1..8", call `expect` for each, and end with `finish`.

number=0
failed=0

expect() { # NAME COMMAND...: a test that passes where the command succeeds; else what it prints is shown
  local output
  number=$((number + 1))
  if output=$("${@:2}" 2>&1 | tr -d '\0'); then
    echo "ok $number - $1"
  else
    echo "not ok $number - $1"
    echo "# ${output//$'\n'/$'\n'# }" >&2  # which Meson shows
    failed=1
  fi
}

expect_unless() { # REASON NAME COMMAND...: the same, skipped where there is a reason
  if [ -z "$1" ]; then
    expect "${@:2}"
  else
    number=$((number + 1))
    echo "ok $number - $2 # SKIP $1"
  fi
}

finish() { exit $failed; }
