# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package as a whole: its import, its commands, its documentation, its types."""

import doctest
import importlib
import importlib.machinery
import inspect
import os
import pathlib
import subprocess
import sys

import pytest
from fresh import fresh

import gdn

MODULES = ["gdn", "gdn._api", "gdn._explain", "gdn._open_chunks", "gdn.fla", "gdn.flashinfer", "gdn.transformers"]


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def command(*arguments):
    """As `python -m gdn ARGUMENTS`."""
    return fresh(f"import gdn.__main__; raise SystemExit(gdn.__main__.main({list(arguments)}))")


def test_import_is_light():
    """Neither torch, Transformers, NumPy nor TVM-FFI is loaded before the first call."""
    heavy = "{'torch', 'transformers', 'numpy', 'tvm_ffi'}"
    run = python("-c", f"import sys, gdn; print(sorted({heavy} & sys.modules.keys()))")
    assert run.stdout.strip() == "[]", run.stdout + run.stderr


def test_it_works_without_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import gdn, numpy as np\n"
        "q = np.ones((1, 64, 1, 64), np.float32); g = np.zeros((1, 64, 1), np.float32)\n"
        "print(gdn.chunk_gated_delta_rule(q, q, q, g, g + 1)[0].shape)\n"
    )
    run = python("-c", program)
    assert run.stdout.strip() == "(1, 64, 1, 64)", run.stderr


@pytest.mark.parametrize("imports", [
    pytest.param("import gdn, torch", marks=pytest.mark.full), "import torch, gdn",
    "import gdn, importlib.util as u; u.find_spec('torch'); import torch",
])
def test_operators_are_registered(imports):
    """In either order of the imports, without a call; and who asks whether there is a torch does not change it."""
    pytest.importorskip("torch")
    program = f"{imports}; print(torch.ops.gdn.gated_delta_rule_backward.default)"
    run = fresh(program) if imports.startswith("import torch") else python("-c", program)
    assert run.stdout.strip() == "gdn.gated_delta_rule_backward.default", run.stderr


#: What a program does with torch.library before `import gdn, torch`, which is followed by a call of gdn.
TORCHES = {
    "another library of the name": "theirs = torch.library.Library('gdn', 'DEF')",
    "no fakes": "del torch.library.register_fake",
    "fakes of another form": "torch.library.register_fake = lambda name: None",
}


@pytest.mark.parametrize("change", TORCHES.values(), ids=TORCHES)
def test_a_torch_that_does_not_register(change):
    """`import torch` works. Each call of gdn says what is wrong, and nothing of the first attempt stays."""
    pytest.importorskip("torch")
    program = (
        "import torch\n"
        f"{change}\n"
        "import gdn\n"
        "x = torch.ones(1, 8, 1, 64)\n"
        "for _ in range(2):\n"
        "    try: gdn.chunk_gated_delta_rule(x, x, x, None, None)\n"
        "    except Exception as error: print(type(error).__name__, str(error).partition(chr(10))[0][:60])\n"
    )
    run = fresh(program)
    first, second = run.stdout.splitlines() or [run.stderr, ""]
    assert run.returncode == 0 and first == second, run.stdout + run.stderr
    assert ("Only a single TORCH_LIBRARY" in first) == ("theirs" in change), first


def test_imported_again():
    """After its modules were forgotten, as notebooks and code reloaders do: the former copy and the new one work, a
    graph of the former too, and an operator is the same object. Arrays and tensors have ways of their own."""
    pytest.importorskip("torch")
    program = """
import gc, sys
import torch
import gdn
x = torch.ones(1, 9, 1, 16) / 8
def run(package):
    array, _ = package.chunk_gated_delta_rule(*[x.numpy()] * 3, None, None)
    leaf = x.clone().requires_grad_()
    o, _ = package.chunk_gated_delta_rule(leaf, x, x, None, None)
    return torch.stack([torch.from_numpy(array), o.detach(), torch.autograd.grad(o.sum(), leaf)[0]])
compiled = torch.compile(lambda q: former.chunk_gated_delta_rule(q, q, q, None, None)[0], backend="aot_eager")
former, operator = gdn, torch.ops.gdn.gated_delta_rule.default
results = [run(gdn)]
graph = compiled(x)
for _ in range(2):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gdn"]:
        del sys.modules[name]
    del gdn
    gc.collect()
    import gdn
    assert gdn is not former
    results += [run(gdn), run(former)]
assert torch.equal(compiled(x), graph) and torch.ops.gdn.gated_delta_rule.default is operator
try:
    gdn.chunk_gated_delta_rule(x, x, x, None, None, out=x)
except ValueError as error:
    assert "memory apart" in str(error), error
print(all(torch.equal(result, results[0]) for result in results))
"""
    run = fresh(program)
    assert run.stdout.strip() == "True", run.stderr


def test_another_version_beside(monkeypatch):
    """Its operators are not taken for this one's."""
    pytest.importorskip("torch")
    from gdn import _registration

    with pytest.raises(ImportError, match="got those of another version of gdn, .* start a new process"):
        _registration.register_operators(("gated_delta_rule(Tensor q) -> Tensor",), lambda ops: None)


def finder_of(loader):
    """The finder that watches for torch, in front of another whose loader is given."""
    from gdn import _registration

    class Theirs:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, loader) if name == "torch" else None

    return _registration._AfterTorch(), Theirs


