# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random batches of calls with `segment_length`: a sequence has the bits that it has alone, whatever is beside it. For
a CPU (test_batches.py) and for a GPU (test/Integration/sm90/python.py batches)."""

import contextlib
import dataclasses
import random

import torch
from torch.nn.functional import normalize

import gdn

#: Batches of the whole set, whose seeds are 0, 1, ...
COUNT = 500
OF_TOKENS = ("q", "k", "v", "g", "beta")
#: Integers of as many bytes as an element has: bits are compared, not numbers.
_BITS = {2: torch.int16, 4: torch.int32}
_SIZES = [(64, 64)] * 12 + [(64, 32), (32, 64), (40, 24), (1, 16), (128, 128)]


@dataclasses.dataclass(frozen=True)
class Batch:
    """What the sequences of a batch have in common, and how long they are."""

    seed: int
    lengths: tuple
    segment_length: int
    K: int
    V: int
    H: int
    HV: int
    dtype: torch.dtype
    #: Type of gates and beta.
    gates: torch.dtype
    gate: str
    #: beta as a value (0), as a logit, or as one whose sigmoid is doubled (2).
    logits: int
    norm: bool
    #: Type of initial states; None: there are none.
    initial: torch.dtype | None
    final: bool
    v_first: bool
    scale: float | None
    #: g and beta are None.
    plain: bool
    gradients: bool
    #: Tokens behind the last sequence.
    slack: int

    def words(self):
        """The arguments of the call that are no tensors."""
        return {
            "segment_length": self.segment_length, "gate_domain": self.gate, "use_qk_l2norm_in_kernel": self.norm,
            "use_beta_sigmoid_in_kernel": self.logits > 0, "allow_neg_eigval": self.logits == 2, "scale": self.scale,
            "output_final_state": self.final, "state_v_first": self.v_first,
        }  # fmt: skip


def make_batch(seed, device="cpu"):
    """The batch of a seed. On a GPU, where no kernels of float32 take segments, q, k and v are bfloat16 instead, and
    each tenth batch has a sequence 40 times as long."""
    pick = random.Random(seed)
    dtype = pick.choice([torch.float32, torch.bfloat16, torch.float16])
    kinds = [lambda: 0, lambda: 1, lambda: pick.randrange(2, 32), lambda: pick.choice([31, 32, 33, 63, 64, 65, 96, 97]),
             lambda: pick.randrange(34, 110)]  # fmt: skip
    lengths = [pick.choice(kinds)() for _ in range(pick.choice([2, 2, 3]))]
    if device != "cpu" and dtype == torch.float32:
        dtype = torch.bfloat16
    if device != "cpu" and seed % 10 == 0:
        lengths[-1] *= 40
    (K, V), heads = pick.choice(_SIZES), pick.choice([1, 1, 2])
    gate, plain = pick.choice(["log", "log", "linear", "raw"]), pick.random() < 0.1
    return Batch(
        seed, tuple(lengths), pick.choice([32, 64, 96, 160]), K, V, heads, heads * pick.choice([1, 1, 2, 3]), dtype,
        gates=pick.choice([torch.float32, dtype]), gate="log" if plain else gate,
        logits=0 if plain else pick.choice([0, 0, 1, 2]), norm=pick.random() < 0.3,
        initial=pick.choice([None, torch.float32, dtype]), final=pick.random() < 0.7, v_first=pick.random() < 0.3,
        scale=pick.choice([None, None, 0.5]), plain=plain, gradients=pick.random() < 0.5, slack=pick.choice([0, 0, 7]),
    )  # fmt: skip


def make_sequence(batch, tokens, generator):
    """Random inputs of one sequence by name, with the gradients of o and of the final state."""

    def normal(*shape):
        return torch.randn(1, *shape, generator=generator)

    def uniform(*shape):
        return torch.rand(1, *shape, generator=generator)

    heads, T, K, V = batch.HV, tokens, batch.K, batch.V
    q, k = (normal(T, batch.H, K) if batch.norm else normalize(normal(T, batch.H, K), dim=-1) for _ in range(2))
    g = normal(T, heads)
    if batch.gate != "raw":
        g = -0.3 * g.abs()
    if batch.gate == "linear":
        g = g.exp()
    beta = normal(T, heads) if batch.logits else uniform(T, heads)
    states = (heads, V, K) if batch.v_first else (heads, K, V)
    made = {"q": q.to(batch.dtype), "k": k.to(batch.dtype), "v": normal(T, heads, V).to(batch.dtype)}
    if not batch.plain:
        made |= {"g": g.to(batch.gates), "beta": beta.to(batch.gates)}
    if batch.initial is not None:
        made["initial_state"] = normal(*states).to(batch.initial)
    return {**made, "d_o": normal(T, heads, V).to(batch.dtype), "d_state": normal(*states)}


def _as_views(tensors):
    """q, k and v out of one projection."""
    heads = {name: tensors[name].shape[2:] for name in "qkv"}
    widths = [shape[0] * shape[1] for shape in heads.values()]
    parts = torch.cat([tensors[name].flatten(2) for name in "qkv"], -1).split(widths, -1)
    return {**tensors, **{name: part.unflatten(2, heads[name]) for name, part in zip("qkv", parts)}}


def run(batch, parameters, sequences, packed, threads=2, boundaries=torch.int32, slack=0, views=False):
    """A call of these sequences, packed or as batch rows; what comes out, by sequence and name."""
    device = sequences[0]["q"].device
    of_states = ("initial_state", "d_state")
    tensors = {
        name: torch.cat([sequence[name] for sequence in sequences], 1 if packed and name not in of_states else 0)
        for name in sequences[0]
    }
    lengths, words = [sequence["q"].shape[1] for sequence in sequences], batch.words()
    if packed:
        words["cu_seqlens"] = torch.tensor([0, *lengths], device=device).cumsum(0).to(boundaries)
        for name in tensors.keys() - set(of_states):
            behind = tensors[name].new_full((1, slack, *tensors[name].shape[2:]), float("nan"))
            tensors[name] = torch.cat([tensors[name], behind], 1)
    d_o, d_state = tensors.pop("d_o"), tensors.pop("d_state")
    tensors = _as_views(tensors) if views else tensors
    if batch.gradients:
        tensors = {name: x.detach().requires_grad_() for name, x in tensors.items()}
    given = {"g": None, "beta": None, **tensors}
    with _threads(threads):
        results = [x for x in gdn.chunk_gated_delta_rule(**given, **parameters, **words) if x is not None]
        found = dict(zip(("o", "final_state"), results))
        if batch.gradients:
            gradients = torch.autograd.grad(results, list(tensors.values()), [d_o, d_state][: len(results)])
            found |= {f"gradient of {name}": x for name, x in zip(tensors, gradients)}
    ends = [sum(lengths[:n]) for n in range(len(lengths) + 1)]

    def part(name, x, n):
        return x[:, ends[n] : ends[n + 1]] if packed and not name.endswith("_state") else x[n : n + 1]

    return [{name: part(name, x.detach(), n) for name, x in found.items()} for n in range(len(lengths))]


def differing(wanted, found):
    """The names of results that have other bits, and the largest difference beside the largest number."""

    def bits(x):
        return x.contiguous().view(_BITS[x.element_size()])

    names = [name for name, x in wanted.items() if not torch.equal(bits(x), bits(found[name]))]
    return [f"{name} by {_distance(wanted[name], found[name]):.1e}" for name in names]


def _distance(x, y):
    return float((x.double() - y.double()).abs().max() / x.double().abs().max().clamp_min(1e-30))


@contextlib.contextmanager
def _threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check(batch, device="cpu"):
    """Runs each sequence alone and in batches; returns what differs, as texts."""
    # Threads of torch's own operations wait for work, spinning.
    with _threads(1):
        return _check(batch, device)


def _check(batch, device):
    generator = torch.Generator().manual_seed(batch.seed)
    pick = random.Random(-1 - batch.seed)

    def make(tokens):
        made = make_sequence(batch, tokens, generator)
        return {name: x.to(device) for name, x in made.items()}

    parameters = {}
    if batch.gate == "raw":
        parameters = {name: torch.randn(batch.HV, generator=generator).to(device) for name in ("A_log", "dt_bias")}
    sequences = [make(tokens) for tokens in batch.lengths]
    alone = [run(batch, parameters, [sequence], pick.random() < 0.5, threads=1)[0] for sequence in sequences]
    faults = []

    def compare(how, members, found):
        """`members` are the numbers of the sequences of a call; -1 is a stranger."""
        for n, results in zip(members, found):
            if n >= 0 and (other := differing(alone[n], results)):
                faults.append(f"sequence {n} of {batch.lengths[n]} tokens, {how}: {', '.join(other)}")

    numbers = list(range(len(sequences)))
    compare("packed in order", numbers, run(batch, parameters, sequences, True, slack=batch.slack))
    # A stranger of NaN: what others hold is nobody's business.
    stranger = {name: torch.full_like(x, float("nan")) for name, x in make(pick.randrange(1, 70)).items()}
    order = [*numbers, -1]
    pick.shuffle(order)
    members = [stranger if n < 0 else sequences[n] for n in order]
    compare("packed in another order", order, run(batch, parameters, members, True, boundaries=torch.int64, views=True))
    n = pick.choice(numbers)
    rows = [make(batch.lengths[n]), sequences[n]]
    compare("as a batch row", [-1, n], run(batch, parameters, rows, False))
    return faults
