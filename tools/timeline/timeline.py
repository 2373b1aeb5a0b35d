#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws one iteration of a schedule: roles as rows, their steps as boxes, channels as arrows with their slots.

Usage: timeline.py FILE.mlir [-o OUT.svg] [--title TEXT] [--durations FILE.json]

FILE.mlir (- for stdin) is any IR or template with a #gdn_warp.schedule attribute, of which the first one is drawn:

  gdn-compile docs/examples/layer.mlir --target=sm_90a --emit=tile -o - \\
    | gdn-opt --gdn-tile-stack-products --gdn-warp-choose-schedule=schedule=cta_per_head \\
    | tools/timeline/timeline.py - -o timeline.svg

A box begins when its warps are free and its channels have what it takes. Widths are schematic unless --durations gives
the time of each step for one chunk ({"scores": 700, "solve": 950, ...}). Standard library only.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import sys

#: Schematic time of a step for a chunk.
DURATIONS = {"load": 2, "gates": 2, "norms": 1, "query_norms": 2, "scores": 3, "solve": 6, "state": 6, "store": 2}
COLOURS = ["#2f6f4f", "#c9893b", "#3b6fc9", "#a03b7a", "#6b6b2a", "#b0452e", "#2a8a8a"]
FILLS = {"load": "#dbe7f5", "gates": "#f5ecd6", "norms": "#efe0f0", "query_norms": "#efe0f0", "scores": "#dff0df",
         "solve": "#f6dcd5", "state": "#d9d9f3", "store": "#e6e6e6"}


def parse(text):
    """The first schedule attribute of `text`, as dictionaries and lists."""
    start = text.find("#gdn_warp.schedule<")
    if start < 0:
        sys.exit("error: expected IR with a #gdn_warp.schedule attribute, got none")
    tokens = re.findall(r'"[^"]*"|[\w.-]+|[<>\[\]=,]', text[start + len("#gdn_warp.schedule"):])
    place = 0

    def take(expected=None):
        nonlocal place
        if place == len(tokens) or (expected and tokens[place] != expected):
            sys.exit(f"error: expected '{expected or 'a value'}' in the schedule, got {tokens[place:place + 3]}")
        place += 1
        return tokens[place - 1]

    def value():
        token = take()
        if token == "<":
            fields = {}
            while tokens[place] != ">":
                name = take()
                take("=")
                fields[name] = value()
                if tokens[place] == ",":
                    take()
            take(">")
            return fields
        if token == "[":
            items = []
            while tokens[place] != "]":
                items.append(value())
                if tokens[place] == ",":
                    take()
            take("]")
            return items
        if token.startswith('"'):
            return token[1:-1]
        return {"true": True, "false": False}.get(token, int(token) if token.lstrip("-").isdigit() else token)

    return value()


@dataclasses.dataclass(eq=False)
class Box:
    """A step of a role for a chunk of this iteration; a late one is of an iteration before."""

    role: int
    lane: int
    step: str
    chunk: int
    late: bool
    start: float = 0
    end: float = 0


