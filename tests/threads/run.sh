#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Looks for data races with ThreadSanitizer: tests/threads/run.sh [PROGRAM OF tests/element...]
#
# Builds the plugin for the CPU in build-threads. Fails if two threads of the plugin race, or if a program fails. Other
# reports are only counted: the thread of a test that reads a buffer is one that ThreadSanitizer cannot follow.
set -euo pipefail

[ "${1-}" != --help ] || { sed -n '4,7s/^# \{0,1\}//p' "$0" && exit; }
cd "$(dirname "$(realpath "$0")")/../.."
programs=("$@")
[ $# -gt 0 ] || programs=(roihold interpolate lookahead privacy storm restarts stops)
build="build-threads"
[ -e $build/build.ninja ] || meson setup $build -Dcuda=disabled -Db_sanitize=thread -Db_lundef=false
ninja -C $build gst/libgstcudaconv.so "${programs[@]/#/tests/element/}"
# shellcheck disable=SC2046  # prints several flags
c++ -std=c++17 -O1 -shared -fPIC tests/threads/glib_locks.cpp $(pkg-config --cflags gstreamer-1.0) -o $build/glib_locks.so

export GST_PLUGIN_PATH_1_0=$PWD/$build/gst GST_REGISTRY_1_0=$PWD/$build/registry GST_REGISTRY_FORK=no
export GST_PRESET_PATH=$PWD/gst/presets CK_FORK=no
preload="$(c++ -print-file-name=libtsan.so) $PWD/$build/glib_locks.so"
failed=0
for program in "${programs[@]}"; do
  reports=$build/reports.$program
  rm -f "$reports".*
  code=0
  LD_PRELOAD=$preload TSAN_OPTIONS="exitcode=0 history_size=4 log_path=$reports" \
    "$build/tests/element/$program" >$build/output 2>&1 || code=$?
  [ $code = 0 ] || cat $build/output
  python3 - "$program" $code "$reports".* <<'EOF' || failed=1
import os, re, sys

program, code, files = sys.argv[1], int(sys.argv[2]), [f for f in sys.argv[3:] if os.path.exists(f)]
reports = [r for f in files for r in open(f, errors="replace").read().split("=" * 18 + "\n") if "data race" in r]
# The first two paragraphs are the two stacks.
ours = [r for r in reports if all("libgstcudaconv.so" in stack for stack in r.split("\n\n")[:2])]
for report in ours: print(report)
print("%s: exit code %d, %d races, %d other reports" % (program, code, len(ours), len(reports) - len(ours)))
sys.exit(code != 0 or len(ours) > 0)
EOF
done
exit $failed
