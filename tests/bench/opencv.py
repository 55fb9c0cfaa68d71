#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the CPU backend with the OpenCV that Python has, for example the wheel of OpenCV 5 with IPP.

  opencv.py CPU-BENCH [--rounds=N] [--threads=N] [--only=TEXT] [--json=FILE]

Needs: pip install opencv-python-headless, version 5 or later, which brings NumPy; else it ends with 77. CPU-BENCH is
BUILD/tests/bench/cpu-bench. Both filter random frames of 1920x1080 in turn, N rounds of all filters, with the same
number of threads. Figures are the minima of all rounds, in milliseconds: other load on the machine affects them least.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import cv2
    import numpy
except ImportError as error:
    print(f'SKIP: {error}')
    sys.exit(77)
if int(cv2.__version__.split('.')[0]) < 5:
    print(f'SKIP: OpenCV {cv2.__version__} is older than 5')
    sys.exit(77)

WIDTH, HEIGHT, FRAMES, FEWEST, SECONDS = 1920, 1080, 4, 5, 0.1
CHANNELS = {'GRAY8': 1, 'RGBA': 4, 'RGB': 3}
EDGE = cv2.BORDER_REPLICATE


def sigma_of(size):
    return 0.3 * ((size - 1) * 0.5 - 1) + 0.8


def gauss(size, sigma=0):
    return lambda a, b: cv2.GaussianBlur(a, (size, size), sigma, dst=b, borderType=EDGE)


def box(size):
    return lambda a, b: cv2.blur(a, (size, size), dst=b, borderType=EDGE)


def dilate(size):
    element = numpy.ones((size, size), numpy.uint8)
    return lambda a, b: cv2.dilate(a, element, dst=b, borderType=EDGE)


def median(size):
    return lambda a, b: cv2.medianBlur(a, size, dst=b)


def custom(size):
    mask = numpy.random.default_rng(size).integers(-128, 128, (size, size)).astype(numpy.float32) / (128 * size)
    return lambda a, b: cv2.filter2D(a, -1, mask, dst=b, borderType=EDGE)


def sobel_x():
    sums = {}  # stay allocated from run to run

    def run(a, b):
        sums[a.shape] = cv2.Sobel(a, cv2.CV_16S, 1, 0, dst=sums.get(a.shape), borderType=EDGE)
        cv2.convertScaleAbs(sums[a.shape], dst=b)
    return run


def bilateral(size):
    return lambda a, b: cv2.bilateralFilter(a, size, 25.5, sigma_of(size), dst=b, borderType=EDGE)


def filters():
    """The filters by cpu-bench's names."""
    return {
        **{f'gauss{n}': gauss(n) for n in (3, 5, 7, 9)},
        **{f'gauss {n}': gauss(n, sigma_of(n)) for n in (15, 31)},
        **{f'box {n}': box(n) for n in (3, 5, 15, 31)},
        **{f'dilate {n}': dilate(n) for n in (3, 5, 15, 31)},
        **{f'median {n}': median(n) for n in (3, 5, 7, 15)},
        **{f'custom {n}x{n}': custom(n) for n in (5, 7, 15)},
        'sobel-x': sobel_x(),
        **{f'bilateral {n}': bilateral(n) for n in (5, 9)},
    }


def times_of_opencv(chosen, least):
    for layout, channels in CHANNELS.items():
        shape = (HEIGHT, WIDTH, channels) if channels > 1 else (HEIGHT, WIDTH)
        random = numpy.random.default_rng(1)
        source = [random.integers(0, 256, shape, numpy.uint8) for _ in range(FRAMES)]
        target = [numpy.empty_like(source[0]) for _ in range(FRAMES)]
        for name, run in chosen.items():
            if channels > 1 and (channels == 3) != name.startswith('bilateral'):
                continue
            for i in range(FRAMES):
                run(source[i], target[i])
            total, i = 0, 0
            while i < FEWEST or total < SECONDS:
                start = time.perf_counter()
                run(source[i % FRAMES], target[i % FRAMES])
                spent = time.perf_counter() - start
                total += spent
                i += 1
                least[layout, name] = min(least.get((layout, name), spent * 1e3), spent * 1e3)


def times_of_bench(options, chosen, least):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'times.json'
        subprocess.run([options.bench, '--alone', '--minima', f'--threads={options.threads}', f'--seconds={SECONDS}',
                        f'--size={WIDTH}x{HEIGHT}', f'--filters={",".join(chosen)}', f'--json={path}'],
                       check=True, stdout=subprocess.DEVNULL)
        found = json.loads(path.read_text())
    for r in found['results']:
        key = r['format'], r['filter']
        if r['format'] in CHANNELS:
            least[key] = min(least.get(key, r['ms']), r['ms'])
    return found['vectors']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('bench', metavar='CPU-BENCH')
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--only', default='', help='only filters whose name contains this')
    parser.add_argument('--json', type=pathlib.Path)
    options = parser.parse_args()
    cv2.setNumThreads(options.threads)
    chosen = {name: run for name, run in filters().items() if options.only in name}
    ours, theirs, vectors = {}, {}, ''
    for _ in range(options.rounds):
        vectors = times_of_bench(options, chosen, ours)
        times_of_opencv(chosen, theirs)
    print(f'{WIDTH}x{HEIGHT}, {options.threads} threads, vectors: {vectors}, OpenCV {cv2.__version__}, '
          f'minima of {options.rounds} rounds')
    print(f'{"":22}{"ms":>8}{"OpenCV ms":>11}{"times":>8}')
    for layout, name in theirs:
        a, b = ours[layout, name], theirs[layout, name]
        print(f'{layout:8}{name:14}{a:8.3f}{b:11.3f}{b / a:8.2f}')
    if options.json:
        rows = [{'format': f, 'filter': n, 'ms': ours[f, n], 'opencv_ms': theirs[f, n]} for f, n in theirs]
        options.json.write_text(json.dumps({'vectors': vectors, 'opencv': cv2.__version__, 'results': rows}, indent=1))


if __name__ == '__main__':
    main()
