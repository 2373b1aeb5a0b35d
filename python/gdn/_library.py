# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libgdn.so, loaded on the first call: `import gdn` itself stays light."""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
from typing import Any

#: Gate domains by name, as the library numbers them.
GATE_DOMAINS = {"log": 0, "linear": 1, "raw": 2}
#: beta as a value, as logits, and as logits whose sigmoid is doubled.
BETA_VALUE, BETA_LOGIT, BETA_DOUBLED_LOGIT = 0, 1, 2
#: An option: arrays of uint16 are the bits of bfloat16, which NumPy's export does not know.
BF16_AS_BITS = 1 << 7


def pack_options(
    gate_domain: int, beta_domain: int, l2norm: bool, state_v_first: bool, recurrent: bool
) -> int:
    """The options of a call as the integer that the library and the torch ops take."""
    return gate_domain | beta_domain << 2 | l2norm << 4 | state_v_first << 5 | recurrent << 6


def state_is_v_first(options: int) -> bool:
    """Whether a call with these options has states [N, HV, V, K]."""
    return bool(options >> 5 & 1)


def path() -> pathlib.Path:
    """The library: GDN_LIBRARY if set, else the one beside this file."""
    return pathlib.Path(os.environ.get("GDN_LIBRARY") or pathlib.Path(__file__).with_name("libgdn.so"))


def _import_tvm_ffi() -> Any:
    """TVM-FFI, without the C++ compiler that it would start for a torch that is older than 2.10."""
    name = "TVM_FFI_DISABLE_TORCH_C_DLPACK"
    before = os.environ.get(name)
    os.environ[name] = before or "1"
    try:
        return importlib.import_module("tvm_ffi")
    finally:
        if before is None:
            del os.environ[name]


@functools.cache
def load() -> Any:
    """The library's functions, `forward`, `explain` and `kernels`, as TVM-FFI offers them."""
    tvm_ffi = _import_tvm_ffi()
    file = path()
    if not file.is_file():
        raise ImportError(
            f"gdn: expected the library at {file}, which is not there; install the wheel "
            "(pip install .), or set GDN_LIBRARY to a build's python/gdn/libgdn.so"
        )
    tvm_ffi.register_error("NotImplementedError", NotImplementedError)
    module = tvm_ffi.load_module(str(file))
    return Functions(module.forward, module.explain, module.kernels)


class Functions:
    """The library's functions: attributes here cost less than look-ups in a module."""

    __slots__ = ("explain", "forward", "kernels")

    def __init__(self, forward: Any, explain: Any, kernels: Any) -> None:
        self.forward = forward
        self.explain = explain
        self.kernels = kernels
