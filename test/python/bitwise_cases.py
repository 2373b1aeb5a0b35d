# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random batches and cuts of calls with `bitwise`: a sequence has the bits that it has as a whole, as in the forward of a step of
training, beside others, in pieces, and where it is decoded. For a CPU (test_bitwise.py) and for a GPU
(test/Integration/sm90/python.py bitwise)."""

import dataclasses
import random

import torch
from batch_cases import Batch, differing, make_batch, make_sequence, run

import gdn

#: Batches of the whole set, whose seeds are 0, 1, ...
COUNT = 500
#: Tokens between which sequences may be cut, and most tokens that are decoded.
CUT, DECODED = 64, 12
OF_TOKENS = ("q", "k", "v", "g", "beta")


class BitwiseBatch(Batch):
    def words(self):
        words = super().words()
        return {**words, "segment_length": None, "bitwise": True}


def make_bitwise_batch(seed, device="cpu"):
    """The batch of a seed: one of batch_cases.py with longer sequences and float32 states. On a GPU two thirds are of forms that
    kernels of chunks compute."""
    batch, pick = make_batch(seed, device), random.Random(-seed)
    changed = {"lengths": tuple(length + pick.choice([0, 0, 64, 130]) for length in batch.lengths)}
    if batch.initial is not None:
        changed["initial"] = torch.float32
    if device != "cpu" and seed % 3:
        is_raw = batch.gate == "raw"
        changed |= {
            "K": 128, "V": 128, "scale": None, "plain": False, "gate": "raw" if is_raw else "log", "logits": int(is_raw),
            "norm": is_raw or batch.norm, "gates": torch.float32,
        }  # fmt: skip
    return BitwiseBatch(**{field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)} | changed)


def part_of(sequence, begin, end):
    """Tokens of a sequence."""
    return {name: x[:, begin:end] if name in (*OF_TOKENS, "d_o") else x for name, x in sequence.items()}


def check(batch, device="cpu", by_token=None):
    """Runs each sequence as a whole, beside others, in pieces, and decoded; returns what differs, as texts. `by_token` says
    whether tokens are decoded alone or in open chunks; None leaves it to the device."""
    generator, pick = torch.Generator().manual_seed(batch.seed), random.Random(-1 - batch.seed)
    parameters = {}
    if batch.gate == "raw":
        parameters = {name: torch.randn(batch.HV, generator=generator).to(device) for name in ("A_log", "dt_bias")}

    def make(tokens):
        return {name: x.to(device) for name, x in make_sequence(batch, tokens, generator).items()}

    sequences, numbers = [make(tokens) for tokens in batch.lengths], range(len(batch.lengths))
    forward = dataclasses.replace(batch, gradients=False)
    # As a step of training computes them, of which some ask for gradients.
    whole = [run(batch, parameters, [sequence], pick.random() < 0.5, threads=1)[0] for sequence in sequences]
    whole = [{name: x for name, x in found.items() if name in ("o", "final_state")} for found in whole]
    faults = []

    def compare(how, n, found):
        if other := differing(whole[n], found):
            faults.append(f"sequence {n} of {batch.lengths[n]} tokens, {how}: {', '.join(other)}")

    stranger = {name: torch.full_like(x, float("nan")) for name, x in make(pick.randrange(1, 70)).items()}
    order = [*numbers, -1]
    pick.shuffle(order)
    members = [stranger if n < 0 else sequences[n] for n in order]
    for n, found in zip(order, run(forward, parameters, members, True, slack=batch.slack)):
        if n >= 0:
            compare("packed", n, found)
    for n in numbers:
        compare("in pieces", n, _in_pieces(forward, parameters, sequences[n], pick))
    for n, found in zip(numbers, _decoded(forward, parameters, sequences, pick, by_token)):
        o = {"o": whole[n]["o"][:, -found["o"].shape[1] :]} if found["o"].shape[1] else {}
        if other := differing(o, found):
            faults.append(f"sequence {n} of {batch.lengths[n]} tokens, decoded: {', '.join(other)}")
    return faults


def _in_pieces(batch, parameters, sequence, pick):
    """The results of a sequence that is cut at random multiples of 64."""
    T = sequence["q"].shape[1]
    cuts = [0, *(t for t in range(CUT, T, CUT) if pick.random() < 0.7), T]
    batch, found = dataclasses.replace(batch, final=True), []
    for begin, end in zip(cuts, cuts[1:]):
        part = part_of(sequence, begin, end)
        if found:
            part["initial_state"] = found[-1]["final_state"]
        found += run(batch, parameters, [part], pick.random() < 0.5)
    return {"o": torch.cat([piece["o"] for piece in found], 1), "final_state": found[-1]["final_state"]}


def _decoded(batch, parameters, sequences, pick, by_token):
    """The last outputs of sequences, that of a prefill's last token and those of tokens that are decoded."""
    steps = min(DECODED, *batch.lengths) if pick.random() < 0.9 else 0
    states = [sequence.get("initial_state") for sequence in sequences]
    shape = (1, batch.HV, batch.V, batch.K) if batch.v_first else (1, batch.HV, batch.K, batch.V)
    states = torch.cat([torch.zeros(shape, device=sequences[0]["q"].device) if x is None else x for x in states])
    words = {**batch.words(), **parameters}
    for name in ("segment_length", "bitwise", "output_final_state"):
        del words[name]
    chunks = gdn.OpenChunks(states, **words)
    chunks._by_token = by_token
    ends = [sequence["q"].shape[1] - steps for sequence in sequences]
    firsts = [part_of(sequence, 0, end) for sequence, end in zip(sequences, ends)]
    given = lambda parts, dim: [  # noqa: E731
        torch.cat([part[name] for part in parts], dim) if name in parts[0] else None for name in OF_TOKENS
    ]
    bounds = torch.tensor([0, *ends], device=states.device).cumsum(0)
    o = chunks.prefill(*given(firsts, 1), cu_seqlens=bounds)
    last = [o[:, max(end - 1, begin) : end] for begin, end in zip(bounds.tolist(), bounds.tolist()[1:])]
    found = [last]
    for t in range(steps):
        tokens = [part_of(sequence, end + t, end + t + 1) for sequence, end in zip(sequences, ends)]
        o = chunks.decode(*given(tokens, 0))
        found.append([o[n : n + 1] for n in range(len(sequences))])
    return [{"o": torch.cat(list(pieces), 1)} for pieces in zip(*found)]
