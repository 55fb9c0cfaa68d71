# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decoders and demuxers that need care, as in decoders.cpp: for cudaconv-privacy.py and cluster/filter-video."""
import ctypes
import re
import time

from gi.repository import Gst


def c_function(library, name, *arguments):
    function = getattr(ctypes.CDLL(library), name)
    function.restype, function.argtypes = ctypes.c_void_p, arguments
    return function


class Buffer(ctypes.Structure):
    """GstBuffer as in gst/gstbuffer.h, as far as it is used here."""
    _fields_ = [("mini_object", ctypes.c_uint64 * 8), ("pool", ctypes.c_void_p), ("pts", ctypes.c_uint64),
                ("dts", ctypes.c_uint64), ("duration", ctypes.c_uint64)]


def writable(info):
    """The buffer of a probe, which Python itself knows only as one that is read."""
    make_writable = c_function("libgstreamer-1.0.so.0", "gst_mini_object_make_writable", ctypes.c_void_p)
    info.data = make_writable(info.data)
    return Buffer.from_address(info.data)


def caps_in(info):
    """The caps of an event as text; empty for other events."""
    event = info.get_event()
    return event.parse_caps().to_string() if event.type == Gst.EventType.CAPS else ""


def end_gif(demuxer):
    """avdemux_gif of GStreamer 1.22 reads on and on at the end of the file. Some reads there are usual."""
    usual, reads = 100, 0

    def read(pad, info):
        nonlocal reads
        known, size = pad.peer_query_duration(Gst.Format.BYTES)
        if known and info.offset >= size:
            reads += 1
            if reads == usual:
                for source in demuxer.srcpads:
                    source.push_event(Gst.Event.new_eos())
            elif reads > usual:
                time.sleep(0.01)
        return Gst.PadProbeReturn.PASS

    kind = Gst.PadProbeType.BUFFER | Gst.PadProbeType.PULL | Gst.PadProbeType.BLOCK
    demuxer.get_static_pad("sink").add_probe(kind, read)


def mend_gif_times(decoder):
    """avdec_gif gives all frames the time of the first. It gives a frame for each buffer."""
    times = None

    def note_times(_pad, info):
        nonlocal times
        coded = Buffer.from_address(info.data)
        times = coded.pts, coded.duration
        return Gst.PadProbeReturn.OK

    def set_times(_pad, info):
        frame = writable(info)
        frame.pts, frame.duration = times
        return Gst.PadProbeReturn.OK

    decoder.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, note_times)
    decoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, set_times)


def mend_avi_times(demuxer):
    """avidemux says that a key frame is shown when it is decoded. Without this time decoders put all frames in order."""
    def forget(_pad, info):
        writable(info).pts = Gst.CLOCK_TIME_NONE
        return Gst.PadProbeReturn.OK

    def take(_demuxer, pad):
        caps = pad.get_current_caps()
        if caps and caps.to_string().startswith("video/mpeg,"):
            pad.add_probe(Gst.PadProbeType.BUFFER, forget)

    demuxer.connect("pad-added", take)


def mend_range(parser):
    """qtdemux before GStreamer 1.26 says limited range of full range too, which cameras and phones write.

    The parsers of H.264 and H.265 find the range in the stream, but believe the demuxer: its colours are hidden from
    them, and come back where the stream names none.
    """
    said = ""

    def hide(pad, info):
        nonlocal said
        found = re.search(r", colorimetry=\(string\)(bt\w+|2:[\d:]+)", caps_in(info))  # of limited range
        if not found:
            return Gst.PadProbeReturn.OK
        said = found[0]
        pad.send_event(Gst.Event.new_caps(Gst.Caps.from_string(caps_in(info).replace(said, ""))))
        return Gst.PadProbeReturn.DROP

    def show(pad, info):
        text = caps_in(info)
        if not text or not said or "colorimetry=" in text:
            return Gst.PadProbeReturn.OK
        pad.push_event(Gst.Event.new_caps(Gst.Caps.from_string(text + said)))
        return Gst.PadProbeReturn.DROP

    if Gst.version() < (1, 26):
        parser.get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, hide)
        parser.get_static_pad("src").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, show)


def boxes_in(data, box, kind):
    """Where the data of the boxes of a type begin and end, in another box of an MP4 file."""
    at, end = box
    while end - at >= 8 and 8 <= (size := int.from_bytes(data[at:at + 4], "big")) <= end - at:
        if data[at + 4:at + 8] == kind:
            yield at + 8, at + size
        at += size


def length_in(data, boxes):
    """Where the duration is in a box `mvhd` or `mdhd`, and its units a second, which come before it."""
    begin, _ = next(boxes, (0, 0))
    wide = data[begin:begin + 1] == b"\1"
    duration = slice(begin + 24, begin + 32) if wide else slice(begin + 16, begin + 20)
    return duration, int.from_bytes(data[duration.start - 4:duration.start], "big") if begin else 0


