# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 300 steps of served_schedule.py through vLLM's own layers and SGLang's own backends on a GPU, with and without gdn:
`engines_schedule.py [--only PATTERN] [--steps N]`, with the engines' Python as scripts/test-engines.sh has it, test/python and this
folder on PYTHONPATH.

Classes, metadata's builders and convolutions are the engines'. An engine's own layer and gdn's get the same tokens, each over its
own pool; what each is apart from float64 is printed, and gdn's must be within bounds. Rows of nobody keep their bits.
"""

import argparse
import re
import sys
import time
import types

import engines_times as engines
import numpy as np
import torch
import vllm_stand_in as made
from served_schedule import steps

import gdn.sglang
import gdn.vllm
from gdn import _serving

#: Slots of a sequence: as many as vLLM keeps states of.
SLOTS = made.SPECULATED + 1
BLOCKS = 1 + 8 * SLOTS
#: Whether the engines' own layers take what gdn's leave of steps with prefills: Triton tries so many ways to run those that it
#: takes minutes.
PREFILLS_ARE_GDNS = "--decode" in sys.argv
#: Of outputs and states, relative, by the pool's type.
BOUNDS = {torch.float32: 1e-2, torch.bfloat16: 3e-2}


@torch.inference_mode()
def exact_rule(q, k, v, g, beta, initial_state=None, gate_domain="raw", lower_bound=None, A_log=None, dt_bias=None, **others):
    """reference.gated_delta_rule of raw or bounded gates, logits and norms over states [V, K], in float64 where the tensors are: a
    token takes NumPy milliseconds."""
    assert others == {"l2norm": True, "v_first": True, "beta_domain": "logit"}
    q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    q, k = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k))
    rate, bias = A_log.exp().unflatten(0, (-1, *[1] * (g.ndim - 3))), dt_bias.reshape(g.shape[2:])
    softplus = torch.nn.functional.softplus
    decay = (-rate * softplus(g + bias, threshold=100) if gate_domain == "raw" else lower_bound * (rate * (g + bias)).sigmoid()).exp()
    decay, beta = decay.reshape(*g.shape[:3], -1), beta.sigmoid()
    state, o = initial_state, torch.zeros_like(v)
    state = v.new_zeros(1, *v.shape[2:], k.shape[-1]) if state is None else state.clone()
    for t in range(v.shape[1]):
        state *= decay[:, t, :, None]
        written = beta[:, t, :, None] * (v[:, t] - (state @ k[:, t, :, :, None])[..., 0])
        state += written[..., None] * k[:, t, :, None]
        o[:, t] = (state @ q[:, t, :, :, None])[..., 0] * k.shape[-1] ** -0.5
    return o, state


made.gated_delta_rule = exact_rule


class Server:
    """Requests over pools, by float64."""

    def __init__(self, reference, count):
        self.reference, self.names, self.seed = reference, {}, 0
        self.touched = torch.zeros((), dtype=torch.int64)
        self.free = [list(range(1 + n * SLOTS, 1 + (n + 1) * SLOTS)) for n in range(8)]
        self.worst = [torch.zeros((), dtype=torch.float64) for _ in range(count)]

    def request(self, name):
        if name not in self.names:
            self.seed += 1
            request = made.Request(self.reference, 0, self.seed)
            request.slots, request.accepted = self.free.pop(), 1
            self.names[name] = request
        return self.names[name]

    def leave(self, names):
        for name in names:
            # The next one has these slots.
            self.free.append(self.names.pop(name).slots)

    def draw(self, names, counts):
        """The requests, their tokens, and what float64 makes of these; nothing of them is accepted yet."""
        requests = [self.request(name) for name in names]
        device = torch.get_default_device()
        parts = [[x.to(device) for x in request.draw(count)] for request, count in zip(requests, counts)]
        wanted = []
        for request, part in zip(requests, parts):
            before = request.inputs, request.state
            wanted.append(request.expected(*part))
            request.inputs, request.state = before
        return requests, parts, torch.cat(wanted)

    @property
    def shape(self):
        return len(self.reference.A_log), made.CHANNELS

    def accept(self, requests, parts, counts):
        for request, part, count in zip(requests, parts, counts):
            request.accept(part, count)
            request.inputs = request.inputs[1 - made.WIDTH :]

    def copies(self, step):
        """Whether the engine's own layer has what gdn's leaves, of a step with prefills."""
        return len(self.worst) > 1 and PREFILLS_ARE_GDNS and bool(getattr(step, "prefills", step))

    def compare(self, outs, wanted):
        for n, out in enumerate(outs, len(self.worst) - len(outs)):
            self.note(n, out, wanted)

    def compare_states(self, pools):
        """What is accepted of each request."""
        for n, pool in enumerate(pools):
            for request in self.names.values():
                self.note(n, pool[self.row(request)], request.state[0])

    def note(self, n, got, wanted):
        """How far they are apart, without waiting for the GPU."""
        error = (got.double() - wanted).square().mean().sqrt() / wanted.square().mean().sqrt()
        self.worst[n] = torch.maximum(self.worst[n], error.nan_to_num(torch.inf))


class OfVLLM(Server):
    """vLLM's layer of a name, and gdn's."""

    def __init__(self, name, pool, tp_size, own=True, **words):
        self.layers = engines.Layers(name, pool, BLOCKS, tp_size, **words)
        self.ran = self.layers.layers if own else self.layers.layers[1:]
        super().__init__(self.layers.reference, len(self.ran))
        self.pools = [layer.kv_cache[1] for layer in self.ran]
        self.served = self.layers.layers[1].served
        # Without a GPU there is no plan of Triton's prefills.
        self.prefills = "triton" if own else "flashinfer"

    def row(self, request):
        return request.slots[request.accepted - 1]

    def step(self, step):
        names = [*step.verified, *step.decodes, *step.prefills]
        has = [name in self.names for name in names]
        counts = [count for count, _ in step.verified.values()] + [1] * len(step.decodes) + [*step.prefills.values()]
        requests, parts, wanted = self.draw(names, counts)
        first = len(step.verified)
        padding = 2 if not step.prefills else 0
        if first:
            metadata = made.Speculation(
                counts[:first], [request.slots for request in requests[:first]], [r.accepted for r in requests[:first]],
                counts[first:], [request.slots[0] for request in requests[first:]], has[first:],
            )  # fmt: skip
            padding = 0
        else:
            rows = [request.slots[0] for request in requests] + [0] * padding
            metadata = made.Step([*counts, *[1] * padding], rows, has + [True] * padding, len(step.decodes) + padding)
        metadata = made.built(metadata, self.prefills)
        where = torch.arange(sum(counts))
        if first and step.prefills:
            where = torch.cat([metadata.spec_token_indx, metadata.non_spec_token_indx]).long()
        x, b, a = (torch.cat(group) for group in zip(*parts))
        x, b, a = (torch.empty_like(part).index_copy_(0, where, part) for part in (x, b, a))
        x, b, a = (torch.cat([part, part.new_zeros(padding, part.shape[1])]) for part in (x, b, a))
        ran = self.ran[1:] if self.copies(step) else self.ran
        outs = [self.run(layer, metadata, x, b, a)[where] for layer in ran]
        if self.copies(step):
            for had, has in zip(self.ran[0].kv_cache, self.ran[1].kv_cache):
                had.copy_(has)
        self.compare(outs, wanted)
        taken = [accepted for _, accepted in step.verified.values()] + counts[first:]
        self.accept(requests, parts, taken)
        for n, request in enumerate(requests):
            request.accepted = taken[n] if n < first else 1
        self.compare_states(self.pools)
        self.leave(step.evicted)

    def run(self, layer, metadata, x, b, a):
        """A step without projections and norm."""
        self.layers.steps = {made.PREFIX: metadata}
        out = torch.full((len(x), *self.shape), 7.0, dtype=x.dtype)
        # vLLM's convolution of decoding overwrites its input, and its projections are beside each other.
        x, b = torch.cat([x, b], 1).split([x.shape[1], b.shape[1]], 1)
        if not self.layers.is_kda:
            layer._forward_core(x, b.contiguous(), a.clone(), out)
            return out
        norm, layer.o_norm = layer.o_norm, lambda x, gate: x.clone()
        gates = a.unflatten(1, (-1, made.CHANNELS))[None]
        layer._forward(mixed_qkv=x, g1=gates, g2=torch.ones_like(gates), beta=b[None], core_attn_out=out[None])
        layer.o_norm = norm
        return out


class Chosen(types.SimpleNamespace):
    """The choice of Triton's kernels."""

    def __getattr__(self, name):
        return lambda: name == "is_triton"


