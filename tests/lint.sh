#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks that sources are formatted, that shellcheck finds no faults in shell scripts, that texts have no phrases that
# are hard to read, and that types have names of their own: lint.sh TOP_FOLDER
#
# Output is in the Test Anything Protocol. Tests are skipped with other versions of clang-format and shellcheck, since
# their rules differ.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

cd "$1"
files() { find gst kernels tests pipelines .ci -type f ! -path '*/corpus/*' "$@"; }

clang_format=clang-format
! command -v clang-format-14 >/dev/null || clang_format=clang-format-14
no_clang_format=
case $("$clang_format" --version 2>&1 || true) in
  *"version 14."*) ;;
  *) no_clang_format="there is no clang-format 14" ;;
esac
no_shellcheck=
case $(shellcheck --version 2>&1 || true) in
  *"version: 0.9."* | *"version: 0.10."*) ;;
  *) no_shellcheck="there is no shellcheck 0.9 or 0.10" ;;
esac

formatted() {
  files \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cpp.in' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 "$clang_format" --dry-run -Werror
}
scripts() { files -exec awk 'FNR == 1 { if (/^#!.*sh$|^# shellcheck shell=/) print FILENAME; nextfile }' {} +; }
checked() { scripts | xargs -d '\n' shellcheck; }

# Comments and strings have none of these. Scans the files whose texts are free of them.
phrases='what becomes of|what .{1,20} becomes? of|so many|as many as|goes? about|of one.s own|and the like|and its like|whatever|is had'
phrases+='|that is that of|([:;.] |// ?|")(those|that|such) of '
phrased() {
  find gst kernels/plan kernels/cpu tests/{element,fuzz,kernels,reference,standin,vectors,verify} -name '*.cpp' -o -name '*.h'
  find kernels -maxdepth 1 -name '*.h'
}
plain() { ! phrased | xargs -d '\n' grep -EniH -- "$phrases"; }

# Prints the types of each header with their namespaces. No compiler sees that headers which never meet share a name.
types() {
  find gst kernels \( -name '*.h' -o -name '*.cuh' \) -exec awk '
    FNR == 1 { space = "" }
    /^namespace [a-z]/ { space = $2 }
    /^(struct|class|enum class|union) [A-Za-z0-9_]+( final)? *[:{<]/ {
      name = $1 == "enum" ? $3 : $2
      sub(/[:{<].*/, "", name)
      if (!seen[FILENAME, name]++) print space "::" name
    }' {} +
}
unique() { ! types | sort | uniq -d | grep .; }
# Other variables of the environment would be read for each frame.
unread() { ! grep -rn getenv gst kernels | grep -v '^kernels/cpu/vector.cpp:'; }

echo "1..5"
expect_unless "$no_clang_format" "C, C++ and CUDA sources are formatted" formatted
expect_unless "$no_shellcheck" "shellcheck finds no faults in shell scripts" checked
expect "texts have no phrases that are hard to read" plain
expect "no two headers have types of one name in one namespace" unique
expect "one source reads the environment, for its tests" unread
finish
