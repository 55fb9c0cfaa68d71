# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pad probes of cudaconv-privacy.py, which mark regions, look at frames, and change them."""
import contextlib
import ctypes
import re
import sys

from gi.repository import GLib, Gst

from decoders import c_function


def make_marker(kind, regions):
    """Makes a pad probe that marks regions; an application with a detector of its own calls that there.

    Metas may be added only to a writable buffer. A buffer that Python knows is not writable, since Python holds it too:
    so the probe calls the C functions. A buffer that others hold is copied first, without its pixels.
    """
    make_writable = c_function("libgstreamer-1.0.so.0", "gst_mini_object_make_writable", ctypes.c_void_p)
    add_meta = c_function("libgstvideo-1.0.so.0", "gst_buffer_add_video_region_of_interest_meta",
                          ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_uint] * 4)

    first = None

    def mark(pad, info):
        nonlocal first
        now = size_of(pad)
        first = first or now  # the regions are of the first frame: they follow a broadcast that changes its size
        info.data = make_writable(info.data)
        for x, y, width, height in regions:
            left, top = x * now[0] // first[0], y * now[1] // first[1]
            right, bottom = -(-(x + width) * now[0] // first[0]), -(-(y + height) * now[1] // first[1])
            add_meta(info.data, kind, left, top, right - left, bottom - top)
        return Gst.PadProbeReturn.OK

    return mark


def refuse(pad, text):
    """Ends the stream with an error, for a pad probe."""
    error = GLib.Error.new_literal(Gst.stream_error_quark(), text, Gst.StreamError.FAILED)
    element = pad.get_parent_element()
    element.post_message(Gst.Message.new_error(element, error, ""))
    return Gst.PadProbeReturn.DROP


def check_time(pad, info):
    """Muxers leave out frames without a timestamp, and not all say so."""
    if info.get_buffer().pts == Gst.CLOCK_TIME_NONE:
        return refuse(pad, "its frames have no timestamps, which video files need")
    return Gst.PadProbeReturn.OK


def size_of(pad):
    structure = pad.get_current_caps().get_structure(0)
    # python3-gst-1.0 of GStreamer 1.26 wraps the structure in a context manager.
    with structure if hasattr(structure, "__enter__") else contextlib.nullcontext(structure) as size:
        return size.get_value("width"), size.get_value("height")


def make_checker(regions):
    """Makes a pad probe that refuses frames that a region does not touch: its numbers are wrong.

    The caps alone do not tell: a clip that is turned has another size before its first frame.
    """
    def check(pad, _info):
        width, height = size_of(pad)
        for region in regions:
            if region[0] >= width or region[1] >= height:
                text = f"--region={','.join(map(str, region))} is outside the picture of {width}x{height}"
                return refuse(pad, text)
        return Gst.PadProbeReturn.REMOVE  # for later frames the regions are scaled

    return check


class VideoMeta(ctypes.Structure):
    """GstVideoMeta as in gst/video/gstvideometa.h, as far as it is read here."""
    _fields_ = [("meta", ctypes.c_void_p * 2), ("buffer", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("format", ctypes.c_int), ("id", ctypes.c_int), ("width", ctypes.c_uint), ("height", ctypes.c_uint),
                ("n_planes", ctypes.c_uint), ("offset", ctypes.c_size_t * 4), ("stride", ctypes.c_int * 4)]


def make_packer():
    """Makes a pad probe that takes the padding out of rows of RGB.

    facedetect takes three bytes for each pixel of a row for the stride, as do readers of bare frames. Where rows are
    padded, as RGB is at widths that 4 does not divide, they see a slanted picture, facedetect without a face. They get
    a copy without padding, whose stride is in its GstVideoMeta: the elements behind read it right, and nothing is cut
    off or scaled.
    """
    rgb, copy_all_but_memory = 15, 1 | 2 | 4  # GST_VIDEO_FORMAT_RGB; GST_BUFFER_COPY_FLAGS, _TIMESTAMPS and _META
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    core, video = "libgstreamer-1.0.so.0", "libgstvideo-1.0.so.0"
    meta_of = c_function(video, "gst_buffer_get_video_meta", pointer)
    meta_of.restype = ctypes.POINTER(VideoMeta)
    extract = c_function(core, "gst_buffer_extract", pointer, size, pointer, size)
    new_buffer = c_function(core, "gst_buffer_new_allocate", pointer, size, pointer)
    fill = c_function(core, "gst_buffer_fill", pointer, size, ctypes.c_char_p, size)
    copy_into = c_function(core, "gst_buffer_copy_into", pointer, pointer, ctypes.c_int, size, size)
    add_meta = c_function(video, "gst_buffer_add_video_meta_full", pointer, *[ctypes.c_int] * 2, *[ctypes.c_uint] * 3,
                          size * 4, ctypes.c_int * 4)
    unref = c_function(core, "gst_mini_object_unref", pointer)

    def pack(pad, info):
        width, height = size_of(pad)
        meta, row = meta_of(info.data), 3 * width
        offset, stride = (meta.contents.offset[0], meta.contents.stride[0]) if meta else (0, (row + 3) & ~3)
        if stride == row:
            return Gst.PadProbeReturn.OK
        if stride < row:
            return refuse(pad, "cannot read a frame")
        padded = ctypes.create_string_buffer(height * stride)
        extract(info.data, offset, padded, height * stride)
        view = memoryview(padded)
        rows = b"".join(view[at:at + row] for at in range(0, height * stride, stride))
        packed = new_buffer(None, len(rows), None)
        fill(packed, 0, rows, len(rows))
        copy_into(packed, info.data, copy_all_but_memory, 0, ctypes.c_size_t(-1).value)
        flags = meta.contents.flags if meta else 0
        add_meta(packed, flags, rgb, width, height, 1, (size * 4)(), (ctypes.c_int * 4)(row))
        unref(info.data)
        info.data = packed
        return Gst.PadProbeReturn.OK

    return pack


class VideoFormatInfo(ctypes.Structure):
    """GstVideoFormatInfo as in gst/video/video-format.h, as far as it is read here."""
    _fields_ = [("format", ctypes.c_int), ("name", ctypes.c_char_p), ("description", ctypes.c_char_p),
                ("flags", ctypes.c_int), ("bits", ctypes.c_uint), ("n_components", ctypes.c_uint),
                ("shift", ctypes.c_uint * 4), ("depth", ctypes.c_uint * 4)]


def format_of(pad):
    video = "libgstvideo-1.0.so.0"
    number_of = c_function(video, "gst_video_format_from_string", ctypes.c_char_p)
    number_of.restype = ctypes.c_int
    info_of = c_function(video, "gst_video_format_get_info", ctypes.c_int)
    info_of.restype = ctypes.POINTER(VideoFormatInfo)
    name = re.search(r"format=(?:\(string\))?(\w+)", pad.get_current_caps().to_string())
    return info_of(number_of(name[1].encode())).contents if name else None


def depth_of(pad):
    """The bits of a sample of video."""
    info = format_of(pad)
    return info.depth[0] if info else 8


def has_alpha(pad):
    info, alpha = format_of(pad), 1 << 3  # GST_VIDEO_FORMAT_FLAG_ALPHA
    return bool(info and info.flags & alpha)


def make_depth_teller(of, depth, why):
    """Makes a pad probe that tells, at the first frame, of bits that are lost. `depth`: how many a pad has, and keeps."""
    def tell(pad, _info):
        had, kept = depth(pad)
        if had > kept:
            print(f"warning: of {of} {had} bits {kept} are kept: {why}", file=sys.stderr)
        return Gst.PadProbeReturn.REMOVE

    return tell


def make_alpha_teller(of, has, why):
    """Makes a pad probe that tells, at the first frame, of alpha that is lost. `has`: whether a pad loses it."""
    def tell(pad, _info):
        if has(pad):
            print(f"warning: the {of} has alpha, which is left out{why}", file=sys.stderr)
        return Gst.PadProbeReturn.REMOVE

    return tell


def count_regions(counts):
    """Makes a pad probe that counts frames by the number of regions that come with them."""
    number_of = c_function("libgstreamer-1.0.so.0", "gst_buffer_get_n_meta", ctypes.c_void_p, ctypes.c_size_t)
    number_of.restype = ctypes.c_uint
    api = c_function("libgstvideo-1.0.so.0", "gst_video_region_of_interest_meta_api_get_type")
    api.restype = ctypes.c_size_t
    kind = api()

    def count(_pad, info):
        counts[number_of(info.data, kind)] += 1
        return Gst.PadProbeReturn.OK

    return count