class OfSGLang(Server):
    """SGLang's backend, and the same one that gdn serves."""

    def __init__(self, is_kda, pool, tp_size, own=True, lower_bound=None):
        from sglang.srt.layers.attention.linear import gdn_backend, kda_backend
        from sglang.srt.layers.radix_linear_attention import RadixLinearAttention
        from sglang.srt.mem_cache.memory_pool import MambaPool

        kind = made.KimiGatedDeltaNetAttention if is_kda else made.QwenGatedDeltaNetAttention
        with torch.device("cpu"):
            reference = kind(tp_size=tp_size, dtype=torch.bfloat16, lower_bound=lower_bound)
        reference = reference.to(torch.get_default_device())
        self.is_kda = is_kda
        self.module = kda_backend if is_kda else gdn_backend
        heads, keys = len(reference.A_log), reference.key_heads // tp_size
        weight = reference.conv1d.weight.detach().flatten(1)
        self.layer = RadixLinearAttention(
            layer_id=0, num_q_heads=keys, num_k_heads=keys, num_v_heads=heads, head_q_dim=128, head_k_dim=128, head_v_dim=128,
            conv_weights=weight, A_log=reference.A_log.detach().reshape((1, 1, -1, 1) if is_kda else (-1,)),
            dt_bias=reference.dt_bias.detach(), lower_bound=lower_bound,
        )  # fmt: skip
        width, tail = len(weight), made.WIDTH - 1
        conv = torch.zeros(BLOCKS, tail, width) if is_kda else torch.zeros(BLOCKS, width, tail)
        backends = []
        for is_gdns in (False, True) if own else (True,):
            cache = MambaPool.SpeculativeState(
                conv=[conv.to(torch.bfloat16)], temporal=torch.zeros(BLOCKS, heads, 128, 128, dtype=pool),
                intermediate_ssm=torch.zeros(BLOCKS, SLOTS, heads, 128, 128, dtype=pool),
                intermediate_conv_window=[torch.zeros(BLOCKS, SLOTS, *conv.shape[1:], dtype=torch.bfloat16)],
            )  # fmt: skip
            backend = self.make(cache, is_gdns)
            backends.append((backend, cache))
        self.backends = backends
        self.pools = [cache.temporal for _, cache in backends]
        super().__init__(reference, len(backends))

    def make(self, cache, is_gdns):
        """A backend without a runner of models."""
        name = "KDA" if self.is_kda else "GDN"
        kind = getattr(self.module, f"{name}AttnBackend")
        backend = kind.__new__(kind)
        vars(backend).update(
            kernel_dispatcher=getattr(self.module, f"{name}KernelDispatcher")(*[Chosen()] * (2 + self.is_kda)),
            req_to_token_pool=types.SimpleNamespace(
                mamba2_layer_cache=lambda layer: cache, mamba_pool=types.SimpleNamespace(), size=BLOCKS - 1
            ),
            verify_intermediate_state_indices=torch.arange(BLOCKS, dtype=torch.int32), mis_metadata=None, topk=0,
            _use_strided_target_verify_qkv=False, _fused_chain_verify_fn=None, accept_lens_pool=None, pad_slot_id=-1,
            _fused_override_notice=None, prefill_graph_metadata=None,
        )  # fmt: skip
        if self.is_kda:
            # It is another kernel's, of Kimi-K3.
            backend._can_run_dspark_cutedsl_mtp = lambda **words: False
        if is_gdns:
            gdn.sglang.serve(None, backend)
        return backend

    def row(self, request):
        return request.slots[0]

    @property
    def served(self):
        kernels = [getattr(self.backends[-1][0].kernel_dispatcher, role, None) for role in gdn.sglang._ROLES]
        return types.SimpleNamespace(runs={kind: yes for kernel in kernels if kernel for kind, yes in kernel.served.runs.items()})

    def step(self, step):
        if step.prefills:
            # Tokens of others are pieces of one token in a step with prefills.
            names = [*step.prefills, *step.decodes]
            has = [name in self.names for name in names]
            counts = [*step.prefills.values(), *[1] * len(step.decodes)]
            self.forward("MIXED" if step.decodes else "EXTEND", names, counts, counts, has)
        elif step.decodes:
            self.forward("DECODE", step.decodes, [1] * len(step.decodes), [1] * len(step.decodes))
        if step.verified:
            counts, taken = zip(*step.verified.values())
            # Without drafts it is decoding.
            mode = "DECODE" if max(counts) == 1 else "TARGET_VERIFY"
            self.forward(mode, [*step.verified], counts, taken)
        self.compare_states(self.pools)
        self.leave(step.evicted)

    def forward(self, mode, names, counts, taken, has=()):
        from sglang.srt.layers.attention.mamba.mamba2_metadata import ForwardMetadata
        from sglang.srt.model_executor.forward_batch_info import ForwardMode

        requests, parts, wanted = self.draw(names, counts)
        integers = lambda values: torch.tensor(list(values), dtype=torch.int32)  # noqa: E731
        mode = getattr(ForwardMode, mode)
        # Of nobody: a row that pads a graph.
        padding = 1 if mode.is_decode() or mode.is_target_verify() else 0
        rows = [request.slots[0] for request in requests] + [-1] * padding
        counts = [*counts, *[counts[0]] * padding]
        metadata = ForwardMetadata(
            query_start_loc=integers(np.cumsum([0, *counts])), mamba_cache_indices=integers(rows), logical_num_tokens=sum(counts)
        )
        batch = types.SimpleNamespace(
            forward_mode=mode, batch_size=len(rows), req_pool_indices=torch.arange(len(rows)), mamba_track_mask=None,
            extend_prefix_lens=integers(has), extend_seq_lens_cpu=counts,
            spec_info=types.SimpleNamespace(draft_token_num=max(counts), ragged_verify_layout=None),
        )  # fmt: skip
        x, b, a = (torch.cat(group) for group in zip(*parts))
        more = sum(counts) - len(x)
        x, b, a = (torch.cat([part, part.new_zeros(more, part.shape[1])]) for part in (x, b, a))
        if self.is_kda:
            b = b[None]
            a = a[None] if not mode.is_decode() else a
        outs = []
        copies = self.copies(mode.is_extend() and not mode.is_target_verify())
        for backend, cache in self.backends[1:] if copies else self.backends:
            for request, is_old in zip(requests, has):
                if not is_old:
                    # SGLang clears the slots that it gives away.
                    cache.temporal[request.slots[0]] = 0
                    cache.conv[0][request.slots[0]] = 0
            backend.forward_metadata = metadata
            function = backend.forward_decode if mode.is_decode() else backend.forward_extend
            out = function(self.layer, batch, x.clone(), a.clone(), b.clone())
            if mode.is_target_verify():
                # What SGLang's runner copies of what is accepted.
                for n, (request, count) in enumerate(zip(requests, taken)):
                    cache.temporal[request.slots[0]] = cache.intermediate_ssm[n, count - 1]
                    cache.conv[0][request.slots[0]] = cache.intermediate_conv_window[0][n, count - 1]
            outs.append(out.reshape(-1, *self.shape)[: len(wanted)])
        if copies:
            (_, had), (_, new) = self.backends
            had.temporal.copy_(new.temporal)
            had.conv[0].copy_(new.conv[0])
        self.compare(outs, wanted)
        self.accept(requests, parts, taken)


