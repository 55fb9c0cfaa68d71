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
from decoders import mend  # these are beside this file
from probes import (check_time, count_regions, depth_of, has_alpha, make_alpha_teller, make_checker, make_depth_teller,
                    make_marker, make_packer)
from stills import Failure, check_animation, decoder_of, direction_of

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


def is_picture(name):
    return name.lower().endswith((".png", ".jpg", ".jpeg"))


def is_still(options):
    return bool(options.output) and is_picture(options.output) and is_picture(options.file)


def own_settings(options):
    return SETTINGS + ([] if is_still(options) else SETTINGS_IN_TIME)


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