@pytest.mark.parametrize("slots", [("exec_module",), ()], ids=["read-only", "absent"])
def test_a_loader_that_cannot_be_watched(slots, monkeypatch):
    """Is used as it is."""
    names = {"__slots__": (), **{name: lambda self, module: None for name in slots}}
    loader = type("Loader", (), names)()
    watcher, theirs = finder_of(loader)
    monkeypatch.setattr(sys, "meta_path", [watcher, theirs])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert watcher.find_spec("torch").loader is loader


def test_a_saved_graph_finds_the_operators(tmp_path):
    torch = pytest.importorskip("torch")

    class Layer(torch.nn.Module):
        def forward(self, q, g):
            return gdn.chunk_gated_delta_rule(q, q, q, g, g.exp())[0]

    given = torch.ones(1, 8, 1, 64) / 8, -torch.ones(1, 8, 1)
    torch.export.save(torch.export.export(Layer(), given), tmp_path / "layer.pt2")
    program = (
        f"import torch, gdn; layer = torch.export.load({str(tmp_path / 'layer.pt2')!r}).module()\n"
        "print(layer(torch.ones(1, 8, 1, 64) / 8, -torch.ones(1, 8, 1)).sum().item())"
    )
    run = fresh(program)
    assert float(run.stdout) == pytest.approx(Layer()(*given).sum().item()), run.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert result.attempted or name == "gdn"


@pytest.mark.parametrize("name", gdn.__all__)
def test_everything_public_is_documented(name):
    thing = getattr(gdn, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        doc = inspect.getdoc(thing)
        assert "Example:" in doc
        for parameter in inspect.signature(thing).parameters:
            inherited = "whose page explains the arguments" in doc or "takes what `explain` takes" in doc
            assert inherited or parameter in ("args", "kwargs") or parameter in doc, parameter


@pytest.mark.parametrize("name,alias", [("chunk_gated_delta_rule", "chunk_gdn"),
                                        ("fused_recurrent_gated_delta_rule", "fused_recurrent_gdn")])
def test_aliases(name, alias):
    assert getattr(gdn, name) is getattr(gdn, alias)


@pytest.mark.full
def test_info():
    """scripts/test-python.sh runs this command each time, in an environment without torch."""
    run = python("-m", "gdn")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].split() == ["gdn", gdn.__version__]
    assert run.stdout.rstrip().endswith("self-test passed")
    assert run.stdout.count("pass\n") == 12 and "FAIL" not in run.stdout


def test_self_test_can_fail():
    program = "import gdn.__main__ as m; m._TOLERANCES['float16'] = 1e-9; raise SystemExit(m.main([]))"
    run = fresh(program)
    assert run.returncode == 1 and run.stdout.count("FAIL\n") == 6


def test_bench(tmp_path):
    plot = tmp_path / "plot.png"
    run = command("bench", "--tokens", "64", "128", "--heads", "1", "2", "--channels", "64", "--runs", "2",
                  "--plot", str(plot))
    try:
        import matplotlib
    except ImportError:
        assert run.returncode == 1 and "--plot: expected matplotlib" in run.stderr
    else:
        assert matplotlib and run.returncode == 0 and plot.stat().st_size > 1000
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith("gdn ")]
    assert [row[1] for row in rows] == ["64", "128"] and all(float(row[2]) > 0 for row in rows)


@pytest.mark.parametrize("arguments,message", [
    (["--tokens", "0"], "--tokens: expected positive numbers, got 0"),
    pytest.param(["--channels", "300"], "q: expected K of 1 to 256, got K = 300", marks=pytest.mark.full),
    (["--heads", "3", "4"], "v: expected a number of heads that is a multiple"),
])
def test_bench_refuses(arguments, message):
    run = command("bench", *arguments)
    assert run.returncode == 1 and message in run.stderr and "Traceback" not in run.stderr


def test_missing_library(tmp_path):
    program = (
        "import gdn, numpy as np\n"
        "q = np.ones((1, 64, 1, 64), np.float32); g = np.zeros((1, 64, 1), np.float32)\n"
        "gdn.chunk_gated_delta_rule(q, q, q, g, g)\n"
    )
    run = fresh(program, GDN_LIBRARY=str(tmp_path / "none.so"))
    assert "ImportError: gdn: expected the library at" in run.stderr
    run = fresh(program, GDN_LIBRARY=__file__)
    assert "ImportError: gdn: expected gdn's library at" in run.stderr


def test_types():
    pytest.importorskip("mypy")
    root = pathlib.Path(__file__).parents[2]
    run = python("-m", "mypy", "--config-file", str(root / "pyproject.toml"), str(root / "python" / "gdn"))
    assert run.returncode == 0, run.stdout


def test_version_is_the_projects():
    root = pathlib.Path(__file__).parents[2]
    assert f'version = "{gdn.__version__}"' in (root / "pyproject.toml").read_text()
    assert f"project(gdn VERSION {gdn.__version__} " in (root / "CMakeLists.txt").read_text()


def test_the_readme():
    """Its Python block runs as it stands."""
    pytest.importorskip("torch")
    text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    block = text.partition("```python\n")[2].partition("```")[0]
    assert "gdn.chunk_gated_delta_rule" in block
    run = fresh(block)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("chunk_gated_delta_rule on cpu\n")