@torch.inference_mode()
def run(make, count, all_drafts, seconds):
    server, end = make(), time.monotonic() + seconds
    for n, step in enumerate(steps(count, all_drafts)):
        if time.monotonic() > end:
            break
        before, slots = server.pools[-1].clone(), {name: request.slots for name, request in server.names.items()}
        try:
            server.step(step)
        except Exception as error:
            raise RuntimeError(f"step {n}, {step}: {type(error).__name__}: {error}") from error
        slots |= {name: request.slots for name, request in server.names.items()}
        named = [slot for name in (*step.prefills, *step.decodes, *step.verified) for slot in slots[name]]
        others = np.setdiff1d(np.arange(BLOCKS), named)
        server.touched += (before[others] != server.pools[-1][others]).any()
        server.steps = n + 1
    assert int(server.touched) == 0, f"{int(server.touched)} steps touched rows of other sequences"
    server.worst = [float(worst) for worst in server.worst]
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose title has this pattern")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no step behind so many of a case")
    parser.add_argument("--decode", action="store_true", help="engines' own layers run the steps without prefills alone")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    torch.set_default_device(arguments.device)
    # float64's convolution is one of float32, as the engines' are inside.
    torch.backends.cudnn.allow_tf32 = False
    gdn.vllm.KEPT.clear()  # All that gdn can run.
    own = arguments.device == "cuda"
    qwen, kimi = "QwenGatedDeltaNetAttention", "KimiGatedDeltaNetAttention"
    failed = 0
    for engine in ("vLLM", "SGLang"):
        for name in (qwen, kimi):
            for pool, tp_size in ((torch.float32, 4), (torch.bfloat16, 4), (torch.float32, 8), (torch.float32, 2)):
                title = f"{engine}, {name[:4]}, heads / {tp_size}, {str(pool)[6:]}"
                if not re.search(arguments.only, title):
                    continue
                words = {"lower_bound": -5.0} if name == kimi else {}
                if engine == "vLLM":
                    make = lambda: OfVLLM(name, pool, tp_size, own, **words)  # noqa: E731, B023
                else:
                    make = lambda: OfSGLang(name == kimi, pool, tp_size, own, **words)  # noqa: E731, B023
                torch.manual_seed(0)
                try:
                    server = run(make, arguments.steps, engine == "SGLang", arguments.seconds)
                    is_right = server.worst[-1] < BOUNDS[pool]
                    left = [kind for kind, yes in server.served.runs.items() if not yes]
                    print(f"{title:44} engine {server.worst[0]:.1e} gdn {server.worst[-1]:.1e} {'ok' if is_right else 'WRONG'}"
                          f" {server.steps} steps, {server.seed} requests; left {left}; runs {len(server.served.runs)}", flush=True)
                    failed += not is_right
                except Exception as error:
                    failed += 1
                    print(f"{title:44} FAIL {str(error)[:600]}", flush=True)
                    if isinstance(error.__cause__, torch.AcceleratorError):
                        return 1
                _serving._said.clear()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
