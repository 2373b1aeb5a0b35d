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
def test_positions_alone(name, before):
    """Tell of packed sequences where Transformers' own attention follows them, in the call of a layer's model too."""
    model, ids = make_model(name), tokens(1, 120)
    ends = [0, 50, 51, 120]
    expected = torch.cat([model(ids[:, begin:end]).logits for begin, end in zip(ends, ends[1:])], 1)
    gdn.transformers.install()
    positions = torch.cat([torch.arange(end - begin) for begin, end in zip(ends, ends[1:])])[None]
    got = model(ids, position_ids=positions, use_cache=False).logits
    assert error(got, expected) < 1e-4
    hidden = model.model(ids, None, positions, use_cache=False).last_hidden_state
    assert torch.equal(model.lm_head(hidden), got)
    whole = model(ids, use_cache=False).logits
    assert torch.equal(model(ids, position_ids=torch.arange(120)[None], use_cache=False).logits, whole)
    assert error(whole, expected) > 1e-2


def make_small_model():
    return make_model("qwen3_5", num_hidden_layers=2, layer_types=["linear_attention", "full_attention"])


def rows_and_positions():
    positions = torch.cat([torch.arange(30), torch.arange(40)])
    padded = torch.cat([torch.ones(30, dtype=torch.long), torch.arange(40)])
    return {"packed": positions, "padded": padded, "one": torch.arange(70), "ahead": torch.arange(70) + 7}


@pytest.mark.parametrize("positions,rows,words,reason", [
    ("packed", 1, {"attention_mask": True, "use_cache": False}, "attention_mask"),
    ("packed", 1, {"use_cache": True}, "a cache"),
    ("packed", 1, {}, "a cache"),
    ("packed", 2, {"use_cache": False}, "several rows"),
    ("packed", 2, {"attention_mask": True}, "several rows and attention_mask and a cache"),
    ("padded", 1, {"attention_mask": True}, None),
    ("one", 1, {"attention_mask": True}, None),
    ("ahead", 2, {}, None),
])
@torch.no_grad()
def test_positions_that_are_not_followed(positions, rows, words, reason, caplog):
    """Are warned of once, if tokens beside one another are of several sequences."""
    model, ids = make_small_model(), tokens(rows, 70)
    gdn.transformers.install()
    given = rows_and_positions()[positions]
    if words.pop("attention_mask", False):
        mask = torch.ones_like(ids)
        mask[:, :30] = 0 if positions == "padded" else 1
        words["attention_mask"] = mask
    for _ in range(2):
        model(ids, position_ids=given.expand(rows, -1), **words)
    lines = [record.getMessage() for record in caplog.records if record.name == "gdn.transformers"]
    if reason is None:
        assert lines == []
    else:
        (line,) = lines
        assert f"in a call with {reason}: pass cu_seq_lens_q" in line


def test_positions_of_a_compiled_model(caplog):
    """Are not looked at, for that would wait for a GPU or break the graph: it is said once."""
    run = torch.compile(
        lambda x: (x, gdn.transformers._find_boundaries(None, {"position_ids": x, "input_ids": x})), backend="eager",
        fullgraph=True,
    )  # fmt: skip
    for T in (70, 80):
        assert run(torch.arange(T)[None])[1] is None
    (line,) = [record.getMessage() for record in caplog.records if record.name == "gdn.transformers"]
    assert "not looked at" in line and "pass cu_seq_lens_q" in line


@torch.no_grad()
def test_positions_of_generated_tokens(monkeypatch):
    """Are not looked at: a cache goes on with one sequence."""
    model, ids = make_small_model(), tokens(1, 9)
    gdn.transformers.install()
    monkeypatch.setattr(gdn.transformers, "_why_not_apart", lambda *_: pytest.fail("looked at"))
    model.generate(ids, max_new_tokens=3, do_sample=False)


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


@pytest.mark.full
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
    # With this, the end of the test forgets the package: a model that is imported later would find it.
    monkeypatch.setitem(sys.modules, "causal_conv1d", None)
    del sys.modules["causal_conv1d"]
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
