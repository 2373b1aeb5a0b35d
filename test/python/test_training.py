# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A language model that is trained by gdn and by a recurrence of torch (test/Integration/training)."""

import csv
import pathlib

import pytest
from fresh import fresh

pytest.importorskip("torch")

SCRIPT = pathlib.Path(__file__).parents[1] / "Integration" / "training" / "train.py"


# In float32 a gradient of q, k, v, a or b that is a tenth too small changes the losses by more than is allowed.
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--steps=40", "--rate=0.02", "--tolerance=0.002"], id="f32"),
        pytest.param(["--steps=80", "--dtype=bfloat16", "--tolerance=0.01"], id="bf16", marks=pytest.mark.full),
    ],
)
def test_losses(options, tmp_path):
    """Both models learn, and their losses are the same at each step."""
    file = tmp_path / "losses.csv"
    command = [str(SCRIPT), "gdn", "recurrence", f"--csv={file}", *options]
    # Its operations are small: threads would wait for each other.
    program = (
        "import runpy, sys, torch; torch.set_num_threads(1)\n"
        f"sys.argv = {command}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    run = fresh(program)
    assert run.returncode == 0, run.stdout + run.stderr
    header, *rows = csv.reader(file.open())
    assert header == ["step", "gdn", "recurrence"] and len(rows) >= 40
    first = [float(loss) for loss in rows[0][1:]]
    assert abs(first[0] - first[1]) < (1e-2 if "--dtype=bfloat16" in options else 1e-5)
