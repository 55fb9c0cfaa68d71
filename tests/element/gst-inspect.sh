#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Prints the part of gst-inspect-1.0's output on both elements that does not depend on the GStreamer version and the build:
# description and properties, without properties of base classes and widths of columns. With a file as argument,
# compares the output with the file. GST_PLUGIN_PATH_1_0 is the plugin's folder.
set -euo pipefail

describe_element() {
  LC_ALL=C.UTF-8 gst-inspect-1.0 --no-colors "$1" | awk '
    /^[A-Z]/ { section = $0 }  # a headline
    /^  [a-z]/ { inherited = $1 == "name" || $1 == "parent" || $1 == "qos"; value = 0 }
    section ~ /^Factory Details/ && $1 !~ /^(Long-name|Klass|Description)$/ { next }
    section ~ /^Factory Details/ || (section ~ /^Element Properties/ && !inherited && !value) {
      $1 = $1  # makes several blanks one
      sub(/ This build understands [^.]*\./, "")
      if ($0 != "") print
    }
    /Boxed pointer of type/ { value = 1 }'
}
describe() {
  describe_element cudaconv
  describe_element roihold
}

if [ $# -eq 0 ]; then
  describe
else
  diff -u "$1" <(describe)
fi
