# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of tests that cross several axes."""

import itertools

import pytest


def crossed(*axes):
    """All combinations of the axes' values, for pytest.mark.parametrize. A few of them, in which each value occurs, are
    tested each time; the others are marked `full` (conftest.py)."""
    each_time = [tuple(number % len(axis) for axis in axes) for number in range(max(map(len, axes)))]
    cases = []
    for numbers in itertools.product(*(range(len(axis)) for axis in axes)):
        marks = [] if numbers in each_time else [pytest.mark.full]
        cases.append(pytest.param(*(axis[number] for axis, number in zip(axes, numbers)), marks=marks))
    return cases
