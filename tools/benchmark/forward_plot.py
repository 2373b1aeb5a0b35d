#!/usr/bin/env python3
"""Writes the tables and the plot of the forward's times from docs/data/forward-h200.csv and forward-h200-more.csv.

Usage: forward_plot.py [--check]. Rewrites docs/data/forward-h200.svg, and what stands between the "forward-h200"
comments: the tables of docs/experiments/results.md, and their means in README.md. --check writes nothing and fails if
one is not current.
After a new measurement: change the numbers of the .csv files, run this, and then the tests, of which
GDNCostModelTests says whether the cost model still predicts forward-h200.csv. Standard library only.
"""

import csv
import math
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "docs/data/forward-h200.csv"
MORE = ROOT / "docs/data/forward-h200-more.csv"
PLOT = ROOT / "docs/data/forward-h200.svg"
PAGE = ROOT / "docs/experiments/results.md"
README = ROOT / "README.md"

PEERS = {"flashinfer_ms": "FlashInfer", "flashqla_ms": "FlashQLA"}


class Case:
    """A row of the file: packed sequences, float32 states before and after, float32 gates."""

    def __init__(self, row):
        self.lengths = []
        for part in row["lengths"].split("+"):
            length, _, count = part.partition("x")
            self.lengths += [int(length)] * int(count or 1)
        self.key_heads, self.heads = int(row["key_heads"]), int(row["heads"])
        self.schedule, self.text = row["schedule"], row
        self.peers = {name: float(row[key]) for key, name in PEERS.items() if row[key]}
        self.ms, self.floor_ms = float(row["gdn_ms"]), float(row["floor_ms"])

    def best_peer(self):
        """Name and milliseconds."""
        return min(self.peers.items(), key=lambda peer: peer[1])

    def ratio(self):
        return self.ms / self.best_peer()[1]

    def name(self):
        if len(set(self.lengths)) == 1:
            return f"{len(self.lengths)} x {self.lengths[0]}"
        if len(self.lengths) == 2:
            return f"{self.lengths[0]} + {self.lengths[1]}"
        return f"{len(self.lengths)} of {min(self.lengths)} to {max(self.lengths)}"


def read_cases(path):
    """All rows that have a peer: the others are for the cost model."""
    with path.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [case for case in map(Case, rows) if case.peers]


def mean_ratio(cases):
    """The geometric mean of gdn's time over the fastest other library's."""
    return math.exp(sum(math.log(case.ratio()) for case in cases) / len(cases))


def make_table(cases):
    """All columns, and the geometric mean of the ratios."""
    lines = [
        f"| sequences x tokens, q/k / value heads | schedule | floor ms | gdn ms | {' ms | '.join(PEERS.values())} ms "
        "| gdn / best | target |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        peers = " | ".join(case.text[key] for key in PEERS)
        lines.append(
            f"| {case.name()}, {case.key_heads} / {case.heads} | {case.schedule} | {case.floor_ms:.3f} | "
            f"{case.text['gdn_ms']} | {peers} | {case.ratio():.2f} | {case.text['wanted']} |"
        )
    lines += ["", f"Geometric mean of gdn / best: {mean_ratio(cases):.2f}."]
    return "\n".join(lines)


def make_summary(main_cases, more_cases):
    """The sentence of README.md."""
    return textwrap.fill(
        f"Geometric means of gdn's time over that of the fastest other library: {mean_ratio(main_cases):.2f} in the "
        f"{len(main_cases)} cases that the kernels are tuned for, {mean_ratio(more_cases):.2f} in {len(more_cases)} "
        "others.", width=120)


# The plot: a group of bars a case, of times over the floor on a logarithmic scale, so that cases of all sizes compare.
COLOURS = {"gdn": "#2f6f4f", "FlashInfer": "#c9893b", "FlashQLA": "#8a8a8a"}
LEFT, TOP, ROW, BAR, SCALE_WIDTH = 230, 56, 38, 9, 560


def rectangle(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def label(x, y, text, anchor="start", size=11, colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{text}</text>'


def draw_case(case, y, unit):
    parts = [label(LEFT - 8, y + 15, f"{case.name()}, {case.key_heads}/{case.heads}", "end",
                   colour="#a01010" if case.ratio() > 1 else "#222")]
    for i, (name, ms) in enumerate([("gdn", case.ms), *sorted(case.peers.items())]):
        top, width = y + i * (BAR + 1), max(0, math.log2(ms / case.floor_ms)) * unit
        parts.append(rectangle(LEFT, top, width, BAR, COLOURS[name]))
        parts.append(label(LEFT + width + 4, top + BAR - 1, f"{ms:.3g} ms", size=9, colour="#555"))
    return parts


def make_plot(cases):
    most = max(max(case.ms, *case.peers.values()) / case.floor_ms for case in cases)
    doublings = math.ceil(math.log2(most))
    unit = SCALE_WIDTH / doublings
    width, height = LEFT + SCALE_WIDTH + 70, TOP + ROW * len(cases) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        rectangle(0, 0, width, height, "#ffffff"),
        label(LEFT, 18, "Forward on an H200: time over the floor of arithmetic and memory; shorter is faster", size=12),
        label(LEFT - 8, 37, "sequences x tokens, q/k / value heads", "end", 9, "#555"),
    ]
    for i, (name, colour) in enumerate(COLOURS.items()):
        parts += [rectangle(LEFT + 90 * i, 28, BAR, BAR, colour), label(LEFT + 90 * i + 14, 37, name)]
    parts.append(label(LEFT + 90 * len(COLOURS), 37, "(red: gdn is slower than another)", size=9, colour="#a01010"))
    for tick in range(doublings + 1):
        x, colour = LEFT + tick * unit, "#222" if tick == 0 else "#dddddd"
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - 10}" stroke="{colour}"/>')
        parts.append(label(x, TOP - 7, "floor" if tick == 0 else f"{2 ** tick} x", "middle", 9))
    for i, case in enumerate(cases):
        parts += draw_case(case, TOP + 4 + ROW * i, unit)
    return "\n".join([*parts, "</svg>", ""])


def replace_table(text, path, name, table):
    """`text` with `table` between the two comments of that name."""
    begin, end = f"<!-- {name}: written by tools/benchmark/forward_plot.py -->", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"error: expected one '{begin}' and one '{end}' in {path.relative_to(ROOT)}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def write_current(wanted):
    """Writes the files, from path to text, that are not current; with --check it fails at the first of them."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"error: expected no argument or --check, got {' '.join(sys.argv[1:])}")
    for path, text in wanted.items():
        if path.exists() and path.read_text() == text:
            continue
        if sys.argv[1:]:
            script = pathlib.Path(sys.argv[0]).name
            sys.exit(f"error: expected a current {path.relative_to(ROOT)}; run tools/benchmark/{script}")
        path.write_text(text)


def main():
    main_cases, more_cases = read_cases(DATA), read_cases(MORE)
    page = replace_table(PAGE.read_text(), PAGE, "forward-h200", make_table(main_cases))
    wanted = {
        PLOT: make_plot(main_cases + more_cases),
        PAGE: replace_table(page, PAGE, "forward-h200-more", make_table(more_cases)),
        README: replace_table(README.read_text(), README, "forward-h200", make_summary(main_cases, more_cases)),
    }
    write_current(wanted)


if __name__ == "__main__":
    main()
