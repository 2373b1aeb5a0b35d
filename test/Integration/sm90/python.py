#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times the Python package on a Hopper GPU, with torch and the package installed.

Usage: python.py check|conversions|gradients|batches|bitwise|models|two|time|host|options|pools|streams [--only TEXT]
       [--repeats N] [--seconds N]

check: errors against the recurrence in float64, equal bits, memory that may not be touched, CUDA graphs, streams,
refusals. conversions: calls that the library converts, beside calls that torch has converted. gradients: errors and
bits of gradients, with those of a CPU, torch.compile and checkpoints. batches: equal bits of sequences alone and beside
others, with `segment_length`. bitwise: equal bits of whole sequences, pieces of them, and tokens that are decoded.
models: training of Transformers' models. two: calls on the second GPU while the first one is current. time: the first
call, the host's cost of a call, the schedules. host: the host's cost by its parts, and FlashInfer's beside it where
that is installed. options: what options of a call cost. pools: what states in a pool cost a model's calls. streams: 200
streams at once for so many seconds. Each prints a line a case and fails if one does. A case that hangs ends the process
with its traceback.
"""

import argparse
import sys

from package_checks import batches, bitwise, check, conversions, gradients, models, pools, two
from package_streams import streams
from package_times import host, measure, options_cost


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--repeats", type=int, default=20, help="calls that must give the same bits")
    parser.add_argument("--seconds", type=int, default=60, help="how long streams run")
    commands = {
        "check": check, "conversions": conversions, "gradients": gradients, "batches": batches, "bitwise": bitwise,
        "models": models, "two": two, "time": measure, "host": host, "options": options_cost, "pools": pools,
        "streams": streams,
    }  # fmt: skip
    parser.add_argument("command", choices=commands)
    options = parser.parse_args()
    return commands[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
