# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training of small random models of Transformers on a GPU, for python.py: on gdn and on torch's own path."""

import functools
import importlib
import pathlib
import sys
import time

#: A model's class, that of its configuration, and what is special. Every token goes to all experts: a choice among them
#: may turn on a last bit.
MODELS = {
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", {
        "mlp_only_layers": [0], "num_experts": 4, "num_experts_per_tok": 4, "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 64,
    }),
    "qwen3_5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", {}),
}  # fmt: skip
SIZES = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "pad_token_id": 0, "eos_token_id": None,
    "bos_token_id": None,
}  # fmt: skip
DEVICE = "cuda"
RULE = "torch_chunk_gated_delta_rule"
#: Relative rms of gradients: a parameter's on the two paths, in bfloat16; A_log and dt_bias together, from the exact ones.
TOLERANCE, OF_SUMS = 2e-2, 4e-2
#: Parameters whose gradients are sums over tokens that nearly cancel, so that a rounding of bfloat16 shows. A head that
#: forgets at once has one of 1e-7, of which torch's path in float32 is off by half.
SUMS = ("A_log", "dt_bias")
#: What losses are multiplied by: the gradients of float16 would be too small for it.
SCALE = 1024


def make_model(torch, name, dtype, seed=0):
    import transformers

    transformers.logging.set_verbosity_error()
    model, configuration, special = MODELS[name]
    torch.manual_seed(seed)
    made = getattr(transformers, model)(getattr(transformers, configuration)(**SIZES, **special))
    made.config._experts_implementation = "eager"  # one for all types
    return made.to(DEVICE, getattr(torch, dtype))


@functools.cache
def tests():
    """What the tests of the package on a CPU measure by."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    return importlib.import_module("model_gradients")


def gradients_of(model, ids):
    return tests().gradients_of(model, ids, scale=SCALE, use_cache=False)


def tokens(torch, *shape):
    return torch.randint(1, 512, shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)


class Counted:
    """How often a model's own function runs while this is open, and what gdn is asked to run."""

    def __init__(self, name):
        self.module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        self.calls, self.form = 0, None

    def __enter__(self):
        self.before = before = getattr(self.module, RULE)

        def run(*args, **kwargs):
            self.calls += 1
            self.form = args, kwargs
            return before(*args, **kwargs)

        setattr(self.module, RULE, run)
        return self

    def __exit__(self, *_):
        setattr(self.module, RULE, self.before)


def on_gdn(gdn, name, run):
    """What `run` gives with gdn under the model, and how often the model's own function ran meanwhile."""
    with Counted(name) as counted:
        gdn.transformers.install()
        try:
            return run(), counted.calls
        finally:
            gdn.transformers.uninstall()


def exact(model, ids):
    """The gradients in float64, and how far others are from them: A_log and dt_bias, the others at most, all."""
    wanted = tests().exact_gradients_of(model, ids, scale=SCALE, use_cache=False)
    sums = {name: x for name, x in wanted.items() if name.endswith(SUMS)}
    rest = {name: x for name, x in wanted.items() if name not in sums}

    def far(found):
        worst = max(tests().distance(found[name], x) for name, x in rest.items())
        return worst, tests().distance_together(found, sums), tests().distance_together(found, wanted)

    return far


def gradients(torch, gdn, name, dtype, seed):
    """Of all parameters: those of gdn against those of torch's path, and both against float64."""
    model, ids = make_model(torch, name, dtype, seed), tokens(torch, 2, 300)
    with Counted(name) as counted:
        theirs = gradients_of(model, ids)
    ours, elsewhere = on_gdn(gdn, name, lambda: gradients_of(model, ids))
    if not counted.calls or elsewhere or ours.keys() != theirs.keys():
        return f"{counted.calls} calls of torch's path, {elsewhere} with gdn", False
    apart = {name: tests().distance(ours[name], x) for name, x in theirs.items()}
    most = [max((x, name) for name, x in apart.items() if name.endswith(SUMS) == sums) for sums in (False, True)]
    sums = tests().distance_together(ours, {name: x for name, x in theirs.items() if name.endswith(SUMS)})
    far = exact(model, ids)
    of_ours, of_theirs = far(ours), far(theirs)
    text = f"{len(ours)} parameters: {most[0][0]:.1e} ({most[0][1]}); A_log and dt_bias together {sums:.1e}, one "
    text += f"{most[1][0]:.1e} ({most[1][1]})"
    for who, found in (("gdn", of_ours), ("torch", of_theirs)):
        text += f"; {who} from float64 " + " ".join(f"{x:.1e}" for x in found)
    # Both paths round q, k and v of a model alike; they are judged by the exact gradients. Qwen3-Next's are closer.
    right = of_ours[0] < 1.2 * of_theirs[0] + 1e-3 and of_ours[1] < OF_SUMS and of_ours[2] < 1.1 * of_theirs[2]
    return text, right and (most[0][0] < TOLERANCE or name != "qwen3_next")


