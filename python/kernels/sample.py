# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sample of the kernels that a shorter build has (docs/PythonLibrary.md), for generate.py.

A kernel has a kind: of a forward on a GPU that is its schedule, of segments how they are cut. The manifest's `sample` says which
kernels of a kind are built; those of a kind that it does not name all are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from kernel_traits import Kernel


def choose_sample(manifest: dict[str, Any], tables: Iterable[list[Kernel]]) -> list[list[Kernel]]:
    """Of each table of kernels those of the sample; ends the program if a row of the sample has no kernel."""
    kinds: dict[str, list[dict[str, list[str]]]] = manifest["sample"]["kinds"]
    used = set()

    def is_chosen(kernel: Kernel) -> bool:
        rows = kinds.get(kernel.kind)
        if rows is None:
            return True
        traits = kernel.traits
        found = [number for number, row in enumerate(rows) if all(traits.get(axis) in row[axis] for axis in row)]
        used.update((kernel.kind, number) for number in found)
        return bool(found)

    chosen = [[kernel for kernel in kernels if is_chosen(kernel)] for kernels in tables]
    for kind, rows in kinds.items():
        for number, row in enumerate(rows):
            if (kind, number) not in used:
                sys.exit(f"error: expected kernels for each row of the sample, got none of kind {kind} with {row}")
    return chosen


def check_sample(kernels: Iterable[Kernel], sample: Iterable[Kernel]) -> None:
    """Ends the program unless the sample's kernels are kernels of the manifest, with each value of each trait of each
    kind."""
    kernels, sample = list(kernels), list(sample)
    if more := {kernel.name for kernel in sample} - {kernel.name for kernel in kernels}:
        sys.exit(f"error: expected a sample of the manifest's kernels, got {', '.join(sorted(more))} besides")

    def values(kernels: list[Kernel]) -> set[tuple[str, str, str]]:
        return {(kernel.kind, axis, value) for kernel in kernels for axis, value in kernel.traits.items()}

    if missing := values(kernels) - values(sample):
        texts = sorted(f"{axis} {value} ({kind})" for kind, axis, value in missing)
        sys.exit(f"error: expected each value of a trait in the sample, got none with {', '.join(texts)}")
