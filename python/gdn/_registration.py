# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators `torch.ops.gdn` are there when gdn and torch are imported, in either order: graphs that torch.export
saved name them, and nobody has called a function of gdn then. `import gdn` itself imports no torch."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
import threading
from importlib.machinery import ModuleSpec
from typing import Any


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
