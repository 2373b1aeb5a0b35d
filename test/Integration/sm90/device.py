#!/usr/bin/env python3
"""Checks, sanitizes and times compiled layers on a Hopper GPU, with what pack.sh put together.

Usage: device.py check|sanitize|bench DIRECTORY [--log FILE] [--only TEXT] [--samples N]

Every command ends within ten minutes, prints a table last, and fails if a line of it does.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

LIMIT = 540  # Seconds of a command: the tables must be printed before somebody pulls the plug.
START = time.monotonic()


@dataclasses.dataclass
class Layer:
    """A chunked layer on packed sequences or, without lengths of their own, on a batch."""

    name: str
    query_heads: int
    heads: int
    lengths: list
    packed: bool = True
    data: str = "bf16"
    state: bool = False  # Initial and final state.
    model: bool = False  # Raw gate, logits of beta, normalisation: all that a model leaves to the op.
    channel_gates: str = ""  # Of a model whose gates decay a channel each: their domain.
    channels: tuple = (128, 128)  # K, V.
    chunk: int = 0  # Tokens of a chunk; 0 for what the compiler takes.

    def text(self):
        """The function as MLIR."""
        batch = "1" if self.packed else str(len(self.lengths))
        count = "?" if self.packed else batch
        keys, values = self.channels
        qk = f"tensor<{batch}x?x{self.query_heads}x{keys}x{self.data}>"
        v = f"tensor<{batch}x?x{self.heads}x{values}x{self.data}>"
        small = f"tensor<{batch}x?x{self.heads}x{'bf16' if self.model else 'f32'}>"
        state, vector = f"tensor<{count}x{self.heads}x{keys}x{values}xf32>", f"tensor<{self.heads}xf32>"
        bias = f"tensor<{self.heads}x{keys}xf32>" if self.channel_gates else vector
        gate = f"tensor<{batch}x?x{self.heads}x{keys}xbf16>" if self.channel_gates else small
        arguments = [("q", qk), ("k", qk), ("v", v), ("beta", small), ("gate", gate)]
        if self.state:
            arguments.append(("initial_state", state))
        if self.packed:
            arguments.append(("cu_seqlens", "tensor<?xi32>"))
        if self.model:
            arguments += [("a_log", vector), ("dt_bias", bias)]
        attributes = ["output_final_state"] if self.state else []
        if self.chunk:
            attributes.append(f"chunk_size = {self.chunk} : i64")
        domain = self.channel_gates or "softplus"
        if self.model:
            attributes += [f"gate_domain = #gdn.gate_domain<{domain}>", "qk_l2norm",
                           "beta_domain = #gdn.beta_domain<logit>"]
        if domain == "bounded":
            attributes.append("lower_bound = -5.0")
        results = v + (f", {state}" if self.state else "")
        names = "%o, %s" if self.state else "%o"
        operands = " ".join(f"{name}(%{name} : {kind})" for name, kind in arguments)
        parameters = ", ".join(f"%{name}: {kind}" for name, kind in arguments)
        return (f"func.func @layer({parameters}) -> ({results}) {{\n"
                f"  {names} = gdn.chunk_gated_delta_rule {operands} {{{', '.join(attributes)}}} -> {results}\n"
                f"  return {names} : {results}\n}}\n")

    def sizes(self):
        """What gdn-run is told of the sizes."""
        if self.packed:
            return ["--lengths=" + ",".join(map(str, self.lengths))]
        return [f"--dim=T={self.lengths[0]}"]


@dataclasses.dataclass
class File:
    """A function that pack.sh packs, and what gdn-run is told of its sizes."""

    name: str
    options: list

    def sizes(self):
        """As those of a layer."""
        return self.options


def plain(heads, *lengths, **more):
    name = "+".join(map(str, lengths))
    if len(set(lengths)) == 1:
        name = f"{lengths[0]}x{len(lengths)}"
    extra = "".join(f" {key if value is True else value}" for key, value in more.items()
                    if value is True or isinstance(value, str))
    return Layer(f"{heads[0]}x{heads[1]} {name}{extra}", *heads, list(lengths), **more)


def sized(keys, values, *lengths, **more):
    layer = plain((2, 4), *lengths, channels=(keys, values), **more)
    return dataclasses.replace(layer, name=f"K {keys}, V {values}: {layer.name}")


RAGGED = [12000, 8000, 5000, 3000, 2000, 1500, 800, 300, 100, 64, 3, 1]
BENCH = [
    plain((16, 64), *[8192] * 4), plain((16, 64), *[4096] * 8), plain((16, 64), *[1024] * 8),
    plain((16, 48), *[4096] * 8), plain((16, 32), *[8192] * 4), plain((32, 32), *[8192] * 4),
    plain((16, 32), *[1024] * 8), plain((16, 16), *[1024] * 8), plain((16, 64), 32768),
    plain((16, 64), 8192), plain((16, 64), 2048), plain((16, 64), 28672, 4096),
    Layer("16x64 ragged32k", 16, 64, RAGGED),
    plain((16, 64), *[8192] * 4, model=True, state=True),
]
CHECKS = [
    plain((2, 2), *[256] * 2, packed=False), plain((2, 4), 0, 1, 63, 64, 65, 200),
    plain((1, 3), 31, 32, 33, 0, 127), plain((1, 4), 1000), plain((2, 4), 4096, 3, state=True),
    plain((2, 4), 17, 300, data="f16"), plain((2, 4), 1, 130, model=True, state=True),
    plain((16, 32), *[1024] * 2, state=True), sized(16, 64, 1, 130, state=True), sized(48, 192, 333, 333, packed=False),
    sized(32, 64, 0, 65, 300, state=True, model=True), sized(128, 256, 1, 333, state=True),
    sized(64, 64, 17, 300, state=True, chunk=16),
    plain((4, 4), 1, 63, 0, 200, model=True, state=True, channel_gates="softplus"),
    plain((4, 4), 1, 63, 0, 200, model=True, state=True, channel_gates="bounded"),
]
# Slots that are used again, CTAs with several items, clusters, norms.
SANITIZED = [plain((1, 2), 1, 700, 0, 64, state=True), plain((100, 200), 96, 96, packed=False),
             plain((1, 2), 500, 30, state=True, model=True),
             plain((100, 200), 130, packed=False, state=True, model=True),
             plain((4, 4), 200, 33, state=True, model=True, channel_gates="softplus"),
             plain((4, 4), 200, 33, state=True, model=True, channel_gates="bounded"),
             File("backward-kda.mlir", ["--lengths=70,0,129"]),
             File("backward-kda-groups.mlir", ["--lengths=70,33", "--dim=Hq=1", "--dim=H=3"]),
             File("backward-kda-any.mlir", ["--lengths=70,0,129", "--mean-gate=-20"]),
             File("backward-kda-groups-any.mlir", ["--lengths=70,33", "--dim=Hq=1", "--dim=H=3", "--mean-gate=-3"])]
GATES = {"chunk": ["none", "gdn-log", "gdn-linear", "gdn-softplus", "gdn-bounded"],
         "recurrent": ["gdn-log", "kda-log", "kda-softplus", "kda-bounded"]}


class Session:
    """The packed tools in a directory, and the log."""

    def __init__(self, directory, log):
        self.directory, self.log = pathlib.Path(directory).resolve(), open(log, "w")
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(self.directory / "lib"))
        if (self.directory / "ptxas").exists():
            self.environment["GDN_PTXAS"] = str(self.directory / "ptxas")

    def run(self, *command, seconds=300):
        """Exit code and output of a tool; both go to the log."""
        left = max(1, min(seconds, LIMIT - (time.monotonic() - START)))
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=left,
                                  env=self.environment, cwd=self.directory, check=False)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out, err = 124, "", f"expected an end within {left:.0f} s, got none: {late}"
        except OSError as error:
            code, out, err = 127, "", str(error)
        self.log.write(f"$ {' '.join(map(str, command))}\n{out}{err}[{code}]\n")
        self.log.flush()
        return code, out, err

    def write(self, layer):
        """The layer as a file."""
        if isinstance(layer, File):
            return self.directory / layer.name
        path = self.directory / f"{layer.name.replace(' ', '-')}.mlir"
        path.write_text(layer.text())
        return path

    def compile(self, layer, *options):
        """The layer as an object; the error where there is none."""
        path = self.write(layer)
        code, _, err = self.run("./gdn-compile", path, "--target=sm_90a", "--emit=obj", *options, "-o",
                                path.with_suffix(".o"))
        return path, None if code == 0 else (err.strip().splitlines() or ["no reason"])[-1]

    def launch(self, path, *options):
        """What gdn-run says of a compiled layer, as JSON, or an error."""
        code, out, err = self.run("./gdn-run", path, "--target=sm_90a", f"--object={path.with_suffix('.o')}",
                                  "--json", *options)
        if out.strip().startswith("{"):
            return json.loads(out), None
        return None, (err.strip().splitlines() or [f"exit code {code}"])[-1]


def describe_check(result):
    parts = [f"{o['name']} {o['rms_error']:.1e}" if o["rms_error"] is not None else f"{o['name']} not finite"
             for o in result["outputs"]]
    return ", ".join(parts) + ("" if result["repeatable"] else ", not repeatable")


def check(session, arguments):
    """Accuracy against float64 and equal bits."""
    rows = []
    if (session.directory / "squares").exists() and arguments.only in "squares":
        code, out, err = session.run("./squares")
        rows.append(("an object called from C", code == 0 and "squares: 0 wrong" in out,
                     " ".join((out + err).split())))
    by_hand = session.directory / "forward.mlir"
    for batch, tokens in ((1, 1), (2, 333), (3, 4096)):
        if by_hand.exists() and arguments.only in "by hand":
            result, error = session.launch(by_hand, f"--dim=B={batch}", f"--dim=T={tokens}", "--check",
                                           "--repeat=100")
            rows.append((f"by hand 2x4 {tokens}x{batch}", bool(result and result["pass"]),
                         error or describe_check(result)))
    layers = [layer for layer in CHECKS if arguments.only in layer.name]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        compiled = list(pool.map(session.compile, layers))
    for layer, (path, error) in zip(layers, compiled):
        result = None
        if not error:
            result, error = session.launch(path, *layer.sizes(), "--check", "--repeat=100")
        rows.append((layer.name, bool(result and result["pass"]), error or describe_check(result)))
    for op, gate in ((op, gate) for op, gates in GATES.items() for gate in gates):
        if arguments.only not in gate:
            continue
        code, out, err = session.run("./gdn-numerics", "--target=sm_90a", f"--sample={arguments.samples}",
                                     "--settings=6", "--only", f"op={op}", "--only", f"gate={gate}", "--only",
                                     "dims=128x128", seconds=240)
        last = ((out.strip() or err.strip()).splitlines() or ["nothing"])[-1]
        rows.append((f"matrix, {op}, gate {gate}", code == 0, last))
    return rows


def sanitize(session, arguments):
    """compute-sanitizer over small layers."""
    rows = []
    for layer, tool in itertools.product(SANITIZED, ("memcheck", "synccheck", "racecheck")):
        name = f"{tool}: {layer.name}"
        if arguments.only not in name:
            continue
        # Racecheck does not know that one lane's arrival stands for its warp, behind a sync of the warp.
        path, error = session.compile(layer, *(["--lanes-arrive"] if tool == "racecheck" else []))
        if error:
            rows.append((name, False, error))
            continue
        code, out, err = session.run(
            "compute-sanitizer", "--tool", tool, "--error-exitcode=9", "./gdn-run", path, "--target=sm_90a",
            f"--object={path.with_suffix('.o')}", *layer.sizes())
        summary = [line for line in (out + err).splitlines() if "SUMMARY" in line]
        rows.append((name, code == 0 and bool(summary),
                     summary[-1].strip("= ") if summary else (err.strip().splitlines() or ["none"])[-1]))
    return rows


def bench(session, arguments):
    """Times of the cases of docs/experiments/results.md: 0.2 s after the last launch, and after many launches."""
    layers = [layer for layer in BENCH if arguments.only in layer.name]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        compiled = list(pool.map(session.compile, layers))
    rows = []
    for layer, (path, error) in zip(layers, compiled):
        result = None
        if not error:
            result, error = session.launch(path, *layer.sizes(), "--repeat=600")
        if error:
            rows.append((layer.name, False, error))
            continue
        times = result["all_run_seconds"]
        head, tail = sorted(times[:20]), sorted(times[-100:])
        rows.append((layer.name, result["repeatable"],
                     f"first 20: {head[10] * 1e3:.4f} ms, last 100: {tail[50] * 1e3:.4f} ms, "
                     f"{result['flop'] / tail[50] * 1e-12:.0f} TFLOP/s, workspace {result['workspace_bytes']} bytes"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["check", "sanitize", "bench"])
    parser.add_argument("directory")
    parser.add_argument("--log", default="device.log")
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--samples", type=int, default=8, help="programs of the matrix for each gate (8)")
    arguments = parser.parse_args()
    session = Session(arguments.directory, arguments.log)
    rows = {"check": check, "sanitize": sanitize, "bench": bench}[arguments.command](session, arguments)
    for name, good, text in rows:
        print(f"{'pass' if good else 'FAIL'}  {name:32} {text}")
    failed = sum(not good for _, good, _ in rows)
    print(f"{len(rows) - failed} passed, {failed} failed, {time.monotonic() - START:.0f} s")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
