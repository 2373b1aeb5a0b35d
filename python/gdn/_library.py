# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libgdn.so, loaded on the first call: `import gdn` itself stays light."""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
from typing import Any

from . import _manifest

MANIFEST = _manifest.read()

#: Gate domains by name, as the library numbers them.
GATE_DOMAINS = {row["name"]: number for number, row in enumerate(MANIFEST["gate_domains"].values())}
#: The gate domains that have parameters, A_log and dt_bias.
PARAMETRIC_GATES = frozenset(GATE_DOMAINS[row["name"]] for row in MANIFEST["gate_domains"].values() if "takes" in row)
#: beta as a value, as logits, and as logits whose sigmoid is doubled.
BETA_VALUE, BETA_LOGIT, BETA_DOUBLED_LOGIT = map(
    list(MANIFEST["beta_domains"]).index, ("Value", "Logit", "DoubledLogit")
)

#: The fields of a call's options, by name.
FIELDS = _manifest.option_fields(MANIFEST)
_GATE_DOMAIN, _BETA_DOMAIN = FIELDS["gate_domain"].shift, FIELDS["beta_domain"].shift
#: The largest numbers of these fields.
GATE_MASK, BETA_MASK = (1 << FIELDS["gate_domain"].bits) - 1, (1 << FIELDS["beta_domain"].bits) - 1
_L2NORM, _RECURRENT = FIELDS["l2norm"].shift, FIELDS["recurrent"].shift
_STATE_V_FIRST = FIELDS["state_v_first"].shift
#: An option: arrays of uint16 are the bits of bfloat16, which NumPy's export does not know.
BF16_AS_BITS = 1 << FIELDS["bf16_as_bits"].shift
#: An option: a CPU computes arrays of 16 bits in float32, and rounds outputs once.
FLOAT32_ARITHMETIC = 1 << FIELDS["float32_arithmetic"].shift
#: An option: g decays nothing anywhere, so that no segment of a GPU forgets what is before it.
UNDECAYED = 1 << FIELDS["undecayed"].shift
#: An option: the forward saves what tokens write and states for its gradients, where there are kernels that do.
SAVES_STATES = 1 << FIELDS["saves_states"].shift
#: The largest first row of a pool that the library can be told.
MOST_FIRST_STATE = (1 << FIELDS["first_state"].bits) - 1


def pack_first_state(row: int) -> int:
    """The first row of a pool that sequences may name, as options."""
    return row << FIELDS["first_state"].shift


def first_state_of(options: int) -> int:
    """That row of a call with these options."""
    return options >> FIELDS["first_state"].shift & MOST_FIRST_STATE


def gate_domain_of(options: int) -> int:
    """The number of the gate's domain."""
    return options >> _GATE_DOMAIN & GATE_MASK


def beta_domain_of(options: int) -> int:
    """The number of beta's domain."""
    return options >> _BETA_DOMAIN & BETA_MASK


def pack_domains(gate_domain: int, beta_domain: int) -> int:
    """The domains of g and beta as options."""
    return gate_domain << _GATE_DOMAIN | beta_domain << _BETA_DOMAIN


def pack_options(
    gate_domain: int, beta_domain: int, l2norm: bool, state_v_first: bool, recurrent: bool
) -> int:
    """The options of a call as the integer that the library and the torch ops take."""
    return (
        pack_domains(gate_domain, beta_domain)
        | l2norm << _L2NORM
        | state_v_first << _STATE_V_FIRST
        | recurrent << _RECURRENT
    )


_SPLIT, _SPLIT_BY = FIELDS["split"].shift, FIELDS["split_by"].shift
#: The largest number of segments, or of tokens of one, that the library can be told.
MOST_SPLIT_BY = (1 << FIELDS["split_by"].bits) - 1
#: What a call says about segments, as options (SplitRequest of gdn/CostModel/Segments.h).
NO_SEGMENTS = 1 << _SPLIT
#: The bits that say which of these words a call has.
SPLIT_MASK = ((1 << FIELDS["split"].bits) - 1) << _SPLIT


def pack_segments(count: int) -> int:
    """So many segments of the longest sequence, as options."""
    return 2 << _SPLIT | count << _SPLIT_BY


def pack_segment_length(tokens: int) -> int:
    """Segments of so many tokens, as options."""
    return 3 << _SPLIT | tokens << _SPLIT_BY


def has_segment_length(options: int) -> bool:
    """Whether a call with these options has segments of a length: then types and options alone choose its kernels."""
    return options & SPLIT_MASK == pack_segment_length(0)


def segments_of(options: int) -> int:
    """What a call with these options says about segments, as options."""
    return options & (SPLIT_MASK | MOST_SPLIT_BY << _SPLIT_BY)


def is_recurrent(options: int) -> bool:
    """Whether a call with these options is the function that goes token by token."""
    return bool(options >> _RECURRENT & 1)


def has_l2norm(options: int) -> bool:
    """Whether a call with these options normalises q and k."""
    return bool(options >> _L2NORM & 1)


def state_is_v_first(options: int) -> bool:
    """Whether a call with these options has states [N, HV, V, K]."""
    return bool(options >> _STATE_V_FIRST & 1)


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
        return Functions(tvm_ffi.load_module(str(file)))
    except (AttributeError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ImportError(f"gdn: expected gdn's library at {file}, got another file: {reason}") from error


class Functions:
    """The library's functions: attributes here cost less than look-ups in a module."""

    def __init__(self, module: Any) -> None:
        self.forward = module.forward
        self.forward_objects = module.forward_objects
        # It reads Python's objects first, and lets other threads run then.
        self.forward_objects.release_gil = False
        self.backward = module.backward
        self.backward_saved = module.backward_saved
        self.forward_saving = module.forward_saving
        self.saving_pays = module.saving_pays
        self.explain_backward = module.explain_backward
        self.reads_objects = module.reads_objects
        self.explain = module.explain
        self.kernels = module.kernels
        self.check_values = module.check_values
