#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the output and the exit codes of cudaconv-verify: run-verify.sh PROGRAM VERSION VECTORS README
#
# Output is in the Test Anything Protocol.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

program=$1 version=$2 vectors=$3 readme=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

exits() { # CODE ARGUMENT...: leaves the output in $scratch/out
  local code=0
  "$program" "${@:2}" >"$scratch/out" 2>&1 || code=$?
  cat "$scratch/out"
  [ "$code" = "$1" ]
}
hash=$(sha256sum "$vectors" | cut -c1-16)

last_line() { tail -n 1 "$scratch/out"; }
count=$(grep -vc '^#' "$vectors")

right() {
  exits 0 --backend=cpu --every=53 &&
    last_line | grep -qxE "cudaconv $version: cpu \([a-z0-9]+\) [0-9]+ vectors, 0 wrong; file $hash"
}
wrong() { # the first hash with another last digit
  awk '!done && /sha256=/ { sub(/.$/, /0$/ ? "1" : "0"); done = 1 } { print }' "$vectors" >"$scratch/changed" &&
    exits 1 --backend=cpu --only=mask=identity --vectors="$scratch/changed" &&
    grep -q "WRONG, line .*mask=identity.*" "$scratch/out" &&
    last_line | grep -q " 1 wrong; file $(sha256sum "$scratch/changed" | cut -c1-16)\$"
}
lists() {
  exits 0 --list && diff <(grep -v '^#' "$vectors") "$scratch/out" &&
    exits 0 --list --only=mask=kirsch && [ "$(grep -c . "$scratch/out")" = "$(grep -c mask=kirsch "$vectors")" ]
}
covers() { exits 0 --coverage && grep -q "NV12" "$scratch/out" && grep -q "mosaic" "$scratch/out"; }
documented() { # whether README.md has the last line
  grep -qxE "    cudaconv $version: cpu \([a-z0-9]+\) $count vectors, 0 wrong; file $hash" "$readme" &&
    grep -qF "$count small frames" "$readme"
}

echo "1..8"
expect "right results, and the last line" right
expect "a wrong result, and the last line" wrong
expect "--list prints the file" lists
expect "--coverage" covers
expect "README.md has the last line" documented
expect "an unknown argument" exits 2 --fast
expect "a text in no line" exits 2 --only=nothing-of-the-kind
expect "a missing file" exits 2 --vectors=/nonexistent
finish
