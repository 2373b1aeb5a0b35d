#!/usr/bin/env python3
"""The chunked Gated DeltaNet forward in eager PyTorch on a CPU, float32: the baseline for compiled CPU kernels.

    chunked_eager.py                 median of 5 runs on q, k [1, 4096, 16, 128], v [1, 4096, 32, 128], 2 threads
    chunked_eager.py --json          the same as one line of JSON
    chunked_eager.py --check         against a float64 token recurrence, small sizes; exit status 1 on a miss
    chunked_eager.py --beside X.so   in turn with the layer of docs/examples/layer.mlir, compiled by gdn-compile and
                                     linked with -shared -lomp: processor times, which compare on a busy machine too

The algorithm is that of transformers' torch_chunk_gated_delta_rule (chunks of 64 tokens, UT transform, no loop over
tokens), arranged to be as fast as eager PyTorch was got to run it. --chunk 32 is the fastest on some CPUs.
- the products that a q/k head's v-heads share (K K^T, Q K^T, K S, Q S, the write K^T (rho Vd)) are made once a group;
- the transform is one triangular solve with right side diag(beta): 3 times as fast as a loop of forward substitution
  over rows, and as exact for correlated keys, where a power series is not (spec 3.6);
- a few chunks are prepared at a time: their 64 x 64 matrices stay in the cache, and the batches still fill 2 threads.
Formulas are cited by section of the specification, as "spec 3.1".
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

CHUNKS_PREPARED = 8     # 4 to 16 are equal within the noise; 1 and 64 are about 10 % slower


def prepare(q, k, g, beta, scale):
    """Everything of some chunks that needs no state (spec 2, 3.1). q, k [n, C, Hq, K]; g, beta [n, C, H].
    Returns scale q and k as [n, Hq, C, K], T b and P as [n, H, C, C], and gam and rho as [n, H, C]."""
    n, C, Hq, _ = q.shape
    H = g.shape[-1]
    q = (q.transpose(1, 2) * scale).contiguous()
    k = k.transpose(1, 2).contiguous()
    G = g.transpose(1, 2).contiguous().cumsum(-1)
    b = beta.transpose(1, 2).contiguous()
    above_diagonal = torch.ones(C, C, dtype=torch.bool).triu(1)
    # Masked before the exponential, so that no exponent is above 0 (spec 4.1).
    D = (G.unsqueeze(-1) - G.unsqueeze(-2)).masked_fill_(above_diagonal, -math.inf).exp_()
    D = D.view(n, Hq, H // Hq, C, C)
    P = ((q @ k.mT).unsqueeze(2) * D).view(n, H, C, C)
    L = D.mul_((k @ k.mT).unsqueeze(2)).view(n, H, C, C).mul_(b.unsqueeze(-1))
    # unitriangular: the solve takes 1 for the diagonal and reads only what is below it.
    Tb = torch.linalg.solve_triangular(L, torch.diag_embed(b), upper=False, unitriangular=True)
    return q, k, Tb, P, G.exp(), (G[..., -1:] - G).exp_()


def chunked_forward(q, k, v, g, beta, scale=None, initial_state=None, chunk=64):
    """q, k [1, T, Hq, K], v [1, T, H, V], log gate g and beta [1, T, H], initial_state [1, H, K, V]; T % chunk == 0.
    Returns o [1, T, H, V] and the final state [1, H, K, V] (spec 3.1)."""
    (_, T, Hq, K), (H, V), C = q.shape, v.shape[2:], chunk
    group, scale = H // Hq, K ** -0.5 if scale is None else scale
    o = torch.empty_like(v)
    # A group's states stand side by side: one product with k or q serves all its v-heads.
    S = torch.zeros(Hq, K, group, V)
    if initial_state is not None:
        S.copy_(initial_state.view(Hq, group, K, V).transpose(1, 2))
    wide_S = S.view(Hq, K, group * V)
    decayed_Vd = torch.empty(Hq, C, group, V)

    q, k = (x.view(T // C, C, Hq, K) for x in (q, k))
    g, beta = (x.view(T // C, C, H) for x in (g, beta))
    by_token = [x.view(T // C, C, Hq, group, V) for x in (v, o)]
    for first in range(0, T // C, CHUNKS_PREPARED):
        part = slice(first, first + CHUNKS_PREPARED)
        prepared = prepare(q[part], k[part], g[part], beta[part], scale)
        for v_c, o_c, q_c, k_c, Tb, P, gam, rho in zip(*(x[part] for x in by_token), *prepared):
            gam_c = gam.view(Hq, group, C, 1).permute(2, 0, 1, 3)
            KS = torch.bmm(k_c, wide_S).view(Hq, C, group, V).transpose(0, 1)
            QS = torch.bmm(q_c, wide_S).view(Hq, C, group, V).transpose(0, 1)
            W = torch.addcmul(v_c, gam_c, KS, value=-1)
            Vd = torch.bmm(Tb, W.reshape(C, H, V).transpose(0, 1))
            inside = torch.bmm(P, Vd).view(Hq, group, C, V).permute(2, 0, 1, 3)
            torch.addcmul(inside, gam_c, QS, out=o_c)
            torch.mul(Vd.view(Hq, group, C, V), rho.view(Hq, group, C, 1), out=decayed_Vd.transpose(1, 2))
            S.mul_(gam[:, -1].view(Hq, 1, group, 1))
            wide_S.baddbmm_(k_c.mT, decayed_Vd.view(Hq, C, group * V))
    return o, S.transpose(1, 2).reshape(1, H, K, V)


def recurrence(q, k, v, g, beta, initial_state):
    """The definition, token by token in float64 (spec 1)."""
    q, k, v, g, beta, S = (x[0].double() for x in (q, k, v, g, beta, initial_state))
    group = v.shape[1] // q.shape[1]
    q, k = (x.repeat_interleave(group, 1) for x in (q, k))
    o = torch.empty_like(v)
    for t in range(len(v)):
        S = g[t].exp()[:, None, None] * S
        u = beta[t][:, None] * (v[t] - (k[t][:, None] @ S)[:, 0])
        S = S + k[t][:, :, None] * u[:, None]
        o[t] = k.shape[-1] ** -0.5 * (q[t][:, None] @ S)[:, 0]
    return o[None], S[None]


def make_inputs(T, Hq, H, K, V, mean_gate=-0.05, cosine=0.0, seed=0):
    """Unit q and k, k with a common direction when cosine > 0; g of the given mean, beta in (0, 1)."""
    gen = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=gen)
    k = math.sqrt(1 - cosine) * normal(1, T, Hq, K) + math.sqrt(cosine) * normal(1, 1, Hq, K)
    g = F.logsigmoid(normal(1, T, H))
    return (F.normalize(normal(1, T, Hq, K), dim=-1), F.normalize(k, dim=-1), normal(1, T, H, V),
            g * (mean_gate / g.mean()), torch.rand(1, T, H, generator=gen))


def check(chunk):
    """True if every case stays within 1e-5 relative rms of the recurrence (spec 9, float32 operands)."""
    worst = 0.0
    for mean_gate in (-1e-6, -0.05, -1.0, -20.0):
        for cosine in (0.0, 0.9):
            inputs = make_inputs(640, 2, 4, 32, 48, mean_gate, cosine)
            h0 = torch.randn(1, 4, 32, 48, generator=torch.Generator().manual_seed(1))
            for x, y in zip(chunked_forward(*inputs, initial_state=h0, chunk=chunk), recurrence(*inputs, h0)):
                error = ((x - y).square().mean() / y.square().mean()).sqrt().item()
                worst = max(worst, error if math.isfinite(error) else math.inf)
    print(f"worst relative rms {worst:.1e}, accepted 1e-05: {'ok' if worst <= 1e-5 else 'FAIL'}")
    return worst <= 1e-5


def flop(T, H, K, V):
    """The minimal products of 64-token chunks: four of C x C x 128 and three of C x K x V for a chunk and v-head
    (spec 3.1), whatever is really computed: GFLOP/s then compare as times do, also between chunk sizes."""
    return T * H * (4 * 64 * (K + V) + 3 * 2 * K * V)


def descriptor(x):
    """The memref descriptor of a tensor, as compiled functions take and return it."""
    fields = [x.data_ptr(), x.data_ptr(), 0, *x.shape, *x.stride()]
    return (ctypes.c_int64 * len(fields))(*fields)


def load_layer(path, inputs):
    """The function that `path` has for docs/examples/layer.mlir, on `inputs`; it returns o in float32."""
    # LLVM's threads go to sleep at once, or their waiting would count as work.
    os.environ["KMP_BLOCKTIME"] = "0"
    function = ctypes.CDLL(path)._mlir_ciface_layer
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    q, k, v, g, beta = inputs
    arguments = [x.bfloat16() for x in (q, k, v)] + [beta, g]
    descriptors = [descriptor(x) for x in arguments]
    results = (ctypes.c_int64 * 22)()  # two descriptors of rank 4: allocation, start, offset, 4 sizes, 4 strides

    def run(read=False):
        function(results, *descriptors)
        o = None
        if read:
            data = (ctypes.c_int16 * v.numel()).from_address(results[1])
            o = torch.frombuffer(data, dtype=torch.bfloat16).float().view(v.shape)
        free(results[0])
        free(results[11])
        return o

    run.keeps = arguments
    return run


def run_beside(path, inputs, chunk, runs):
    """Least processor times in ms of the eager layer and of the compiled one, run in turn; and how far apart."""
    compiled = load_layer(path, inputs)
    expected, o = chunked_forward(*inputs, chunk=chunk)[0], compiled(read=True)
    difference = ((o - expected).square().mean() / expected.square().mean()).sqrt().item()
    best = [math.inf, math.inf]
    for _ in range(runs):
        for i, call in enumerate((lambda: chunked_forward(*inputs, chunk=chunk), compiled)):
            start = time.process_time()
            call()
            best[i] = min(best[i], 1e3 * (time.process_time() - start))
    return best, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4096, help="a multiple of the chunk")
    parser.add_argument("--chunk", type=int, default=64, choices=(16, 32, 64, 128), help="tokens in a chunk")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--beside", metavar="X.so", help="the compiled layer to run in turn with")
    args = parser.parse_args()
    if args.tokens < args.chunk or args.tokens % args.chunk:
        parser.error(f"expected a multiple of {args.chunk} tokens, got {args.tokens}")
    torch.set_num_threads(args.threads)
    with torch.inference_mode():
        if args.check:
            sys.exit(0 if check(args.chunk) else 1)
        sizes = dict(T=args.tokens, Hq=16, H=32, K=128, V=128)
        inputs = make_inputs(**sizes)
        if args.beside:
            (eager, compiled), difference = run_beside(args.beside, inputs, args.chunk, args.runs)
            print(f"processor time, least of {args.runs}: eager {eager:.1f} ms, compiled {compiled:.1f} ms, "
                  f"ratio {eager / compiled:.2f}; relative rms difference of o {difference:.1e}")
            sys.exit(0)
        for _ in range(2):
            chunked_forward(*inputs, chunk=args.chunk)
        times = []
        for _ in range(args.runs):
            start = time.perf_counter()
            chunked_forward(*inputs, chunk=args.chunk)
            times.append(1e3 * (time.perf_counter() - start))
    ms = statistics.median(times)
    gflops = flop(sizes["T"], sizes["H"], sizes["K"], sizes["V"]) / ms / 1e6
    if args.json:
        print(json.dumps(dict(name="torch_eager_chunked", median_ms=round(ms, 2), runs_ms=[round(t, 2) for t in times],
                              gflops=round(gflops, 1), chunk=args.chunk, threads=args.threads, dtype="float32",
                              torch=torch.__version__, **sizes)))
    else:
        print(f"eager PyTorch {torch.__version__}, {args.threads} threads, float32, chunk {args.chunk}, "
              f"T=%(T)d Hq=%(Hq)d H=%(H)d K=%(K)d V=%(V)d: " % sizes
              + f"median {ms:.1f} ms of {args.runs} runs (least {min(times):.1f}), {gflops:.1f} GFLOP/s")


if __name__ == "__main__":
    main()
