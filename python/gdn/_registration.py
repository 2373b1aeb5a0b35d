# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators `torch.ops.gdn` are there when gdn and torch are imported, in either order: graphs that torch.export
saved name them, and nobody has called a function of gdn then. `import gdn` itself imports no torch.

A process registers them once. A notebook or a code reloader may forget the package's modules and import them anew. torch
takes no second definition then, and what was compiled or saved for autograd before holds on to the first one. So the first
copy's operators stay as long as the process, and a copy that is imported later calls them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from . import _library


def _register() -> None:
    # `import torch` must work whatever is missing here. The first call imports the module again, and raises then.
    with contextlib.suppress(Exception):
        importlib.import_module("gdn._torch")


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Registers the operators when torch has been imported. Who only asks whether there is a torch changes nothing."""

    def __init__(self) -> None:
        # Per thread: one that only asks must not hide this finder from another that imports.
        self._local = threading.local()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "torch" or getattr(self._local, "searches", False):
            return None
        self._local.searches = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._local.searches = False
        if spec is not None and spec.loader is not None:
            # A loader may have no `exec_module`, or not let it be set. The first call registers the operators then.
            with contextlib.suppress(Exception):
                self._watch(spec.loader)
        return spec

    def _watch(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
            _register()

        loader.exec_module = exec_module


def register_with_torch() -> None:
    """Registers the operators now, or else when torch is imported."""
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _AfterTorch())
    elif sys.modules["torch"] is not None:
        _register()


#: Where the operators' namespace keeps what was registered, which outlives the modules of the package.
_KEPT = "_registered"


def register_operators(schemas: tuple[str, ...], implement: Callable[[Any], None]) -> None:
    """Defines operators of these schemas, unless a copy of the package has done so before.

    Raises:
        ImportError: the copy that was imported before has other operators.
    """
    import torch

    namespace = torch.ops.gdn
    # What the operators' arguments mean: their types and the options' bits.
    said = (schemas, tuple(sorted(map(str, _library.FIELDS.items()))))
    kept = vars(namespace).get(_KEPT)
    if kept is not None:
        if kept[0] != said:
            raise ImportError(
                "gdn: expected a process without other operators of the name, got those of another version of gdn, "
                "which was imported before; start a new process"
            )
        return
    ops = torch.library.Library("gdn", "DEF")
    try:
        for schema in schemas:
            ops.define(schema)
        implement(ops)
    except BaseException:
        # The next import is to raise the same, and not that the operators are there already.
        ops._destroy()
        raise
    setattr(namespace, _KEPT, (said, ops))
