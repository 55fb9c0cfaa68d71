#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws the README's plots from what kernel-bench has written: plot.py kernels.json FOLDER. Needs matplotlib."""
import json
import re
import sys

import matplotlib

matplotlib.use('svg')
matplotlib.rcParams['svg.hashsalt'] = 'cudaconv'  # the same file for the same figures
matplotlib.rcParams['svg.fonttype'] = 'none'
import matplotlib.pyplot as plt  # noqa: E402

FAMILIES = {
    'custom': r'custom (\d+)x\d+$',
    'gauss': r'gauss ?(\d+)$',
    'box': r'box ?(\d+)$',
    'dilate': r'dilate (\d+)$',
    'median': r'median (\d+)$',
}


def side(label, family):
    match = re.match(FAMILIES[family], label)
    return int(match.group(1)) if match else None


def draw(axes, title, lines):
    for name, points in lines.items():
        if points:
            axes.plot(*zip(*sorted(points)), marker='o', markersize=3, label=name)
    axes.set(title=title, xlabel='side of the mask', yscale='log')
    ticks = sorted({x for points in lines.values() for x, _ in points})
    axes.set_xticks(ticks, ticks)
    axes.grid(alpha=0.3)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})
    plt.close(figure)


def families(results, path):
    """Ratio to a copy by the side of the mask, ours and NPP's."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    chosen = [r for r in results if r['table'] == 'goals' and r['width'] == 3840]
    for axis, who, key in ((axes[0], 'cudaconv', 'us'), (axes[1], 'NPP', 'npp_us')):
        lines = {f: [(side(r['filter'], f), r[key] / r['copy_us']) for r in chosen if side(r['filter'], f) and r[key]]
                 for f in FAMILIES}
        draw(axis, f'{who}, RGBA 3840x2160', lines)
    axes[0].set_ylabel('time of a copy')
    axes[0].legend(fontsize=8)
    save(figure, path)


def methods(results, path):
    """The methods beside each other and NPP, masks without factors."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    chosen = [r for r in results if r['table'] == 'seeds' and side(r['filter'], 'custom') and r['width'] == 1024]
    lines = {}
    for r in chosen:
        lines.setdefault(r['method'], []).append((side(r['filter'], 'custom'), r['us'] / r['copy_us']))
    lines['NPP'] = list({(side(r['filter'], 'custom'), r['npp_us'] / r['copy_us']) for r in chosen if r['npp_us']})
    draw(axis, 'custom masks, RGB 1024x1024', lines)
    axis.set_ylabel('time of a copy')
    axis.legend(fontsize=8)
    save(figure, path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        results = json.load(file)['results']
    families(results, sys.argv[2] + '/speed-by-size.svg')
    methods(results, sys.argv[2] + '/speed-by-method.svg')


main()
