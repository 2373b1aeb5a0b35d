# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands for vLLM's layers and their metadata in test_vllm.py: the same attributes, the convolution in torch; and requests
whose outputs float64 has."""

import copy
import dataclasses
import math
import types

import numpy as np
import torch
from reference import gated_delta_rule

#: Heads of keys and of values in a model, and on each of 8 GPUs.
KEY_HEADS, VALUE_HEADS, HEADS = 16, 32, 4
WIDTH, CHANNELS, BLOCKS = 4, 32, 9
#: Speculated tokens of a sequence, one of which it has verified.
SPECULATED = 3
PREFIX = "model.layers.0.linear_attn"


@dataclasses.dataclass
class Checkpoint:
    """MambaPrefillCheckpointMetadata: how many tokens of each sequence its prefix has that a cache keeps, and the block for it;
    zeros are none."""

    checkpoint_offsets: torch.Tensor
    state_indices: torch.Tensor
    offsets: list
    query_lens: list


class Exporter:
    """MambaPrefillCheckpointExporter of such a layer, without Triton and states."""

    def export(self, checkpoint, *, raw_qkv, conv_state, cu_seqlens):
        offsets, blocks = checkpoint.checkpoint_offsets.tolist(), checkpoint.state_indices.tolist()
        for offset, block, begin in zip(offsets, blocks, cu_seqlens.tolist()):
            if offset and block:
                end = begin + offset
                conv_state[block, :, : WIDTH - 1] = raw_qkv[end - WIDTH + 1 : end].T


class Step(types.SimpleNamespace):
    """GDNAttentionMetadata of sequences of `tokens` in blocks, of which the first ones decode. `keeps` are tokens and block of a
    prefix for each sequence, as Checkpoint has them."""

    def __init__(self, tokens, blocks, has, decodes=0, keeps=()):
        ends = np.cumsum([0, *tokens])
        integers = lambda values: torch.tensor(list(values), dtype=torch.int32)  # noqa: E731
        prefills = len(tokens) - decodes
        super().__init__(
            num_actual_tokens=int(ends[-1]), num_prefills=prefills, num_prefill_tokens=int(ends[-1]) - decodes,
            num_decodes=decodes, num_decode_tokens=decodes, spec_sequence_masks=None, flashinfer_checkpoint_plan=None,
            has_initial_state=torch.tensor(has) if prefills else None, non_spec_query_start_loc=integers(ends),
            non_spec_state_indices_tensor=integers(blocks), prefill_query_start_loc=integers(ends[decodes:] - decodes),
            prefill_state_indices=integers(blocks[decodes:]), prefill_has_initial_state=torch.tensor(has[decodes:]),
            checkpoint=None,
        )  # fmt: skip
        if keeps:
            offsets, kept = zip(*keeps)
            self.checkpoint = Checkpoint(integers(offsets), integers(kept), list(offsets), list(tokens))
            starts = np.cumsum([0, *(length // math.gcd(*offsets) for length in tokens[decodes:])])
            self.flashinfer_checkpoint_plan = types.SimpleNamespace(
                num_checkpoints=int(starts[-1]), cu_starts=torch.tensor(starts)
            )


class Speculation(Step):
    """The metadata of sequences of tokens that are verified, by their rows of blocks and the numbers of accepted ones, and of
    prefills, whose tokens lie between those."""

    def __init__(self, tokens, slots, accepted, prefills=(), blocks=(), has=(), padding=0):
        super().__init__(list(prefills), list(blocks), list(has))
        integers = lambda values: torch.tensor(list(values), dtype=torch.int32)  # noqa: E731
        count = int(sum(tokens)) + int(sum(prefills))
        # vLLM's own order is by request; here tokens of both kinds take turns.
        order = np.random.default_rng(len(tokens)).permutation(count) if prefills else np.arange(count)
        where = [np.sort(part).tolist() for part in np.split(order, [sum(tokens)])]
        ends = np.cumsum([0, *tokens])
        vars(self).update(
            num_actual_tokens=count + padding, num_prefills=len(prefills), num_prefill_tokens=int(sum(prefills)),
            num_spec_decodes=len(tokens), num_spec_decode_tokens=int(ends[-1]),
            spec_sequence_masks=torch.tensor([True] * len(tokens) + [False] * len(prefills)),
            spec_state_indices_tensor=integers(np.ravel(slots)).reshape(len(tokens), -1),
            num_accepted_tokens=integers(accepted), spec_query_start_loc=integers(ends),
            spec_token_indx=torch.tensor(where[0], dtype=torch.int64),
            non_spec_token_indx=torch.tensor(where[1], dtype=torch.int64),
        )  # fmt: skip


def built(step, backend="flashinfer"):
    """The metadata that vLLM's own builder makes of such a step for a backend of prefills, with the speculating sequences
    first."""
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.attention.backends.gdn_attn import GDNAttentionMetadataBuilder

    lengths, rows = step.non_spec_query_start_loc.diff(), step.non_spec_state_indices_tensor[:, None]
    has = torch.ones(len(lengths), dtype=torch.bool) if step.has_initial_state is None else step.has_initial_state
    is_first, drafts, accepted = torch.arange(len(lengths)) >= step.num_decodes, None, None
    rows = rows.repeat(1, SPECULATED + 1)
    if step.spec_sequence_masks is not None:
        tokens = step.spec_query_start_loc.diff()
        drafts = torch.cat([tokens - 1, -torch.ones_like(lengths)])
        accepted = torch.cat([step.num_accepted_tokens, lengths])
        lengths, rows = torch.cat([tokens, lengths]), torch.cat([step.spec_state_indices_tensor, rows])
        has, is_first = torch.cat([tokens > 0, has]), torch.cat([tokens < 0, is_first])
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
    seen = lengths + 50 * has
    common = CommonAttentionMetadata(
        query_start_loc=ends, query_start_loc_cpu=ends.cpu(), seq_lens=seen, num_reqs=len(lengths),
        num_actual_tokens=step.num_actual_tokens, max_query_len=int(lengths.max()), max_seq_len=100,
        block_table_tensor=rows, slot_mapping=rows, is_prefilling=is_first.cpu(), seq_lens_cpu_upper_bound=seen.cpu(),
    )  # fmt: skip
    builder = GDNAttentionMetadataBuilder.__new__(GDNAttentionMetadataBuilder)
    known = types.SimpleNamespace(build=lambda *arguments: step.checkpoint)
    cache = types.SimpleNamespace(cache_config=types.SimpleNamespace(mamba_cache_mode="none"))
    vars(builder).update(
        kv_cache_spec=None, vllm_config=cache, checkpoint_builder=known, gdn_prefill_backend=backend,
        plan_flashinfer_checkpoints=True, use_spec_decode=True, num_spec=SPECULATED, use_full_cuda_graph=False,
    )  # fmt: skip
    # What it makes for the host has no device of its own.
    with torch.device("cpu"):
        return builder.build(0, common, accepted, None if drafts is None else drafts.cpu())


def convolve(x, states, weight, bias, rows, ends, has, accepted=None):
    """The causal convolution of packed tokens [T, C] with a SiLU; `states` [blocks, C, width - 1 + speculated ones] are
    updated: they have what is before a token that is not sure to be accepted, too."""
    out, window = torch.empty_like(x), weight.shape[1] - 1
    for n, row in enumerate(rows):
        tokens = x[ends[n] : ends[n + 1]].T
        first = 0 if accepted is None else accepted[n] - 1
        before = states[row][:, first : first + window] if has[n] else torch.zeros_like(states[row][:, :window])
        whole = torch.cat([before, tokens], 1)
        y = torch.nn.functional.conv1d(whole.float()[None], weight.float()[:, None], bias, groups=len(weight))[0]
        out[ends[n] : ends[n + 1]] = torch.nn.functional.silu(y).T
        if row > 0:
            after = whole[:, -window:] if accepted is None else whole[:, 1:]
            states[row][:, : after.shape[1]] = after
    return out


def engine_of(layer):
    """vLLM's module around a layer's class, as far as the plug-in looks at it: the class has vLLM's name."""

    def causal_conv1d_fn(
        x, weight, bias, activation, conv_states, has_initial_state, cache_indices, query_start_loc, metadata
    ):
        ends = query_start_loc.tolist()
        return convolve(x.T, conv_states, weight, bias, cache_indices.tolist(), ends, has_initial_state.tolist()).T

    def causal_conv1d_update(
        x, conv_state, weight, bias, activation, conv_state_indices, validate_data, out, num_accepted_tokens=None,
        query_start_loc=None, max_query_len=None,
    ):  # fmt: skip
        assert out.shape == x.shape and out.is_contiguous()
        rows = conv_state_indices.tolist()
        has = [True] * len(rows)
        if num_accepted_tokens is None:
            return out.copy_(convolve(x, conv_state, weight, bias, rows, range(len(rows) + 1), has))
        assert max_query_len == SPECULATED + 1
        ends, accepted = query_start_loc.tolist(), num_accepted_tokens.tolist()
        return out.copy_(convolve(x, conv_state, weight, bias, rows, ends, has, accepted))

    engine = types.SimpleNamespace(steps=None, is_conv_state_dim_first=lambda: False)
    engine.get_forward_context = lambda: types.SimpleNamespace(attn_metadata=engine.steps)
    engine.causal_conv1d_fn, engine.causal_conv1d_update = causal_conv1d_fn, causal_conv1d_update
    engine.metadata_of, engine.eager_break_during_capture = (lambda step: step), (lambda function: function)
    setattr(engine, layer.__name__, layer)
    return engine


