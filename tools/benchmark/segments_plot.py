#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the plot of docs/data/segments-sweep-h200.csv: time of the best number of segments over that of whole sequences.

Usage: segments_plot.py [--check]. Rewrites docs/data/segments-sweep-h200.svg, which docs/experiments/split.md shows;
--check writes nothing and fails where it is not current. Standard library only.
"""

import csv

from forward_plot import ROOT, label, rectangle, write_current

DATA = ROOT / "docs/data/segments-sweep-h200.csv"
PLOT = ROOT / "docs/data/segments-sweep-h200.svg"

#: The kinds of gates, and what they are.
GATES = {"qla": "mean log gate -0.05, a quarter of the heads at 0", "-0.001": "mean log gate -0.001 in all heads",
         "0": "log gates of 0"}
LEFT, TOP, CELL, HEIGHT, GAP = 84, 66, 76, 34, 46


def read_times():
    """Times of whole sequences by (heads, tokens), and of segments by (heads, tokens, gates): {segments: us}."""
    whole, split = {}, {}
    with DATA.open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            size, us = (int(row["heads"]), int(row["tokens"])), float(row["us"])
            if row["segments"] == "0":
                whole[size] = min(us, whole.get(size, us))
            else:
                split.setdefault((*size, row["gates"]), {})[int(row["segments"])] = us
    return whole, split


def colour_of(ratio):
    """Green where segments gain, red where they lose."""
    strength = min(1.0, abs(ratio - 1) / 0.8)
    fade = lambda channel: round(255 + (channel - 255) * strength)
    return "#{:02x}{:02x}{:02x}".format(*map(fade, (47, 140, 80) if ratio < 1 else (190, 60, 50)))


def draw_cell(x, y, times, whole_us):
    segments, us = min(times.items(), key=lambda entry: entry[1])
    return [rectangle(x, y, CELL - 2, HEIGHT - 2, colour_of(us / whole_us)),
            label(x + CELL / 2, y + 14, f"{us / whole_us:.2f}", "middle", 12),
            label(x + CELL / 2, y + 27, f"{us:.0f} us, {segments}", "middle", 9, "#333")]


def make_plot(whole, split):
    heads, tokens = (sorted({size[i] for size in whole}) for i in (0, 1))
    kinds = [gates for gates in GATES if any(key[2] == gates for key in split)]
    block = HEIGHT * len(heads) + GAP
    width, height = LEFT + CELL * len(tokens) + 12, TOP + block * len(kinds)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        rectangle(0, 0, width, height, "#ffffff"),
        label(12, 20, "One sequence on an H200: time of the best number of segments over that of the whole sequence",
              size=13),
        label(12, 37, "In a cell: the ratio, the time in segments, their number. Green gains, red loses.", colour="#555"),
    ]
    for i, gates in enumerate(kinds):
        y = TOP + block * i
        parts.append(label(12, y - 6, GATES[gates], size=11))
        for row, p in enumerate(heads):
            parts.append(label(LEFT - 8, y + HEIGHT * row + 20, f"{p} heads", "end"))
            for column, length in enumerate(tokens):
                times = split.get((p, length, gates))
                if times:
                    parts += draw_cell(LEFT + CELL * column, y + HEIGHT * row, times, whole[p, length])
        for column, length in enumerate(tokens):
            parts.append(label(LEFT + CELL * (column + 0.5), y + HEIGHT * len(heads) + 13, f"{length} tokens", "middle", 9,
                               "#555"))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    write_current({PLOT: make_plot(*read_times())})
