#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Puts what kernel-bench has measured into tests/bench/README.md: plot.py tests/bench/h200.json

Draws the plots in pipelines/pictures and writes the tables between that file's marks. Needs matplotlib.
"""
import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use('svg')
matplotlib.rcParams['svg.hashsalt'] = 'cudaconv'  # the same figures give the same file
matplotlib.rcParams['svg.fonttype'] = 'none'
import matplotlib.pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = ((1920, 1080), (3840, 2160), (7680, 4320))
FAMILIES = {
    'custom': r'custom (\d+)x\d+$',
    'gauss': r'gauss ?(\d+)$',
    'box': r'box ?(\d+)$',
    'dilate': r'dilate (\d+)$',
    'dilate ellipse': r'dilate ellipse (\d+)$',
    'median': r'median (\d+)$',
}
LARGEST = 127  # side of a mask in the plots
METHODS = ('auto', 'global', 'constant', 'tiled', 'tiled-cached', 'blocked', 'cascade', 'separable')


def side(label, family):
    match = re.match(FAMILIES[family], label)
    return int(match.group(1)) if match else None


# ---- Plots


def draw(axes, title, lines, ticks, xlabel='side of the mask'):
    for color, (name, points) in enumerate(lines.items()):  # the colour of a line does not depend on empty lines
        if points:
            axes.plot(*zip(*sorted(points)), marker='o', markersize=3, label=name, color=f'C{color}')
    axes.axhline(1, color='black', linewidth=0.8, linestyle='--')
    axes.set(title=title, xlabel=xlabel, xscale='log', yscale='log')
    axes.set_xticks(ticks, ticks)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def save(figure, name):
    figure.tight_layout()
    figure.savefig(ROOT / 'pipelines/pictures' / name, metadata={'Date': None})
    plt.close(figure)


def plot_families(results):
    """Plots times relative to a copy by the side of the mask, of cudaconv and of NPP."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    chosen = [r for r in results if r['table'] in ('goals', 'sizes') and r['format'] == 'RGBA' and r['width'] == 3840]
    for axis, who, key in ((axes[0], 'cudaconv', 'us'), (axes[1], 'NPP', 'npp_us')):
        # A mask in both tables is drawn once, from the later table.
        lines = {f: list({side(r['filter'], f): r[key] / r['copy_us'] for r in chosen
                          if side(r['filter'], f) and side(r['filter'], f) <= LARGEST and r[key]}.items())
                 for f in FAMILIES}
        draw(axis, f'{who}, RGBA 3840x2160', lines, (3, 5, 7, 11, 15, 31, 63, 127))
    axes[0].set_ylabel('times of a copy')
    axes[0].legend(fontsize=8, loc='upper left')
    save(figure, 'speed-by-size.svg')


def plot_sigmas(results):
    """Plots times of Gaussians relative to a copy by their standard deviation."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    lines = {}
    for r in results:
        match = re.match(r'gauss sigma (\d+)$', r['filter'])
        if not match or r['width'] != 3840:
            continue
        lines.setdefault(r['format'], []).append((int(match.group(1)), r['us'] / r['copy_us']))
        if r['npp_us']:
            lines.setdefault('NPP ' + r['format'], []).append((int(match.group(1)), r['npp_us'] / r['copy_us']))
    draw(axis, 'gauss, 3840x2160', lines, (1, 2, 4, 8, 16, 32, 64, 128, 250), 'sigma, pixels')
    axis.set_ylabel('times of a copy')
    axis.legend(fontsize=8)
    save(figure, 'speed-by-sigma.svg')


def plot_methods(results):
    """Plots the methods and NPP side by side, for masks that are not separable."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    chosen = [r for r in results if r['table'] == 'seeds' and side(r['filter'], 'custom') and r['width'] == 1024]
    lines = {}
    for r in chosen:
        lines.setdefault(r['method'], []).append((side(r['filter'], 'custom'), r['us'] / r['copy_us']))
    lines['NPP'] = list({(side(r['filter'], 'custom'), r['npp_us'] / r['copy_us']) for r in chosen if r['npp_us']})
    draw(axis, 'custom masks, RGB 1024x1024', lines, (5, 7, 11))
    axis.set_ylabel('times of a copy')
    axis.legend(fontsize=8)
    save(figure, 'speed-by-method.svg')


# ---- Tables


def number(us):
    return f'{us:.1f}' if us < 100 else f'{us:.0f}'


def timed(result):
    return f"{number(result['us'])} ({result['us'] / result['copy_us']:.2f})"


