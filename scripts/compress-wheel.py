#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compresses a wheel's files as far as deflate can: compress-wheel.py WHEEL. The files themselves stay as they are."""

from __future__ import annotations

import pathlib
import sys
import zipfile


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: compress-wheel.py WHEEL", file=sys.stderr)
        return 2
    wheel = pathlib.Path(sys.argv[1])
    smaller = wheel.with_suffix(".smaller")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(smaller, "w") as target:
        for entry in source.infolist():
            target.writestr(entry, source.read(entry), zipfile.ZIP_DEFLATED, compresslevel=9)
    smaller.replace(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