def losses(torch, gdn, name, dtype, steps=20):
    """Of a training by AdamW: they fall, and are those of torch's path."""

    def run():
        model, ids, found = make_model(torch, name, dtype).train(), tokens(torch, 2, 300), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(ids, labels=ids, use_cache=False).loss
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        return torch.stack(found).tolist()

    theirs = run()
    begin = time.perf_counter()
    ours, elsewhere = on_gdn(gdn, name, run)
    apart = max(abs(a - b) for a, b in zip(ours, theirs)) / theirs[0]
    text = f"{theirs[0]:.3f} -> {theirs[-1]:.3f} and {ours[-1]:.3f}, {apart:.1e} of the first apart at most"
    return f"{text}, {time.perf_counter() - begin:.0f} s", not elsewhere and apart < 1e-2 and ours[-1] < 0.9 * ours[0]


def checkpoints(torch, gdn, name, dtype):
    """Layers that are computed again in the backward: the same gradients, but for sums by atomics of torch."""

    def run(checkpointed):
        model, ids = make_model(torch, name, dtype).train(), tokens(torch, 2, 300)
        if checkpointed:
            model.gradient_checkpointing_enable()
        return gradients_of(model, ids)

    found, elsewhere = on_gdn(gdn, name, lambda: [run(checkpointed) for checkpointed in (False, True)])
    apart = max(tests().distance(found[1][name], x) for name, x in found[0].items())
    return f"{apart:.1e} apart at most", apart < 0.25 * TOLERANCE and not elsewhere


def autocast(torch, gdn, name, dtype):
    """Parameters in float32 under autocast, as trainers do it: as near to the exact gradients as torch's path."""
    model, ids = make_model(torch, name, "float32"), tokens(torch, 2, 300)

    def run():
        with torch.autocast(DEVICE, getattr(torch, dtype)):
            return gradients_of(model, ids)

    far = exact(model, ids)
    theirs, (found, elsewhere) = far(run()), on_gdn(gdn, name, run)
    ours = far(found)
    text = "gdn from float64 {:.1e} {:.1e} {:.1e}; torch {:.1e} {:.1e} {:.1e}".format(*ours, *theirs)
    return text, not elsewhere and ours[2] < 1.1 * theirs[2] and ours[0] < 1.2 * theirs[0] + 1e-3


def packed(torch, gdn, name, dtype):
    """Sequences in one row have the gradients that they have alone; the convolution of torch would mix them."""
    model, ids, ends = make_model(torch, name, dtype), tokens(torch, 1, 300), (0, 100, 101, 300)
    weights = torch.randn(1, 300, SIZES["vocab_size"], device=DEVICE)
    positions = torch.cat([torch.arange(end - begin) for begin, end in zip(ends, ends[1:])])[None].to(DEVICE)
    boundaries = torch.tensor(ends, dtype=torch.int32, device=DEVICE)

    def of(logits):
        model.zero_grad()
        (logits * weights).sum().backward()
        return {name: x.grad.clone() for name, x in model.named_parameters() if x.grad is not None}

    def run():
        alone = [model(ids[:, a:b], use_cache=False).logits for a, b in zip(ends, ends[1:])]
        wanted = of(torch.cat(alone, 1))
        return wanted, of(model(ids, position_ids=positions, cu_seq_lens_q=boundaries, use_cache=False).logits)

    (wanted, found), elsewhere = on_gdn(gdn, name, run)
    apart, which = max((tests().distance(found[name], x), name) for name, x in wanted.items() if not name.endswith(SUMS))
    return f"{apart:.1e} apart at most ({which})", apart < TOLERANCE and not elsewhere


def handed_on(torch, gdn, name):
    """float32, whose gradients have no kernel on a GPU: torch's path as before, and the reason in a warning."""
    model, ids = make_model(torch, name, "float32"), tokens(torch, 1, 70)
    wanted = gradients_of(model, ids)
    found, elsewhere = on_gdn(gdn, name, lambda: gradients_of(model, ids))
    apart = max(tests().distance(found[name], x) for name, x in wanted.items())
    return f"{elsewhere} calls by torch's path, {apart:.1e} apart at most", elsewhere > 0 and apart < 1e-4


def kernel(torch, gdn, name, dtype):
    """What computes the gradients of a layer's call."""
    model, ids = make_model(torch, name, dtype), tokens(torch, 2, 300)
    with Counted(name) as counted:
        model(ids, use_cache=False)
    (q, k, v), words = counted.form
    words = {key: words[key] for key in ("g", "beta", "use_qk_l2norm_in_kernel")}
    backward = gdn.explain(q, k, v, words.pop("g"), **words).backward
    return str(backward), backward is not None and backward.launches > 0


def model_runs(torch, gdn):
    """All checks by name."""
    import gdn.transformers

    for name in MODELS:
        # What is loaded at the first use takes longer than a check may.
        gradients_of(make_model(torch, name, "bfloat16"), tokens(torch, 1, 70))
        for dtype, seed in (("bfloat16", 0), ("bfloat16", 1), ("bfloat16", 2), ("float16", 0)):
            run = functools.partial(gradients, torch, gdn, name, dtype, seed)
            yield f"models: gradients, {name}, {dtype}, seed {seed}", run
        yield f"models: losses, {name}", functools.partial(losses, torch, gdn, name, "bfloat16")
    for check in (kernel, checkpoints, autocast, packed):
        yield f"models: {check.__name__}", functools.partial(check, torch, gdn, "qwen3_next", "bfloat16")
    yield "models: float32", functools.partial(handed_on, torch, gdn, "qwen3_next")
