# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Functions for tests in the Test Anything Protocol. Source this file under `set -euo pipefail`, print the number of
# tests, for example "1..8", call `expect` for each test, and end with `finish`.

export LANGUAGE=en  # tests read messages of GLib, GStreamer and GTK, which these would translate
number=0
failed=0

expect() { # NAME COMMAND...: passes if the command succeeds, else shows its output
  local output
  number=$((number + 1))
  if output=$("${@:2}" 2>&1 | tr -d '\0'); then
    echo "ok $number - $1"
  else
    echo "not ok $number - $1"
    echo "# ${output//$'\n'/$'\n'# }" >&2  # Meson shows standard error
    failed=1
  fi
}

expect_unless() { # REASON NAME COMMAND...: like expect, but skipped if REASON is not empty
  if [ -z "$1" ]; then
    expect "${@:2}"
  else
    number=$((number + 1))
    echo "ok $number - $2 # SKIP $1"
  fi
}

# Starts an X server that nobody sees, in the current folder: start_display WIDTHxHEIGHT. Sets `display` to its name and
# `server` to its process, which the caller kills.
# shellcheck disable=SC2034
start_display() {
  Xvfb -displayfd 4 -screen 0 "$1x24" 4>number >/dev/null 2>&1 &
  server=$!
  while [ ! -s number ] && kill -0 "$server"; do sleep 0.1; done  # a busy machine takes more than ten seconds
  display=:$(cat number)
}

finish() { exit $failed; }
