# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small random models of Transformers, with gdn under their layers and on their own path of torch."""

import importlib
import math
import pathlib

import pytest
from fresh import fresh

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

from model_gradients import distance, distance_together, exact_gradients_of, gradients_of  # noqa: E402

import gdn.transformers  # noqa: E402

#: What the models have in common. The weights are large enough for the layers to matter.
COMMON = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 32, "initializer_range": 0.1, "pad_token_id": 0, "eos_token_id": None,
    "bos_token_id": None,
}
QWEN = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32}
#: Every token goes to all experts: a choice among them may turn on a last bit, and then says nothing of the layer.
EXPERTS = {
    "num_experts": 4, "num_experts_per_tok": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32
}
#: OLMo's own head dimensions, and its negative eigenvalues.
OLMO = {
    "linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 96, "linear_value_head_dim": 192,
    "linear_allow_neg_eigval": True,
}
#: A model's file, the class of its configuration, that of the model, and what is special.
MODELS = {
    "qwen3_next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", {**QWEN, **EXPERTS}),
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM", QWEN),
    "qwen3_5_moe": ("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM", {**QWEN, **EXPERTS}),
    "olmo_hybrid": ("OlmoHybridConfig", "OlmoHybridForCausalLM", OLMO),
    "lara_mini": ("LaraMiniConfig", "LaraMiniForCausalLM", {**QWEN, **EXPERTS}),
}
#: The first release with a model that not all have.
SINCE = {"lara_mini": (5, 24)}
RELEASE = tuple(int(part) for part in transformers.__version__.split(".")[:2])
MODELS = {name: row for name, row in MODELS.items() if RELEASE >= SINCE.get(name, (5, 17))}
RULES = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")


def file_of(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def make_model(name, dtype=torch.float32, **changes):
    config, model, special = MODELS[name]
    torch.manual_seed(0)
    configuration = getattr(transformers, config)(**{**COMMON, **special, **changes})
    return getattr(transformers, model)(configuration).to(dtype).eval()


def tokens(*shape):
    return torch.randint(1, 256, shape, generator=torch.Generator().manual_seed(1))


def error(got, expected):
    return ((got - expected).abs().max() / expected.abs().max()).item()


@pytest.fixture(autouse=True)
def quiet():
    transformers.logging.set_verbosity_error()
    gdn.transformers._told.clear()
    gdn.transformers._ask.cache_clear()
    yield
    gdn.transformers.uninstall()


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def count_calls(name, rules, monkeypatch):
    """How often these functions of a model's file run, by their names."""
    counts = dict.fromkeys(rules, 0)

    def counted(rule, function):
        def run(*args, **kwargs):
            counts[rule] += 1
            return function(*args, **kwargs)

        return run

    for rule in rules:
        monkeypatch.setattr(file_of(name), rule, counted(rule, getattr(file_of(name), rule)))
    return counts


@pytest.fixture
def before(name, monkeypatch):
    """How often the functions ran that were there before gdn."""
    yield count_calls(name, RULES, monkeypatch)
    # Ours come off before the counters do.
    gdn.transformers.uninstall()


@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)], ids=["f32", "bf16"])
@torch.no_grad()
def test_logits(name, before, dtype, tolerance):
    """Prefill of two sequences, one of them padded on its left."""
    # With weights of 0.1, bfloat16 rounds the rest of a model so coarsely that torch's own logits are off by 20 %.
    weights = {} if dtype == torch.float32 else {"initializer_range": 0.02}
    model, ids = make_model(name, dtype, **weights), tokens(2, 150)
    mask = torch.ones_like(ids)
    mask[1, :40] = 0
    expected = model(ids, attention_mask=mask).logits.float()
    runs = before[RULES[0]]
    assert runs and name in gdn.transformers.install()
    got = model(ids, attention_mask=mask).logits.float()
    assert before[RULES[0]] == runs
    kept = mask.bool()
    assert error(got[kept], expected[kept]) < tolerance
    gdn.transformers.uninstall()
    assert torch.equal(model(ids, attention_mask=mask).logits.float(), expected)


@torch.no_grad()
def test_greedy_tokens(name, before):
    """Of a model that was there before; one that was made after is the same."""
    model, ids = make_model(name), tokens(2, 70)
    expected = model.generate(ids, max_new_tokens=32, do_sample=False)
    runs = dict(before)
    assert all(runs.values()) and expected.shape == (2, 102)
    gdn.transformers.install()
    assert torch.equal(model.generate(ids, max_new_tokens=32, do_sample=False), expected)
    assert torch.equal(make_model(name)(ids).logits, model(ids).logits)
    assert before == runs


@torch.no_grad()
def test_prefill_in_two_pieces(name, before):
    """The second begins with the cache of the first."""
    model, ids = make_model(name), tokens(2, 130)
    expected = model(ids).logits
    gdn.transformers.install()
    runs = dict(before)
    first = model(ids[:, :75], use_cache=True)
    second = model(ids[:, 75:], past_key_values=first.past_key_values, use_cache=True)
    assert before == runs
    assert error(torch.cat([first.logits, second.logits], 1), expected) < 1e-4


