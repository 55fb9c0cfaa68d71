#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks the packages that setup.sh wants, and the messages and variables of other scripts: run-setup.sh TOP_FOLDER
#
# Installs nothing. Output is in the Test Anything Protocol.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

cd "$1"
top=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the packages that setup.sh wants on a machine with this GStreamer alone, without nvcc: wanted VERSION. `unpacks`
# is whether it can unpack the headers of GStreamer's libraries that are not installed with the others.
unpacks=true
wanted() (
  version=$1
  # shellcheck disable=SC2034  # setup.sh reads it
  steps=1
  . tests/setup.sh
  want_command() { missing+=("$2"); }
  want_module() { missing+=("$2"); }
  want_element() { missing+=("$2"); }
  pkg-config() {
    case $1 in
      --modversion) echo "$version" ;;
      --exists) false ;;
      *) printf '%s\n' "${1#--atleast-version=}" "$version" | sort -CV ;;
    esac
  }
  command() { [ "$2" != nvcc ] && builtin command "$@"; }
  install_missing() { printf '%s\n' "${missing[@]}"; }
  logged() { "$unpacks"; }
  install_packages | sort -u
)
wants() { # PACKAGE VERSION
  wanted "$2" | tee "$scratch/wanted"
  grep -qx "$1" "$scratch/wanted"
}
wants_none() { ! wants "$@"; }
wants_headers() { wants libgstreamer-plugins-bad1.0-0 1.24.0 && wants_none libgstreamer-plugins-bad1.0-dev 1.24.0; }
wants_package() { unpacks=false wants libgstreamer-plugins-bad1.0-dev 1.24.0; }

# Prints what install_missing says and runs where apt-get offers this GStreamer: installs VERSION
installs() (
  # shellcheck disable=SC2034  # setup.sh reads it
  steps=1
  . tests/setup.sh
  missing=(libgstreamer1.0-dev)
  dpkg-query() { true; }
  apt-get() { true; }
  sudo() { true; }
  apt-cache() { echo "Version: $here"; }
  logged() { echo "runs $*"; }
  here=$1
  install_missing
)
installs_nothing() {
  installs "$1" >"$scratch/installs" 2>&1 && return 1
  cat "$scratch/installs"
  grep -q "GStreamer 1.22 or newer is needed.*here is $1" "$scratch/installs" && ! grep -q "runs apt-install" "$scratch/installs"
}

