"""A program through the tools: compiled for a GPU or refused, compiled and run on this CPU."""

import dataclasses
import os
import pathlib
import re
import subprocess

import numpy as np

from .evaluate import Expected, make_inputs
from .numbers import from_bits
from .text import text

SECONDS = 30
# What a refusal says: an op by its name, and what it expected of it.
REFUSAL = re.compile(r"error: '[a-z_]+\.[a-z_.]+' op .*expected ")
# Of a kernel whose roles have too few registers.
SPILLS = "bytes of stack"


@dataclasses.dataclass
class Outcome:
    """What became of a program on one way: right, compiled, refused or failed, and why."""

    state: str
    text: str = ""


def call(command, environment=None):
    """Exit code (words for a signal or a timeout), stdout, stderr."""
    seconds = float(os.environ.get("GDN_TEST_SECONDS", SECONDS))
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds, check=False,
                              env=dict(os.environ, **(environment or {})))
    except subprocess.TimeoutExpired:
        return f"no end within {seconds:.0f} s", "", ""
    code = done.returncode
    return (f"signal {-code}" if code < 0 else code), done.stdout, done.stderr


def first_error(output):
    """The line that says what is wrong, without its place."""
    for line in output.splitlines():
        if "error: " in line:
            return "error: " + line.split("error: ", 1)[1]
    return (output.strip().splitlines() or ["no message"])[0]


class Tools:
    """gdn-compile and gdn-run of a build, and a folder for their files."""

    def __init__(self, bin_folder, folder):
        self.bin, self.folder = pathlib.Path(bin_folder), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, program):
        path = self.folder / f"{program.name}.mlir"
        path.write_text(text(program))
        return path

    def compile_gpu(self, program):
        """To an object: compiled, refused in the compiler's own words, or failed.

        A program whose products ptxas would order itself compiles with them one by one, as the error says. One whose
        roles need more registers than its schedule has is refused behind ptxas, which alone knows."""
        path = self.write(program)
        command = [self.bin / "gdn-compile", path, "--target=sm_90a", "--emit=obj", "-o", path.with_suffix(".o")]
        code, _, err = call(command)
        if code == 1 and "with --serial-products" in err:
            code, _, err = call([*command, "--serial-products"])
        if code == 0:
            said = first_error(err) if "error" in err or "warning" in err else ""
            return Outcome("failed", f"with exit code 0: {said}") if said else Outcome("compiled")
        said = first_error(err)
        if code == 1 and REFUSAL.search(said):
            return Outcome("refused", said[:300])
        if code == 1 and SPILLS in err:
            return Outcome("refused", f"{said[:80]} spills")
        wrong = err.split("got\n", 1)[1].strip().splitlines()[0].strip() if "got\n" in err else ""
        return Outcome("failed", f"exit code {code}: {said[:300]} {wrong[:160]}".strip())

    def run_cpu(self, program):
        """Compiled for this CPU, run and compared with float64."""
        path, inputs = self.write(program), make_inputs(program)
        folder = self.folder / program.name
        folder.mkdir(exist_ok=True)
        arguments = []
        for place, array in enumerate(program.inputs()):
            values = from_bits(inputs[array.name], array.dtype).astype(np.float32)
            np.save(folder / f"in{place}.npy", values)
            arguments.append(f"--arg={place}={folder}/in{place}.npy")
        if program.packed:
            np.save(folder / "cu.npy", inputs["cu"])
            arguments.append(f"--arg={len(program.inputs())}={folder}/cu.npy")
        code, _, err = call([self.bin / "gdn-run", path, *arguments, "--opt-level=0", f"--out-dir={folder}"], {"OMP_NUM_THREADS": "1"})
        if code != 0:
            return Outcome("failed", f"gdn-run: exit code {code}: {first_error(err)[:300]}")
        expected = Expected(program, inputs)
        for place, array in enumerate(program.outputs()):
            wrong = expected.check(array.name, np.load(folder / f"{place}.npy").astype(np.float64))
            if wrong:
                return Outcome("failed", f"{array.name}: {wrong}")
        return Outcome("right")

    def clean(self, program):
        """Removes what the runs of a program left, but for the object."""
        folder = self.folder / program.name
        if folder.exists():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
