"""A generator of two kernels, as python/kernels/generate.py is one of many: two_kernels.py FOLDER."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
for name in ("one", "two"):
    (folder / f"{name}.mlir").write_text(f"// {name}\n")
(folder / "kernels.cmake").write_text("set(gdn_options_of_one )\nset(gdn_options_of_two )\n")