says_that_update_warned() (
  cd "$scratch"
  # shellcheck disable=SC2034  # setup.sh reads it
  steps=1
  . "$top/tests/setup.sh"
  missing=(xvfb)
  dpkg-query() { true; }
  apt-get() { true; }
  sudo() { true; }
  logged() { mkdir -p build && echo "W: Failed to fetch $1" >>build/apt-update.log && [ "$1" = apt-update ]; }
  ! (install_missing) 2>said && cat said && grep -q 'W: Failed to fetch apt-update' said && grep -q 'could not install xvfb' said
)
goes_on() ( # without a package that only some tests need, if apt-get fails
  # shellcheck disable=SC2034  # setup.sh reads it
  steps=1
  . tests/setup.sh
  missing=(xvfb)
  dpkg-query() { true; }
  apt-get() { true; }
  sudo() { true; }
  logged() { false; }
  install_optional && [ ${#missing[@]} = 0 ]
)

# Prints the package of an element, if setup.sh does not install it.
package_of() { # ELEMENT
  case $1 in
    facedetect) echo gstreamer1.0-opencv ;;
    rsvgdec | nv*dec | nv*enc) echo gstreamer1.0-plugins-bad ;;
  esac
}
names_packages() {
  local file elements element package
  for file in pipelines/*.launch; do
    mapfile -t elements < <(grep -v '^#' "$file" | grep -oE '\w+')
    for element in "${elements[@]}"; do
      package=$(package_of "$element")
      [ -z "$package" ] || grep -q "^#.*$package" "$file" || { echo "$file does not name $package for $element"; return 1; }
    done
  done
}

# Runs a command with a program in place of the one of that name: with_program NAME BODY COMMAND...
with_program() {
  rm -rf "${scratch:?}/bin"
  mkdir "$scratch/bin"
  printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
  # shellcheck disable=SC2031  # setup.sh changed it in a subshell
  PATH=$scratch/bin:$PATH "${@:3}"
}
log_level() { # LEVEL [VARIABLE=VALUE]: of OpenCV in a launch line
  # shellcheck disable=SC2016  # sh expands it
  [ "$(with_program gst-launch-1.0 'echo "$OPENCV_LOG_LEVEL"' env -u OPENCV_LOG_LEVEL "${@:2}" pipelines/launch privacy)" = "$1" ]
}
finds_its_folder() { # by a link, and where bash looks for folders elsewhere, too
  ln -sf "$top/pipelines/launch" "$scratch/link"
  [ "$(with_program gst-launch-1.0 'pwd' env CDPATH=.:/usr pipelines/launch blur)" = "$top" ] &&
    [ "$(with_program gst-launch-1.0 'pwd' "$scratch/link" blur)" = "$top" ]
}
explain_themselves() { # and install and build nothing
  local script
  for script in tests/run.sh pipelines/demo.sh pipelines/gallery pipelines/noise; do
    timeout 5 "$script" --help </dev/null >"$scratch/said" && cat "$scratch/said" && grep -q "$script" "$scratch/said" || return
  done
}
needs_mounts() { # what build.sh says where it may not mount
  local code=0 output
  output=$(with_program debootstrap 'exit 1' setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \
    tests/package/build.sh 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" = 77 ] && [[ $output == *"outside of the container"*CAP_SYS_ADMIN* ]]
}
says_why_nvcc_is_left_out() {
  # shellcheck disable=SC2016  # sh expands it
  with_program nvcc '[ "$*" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.88" && exit
    echo "host_config.h:137:2: error: this compiler is too new" >&2; exit 1' \
    meson setup "$scratch/build" -Dtests=disabled -Dbench=disabled -Dtune=disabled | tee "$scratch/setup-log"
  grep -qx "Message: Building for the CPU only: nvcc 13.0 does .* (this compiler is too new), nor .*" "$scratch/setup-log"
}
finds_an_older_compiler() { # for an nvcc that takes no newer one, and a C library that is newer
  mkdir -p "$scratch/compilers"
  printf '#!/bin/sh\nexit 1\n' | tee "$scratch/compilers/g++-15" >"$scratch/compilers/g++-14"
  chmod +x "$scratch/compilers"/*
  # shellcheck disable=SC2016,SC2031  # sh expands it; setup.sh changes PATH in subshells
  PATH=$scratch/compilers:$PATH with_program nvcc 'case "$*" in
    --version) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
    --list-gpu-code) echo sm_90 ;;
    *-ccbin=g++-14*-U_GNU_SOURCE*) ;;
    *-ccbin=g++-15*) echo "math_functions.h:629:32: error: rsqrt is declared twice" >&2; exit 1 ;;
    *) echo "host_config.h:137:2: error: this compiler is too new" >&2; exit 1 ;;
    esac' meson setup "$scratch/older" -Dtests=disabled -Dbench=disabled -Dtune=disabled | tee "$scratch/older-log"
  ! grep -q "does not work with this C++ compiler" "$scratch/older-log" &&
    grep -q "nvcc 13.0 -ccbin=g++-14 -U_GNU_SOURCE -D_DEFAULT_SOURCE\|no libcudart_static\|no gstreamer-cuda" "$scratch/older-log"
}
names_the_architectures() { # that nvcc compiles for, where an option asks for others
  # shellcheck disable=SC2016  # sh expands it
  with_program nvcc 'case "$*" in
    --version) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
    --list-gpu-code) echo sm_70 sm_75 sm_120 ;;
    esac' meson setup "$scratch/archs" -Dcuda-arch=native,75,70 -Dtests=disabled -Dtune=disabled | tee "$scratch/archs-log"
  grep -q "ERROR: .*cuda-arch=native,70: nvcc 13.0 compiles the kernels for 75, 120$" "$scratch/archs-log"
}
compiles_fast() { # whether the options for an nvcc that takes --Ofast-compile, or not, have it: compiles_fast true|false
  (
    # shellcheck disable=SC2034  # setup.sh reads it
    steps=1
    . tests/setup.sh
    nvcc() { case $1 in --list-gpu-arch) echo compute_90 ;; --Ofast-compile*) cat >/dev/null && "$takes_it" ;; esac; }
    nvidia-smi() { false; }
    takes_it=$1
    gpu_options
  ) | tee "$scratch/options"
  grep -qx -e "-Dcuda-arch=90 -Dnvcc-args=$([ "$1" = false ] || echo --Ofast-compile=max)" "$scratch/options"
}
compiles_for() { # GENERATIONS COMPUTE_CAPABILITY...: for GPUs, by an nvcc that knows old ones too
  (
    # shellcheck disable=SC2034  # setup.sh reads it
    steps=1
    . tests/setup.sh
    nvcc() { [ "$1" = --list-gpu-arch ] && printf 'compute_%s\n' 52 70 75 86 90; }
    gpus=("${@:2}")
    nvidia-smi() { printf '%s\n' "${gpus[@]}"; }
    gpu_options
  ) | tee "$scratch/options"
  grep -qx -e "-Dcuda-arch=$1 -Dnvcc-args=" "$scratch/options"
}
says_which_metas_it_reads() { grep -E '^ *analytics metas *: (no: .|detections)' "$scratch/setup-log"; }
# Configures a project in a folder of any name twice, and by another Meson. A copy of it with its build folder is told so.
configures_again() (
  mkdir "$scratch/Jörg's \"x" && cd "$scratch/Jörg's \"x" || return
  echo "project('any')" >meson.build
  # shellcheck disable=SC2034  # setup.sh reads it
  steps=1
  . "$top/tests/setup.sh"
  configure build && configure build && [ -e build/configured ] || return
  # shellcheck disable=SC2016  # sh expands them
  with_program meson '[ "$1" = --version ] && echo 99 || echo "$@" >again' configure build && grep -- --reconfigure again || return
  cp -r . "$scratch/copy" && cd "$scratch/copy" || return
  (configure build) 2>&1 | tee said
  grep -q 'build/ was made for another copy of the source' said
)
no_meson=
command -v meson >/dev/null || no_meson="no meson on the PATH"
no_root=
[ "$(id -u)" = 0 ] || no_root="this needs root rights"
command -v setpriv >/dev/null || no_root="no setpriv"

# The sources among the examples of the package include each other.
finds_headers_of_examples() {
  mkdir "$scratch/examples"
  local source header
  # shellcheck disable=SC2046  # several names, of which some are patterns
  cp -r $(cat tests/package/debian/gstreamer1.0-cudaconv.examples) "$scratch/examples"
  while IFS=: read -r source header; do
    [ -e "$(dirname "$source")/$header" ] || { echo "$source: no $header" && return 1; }
  done < <(grep -ro --include=*.cpp --include=*.h '#include "[^"]*' "$scratch/examples" | sed 's/#include "//')
  [ -e "$scratch/examples/runner.cpp" ]
}

echo "1..25"
expect "windows have an element that shows them" wants gstreamer1.0-x 1.22.0
expect "analytics metas have their headers, without the packages that these bring" wants_headers
expect "with them, where the headers alone cannot be had" wants_package
expect "an older GStreamer has none" wants_none libgstreamer-plugins-bad1.0-0 1.22.0
expect "a system with an old GStreamer is told so, and stays as it is" installs_nothing 1.20.3-0ubuntu1.1
expect "one with a newer GStreamer gets it" installs 1.24.2-1ubuntu0.2
expect "without a network it is told so" says_that_update_warned
expect "a package that only some tests need may be missing" goes_on
expect "launch lines name the packages of their elements" names_packages
expect "OpenCV says nothing in launch lines" log_level OFF
expect "unless it was told to" log_level INFO OPENCV_LOG_LEVEL=INFO
expect "launch finds its folder" finds_its_folder
expect "scripts explain themselves" explain_themselves
expect_unless "$no_meson" "an nvcc that does not work is left out, with the reason" says_why_nvcc_is_left_out
expect_unless "$no_meson" "an older C++ compiler is found for nvcc" finds_an_older_compiler
expect_unless "$no_meson" "GPUs that nvcc does not know are an error" names_the_architectures
expect "a build for no GPU is compiled fast" compiles_fast true
expect "but not by an nvcc that fails so" compiles_fast false
expect "a build for GPUs is one for theirs" compiles_for 75,86 8.6 7.5 8.6
expect "a build for newer GPUs is one that they translate" compiles_for 75,90 8.6 12.0
expect "a build leaves out GPUs that are too old" compiles_for 90 5.2 7.0
expect_unless "$no_meson" "Meson says which analytics metas the build reads" says_which_metas_it_reads
expect_unless "$no_meson" "a folder of any name is configured again" configures_again
expect "sources among the examples of the package find their headers" finds_headers_of_examples
expect_unless "$no_root" "the build of the package says that it needs mounts" needs_mounts
finish
