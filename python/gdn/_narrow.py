# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of torch in 8 bits, as FlashInfer stores them: float8_e4m3fn and float8_e5m2, cast without a scale.

Kernels compute with states in float32, which torch makes of them, and what they write is cast once. Of a pool only the rows of
a call's sequences are, so memory follows from these. Speculated tokens are verified by a call each: their states are cast
before the next token reads them, as they are in a pool. Nothing waits for the host, and a CUDA graph may capture it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _library
from ._arguments import Back, Call

_Forward = Callable[..., tuple[Any, Any]]

_TYPES = frozenset((torch.float8_e4m3fn, torch.float8_e5m2))
_STATES = ("initial_state", "final_state", "step_states")
#: Tensors with tokens.
_TOKENS = ("q", "k", "v", "g", "beta")


def _is_narrow(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in _TYPES


def has_narrow(call: Call) -> bool:
    """Whether states of a call have 8 bits."""
    return any(_is_narrow(getattr(call, name)) for name in _STATES)


class _Rows:
    """Rows of an array of states that a call names; those below `first`, and of the array's number and more, are nobody's."""

    def __init__(self, states: Any, rows: Any, first: int, is_named: Any = True) -> None:
        rows = rows.flatten()
        #: Not all of torch's functions on rows take elements of 8 bits.
        self.bytes, self.dtype = states.view(torch.uint8), states.dtype
        self.is_there = (rows >= first) & (rows < len(states)) & is_named
        self._numbers, self._places = torch.arange(len(rows), device=rows.device), rows.where(self.is_there, 0).long()

    def numbers(self, is_there: Any = True) -> Any:
        """Rows of as many states as are named here, or none."""
        return self._numbers.where(self.is_there & is_there, -1).int()

    def read(self) -> Any:
        return self.bytes[self._places]

    def write(self, made: Any) -> None:
        """Writes bytes of states to their rows."""
        if not len(made):
            return
        # One without a row stores what another one does: the first that has one, or what the array has.
        source = self._numbers.where(self.is_there, self.is_there.int().argmax())
        made = made[source].where(self.is_there.any(), self.bytes[:1])
        self.bytes.index_copy_(0, self._places[source], made)


def _widen(made: Any, dtype: Any) -> Any:
    return made.view(dtype).float()


def _narrowed(states: Any, dtype: Any) -> Any:
    return states.to(dtype).view(torch.uint8)


def _check_pool(call: Call) -> None:
    if call.final_state is not None and call.final_state is not call.initial_state:
        raise ValueError("final_state: expected initial_state, the pool, with state_indices, got another tensor")


def _widened(call: Call) -> tuple[Call, Back]:
    """The call with states in float32."""
    initial, final, kept, indices = call.initial_state, call.final_state, call.step_states, call.step_indices
    first, wide, named, rows = _library.first_state_of(call.options), call.initial_state, None, None
    given = call._replace(options=call.options - _library.pack_first_state(first))

    def own(numbers: Any) -> Any:
        """Numbers of rows that are read and written in place."""
        return numbers if numbers is None or not first else numbers.where(numbers >= first, -1)

    if call.state_indices is not None and _is_narrow(initial):
        _check_pool(call)
        rows = _Rows(initial, call.state_indices, first)
        wide = _widen(rows.read(), initial.dtype)
        given = given._replace(state_indices=rows.numbers())
    else:
        wide = wide.float() if _is_narrow(wide) else wide
        given = given._replace(state_indices=own(call.state_indices))
    given = given._replace(initial_state=wide)
    if final is not None and final is initial:
        given = given._replace(final_state=wide)
    elif _is_narrow(final):
        given = given._replace(final_state=torch.empty_like(final, dtype=torch.float32))
    # Rows that are not written stay.
    if indices is not None and _is_narrow(kept):
        named = _Rows(kept, indices, first)
        numbers = named.numbers().reshape(indices.shape)
        given = given._replace(step_states=_widen(named.read(), kept.dtype), step_indices=numbers)
    elif _is_narrow(kept):
        given = given._replace(step_states=kept.float())
    else:
        given = given._replace(step_indices=own(indices))

    def back(o: Any, state: Any) -> tuple[Any, Any]:
        if named is not None:
            named.write(_narrowed(given.step_states, kept.dtype))
        elif _is_narrow(kept):
            kept.copy_(given.step_states)
        # A row of both kinds has the final state.
        if rows is not None and final is not None:
            rows.write(_narrowed(given.final_state, initial.dtype))
        elif _is_narrow(final):
            final.copy_(given.final_state)
        return o, state if final is None else final

    return given, back


def _keeps_steps(call: Call) -> bool:
    """Whether states after speculated tokens are kept."""
    rows = call.state_indices
    return rows is not None and call.step_intervals is None and (call.step_indices is not None or rows.dim() != 1)


def _check_steps(call: Call) -> None:
    """Refuses what is no verification."""
    from . import _explain, _torch

    _check_pool(call)
    kept = call.step_states
    if kept is not None and (call.final_state is not None or call.output_final_state):
        raise NotImplementedError("final_state: expected None with step_states of 8 bits")
    if not _is_narrow(call.initial_state) or (kept is not None and kept.dtype is not call.initial_state.dtype):
        got = call.initial_state.dtype if kept is None else kept.dtype
        raise TypeError(f"step_states: expected a tensor of the type of initial_state, got {got}")

    def known(name: str, x: Any) -> Any:
        """What the library may look at: no states, and no values that a GPU has."""
        if x is None or (x.device.type == "cpu" and name not in _STATES):
            return x
        return x.to("meta", torch.float32) if _is_narrow(x) else x.to("meta")

    # Its own rules, of states in float32.
    described = [_torch.describe(known(name, x)) for name, x in zip(Call._fields, call.tensors)]
    _explain._ask("explain", described, "cpu", call.scale, call.options, 1, call.max_seqlen)


class _Steps:
    """A call that keeps states after tokens, as calls of one token."""

    def __init__(self, call: Call) -> None:
        rows, table = call.state_indices, call.step_indices
        self.call, self.first = call, _library.first_state_of(call.options)
        if table is None:
            table, rows = rows, rows[:, 0]
        if call.num_accepted is not None:
            rows = table.gather(1, call.num_accepted.long().clamp(1, table.shape[1])[:, None] - 1)[:, 0]
        self.table, self.rows = table, _Rows(call.initial_state, rows, self.first)
        self.is_packed, tokens = call.cu_seqlens is not None, call.q.shape[1]
        self.starts = call.cu_seqlens[:-1].long() if self.is_packed else torch.zeros_like(rows)
        self.lengths = call.cu_seqlens.diff() if self.is_packed else torch.full_like(rows, tokens)
        #: Tokens whose states are kept, and all of them, or all of the packed ones.
        self.steps, self.tokens = min(table.shape[1], tokens), tokens
        self.given = call._replace(
            cu_seqlens=None, out=None, num_accepted=None, parents=None, step_states=None, step_indices=None,
            options=call.options - _library.pack_first_state(self.first), output_final_state=False, max_seqlen=0,
        )  # fmt: skip

    def places(self, t: int) -> Any:
        """Where token t of each sequence is among packed ones; after them all if there is none."""
        return (self.starts + t).where(t < self.lengths, self.tokens)

    def token(self, t: int, states: Any) -> Call:
        """The call of token t. Without it, states stay."""
        call, at = self.call, self.places(t).clamp(max=self.tokens - 1) if self.is_packed else None
        taken = {
            name: x[:, t : t + 1] if at is None else x[0][at][:, None]
            for name in _TOKENS
            if (x := getattr(call, name)) is not None
        }
        return self.given._replace(
            **taken, initial_state=states, final_state=states, state_indices=self.rows.numbers(t < self.lengths),
            has_initial_state=call.has_initial_state if t == 0 else None,
        )  # fmt: skip

    def rest(self, states: Any) -> Call:
        """The call of the tokens after those whose states are kept. Packed ones are sequences of their own, between others
        that have no states."""
        call, numbers, ends = self.call, self.rows.numbers(), None
        taken = {name: x for name in _TOKENS if (x := getattr(call, name)) is not None}
        if self.is_packed:
            ends = torch.stack((self.starts, self.starts + self.lengths.clamp(max=self.steps)), 1).flatten()
            ends = torch.cat((ends.to(call.cu_seqlens.dtype), call.cu_seqlens[-1:]))
            numbers = torch.stack((torch.full_like(numbers, -1), numbers), 1).flatten()
        else:
            taken = {name: x[:, self.steps :] for name, x in taken.items()}
        return self.given._replace(
            **taken, initial_state=states, final_state=states, state_indices=numbers, has_initial_state=None,
            cu_seqlens=ends, max_seqlen=call.max_seqlen,
        )  # fmt: skip

    def run(self, forward: _Forward) -> tuple[Any, Any]:
        call, rows, steps = self.call, self.rows, self.steps
        target = call.initial_state if call.step_states is None else call.step_states
        table, numbers = self.table[:, :steps], torch.arange(len(self.table), device=self.table.device)
        is_kept = (table >= self.first) & (table < len(target)) & rows.is_there[:, None]
        is_kept = is_kept & (torch.arange(steps, device=table.device) < self.lengths[:, None])
        state, outputs = rows.read(), []
        after = state.new_empty((steps, *state.shape))
        for t in range(steps):
            if call.parents is not None and t > 1:
                parents = call.parents[:, t].long()
                parents = parents.where((parents >= 0) & (parents < t - 1), t - 1)
                is_own = (parents == t - 1) | ~is_kept[numbers, parents]
                state = after[parents.where(~is_own, t - 1), numbers]
            wide = _widen(state, rows.dtype)
            outputs.append(forward(*self.token(t, wide).arguments)[0])
            state = after[t] = _narrowed(wide, rows.dtype)
        rest = None
        if self.tokens > steps or not steps:
            rest = forward(*self.rest(_widen(state, rows.dtype)).arguments)[0]
        kept = _Rows(target, table, self.first, is_kept.flatten())
        kept.write(after.transpose(0, 1).flatten(0, 1))
        return self.gathered(outputs, rest), call.final_state

    def gathered(self, outputs: list[Any], rest: Any) -> Any:
        """The output of the call."""
        if not self.is_packed:
            o = torch.cat(outputs if rest is None else [*outputs, rest], 1)
        elif not outputs:
            o = rest
        else:
            o = outputs[0].new_zeros((self.tokens + 1, *outputs[0].shape[2:]))
            if rest is not None:
                o[: self.tokens] = rest[0]
            for t, x in enumerate(outputs):
                o[self.places(t)] = x[:, 0]
            o = o[None, : self.tokens]
        return o if self.call.out is None else self.call.out.copy_(o)


def run(forward: _Forward, call: Call) -> tuple[Any, Any]:
    """Runs such a call by `forward`."""
    if _keeps_steps(call):
        _check_steps(call)
        return _Steps(call).run(forward)
    given, back = _widened(call)
    return back(*forward(*given.arguments))


def explained(call: Call) -> Call:
    """The call that is run for this one: of states after tokens, that of the first token. Nothing runs: states that it makes
    have no data here."""
    if not has_narrow(call):
        return call
    keeps_steps = _keeps_steps(call)
    if keeps_steps:
        _check_steps(call)
    # One tensor stays one.
    names = Call._fields[: len(call.tensors)] if keeps_steps else (*_STATES, "state_indices", "step_indices")
    tensors = {name: x for name in names if (x := getattr(call, name)) is not None}
    made = {id(x): x.to("meta") for x in tensors.values()}
    given = call._replace(**{name: made[id(x)] for name, x in tensors.items()})
    if not keeps_steps:
        return _widened(given)[0]
    steps = _Steps(given)
    return steps.token(0, _widen(steps.rows.read(), steps.rows.dtype))
