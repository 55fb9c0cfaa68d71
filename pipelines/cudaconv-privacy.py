#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hides faces: a detector marks them on each frame, roihold keeps the marks for half a second, or moves them to the next
ones, and cudaconv makes a mosaic of what is marked.

  cudaconv-privacy.py clip.mp4                                           in a window
  cudaconv-privacy.py -o hidden.webm clip.mp4                            into a video file, without its sound
  cudaconv-privacy.py -o hidden.png photo.jpg                            a picture
  cudaconv-privacy.py -o hidden.rgb clip.mp4 mask=gauss roi-scale=0.2    bare RGB frames, with other settings
  cudaconv-privacy.py -o hidden.webm clip.mp4 lookahead=500000000        half a second before each face too
  cudaconv-privacy.py --region=40,60,120,90 clip.mp4                     a rectangle, marked by hand, instead of faces

At the end it prints how many faces it found in how many frames. Settings that would hide nothing are an error.
cudaconv-privacy.cpp keeps the sound and, with --region, more than 8 bits. This program needs python3-gi and
gir1.2-gstreamer-1.0.
"""
import argparse
import collections
import contextlib
import ctypes
import os
import re
import shutil
import signal
import sys
import threading

try:
    import gi
    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, GObject, Gst
except (AttributeError, ImportError, ValueError) as e:  # other packages install parts of gi
    sys.exit(f"cudaconv-privacy: GStreamer's bindings for Python are missing: "
             f"install python3-gi and gir1.2-gstreamer-1.0 ({e})")

sys.dont_write_bytecode = True
from decoders import c_function, mend  # beside this file

CASCADE = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml"
# The settings that gst/README.md recommends. In a PNG alpha may be all that shows a text or an outline.
SETTINGS = ["roi-meta=true", "mask=mosaic", "roi-scale=0.125", "roi-grow=0.2", "alpha=filter"]
# Settings for videos. A face that the detector misses stays hidden for half a second, also where it moves on until it
# is found again.
SETTINGS_IN_TIME = ["hold=500000000", "interpolate=true"]
FILTER = "roihold name=holder ! cudaconv name=hider"  # the settings are of both elements
SMALLEST_FACE = 30  # the side of the smallest face that the detector looks for, in pixels: facedetect's own default
BY_HAND = b"by-hand"  # the type of the regions of the command line
TRIAL = 640, 480  # the size of the picture that shows what the settings do


class Failure(Exception):
    pass


def rectangle_of(text):
    try:
        x, y, width, height = (int(number) for number in text.split(","))
    except ValueError:
        width = height = x = y = 0
    if min(x, y) < 0 or min(width, height) <= 0 or max(x, y, width, height) > 999999999:
        raise Failure(f"--region is X,Y,WIDTH,HEIGHT in pixels, such as 40,60,120,90, not {text}")
    return x, y, width, height


class Parser(argparse.ArgumentParser):
    def error(self, message):  # with the exit code of other errors
        raise Failure(f"the command line: {message}; --help explains the arguments")


def parse_options():
    parser = Parser(description="Hides faces in a video or a picture.")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write .webm, for a picture .png or .jpg, or bare RGB frames (.rgb, a pipe)")
    parser.add_argument("--region", metavar="X,Y,W,H", action="append", type=rectangle_of,
                        help="hide this instead of faces")
    parser.add_argument("--cascade", metavar="FILE", default=CASCADE, help="what OpenCV is to find")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no counts")
    parser.add_argument("file")
    parser.add_argument("settings", metavar="PROPERTY=VALUE", nargs="*", help="of cudaconv or roihold")
    words = sys.argv[1:]
    if "--" in words:  # argparse forgets it where options may come after the file
        end = words.index("--")
        words[end:] = ["./" + word if word.startswith("-") else word for word in words[end + 1:]]
    options = parser.parse_intermixed_args(words)
    for name in "output", "cascade":
        if getattr(options, name) == "":
            raise Failure(f"--{name} has an empty value")
    return options


def set_value(element, spec, text):
    """Sets a property as gst-launch-1.0 does. Returns false where the property does not take this value.

    Gst.util_set_object_arg() does not say so. A structure reads values of any type, but large numbers wrap around.
    """
    if spec.value_type == GObject.TYPE_STRING:
        Gst.util_set_object_arg(element, spec.name, text)
        return True
    try:
        one = re.fullmatch(r"[\w.+-]+", text, re.ASCII)
        read = one and Gst.Structure.from_string(f"read, value=({spec.value_type.name}){text}")
    except TypeError:
        read = None
    if not read:
        return False
    structure = read[0] if isinstance(read, tuple) else read
    number, rest = GLib.ascii_strtod(text)
    if hasattr(spec, "minimum") and not rest and not spec.minimum <= number <= float(spec.maximum):
        return False
    element.set_property(spec.name, structure.get_value("value"))
    return True


def set_property(pipeline, setting):
    """Sets a property of the cudaconv in the pipeline or, if it has none of that name, of the roihold before it."""
    name, equals, text = setting.partition("=")
    for element in pipeline.get_by_name("hider"), pipeline.get_by_name("holder"):
        spec = element.find_property(name)
        if spec:
            break
    if not equals or not spec or not spec.flags & GObject.ParamFlags.WRITABLE:
        raise Failure(f"{setting} is not PROPERTY=VALUE of cudaconv or roihold; "
                      "gst-inspect-1.0 cudaconv and gst-inspect-1.0 roihold list their properties")
    if not set_value(element, spec, text):
        raise Failure(f"{setting} is not a value of that property; "
                      f"gst-inspect-1.0 {element.get_factory().get_name()} lists its values")


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
    """Makes a pad probe that tells, at the first frame, of bits that are lost. `depth`: those of a pad, had and kept."""
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


def is_picture(name):
    return name.lower().endswith((".png", ".jpg", ".jpeg"))


def is_still(options):
    return bool(options.output) and is_picture(options.output) and is_picture(options.file)


def own_settings(options):
    return SETTINGS + ([] if is_still(options) else SETTINGS_IN_TIME)


def decoder_of(name):
    """The decoder of a PNG or JPEG, which may have any name, the bits of a sample, and whether a PNG keeps only 8."""
    with open(name, "rb") as file:
        data = file.read()
    # A PNG has the name of its profile, a JPEG all of it.
    profile = re.search(rb"(iCCP|ICC_PROFILE\0).{0,65000}", data, re.DOTALL)
    if profile and not re.search(rb"sRGB|\0s\0R\0G\0B", profile[0]):
        print(f"warning: {name}: its colour profile is left out: colours may look different", file=sys.stderr)
    if data[:2] == b"\xff\xd8":
        parser = "jpegparse ! " if Gst.ElementFactory.find("jpegparse") else ""  # reads how the camera was held
        return parser + "jpegdec name=decoder", 8, False
    if data[:4] != b"\x89PNG" or len(data) < 26:
        raise Failure(f"{name}: it is neither a PNG nor a JPEG picture")
    if data[24] != 16 or not data[25] & 6:
        return "pngdec name=decoder", data[24], False
    if data[-8:-4] != b"IEND":  # gdkpixbufdec accepts files that end early
        raise Failure(f"{name}: the picture is not complete")
    # GStreamer's pngdec mixes up 16-bit colours before 1.28, and alpha with them up to 1.28.8.
    if data[25] & 4 or Gst.version() < (1, 28):
        return "gdkpixbufdec name=decoder", 16, True
    return "pngdec name=decoder ! videoconvert dither=none ! video/x-raw,format=RGB", 16, True


def chunks_of(name):
    """The type of each chunk of a PNG, and the data of chunks with Exif data."""
    if not os.path.isfile(name):
        return
    with open(name, "rb") as file:
        if file.read(8) != b"\x89PNG\r\n\x1a\n":
            return
        while len(head := file.read(8)) == 8:
            length, start = int.from_bytes(head[:4], "big"), file.tell()
            yield head[4:], file.read(min(length, 1 << 20)) if head[4:] == b"eXIf" else b""
            file.seek(start + length + 4)


def check_animation(name):
    """GStreamer decodes the first picture of an animated PNG, and no animated WebP."""
    if os.path.isfile(name):
        with open(name, "rb") as file:
            head = file.read(21)
        if re.fullmatch(rb"RIFF....WEBPVP8X....[^\0\1]", head, re.DOTALL) and head[20] & 2:
            raise Failure(f"{name} is an animated WebP, which GStreamer does not decode: "
                          "make a GIF or a video of it first")
    for kind, _ in chunks_of(name):
        if kind == b"acTL":
            print(f"warning: {name} is an animated PNG: all but its first picture is left out", file=sys.stderr)
        if kind in (b"IDAT", b"acTL"):
            return


def exif_of_jpeg(name):
    """The Exif data of a JPEG, unless jpegparse makes tags of them: decodebin of GStreamer 1.22 does without it."""
    parser = Gst.ElementFactory.find("jpegparse")
    if not os.path.isfile(name) or parser and parser.get_rank() >= Gst.Rank.MARGINAL:
        return b""
    with open(name, "rb") as file:
        if file.read(2) != b"\xff\xd8":
            return b""
        while len(head := file.read(4)) == 4 and head[0] == 0xff and head[1] != 0xda:  # until its pixels
            if head[1] == 0xff:  # a byte between segments
                file.seek(-3, os.SEEK_CUR)
                continue
            data = file.read(max(int.from_bytes(head[2:], "big") - 2, 0))
            if head[1] == 0xe1 and data[:6] == b"Exif\0\0":
                return data[6:]
    return b""


def direction_of(name):
    """How to turn a PNG or JPEG, by its Exif data, which their decoders do not read: a value of video-direction."""
    exif = next((data for kind, data in chunks_of(name) if kind == b"eXIf"), b"") or exif_of_jpeg(name)
    order = {b"MM\0*": "big", b"II*\0": "little"}.get(exif[:4])
    if not order:
        return "auto"

    def number(at, size):
        return int.from_bytes(exif[at:at + size], order)

    entries = number(4, 4)
    for at in range(entries + 2, min(entries + 2 + 12 * number(entries, 2), len(exif) - 11), 12):
        if number(at, 2) == 0x112:
            return {2: "horiz", 3: "180", 4: "vert", 5: "ul-lr", 6: "90r", 7: "ur-ll", 8: "90l"}.get(
                number(at + 8, 2), "auto")
    return "auto"


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


def print_counts(counts, what, to, hides_without):
    """Prints to a file, or only a warning. `hides_without`: something is hidden also where no region came."""
    parts = [f"{number or 'no'} {what}{'s' * (number > 1)} in {frames}" for number, frames in sorted(counts.items())]
    if to:
        print(f"{sum(counts.values())} frames: {', '.join(parts)}", file=to)
    if not any(counts):
        effect = "" if hides_without else ": nothing is hidden"
        print(f"warning: no {what} was found in the whole file{effect}", file=sys.stderr)


def end_without_threads(part):
    """Ends the program if no thread can be started. `part`: what to remove then."""
    if part and os.path.isfile(part):
        os.remove(part)
    print("cudaconv-privacy: no thread can be started: is the memory or the number of processes limited (ulimit)?",
          file=sys.stderr, flush=True)
    os._exit(1)  # a pipeline may wait for a thread


def watch_threads(part):
    """GStreamer only warns if it cannot start a thread, and waits for it for ever."""
    def look(domain, level, message, _data):
        GLib.log_default_handler(domain, level, message)
        if "failed to create thread" in message:
            end_without_threads(part)

    GLib.log_set_handler("GStreamer", GLib.LogLevelFlags.LEVEL_WARNING, look, None)


def is_uri(name):
    return bool(re.match(r"[A-Za-z][\w.+-]+:", name)) and not os.path.exists(name)


def path_of(name):
    """The file of a name or a URI; empty where that is in the network."""
    try:
        return GLib.filename_from_uri(name)[0] if is_uri(name) else name
    except GLib.Error:
        return ""


def is_stdout(name):
    try:
        return os.path.samestat(os.stat(name), os.fstat(1))
    except OSError:
        return False


def part_of(options):
    """The file to write until it is complete: the output itself where that is a pipe, a device or standard output."""
    if not options.output:
        if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
            raise Failure("there is no display to show a window on; -o FILE.webm writes a video instead")
        return None
    if os.path.isdir(options.output):
        raise Failure(f"{options.output} is a folder, not a file to write")
    if is_stdout(options.output) or os.path.exists(options.output) and not os.path.isfile(options.output):
        return options.output
    if not options.output.lower().endswith((".webm", ".rgb")) and not is_still(options):
        raise Failure("the output is a file that ends in .webm, in .png or .jpg for a picture, or in .rgb for bare RGB "
                      f"frames, not as {options.output} does; the program in C++ writes .mkv and .mp4")
    if os.path.exists(options.output) and not os.access(options.output, os.W_OK):
        raise Failure(f"cannot write {options.output}: Permission denied")  # the folder would let it be replaced
    options.target = os.path.realpath(options.output)  # a link stays one
    source = path_of(options.file)
    if os.path.exists(options.target) and os.path.exists(source) and os.path.samefile(options.target, source):
        raise Failure("the output is the input: name another file")
    folder, name = os.path.split(options.target)
    end = f".{os.getpid()}.part"  # another process may write a file of the same name
    most = os.pathconf(folder, "PC_NAME_MAX") if os.path.isdir(folder) else 255  # bytes
    while len(os.fsencode(name + end)) > most:
        name = name[:-1]
    return os.path.join(folder, name + end)


def check_detector(cascade):
    """Without the detector and a whole cascade no faces are found, and they are not hidden."""
    if not os.path.exists(cascade):
        raise Failure(f"there is no {cascade}, which finds faces: install opencv-data, or name one by --cascade")
    if not Gst.ElementFactory.find("facedetect"):
        raise Failure("there is no element facedetect, which finds faces: "
                      "install gstreamer1.0-opencv, or use --region")
    try:
        with open(cascade, "rb") as file:
            text = file.read()
    except OSError:
        text = b""
    if b"<stages>" not in text or b"</opencv_storage>" not in text:
        raise Failure(f"{cascade} is no cascade of OpenCV, or not the whole file")


def last_frame(pipeline, name):
    """The bytes of the last frame of a fakesink; nothing where no frame came."""
    sample = pipeline.get_by_name(name).get_property("last-sample")
    buffer = sample and sample.get_buffer()
    return buffer.extract_dup(0, buffer.get_size()) if buffer else b""


def changes(settings, pixels, kind, regions):
    """Sends a picture of noise with marked regions, all within it, through a filter with the settings.

    Returns whether they change at least a pixel of each region; or, with roi-invert and regions by hand, of the rest.
    """
    pipeline = Gst.parse_launch(
        f"videotestsrc pattern=snow num-buffers=1 ! video/x-raw,format={pixels},width={TRIAL[0]},height={TRIAL[1]} ! "
        f"tee name=both ! queue ! fakesink name=before both. ! queue ! {FILTER} ! fakesink name=after")
    hider = pipeline.get_by_name("hider")
    for setting in settings:
        set_property(pipeline, setting)
    hider.set_property("iterations", 1)  # what changes nothing once never does
    marked = pipeline.get_by_name("holder").get_static_pad("sink")
    marked.add_probe(Gst.PadProbeType.BUFFER, make_marker(kind, regions))
    try:
        pipeline.set_state(Gst.State.PLAYING)
        message = None
        while not message:  # Python sees Ctrl-C between two waits
            ends = Gst.MessageType.EOS | Gst.MessageType.ERROR
            message = pipeline.get_bus().timed_pop_filtered(Gst.SECOND // 5, ends)
        before, after = last_frame(pipeline, "before"), last_frame(pipeline, "after")
        inverted = hider.get_property("roi-invert")
    finally:
        pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        error, details = message.parse_error()
        raise Failure(f"{error.message}\n{details}" if details else error.message)
    if not after:  # a frame that is dropped shows nothing
        return True
    if kind == BY_HAND and inverted:
        return before != after
    pixel = len(before) // (TRIAL[0] * TRIAL[1])

    def changed(x, y, width, height):
        rows = (slice((row * TRIAL[0] + x) * pixel, (row * TRIAL[0] + x + width) * pixel)
                for row in range(y, y + height))
        return any(before[row] != after[row] for row in rows)

    return all(changed(*region) for region in regions)


def check_settings(options):
    """Fails where the settings would leave a face, or a region of the command line, as it is."""
    settings = {}
    for setting in own_settings(options) + options.settings:
        name = setting.partition("=")[0]
        settings.pop(name, None)
        settings[name] = setting  # a later one replaces an earlier one
    settings = list(settings.values())
    if not options.region:
        side = SMALLEST_FACE  # everywhere: in corners, at edges and in the middle
        right, bottom = TRIAL[0] - side, TRIAL[1] - side
        faces = [(x, y, side, side) for y in (0, bottom // 2, bottom) for x in (0, right // 2, right)]
        if not changes(settings, "RGB", b"face", faces):
            raise Failure(f"nothing would be hidden: faces stay as they are with {' '.join(settings)}")
    # The format is not known yet. Grey is the one in which luma=copy leaves everything.
    for region in options.region or ():
        within = (TRIAL[0] // 4, TRIAL[1] // 4, min(region[2], TRIAL[0] // 2), min(region[3], TRIAL[1] // 2))
        if not changes(settings, "GRAY8", BY_HAND, [within]):
            raise Failure(f"nothing would be hidden: --region={','.join(map(str, region))} stays as it is with "
                          f"{' '.join(settings)}")


def line_of(options, decoder):
    """The launch line. `decoder`: of a picture; none for a video."""
    line = f"filesrc name=source ! {decoder} ! " if decoder else (
        "uridecodebin name=source queue name=decoded ! capssetter name=mend caps=video/x-raw(ANY) ! ")
    line += f"videoconvert ! videoflip video-direction={direction_of(path_of(options.file))} ! "  # detectors find upright faces
    if not options.region:
        # facedetect marks faces by GstVideoRegionOfInterestMetas of type "face", and by default also draws circles
        # around them. No converter is between it and the filter: that may ask for padded rows.
        line += "facedetect name=detector display=false updates=none ! "
    line += FILTER + " ! videoconvert ! "
    if not options.output:
        return line + "autovideosink"
    if decoder:
        encoder = "pngenc" if options.output.lower().endswith(".png") else "jpegenc quality=95"
        if ("jpeg" in encoder) != ("jpeg" in decoder):
            # jpegenc prefers YUV, and writes limited range as if it were full: RGB with alpha would lose contrast.
            # pngenc prefers alpha, also for a JPEG, which has none.
            line += "video/x-raw,format={RGB,GRAY8} ! "
        return line + encoder + " name=encoder ! filesink name=file"
    if options.output.lower().endswith(".webm"):
        # VP8 has colours of BT.601 in limited range. Converters copy the codes of YUV and grey of 8 bits, but not of RGB.
        return line + ("video/x-raw,format=RGB ! videoconvert ! video/x-raw,format=I420,colorimetry=bt601 ! "
                       "queue ! vp8enc deadline=1 target-bitrate=4000000 ! webmmux name=muxer ! filesink name=file")
    return line + "video/x-raw,format=RGB ! filesink name=file"


def decodes(_source, _pad, caps):
    """Whether to decode a stream further: sound would be decoded in vain. A demuxer may find video in it."""
    if not caps.to_string().startswith("audio/"):
        return True
    demuxers = Gst.ElementFactory.list_get_elements(Gst.ELEMENT_FACTORY_TYPE_DEMUXER, Gst.Rank.MARGINAL)
    return bool(Gst.ElementFactory.list_filter(demuxers, caps, Gst.PadDirection.SINK, False))


def take_stream(_source, pad, pipeline):
    """Takes a video stream, also one that replaces another, and has the colorimetry of its frames name a matrix.

    Decoders name a range without one. For YUV GStreamer then forgets the range, and it garbles grey.
    """
    caps = (pad.get_current_caps() or pad.query_caps()).to_string()
    if not caps.startswith("video/x-raw"):
        pad.add_probe(Gst.PadProbeType.DATA_DOWNSTREAM, lambda *_: Gst.PadProbeReturn.DROP)
        return
    found = re.search(r"colorimetry=(?:\(string\))?(\d+):0:(\d+:\d+)", caps)
    if found:
        matrix = 3 if int(re.search(r"height=(?:\(int\))?(\d+)", caps)[1]) > 576 else 4  # BT.709, or BT.601
        pipeline.get_by_name("mend").set_property(
            "caps", Gst.Caps.from_string(f"video/x-raw(ANY),colorimetry={found[1]}:{matrix}:{found[2]}"))
    first = pipeline.get_by_name("decoded").get_static_pad("sink")
    if not first.is_linked():
        pad.link(first)


def watch_streams(source, pipeline):
    """Checks the video when all streams are there.

    A source such as rtspsrc gets pads for its streams one after the other, and uridecodebin a decoder for each: it
    tells that it has no more pads also where the next stream has not come.
    """
    waits = False

    def wait_for(_bin, element):
        nonlocal waits
        waits = any(pad.direction == Gst.PadDirection.SRC and pad.presence == Gst.PadPresence.SOMETIMES
                    for pad in element.get_pad_template_list())
        if waits:
            element.connect("no-more-pads", complete)  # before uridecodebin is told

    def complete(_element):
        nonlocal waits
        waits = False

    source.connect("source-setup", wait_for)
    source.connect("no-more-pads", lambda *_: waits or check_video(source, pipeline))


def check_video(source, pipeline):
    """A part of the file has no more streams."""
    first = pipeline.get_by_name("decoded").get_static_pad("sink")
    if first.is_linked():
        return
    if first.has_current_caps():
        print("warning: the input goes on without the video", file=sys.stderr)
        threading.Thread(target=first.send_event, args=(Gst.Event.new_eos(),), daemon=True).start()
        return
    error = GLib.Error.new_literal(Gst.CoreError.quark(), "there is no decoder for its video",
                                   Gst.CoreError.MISSING_PLUGIN)
    source.post_message(Gst.Message.new_error(source, error, ""))


def make_pipeline(options, part, counts):
    check_animation(path_of(options.file))
    if is_still(options) and not path_of(options.file):
        raise Failure(f"a picture is read from a file, not from {options.file}")
    decoder, bits, colored = decoder_of(path_of(options.file)) if is_still(options) else (None, None, None)
    pipeline = Gst.parse_launch(line_of(options, decoder))
    source = pipeline.get_by_name("source")
    uri = options.file if is_uri(options.file) else Gst.filename_to_uri(options.file)
    if decoder:
        source.set_uri(uri)
        if pipeline.get_by_name("decoder").find_property("max-errors"):
            pipeline.get_by_name("decoder").set_property("max-errors", 0)  # it says why
        encoded = pipeline.get_by_name("encoder").get_static_pad("sink")
        why = "the filter or the detector takes no more"
        if not options.output.lower().endswith(".png"):
            why = "a JPEG has no more"
        if colored:
            why = "GStreamer keeps more only of grey without alpha"
        encoded.add_probe(Gst.PadProbeType.BUFFER,
                          make_depth_teller("the picture's", lambda pad: (bits, depth_of(pad)), why))
        decoded = pipeline.get_by_name("decoder").get_static_pad("src")
        why = ": the detector takes none" if options.output.lower().endswith(".png") else ": a JPEG has none"
        encoded.add_probe(Gst.PadProbeType.BUFFER,
                          make_alpha_teller("picture", lambda pad: has_alpha(decoded) and not has_alpha(pad), why))
    else:
        source.set_property("uri", uri)
        # All streams, also those that are dropped: between parts of its input decodebin waits for the end of each one.
        source.connect("autoplug-continue", decodes)
        source.connect("pad-added", take_stream, pipeline)
        watch_streams(source, pipeline)
        pipeline.connect("deep-element-added", mend)
        if options.output:
            decoded = pipeline.get_by_name("decoded").get_static_pad("src")
            webm = options.output.lower().endswith(".webm")
            why = "with --region the program in C++ keeps them" if webm else "bare RGB frames have no more"
            decoded.add_probe(Gst.PadProbeType.BUFFER,
                              make_depth_teller("the video's", lambda pad: (depth_of(pad), 8), why))
            decoded.add_probe(Gst.PadProbeType.BUFFER, make_alpha_teller("video", has_alpha, ""))
    if options.output:
        pipeline.get_by_name("file").set_uri(Gst.filename_to_uri(part))  # takes any name, a string only UTF-8
    marked = pipeline.get_by_name("holder").get_static_pad("sink")
    if options.region:
        marked.add_probe(Gst.PadProbeType.BUFFER, make_checker(options.region))
        marked.add_probe(Gst.PadProbeType.BUFFER, make_marker(BY_HAND, options.region))
    else:
        detector = pipeline.get_by_name("detector")
        detector.set_property("profile", options.cascade)
        detector.set_property("min-size-width", SMALLEST_FACE)
        detector.set_property("min-size-height", SMALLEST_FACE)
        detector.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, make_packer())
    if options.output and not decoder and not pipeline.get_by_name("muxer"):
        pipeline.get_by_name("file").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, make_packer())
    if pipeline.get_by_name("muxer"):
        pipeline.get_by_name("hider").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, check_time)
    marked.add_probe(Gst.PadProbeType.BUFFER, count_regions(counts))
    for setting in own_settings(options) + options.settings:
        set_property(pipeline, setting)
    hider = pipeline.get_by_name("hider")
    for name in "roi-scale", "roi-grow", "alpha":  # without effect, a warning would name what nobody has set
        if not hider.emit("has-effect", name) and not any(s.startswith(f"{name}=") for s in options.settings):
            hider.set_property(name, 0)
    return pipeline


def play(pipeline, counts, output):
    """Plays to the end. Returns whether Ctrl-C has ended the stream early, after a frame."""
    interrupted = decoder_missing = False
    patience = None  # seconds that stopping may take

    def interrupt(*_):
        nonlocal interrupted, patience
        patience = 0.5  # the source may be stuck
        if interrupted or not counts:
            raise KeyboardInterrupt
        interrupted = True
        print("interrupted: finishing the file", file=sys.stderr)
        # Not at the source, which may be stuck. The thread waits for a frame that is on its way.
        pad = pipeline.get_by_name("holder").get_static_pad("sink")
        threading.Thread(target=pad.send_event, args=(Gst.Event.new_eos(),), daemon=True).start()

    # It raises nothing while a message is taken from the bus: that would be lost.
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) == signal.default_int_handler:
            signal.signal(number, interrupt)
    # Opening a pipe waits for its other end. A thread waits, so that Ctrl-C works here.
    starter = threading.Thread(target=pipeline.set_state, args=(Gst.State.PLAYING,), daemon=True)
    starter.start()
    try:
        message = None
        while not message:
            # Python sees Ctrl-C between two waits.
            message = pipeline.get_bus().timed_pop_filtered(
                Gst.SECOND // 5,
                Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING | Gst.MessageType.ELEMENT)
            if message and message.type == Gst.MessageType.WARNING:
                warning, _ = message.parse_warning()
                # A GstVideoFilter has not written the frame that it pushes.
                if warning.matches(Gst.CoreError.quark(), Gst.CoreError.NOT_IMPLEMENTED):
                    raise Failure("a frame cannot be read: it has less data than its format needs")
                print(f"warning: {message.src.get_name()}: {warning.message}", file=sys.stderr)
                message = None
            if message and message.type == Gst.MessageType.ELEMENT:
                decoder_missing |= message.has_name("missing-plugin")
                message = None
        if message.type == Gst.MessageType.EOS:
            file = pipeline.get_by_name("file")
            if file:
                file.set_state(Gst.State.NULL)  # closes it
            message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR) or message
        if message.type == Gst.MessageType.ERROR:
            error, details = message.parse_error()
            if error.matches(Gst.CoreError.quark(), Gst.CoreError.MISSING_PLUGIN) and not decoder_missing:
                raise Failure("there is no video in it")
            text = f"{error.message}\n{details}" if details else error.message
            raise Failure(f"cannot write {output}: {text}" if message.src.get_name() == "file" else text)
    finally:
        starter.join(timeout=0.5)
        if not starter.is_alive():
            stopper = threading.Thread(target=pipeline.set_state, args=(Gst.State.NULL,), daemon=True)
            stopper.start()
            stopper.join(patience)
    return interrupted


def main():
    part = options = None
    try:
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, signal.default_int_handler)
        os.environ.setdefault("OPENCV_LOG_LEVEL", "OFF")  # keeps OpenCV from warning of cascades that are not used
        Gst.init(None)
        options, counts = parse_options(), collections.Counter()
        to_stdout = options.output and is_stdout(options.output)
        part = part_of(options)
        watch_threads(part if part != options.output else None)
        if not options.region:
            check_detector(options.cascade)
        check_settings(options)
        pipeline = make_pipeline(options, part, counts)
        hider, unmarked = pipeline.get_by_name("hider"), pipeline.get_by_name("holder").get_property("unmarked")
        hides_without = (unmarked.value_nick != "pass" or not hider.get_property("roi-meta")
                         or bool(hider.get_property("roi")))
        interrupted = play(pipeline, counts, options.output)
        if not counts:
            raise Failure("no frame came through the filter")
        if unmarked.value_nick == "drop" and not any(counts):
            raise Failure("no frame is left: none has a region, and unmarked=drop leaves these out")
        if part != options.output:
            if os.path.exists(options.target):
                shutil.copymode(options.target, part)
            os.replace(part, options.target)
        with contextlib.suppress(OSError):  # what is printed may be lost, not the file
            to = None if options.quiet else sys.stderr if to_stdout else sys.stdout
            print_counts(counts, "region" if options.region else "face", to, hides_without)
        if interrupted:
            sys.exit(130)  # the file is finished, but shorter
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as e:  # Python's own threads
        if "start new thread" not in str(e):
            raise
        end_without_threads(part if part != options.output else None)
    except (Failure, OSError, UnicodeError, GLib.Error) as e:
        sys.exit(f"cudaconv-privacy: {getattr(e, 'message', None) or e}")
    finally:
        if part and part != options.output and os.path.exists(part):  # only after a failure
            os.remove(part)


if __name__ == "__main__":
    main()
