# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completes the arguments of cudaconv-play, cudaconv-privacy and cudaconv-tune: options, as --help lists them, files,
# and properties of cudaconv and roihold with their values, as gst-inspect-1.0 lists them.

# The properties of both elements, or the values of one that is an enumeration or a boolean: _cudaconv_words [PROPERTY]
_cudaconv_words() {
  { gst-inspect-1.0 --no-colors cudaconv; gst-inspect-1.0 --no-colors roihold; } 2>/dev/null | awk -v wanted="$1" '
    /^[A-Z]/ { inside = /^Element Properties/ }
    !inside { next }
    /^  [a-z]/ { property = $1; if (wanted == "" && !/^  (name|parent|qos|stats) /) print property "=" }
    property != wanted { next }
    /^ +\([0-9]+\): / { print $2 }
    /^ +Boolean\./ { print "false"; print "true" }'
}

_cudaconv_presets() {
  gst-inspect-1.0 --no-colors cudaconv 2>/dev/null | sed -n '/^Presets:/,$s/^  "\(.*\)": .*/\1/p'
}

_cudaconv_options() { # PROGRAM
  "$1" --help 2>/dev/null | grep -oE '^  (-., )?--[a-z-]+=?' | sed 's/.*--/--/'
}

_cudaconv() {
  local IFS=$'\n' line word before lines='' files=yes
  before=${COMP_LINE:0:COMP_POINT}
  before=${before//\\ /$'\1'}
  word=${before##*[[:blank:]]}  # all of it: readline cuts words at = too, and replaces the last part alone
  before=${before%"$word"}
  word=${word//$'\1'/ }
  case $word in
    --preset=*) lines=$(_cudaconv_presets) files='' ;;
    --output=* | --cascade=*) ;;
    --*=*) files='' ;;
    -*) lines=$(_cudaconv_options "$1") files='' ;;
    *[/.]*) ;;
    *=*) lines=$(_cudaconv_words "${word%%=*}") files='' ;;
    *)
      case $before in
        *[[:blank:]]-p[[:blank:]] | *[[:blank:]]--preset[[:blank:]]) lines=$(_cudaconv_presets) files='' ;;
        *[[:blank:]]-o[[:blank:]] | *[[:blank:]]--output[[:blank:]] | *[[:blank:]]--cascade[[:blank:]]) ;;
        *) lines=$(_cudaconv_words "") ;;
      esac ;;
  esac
  [[ $word = [./]* ]] || word=${word#*=}
  COMPREPLY=()
  for line in $lines; do
    [[ $line = "$word"* ]] || continue
    [[ $line != *= ]] || compopt -o nospace 2>/dev/null
    [[ $line != *[[:blank:]]* ]] || printf -v line %q "$line"
    COMPREPLY+=("$line")
  done
  [ -n "$files" ] || return 0
  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o filenames 2>/dev/null  # it would write properties as mask\=
  before=''
  [[ $COMP_WORDBREAKS != *:* || $word != *:* ]] || before=${word%:*}:  # readline cuts words at : too
  for line in $(compgen -f -- "$word"); do COMPREPLY+=("${line#"$before"}"); done
}

complete -F _cudaconv cudaconv-play cudaconv-privacy cudaconv-tune
