# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose sequences are cut into segments of a length that each call chooses (docs/Python.md, Segments), for
generate.py.

A module has those of one form of a call: they share kernels, and so do modules.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kernel_traits import Form, Kernel, forms_of, named, traits_of
from layer_functions import layer_function

#: A CTA has all V tiles of a map, so it prepares each chunk once. B and the maps are made at the same time.
OPTIONS = ["--schedule=cta_per_head", "--side-by-side"]


def _cut(word: str) -> dict[str, str]:
    """An argument by which a call says how sequences are cut."""
    return {word: f'index {{gdn.cut = "{word}"}}'}


#: The argument by which a call chooses the tokens of a segment.
LENGTH = _cut("segment_length")
_SCHEDULES = ("CtaPerHead", "CtaPerVTile")


class Cut(NamedTuple):
    """How a function cuts, as C++ calls it: its arguments, and what else it says."""

    scalars: dict[str, str]
    note: str = ""


#: Segments that run what is before them themselves. Their forward is launched beside the maps, or when these are done
#: ("late"); they are of one length, or of two that a sample of the gates chooses from.
_PARTS = {**LENGTH, **_cut("segment_parts")}
_TWO_LENGTHS = {**_PARTS, **_cut("longer_segment_length")}
_LATE = "gdn.late_forward"
_OWN_CUTS = {
    "Own": Cut(_PARTS), "OwnLate": Cut(_PARTS, _LATE),
    "OwnSampled": Cut(_TWO_LENGTHS), "OwnSampledLate": Cut(_TWO_LENGTHS, _LATE),
}  # fmt: skip


def function_notes(manifest: dict[str, Any], schedule: str, *others: str) -> str:
    """The attributes of a function: the schedule of its forward, and others."""
    option = manifest["hopper"]["schedules"][schedule]["option"]
    notes = [f'gdn_warp.schedules = {{fused = "{option}"}}', *filter(None, others)]
    return f" attributes {{{', '.join(notes)}}}"


def _choices(manifest: dict[str, Any], form: Form) -> Iterator[tuple[str, Cut, str, str]]:
    """The functions of a form: how they cut, their states, and their schedule."""
    for state, schedule in itertools.product(("Any F32", f"Any {form.element}"), _SCHEDULES):
        yield "Waiting", Cut(LENGTH), state, schedule
    values = form._asdict()
    own = manifest["hopper"]["segments"].get("own", [])
    if any(all(values[key] in row[key] for key in row) for row in own):
        for name, cut in _OWN_CUTS.items():
            if "Sampled" not in name or form.gate == "Log F32":
                yield name, cut, "Both VK F32", "CtaPerHead"


def _split_module(manifest: dict[str, Any], form: Form) -> Kernel:
    """The functions of a form, for packed sequences and batch rows."""
    hopper = manifest["hopper"]
    channels = hopper["channels"][form.channels]
    texts, lines = [], []
    for layout, (cut, how, state, schedule) in itertools.product(hopper["layouts"], list(_choices(manifest, form))):
        traits = traits_of({**form._asdict(), "layout": layout, "state": state})
        option = hopper["schedules"][schedule]["option"]
        words = re.sub("(?=[A-Z])", " ", cut).split()
        name = named("split", *form, *words, layout, traits.state, option)
        notes = function_notes(manifest, schedule, how.note)
        texts.append(
            layer_function(manifest, name, traits, hopper["schedules"][schedule], scalars=how.scalars, notes=notes)
        )
        fields = [name, cut, str(channels["k"]), str(channels["v"]), *traits[1:], schedule]
        lines.append(f"GDN_HOPPER_SPLIT({', '.join(fields)})")
    return Kernel(named("split", *form), "\n".join(texts), OPTIONS, "\n".join(lines), "Split", form._asdict())


def split_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The modules of all forms that can be split; none where no call can be."""
    return [_split_module(manifest, form) for form in forms_of(manifest, rows)]
