# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a server does, at random: pieces of prefills, tokens one at a time, speculated tokens of which some are accepted, and
requests that go, over one pool of 64 slots whose other rows nobody may touch. Outputs and states are those of float64, of
Gated DeltaNet and of Kimi Delta Attention.

test_schedule.py [--device cuda] [--kda] [SEQUENCES]: so many sequences in each type of states, of a program of its own.
"""

import dataclasses
import sys

import numpy as np
import pytest
from reference import gated_delta_rule, rms_error

import gdn

SLOTS, FIRST, SPECULATED, MOST_REQUESTS = 64, 1, 3, 9


@dataclasses.dataclass
class Request:
    """A sequence: its slots, the state that float64 has, and which of its slots has it."""

    slots: list
    left: int
    state: np.ndarray | None = None
    #: How many of the tokens that were verified last are accepted.
    accepted: int = 1


class Server:
    """A layer with raw gates over a pool of states [V, K], and the requests that it has."""

    def __init__(self, seed, state, device="cpu", channels=64, is_kda=False):
        import torch

        self.torch, self.random, self.device, self.D = torch, np.random.default_rng(seed), device, channels
        self.H, self.HV = 1, 2
        self.dtype = getattr(torch, state)
        # On a GPU in the form of a model; a CPU takes all in float32.
        self.data = torch.bfloat16 if device == "cuda" else torch.float32
        self.gates = (self.HV, channels) if is_kda else (self.HV,)
        self.A_log, self.dt_bias = (self.random.standard_normal(n).astype(np.float32) for n in (self.HV, self.gates))
        rule = "kda" if is_kda else "gated_delta_rule"
        self.chunk, self.recurrent = getattr(gdn, f"chunk_{rule}"), getattr(gdn, f"fused_recurrent_{rule}")
        size = self.HV * channels**2
        pages = torch.full((SLOTS, size + 64), torch.nan, dtype=self.dtype, device=device)
        self.pool = pages[:, :size].unflatten(1, (self.HV, channels, channels))
        self.pages, self.free, self.requests, self.worst = pages, list(range(FIRST, SLOTS)), [], 0.0
        self.counts = {"sequences": 0, "steps": 0, "tokens": 0}

    def draw(self, tokens):
        """Inputs of packed tokens, as the layer has them, and as float64 reads them."""
        self.counts["tokens"] += tokens
        shapes = {"q": (self.H, self.D), "k": (self.H, self.D), "v": (self.HV, self.D), "g": self.gates, "beta": (self.HV,)}
        given = {
            name: self.torch.from_numpy(self.random.standard_normal((1, tokens, *shape)).astype(np.float32)).to(self.data)
            for name, shape in shapes.items()
        }
        return given, {name: x.float().numpy().astype(np.float64) for name, x in given.items()}

    def expect(self, exact, begin, end, state):
        """Outputs and the last state of float64."""
        o, last = gated_delta_rule(
            *(exact[name][:, begin:end] for name in ("q", "k", "v", "g", "beta")), initial_state=state, l2norm=True,
            gate_domain="raw", A_log=self.A_log, dt_bias=self.dt_bias, beta_domain="logit", v_first=True,
        )  # fmt: skip
        return o[0], last

    def rounded(self, state):
        """The state as the pool keeps it."""
        return self.torch.from_numpy(state).to(self.dtype).double().numpy()

    def integers(self, values):
        return self.torch.tensor(values, dtype=self.torch.int32, device=self.device)

    def call(self, function, given, lengths, **words):
        """Outputs of packed sequences; the last tokens are nobody's."""
        tensors = {name: x.to(self.device) for name, x in given.items()}
        out = self.torch.full_like(tensors["v"], 7)
        parameters = {"A_log": self.torch.from_numpy(self.A_log), "dt_bias": self.torch.from_numpy(self.dt_bias)}
        function(
            **tensors, **{name: x.to(self.device) for name, x in parameters.items()}, use_gate_in_kernel=True,
            use_beta_sigmoid_in_kernel=True, use_qk_l2norm_in_kernel=True, state_layout="vk", first_state=FIRST,
            cu_seqlens=self.integers(np.cumsum([0, *lengths]).tolist()), initial_state=self.pool, final_state=self.pool,
            out=out, **words,
        )  # fmt: skip
        return out[0].float().cpu().numpy()

    def compare(self, got, wanted):
        error = rms_error(got, wanted) if np.size(wanted) else 0.0
        self.worst = max(self.worst, error if error == error else np.inf)

    def compare_outputs(self, got, wanted, state):
        """By at least what a state of this size gives: what rounds it does not shrink with an output that nearly cancels."""
        usual = np.sqrt(np.mean(np.square(state)) / self.D)
        size = np.sqrt(np.mean(np.square(wanted)))
        self.compare(wanted + (got - wanted) * min(1.0, size / usual), wanted)

    def prefill(self, requests):
        """A piece of each; new ones begin with zeros, whatever their slots hold."""
        lengths = [int(self.random.integers(1, 40)) for _ in requests]
        given, exact = self.draw(sum(lengths) + 2)
        has = [request.state is not None for request in requests]
        o = self.call(
            self.chunk, given, lengths, state_indices=self.integers([r.slots[0] for r in requests]),
            has_initial_state=self.torch.tensor(has, device=self.device),
        )  # fmt: skip
        self.advance(requests, lengths, exact, o)

    def decode(self, requests):
        """A token of each, and of rows of a batch that are nobody's."""
        given, exact = self.draw(len(requests))
        slots = [r.slots[r.accepted - 1] for r in requests]
        o = self.call(self.recurrent, given, [1] * len(requests), state_indices=self.integers(slots))
        for request, slot in zip(requests, slots):
            # What is accepted of one token is that token.
            request.slots.remove(slot)
            request.slots.insert(0, slot)
        self.advance(requests, [1] * len(requests), exact, o)

    def advance(self, requests, lengths, exact, o):
        """Sequences whose tokens are all accepted, and whose states are in their first slots."""
        begin = 0
        for request, length in zip(requests, lengths):
            wanted, state = self.expect(exact, begin, begin + length, request.state)
            self.compare_outputs(o[begin : begin + length], wanted, state)
            request.state, request.accepted = self.rounded(state), 1
            self.compare(self.pool[request.slots[0]].float().cpu().numpy(), request.state[0])
            begin += length
        assert not o[begin:].any()

    def verify(self, requests):
        """Speculated tokens, of which some are accepted behind it; a row of the batch is nobody's."""
        lengths = [int(self.random.integers(1, SPECULATED + 2)) for _ in requests]
        given, exact = self.draw(sum(lengths) + 1)
        slots = [request.slots for request in requests] + [[0, -1, SLOTS, 2**31 - 1]]
        o = self.call(
            self.recurrent, given, [*lengths, 1], state_indices=self.integers(slots),
            num_accepted_tokens=self.integers([*(request.accepted for request in requests), 1]),
        )  # fmt: skip
        begin = 0
        for request, length in zip(requests, lengths):
            states, state = [], request.state
            for t in range(begin, begin + length):
                wanted, state = self.expect(exact, t, t + 1, state)
                # What is kept in 16 bits is what the next token reads.
                state = self.rounded(state)
                self.compare_outputs(o[t : t + 1], wanted, state)
                states.append(state)
            for slot, state in zip(request.slots, states):
                self.compare(self.pool[slot].float().cpu().numpy(), state[0])
            request.accepted = int(self.random.integers(1, length + 1))
            request.state = states[request.accepted - 1]
            begin += length
        assert not o[begin:].any()

    def step(self):
        """What a server does next. All slots of others are as they were."""
        done = [request for request in self.requests if request.left <= 0]
        for request in done:
            self.free += request.slots
            self.requests.remove(request)
        self.random.shuffle(self.free)
        while len(self.requests) < MOST_REQUESTS and self.random.random() < 0.7 and len(self.free) > SPECULATED:
            slots = [self.free.pop() for _ in range(SPECULATED + 1)]
            self.requests.append(Request(slots, int(self.random.integers(1, 12))))
            self.counts["sequences"] += 1
        kinds = self.random.integers(0, 3, len(self.requests))
        before = self.pages.clone()
        for number, kind in enumerate((self.prefill, self.decode, self.verify)):
            # A request without a state is prefilled, and one behind speculated tokens goes on from the one that is accepted.
            ones = [
                request for request, drawn in zip(self.requests, kinds)
                if (0 if request.state is None else max(drawn, 1) if request.accepted > 1 else drawn) == number
            ]  # fmt: skip
            if ones:
                kind(ones)
                self.counts["steps"] += 1
        for request in self.requests:
            request.left -= 1
        own = [slot for request in self.requests for slot in request.slots]
        others = np.setdiff1d(np.arange(SLOTS), own)
        assert self.torch.equal(before[others].nan_to_num(9), self.pages[others].nan_to_num(9)), "a foreign slot was touched"
        size = self.pool[0].numel()
        assert self.pages[:, size:].isnan().all(), "between slots"