def ratio(result, key='us'):
    return f"{result[key] / result['copy_us']:.2f}"


def row(cells):
    return '| ' + ' | '.join(cells) + ' |'


def table(header, rows):
    return '\n'.join([row(header), '|' + '---|' * len(header)] + [row(r) for r in rows])


def speed_table(results):
    found = {(r['filter'], r['width']): r for r in results if r['table'] == 'goals'}
    rows = [['a copy'] + [c for w, _ in SIZES
                          for c in (number(next(r['copy_us'] for r in found.values() if r['width'] == w)), '')]]
    for label in dict.fromkeys(f for f, _ in found):
        cells = [label]
        for width, _ in SIZES:
            r = found[label, width]
            cells += [timed(r), number(r['npp_us']) if r['npp_us'] else '']
        rows.append(cells)
    return table([''] + [c for w, h in SIZES for c in (f'{w}x{h}', 'NPP')], rows)


def formats_table(results):
    chosen = [r for r in results if r['table'] == 'formats' and r['width'] == 3840]
    formats = list(dict.fromkeys(r['format'] for r in chosen))
    ratios = {(r['format'], r['filter']): ratio(r) for r in chosen}
    rows = [[label] + [ratios[f, label] for f in formats] for label in dict.fromkeys(r['filter'] for r in chosen)]
    return table([''] + formats, rows)


def sizes_table(results):
    chosen = [r for r in results if r['table'] == 'sizes']
    formats = list(dict.fromkeys(r['format'] for r in chosen))
    found = {(r['format'], r['width'], r['filter']): r for r in chosen}

    def cell(format_, width, label, key='us'):
        r = found.get((format_, width, label))
        return ratio(r, key) if r and r[key] else ''

    rows = [[label, cell('RGBA', 1920, label), cell('RGBA', 3840, label), cell('RGBA', 3840, label, 'npp_us')] +
            [cell(f, 3840, label) for f in formats if f != 'RGBA']
            for label in dict.fromkeys(r['filter'] for r in chosen)]
    return table(['', 'RGBA 1920x1080', 'RGBA', 'NPP'] + [f for f in formats if f != 'RGBA'], rows)


def frames_table(results, name):
    chosen = [r for r in results if r['table'] == name]
    frames = list(dict.fromkeys((r['format'], r['width'], r['height']) for r in chosen))
    found = {(r['format'], r['width'], r['height'], r['filter']): r for r in chosen}
    rows = [['a copy'] + [number(next(r['copy_us'] for k, r in found.items() if k[:3] == f)) for f in frames]]
    rows += [[label] + [timed(found[f + (label,)]) for f in frames] for label in dict.fromkeys(r['filter'] for r in chosen)]
    return table([''] + [f'{f} {w}x{h}' for f, w, h in frames], rows)


def seeds_table(results):
    rows = []
    chosen = [r for r in results if r['table'] == 'seeds']
    for key in dict.fromkeys((r['format'], r['width'], r['height'], r['filter']) for r in chosen):
        us = {r['method']: r for r in chosen if (r['format'], r['width'], r['height'], r['filter']) == key}
        any_of = next(iter(us.values()))
        rows.append([f'{key[0]} {key[1]}x{key[2]}', key[3], number(any_of['copy_us'])] +
                    [number(us[m]['us']) if m in us else '' for m in METHODS] +
                    [number(any_of['npp_us']) if any_of['npp_us'] else ''])
    return table(['frame', 'filter', 'a copy', *METHODS, 'NPP'], rows)


def replace(text, mark, content):
    pattern = re.compile(rf'(<!-- {mark} -->\n).*?(<!-- end -->)', re.S)
    if not pattern.search(text):
        sys.exit(f'tests/bench/README.md has no mark "{mark}"')
    return pattern.sub(lambda m: m.group(1) + content + '\n' + m.group(2), text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())['results']
    plot_families(results)
    plot_methods(results)
    readme = ROOT / 'tests/bench/README.md'
    text = readme.read_text()
    if any(r['table'] == 'sizes' for r in results):
        plot_sigmas(results)
        text = replace(text, 'speed of sizes', sizes_table(results))
    for mark, content in (('speed', speed_table), ('speed of formats', formats_table),
                          ('speed of widths', lambda r: frames_table(r, 'widths')),
                          ('speed of packed formats', lambda r: frames_table(r, 'packed')),
                          ('speed of methods', seeds_table)):
        text = replace(text, mark, content(results))
    readme.write_text(text)


main()
