#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of Hugging Face Transformers with one line more, on a CPU.

    pip install . torch transformers
    python docs/examples/models.py
    python docs/examples/models.py --model kimi_linear

The model has four layers with random weights, three of them linear. Those of Qwen3-Next are Gated DeltaNet, with the
heads of the real one: 16 for queries and keys, 32 for values, 128 channels each. Those of Kimi-Linear are Kimi Delta
Attention, of 16 heads. The model runs on Transformers' own torch code and on gdn, in turn.
"""

import argparse
import time

import torch
import transformers

import gdn.transformers


COMMON = {"vocab_size": 512, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4}


def make_qwen3_next(heads):
    config = transformers.Qwen3NextConfig(
        **COMMON, num_key_value_heads=2, head_dim=128, linear_num_key_heads=heads, linear_num_value_heads=2 * heads,
        num_experts=2, num_experts_per_tok=2, moe_intermediate_size=256, shared_expert_intermediate_size=256,
    )  # fmt: skip
    return transformers.Qwen3NextForCausalLM(config)


def make_kimi_linear(heads):
    config = transformers.KimiLinearConfig(
        **COMMON, num_key_value_heads=4, kv_lora_rank=64, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64,
        linear_num_heads=heads, linear_head_dim=128, intermediate_size=512, mlp_layer_types=["dense"] * 4,
        layer_types=["linear_attention"] * 3 + ["full_attention"], pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return transformers.KimiLinearForCausalLM(config)


MODELS = {"qwen3_next": make_qwen3_next, "kimi_linear": make_kimi_linear}


def make_model(name, heads, dtype):
    torch.manual_seed(0)
    return MODELS[name](heads).to(dtype).eval()


def cache_of(out):
    """What a model's next call goes on from, by the name that the model has for it."""
    name = next(name for name in ("cache", "past_key_values") if name in out)
    return {name: out[name]}


def run(model, prompt, count, clock):
    """Logits of the prompt, the tokens that follow it, and the seconds of the prompt and of a further token."""
    start = clock()
    out = model(prompt, use_cache=True)
    prefill, logits = clock() - start, out.logits
    tokens = [out.logits[:, -1:].argmax(-1)]
    start = clock()
    for _ in range(count - 1):
        out = model(tokens[-1], use_cache=True, **cache_of(out))
        tokens.append(out.logits[:, -1:].argmax(-1))
    decode = (clock() - start) / max(count - 1, 1)
    return logits, torch.cat(tokens, 1), prefill, decode


def step(model, prompt, clock):
    """The seconds of a training step's forward and backward."""
    start = clock()
    with torch.enable_grad():
        model(prompt, labels=prompt).loss.backward()
    model.zero_grad()
    return clock() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="qwen3_next", help="whose layers the model has")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024], help="lengths of the prompt")
    parser.add_argument("--new", type=int, default=8, help="tokens that follow")
    parser.add_argument("--heads", type=int, default=16, help="heads of queries and keys in linear layers")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--train", action="store_true", help="a training step's forward and backward as well")
    parser.add_argument("--runs", type=int, default=2, help="times that each is run; the fastest counts")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="with 1, CPU time is measured")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # One thread's own time does not depend on what else the machine does.
    clock = time.process_time if options.threads == 1 else time.perf_counter
    transformers.logging.set_verbosity_error()
    model = make_model(options.model, options.heads, getattr(torch, options.dtype))
    print(f"Transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    equal = True
    for length in options.tokens:
        prompt = torch.randint(512, (1, length))
        results = {"torch": [], "gdn": []}
        for _ in range(options.runs):
            for name, found in results.items():
                if name == "gdn":
                    gdn.transformers.install()  # the one line
                seconds = step(model, prompt, clock) if options.train else 0.0
                found.append((*run(model, prompt, options.new, clock), seconds))
            gdn.transformers.uninstall()
        (logits, tokens, *_), (ours, ours_tokens, *_) = results["torch"][0], results["gdn"][0]
        equal &= torch.equal(tokens, ours_tokens)
        print(f"\nprompt of {length} tokens; tokens that follow:", *ours_tokens[0, :8].tolist(), "...")
        print(f"  as torch's: {'yes' if torch.equal(tokens, ours_tokens) else 'NO'};"
              f" largest difference of a logit: {(ours - logits).abs().max():.1e} of {logits.abs().max():.2g}")
        for part, name in ((2, "prompt"), (3, "one token"), *([(4, "training")] if options.train else [])):
            plain, fast = (1e3 * min(result[part] for result in results[each]) for each in ("torch", "gdn"))
            print(f"  {name:<9} torch {plain:8.1f} ms, gdn {fast:8.1f} ms: {plain / fast:.1f} times as fast")
    return 0 if equal or options.dtype != "float32" else 1


if __name__ == "__main__":
    with torch.no_grad():
        raise SystemExit(main())
