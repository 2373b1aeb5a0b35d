# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences in models of Transformers, with gdn under their layers."""

import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", reason="Transformers is not installed")

from model_gradients import distance  # noqa: E402
from test_transformers import before, error, make_model, name, quiet, tokens  # noqa: E402, F401

import gdn.transformers  # noqa: E402


def test_packed_sequences(name, before):
    """Are kept apart: each has the logits that it has alone, and so do gradients."""
    model, ids = make_model(name), tokens(1, 120)
    ends = [0, 50, 51, 120]

    def gradients(logits):
        weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
        return torch.autograd.grad((weights * logits).sum(), list(model.parameters()), allow_unused=True)

    expected = torch.cat([model(ids[:, begin:end]).logits for begin, end in zip(ends, ends[1:])], 1)
    wanted = gradients(expected)
    gdn.transformers.install()
    runs = dict(before)
    positions = torch.cat([torch.arange(end - begin) for begin, end in zip(ends, ends[1:])])[None]
    got = model(ids, position_ids=positions, cu_seq_lens_q=torch.tensor(ends, dtype=torch.int32), use_cache=False)
    assert before == runs
    assert error(got.logits, expected) < 1e-4
    for parameter, one, other in zip(dict(model.named_parameters()), gradients(got.logits), wanted):
        assert (one is None) == (other is None) and (one is None or distance(one, other) < 1e-3), parameter


@torch.no_grad()
def test_packed_sequences_with_a_cache(name, before):
    """A cache puts zeros in front of a short prompt: boundaries follow. A cache with tokens goes on with one sequence."""
    model, ids = make_model(name), tokens(1, 60)
    for path, module in model.named_modules():
        # With a cache, Transformers' attention does not keep packed sequences apart.
        if path.endswith("self_attn.o_proj"):
            module.weight.zero_()
    expected = torch.cat([model(ids[:, begin:end]).logits for begin, end in ((0, 1), (1, 3))], 1)
    whole = model(ids).logits
    gdn.transformers.install()

    def run(begin, ends, **words):
        part = ids[:, begin : begin + ends[-1]]
        positions = torch.cat([torch.arange(end - start) for start, end in zip(ends, ends[1:])])[None]
        boundaries = torch.tensor(ends, dtype=torch.int32)
        return model(part, position_ids=begin + positions, cu_seq_lens_q=boundaries, use_cache=True, **words)

    assert error(run(0, [0, 1, 3]).logits, expected) < 1e-4
    first = run(0, [0, 2])
    second = run(2, [0, 1], past_key_values=first.past_key_values)
    third = run(3, [0, 57], past_key_values=second.past_key_values)
    assert error(torch.cat([first.logits, second.logits, third.logits], 1), whole) < 1e-4
    message = "expected one sequence in cu_seq_lens_q for a cache that has tokens, got 2"
    with pytest.raises(ValueError, match=message):
        run(40, [0, 5, 20], past_key_values=run(0, [0, 40]).past_key_values)


@torch.no_grad()
def test_a_compiled_call_with_a_cache():
    """Says of several packed sequences what an eager one says."""
    model, ids = make_model("qwen3_5"), tokens(1, 9)
    gdn.transformers.install()
    torch._dynamo.reset()
    first = model(ids[:, :5], use_cache=True)
    boundaries = torch.tensor([0, 1, 4], dtype=torch.int32)
    with pytest.raises(ValueError, match="expected one sequence in cu_seq_lens_q for a cache that has tokens, got 2"):
        torch.compile(model, backend="eager")(ids[:, 5:], cu_seq_lens_q=boundaries, past_key_values=first.past_key_values)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("seq_idx", [False, True])
@pytest.mark.parametrize("package", ["def causal_conv1d_fn(): pass", "raise ImportError('another torch')"])
def test_the_convolution_below(device, seq_idx, package, tmp_path, monkeypatch):
    """Zeros are put between sequences, but where causal-conv1d is there and told of them."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    (tmp_path / "causal_conv1d.py").write_text(package)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "causal_conv1d", raising=False)
    got = []

    def below(hidden_states, weight, **kwargs):
        got.append((hidden_states.shape[-1], *kwargs))
        return hidden_states

    run = gdn.transformers._around_convolution(below)
    run.is_active = True
    with FakeTensorMode():
        x, weight = (torch.empty(*shape, device=device) for shape in ((1, 8, 50), (8, 4)))
        words = {"cu_seq_lens_q": torch.empty(4, dtype=torch.int32, device=device)}
        words |= {"seq_idx": torch.empty(1, 50, dtype=torch.int32, device=device)} if seq_idx else {}
        assert run(x, weight, **words).shape == x.shape
    is_told = device == "cuda" and seq_idx and package.startswith("def")
    assert got == [(50, *words) if is_told else (50 + 3 * 4,)]
