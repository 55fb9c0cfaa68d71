#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Blurs, outlines and dilates a video clip:
#
#   pipelines/demo.sh [FILE]
#
# FILE is any video that GStreamer can decode; without it, a short one that comes with the project. Installs what is
# missing, builds, and leaves a video and a before/after picture for each filter in build/demo. Needs no GPU.
set -euo pipefail

case ${1:-} in
  -*) sed -n '4,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
clip=${1:+$(realpath -- "$1")}
cd "$(dirname "$(realpath "$0")")/.."
steps=5
. tests/setup.sh
[ -z "$clip" ] || [ -r "$clip" ] || die "cannot read $clip"

begin "looking for what the build needs"
[ -z "$clip" ] || want_element avdec_h264 gstreamer1.0-libav  # decodes nearly all formats
install_packages

begin "building ($(build_time) the first time)"
# shellcheck disable=SC2046  # gpu_options prints several options or none
configure build $(gpu_options)
build build installable

out=build/demo
mkdir -p "$out"
export GST_PLUGIN_PATH_1_0=$PWD/build/gst${GST_PLUGIN_PATH_1_0:+:$GST_PLUGIN_PATH_1_0}
play() { # OUTPUT PROPERTY=VALUE...
  echo "      cudaconv ${*:2}"
  build/pipelines/cudaconv-play $quiet -o "$1" "${clip:-pipelines/city.webm}" "${@:2}" | sed 's/^/        /'
  quiet=--quiet  # only the first run says whether there is a GPU
}
quiet=
each_filter() { # how to make the name of the output of a filter's name
  play "${1/FILTER/gauss}" mask=gauss sigma=4
  play "${1/FILTER/sobel}" mask=sobel
  play "${1/FILTER/dilate}" mask=dilate size=7 shape=ellipse chroma=copy
}

begin "filtering ${clip:-pipelines/city.webm}"
each_filter none

begin "writing videos"
each_filter "$out/FILTER.webm"

begin "taking pictures before and after"
each_filter "$out/FILTER.png"

echo
echo "Done. In $out, to open with any player, browser or picture viewer:"
du -h --apparent-size "$out"/* | sed "s/^/  /"