def test_gradients(name, before):
    """In float32, of each parameter: within 1e-4 of the exact ones. Those of torch's own path are up to 3e-4 away, in
    A_log and dt_bias, whose gradients are sums over tokens that nearly cancel."""
    model, ids = make_model(name), tokens(2, 70)
    exact, theirs = exact_gradients_of(model, ids), gradients_of(model, ids)
    gdn.transformers.install()
    runs = dict(before)
    ours = gradients_of(model, ids)
    assert before == runs and exact.keys() == theirs.keys() == ours.keys()
    for parameter, wanted in exact.items():
        assert distance(ours[parameter], wanted) < 1e-4, parameter
        assert distance(ours[parameter], theirs[parameter]) < 1e-4 + distance(theirs[parameter], wanted), parameter


def expect_like_theirs(ours, theirs, exact):
    """Gradients beside those of torch's path. Both are off by roundings of bfloat16, which processors order differently:
    two results differ by both errors. A_log's and dt_bias's are sums over tokens that nearly cancel."""
    for parameter, wanted in theirs.items():
        own = 5e-2 if parameter.endswith(("A_log", "dt_bias")) else 2e-2
        assert distance(ours[parameter], wanted) < own + 2 * distance(wanted, exact[parameter]), parameter
    assert distance_together(ours, exact) < 1.1 * distance_together(theirs, exact)


def expect_gradients_like_theirs(model, ids, before):
    """Of each parameter, as by torch's path."""
    exact, theirs = exact_gradients_of(model, ids), gradients_of(model, ids)
    gdn.transformers.install()
    runs = dict(before)
    ours = gradients_of(model, ids)
    assert before == runs and exact.keys() == theirs.keys() == ours.keys()
    expect_like_theirs(ours, theirs, exact)


def test_gradients_in_16_bits(name, before):
    expect_gradients_like_theirs(make_model(name, torch.bfloat16, initializer_range=0.02), tokens(2, 70), before)


@pytest.mark.parametrize("name", ["qwen3_next", "olmo_hybrid"], indirect=True)
def test_under_autocast(name, before):
    """Parameters in float32, q, k and v in bfloat16, as trainers do it: gradients of each parameter as by torch's path."""
    model, ids = make_model(name, initializer_range=0.02), tokens(2, 70)

    def gradients():
        with torch.autocast("cpu", torch.bfloat16):
            return gradients_of(model, ids)

    exact, theirs = exact_gradients_of(model, ids), gradients()
    gdn.transformers.install()
    runs = dict(before)
    ours = gradients()
    assert before == runs and theirs.keys() == ours.keys()
    expect_like_theirs(ours, theirs, exact)