#: Of outputs and states, relative: in float32, and where the pool has 16 bits.
TOLERANCES = {"float32": 2e-5, "bfloat16": 2e-2, "float16": 4e-3}


def run(state, sequences, seed=0, **words):
    """A server with so many sequences; what it did."""
    server = Server(seed, state, **words)
    while server.counts["sequences"] < sequences:
        server.step()
    return server


@pytest.mark.parametrize("is_kda", [False, True])
@pytest.mark.parametrize("state", TOLERANCES)
def test_schedule(state, is_kda):
    pytest.importorskip("torch")
    server = run(state, 40, is_kda=is_kda)
    assert server.worst < TOLERANCES[state], server.counts


@pytest.mark.full
@pytest.mark.parametrize("is_kda", [False, True])
@pytest.mark.parametrize("state", TOLERANCES)
def test_a_long_schedule(state, is_kda):
    pytest.importorskip("torch")
    server = run(state, 1000, seed=1, is_kda=is_kda)
    assert server.worst < TOLERANCES[state], server.counts


if __name__ == "__main__":
    on_gpu = "cuda" in sys.argv
    count = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1000)
    is_kda = "--kda" in sys.argv
    # A GPU has chunks of Kimi Delta Attention over pools of float32 alone.
    kinds = TOLERANCES if not on_gpu else ("float32",) if is_kda else ("float32", "bfloat16")
    for kind in kinds:
        made = run(kind, count, is_kda=is_kda, **({"device": "cuda", "channels": 128} if on_gpu else {}))
        # Outputs of 16 bits are rounded.
        most = max(TOLERANCES[kind], 1e-2 if on_gpu else 0)
        print(kind, made.counts, f"{made.worst:.1e}", "ok" if made.worst < most else "WRONG", flush=True)
