# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of vLLM's own layers on a GPU, by gdn and by vLLM's Triton kernels: `engines_times.py [--only PATTERN]`, with the
engines' Python as scripts/test-engines.sh has it, test/python and this folder on PYTHONPATH.

A step goes from the convolution's input to the normed output, without projections: the class, its metadata's builder, its
convolution and its norm are vLLM's. Both run on copies of one pool in turn: decoding and verification in CUDA graphs, prefills
as they are called. Prints medians in us, and how far outputs before the norm and the states that a step writes are apart.
"""

import argparse
import copy
import importlib.abc
import importlib.machinery
import re
import statistics
import sys
import types
import unittest.mock


#: What the engines' modules import, and these steps do not call: compiled modules, and packages that a machine may lack.
UNUSED = ["vllm._moe_C_stable_libtorch", "vllm.vllm_flash_attn", "llguidance", "sgl_kernel", "IPython"]
#: vLLM's compiled operators, if --compiled is given.
COMPILED = "vllm._C_stable_libtorch"


class Unused(types.ModuleType):
    """Stands for a module that is not called."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return unittest.mock.MagicMock()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds these modules, and what is in them."""

    def find_spec(self, name, path, target=None):
        is_unused = any(f"{name}.".startswith(f"{unused}.") for unused in UNUSED)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_unused else None

    def create_module(self, spec):
        return Unused(spec.name)

    def exec_module(self, module):
        pass


if "--compiled" not in sys.argv:
    UNUSED.append(COMPILED)
sys.meta_path.insert(0, Finder())

import numpy as np  # noqa: E402
import torch  # noqa: E402

_operator = torch._ops._OpNamespace.__getattr__


def operator_or_none(namespace, name):
    """vLLM's modules ask their operators what a GPU supports: one that is not there says that it supports nothing."""
    try:
        return _operator(namespace, name)
    except AttributeError:
        if "supports" not in name:
            raise
        return lambda *arguments: False


torch._ops._OpNamespace.__getattr__ = operator_or_none
import vllm_stand_in as made  # noqa: E402

import gdn.vllm  # noqa: E402
from gdn import _serving  # noqa: E402

made.CHANNELS = 128
made.KimiGatedDeltaNetAttention.facts = {"gates": 128, "allow_neg_eigval": False}
PACKAGE = "vllm.model_executor.layers.mamba.gdn"


