# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of their own for programs that begin with `import torch`, which takes seconds: one process has imported it
and what compiles by it, which takes longer still, and nothing else, and each program runs in a fork of that."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback


def _run(program, environment, out, err):
    """In the fork, which ends here."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    # C code reads these, too.
    os.environ.update(environment)
    code = 1
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve():
    """Runs the programs that standard input has, a line each, and tells what became of them."""
    with contextlib.suppress(ImportError):
        import torch._dynamo  # noqa: F401

    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _run(*json.loads(line), out, err)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        print(json.dumps([code, *texts]), flush=True)


_server = None


def fresh(program, **environment):
    """As subprocess.run of `python -c PROGRAM`, in a process that has imported torch alone, if it is there."""
    global _server
    if _server is None:
        # -P: this folder is not where the program imports from.
        command = [sys.executable, "-P", "-c", f"exec(open({__file__!r}).read()); _serve()"]
        _server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(json.dumps([program, environment]), file=_server.stdin, flush=True)
    return subprocess.CompletedProcess(program, *json.loads(_server.stdout.readline()))