def latest_entry(data, track):
    """Where the edit list of a track enters its media at the latest, in units of the media."""
    latest = 0
    for edits in boxes_in(data, track, b"edts"):
        for begin, end in boxes_in(data, edits, b"elst"):
            size, at = (20, slice(8, 16)) if data[begin:begin + 1] == b"\1" else (12, slice(4, 8))
            for entry in range(begin + 8, end - size + 1, size):
                latest = max(latest, int.from_bytes(data[entry:entry + size][at], "big", signed=True))
    return latest


def watch_movie(pad, look):
    """Calls look(data) with the box `moov`, which describes all streams, before it passes the pad. look() returns the
    box as it is to go on. A file that comes piece by piece, as from a network, waits until the box is whole."""
    pieces, skipped, done, passing = b"", 0, False, False
    fill = c_function("libgstreamer-1.0.so.0", "gst_buffer_fill", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p,
                      ctypes.c_size_t)

    def take(size):
        nonlocal pieces
        part, pieces = pieces[:size], pieces[size:]
        return part

    def following():
        """The data that may go on; nothing: not yet."""
        nonlocal skipped, done
        if done or skipped:
            part = take(len(pieces) if done else skipped)
            skipped -= min(skipped, len(part))
            return part
        size, wide = int.from_bytes(pieces[:4], "big"), int.from_bytes(pieces[8:16], "big")
        if len(pieces) < 8 or size == 1 and len(pieces) < 16:
            return b""
        found = size > 1 and pieces[4:8] == b"moov"
        if found and len(pieces) < size:
            return b""
        skipped = 0 if found else wide if size == 1 else size
        done = found or skipped < 8  # the last box may have no size
        return look(take(size)) if found else following()

    def pass_on():
        nonlocal passing
        passing = True
        while pieces and (part := following()):
            pad.chain(Gst.Buffer.new_wrapped(part))
        passing = False

    def on_data(pad, info):
        nonlocal pieces, skipped, done
        if not info.type & Gst.PadProbeType.BUFFER:
            kind = info.get_event().type
            if kind == Gst.EventType.EOS and not passing:
                done = True
                pass_on()
            if kind in (Gst.EventType.FLUSH_STOP, Gst.EventType.SEGMENT):  # the input goes on elsewhere, at a box
                pieces, skipped = b"", 0
            return Gst.PadProbeReturn.OK
        if done or passing:
            return Gst.PadProbeReturn.OK
        buffer = info.get_buffer()
        size = buffer.get_size()
        whole = buffer.extract_dup(4, 4) == b"moov" and int.from_bytes(buffer.extract_dup(0, 4), "big") == size
        if not whole and (not info.type & Gst.PadProbeType.PUSH or skipped >= size and not pieces):
            skipped -= min(skipped, size)
            return Gst.PadProbeReturn.OK
        data = buffer.extract_dup(0, size)
        del buffer  # Python holds it no more
        if whole:
            writable(info)
            fill(info.data, 0, look(data), size)
            return Gst.PadProbeReturn.OK
        pieces += data
        pass_on()
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.EVENT_DOWNSTREAM | Gst.PadProbeType.EVENT_FLUSH
                  | Gst.PadProbeType.SCHEDULING, on_data)


def mend_durations(demuxer):
    """qtdemux ends each stream after the duration of the whole, but counts from the beginning of the media, also where
    an edit list leaves that out: a clip that was cut without encoding loses its end, or all. It also leaves out a video
    that is shorter than a fifth of the whole, as previews are. It is told longer durations."""
    def lengthen(data):
        movie = 8, len(data)
        whole, scale = length_in(data, boxes_in(data, movie, b"mvhd"))
        length = int.from_bytes(data[whole], "big") if scale else 0
        most, videos = length, []
        for track in boxes_in(data, movie, b"trak"):
            for media in boxes_in(data, track, b"mdia"):
                own, units = length_in(data, boxes_in(data, media, b"mdhd"))
                if units and length:
                    most = max(most, length + -(-latest_entry(data, track) * scale // units))
                    kind, _ = next(boxes_in(data, media, b"hdlr"), (0, 0))
                    videos += [(own, units)] if data[kind + 8:kind + 12] == b"vide" else []
        told = [(whole, most)] if most > length else []
        told += [(own, -(-most * units // (5 * scale))) for own, units in videos if len(videos) == 1]
        longer = bytearray(data)
        for place, value in told:
            size = place.stop - place.start
            if value > int.from_bytes(data[place], "big"):
                longer[place] = min(value, (1 << 8 * size) - 2).to_bytes(size, "big")
        return bytes(longer)

    watch_movie(demuxer.get_static_pad("sink"), lengthen)


MENDING = {"avdemux_gif": end_gif, "avdec_gif": mend_gif_times, "avidemux": mend_avi_times, "h264parse": mend_range,
           "h265parse": mend_range, "qtdemux": mend_durations}


def mend(_pipeline, _bin, element):
    """For the signal deep-element-added of a pipeline."""
    factory = element.get_factory()
    if factory and factory.get_name() in MENDING:
        MENDING[factory.get_name()](element)