class Layers:
    """Two layers with the same parameters and states: vLLM's own, and gdn's over it."""

    def __init__(self, name, pool, blocks, tp_size=1, **words):
        self.engine = importlib.import_module(f"{PACKAGE}.{gdn.vllm.LAYERS[name]}")
        with torch.device("cpu"):
            stand_in = getattr(made, name)(tp_size=tp_size, dtype=torch.bfloat16, pool=pool, blocks=blocks, **words)
        stand_in = stand_in.to(torch.get_default_device())
        #: The parameters.
        self.reference = copy.copy(stand_in)
        stand_in._modules.pop("o_norm", None)
        width = stand_in.kv_cache[0].shape[-1]
        conv, states = torch.randn(blocks, made.WIDTH - 1 + made.SPECULATED, width), torch.randn(stand_in.kv_cache[1].shape)
        self.is_kda = stand_in.gates > 1
        both = []
        for kind in (getattr(self.engine, name), gdn.vllm.make_layer(self.engine, name)):
            layer = kind.__new__(kind)
            vars(layer).update(vars(stand_in))
            # Pages are longer than states.
            pages = torch.zeros(blocks, states[0].numel() + 64, dtype=pool)
            cache = pages[:, : states[0].numel()].unflatten(1, states.shape[1:])
            cache.copy_(states)
            vars(layer).update(
                kv_cache=(conv.to(torch.bfloat16), cache), served=_serving.Served("vLLM"), tp_rank=0,
                key_dim=128 * layer.num_k_heads, value_dim=128 * layer.num_v_heads,
                gdn_decode_kernel="triton" if COMPILED in UNUSED else "cuda",
                enable_packed_recurrent_decode=True, disable_tp_for_ba_proj=False, layer_norm_epsilon=1e-6,
                local_projection_size=128 * layer.num_v_heads // tp_size, head_dim=128,
            )  # fmt: skip
            both.append(layer)
        self.layers = both
        norm = self.norm(stand_in)
        for layer in both:
            layer.norm = layer.o_norm = norm
            layer.chunk_gated_delta_rule = self.chunk
        self.engine.get_forward_context = lambda: types.SimpleNamespace(attn_metadata=self.steps)

    def norm(self, layer):
        weight = torch.rand(128, dtype=torch.bfloat16) + 0.5
        norm = types.SimpleNamespace(weight=weight, bias=None, eps=1e-6, group_size=None, norm_before_gate=True, activation="silu")
        if not self.is_kda:
            return norm
        from vllm.third_party.flash_linear_attention.ops.layernorm_guard import layer_norm_fwd

        def gated(x, gate):
            rows, gates = x.reshape(-1, 128), gate.reshape(-1, 128)
            return layer_norm_fwd(rows, weight, None, 1e-6, z=gates, is_rms_norm=True, activation="sigmoid")[0].view_as(x)

        return gated

    def chunk(self, q, k, v, g, beta, initial_state, cu_seqlens, chunk_indices, chunk_offsets, **words):
        """What vLLM's ChunkGatedDeltaRule calls by default."""
        return self.engine.fla_chunk_gated_delta_rule(
            q=q, k=k, v=v, g=g, beta=beta, initial_state=initial_state, output_final_state=True, cu_seqlens=cu_seqlens,
            chunk_indices=chunk_indices, chunk_offsets=chunk_offsets, use_qk_l2norm_in_kernel=False,
        )  # fmt: skip

    def inputs(self, tokens):
        layer = self.layers[0]
        heads, width = len(layer.A_log), len(layer.conv1d.weight)
        if self.is_kda:
            # One projection: q, k, v, and the logits of beta; gates and the norm's gate.
            x = torch.randn(tokens, width + heads, dtype=torch.bfloat16)
            g1, g2 = (torch.randn(1, tokens, heads, 128, dtype=torch.bfloat16) for _ in range(2))
            return x[:, :width], g1, g2, x[None, :, width:]
        return torch.randn(tokens, width + 128 * heads, dtype=torch.bfloat16), torch.randn(tokens, 2 * heads, dtype=torch.bfloat16)

    def step(self, layer, inputs, out):
        if self.is_kda:
            x, g1, g2, beta = inputs
            layer._forward(mixed_qkv=x, g1=g1, g2=g2, beta=beta, core_attn_out=out[None])
        else:
            layer._forward_core_fused_norm_packed(*inputs, out)

    def core(self, layer, inputs, out):
        """The step without its norm, which gave other numbers in each run of vLLM's layer alone, under Triton 3.6."""
        if self.is_kda:
            norm, layer.o_norm = layer.o_norm, lambda x, gate: x.clone()
            self.step(layer, inputs, out)
            layer.o_norm = norm
        else:
            x, (b, a) = inputs[0][:, : len(layer.conv1d.weight)], layer.split_ba(inputs[1])
            layer._forward_core(x, b.contiguous(), a.contiguous(), out)


def decoding(layers, sequences, blocks):
    rows = torch.randperm(blocks - 1)[:sequences] + 1
    return made.built(made.Step([1] * sequences, rows.tolist(), [True] * sequences, decodes=sequences)), sequences


def verifying(layers, sequences, blocks):
    count = made.SPECULATED + 1
    slots = (torch.randperm(blocks - 1)[: sequences * count] + 1).tolist()
    accepted = [1 + n % count for n in range(sequences)]
    return made.built(made.Speculation([count] * sequences, slots, accepted)), sequences * count


