"""Gradients of a call: `gradients.py FOLDER LENGTHS HEADS VALUE_HEADS CHANNELS [packed] [kv|vk] [norms] [raw]
[segments=TOKENS] [saved=TOKENS] [gates=NUMBERS]` writes what a kernel of the package takes, in its order, and what it
gives, in float64; raw are gates with parameters, and logits of beta, and saved is what a forward leaves, with a state
before every so many tokens. With `forward` they are of a forward in segments that saves. With `gates` all log gates of a
value head are one of these numbers, in turn; of three sequences the first has a gradient of its final state alone, the
second one of o alone, the third both. `gradients.py --check FOLDER GOT` compares; with `gates` dg of each sequence and
number, and of its last token, too."""

import pathlib
import sys

import numpy

#: Relative rms of gradients by products of 16 bits.
TOLERANCE = 1e-2
#: A forward that saves raises beta to it (lib/Conversion/GDNToTile/Adjoint.cpp).
LEAST_BETA = 2.0**-40
#: dg of a sequence and strength of gates below it is not compared by itself.
LEAST = 1e-30
#: Every such token writes nothing. The gradient of its beta is one of many, and compared by itself.
UNWRITTEN = 9
RESULTS = ("dq", "dk", "dv", "dbeta", "dgate", "dinitial_state", "da_log", "ddt_bias")


def rounded(values):
    """Values that bfloat16 and float16 hold."""
    bits = numpy.ascontiguousarray(values, "float32").view("uint32")
    return ((bits + 0x8000) & 0xFFFF0000).view("float32")


def head(q, k, v, beta, gate, state, d_o, d_state):
    """The gradients of one sequence and value head, token by token. Then what each token writes, and the states before
    them."""
    first, states, d_q, d_k, d_v = state, [], *(numpy.zeros_like(x) for x in (q, k, v))
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
    writes = numpy.array([max(beta[t], LEAST_BETA) * error for t, (_, error, _) in enumerate(states)]).reshape(v.shape)
    return d_q, d_k, d_v, d_beta, d_gate, d_state, writes, [first, *(state for *_, state in states)]


