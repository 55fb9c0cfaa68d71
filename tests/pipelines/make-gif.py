#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Writes a GIF of three frames, 16x16 in red, green and blue, which last 100, 200 and 300 ms: make-gif.py FILE [ROUNDS].
# 0 rounds are endless; without ROUNDS the file has no word for them.
import struct
import sys

SIDE = 16
LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01"


def picture(color):
    """The LZW codes of SIDE * SIDE pixels. A clear code before each two keeps all codes at three bits."""
    codes = [code for _ in range(SIDE * SIDE // 2) for code in (4, color, color)] + [5]
    value = sum(code << 3 * i for i, code in enumerate(codes))
    data = value.to_bytes((3 * len(codes) + 7) // 8, "little")
    blocks = [data[i : i + 255] for i in range(0, len(data), 255)]
    return b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


gif = b"GIF89a" + struct.pack("<HHBBB", SIDE, SIDE, 0xF1, 0, 0) + bytes(3) + b"\xff\0\0" + b"\0\xff\0" + b"\0\0\xff"
if len(sys.argv) > 2:
    gif += LOOP + struct.pack("<HB", int(sys.argv[2]), 0)
for frame in range(3):
    gif += b"\x21\xf9\x04\x04" + struct.pack("<HBB", 10 * (frame + 1), 0, 0)
    gif += b"\x2c" + struct.pack("<HHHHBB", 0, 0, SIDE, SIDE, 0, 2) + picture(frame + 1)
with open(sys.argv[1], "wb") as file:
    file.write(gif + b"\x3b")