class Timeline:
    """The boxes of an iteration, each as early as its lane and its channels allow."""

    def __init__(self, schedule, durations):
        self.roles, self.channels = schedule["roles"], schedule["channels"]
        self.chunks = schedule.get("chunks_per_iteration", 1)
        self.v_tiles, self.durations = schedule.get("v_tiles", 1), durations
        self.boxes = [box for role in range(len(self.roles)) for box in self.make_boxes(role)]
        self.place()

    def lanes(self, role):
        spec = self.roles[role]
        if spec.get("round_robin"):
            return spec["warps"]
        return self.v_tiles if spec.get("warpgroup_per_v_tile") else 1

    def make_boxes(self, role):
        spec = self.roles[role]
        for late in (False, True):
            for chunk in range(self.chunks):
                for step in spec.get("delayed_steps" if late else "steps", []):
                    lanes = [chunk % spec["warps"]] if spec.get("round_robin") else range(self.lanes(role))
                    for lane in lanes:
                        yield Box(role, lane, step, chunk, late)

    def producers(self, box):
        """The boxes of this iteration that fill the slots which `box` takes. A role that has late steps takes its
        slots in them, which others filled in an iteration before."""
        spec = self.roles[box.role]
        if spec.get("delayed_steps"):
            return []
        return [other for channel in self.channels if spec["name"] in channel["to"]
                for other in self.boxes if not other.late and other.role != box.role and other.step in channel["from"]
                and (other.chunk == box.chunk or not channel.get("slot_per_chunk"))]

    def duration(self, box):
        return self.durations.get(box.step, 2)

    def place(self):
        waiting, free = list(self.boxes), {}
        while waiting:
            left = len(waiting)
            for box in list(waiting):
                before = self.boxes[:self.boxes.index(box)]
                mine = [other for other in before if (other.role, other.lane) == (box.role, box.lane)]
                needed = self.producers(box)
                if any(other in waiting for other in mine + needed):
                    continue
                box.start = max([free.get((box.role, box.lane), 0), *(other.end for other in needed)])
                box.end = free[(box.role, box.lane)] = box.start + self.duration(box)
                waiting.remove(box)
            if len(waiting) == left:
                names = ", ".join(sorted({self.roles[box.role]["name"] for box in waiting}))
                sys.exit(f"error: expected roles that do not wait for each other, got {names}")

    def arrows(self):
        """Channel, producer and consumer: the last box that fills the first slot, and the first box that takes it."""
        for number, channel in enumerate(self.channels):
            for role, spec in enumerate(self.roles):
                if spec["name"] not in channel["to"]:
                    continue
                takers = [box for box in self.boxes if box.role == role and not box.late]
                fillers = [box for box in self.boxes
                           if box.step in channel["from"] and box.role != role and not box.late]
                for source in sorted({box.role for box in fillers}):
                    filled = [box for box in fillers if box.role == source
                              and (box.chunk == 0 or not channel.get("slot_per_chunk"))]
                    is_late = bool(spec.get("delayed_steps"))
                    yield number, max(filled, key=lambda box: box.end), None if is_late else takers[0]


LEFT, TOP, LANE, GAP, WIDTH = 250, 64, 24, 26, 760


def text(x, y, what, anchor="start", size=11, colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}" '
            f'font-weight="{weight}">{what}</text>')


def rectangle(x, y, width, height, fill, stroke="#555"):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="0.8"/>')


