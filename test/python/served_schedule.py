# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a server does in 300 steps, written down: prefills in pieces, tokens one at a time, both in one step, speculated tokens of
which some are accepted, also beside a prefill, one token behind them, and requests that leave their slots to others."""

import dataclasses

#: Each step of a round: who is prefilled, who has a token, whose speculated tokens are verified and how many of them there are at
#: most, and who leaves behind it. Names move on by one from round to round. Nobody decodes who is not there.
ROUND = (
    ("AB", "", "", 0, ""),
    ("C", "AB", "", 0, ""),
    ("", "ABC", "", 0, ""),
    ("", "", "ABC", 3, ""),
    ("", "", "ABC", 3, ""),
    ("", "", "ABC", 0, ""),
    ("", "ABC", "", 0, "A"),
    ("BD", "", "", 0, ""),
    ("", "", "BCD", 3, ""),
    ("E", "", "BCD", 3, ""),
    ("", "", "BCDE", 0, "C"),
    ("", "BDE", "", 0, "D"),
)
NAMES, STEPS = "ABCDE", 300


@dataclasses.dataclass
class Step:
    """Prefilled requests and their tokens, those with one token, those that are verified with the numbers of their tokens and of
    those that are accepted, and those that leave."""

    prefills: dict
    decodes: list
    verified: dict
    evicted: list


def steps(count=STEPS, all_drafts=False):
    """The steps. With `all_drafts` each sequence has as many speculated tokens as any, as SGLang's do."""
    there = set()
    for n in range(count):
        turn, line = divmod(n, len(ROUND))
        moved = {name: NAMES[(at + turn) % len(NAMES)] for at, name in enumerate(NAMES)}
        prefilled, decoded, verified, drafts, evicted = ROUND[line]
        prefills = {moved[name]: 1 + (37 * n + 11 * at) % 97 for at, name in enumerate(prefilled)}
        there |= prefills.keys()
        decodes = [moved[name] for name in decoded if moved[name] in there]
        counts = {}
        for at, name in enumerate(moved[name] for name in verified if moved[name] in there):
            tokens = 1 + (drafts if all_drafts or not drafts else (n + at) % (drafts + 1))
            counts[name] = tokens, 1 + (7 * n + 3 * at) % tokens
        left = [moved[name] for name in evicted if moved[name] in there]
        there -= set(left)
        yield Step(prefills, decodes, counts, left)
