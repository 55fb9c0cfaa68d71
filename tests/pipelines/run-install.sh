#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the build, has GStreamer find the plugin, and runs cudaconv-verify: run-install.sh SOURCE BUILD
#
# Output is in the Test Anything Protocol.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

source=$(realpath "$1")
build=$(realpath "$2")
libraries=${LD_LIBRARY_PATH:-}
libraries=${libraries//"$2/gst"/\/nonexistent}  # where Meson lets tests find the plugin of the build folder
if ! command -v meson >/dev/null; then
  echo "1..0 # SKIP there is no meson on the PATH"
  exit
fi
scratch=$(mktemp -d)
log=$build/meson-logs/install-log.txt  # restored at the end, for `ninja uninstall`
[ ! -e "$log" ] || cp "$log" "$scratch/install-log.txt"
restore() {
  if [ -e "$scratch/install-log.txt" ]; then cp "$scratch/install-log.txt" "$log"; else rm -f "$log"; fi
  rm -rf "$scratch"
}
trap restore EXIT

installed() { find "$scratch/root" ! -type d; }
plugin() { installed | grep '/libgstcudaconv\.so$'; }
program() { installed | grep '/bin/cudaconv-verify$'; }
install_alone() { # nothing but the plugin and the program
  meson install -C "$build" --no-rebuild --destdir "$scratch/root"
  installed
  plugin && program && [ "$(installed | wc -l)" = 2 ]
}
verifies() { LD_LIBRARY_PATH=$libraries "$(program)" --backend=cpu --every=101; }
checks_plugin() { # without the plugin the program does not run
  local plugin verified=
  plugin=$(plugin)
  mv "$plugin" "$scratch"
  ! verifies || verified=yes
  mv "$scratch/${plugin##*/}" "$plugin"
  [ -z "$verified" ]
}
found_in() { # FOLDER [VARIABLE=VALUE...] [COMMAND...]: GStreamer, with a home and a registry of its own, finds it there
  env -u GST_PLUGIN_PATH -u GST_PLUGIN_PATH_1_0 -u XDG_DATA_HOME HOME="$scratch/home" \
    GST_REGISTRY_1_0="$scratch/registry" "${@:2}" gst-inspect-1.0 cudaconv | tee "$scratch/inspect"
  grep -qF " $1/libgstcudaconv.so" "$scratch/inspect"
}
found_for_user() {
  local folder=$scratch/home/.local/share/gstreamer-1.0/plugins
  mkdir -p "$folder"
  cp "$(plugin)" "$folder"
  found_in "$folder"
}
goes_to() { # FOLDER OPTION...: where a build with these options installs the plugin
  rm -rf "$scratch/build"
  meson setup "$scratch/build" "$source" -Dcuda=disabled -Dtests=disabled -Dbench=disabled "${@:2}"
  meson introspect --installed "$scratch/build" | tee "$scratch/plan"
  grep -qF ": \"$1/libgstcudaconv.so\"" "$scratch/plan"
}

here() { pkg-config --variable="$1" gstreamer-1.0; }
# A folder that was configured before, as Meson does without dpkg-architecture.
goes_there_anew() {
  rm -rf "$scratch/build"
  meson setup "$scratch/build" "$source" -Dcuda=disabled -Dtests=disabled -Dbench=disabled --libdir=lib64 >"$scratch/log" ||
    { cat "$scratch/log"; return 1; }
  meson setup --reconfigure "$scratch/build" "$source" --prefix="$(here prefix)"
  meson introspect --installed "$scratch/build" | tee "$scratch/plan"
  grep -qF ": \"$(here pluginsdir)/libgstcudaconv.so\"" "$scratch/plan"
}
names_plugin() { # by whatever path
  local name
  name=$(verifies | sed -n 's/^checks //p')
  [ "$(realpath "$name")" = "$(realpath "$(plugin)")" ]
}

echo "1..12"
expect "the plugin and cudaconv-verify are installed, and nothing else" install_alone
expect "cudaconv-verify finds its vectors" verifies
expect "and checks the plugin" checks_plugin
folder=$(dirname "$(plugin)")
expect "it is found by GST_PLUGIN_PATH" found_in "$folder" GST_PLUGIN_PATH="$folder"
expect "it is found in the user's own folder" found_for_user
expect "meson devenv finds it in the build folder" found_in "$build/gst" meson devenv -C "$build"
expect "plugin-dir is where it goes" goes_to /some/where --prefix=/usr -Dplugin-dir=/some/where
expect "by default it goes where GStreamer looks" goes_to "$(here pluginsdir)" --prefix="$(here prefix)" --libdir=lib64
expect "a folder that is configured anew as well" goes_there_anew
expect "in a home directory too" goes_to "$HOME/.local/share/gstreamer-1.0/plugins" --prefix="$HOME/.local"
expect "elsewhere it goes to libdir" goes_to /opt/lib/gstreamer-1.0 --prefix=/opt --libdir=lib
expect "cudaconv-verify names the plugin that it checks" names_plugin
finish