def normalised(rows):
    """Rows over their norms, and what leads from a gradient of these back."""
    inverse = 1 / numpy.sqrt((rows * rows).sum(-1, keepdims=True) + 1e-6)
    unit = rows * inverse
    return unit, lambda d: inverse * (d - unit * (unit * d).sum(-1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def recurrences(flat, ends, state, d_state, interval):
    """The gradients of q, k (of every value head), v, beta and log gates of all sequences, and of their states. Then what
    tokens write, and the states [V, K] before every `interval` tokens of a sequence, in the place that a forward gives
    them; NaN in no place."""
    q, _, v, *_ = flat
    H, D = v.shape[1:]
    rows = [numpy.zeros((len(v), H, *more)) for more in ((D,), (D,), (D,), (), ())]
    before, writes = numpy.zeros((len(ends) - 1, H, D, D)), numpy.zeros((len(v), H, D))
    saved = numpy.full((len(v) // interval + len(ends) - 1, H, D, D), numpy.nan)
    for n, (begin, end) in enumerate(zip(ends, ends[1:])):
        for h in range(H):
            here, key = slice(begin, end), h * q.shape[1] // H
            one = [x[here, key if i < 2 else h] for i, x in enumerate(flat)]
            found = head(*one[:5], state[n, h].astype("f8"), one[5], d_state[n, h].astype("f8"))
            for row, part in zip(rows, found):
                row[here, h] = part
            before[n, h], writes[here, h] = found[5:7]
            for i in range(-(-(end - begin) // interval)):
                saved[begin // interval + n + i, h] = found[7][i * interval].T
    return rows, before, writes, saved


def write_forward(folder, given, ends, length, writes, saved):
    """The arguments of a forward in segments of so many tokens, and what it saves."""
    # There is room for a state more in each segment.
    more = numpy.full((-(-ends[-1] // length) - 1, *saved.shape[1:]), numpy.nan)
    for number, array in enumerate(given):
        numpy.save(folder / f"in{number}.npy", numpy.ascontiguousarray(array))
    numpy.save(folder / "want2.writes.npy", writes)
    numpy.save(folder / "want3.states.npy", numpy.concatenate([saved, more]))


def write(folder, lengths, Hq, H, D, flags, layout):
    """The arguments and results as files."""
    rng, N = numpy.random.default_rng(0), len(lengths)
    ends = numpy.cumsum([0, *lengths])
    shape = (1, ends[-1]) if "packed" in flags else (N, lengths[0])

    def keys(heads):
        rows = rng.standard_normal((*shape, heads, D))
        return rounded(rows if "norms" in flags else rows / numpy.linalg.norm(rows, axis=-1, keepdims=True))

    q, k = keys(Hq), keys(Hq)
    v, d_o = (rounded(rng.standard_normal((*shape, H, D))) for _ in range(2))
    beta, gate = rng.random((*shape, H)).astype("f4"), (-0.1 * rng.random((*shape, H))).astype("f4")
    beta[:, ::UNWRITTEN] = 0
    strengths = [[float(x) for x in f.partition("=")[2].split(",")] for f in flags if f.startswith("gates=")]
    if strengths:
        gate[:] = numpy.resize(strengths[0], H)
        numpy.save(folder / "strengths.npy", len(strengths[0]))
        # Each dg is compared by itself: none is of a token that writes nothing.
        beta = 0.5 + beta / 2
    if "raw" in flags:
        beta, gate = (rounded(rng.standard_normal((*shape, H))) for _ in range(2))
    a_log, dt_bias = (rng.standard_normal(H).astype("f4") for _ in range(2))
    state, d_state = (rng.standard_normal((N, H, D, D)).astype("f4") * bool(layout) for _ in range(2))
    if strengths:
        numpy.save(folder / "sequences.npy", ends)
        d_state[1::3] = 0
        for begin, end in zip(ends[:-1:3], ends[1::3]):
            d_o[:, begin:end] = 0
    flat = [x.reshape(-1, *x.shape[2:]).astype("f8") for x in (q, k, v, beta, gate, d_o)]
    raw = flat[4] + dt_bias
    if "norms" in flags:
        (flat[0], back_q), (flat[1], back_k) = map(normalised, flat[:2])
    if "raw" in flags:
        flat[3], flat[4] = sigmoid(flat[3]), -numpy.exp(a_log) * numpy.log1p(numpy.exp(raw))
    segments, saves = ([int(f.partition("=")[2]) for f in flags if f.startswith(name)] for name in ("segments=", "saved="))
    rows, before, writes, saved = recurrences(flat, ends, state, d_state, *(saves or [64]))
    if "forward" in flags:
        given = [q, k, v, beta, gate, state, ends.astype("i4")]
        return write_forward(folder, given, ends, *segments, writes.reshape(v.shape), saved)
    for i in range(2):
        rows[i] = rows[i].reshape(-1, Hq, H // Hq, D).sum(2)
    sums = []
    if "norms" in flags:
        rows[:2] = back_q(rows[0]), back_k(rows[1])
    if "raw" in flags:
        sums = [(flat[4] * rows[4]).sum(0)]
        rows[3], rows[4] = rows[3] * flat[3] * (1 - flat[3]), rows[4] * -numpy.exp(a_log) * sigmoid(raw)
        sums.append(rows[4].sum(0))
    turn = (lambda x: x.swapaxes(2, 3)) if layout == "vk" else (lambda x: x)
    given = [q, k, v, beta, gate]
    given += [turn(state)] if layout else []
    given += [ends.astype("i4")] if "packed" in flags else []
    given += [a_log, dt_bias] if "raw" in flags else []
    given += [d_o] + ([turn(d_state)] if layout else [])
    given += [rounded(writes.reshape(*shape, H, D)), rounded(numpy.nan_to_num(saved))] if saves else []
    # The tokens of a segment, the last argument, are a scalar.
    for number, array in enumerate(given):
        numpy.save(folder / f"in{number}.npy", numpy.ascontiguousarray(array))
    results = dict(zip(RESULTS, (row.reshape(*shape, *row.shape[1:]) for row in rows)))
    results |= {"dinitial_state": turn(before)} if layout else {}
    results |= dict(zip(RESULTS[6:], sums))
    for number, (name, array) in enumerate(results.items()):
        numpy.save(folder / f"want{number}.{name}.npy", array)


def relative_rms(found, want):
    return numpy.sqrt(numpy.square(found - want).mean() / numpy.square(want).mean())


def errors_apart(found, want, ends, strengths):
    """Errors of each sequence and strength of gates, and of its last token, where there is anything to compare."""
    for begin, end in zip(ends, ends[1:]):
        for tokens in (slice(begin, end), slice(end - 1, end)):
            for heads in (slice(first, None, strengths) for first in range(strengths)):
                if numpy.abs(want[tokens, heads]).max() > LEAST:
                    yield relative_rms(found[tokens, heads], want[tokens, heads])


def check(folder, got):
    """Compares the results in `got`."""
    unwritten = numpy.load(folder / "in3.npy") == 0
    for path in sorted(folder.glob("want*.npy")):
        number, name = path.stem.removeprefix("want").split(".")
        want, found = numpy.load(path), numpy.load(got / f"{number}.npy").astype("f8")
        assert found.shape == want.shape, f"{name}: expected {want.shape}, got {found.shape}"
        there = ~numpy.isnan(want)
        error = relative_rms(found[there], want[there])
        if name == "dbeta" and unwritten.any():
            error = max(error, relative_rms(found[unwritten], want[unwritten]))
        if name == "dgate" and (folder / "sequences.npy").exists():
            ends, strengths = (numpy.load(folder / f"{file}.npy") for file in ("sequences", "strengths"))
            error = max(error, *errors_apart(found[0], want[0], ends, int(strengths)))
        verdict = "pass" if error < TOLERANCE else "fail"
        print(f"{number} {name}: relative rms {error:.2e}, {verdict}")
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
        write(path, [int(x) for x in sys.argv[2].split(",")], *numbers, flags, layout)