class StandIn(torch.nn.Module):
    """A layer of vLLM's on one rank of `tp_size`."""

    #: The type of parameters, if it is not that of tokens.
    weight_type, key_heads = None, KEY_HEADS
    #: Raw gates of a value head, and what logits are of.
    facts = {"gates": 1, "allow_neg_eigval": False}

    def __init__(self, tp_size=8, dtype=torch.float32, pool=torch.float32, blocks=BLOCKS, lower_bound=None):
        super().__init__()
        vars(self).update(self.facts, lower_bound=lower_bound)
        value_heads = VALUE_HEADS // tp_size
        random = torch.Generator().manual_seed(3)

        def normal(*shape):
            return torch.randn(*shape, generator=random)

        self.prefix, self.tp_size, self.activation = PREFIX, tp_size, "silu"
        self.num_k_heads, self.num_v_heads = self.key_heads, VALUE_HEADS
        self.head_k_dim = self.head_v_dim = CHANNELS
        width = CHANNELS * (2 * self.key_heads // tp_size + value_heads)
        weight_type = self.weight_type or dtype
        self.conv1d = torch.nn.Conv1d(width, width, WIDTH, groups=width, bias=False, dtype=weight_type)
        self.conv1d.weight.data = (normal(width, 1, WIDTH) / 2).to(weight_type)
        self.A_log = torch.nn.Parameter(normal(value_heads))
        self.dt_bias = torch.nn.Parameter(normal(value_heads * self.gates).to(weight_type))
        # Pages are longer than states. A block that was another request's is not cleared.
        size = value_heads * CHANNELS**2
        pages = torch.full((blocks, size + 40), torch.nan, dtype=pool)
        states = pages[:, :size].unflatten(1, (value_heads, CHANNELS, CHANNELS))
        self.kv_cache = (torch.full((blocks, WIDTH - 1 + SPECULATED, width), torch.nan, dtype=dtype), states)
        self.ran, self._checkpoint_exporter = 0, Exporter()


class QwenGatedDeltaNetAttention(StandIn):
    def _forward_core(self, mixed_qkv, b, a, core_attn_out):
        self.ran += 1


class OlmoHybridGatedDeltaNetAttention(QwenGatedDeltaNetAttention):
    facts = {"gates": 1, "allow_neg_eigval": True}


class Norm(torch.nn.Module):
    """What stands for the norm: it multiplies by the gate."""

    def forward(self, x, gate):
        return x * gate


class KimiGatedDeltaNetAttention(StandIn):
    weight_type, key_heads = torch.float32, VALUE_HEADS
    facts = {"gates": CHANNELS, "allow_neg_eigval": False}

    def __init__(self, **facts):
        super().__init__(**facts)
        self.o_norm, self.gate_lower_bound = Norm(), self.lower_bound

    def _forward(self, mixed_qkv, g1, g2, beta, core_attn_out):
        self.ran += 1


@torch.inference_mode()
def core(layer, x, b, a, out):
    """A step of a layer between the projections, which vLLM has beside each other."""
    x, b = torch.cat([x, b], 1).split([x.shape[1], b.shape[1]], 1)
    if layer.gates == 1:
        layer._forward_core(x, b, a, out)
        return
    gates, g2 = a.unflatten(1, (-1, layer.gates)), torch.full_like(out, 2)
    layer._forward(mixed_qkv=x, g1=gates[None], g2=g2, beta=b[None], core_attn_out=out[None])
    out.div_(2)


class Request:
    """Tokens of one sequence, whose states and outputs float64 has."""

    def __init__(self, layer, block, seed):
        self.layer, self.block, self.done = layer, block, 0
        self.random = np.random.default_rng(seed)
        self.inputs, self.state = None, None

    def draw(self, tokens):
        sizes = [len(self.layer.conv1d.weight), len(self.layer.A_log), len(self.layer.dt_bias)]
        x = self.random.standard_normal((tokens, sum(sizes))).astype(np.float32)
        return torch.from_numpy(x).to(self.layer.kv_cache[0].dtype).split(sizes, 1)

    def expected(self, x, b, a):
        """The outputs of these tokens."""
        layer = self.layer
        self.inputs = x if self.inputs is None else torch.cat([self.inputs, x])
        ends = [0, len(self.inputs)]
        blank = torch.zeros(1, x.shape[1], WIDTH - 1)
        y = convolve(self.inputs.float(), blank, layer.conv1d.weight.detach().flatten(1).float(), None, [0], ends, [False])
        y = y[-len(x) :].to(x.dtype).double()
        values = len(layer.A_log) * CHANNELS
        keys = (y.shape[1] - values) // 2
        heads = [part.unflatten(1, (-1, CHANNELS))[None] for part in y.split([keys, keys, values], 1)]
        gates = a.double() if layer.gates == 1 else a.double().unflatten(1, (-1, layer.gates))
        o, self.state = gated_delta_rule(
            *heads, gates[None], b.double()[None], initial_state=self.state, l2norm=True, lower_bound=layer.lower_bound,
            gate_domain="raw" if layer.lower_bound is None else "bounded", A_log=layer.A_log.detach().double(),
            dt_bias=layer.dt_bias.detach().double(), v_first=True,
            beta_domain="doubled_logit" if layer.allow_neg_eigval else "logit",
        )  # fmt: skip
        return o[0]

    def expected_with_a_fork(self, parts, count, block):
        """The outputs of these tokens, and another request that goes on from the first ones of them in a block."""
        first = self.expected(*(part[:count] for part in parts))
        fork = copy.copy(self)
        fork.block = block
        return np.concatenate([first, self.expected(*(part[count:] for part in parts))]), fork

    def accept(self, parts, count):
        """The first tokens of those that were verified are what the sequence goes on from."""
        self.expected(*(part[:count] for part in parts))


def verify(engine, layer, requests, accepted, prefills=(), padding=0):
    """A step that verifies speculated tokens, 1 to all of them, beside prefills of other requests. Returns outputs, those of
    float64, and the tokens."""
    tokens = [1 + n % (SPECULATED + 1) for n, _ in enumerate(requests)]
    parts = [request.draw(n) for request, n in zip(requests, tokens)]
    firsts = [request.draw(n) for request, n in prefills]
    wanted = []
    for request, part in zip(requests, parts):
        inputs, state = request.inputs, request.state
        wanted.append(request.expected(*part))
        # Nothing of them is accepted yet.
        request.inputs, request.state = inputs, state
    wanted_firsts = [request.expected(*part) for (request, _), part in zip(prefills, firsts)]
    step = Speculation(
        tokens, [request.slots for request in requests], accepted, [n for _, n in prefills],
        [request.block for request, _ in prefills], [request.inputs.shape[0] > n for request, n in prefills], padding,
    )  # fmt: skip
    step = engine.metadata_of(step)
    engine.steps = {PREFIX: step}
    where = torch.cat([step.spec_token_indx, step.non_spec_token_indx]).long()
    mixed, b, a = (torch.empty_like(x).index_copy_(0, where, x) for x in map(torch.cat, zip(*parts, *firsts)))
    mixed, b, a = (torch.cat([x, x.new_zeros(padding, x.shape[1])]) for x in (mixed, b, a))
    out = torch.full((len(mixed), layer.A_log.shape[0], CHANNELS), 7.0, dtype=mixed.dtype)
    core(layer, mixed, b, a, out)
    assert not out[len(where) :].any()
    return out[where].float(), np.concatenate([*wanted, *wanted_firsts]), parts


def run(engine, layer, requests, tokens, decodes=0, padding=0, keeps=()):
    """A step of these requests; outputs and those of float64, and with `keeps`, a prefix of each or zeros, those that go on from
    these prefixes."""
    parts = [request.draw(n) for request, n in zip(requests, tokens)]
    wanted, forks = [], []
    for request, part, (count, block) in zip(requests, parts, keeps or [(0, 0)] * len(requests)):
        if count:
            o, fork = request.expected_with_a_fork(part, count, block)
            wanted.append(o)
            forks.append(fork)
        else:
            wanted.append(request.expected(*part))
    mixed, b, a = (torch.cat(group) for group in zip(*parts))
    mixed, b, a = (torch.cat([x, x.new_zeros(padding, x.shape[1])]) for x in (mixed, b, a))
    # Rows of padded tokens name the block that is nobody's, or none.
    blocks = [request.block for request in requests] + [0, -1][:padding]
    has = [request.inputs.shape[0] > n for request, n in zip(requests, tokens)]
    step = Step([*tokens, *[1] * padding], blocks, has, decodes + padding, keeps)
    engine.steps = {PREFIX: engine.metadata_of(step)}
    out = torch.full((len(mixed) + 3, layer.A_log.shape[0], CHANNELS), 7.0, dtype=mixed.dtype)
    core(layer, *(torch.cat([x, x.new_zeros(3, x.shape[1])]) for x in (mixed, b, a)), out)
    assert (out[len(mixed) :] == 7).all() and not out[len(mixed) - padding : len(mixed)].any()
    done = out[: len(mixed) - padding].float(), np.concatenate(wanted)
    return (*done, forks) if keeps else done
