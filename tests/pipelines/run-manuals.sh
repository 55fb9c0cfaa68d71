#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares manual pages and completion with the programs, and pastes the command lines of the manuals into a shell:
# run-manuals.sh COMPLETION PROGRAM PAGE [PROGRAM PAGE]...
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 and GST_PRESET_PATH are the folders of plugin and presets.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

top=$(realpath "$(dirname "$0")/../..")
completion=$(realpath "$1")
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Options as --help prints them, and as the page heads its paragraphs: "-o, --output=FILE". --help-all and
# --help-gst are GLib's and GStreamer's.
options_of_help() { "$1" --help | sed -nE 's/^  ((-., )?--[^ ]*)(  .*)?$/\1/p' | grep -v -- '--help-' | sort; }
options_of_page() { sed -n '/^\.TP/{n;s/\\f.//g;s/\\-/-/g;/^-/p}' "$1" | sort; }
same_options() { # PROGRAM PAGE
  options_of_help "$1" >"$scratch/help"
  options_of_page "$2" >"$scratch/page"
  [ -s "$scratch/help" ] && diff -u "$scratch/help" "$scratch/page"
}
prints_version() { # PROGRAM: as gst-inspect-1.0 prints the version of the plugin
  "$1" --version | tee "$scratch/version"
  gst-inspect-1.0 --no-colors cudaconv | sed -n "s/^  Version  */${1##*/} /p" | diff - "$scratch/version"
}
is_clean() { # PAGE: mandoc and man have no warnings
  local warnings=
  ! command -v mandoc >/dev/null || warnings=$(mandoc -T lint "$1" || true)
  ! command -v man >/dev/null || warnings+=$(MANWIDTH=80 man --warnings -l "$1" 2>&1 >/dev/null || true)
  echo "$warnings"
  [ -z "$warnings" ]
}
no_man="there is neither man nor mandoc"
! command -v mandoc >/dev/null || no_man=
! command -v man >/dev/null || no_man=

# Prints what the Tab key offers at the end of a command line: offered PROGRAM TEXT
offered() {
  # shellcheck disable=SC2016  # bash expands them
  bash -c '. "$0"; COMP_LINE="$2" COMP_POINT=${#2}; _cudaconv "$1"; printf "%s\n" "${COMPREPLY[@]}"' \
    "$completion" "$1" "${1##*/} $2" | LC_ALL=C sort
}
offers() { # PROGRAM TEXT OFFER...: these and nothing else
  offered "$1" "$2" >"$scratch/offered"
  printf '%s\n' "${@:3}" | LC_ALL=C sort | diff -u - "$scratch/offered"
}
offers_options() { # PROGRAM
  options_of_help "$1" | sed 's/.*--/--/; s/=.*/=/' | grep -v '^--help' >"$scratch/options"
  offered "$1" -- | tee "$scratch/offered"
  ! LC_ALL=C sort "$scratch/options" | grep -vxFf "$scratch/offered"
}
masks() { gst-inspect-1.0 --no-colors cudaconv | sed -n '/"GstCudaConvMask"/,/^  [a-z]/s/^ *([0-9]*): \([^ ]*\) .*/\1/p'; }
offers_values() {
  mapfile -t masks < <(masks)
  echo "${#masks[@]} masks"
  [ ${#masks[@]} -gt 30 ] && offers "$program" "clip.mp4 mask=" "${masks[@]}" &&
    offers "$program" "clip.mp4 mask=sobel size=3 roi-meta=t" true &&
    offers "$program" "border=ref" reflect reflect101 &&
    offers "$program" "clip.mp4 unmarked=" pass mark drop && offers "$program" "clip.mp4 report=" false true &&
    offers "$program" "clip.mp4 sigma=" ""
}
offers_properties() {
  offers "$program" "clip.mp4 roi-s" roi-scale= roi-shape= && offers "$program" "clip.mp4 hol" hold= &&
    offers "$program" "clip.mp4 loo" lookahead= && offers "$program" "clip.mp4 ty" types= &&
    ! offered "$program" "clip.mp4 " | grep -E '^(name|parent|qos|stats)='
}
offers_files() {
  mkdir -p "$scratch/files/folder"
  cd "$scratch/files"
  touch "sigma one.mp4" clip.mp4 sizes scene:1.mp4
  offers "$program" "cl" clip.mp4 && offers "$program" "-o cl" clip.mp4 && offers "$program" "--output=fo" folder &&
    offers "$program" "--output cl" clip.mp4 && offers "$program" "scene:" 1.mp4 && offers "$program" "./scene:1" 1.mp4 &&
    offers "$program" "./si" "./sigma one.mp4" ./sizes && offers "$program" "size" size= size-y= sizes
}
offers_presets() {
  offers "$program" "clip.mp4 --preset=Sh" 'Sharpen\ scans' 'Sharpen\ video' &&
    offers "$program" 'clip.mp4 --preset=Sharpen\ v' 'Sharpen\ video' &&
    offers "$program" "clip.mp4 -p Pl" Plates && offers "$program" "clip.mp4 --preset Pl" Plates
}
is_registered() { # PROGRAM...
  # shellcheck disable=SC2016  # bash expands them
  bash -c '. "$0"; complete -p "$@"' "$completion" "${@##*/}"
}

# Prints the command lines of a manual. In Markdown these are the indented blocks outside code fences, and each
# property=value between backticks; in a manual page the examples.
# shellcheck disable=SC2016  # the backticks are Markdown's
commands_of() { # FILE
  case $1 in
    *.1) sed -n '/^\.RS/,/^\.RE/{/^\./!p}' "$1" | sed 's/\\-/-/g' ;;
    *) sed '/^```/,/^```/d' "$1" | sed -n 's/^    //p'
      sed '/^```/,/^```/d' "$1" | grep -oE '`[^`]+`' | tr -d '`' | grep -E '^[^|]*[a-z-]+=[^|]*$' ;;
  esac
}
# Pastes lines into an interactive bash that finds no command, in an empty folder: it prints what it would run, each
# word in quotes, and the errors of the shell itself.
pasted() { # FILE
  mkdir -p "$scratch/empty" && cd "$scratch/empty" || return
  {
    # shellcheck disable=SC2016  # the inner shell expands it
    echo 'command_not_found_handle() { printf "run:"; printf " %q" "$@"; echo; }'
    commands_of "$1"
  } | env -i PATH=/nowhere HOME="$scratch/empty" TERM=dumb "$bash" --noprofile --norc -i 2>&1
}
bash=$(command -v bash)
is_pasted() { # FILE: no word with ! is taken for a command of the history
  pasted "$1" >"$scratch/pasted"
  grep -cE '^run:|: No such file or directory$' "$scratch/pasted" && ! grep -E 'event not found|substitution failed' "$scratch/pasted"
}
keeps_exclamation() { # the words arrive
  pasted "$top/README.md" | tee "$scratch/pasted" | grep -F 'staff'
  grep -qF 'types=\!staff' "$scratch/pasted"
}

