#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Converts a chart of colours in each colorimetry: color-chart.py PROGRAM SUFFIX... PROGRAM is cudaconv-play, or
# cudaconv-privacy.py, which $PYTHON runs. FFmpeg makes the chart and decodes it before and after, with the colours that
# it finds in the files. Prints the largest error for each file, and exits with 1 where it is above 2 codes, or 8 by way
# of RGB.
import os
import subprocess
import sys

program, suffixes = sys.argv[1], sys.argv[2:]
SCRIPT = program.endswith(".py")
COMMAND = [os.environ["PYTHON"], program] if SCRIPT else [program, "-q"]
SETTINGS = ["--region=0,0,1,1", "roi-grow=0", "mask=median"] if SCRIPT else ["mask=identity"]
LEVELS = (16, 128, 235)
PATCHES = [(r, g, b) for r in LEVELS for g in LEVELS for b in LEVELS]
PATCHES += [(0, 0, 0), (255, 255, 255), (200, 30, 40), (255, 0, 0), (0, 255, 0), (0, 0, 255)]
SIDE, MOST = 16, 8 if SCRIPT else 2  # pixels, codes
WIDTH, HEIGHT = len(PATCHES) * SIDE, 2 * SIDE
EXACT = "sws_flags=accurate_rnd+full_chroma_int+bitexact"
# The matrix for the scaler, and what the file says: matrix, primaries, transfer.
KINDS = {
    "bt601": ("bt601", "smpte170m", "smpte170m", "smpte170m"),
    "bt709": ("bt709", "bt709", "bt709", "bt709"),
    "bt2020": ("bt2020", "bt2020nc", "bt2020", "bt2020-10"),
    "not named": ("bt601", "unknown", "unknown", "unknown"),
}
GREYS = ("gray", "gray16le")  # in full range


def ffmpeg(*arguments, picture=None):
    line = ["ffmpeg", "-v", "error", "-y", *arguments]
    return subprocess.run(line, input=picture, stdout=subprocess.PIPE, check=True).stdout


def colors_of(file):
    raw = ffmpeg("-i", file, "-frames:v", "1", "-vf", f"scale={EXACT},format=rgb24", "-f", "rawvideo", "-")
    row = SIDE * WIDTH
    return [raw[3 * (row + SIDE * i + SIDE // 2) :][:3] for i in range(len(PATCHES))]


def write_chart(file, scaling, coding):
    picture = b"".join(bytes(color) * SIDE for color in PATCHES) * HEIGHT
    ffmpeg(*f"-f rawvideo -pix_fmt rgb24 -s {WIDTH}x{HEIGHT} -r 25 -i - -vf".split(), scaling, *coding.split(), file,
           picture=3 * picture)


def make_chart(file, kind, values):
    matrix, space, primaries, transfer = KINDS[kind]
    write_chart(file, f"scale=out_color_matrix={matrix}:out_range={values}:{EXACT},format=yuv420p",
                f"-colorspace {space} -color_primaries {primaries} -color_trc {transfer} -color_range {values} "
                "-c:v libx264 -qp 0")


def errors_of(name, chart="chart.mkv"):
    """Prints the largest error for each kind of file, and returns whether one is too large."""
    want, worst = colors_of(chart), 0
    for suffix in suffixes:
        subprocess.run([*COMMAND, "-o", "written" + suffix, chart, *SETTINGS], check=True)
        got = colors_of("written" + suffix)
        error = max(abs(a - b) for x, y in zip(want, got) for a, b in zip(x, y))
        print(name, suffix, "largest error", error)
        worst = max(worst, error)
    return worst > MOST


failed = False
for kind in KINDS:
    for values in "tv", "pc":
        make_chart("chart.mkv", kind, values)
        failed |= errors_of(f"{kind} {values}")
make_chart("chart.mp4", "bt709", "pc")  # whose range qtdemux misreads before GStreamer 1.26
failed |= errors_of("bt709 pc in .mp4", "chart.mp4")
for grey in GREYS:
    write_chart("chart.mkv", f"scale={EXACT},format={grey}", "-c:v ffv1")
    failed |= errors_of(grey)
sys.exit(failed)
