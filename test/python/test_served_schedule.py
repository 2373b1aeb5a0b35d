# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The written-down steps of a server have all that they are written down for."""

from served_schedule import NAMES, STEPS, steps


def test_what_the_steps_have():
    """All kinds of steps, requests that leave and come again, and only requests that are there."""
    there, seen = set(), set()
    done = list(steps())
    for step in done:
        new = step.prefills.keys() - there
        seen |= {("new", bool(new)), ("piece", bool(step.prefills.keys() & there))}
        there |= step.prefills.keys()
        assert {*step.decodes, *step.verified, *step.evicted} <= there <= set(NAMES)
        assert not set(step.decodes) & {*step.verified, *step.prefills}
        assert not step.verified.keys() & step.prefills.keys()
        assert all(1 <= accepted <= tokens <= 4 for tokens, accepted in step.verified.values())
        seen.add((bool(step.prefills), bool(step.decodes), bool(step.verified)))
        seen |= {tokens for tokens, _ in step.verified.values()}
        there -= set(step.evicted)
    assert len(done) == STEPS == 300
    prefill, decode, verify = (True, False, False), (False, True, False), (False, False, True)
    mixed, beside = (True, True, False), (True, False, True)
    assert {prefill, decode, verify, mixed, beside, 1, 2, 3, 4, ("new", True), ("piece", True)} <= seen
    assert sum(len(step.evicted) for step in done) > 50


def test_all_drafts():
    """As many speculated tokens of each sequence, or none of any."""
    for step in steps(all_drafts=True):
        assert len({tokens for tokens, _ in step.verified.values()}) <= 1
