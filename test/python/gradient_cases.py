# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose gradients are checked, and the recurrence that torch differentiates, on torch's default device."""

import torch
from torch.nn.functional import normalize, softplus

NAMES = ("q", "k", "v", "g", "beta")


def recurrence(
    q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, scale, l2norm, gate, logits, v_first, bound=-5.0
):
    """The recurrence of docs/Spec.md, which torch differentiates; gates [B, T, HV] or [B, T, HV, K]."""
    (B, T, H, K), (HV, V) = q.shape, v.shape[2:]
    if l2norm:
        q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q, k = (x.repeat_interleave(HV // H, 2) for x in (q, k))
    # A gate of a head is one for all of its channels.
    gates = torch.zeros(B, T, HV, 1, dtype=q.dtype) if g is None else g[..., None] if g.dim() == 3 else g
    decay = gates.exp() if g is None or gate == "log" else gates
    x = gates if dt_bias is None else gates + dt_bias.reshape(HV, -1)
    rate = 1.0 if A_log is None else A_log.exp()[:, None]
    if gate == "raw":
        decay = (-rate * softplus(x)).exp()
    if gate == "bounded":
        decay = (bound * (rate * x).sigmoid()).exp()
    beta = torch.ones(B, T, HV, dtype=q.dtype) if beta is None else logits * beta.sigmoid() if logits else beta
    ranges = [(b, 0, T) for b in range(B)]
    if cu_seqlens is not None:
        ranges = [(0, begin, end) for begin, end in zip(cu_seqlens, cu_seqlens[1:])]
    o, states = {}, []
    for n, (b, begin, end) in enumerate(ranges):
        S = torch.zeros(HV, K, V, dtype=q.dtype)
        if initial_state is not None:
            S = initial_state[n].mT if v_first else initial_state[n]
        for t in range(begin, end):
            S = decay[b, t, :, :, None] * S
            u = beta[b, t, :, None] * (v[b, t] - torch.einsum("hkv,hk->hv", S, k[b, t]))
            S = S + k[b, t, :, :, None] * u[:, None, :]
            o[b, t] = scale * torch.einsum("hkv,hk->hv", S, q[b, t])
        states.append(S.mT if v_first else S)
    rows = [torch.stack([o.get((b, t), torch.zeros(HV, V, dtype=q.dtype)) for t in range(T)]) for b in range(B)]
    return torch.stack(rows), torch.stack(states)


def make(B=1, T=70, H=2, HV=4, K=64, V=64, N=None, dtype=torch.float32, gates=torch.float32, gate="log", logits=0,
         l2norm=False, state=False, v_first=False, bias=True, absent=(), log_rate=0.0, channels=False):  # fmt: skip
    """Seeded inputs that require gradients, by name. With a `log_rate` A_log is about that, and raw gates are ordinary
    ones with it, beside some of 0 and -1e4. With `channels` there is a gate for each key channel; biases are then [HV K],
    or [HV, K] if `bias` is "rows"."""
    torch.manual_seed(0)
    q, k = (torch.randn(B, T, H, K) * 2 if l2norm else normalize(torch.randn(B, T, H, K), dim=-1) for _ in range(2))
    shape = (B, T, HV, K) if channels else (B, T, HV)
    g = {"log": -0.3 * torch.randn(shape).abs(), "linear": torch.rand(shape)}.get(gate, torch.randn(shape))
    beta = torch.randn(B, T, HV) if logits else torch.rand(B, T, HV)
    # A gate of 0 forgets all, a beta of 0 writes nothing: neither is divided by.
    if gate == "linear":
        g[:, T // 3 : T // 3 + 1] = 0
    if not logits:
        beta[:, T // 2 : T // 2 + 1] = 0
    made = {"q": q.to(dtype), "k": k.to(dtype), "v": torch.randn(B, T, HV, V).to(dtype)}
    made |= {"g": g.to(gates), "beta": beta.to(gates)}
    if gate in ("raw", "bounded"):
        biases = (HV, K) if bias == "rows" else (HV * K,) if channels else (HV,)
        made |= {"A_log": log_rate + torch.randn(HV), **({"dt_bias": torch.randn(biases)} if bias else {})}
    if log_rate:
        made["g"] = made["g"] - log_rate
        made["g"][:, 3::16], made["g"][:, 4::16] = 0.0, -1e4
    if state:
        made["initial_state"] = torch.randn(N or B, HV, *((V, K) if v_first else (K, V)))
    return {name: tensor.requires_grad_() for name, tensor in made.items() if name not in absent}


#: Of gates of heads and of channels.
SHARED_CASES = {
    "plain": {},
    "states": {"state": True},
    "states [V, K]": {"state": True, "v_first": True, "K": 40, "V": 24},
    "packed": {"cu_seqlens": [0, 20, 20, 57], "N": 3, "state": True},
    "batch": {"B": 3, "T": 33, "H": 1, "HV": 3, "K": 128, "V": 96, "state": True},
    "norms": {"l2norm": True, "K": 48},
    "raw": {"gate": "raw", "logits": 1, "l2norm": True, "B": 2, "state": True},
    "raw, infinite rate": {"gate": "raw", "log_rate": 100.0, "T": 40},
    "scale": {"scale": -1.5, "state": True},
    "bfloat16": {"dtype": torch.bfloat16, "gates": torch.bfloat16, "state": True},
    "float16": {"dtype": torch.float16, "l2norm": True, "gate": "raw", "logits": 1},
}
#: Of gates of heads.
CASES = {
    **SHARED_CASES,
    "raw without a bias": {"gate": "raw", "bias": False},
    "linear": {"gate": "linear", "logits": 2, "state": True},
    "linear, packed": {"gate": "linear", "cu_seqlens": [0, 1, 40], "N": 2, "scale": 0.3},
    "no gates": {"absent": ("g", "beta"), "K": 256, "V": 200, "T": 40},
}
