#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/data/training-h200.svg, the losses of docs/data/training-h200.csv.

Usage: training_plot.py [--check]. --check writes nothing and fails where the plot is not current.
The numbers are those of test/Integration/training/train.py (--csv), a column for each operator, the first of which is
what others are compared with. Standard library only.
"""

import csv
import math

from forward_plot import ROOT, label, write_current

DATA = ROOT / "docs/data/training-h200.csv"
PLOT = ROOT / "docs/data/training-h200.svg"

NAMES = {
    "fla": "FLA, Triton", "fla-tilelang": "FLA, TileLang", "flash-qla": "FlashQLA", "fla-torch": "FLA's reference"
}
COLOURS = ["#1f6fb4", "#c04030", "#3a9a4a", "#8a5ab0", "#d09020"]
LEFT, TOP, WIDTH, LOSSES, DIFFERENCES, GAP = 70, 44, 640, 220, 130, 34


def line(x1, y1, x2, y2, colour="#dddddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def curve(heights, step, colour):
    points = " ".join(f"{LEFT + i * step:.1f},{y:.1f}" for i, y in enumerate(heights))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def read():
    """The losses of each operator."""
    with DATA.open() as file:
        header, *rows = csv.reader(text for text in file if not text.startswith("#"))
    return {name: [float(row[i]) for row in rows] for i, name in enumerate(header) if name != "step"}


def draw_losses(runs, step):
    most = math.ceil(max(map(max, runs.values())))
    parts = []
    for tick in range(most + 1):
        y = TOP + LOSSES * (1 - tick / most)
        parts += [line(LEFT, y, LEFT + WIDTH, y), label(LEFT - 6, y + 4, str(tick), "end")]
    for colour, losses in zip(COLOURS, runs.values()):
        parts.append(curve([TOP + LOSSES * (1 - loss / most) for loss in losses], step, colour))
    return [*parts, label(LEFT - 40, TOP + LOSSES / 2, "loss", "end")]


def draw_differences(runs, step):
    """Logarithmic, in parts of the first loss; below the axis is below 1e-5."""
    (_, first), *others = runs.items()
    top, decades = TOP + LOSSES + GAP, 5
    parts = []
    for tick in range(decades + 1):
        y = top + DIFFERENCES * tick / decades
        parts += [line(LEFT, y, LEFT + WIDTH, y), label(LEFT - 6, y + 4, f"1e-{tick}" if tick else "1", "end")]
    for colour, (_, losses) in zip(COLOURS[1:], others):
        logs = (math.log10(max(abs(a - b) / first[0], 1e-5)) for a, b in zip(losses, first))
        parts.append(curve([top - DIFFERENCES * x / decades for x in logs], step, colour))
    text = "difference from gdn, in parts of the first loss"
    return [*parts, label(LEFT + 4, top - 6, text)]


def make_plot(runs):
    steps = len(next(iter(runs.values())))
    step, bottom = WIDTH / (steps - 1), TOP + LOSSES + GAP + DIFFERENCES
    width, height = LEFT + WIDTH + 20, bottom + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect x="0" y="0" width="{width}" height="{height}" fill="#ffffff"/>',
        label(LEFT, 16, "A language model of two Gated DeltaNet layers on an H200, q, k and v in bfloat16", size=12),
    ]
    for i, (name, colour) in enumerate(zip(runs, COLOURS)):
        x = LEFT + WIDTH / len(runs) * i
        parts += [line(x, 30, x + 20, 30, colour), label(x + 25, 34, NAMES.get(name, name))]
    parts += draw_losses(runs, step) + draw_differences(runs, step)
    for tick in range(0, steps + 1, 50):
        parts.append(label(LEFT + min(tick, steps - 1) * step, bottom + 14, str(tick), "middle"))
    parts.append(label(LEFT + WIDTH / 2, bottom + 28, "step", "middle"))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    write_current({PLOT: make_plot(read())})
