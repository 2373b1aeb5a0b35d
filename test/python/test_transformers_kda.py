# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small random models of Transformers with Kimi Delta Attention, with gdn under their layers and on torch's own path."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

from model_gradients import distance, exact_gradients_of, gradients_of  # noqa: E402
from test_transformers import (  # noqa: E402, F401
    count_calls, error, expect_gradients_like_theirs, file_of, losses_of, quiet, tokens,
)  # fmt: skip

import gdn.transformers  # noqa: E402

#: What the models have in common: two layers of linear attention and one that looks at all tokens, and no experts, for a
#: choice among them may turn on a last bit.
COMMON = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 2, "kv_lora_rank": 32, "q_lora_rank": None, "qk_nope_head_dim": 32, "v_head_dim": 32,
    "qk_rope_head_dim": 16, "linear_num_heads": 2, "linear_head_dim": 32, "initializer_range": 0.1, "pad_token_id": 0,
    "eos_token_id": None, "bos_token_id": None, "mlp_layer_types": ["dense"] * 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
}
#: A model's file, the class of its configuration, and that of the model.
MODELS = {
    "kimi_linear": ("KimiLinearConfig", "KimiLinearForCausalLM"),
    "bailing_hybrid": ("BailingHybridConfig", "BailingHybridForCausalLM"),
}
RULES = ("chunk_kimi_delta_attention", "recurrent_kimi_delta_attention")
if not all(hasattr(transformers, config) for config, _ in MODELS.values()):
    pytest.skip("Transformers has no models with Kimi Delta Attention", allow_module_level=True)


def make_model(name, dtype=torch.float32, **changes):
    config, model = MODELS[name]
    torch.manual_seed(0)
    return getattr(transformers, model)(getattr(transformers, config)(**{**COMMON, **changes})).to(dtype).eval()


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def before(name, monkeypatch):
    """How often the functions ran that were there before gdn."""
    yield count_calls(name, RULES, monkeypatch)
    gdn.transformers.uninstall()


@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)], ids=["f32", "bf16"])
@torch.no_grad()
def test_logits(name, before, dtype, tolerance):
    weights = {} if dtype == torch.float32 else {"initializer_range": 0.02}
    model, ids = make_model(name, dtype, **weights), tokens(2, 150)
    expected = model(ids).logits.float()
    runs = dict(before)
    assert runs[RULES[0]] and name in gdn.transformers.install()
    assert error(model(ids).logits.float(), expected) < tolerance
    assert before == runs


@torch.no_grad()
def test_greedy_tokens(name, before):
    model, ids = make_model(name), tokens(2, 70)
    expected = model.generate(ids, max_new_tokens=16, do_sample=False)
    runs = dict(before)
    assert all(runs.values())
    gdn.transformers.install()
    assert torch.equal(model.generate(ids, max_new_tokens=16, do_sample=False), expected)
    assert before == runs


@torch.no_grad()
def test_packed_sequences(name, before):
    """Are kept apart: each has the logits that it has alone. Transformers' own functions do not look at them."""
    model, ids, ends = make_model(name), tokens(1, 120), [0, 50, 51, 120]
    expected = torch.cat([model(ids[:, begin:end]).logits for begin, end in zip(ends, ends[1:])], 1)
    positions = torch.cat([torch.arange(end - begin) for begin, end in zip(ends, ends[1:])])[None]
    packed = {"position_ids": positions, "cu_seq_lens_q": torch.tensor(ends, dtype=torch.int32), "use_cache": False}
    assert error(model(ids, **packed).logits, expected) > 1e-2
    gdn.transformers.install()
    runs = dict(before)
    assert error(model(ids, **packed).logits, expected) < 1e-4
    del packed["cu_seq_lens_q"]
    assert error(model(ids, **packed).logits, expected) < 1e-4
    assert before == runs


@torch.no_grad()
def test_a_prefill_goes_on(name, before):
    """The second piece begins with the cache of the first."""
    model, ids = make_model(name), tokens(2, 130)
    expected = model(ids).logits
    gdn.transformers.install()
    runs = dict(before)
    first = model(ids[:, :75], use_cache=True)
    cache = "cache" if hasattr(first, "cache") else "past_key_values"
    second = model(ids[:, 75:], use_cache=True, **{cache: getattr(first, cache)})
    assert before == runs
    assert error(torch.cat([first.logits, second.logits], 1), expected) < 1e-4