def prefilling(layers, sequences, blocks):
    tokens = [2048 // sequences + 7 * n for n in range(sequences)]
    rows = (torch.randperm(blocks - 1)[:sequences] + 1).tolist()
    return made.built(made.Step(tokens, rows, [n % 2 == 0 for n in range(sequences)]), "triton"), sum(tokens)


def replayed(function, calls):
    """What runs all calls: a graph, where a step can be captured."""
    for _ in range(2):
        function(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for n in range(calls):
            function(n)
    return graph.replay


def called(function, calls):
    """What runs all calls one after another, with the host's time."""
    for _ in range(3):
        function(0)
    return lambda: [function(n) for n in range(calls)]


def apart(got, wanted):
    scale = wanted.double().square().mean().sqrt()
    return ((got.double() - wanted.double()).square().mean().sqrt() / scale).item()


@torch.inference_mode()
def measure(title, name, pool, kind, sequences, rounds=15, **words):
    most = sequences * (made.SPECULATED + 1 if kind is verifying else 1)
    calls = 4 if kind is prefilling else 20
    # So many blocks that a state is not in L2 when its turn comes.
    blocks = 1 + min(max(most * calls // 4, most, 64), 1100)
    layers = Layers(name, pool, blocks, **words)
    steps = [kind(layers, sequences, blocks) for _ in range(calls)]
    drawn = [layers.inputs(steps[0][1]) for _ in range(calls)]
    runs, outs, alive = [], [], []
    for layer in layers.layers:
        # vLLM's convolution of decoding overwrites its input.
        inputs = [tuple(x.clone() for x in each) for each in drawn]
        out = torch.zeros(steps[0][1], len(layer.A_log), 128, dtype=torch.bfloat16)
        before = [x.clone() for x in layer.kv_cache]

        def run(n, step=layers.step, layer=layer, out=out, inputs=inputs):
            layers.steps = {made.PREFIX: steps[n][0]}
            step(layer, inputs[n], out)

        run(0, layers.core)
        outs.append((out.clone(), layer.kv_cache[1].clone()))
        for x, y in zip((*layer.kv_cache, *inputs[0]), (*before, *drawn[0])):
            x.copy_(y)
        runs.append((called if kind is prefilling else replayed)(run, calls))
        alive.append((inputs, out))  # A graph does not keep what it reads.
        assert layer.ran == 0
    times = [[], []]
    for _ in range(rounds):
        for n, function in enumerate(runs):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            function()
            end.record()
            end.synchronize()
            times[n].append(begin.elapsed_time(end) * 1e3 / calls)
    theirs, mine = (statistics.median(part) for part in times)
    served = ", ".join(kind for kind, yes in layers.layers[1].served.runs.items() if yes) or "NOT SERVED"
    rows = (outs[0][1] != outs[1][1]).flatten(1).any(1) | (outs[0][1] != before[1]).flatten(1).any(1)
    states = apart(outs[1][1][rows], outs[0][1][rows])
    print(
        f"{title:48} {theirs:9.2f} {mine:9.2f} {mine / theirs:7.3f}   o {apart(outs[1][0], outs[0][0]):.1e}"
        f"  states {states:.1e}  {served}", flush=True,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose title has this pattern")
    parser.add_argument("--all", action="store_true", help="gdn runs the steps that it leaves to vLLM, too")
    parser.add_argument("--compiled", action="store_true", help="vLLM verifies by its compiled kernel, which has the norm inside")
    arguments = parser.parse_args()
    if arguments.all:
        gdn.vllm.KEPT.clear()
    torch.set_default_device("cuda")
    torch.manual_seed(0)
    np.random.seed(0)
    print(f"{'step':48} {'vLLM':>9} {'gdn':>9} {'ratio':>7}   how far they are apart")
    qwen, kimi = "QwenGatedDeltaNetAttention", "KimiGatedDeltaNetAttention"
    kinds = {
        "decode": (decoding, (1, 8, 32, 64, 256)), "verify 4 tokens": (verifying, (1, 32, 128)), "prefill": (prefilling, (1, 4)),
    }  # fmt: skip
    failed = 0
    for name, heads in ((qwen, "16/32 heads"), (kimi, "32 heads")):
        for pool in (torch.float32, torch.bfloat16):
            for kind, (function, sizes) in kinds.items():
                for size in sizes:
                    title = f"{name[:4]} {heads}, {str(pool)[6:]}, {kind}, {size}"
                    # vLLM's prefill with a gate a channel has no states of 16 bits.
                    if not re.search(arguments.only, title) or (name == kimi and pool is torch.bfloat16 and function is prefilling):
                        continue
                    words = {"lower_bound": -5.0} if name == kimi else {}
                    try:
                        measure(title, name, pool, function, size, **words)
                    except Exception as error:
                        failed += 1
                        print(f"{title:48} FAIL {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                        if isinstance(error, torch.AcceleratorError):
                            return 1  # Nothing runs after it.
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
