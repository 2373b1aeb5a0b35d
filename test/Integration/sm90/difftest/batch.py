"""Many programs in one run on a GPU machine: packed here, run there by processes that may hang or die."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import threading
import time

from . import gpu
from .program import from_json
from .text import text

PER_LIBRARY = 50
SECONDS = 30  # Of one program, its values in float64 included.


def pack(compiled, tools, runtime_library, out):
    """Writes the programs, their objects as libraries, the runtime and these files to `out`/differential.tar.xz."""
    stage = pathlib.Path(out) / "differential"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    lines = []
    for number in range(0, len(compiled), PER_LIBRARY):
        group, library = compiled[number:number + PER_LIBRARY], f"programs{number // PER_LIBRARY}.so"
        objects = [str(tools.folder / f"{program.name}.o") for program in group]
        linker = os.environ.get("CC", "clang-22")
        subprocess.run([linker, "-shared", "-Wl,-s", "-o", str(stage / library), *objects], check=True)
        lines += [json.dumps({"library": library, "program": program.to_json()}) for program in group]
    (stage / "programs.jsonl").write_text("\n".join(lines) + "\n")
    shutil.copy(runtime_library, stage / "libgdn-runtime.so.0")
    here = pathlib.Path(__file__).parent
    shutil.copy(here.parent / "differential.py", stage)
    shutil.copytree(here, stage / "difftest", ignore=shutil.ignore_patterns("__pycache__"))
    path = pathlib.Path(out) / "differential.tar.xz"
    with tarfile.open(path, "w:xz", preset=6) as archive:
        archive.add(stage, "differential")
    shutil.rmtree(stage)
    return path


def read(folder, only):
    lines = (pathlib.Path(folder) / "programs.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines if line]
    programs = [(entry["library"], from_json(entry["program"])) for entry in entries]
    return [(library, program) for library, program in programs if not only or program.name in only]


def work(folder, names):
    """A child: runs programs in turn and says so, a JSON line before and after each."""
    runtime = gpu.Runtime(folder)
    for library, program in read(folder, names):
        print(json.dumps({"begin": program.name}), flush=True)
        try:
            wrong, fatal = gpu.run(runtime, program, library), False
        except RuntimeError as error:  # A context does not survive most of them.
            wrong, fatal = str(error), True
        except Exception as error:  # pylint: disable=broad-except
            wrong, fatal = f"{type(error).__name__}: {error}", False
        print(json.dumps({"end": program.name, "wrong": wrong}), flush=True)
        if fatal:
            return 1
    return 0


class Crew:
    """Children that share out the programs. One that hangs or dies costs its program."""

    def __init__(self, folder, names, children):
        self.folder, self.left, self.results, self.lock = folder, list(names), {}, threading.Lock()
        self.children = children

    def take(self):
        # Half of a fair share, so that children end at about the same time.
        with self.lock:
            size = max(1, min(PER_LIBRARY, len(self.left) // (2 * self.children)))
            group, self.left = self.left[:size], self.left[size:]
        return group

    def run_group(self, names):
        """Runs a child; gives back what it did not get to."""
        command = [sys.executable, str(pathlib.Path(self.folder) / "differential.py"), "work", str(self.folder),
                   "--names", ",".join(names)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        late = threading.Event()

        def give_up():
            late.set()
            child.kill()

        running, done = None, set()
        timer = threading.Timer(2 * SECONDS, give_up)
        timer.start()
        for line in child.stdout:
            timer.cancel()
            entry = json.loads(line)
            if "begin" in entry:
                running = entry["begin"]
            else:
                self.results[entry["end"]] = entry["wrong"]
                done.add(entry["end"])
                running = None
            timer = threading.Timer(SECONDS, give_up)
            timer.start()
        timer.cancel()
        said = child.stderr.read().strip().splitlines()
        child.wait()
        if running or not done:
            name = running or names[0]
            self.results[name] = f"no end within {SECONDS} s" if late.is_set() else \
                f"the process ended with {child.returncode}: {said[-1] if said else 'no word'}"
            done.add(name)
        return [name for name in names if name not in done]

    def run_child(self):
        while names := self.take():
            while names:
                names = self.run_group(names)

    def run(self):
        threads = [threading.Thread(target=self.run_child) for _ in range(self.children)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Others may have waited for one that hung: those that were late run once more, alone.
        late = [name for name, wrong in self.results.items() if wrong and wrong.startswith("no end")]
        for name in late:
            self.run_group([name])
        return self.results


def run(folder, only, children, log):
    start = time.monotonic()
    names = [program.name for _, program in read(folder, only)]
    results = Crew(folder, names, children).run()
    wrong = {name: results.get(name, "was not run") for name in names if results.get(name, "was not run")}
    for name, said in wrong.items():
        print(f"FAIL {name} gpu: {said}")
    smallest = min((program for _, program in read(folder, list(wrong) or ["none"])),
                   key=lambda program: (len(program.ops()), sum(program.lengths)), default=None)
    summary = {"programs": len(names), "failures": len(wrong), "seconds": round(time.monotonic() - start, 1),
               "smallest": smallest and smallest.to_json(),
               "wrong": wrong, "right": [name for name in names if name not in wrong]}
    if smallest:
        print(f"the smallest of them: {smallest.name}, {len(smallest.ops())} ops\n{text(smallest)}")
    if log:
        pathlib.Path(log).write_text(json.dumps(summary, indent=1))
    print(f"{len(names)} programs on the GPU: {len(names) - len(wrong)} right, {len(wrong)} failures, "
          f"{summary['seconds']:.0f} s")
    return 1 if wrong or not names else 0
