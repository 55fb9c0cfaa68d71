# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Clips that several tests make, and a check of what programs leave. Source this file.

# Makes turned.mov: three frames of 160x120 by a camera that was turned, upright with 120x160.
make_turned_clip() {
  gst-launch-1.0 -q videotestsrc num-buffers=3 pattern=zone-plate kx2=12 ky2=9 ! video/x-raw,width=160,height=120 \
    ! jpegenc ! qtmux ! filesink location=turned.mov
  python3 - <<'END'
import struct
with open("turned.mov", "r+b") as clip:
    clip.seek(clip.read().index(b"tkhd") + 44)
    clip.write(struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 120 << 16, 0, 1 << 30))  # clockwise
END
}

# Prints the times of the coded frames of a .webm in milliseconds: times_of FILE
times_of() {
  timeout 60 gst-launch-1.0 -v filesrc location="$1" ! matroskademux ! fakesink silent=false </dev/null |
    sed -nE 's/.*chain .*pts: 0:00:([0-9]+)\.([0-9]{3}).*/\1\2/p' | sed 's/^0*\(.\)/\1/' | paste -sd " "
}

no_part() { [ -z "$(find . -name '*.part')" ]; } # no file that is not complete

# Prints the first Python that has GStreamer's bindings of this name, or nothing: python_with Gst
python_with() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    ! "$candidate" -c "import gi; gi.require_version('$1', '1.0'); from gi.repository import $1" 2>/dev/null ||
      { echo "$candidate" && return; }
  done
}
