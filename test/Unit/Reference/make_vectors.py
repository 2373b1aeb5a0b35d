#!/usr/bin/env python3
"""Writes vectors/*.txt, the test vectors of the C++ reference, with the float64 numpy model of the specification.

    make_vectors.py <folder that holds reference.py>

A file is a list of `name count` lines, each followed by that many numbers. Inputs are rounded to three decimals, so
the text is exact; results have 16 digits. Every array is row-major in the shapes of gdn/Reference/Reference.h.
"""
import pathlib
import sys
from types import SimpleNamespace

import numpy as np

# Each case says which part of the library it alone reaches. lens with batch=True are B sequences of one length.
CASES = {
    # 67 tokens cross a checkpoint (every 64), V = 9 needs two blocks of columns; some decays are exactly 0.
    "gdn_log": dict(gate="log", lens=(67, 0, 3), heads=(1, 2), dims=(3, 9), h0=True),
    # A batch instead of packed sequences, no initial state, and the default scale.
    "gdn_batch": dict(gate="log", lens=(7, 7), batch=True, heads=(2, 2), dims=(5, 4)),
    "gdn_softplus": dict(gate="softplus", raw=True, lens=(5, 0, 1, 12), heads=(2, 4), dims=(4, 5), h0=True),
    "kda_log": dict(gate="log", kda=True, lens=(13, 0), heads=(1, 3), dims=(6, 8), h0=True),
    "kda_softplus": dict(gate="softplus", kda=True, raw=True, lens=(0, 11, 4), heads=(2, 4), dims=(4, 9), h0=True),
    "kda_bounded": dict(gate="bounded", kda=True, raw=True, lens=(66,), heads=(1, 2), dims=(4, 3), h0=True),
    "none": dict(gate="none", lens=(9, 2), heads=(1, 2), dims=(4, 4), h0=True),
}
LOWER_BOUND = -5.0


def make_inputs(case, rng):
    """Inputs with three decimals each. Raw cases take logits and unnormalised q, k; the others take values."""
    (Hq, H), (K, V), T, N = case["heads"], case["dims"], sum(case["lens"]), len(case["lens"])
    normal = lambda *shape: np.round(rng.normal(size=shape), 3)
    x = SimpleNamespace(q=normal(T, Hq, K), k=normal(T, Hq, K), v=normal(T, H, V), beta=normal(T, H), do=normal(T, H, V),
                        dht=normal(N, H, K, V))
    gate_shape = (T, H, K) if case.get("kda") else (T, H)
    if case["gate"] == "log":
        x.gate = np.round(-rng.exponential(0.3, gate_shape), 3)
        x.gate.flat[3::17] = -np.inf
    elif case["gate"] != "none":
        x.gate, x.a_log, x.dt_bias = normal(*gate_shape), normal(H), normal(*gate_shape[1:])
    if case.get("h0"):
        x.h0 = normal(N, H, K, V)
    if not case.get("raw"):
        x.q, x.k = np.round(x.q / 2, 3), np.round(x.k / 2, 3)
        x.beta = np.round(rng.uniform(size=x.beta.shape), 3)
    return x


def run(ref, case, x):
    """Both passes of the numpy model; returns the results as a dict."""
    raw = case.get("raw")
    lower_bound = LOWER_BOUND if case["gate"] == "bounded" else None
    cu = np.concatenate([[0], np.cumsum(case["lens"])]).astype(int)
    (K, V), (_, H) = case["dims"], case["heads"]
    h0 = getattr(x, "h0", np.zeros((len(case["lens"]), H, K, V)))
    q, k, g, beta = x.q, x.k, getattr(x, "gate", np.zeros(x.beta.shape)), x.beta
    if raw:
        (q, rq), (k, rk), beta = ref.l2norm(x.q), ref.l2norm(x.k), ref.sigmoid(x.beta)
        g = ref.gate(x.gate, x.a_log, x.dt_bias, lower_bound)
    args = (q, k, x.v, g, beta, K ** -0.5, h0, cu)
    o, ht = ref.recurrent_fwd(*args)
    gr = ref.recurrent_bwd(*args, x.do, x.dht)
    out = dict(o=o, ht=ht, dq=gr["dq"], dk=gr["dk"], dv=gr["dv"], dgate=gr["dg"], dbeta=gr["dbeta"], dh0=gr["dh0"])
    if raw:
        out["dq"], out["dk"] = ref.l2norm_bwd(q, rq, gr["dq"]), ref.l2norm_bwd(k, rk, gr["dk"])
        out["dbeta"] = gr["dbeta"] * beta * (1 - beta)
        out["dgate"], out["da_log"], out["ddt_bias"] = ref.gate_bwd(x.gate, x.a_log, x.dt_bias, gr["dg"], lower_bound)
    if case["gate"] == "none":
        del out["dgate"]
    return out


def write(path, case, x, out):
    """One file: the case as integers, then the inputs, then the results."""
    (Hq, H), (K, V) = case["heads"], case["dims"]
    batch = case.get("batch", False)
    B, T = (len(case["lens"]), case["lens"][0]) if batch else (1, sum(case["lens"]))
    cu = [] if batch else np.concatenate([[0], np.cumsum(case["lens"])])
    gate = {"none": 0, "log": 1, "softplus": 2, "bounded": 3}[case["gate"]]
    with open(path, "w") as f:
        def put(name, values, digits):
            values = np.asarray(values, dtype=float).ravel()
            lines = [" ".join(f"{v:.{digits}g}" for v in values[i:i + 6]) for i in range(0, len(values), 6)]
            f.write("\n".join([f"{name} {len(values)}"] + lines) + "\n")
        put("dims", [B, T, Hq, H, K, V], 6)
        put("gate_form", [gate, case.get("kda", False), case.get("raw", False)], 6)
        put("cu_seqlens", cu, 6)
        for name, values in vars(x).items():
            put(name, values, 6)
        for name, values in out.items():
            put(name, values, 16)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    import reference
    folder = pathlib.Path(__file__).parent / "vectors"
    folder.mkdir(exist_ok=True)
    for seed, (name, case) in enumerate(CASES.items()):
        x = make_inputs(case, np.random.default_rng(seed))
        write(folder / f"{name}.txt", case, x, run(reference, case, x))


if __name__ == "__main__":
    main()
