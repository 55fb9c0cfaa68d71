# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures in files, for cudaconv-privacy.py, as in stills.cpp."""
import os
import re
import sys

from gi.repository import Gst


class Failure(Exception):
    pass


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
