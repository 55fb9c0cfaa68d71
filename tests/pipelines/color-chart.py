#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Converts a chart of colours in each colorimetry: color-chart.py CUDACONV_PLAY SUFFIX... FFmpeg makes the chart and
# decodes it before and after, with the colours that it finds in the files. Prints the largest error for each file, and
# exits with 1 where it is above 2 codes.
import subprocess
import sys

play, suffixes = sys.argv[1], sys.argv[2:]
LEVELS = (16, 128, 235)
PATCHES = [(r, g, b) for r in LEVELS for g in LEVELS for b in LEVELS]
PATCHES += [(0, 0, 0), (255, 255, 255), (200, 30, 40), (255, 0, 0), (0, 255, 0), (0, 0, 255)]
SIDE, MOST = 16, 2  # pixels, codes
WIDTH, HEIGHT = len(PATCHES) * SIDE, 2 * SIDE
EXACT = "sws_flags=accurate_rnd+full_chroma_int+bitexact"
# The matrix for the scaler, and what the file says: matrix, primaries, transfer.
KINDS = {
    "bt601": ("bt601", "smpte170m", "smpte170m", "smpte170m"),
    "bt709": ("bt709", "bt709", "bt709", "bt709"),
    "bt2020": ("bt2020", "bt2020nc", "bt2020", "bt2020-10"),
}


def ffmpeg(*arguments, picture=None):
    line = ["ffmpeg", "-v", "error", "-y", *arguments]
    return subprocess.run(line, input=picture, stdout=subprocess.PIPE, check=True).stdout


def colors_of(file):
    raw = ffmpeg("-i", file, "-frames:v", "1", "-vf", f"scale={EXACT},format=rgb24", "-f", "rawvideo", "-")
    row = SIDE * WIDTH
    return [raw[3 * (row + SIDE * i + SIDE // 2) :][:3] for i in range(len(PATCHES))]


def make_chart(file, kind, values):
    matrix, space, primaries, transfer = KINDS[kind]
    picture = b"".join(bytes(color) * SIDE for color in PATCHES) * HEIGHT
    ffmpeg(*f"-f rawvideo -pix_fmt rgb24 -s {WIDTH}x{HEIGHT} -r 25 -i - -vf".split(),
           f"scale=out_color_matrix={matrix}:out_range={values}:{EXACT},format=yuv420p",
           *f"-colorspace {space} -color_primaries {primaries} -color_trc {transfer} -color_range {values}".split(),
           *f"-c:v libx264 -qp 0 {file}".split(), picture=3 * picture)


failed = False
for kind in KINDS:
    for values in "tv", "pc":
        make_chart("chart.mkv", kind, values)
        want = colors_of("chart.mkv")
        for suffix in suffixes:
            subprocess.run([play, "-q", "-o", "written" + suffix, "chart.mkv", "mask=identity"], check=True)
            got = colors_of("written" + suffix)
            error = max(abs(a - b) for x, y in zip(want, got) for a, b in zip(x, y))
            print(kind, values, suffix, "largest error", error)
            failed |= error > MOST
sys.exit(failed)
