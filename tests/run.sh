#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds and runs every test: tests/run.sh
#
# First installs missing packages. Skips tests that need something that this machine lacks, for example a GPU. Lists at
# the end which tests failed, and which were skipped, with the reason. The exit code is 0 if no test failed.
set -euo pipefail

[ $# = 0 ] || { sed -n '4,7s/^# \{0,1\}//p' "$0" && exit; }
cd "$(dirname "$(realpath "$0")")/.."
steps=4
. tests/setup.sh

command -v nvcc >/dev/null || steps=3  # without nvcc there is no second build
strict=-Dwerror=${WERROR:-false}       # a newer compiler, with warnings of its own, keeps nobody from the tests
begin "looking for what the build needs"
install_packages
if [ "$(id -u)" = 0 ]; then  # optional packages, which other users need not install by hand
  want_command clang-format clang-format
  want_command shellcheck shellcheck
  want_command clang++ clang
  want_module gtk+-3.0 libgtk-3-dev
  want_command Xvfb xvfb
  want_command xz xz-utils
  want_command debootstrap debootstrap  # knows Ubuntu's archive
  install_optional
fi

begin "building (some minutes the first time)"
# shellcheck disable=SC2046  # gpu_options prints several options or none
configure build -Dstandin=enabled "$strict" $(gpu_options)
build build all meson-test-prereq meson-benchmark-prereq

failed=0
run_tests() { # FOLDER [NAME OF A TEST...]: also builds the targets of the tests
  # One test more at a time than there are processors: many wait for the clock.
  meson test -C "$1" --num-processes "$(($(nproc) + 1))" --timeout-multiplier 3 --print-errorlogs "${@:2}" \
    </dev/null || failed=1
}

# The build for machines without the CUDA toolkit, while the tests wait for the clock. Its code for the CPU is the same as
# above. Clang compiles it, if it is installed. The applications know nothing of CUDA: they are built and tested above. Of
# the other tests, those run that could find another result than above.
folders=(build)
if command -v nvcc >/dev/null; then
  set -m # a group of processes, which can be stopped as a whole
  (
    renice -n 19 -p "$BASHPID" >/dev/null
    ! command -v clang++ >/dev/null || export CXX=clang++
    configure build-cpu -Dcuda=disabled -Dtune=disabled "$strict"
    build build-cpu gst/libgstcudaconv.so tests/verify/cudaconv-verify \
      tests/element/{caps,cudaconv,interlaced,lookahead,properties,roi} >/dev/null
  ) &
  without_cuda=$!
  set +m
  trap 'kill -- "-$without_cuda" 2>/dev/null || true' EXIT
  folders+=(build-cpu)
fi

begin "testing"
run_tests build

if command -v nvcc >/dev/null; then
  begin "building and testing without CUDA"
  wait "$without_cuda" || die "the build without CUDA failed"
  run_tests build-cpu "verify cpu" "verify cpu baseline" "verify cpu avx2" "verify cuda" "element gst-inspect" \
    "element caps" "element cudaconv cpu" "element interlaced cpu" "element lookahead cpu" "element properties" \
    "element roi cpu"
fi

python3 - "${folders[@]}" <<'EOF'
import json, re, sys

count = {"passed": 0, "failed": 0, "skipped": 0}
for folder in sys.argv[1:]:
  def note(result, name, reason=""):
    count[result] += 1
    if result != "passed": print("%s in %s/: %s%s" % (result, folder, name, reason and ": " + reason))
  for line in open(folder + "/meson-logs/testlog.json"):
    test = json.loads(line)
    output = test.get("stdout", "")
    cases = re.findall(r"^(ok|not ok) \d+ - (.*?)(?: # SKIP (.*))?$", output, re.M) if output.startswith("1..") else []
    for ok, name, reason in cases:
      if reason: note("skipped", name, reason)
      elif ok == "ok": note("passed", name)
      else: note("failed", test["name"] + ": " + name)
    good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if cases and (good or any(ok != "ok" for ok, _, _ in cases)): continue
    if test["result"] == "SKIP":
      note("skipped", test["name"], ((output + test.get("stderr", "")).strip() or "it gives no reason").splitlines()[-1])
    else:
      note("passed" if good else "failed", test["name"])
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
EOF
exit $failed
