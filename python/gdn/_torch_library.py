# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators `torch.ops.gdn` of a process, which are registered once.

A notebook or a code reloader may forget the package's modules and import them anew. torch takes no second definition
then, and what was compiled or saved for autograd before holds on to the first one. So the first copy's operators stay
as long as the process, and a copy that is imported later calls them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from . import _library

#: The inputs of a call in an operator's schema, and the gradients of those that have one.
INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? g, Tensor? beta, Tensor? A_log, Tensor? dt_bias, Tensor? initial_state, "
    "Tensor? cu_seqlens"
)
GRADIENTS = f"({', '.join(['Tensor'] * 8)})"
#: Where the operators' namespace keeps what was registered, which outlives the modules of the package.
_KEPT = "_registered"


def register(schemas: tuple[str, ...], implement: Callable[[torch.library.Library], None]) -> None:
    """Defines operators of these schemas, unless a copy of the package has done so before.

    Raises:
        ImportError: the copy that was imported before has other operators.
    """
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
