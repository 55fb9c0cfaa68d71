#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# GStreamer 1.28.0 to 1.28.2 (Ubuntu 26.04): a copy of a buffer loses its detections.
#
# gst_buffer_copy() copies a GstAnalyticsRelationMeta, but not the GstAnalyticsODMtd in it: the copy has an entry without
# a type in its place. A copy of the copy has no entry. Classes in the same meta stay. Another transform of the meta, such
# as scaling to the same size, keeps the detection. No error is printed. videorate, imagefreeze and jpegdec copy every
# buffer so; filters in place copy those that a tee shares. 1.28.3 and 1.26 are right.
#
# Needs root rights, debootstrap and 400 MB. Makes a root of Ubuntu 26.04 as it was released, in a temporary folder.
# Exit code 0: as described. 1: the behaviour has changed.
# Seen: GStreamer 1.28.2: the buffer has 2 entries: detection, class
#       a copy has 2 entries: none, class
#       a copy of the copy has 1 entry: class
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
script=/usr/share/debootstrap/scripts/gutsy # knows the address of Ubuntu's archive
archive=$(sed -n 's/.*default_mirror \(http:..archive[^ ]*\).*/\1/p' "$script" | head -n 1)
root=$folder/root
{
  debootstrap --variant=minbase --components=main,universe --include=ca-certificates,python3 resolute "$root" "$archive" "$script"
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" # how this machine reaches the archive
  cp /etc/resolv.conf "$root/etc/"
  chroot "$root" apt-get update
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libgstreamer-plugins-bad1.0-0
} >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" && exit 1; }
cat >"$root/copies.py" <<'PYTHON'
import ctypes
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p

core, analytics = ctypes.CDLL("libgstreamer-1.0.so.0"), ctypes.CDLL("libgstanalytics-1.0.so.0")

def function(library, name, result, *arguments):
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found

class Mtd(ctypes.Structure):
    _fields_ = [("id", c_uint), ("meta", c_void_p)]

quark = function(ctypes.CDLL("libglib-2.0.so.0"), "g_quark_from_string", c_uint, c_char_p)
copy = function(core, "gst_mini_object_copy", c_void_p, c_void_p)
relations = function(analytics, "gst_buffer_get_analytics_relation_meta", c_void_p, c_void_p)
length = function(analytics, "gst_analytics_relation_get_length", c_size_t, c_void_p)
detection = function(analytics, "gst_analytics_relation_meta_get_od_mtd", c_int, c_void_p, c_uint, c_void_p)
classes = function(analytics, "gst_analytics_relation_meta_get_cls_mtd", c_int, c_void_p, c_uint, c_void_p)

def describe(buffer):
    meta, mtd = relations(buffer), Mtd()
    kinds = ["detection" if detection(meta, i, byref(mtd)) else "class" if classes(meta, i, byref(mtd)) else "none"
             for i in range(length(meta))]
    return f"{len(kinds)} {'entry' if len(kinds) == 1 else 'entries'}: {', '.join(kinds)}"

core.gst_init(None, None)
version = [c_uint() for _ in range(4)]
core.gst_version(*map(byref, version))
buffer, mtd = function(core, "gst_buffer_new", c_void_p)(), Mtd()
meta = function(analytics, "gst_buffer_add_analytics_relation_meta", c_void_p, c_void_p)(buffer)
function(analytics, "gst_analytics_relation_meta_add_od_mtd", c_int, c_void_p, c_uint, c_int, c_int, c_int, c_int,
         c_float, c_void_p)(meta, quark(b"face"), 30, 40, 20, 10, 0.9, byref(mtd))
function(analytics, "gst_analytics_relation_meta_add_one_cls_mtd", c_int, c_void_p, c_float, c_uint,
         c_void_p)(meta, 0.9, quark(b"face"), byref(mtd))
print(f"GStreamer {'.'.join(str(number.value) for number in version[:3])}: the buffer has {describe(buffer)}")
print("a copy has", describe(copy(buffer)))
print("a copy of the copy has", describe(copy(copy(buffer))))
PYTHON
chroot "$root" python3 /copies.py | tee "$folder/output"
sed -n 's/^# \(Seen: \|      \)//p' "$0" | diff - "$folder/output"