class Picture:
    """Where things are, and the parts of the file."""

    def __init__(self, timeline, title, unit):
        self.timeline, self.tops, y = timeline, [], TOP
        for role in range(len(timeline.roles)):
            self.tops.append(y)
            y += timeline.lanes(role) * LANE + GAP
        self.bottom, self.last = y, max(box.end for box in timeline.boxes)
        self.height = y + 30 + 20 * len(timeline.channels)
        self.scale = WIDTH / self.last
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {self.height}" '
                      'font-family="sans-serif">', rectangle(0, 0, LEFT + WIDTH + 60, self.height, "#ffffff", "none"),
                      text(12, 22, title, size=14, weight="bold"),
                      text(12, 40, f"One iteration n of chunks_per_iteration = {timeline.chunks}, "
                           f"v_tiles = {timeline.v_tiles}. {unit} Roles run ahead of each other, as far as slots "
                           "allow; an arrow is what a role waits for.", size=10, colour="#555")]

    def x(self, time):
        return LEFT + time * self.scale

    def y(self, box):
        return self.tops[box.role] + box.lane * LANE

    def draw_role(self, role):
        spec, y = self.timeline.roles[role], self.tops[role]
        manner = [name for name in ("round_robin", "loop_chunks", "warpgroup_per_v_tile", "interleave_chunks",
                                    "alternate_ctas", "share_code") if spec.get(name)]
        manner += [f"{name} {spec[name]}" for name in ("prefetch_distance", "delay") if spec.get(name)]
        height = self.timeline.lanes(role) * LANE
        warps = f"{spec['warps']} warp{'s' * (spec['warps'] > 1)}, {spec.get('registers', '?')} registers"
        self.parts += [rectangle(LEFT, y, WIDTH, height, "#fafafa", "#e2e2e2"),
                       text(12, y + 12, spec["name"], weight="bold"), text(90, y + 12, warps, size=10),
                       text(12, y + 26, ", ".join(manner), size=9, colour="#555")]

    def draw_box(self, box):
        x, y, width = self.x(box.start), self.y(box), self.timeline.duration(box) * self.scale
        spec = self.timeline.roles[box.role]
        name = box.step + (f" {box.chunk}" if self.timeline.chunks > 1 else "")
        name += f" (n - {spec.get('delay', 1)})" if box.late else ""
        size = 10 if 6 * len(name) < width else max(5, 10 * width / (6 * len(name)))
        self.parts += [rectangle(x, y + 2, width, LANE - 4, FILLS.get(box.step, "#eeeeee")),
                       text(x + width / 2, y + LANE / 2 + 4, name, "middle", round(size, 1))]

    def draw_arrow(self, number, source, target):
        colour = COLOURS[number % len(COLOURS)]
        x0, y0 = self.x(source.end), self.y(source) + LANE / 2
        x1, y1 = (LEFT + WIDTH + 12, y0) if target is None else (self.x(target.start), self.y(target) + LANE / 2)
        bend = max(14, abs(x1 - x0) / 2)
        curve = f"M{x0:.1f},{y0:.1f} C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        self.parts.append(f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="1.4" opacity="0.8"/>')
        self.parts.append(f'<circle cx="{x1:.1f}" cy="{y1:.1f}" r="3" fill="{colour}"/>')
        if target is None:
            self.parts.append(text(x1 + 5, y1 + 4, "later", size=9, colour=colour))

    def draw_channel(self, number):
        channel, y = self.timeline.channels[number], self.bottom + 12 + 20 * number
        colour, depth = COLOURS[number % len(COLOURS)], channel.get("depth", 0)
        self.parts.append(text(12, y + 10, channel["name"], size=11, colour=colour, weight="bold"))
        for slot in range(depth):
            self.parts.append(rectangle(90 + 12 * slot, y, 10, 11, "#ffffff", colour))
        size = "a slot per chunk" if channel.get("slot_per_chunk") else "a slot per iteration"
        self.parts.append(text(LEFT, y + 10, f"{depth or '?'} slots, {size}: {', '.join(channel['from'])} to "
                               f"{', '.join(channel['to'])}", size=10))

    def draw(self):
        timeline = self.timeline
        for role in range(len(timeline.roles)):
            self.draw_role(role)
        for box in timeline.boxes:
            self.draw_box(box)
        for arrow in timeline.arrows():
            self.draw_arrow(*arrow)
        for number in range(len(timeline.channels)):
            self.draw_channel(number)
        return "\n".join([*self.parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="IR or template with a schedule; - for stdin")
    parser.add_argument("-o", "--output", default="-", help="the SVG, - for stdout")
    parser.add_argument("--title", default="A schedule")
    parser.add_argument("--durations", type=pathlib.Path, help="time of each step for one chunk, as JSON")
    options = parser.parse_args()
    ir = sys.stdin.read() if options.file == "-" else pathlib.Path(options.file).read_text()
    durations, unit = dict(DURATIONS), "Widths are schematic."
    if options.durations:
        durations |= json.loads(options.durations.read_text())
        unit = f"Widths are from {options.durations.name}."
    svg = Picture(Timeline(parse(ir), durations), options.title, unit).draw()
    if options.output == "-":
        sys.stdout.write(svg)
    else:
        pathlib.Path(options.output).write_text(svg)


if __name__ == "__main__":
    main()
