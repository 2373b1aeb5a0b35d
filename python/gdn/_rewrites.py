# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that are run as other calls, and what makes the results of these the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import _library
from ._arguments import Call, check_output, library_of, type_name, viewed

#: The caller's results from those of the call that is run.
Back = Callable[[Any, Any], tuple[Any, Any]]


def same(o: Any, state: Any) -> tuple[Any, Any]:
    """The results of a call that is run as it is."""
    return o, state


class Rewrite(NamedTuple):
    """Some calls, and how they are run. `explain` applies it to tensors without data."""

    applies: Callable[[Call], bool]
    apply: Callable[[Call], tuple[Call, Back]]
    #: The tensors whose elements `apply` reads.
    reads: tuple[str, ...]

    def run(self, forward: Callable[..., tuple[Any, Any]], call: Call) -> tuple[Any, Any]:
        """Runs such a call by `forward`."""
        given, back = self.apply(call)
        return back(*forward(*given.arguments))


_DATA = ("q", "k", "v")
#: The types that these may have.
_DATA_TYPES = frozenset(_library.MANIFEST["types"][key]["name"] for key in _library.MANIFEST["data_types"])


def _are_mixed(call: Call) -> bool:
    """Whether q, k and v are there, in different types that a call takes."""
    if any(x is None for x in call[:3]):
        return False
    types = {type_name(viewed(name, x)) for name, x in zip(_DATA, call)}
    return len(types) > 1 and types <= _DATA_TYPES


def _cast(x: Any, dtype: Any) -> Any:
    return x.to(dtype) if library_of(x).__name__ == "torch" else x.astype(dtype)


def _widened(call: Call) -> tuple[Call, Back]:
    """The call in float32. Its o gets the type that it has in FLA."""
    arrays = [viewed(name, x) for name, x in zip(_DATA, call)]
    dtype = arrays[2 if _library.is_recurrent(call.options) else 0].dtype
    q, k, v = (_cast(x, library_of(x).float32) for x in arrays)

    def back(o: Any, state: Any) -> tuple[Any, Any]:
        o = _cast(o, dtype)
        if call.final_state is None:
            state = _like(call.q, state)
        if call.out is None:
            return _like(call.q, o), state
        out = viewed("out", call.out)
        check_output(out, o)
        out[...] = o
        return call.out, state

    return call._replace(q=q, k=k, v=v, out=None), back


def _like(q: Any, result: Any) -> Any:
    """A result in the caller's own library."""
    if library_of(q).__name__ == "torch":
        return result
    from . import _arrays

    return _arrays.like_caller(q, result)


#: Calls whose q, k and v have different types.
MIXED = Rewrite(_are_mixed, _widened, _DATA)
