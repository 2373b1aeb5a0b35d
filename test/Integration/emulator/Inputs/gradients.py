"""Gradients of a call: `gradients.py FOLDER LENGTHS HEADS VALUE_HEADS CHANNELS [packed] [kv|vk]` writes what a kernel of
the package takes, in its order, and what it gives, in float64; `gradients.py --check FOLDER GOT` compares."""

import pathlib
import sys

import numpy

#: Relative rms of gradients by products of 16 bits.
TOLERANCE = 1e-2
RESULTS = ("dq", "dk", "dv", "dbeta", "dgate", "dinitial_state")


def rounded(values):
    """Values that bfloat16 and float16 hold."""
    bits = numpy.ascontiguousarray(values, "float32").view("uint32")
    return ((bits + 0x8000) & 0xFFFF0000).view("float32")


def head(q, k, v, beta, gate, state, d_o, d_state):
    """The gradients of one sequence and value head, token by token."""
    states, d_q, d_k, d_v = [], *(numpy.zeros_like(x) for x in (q, k, v))
    d_beta, d_gate, scale = numpy.zeros_like(beta), numpy.zeros_like(gate), k.shape[1] ** -0.5
    for t in range(len(q)):
        decayed = numpy.exp(gate[t]) * state
        error = v[t] - k[t] @ decayed
        state = decayed + beta[t] * numpy.outer(k[t], error)
        states.append((decayed, error, state))
    for t in reversed(range(len(q))):
        decayed, error, state = states[t]
        d_q[t] = scale * state @ d_o[t]
        d_state = d_state + scale * numpy.outer(q[t], d_o[t])
        d_beta[t] = k[t] @ d_state @ error
        d_v[t] = beta[t] * k[t] @ d_state
        d_k[t] = beta[t] * d_state @ error - decayed @ d_v[t]
        d_state = d_state - numpy.outer(k[t], d_v[t])
        d_gate[t] = (d_state * decayed).sum()
        d_state = numpy.exp(gate[t]) * d_state
    return d_q, d_k, d_v, d_beta, d_gate, d_state


def write(folder, lengths, Hq, H, D, packed, layout):
    """The arguments and results as files."""
    rng, N = numpy.random.default_rng(0), len(lengths)
    ends = numpy.cumsum([0, *lengths])
    shape = (1, ends[-1]) if packed else (N, lengths[0])

    def keys(heads):
        rows = rng.standard_normal((*shape, heads, D))
        return rounded(rows / numpy.linalg.norm(rows, axis=-1, keepdims=True))

    q, k = keys(Hq), keys(Hq)
    v, d_o = (rounded(rng.standard_normal((*shape, H, D))) for _ in range(2))
    beta, gate = rng.random((*shape, H)).astype("f4"), (-0.1 * rng.random((*shape, H))).astype("f4")
    state, d_state = (rng.standard_normal((N, H, D, D)).astype("f4") * bool(layout) for _ in range(2))
    rows = [numpy.zeros((ends[-1], H, *more)) for more in ((D,), (D,), (D,), (), ())]
    before = numpy.zeros((N, H, D, D))
    flat = [x.reshape(-1, *x.shape[2:]).astype("f8") for x in (q, k, v, beta, gate, d_o)]
    for n, (begin, end) in enumerate(zip(ends, ends[1:])):
        for h in range(H):
            here, key = slice(begin, end), h * Hq // H
            one = [x[here, key if i < 2 else h] for i, x in enumerate(flat)]
            found = head(*one[:5], state[n, h].astype("f8"), one[5], d_state[n, h].astype("f8"))
            for row, part in zip(rows, found):
                row[here, h] = part
            before[n, h] = found[5]
    for i in range(2):
        rows[i] = rows[i].reshape(-1, Hq, H // Hq, D).sum(2)
    turn = (lambda x: x.swapaxes(2, 3)) if layout == "vk" else (lambda x: x)
    given = [q, k, v, beta, gate]
    given += [turn(state)] if layout else []
    given += [ends.astype("i4")] if packed else []
    given += [d_o] + ([turn(d_state)] if layout else [])
    for number, array in enumerate(given):
        numpy.save(folder / f"in{number}.npy", numpy.ascontiguousarray(array))
    results = [row.reshape(*shape, *row.shape[1:]) for row in rows] + ([turn(before)] if layout else [])
    for number, array in enumerate(results):
        numpy.save(folder / f"want{number}.npy", array)


def check(folder, got):
    """Compares the results in `got`."""
    worst = 0.0
    for path in sorted(folder.glob("want*.npy")):
        number = int(path.stem[4:])
        want, found = numpy.load(path), numpy.load(got / f"{number}.npy").astype("f8")
        error = numpy.sqrt(numpy.square(found - want).mean() / numpy.square(want).mean())
        worst = max(worst, error)
        verdict = "pass" if error < TOLERANCE and found.shape == want.shape else "fail"
        print(f"{number} {RESULTS[number]}: relative rms {error:.2e}, {verdict}")
        if verdict == "fail":
            sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(*map(pathlib.Path, sys.argv[2:]))
    else:
        path = pathlib.Path(sys.argv[1])
        path.mkdir(parents=True, exist_ok=True)
        numbers, flags = [int(x) for x in sys.argv[3:6]], sys.argv[6:]
        layout = next((flag for flag in flags if flag in ("kv", "vk")), "")
        write(path, [int(x) for x in sys.argv[2].split(",")], *numbers, "packed" in flags, layout)
