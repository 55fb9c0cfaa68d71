#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hides faces: a detector marks them on each frame, and cudaconv makes a mosaic of what is marked.

  cudaconv-privacy.py clip.mp4                                           in a window
  cudaconv-privacy.py -o hidden.webm clip.mp4                            into a video file, without its sound
  cudaconv-privacy.py -o hidden.rgb clip.mp4 mask=gauss roi-scale=0.2    bare RGB frames, with other settings
  cudaconv-privacy.py --region=40,60,120,90 clip.mp4                     a rectangle, marked by hand, instead of faces

At the end it prints how many faces it found in how many frames. cudaconv-privacy.cpp keeps the sound. This program
needs python3-gi and gir1.2-gstreamer-1.0.
"""
import argparse
import collections
import contextlib
import ctypes
import os
import signal
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, GObject, Gst  # noqa: E402

CASCADE = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml"
# The settings that gst/README.md recommends. A face that the detector misses stays hidden for half a second.
SETTINGS = ["roi-meta=true", "mask=mosaic", "roi-scale=0.125", "roi-grow=0.2", "roi-hold=500000000"]


class Failure(Exception):
    pass


def rectangle_of(text):
    try:
        x, y, width, height = (int(number) for number in text.split(","))
    except ValueError:
        width = height = x = y = 0
    if min(x, y) < 0 or min(width, height) <= 0 or max(x, y, width, height) > 999999999:
        raise argparse.ArgumentTypeError(
            f"--region is X,Y,WIDTH,HEIGHT in pixels, such as 40,60,120,90, not {text}")
    return x, y, width, height


def parse_options():
    parser = argparse.ArgumentParser(description="Hides faces in a video.")
    parser.add_argument("-o", "--output", metavar="FILE", help="write .webm, or else bare RGB frames")
    parser.add_argument("--region", metavar="X,Y,W,H", action="append", type=rectangle_of,
                        help="hide this instead of faces")
    parser.add_argument("--cascade", metavar="FILE", default=CASCADE, help="what OpenCV is to find")
    parser.add_argument("file")
    parser.add_argument("settings", metavar="PROPERTY=VALUE", nargs="*", help="of cudaconv")
    words = sys.argv[1:]
    if "--" in words:  # argparse forgets it where options may come after the file
        end = words.index("--")
        words[end:] = ["./" + word if word.startswith("-") else word for word in words[end + 1:]]
    return parser.parse_intermixed_args(words)


def set_value(hider, spec, text):
    """Returns false where the property does not take this value: Gst.util_set_object_arg() does not say so."""
    kind = spec.value_type
    if kind == GObject.TYPE_BOOLEAN:
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            return False
    elif kind != GObject.TYPE_STRING and not kind.is_a(GObject.TYPE_ENUM):
        if "_" in text or not text.isascii():  # numbers of Python alone
            return False
        try:
            number = float(text) if kind == GObject.TYPE_DOUBLE else int(text)
        except ValueError:
            return False
        if not spec.minimum <= number <= spec.maximum:
            return False
    Gst.util_set_object_arg(hider, spec.name, text)
    return not kind.is_a(GObject.TYPE_ENUM) or hider.get_property(spec.name).value_nick == text


def set_property(hider, setting):
    name, equals, text = setting.partition("=")
    spec = hider.find_property(name)
    if not equals or not spec or not spec.flags & GObject.ParamFlags.WRITABLE:
        raise Failure(f"{setting} is not PROPERTY=VALUE of cudaconv; gst-inspect-1.0 cudaconv lists its properties")
    if not set_value(hider, spec, text):
        raise Failure(f"{setting} is not a value of that property; gst-inspect-1.0 cudaconv lists its values")


def c_function(library, name, *arguments):
    function = getattr(ctypes.CDLL(library), name)
    function.restype, function.argtypes = ctypes.c_void_p, arguments
    return function


def make_marker(regions):
    """Makes a pad probe that marks regions; an application with a detector of its own calls that there.

    Metas may be added only to a writable buffer. A buffer that Python knows is not writable, since Python holds it too:
    so the probe calls the C functions. A buffer that others hold is copied first, without its pixels.
    """
    make_writable = c_function("libgstreamer-1.0.so.0", "gst_mini_object_make_writable", ctypes.c_void_p)
    add_meta = c_function("libgstvideo-1.0.so.0", "gst_buffer_add_video_region_of_interest_meta",
                          ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_uint] * 4)

    def mark(_pad, info):
        info.data = make_writable(info.data)
        for rectangle in regions:
            add_meta(info.data, b"by-hand", *rectangle)
        return Gst.PadProbeReturn.OK

    return mark


def refuse(pad, text):
    """Ends the stream with an error, for a pad probe."""
    error = GLib.Error.new_literal(Gst.stream_error_quark(), text, Gst.StreamError.FAILED)
    hider = pad.get_parent_element()
    hider.post_message(Gst.Message.new_error(hider, error, ""))
    return Gst.PadProbeReturn.DROP


def check_time(pad, info):
    """Muxers leave out frames without a timestamp, and not all say so."""
    if info.get_buffer().pts == Gst.CLOCK_TIME_NONE:
        return refuse(pad, "its frames have no timestamps, which video files need")
    return Gst.PadProbeReturn.OK


def make_checker(regions):
    """Makes a pad probe that refuses frames that a region does not touch: its numbers are wrong.

    The caps alone do not tell: a clip that is turned has another size before its first frame.
    """
    def check(pad, _info):
        caps = pad.get_current_caps()
        structure = caps.get_structure(0)
        # python3-gst-1.0 of GStreamer 1.26 wraps the structure in a context manager.
        with structure if hasattr(structure, "__enter__") else contextlib.nullcontext(structure) as size:
            width, height = size.get_value("width"), size.get_value("height")
        for region in regions:
            if region[0] >= width or region[1] >= height:
                text = f"--region={','.join(map(str, region))} is outside the picture of {width}x{height}"
                return refuse(pad, text)
        return Gst.PadProbeReturn.OK

    return check


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


def print_counts(counts, what, to):
    parts = [f"{number or 'no'} {what}{'s' * (number > 1)} in {frames}" for number, frames in sorted(counts.items())]
    print(f"{sum(counts.values())} frames: {', '.join(parts)}", file=to)
    if not any(counts):
        print(f"warning: no {what} was found in the whole file: nothing is hidden", file=sys.stderr)


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
    if options.output.lower().endswith((".mkv", ".mp4", ".png", ".jpg", ".jpeg")):
        raise Failure("this program writes .webm, or else bare RGB frames; the program in C++ writes .mkv and .mp4")
    if is_stdout(options.output) or os.path.exists(options.output) and not os.path.isfile(options.output):
        return options.output
    options.target = os.path.realpath(options.output)  # a link stays one
    if os.path.exists(options.target) and os.path.exists(options.file) and os.path.samefile(options.target, options.file):
        raise Failure("the output is the input: name another file")
    return f"{options.target}.{os.getpid()}.part"  # another process may write a file of the same name


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


def make_pipeline(options, part, counts):
    if not options.region:
        check_detector(options.cascade)
    line = "uridecodebin name=source expose-all-streams=false caps=video/x-raw(ANY) ! videoconvert ! "
    line += "videoflip video-direction=auto ! "  # detectors find upright faces
    if not options.region:
        # facedetect marks faces by GstVideoRegionOfInterestMetas of type "face", and by default also draws circles
        # around them.
        line += "facedetect name=detector display=false updates=none ! videoconvert ! "
    line += "cudaconv name=hider ! videoconvert ! "
    if not options.output:
        line += "autovideosink"
    elif options.output.lower().endswith(".webm"):
        line += "queue ! vp8enc deadline=1 target-bitrate=4000000 ! webmmux name=muxer ! filesink name=file"
    else:
        line += "video/x-raw,format=RGB ! filesink name=file"
    pipeline = Gst.parse_launch(line)
    pipeline.get_by_name("source").set_property("uri", Gst.filename_to_uri(options.file))
    if options.output:
        pipeline.get_by_name("file").set_uri(Gst.filename_to_uri(part))  # takes any name, a string only UTF-8
    hider = pipeline.get_by_name("hider")
    if options.region:
        hider.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, make_checker(options.region))
        hider.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, make_marker(options.region))
    else:
        pipeline.get_by_name("detector").set_property("profile", options.cascade)
    if pipeline.get_by_name("muxer"):
        hider.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, check_time)
    hider.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, count_regions(counts))
    for setting in SETTINGS + options.settings:
        set_property(hider, setting)
    return pipeline


def play(pipeline, counts):
    """Plays to the end. Returns whether Ctrl-C has ended the stream early, after a frame."""
    interrupted = decoder_missing = False

    def interrupt(*_):
        nonlocal interrupted
        if interrupted or not counts:
            raise KeyboardInterrupt
        interrupted = True
        print("interrupted: finishing the file", file=sys.stderr)
        pipeline.send_event(Gst.Event.new_eos())

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
                Gst.SECOND // 5, Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.ELEMENT)
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
            raise Failure(f"{error.message}\n{details}" if details else error.message)
    finally:
        starter.join(timeout=0.5)
        if not starter.is_alive():
            pipeline.set_state(Gst.State.NULL)
    return interrupted


def main():
    part = options = None
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        os.environ.setdefault("OPENCV_LOG_LEVEL", "OFF")  # keeps OpenCV from warning of cascades that are not used
        Gst.init(None)
        options, counts = parse_options(), collections.Counter()
        to_stdout = options.output and is_stdout(options.output)
        part = part_of(options)
        interrupted = play(make_pipeline(options, part, counts), counts)
        if not counts:
            raise Failure("no frame came through the filter")
        if part != options.output:
            os.replace(part, options.target)
        print_counts(counts, "region" if options.region else "face", sys.stderr if to_stdout else sys.stdout)
        if interrupted:
            sys.exit(130)  # the file is finished, but shorter
    except KeyboardInterrupt:
        sys.exit(130)
    except (Failure, OSError, UnicodeError, GLib.Error) as e:
        sys.exit(f"cudaconv-privacy: {getattr(e, 'message', None) or e}")
    finally:
        if part and part != options.output and os.path.exists(part):  # only after a failure
            os.remove(part)


if __name__ == "__main__":
    main()
