#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the build, checks that GStreamer finds the plugin, and runs cudaconv-verify: run-install.sh SOURCE BUILD
#
# Output is in the Test Anything Protocol.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

source=$(realpath "$1")
build=$(realpath "$2")
libraries=${LD_LIBRARY_PATH:-}
libraries=${libraries//"$2/gst"/\/nonexistent}  # Meson lets tests find the plugin of the build folder here
if ! command -v meson >/dev/null; then
  echo "1..0 # SKIP no meson on the PATH"
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
presets() { installed | grep '/presets/GstCudaConv\.prs$'; }
all_presets() { presets && installed | grep '/presets/GstRoiHold\.prs$'; }
applications() { installed | grep -E '/bin/cudaconv-(play|privacy|tune)$'; }
belong_to() { # FOLDER SUFFIX: each application has a file there, and nothing else has
  diff <(applications | sed 's|.*/||' | sort) \
    <(installed | grep "$1" | sed "s|.*/||; s|$2\$||" | grep -v '^cudaconv-verify$' | sort)
}
install_alone() { # the plugin, its presets and the programs, with a manual and completion for each application
  meson install -C "$build" --no-rebuild --destdir "$scratch/root"
  installed
  plugin && all_presets && program && installed | grep '/man1/cudaconv-verify\.1$' &&
    [ "$(installed | wc -l)" = $((5 + 3 * $(applications | wc -l))) ] &&
    belong_to /man/man1/ '\.1' && belong_to /bash-completion/completions/ ''
}
demo_builds_all() { # the target that pipelines/demo.sh builds has each program
  local name
  ninja -C "$build" -t query installable | tee "$scratch/query"
  for name in $(applications) $(program); do grep -q "/${name##*/}$" "$scratch/query" || return; done
}
verifies() { LD_LIBRARY_PATH=$libraries "$(program)" --backend=cpu --every=101; }
checks_plugin() { # the program does not run without the plugin
  local plugin verified=
  plugin=$(plugin)
  mv "$plugin" "$scratch"
  ! verifies || verified=yes
  mv "$scratch/${plugin##*/}" "$plugin"
  [ -z "$verified" ]
}
found_in() { # FOLDER [VARIABLE=VALUE...] [COMMAND...]: GStreamer, with its own home and registry, finds both elements
  local element
  for element in cudaconv roihold; do
    env -u GST_PLUGIN_PATH -u GST_PLUGIN_PATH_1_0 -u XDG_DATA_HOME HOME="$scratch/home" \
      GST_REGISTRY_1_0="$scratch/registry" "${@:2}" gst-inspect-1.0 "$element" | tee "$scratch/inspect"
    grep -qF " $1/libgstcudaconv.so" "$scratch/inspect" || return
  done
}
found_for_user() {
  local folder=$scratch/home/.local/share/gstreamer-1.0/plugins
  mkdir -p "$folder"
  cp "$(plugin)" "$folder"
  found_in "$folder"
}
finds_presets() { # the installed file is found in its folder, and saves nothing in the home directory
  local element
  for element in cudaconv roihold; do
    env -u XDG_DATA_HOME HOME="$scratch/home" GST_REGISTRY_1_0="$scratch/registry" GST_PLUGIN_PATH="$folder" \
      GST_PRESET_PATH="$(dirname "$(presets)")" gst-inspect-1.0 "$element" | tee "$scratch/inspect"
    grep -q '"Portrait privacy": ' "$scratch/inspect" && [ -z "$(find "$scratch/home" -name '*.prs')" ] || return
  done
}
goes_to() { # FOLDER OPTION...: where a build with these options installs the plugin
  rm -rf "$scratch/build"
  meson setup "$scratch/build" "$source" -Dcuda=disabled -Dtests=disabled -Dbench=disabled "${@:2}"
  meson introspect --installed "$scratch/build" | tee "$scratch/plan"
  grep -qF ": \"$1/libgstcudaconv.so\"" "$scratch/plan"
}
presets_go_to() { # FOLDER: where the last build installs presets
  grep -oF ": \"$1/presets/GstCudaConv.prs\"" "$scratch/plan" && grep -oF ": \"$1/presets/GstRoiHold.prs\"" "$scratch/plan"
}

here() { pkg-config --variable="$1" gstreamer-1.0; }
# A folder that was configured before, like Meson without dpkg-architecture.
goes_there_anew() {
  rm -rf "$scratch/build"
  meson setup "$scratch/build" "$source" -Dcuda=disabled -Dtests=disabled -Dbench=disabled --libdir=lib64 >"$scratch/log" ||
    { cat "$scratch/log"; return 1; }
  meson setup --reconfigure "$scratch/build" "$source" --prefix="$(here prefix)"
  meson introspect --installed "$scratch/build" | tee "$scratch/plan"
  grep -qF ": \"$(here pluginsdir)/libgstcudaconv.so\"" "$scratch/plan"
}
names_plugin() { # by any path
  local name
  name=$(verifies | sed -n 's/^checks //p')
  [ "$(realpath "$name")" = "$(realpath "$(plugin)")" ]
}

echo "1..17"
expect "plugin, presets, programs and their manuals are installed, and nothing else" install_alone
expect "pipelines/demo.sh builds all programs" demo_builds_all
expect "cudaconv-verify finds its vectors" verifies
expect "and checks the plugin" checks_plugin
folder=$(dirname "$(plugin)")
expect "it is found by GST_PLUGIN_PATH" found_in "$folder" GST_PLUGIN_PATH="$folder"
expect "it is found in the user's own folder" found_for_user
expect "its presets are found by GST_PRESET_PATH" finds_presets
expect "meson devenv finds it in the build folder" found_in "$build/gst" meson devenv -C "$build"
expect "plugin-dir is where it goes" goes_to /some/where --prefix=/usr -Dplugin-dir=/some/where
expect "by default it goes where GStreamer looks" goes_to "$(here pluginsdir)" --prefix="$(here prefix)" --libdir=lib64
expect "so do its presets" presets_go_to "$(here datadir)/gstreamer-1.0"
expect "a folder that is configured anew as well" goes_there_anew
expect "in a home directory too" goes_to "$HOME/.local/share/gstreamer-1.0/plugins" --prefix="$HOME/.local"
expect "and presets not to the file of the user's own" presets_go_to "$HOME/.local/share/cudaconv"
expect "elsewhere it goes to libdir" goes_to /opt/lib/gstreamer-1.0 --prefix=/opt --libdir=lib
expect "and presets to datadir" presets_go_to /opt/share/cudaconv
expect "cudaconv-verify names the plugin that it checks" names_plugin
finish
