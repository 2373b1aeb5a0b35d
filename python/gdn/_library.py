# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libgdn.so, loaded on the first call: `import gdn` itself stays light."""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
import types
from typing import Any

from . import _manifest

MANIFEST = _manifest.read()

#: Gate domains by name, as the library numbers them.
GATE_DOMAINS = {row["name"]: number for number, row in enumerate(MANIFEST["gate_domains"].values())}
#: The bound of bounded gates that kernels have.
BOUND = MANIFEST["gate_domains"]["Bounded"]["lower_bound"]
#: The gate domains that have parameters, A_log and dt_bias.
PARAMETRIC_GATES = frozenset(GATE_DOMAINS[row["name"]] for row in MANIFEST["gate_domains"].values() if "takes" in row)
#: beta as a value, as logits, and as logits whose sigmoid is doubled.
BETA_VALUE, BETA_LOGIT, BETA_DOUBLED_LOGIT = map(
    list(MANIFEST["beta_domains"]).index, ("Value", "Logit", "DoubledLogit")
)

#: The fields of a call's options, by name. The manifest says what they mean.
FIELDS = _manifest.option_fields(MANIFEST)
#: Of a call's options: the numbers of the gate's and beta's domains, whether q and k are normalised, whether states are
#: [N, HV, V, K], whether the function goes token by token, and the first row of a pool that sequences may name.
gate_domain_of, beta_domain_of, has_l2norm, state_is_v_first, is_recurrent, first_state_of = (
    FIELDS[name].of for name in ("gate_domain", "beta_domain", "l2norm", "state_v_first", "recurrent", "first_state")
)
#: Options of one bit.
BF16_AS_BITS = FIELDS["bf16_as_bits"].pack(1)
FLOAT32_ARITHMETIC = FIELDS["float32_arithmetic"].pack(1)
UNDECAYED = FIELDS["undecayed"].pack(1)
SAVES_STATES = FIELDS["saves_states"].pack(1)
#: The largest numbers that the library can be told: of a pool's first row, and of segments or tokens of one.
MOST_FIRST_STATE, MOST_SPLIT_BY = FIELDS["first_state"].most, FIELDS["split_by"].most
#: The first row of a pool that sequences may name, as options.
pack_first_state = FIELDS["first_state"].pack


def pack_options(**numbers: int) -> int:
    """The options of a call as the integer that the library and the torch ops take: numbers of fields, 0 of all others."""
    return sum(FIELDS[name].pack(number) for name, number in numbers.items())


#: What a call says about segments, as options (SplitRequest of gdn/CostModel/Segments.h).
NO_SEGMENTS = FIELDS["split"].pack(1)
#: The bits that say which of these words a call has.
SPLIT_MASK = FIELDS["split"].pack(FIELDS["split"].most)


def pack_segments(count: int) -> int:
    """So many segments of the longest sequence, as options."""
    return pack_options(split=2, split_by=count)


def pack_segment_length(tokens: int) -> int:
    """Segments of so many tokens, as options."""
    return pack_options(split=3, split_by=tokens)


def has_segment_length(options: int) -> bool:
    """Whether a call with these options has segments of a length: then types and options alone choose its kernels."""
    return options & SPLIT_MASK == pack_segment_length(0)


_SPLIT = SPLIT_MASK | FIELDS["split_by"].pack(MOST_SPLIT_BY)


def segments_of(options: int, decays: bool = True) -> int:
    """What decides about the segments of a call, as options: what it says about them, and whether its gates decay."""
    return options & _SPLIT | (0 if decays else UNDECAYED)


#: Options of a call of token by token, and of one with `bitwise`: whole sequences, whose kernels types and options alone
#: choose.
RECURRENT, BITWISE = FIELDS["recurrent"].pack(1), pack_segment_length(0)
#: The bits by which a call with `bitwise` that is computed in chunks is known.
BITWISE_MASK = _SPLIT | RECURRENT


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


#: The names of the library's functions (Bridge.cpp explains them).
_FUNCTIONS = (
    "forward", "forward_objects", "backward", "backward_saved", "forward_saving", "saving_pays", "explain",
    "explain_backward", "explain_saving", "reads_objects", "kernels", "gpus", "check_values",
)  # fmt: skip


@functools.cache
def load() -> Any:
    """The library's functions, as TVM-FFI offers them."""
    tvm_ffi = _import_tvm_ffi()
    file = path()
    if not file.is_file():
        raise ImportError(
            f"gdn: expected the library at {file}, which is not there; install the wheel "
            "(pip install .), or set GDN_LIBRARY to a build's python/gdn/libgdn.so"
        )
    tvm_ffi.register_error("NotImplementedError", NotImplementedError)
    try:
        module = tvm_ffi.load_module(str(file))
        # Attributes cost less than look-ups in a module.
        functions = types.SimpleNamespace(**{name: getattr(module, name) for name in _FUNCTIONS})
    except (AttributeError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ImportError(f"gdn: expected gdn's library at {file}, got another file: {reason}") from error
    # It reads Python's objects first, and lets other threads run then.
    functions.forward_objects.release_gil = False
    return functions
