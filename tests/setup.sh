# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Functions for pipelines/demo.sh and tests/run.sh: install missing packages, and build. Source this file in the
# project's top folder, under `set -euo pipefail`, and set `steps` to the number of steps.

step_number=0
begin() {
  step_number=$((step_number + 1))
  # shellcheck disable=SC2154  # the sourcing script sets it
  echo "[$step_number/$steps] $1"
}

die() {
  echo "$(basename "$0"): $1" >&2
  exit 1
}

# Runs a command with its output in build/NAME.log. If it fails, shows the end of the log: logged NAME COMMAND...
logged() {
  local log=build/$1.log
  shift
  "$@" >"$log" 2>&1 </dev/null && return
  echo "--- the end of $log:" >&2
  tail -n 40 "$log" >&2
  echo "---" >&2
  return 1
}

missing=()
want_command() { command -v "$1" >/dev/null || missing+=("$2"); }
want_module() { pkg-config --exists "$1" 2>/dev/null || missing+=("$2"); }
want_element() { gst-inspect-1.0 --exists "$1" >/dev/null 2>&1 || missing+=("$2"); }

# NVIDIA's own packages install the toolkit in a folder that is not on the PATH.
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi

# Installs missing packages for the build, the tests and the examples.
install_packages() {
  mkdir -p build 2>/dev/null || true
  [ -w build ] || die "cannot write to $PWD/build as $(id -un)"
  want_command meson meson
  want_command ninja ninja-build
  want_command g++ g++
  want_command pkg-config pkg-config
  want_module gstreamer-check-1.0 libgstreamer1.0-dev
  want_module gstreamer-video-1.0 libgstreamer-plugins-base1.0-dev
  want_command gst-launch-1.0 gstreamer1.0-tools
  want_element videotestsrc gstreamer1.0-plugins-base
  want_element vp8enc gstreamer1.0-plugins-good  # WebM and PNG for the examples
  want_element ximagesink gstreamer1.0-x         # shows windows
  if command -v nvcc >/dev/null; then
    want_module gl libgl-dev  # the headers of GStreamer's CUDA memory include its headers
    want_element h264parse gstreamer1.0-plugins-bad
  fi
  install_missing
  check_gstreamer "$(pkg-config --modversion gstreamer-1.0)"
  local modules=()
  ! command -v nvcc >/dev/null || modules+=(gstreamer-cuda-1.0)
  # The analytics metas, which GStreamer has since 1.24. A build that cannot read them filters such frames whole.
  ! pkg-config --atleast-version=1.24 gstreamer-1.0 || modules+=(gstreamer-analytics-1.0)
  # Meson keeps the path for later configurations.
  PKG_CONFIG_PATH=$PWD/build/headers/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
  [ ${#modules[@]} = 0 ] || pkg-config --exists "${modules[@]}" 2>/dev/null || install_bad_headers
  [ ! -e build/headers ] || export PKG_CONFIG_PATH
}

# Installs the library of GStreamer's CUDA memory and analytics metas, and unpacks its headers in build/headers. Their
# package, libgstreamer-plugins-bad1.0-dev, would bring a gigabyte more: all of OpenCV's headers and libraries. It is
# installed where that fails.
install_bad_headers() {
  missing+=(libgstreamer-plugins-bad1.0-0)
  install_missing
  logged headers unpack_bad_headers && return
  missing+=(libgstreamer-plugins-bad1.0-dev)
  install_missing
}
unpack_bad_headers() {
  local folder=$PWD/build/headers library
  rm -rf "$folder" && mkdir "$folder" &&
    (cd "$folder" &&
      apt-get download "libgstreamer-plugins-bad1.0-dev=$(dpkg-query -W -f '${Version}' libgstreamer-plugins-bad1.0-0)" &&
      dpkg-deb --extract ./*.deb . && rm ./*.deb && mv usr/lib/*/pkgconfig usr/lib/*/*.so . &&
      sed -i -e "s|^prefix=.*|prefix=$folder/usr|" -e "s|^libdir=.*|libdir=$folder|" pkgconfig/*) || return
  for library in "$folder"/*.so; do # links to the installed libraries
    ln -sfn "$(dirname "$(gcc -print-file-name="$(readlink "$library")")")/$(readlink "$library")" "$library"
  done
}

check_gstreamer() { # VERSION
  printf '%s\n' 1.22 "$1" | sort -CV ||
    die "GStreamer 1.22 or newer is needed (Debian 12, Ubuntu 24.04); here is $1"
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  local package wanted=()
  for package in "${missing[@]}"; do
    # Installing an installed package again would not help if it is too old.
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || wanted+=("$package")
  done
  missing=()
  [ ${#wanted[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    die "no apt-get here to install the missing packages (Debian's names): ${wanted[*]}"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "please install these packages as root: apt-get install ${wanted[*]}"
    as_root=(sudo)
  fi
  echo "      installing (some minutes the first time): ${wanted[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
  logged apt-update "${apt[@]}" update || die "apt-get could not update its package lists"
  # An older system offers an older GStreamer. Nothing is installed there.
  local offered
  offered=$(apt-cache show --no-all-versions libgstreamer1.0-dev 2>/dev/null | sed -n 's/^Version: //p') || true
  [[ " ${wanted[*]} " != *" libgstreamer1.0-dev "* || -z $offered ]] || check_gstreamer "$offered"
  logged apt-install "${apt[@]}" install -y --no-install-recommends "${wanted[@]}" || {
    grep '^[EW]: ' build/apt-update.log >&2 || true  # without a network, update warns and goes on
    die "apt-get could not install ${wanted[*]}"
  }
}

# Installs packages that only some tests need, and goes on if that fails.
install_optional() {
  (install_missing) || echo "      going on without ${missing[*]}"
  missing=()
}

# The duration of the first build on two cores.
build_time() { if command -v nvcc >/dev/null; then echo "about six minutes"; else echo "a minute or two"; fi; }

# Meson options for the GPUs to compile for: this machine's GPUs. Without a GPU, it is one recent generation, to see
# that the code compiles, since each generation takes minutes. Nothing runs that code, so nvcc hardly optimizes it. For
# a GPU that nvcc does not know, it is an old and a recent generation: newer GPUs run the PTX.
gpu_options() {
  command -v nvcc >/dev/null || return 0
  local known arch archs=() fast=
  known=$(nvcc --list-gpu-arch)
  for arch in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u); do
    case $arch in [1-6][0-9] | 7[0-4]) continue ;; esac # no kernel runs there
    if grep -qx "compute_$arch" <<<"$known"; then archs+=("$arch"); else archs=(75 90); break; fi
  done
  if [ ${#archs[@]} = 0 ]; then
    archs=(90)
    # Older versions do not have it, and that of nvcc 13.4 and 13.5 takes no __dp4a (findings/nvcc-fast-compile.sh).
    ! nvcc --Ofast-compile=max -arch=compute_90 -ptx -x cu -o /dev/null - \
      <<<'__global__ void sum(int *a) { *a = __dp4a(a[1], a[2], a[3]); }' >/dev/null 2>&1 || fast=--Ofast-compile=max
  fi
  (IFS=, && echo "-Dcuda-arch=${archs[*]} -Dnvcc-args=$fast")
}

# Configures a build folder, and again only if something has changed: configure FOLDER [MESON OPTION...]. A folder that
# was configured by hand does not change. Sources are compiled some at a time: the headers of GStreamer take as long as
# the code.
configure() {
  local folder=$1 state
  shift
  set -- -Dunity=on -Dunity_size=8 "$@"
  if [ -e "$folder/build.ninja" ]; then
    [ -w "$folder/build.ninja" ] || die "$folder/ belongs to $(stat -c %U "$folder"): be that user, or remove it"
    python3 -c 'import json, os, sys
sys.exit(not os.path.samefile(json.load(open(sys.argv[1]))["directories"]["source"], "."))' \
      "$folder/meson-info/meson-info.json" 2>/dev/null ||
      die "$folder/ was made for another copy of the source: rm -rf $folder, and run this again"
  fi
  mkdir -p "$folder"
  # Meson looks for CUDA and GStreamer only when it configures, so new versions need a new configuration. Another Meson
  # cannot read the files of this one.
  state="$* $(meson --version) $(nvcc --version 2>/dev/null | tail -n 1) $(pkg-config --modversion gstreamer-1.0)"
  state+=" $(pkg-config --modversion gstreamer-analytics-1.0 2>/dev/null || true) $(env | grep ^NVCC_ || true)"
  if [ ! -e "$folder/build.ninja" ]; then
    logged "${folder##*/}-setup" meson setup "$folder" "$@" || die "the build could not be configured"
  elif [ ! -e "$folder/configured" ]; then
    return
  elif [ "$state" != "$(cat "$folder/configured")" ]; then
    logged "${folder##*/}-setup" meson setup --reconfigure "$folder" "$@" ||
      die "the build could not be configured. $(fresh_start "$folder")"
  fi
  sed -n 's/^Message: \(Building for the CPU only\)/      \1/p' "build/${folder##*/}-setup.log" 2>/dev/null || true
  echo "$state" >"$folder/configured"
}

fresh_start() { echo "If the compiler, Meson or CUDA changed since $1/ was made: rm -rf $1, and run this again."; }

# Prints ninja's progress from its log, every half minute, until this function is killed: follow LOG
follow() {
  while sleep 30 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    { grep -o '^\[[0-9]*/[0-9]*\]' "$1" || true; } | tail -n 1 | sed 's/^/      /'
  done
}

# Builds in a configured folder: build FOLDER [TARGET...]
build() {
  local follower code=0
  follow "build/${1##*/}.log" &
  follower=$!
  logged "${1##*/}" ninja -C "$@" || code=$?
  kill "$follower" || true
  wait "$follower" 2>/dev/null || true
  [ "$code" = 0 ] || die "the build failed. $(fresh_start "$1")"
}