def test_gradients(name, before):
    """In float32, of each parameter: those of torch's own path are as far from the exact ones, or farther."""
    model, ids = make_model(name), tokens(2, 70)
    exact, theirs = exact_gradients_of(model, ids), gradients_of(model, ids)
    gdn.transformers.install()
    runs = dict(before)
    ours = gradients_of(model, ids)
    assert before == runs and exact.keys() == theirs.keys() == ours.keys()
    for parameter, wanted in exact.items():
        assert distance(ours[parameter], wanted) < 1e-4, parameter
        assert distance(ours[parameter], theirs[parameter]) < 1e-4 + distance(theirs[parameter], wanted), parameter


def test_gradients_in_16_bits(name, before):
    expect_gradients_like_theirs(make_model(name, torch.bfloat16, initializer_range=0.02), tokens(2, 70), before)


@pytest.mark.parametrize("checkpointing", [pytest.param(False, marks=pytest.mark.full), True])
def test_training(name, before, checkpointing):
    """Ten steps: the losses fall, and are those of the path that was there before."""
    expected = losses_of(make_model(name), tokens(2, 70))
    gdn.transformers.install()
    runs, model = dict(before), make_model(name)
    if checkpointing:
        model.gradient_checkpointing_enable()
    got = losses_of(model, tokens(2, 70))
    assert before == runs and got[-1] < 0.8 * got[0]
    assert max(abs(a - b) for a, b in zip(got, expected)) < 1e-3 * expected[0]


@pytest.mark.parametrize("name", ["kimi_linear", pytest.param("bailing_hybrid", marks=pytest.mark.full)], indirect=True)
def test_compiled_gradients(name, before):
    """A step with packed sequences is one graph forward and one backward, with the gradients of each sequence alone."""
    gdn.transformers.install()
    model, ids = make_model(name), tokens(1, 70)
    positions = torch.cat([torch.arange(30), torch.arange(40)])[None]
    packed = {"position_ids": positions, "cu_seq_lens_q": torch.tensor([0, 30, 70], dtype=torch.int32), "use_cache": False}
    weight = torch.randn(1, 70, 256)

    def gradients(loss):
        return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    apart = torch.cat([model(part).logits for part in ids.split([30, 40], 1)], 1)
    expected = gradients((apart * weight).sum())
    for run in (compiled, model):
        for got, wanted in zip(gradients((run(ids, **packed).logits * weight).sum()), expected):
            assert (got is None and wanted is None) or distance(got, wanted) < 1e-4
    assert not any(before.values())


def test_gradients_on_a_gpu_are_theirs(caplog):
    """A warning says so, and what gdn has."""
    gdn.transformers.install()
    with torch.device("meta"):
        q, g, beta = torch.empty(1, 70, 2, 64), torch.empty(1, 70, 2, 64), torch.empty(1, 70, 2)
    described = (*(gdn.transformers._describe(x, 2) for x in (q, q, q, g, beta)), None, None, None, None)
    assert not gdn.transformers._ask("chunk_kda", "cuda", described, (), True)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "gdn.transformers"]
    assert "chunk_kda runs what ran before" in line
    assert "with gates per channel on a GPU in this version, got q of float32" in line


@torch.no_grad()
def test_hidden_states_of_glm():
    """Of a stack of linear layers: the others of this model, sparse attention, are no layers of ours."""
    changes = {
        "num_hidden_layers": 2, "mlp_layer_types": ["dense"] * 2, "layer_types": ["linear_attention"] * 2,
        "indexer_types": ["full"] * 2, "index_n_heads": 2, "index_head_dim": 16, "q_lora_rank": 16, "hc_mult": 2,
        "qk_rope_head_dim": 0, "n_routed_experts": 4, "linear_lower_bound": -5.0,
    }  # fmt: skip
    configuration = transformers.models.glm5_next.configuration_glm5_next.Glm5NextTextConfig(**{**COMMON, **changes})
    torch.manual_seed(0)
    model, ids = file_of("glm5_next").Glm5NextTextModel(configuration).eval(), tokens(2, 90)
    expected = model(ids, use_cache=False).last_hidden_state
    assert "glm5_next" in gdn.transformers.install()
    got = model(ids, use_cache=False).last_hidden_state
    assert not torch.equal(got, expected) and error(got, expected) < 1e-4
