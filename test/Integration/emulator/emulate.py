#!/usr/bin/env python3
"""Runs a command whose kernels for a GPU are emulated on this CPU.

  emulate.py --driver build/lib/libgdn-emulated-cuda.so -- gdn-run layer.mlir --target=sm_90a --check

The command's PTX is read and computed instruction by instruction; what PTX does
not define is an error with its line (docs/Contributing.md).
"""

import argparse
import os
import sys

from ptxemu.server import serve


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True, help="libgdn-emulated-cuda.so of the build")
    parser.add_argument("--seed", type=int, default=0, help="of the order of warps and of copies")
    parser.add_argument(
        "--mode",
        choices=["all", "eager", "lazy", "random"],
        default="all",
        help="when copies and products end; all: another mode for each launch",
    )
    parser.add_argument("--verbose", action="store_true", help="a line for each launch")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- command")
    options = parser.parse_args()
    options.engine = os.path.join(os.path.dirname(os.path.abspath(options.driver)), "libgdn-emulated-warps.so")
    options.ptxas = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ptxas.sh")
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("expected a command")
    sys.exit(serve(command, options))


if __name__ == "__main__":
    main()