def losses_of(model, ids):
    """Those of ten steps of training."""
    model, found = model.train(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", ["qwen3_next"], indirect=True)
def test_training(name, before):
    """Ten steps: the losses fall, and are those of the path that was there before."""
    expected = losses_of(make_model(name), tokens(2, 70))
    gdn.transformers.install()
    runs = dict(before)
    got = losses_of(make_model(name), tokens(2, 70))
    assert before == runs and got[-1] < 0.8 * got[0]
    assert max(abs(a - b) for a, b in zip(got, expected)) < 1e-3 * expected[0]


def rule_inputs(channels=32):
    q, k, v = (torch.randn(1, 50, heads, channels) for heads in (2, 2, 4))
    return q, k, v, -torch.rand(1, 50, 4), torch.rand(1, 50, 4)


@pytest.mark.parametrize("name", ["qwen3_5"], indirect=True)
@torch.no_grad()
def test_what_gdn_does_not_serve(name, before, caplog):
    """Is told once. And what is no argument of ours is ignored, as Transformers does."""
    gdn.transformers.install()
    rule = file_of(name).torch_chunk_gated_delta_rule
    *qkv, g, beta = rule_inputs(channels=300)
    for calls in (1, 2):
        rule(*qkv, g=g, beta=beta, use_cache=True)
        assert before[RULES[0]] == calls
    (line,) = [record.getMessage() for record in caplog.records]
    assert "chunk_gated_delta_rule runs what ran before" in line and "got K = 300" in line
    before[RULES[0]] = 1
    *qkv, g, beta = rule_inputs()
    o, state = rule(*qkv, g=g, beta=beta, use_cache=True, output_router_logits=False)
    assert before[RULES[0]] == 1 and o.shape == (1, 50, 4, 32) and state is None
    # The boundaries are wrong, which is nothing that another function would serve.
    with pytest.raises(ValueError, match="cu_seqlens: expected boundaries of at most T = 50"):
        rule(*qkv, g=g, beta=beta, cu_seqlens=torch.tensor([0, 60]))


@pytest.mark.parametrize("name", ["qwen3_5"], indirect=True)
def test_forms_of_gates(name, before):
    """What a model leaves to the kernel reaches it, with gradients: raw gates, logits of beta, a scale."""
    gdn.transformers.install()
    rule = file_of(name).torch_chunk_gated_delta_rule
    q, k, v, a, b = (x.requires_grad_() for x in rule_inputs())
    A_log, dt_bias = torch.randn(4).requires_grad_(), torch.randn(4).requires_grad_()
    words = {"use_qk_l2norm_in_kernel": True, "scale": 0.5}
    inside, _ = rule(
        q, k, v, g=a, beta=b, A_log=A_log, dt_bias=dt_bias, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        allow_neg_eigval=True, **words,
    )  # fmt: skip
    g = -A_log.exp() * torch.nn.functional.softplus(a + dt_bias)
    outside, _ = rule(q, k, v, g=g, beta=2 * b.sigmoid(), **words)
    assert before[RULES[0]] == 0 and error(inside, outside) < 1e-5
    given, weights = (q, k, v, a, b, A_log, dt_bias), torch.randn_like(inside)
    found = [torch.autograd.grad(o, given, weights) for o in (inside, outside)]
    assert all(distance(got, wanted) < 1e-5 for got, wanted in zip(*found))


@pytest.mark.parametrize("name", ["qwen3_5"], indirect=True)
@torch.no_grad()
def test_compile_and_export(name, before):
    """A compiler has one graph with our operator; torch.export gets torch's own code."""
    gdn.transformers.install()
    rule = file_of(name).torch_chunk_gated_delta_rule

    class Layer(torch.nn.Module):
        def forward(self, q, k, v, g, beta):
            return rule(q, k, v, g=g, beta=beta, output_final_state=True, use_qk_l2norm_in_kernel=True)

    layer, arguments = Layer(), rule_inputs()
    expected = layer(*arguments)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for got, wanted in zip(compiled(*arguments), expected):
        assert torch.equal(got, wanted)
    assert before[RULES[0]] == 0
    exported = torch.export.export(layer, arguments)
    assert before[RULES[0]] and not any("gdn" in str(node.target) for node in exported.graph.nodes)


@pytest.mark.full
@pytest.mark.parametrize("name", ["qwen3_5"], indirect=True)
def test_compiled_training(name, before):
    """A step with packed sequences is one graph forward and one backward, with the gradients of the model as it is."""
    gdn.transformers.install()
    model, ids = make_model(name), tokens(1, 70)
    positions = torch.cat([torch.arange(30), torch.arange(40)])[None]
    packed = {"position_ids": positions, "cu_seq_lens_q": torch.tensor([0, 30, 70], dtype=torch.int32), "use_cache": False}

    def gradients(run):
        return torch.autograd.grad(run(ids, labels=ids, **packed).loss, list(model.parameters()))

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for got, wanted in zip(gradients(compiled), gradients(model)):
        assert distance(got, wanted) < 1e-5
    assert not any(before.values())


def test_the_gpu_of_a_call_is_asked_about(monkeypatch):
    """Another GPU of the machine may be of another kind."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    asked = []
    monkeypatch.setattr(gdn.transformers, "_ask", lambda function, device, *_: asked.append(device))
    with FakeTensorMode():
        for device in ("cuda:1", "cpu"):
            x = torch.empty(1, 4, 2, 64, device=device)
            gdn.transformers._serves("chunk_gated_delta_rule", (x, x, x, *(None,) * 6), ())
    assert asked == ["cuda:1", "cpu"]


def test_installing_twice_is_installing_once():
    rule = file_of("qwen3_5").torch_chunk_gated_delta_rule
    assert gdn.transformers.install() == gdn.transformers.install()
    gdn.transformers.uninstall()
    assert file_of("qwen3_5").torch_chunk_gated_delta_rule is rule


def test_functions_around_ours_stay():
    """What another library bound after us is left alone, and hands on to what was there before us."""
    module = file_of("qwen3_5")
    before = module.torch_chunk_gated_delta_rule
    gdn.transformers.install()
    ours = module.torch_chunk_gated_delta_rule

    def theirs(*args, **kwargs):
        return ours(*args, **kwargs)

    module.torch_chunk_gated_delta_rule = theirs
    try:
        gdn.transformers.uninstall()
        assert module.torch_chunk_gated_delta_rule is theirs
        *qkv, g, beta = rule_inputs()
        with torch.no_grad():
            assert torch.equal(theirs(*qkv, g=g, beta=beta)[0], before(*qkv, g=g, beta=beta)[0])
    finally:
        module.torch_chunk_gated_delta_rule = before


@pytest.mark.parametrize(
    "model", ["qwen3_next", *([pytest.param("kimi_linear", marks=pytest.mark.full)] if RELEASE >= (5, 24) else [])]
)
def test_the_example(model):
    """A small case of docs/examples/models.py."""
    example = pathlib.Path(__file__).parents[2] / "docs" / "examples" / "models.py"
    options = ["--model", model, "--tokens", "100", "--new", "3", "--heads", "2", "--runs", "1", "--threads", "1", "--train"]
    run = fresh(f"import runpy, sys; sys.argv = {[str(example), *options]}; runpy.run_path(sys.argv[0], run_name='__main__')")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "as torch's: yes" in run.stdout and "one token torch" in run.stdout and "training  torch" in run.stdout