# ---- Code

runs_c() { # as an application that has no pipeline yet
  # shellcheck disable=SC2016  # the backticks are Markdown's
  sed -n '/^```c$/,/^```$/{/^```/d;p}' "$top/gst/README.md" >"$scratch/code.c"
  cat >>"$scratch/code.c" <<'END'
int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  GstContext *shared = make_shared_context(0);
  g_print("%s\n", shared ? gst_context_get_context_type(shared) : "no GPU");
  if (shared) gst_context_unref(shared);
  return 0;
}
END
  # shellcheck disable=SC2046  # several options
  cc -Wall -Werror "$scratch/code.c" -o "$scratch/code" $(pkg-config --cflags --libs gstreamer-cuda-1.0) && "$scratch/code"
}
no_cuda=
echo '#include <gst/cuda/gstcudautils.h>' >"$scratch/cuda.c"
# shellcheck disable=SC2046
cc -fsyntax-only "$scratch/cuda.c" $(pkg-config --cflags gstreamer-cuda-1.0 2>/dev/null) &>/dev/null ||
  no_cuda="no headers of gstreamer-cuda-1.0"

programs=() pages=()
while [ $# -gt 0 ]; do
  programs+=("$(realpath "$1")") pages+=("$(realpath "$2")")
  shift 2
done
program=${programs[0]}
completed() { for path in "${programs[@]}"; do ! is_registered "$path" >/dev/null 2>&1 || echo "$path"; done; }
manuals=()
for file in "$top"/{README.md,*/README.md,tests/*/README.md,pipelines/man/*.1}; do
  [ -z "$(commands_of "$file")" ] || manuals+=("$file")
done
echo "1..$((3 * ${#programs[@]} + $(completed | wc -l) + 7 + ${#manuals[@]}))"
for i in "${!programs[@]}"; do
  name=${programs[i]##*/}
  expect "$name: the page has the options of --help" same_options "${programs[i]}" "${pages[i]}"
  expect "$name: --version prints name and version" prints_version "${programs[i]}"
  expect_unless "$no_man" "$name: the page has no warnings" is_clean "${pages[i]}"
done
while read -r path; do expect "${path##*/}: its options are completed" offers_options "$path"; done < <(completed)
expect "properties are completed" offers_properties
expect "values of properties are completed" offers_values
expect "files are completed" offers_files
expect "presets are completed" offers_presets
for file in "${manuals[@]}"; do expect "${file#"$top"/}: its lines can be pasted" is_pasted "$file"; done
expect "words with an exclamation mark arrive" keeps_exclamation
expect_unless "$no_cuda" "an application shares a CUDA context" runs_c
expect "bash knows the programs" is_registered cudaconv-play cudaconv-privacy cudaconv-tune
finish
