"""Copies a file of MLIR's bytecode with one byte changed, so that the reader refuses it without a diagnostic of its
own: gdn-opt then prints one line, which begins with its name.

    break-bytecode.py GDN-OPT GOOD BAD
"""

import pathlib
import subprocess
import sys

opt, good, bad = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
for place in range(len(good.read_bytes())):
    data = bytearray(good.read_bytes())
    data[place] ^= 4
    bad.write_bytes(data)
    run = subprocess.run([opt, bad, "-o", "/dev/null"], capture_output=True, check=False)
    if run.returncode == 1 and (not run.stderr or run.stderr.startswith(b"gdn-opt: error:")):
        sys.exit()
sys.exit(f"expected a byte of {good} that the reader refuses without a diagnostic, found none")
