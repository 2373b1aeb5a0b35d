# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of tests that cross several axes."""

import itertools

import pytest


def sampled(cases, each_time):
    """The cases, for pytest.mark.parametrize, of which all but those of `each_time` are marked `full`."""
    cases = list(cases)
    assert all(case in cases for case in each_time)
    return [pytest.param(*case, marks=[] if case in each_time else [pytest.mark.full]) for case in cases]


def crossed(*axes, each_time=None):
    """All combinations of the axes' values, for pytest.mark.parametrize. A few of them, in which each value occurs, are
    tested each time, those of `each_time` if it is there; the others are marked `full` (conftest.py)."""
    if each_time is None:
        each_time = [tuple(axis[number % len(axis)] for axis in axes) for number in range(max(map(len, axes)))]
    assert all(value in values for axis, values in zip(axes, zip(*each_time)) for value in axis)
    return sampled(itertools.product(*axes), each_time)
