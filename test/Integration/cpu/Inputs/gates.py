"""Gradients of uniform gates, by `gates.py FOLDER head|channel log|linear GATES GDN-RUN [OPTION]...`: an f32 backward
that gdn-run compiles with the options, compared with the recurrence in float64. The gates of each value head are one of
GATES, which are factors for linear. Of packed sequences, most of which end within a chunk, one has a gradient of its
final state alone, the next one of o alone, the next one of both, and so on. dg is compared for each gate: of all tokens,
and of the last ones of sequences alone."""

import pathlib
import subprocess
import sys

import numpy

D, HEADS, LENGTHS = 32, 2, (1, 5, 37, 64, 66, 33)
#: Relative rms, and below which dg is not compared.
TOLERANCE, LEAST = 1e-6, 1e-30
NAMES = ("q", "k", "v", "beta", "gate", "initial_state")


def program(shapes, domain):
    """A function of the arrays, whose results are the gradients."""
    elements = {"cu_seqlens": "i32"}
    types = {name: f"tensor<{'x'.join(map(str, x))}x{elements.get(name, 'f32')}>" for name, x in shapes.items()}
    results = ", ".join(types[name] for name in NAMES)
    uses = " ".join(f"{name}(%{name} : {of})" for name, of in types.items())
    options = "" if domain == "log" else f"{{gate_domain = #gdn.gate_domain<{domain}>}}"
    return f"""func.func @gradients({', '.join(f'%{name}: {of}' for name, of in types.items())}) -> ({results}) {{
  %r:6 = gdn.chunk_gated_delta_rule_bwd {uses} {options} -> {results}
  return {', '.join(f'%r#{i}' for i in range(6))} : {results}
}}
"""


def head(q, k, v, beta, decay, state, d_o, d_state):
    """The gradients of one sequence and value head, that of the decay among them, which is [T] or [T, D]."""
    d_q, d_k, d_v, d_beta, d_decay = (numpy.zeros_like(x) for x in (q, k, v, beta, decay))
    spread = decay.reshape(len(decay), -1, 1)
    states, scale = [], D**-0.5
    for t in range(len(q)):
        decayed = spread[t] * state
        error = v[t] - k[t] @ decayed
        states.append((state, decayed, error))
        state = decayed + beta[t] * numpy.outer(k[t], error)
    for t in reversed(range(len(q))):
        before, decayed, error = states[t]
        d_q[t] = scale * (decayed + beta[t] * numpy.outer(k[t], error)) @ d_o[t]
        d_state = d_state + scale * numpy.outer(q[t], d_o[t])
        d_beta[t] = k[t] @ d_state @ error
        d_v[t] = beta[t] * k[t] @ d_state
        d_k[t] = beta[t] * d_state @ error - decayed @ d_v[t]
        d_state = d_state - numpy.outer(k[t], d_v[t])
        of_channels = (d_state * before).sum(1)
        d_decay[t] = of_channels if decay.ndim == 2 else of_channels.sum()
        d_state = spread[t] * d_state
    return d_q, d_k, d_v, d_beta, d_decay, d_state


def inputs(channel, gates):
    rng, T, N, H = numpy.random.default_rng(0), sum(LENGTHS), len(LENGTHS), HEADS * len(gates)
    q, k = (rng.standard_normal((1, T, H, D)) for _ in range(2))
    given = {"q": q, "k": k, "v": rng.standard_normal((1, T, H, D)), "beta": rng.random((1, T, H))}
    for x in (q, k):
        x /= numpy.linalg.norm(x, axis=-1, keepdims=True)
    given["gate"] = numpy.zeros((1, T, H, D) if channel else (1, T, H))
    for number, gate in enumerate(gates):
        given["gate"][:, :, number * HEADS : (number + 1) * HEADS] = gate
    given["initial_state"] = rng.standard_normal((N, H, D, D))
    ends = given["cu_seqlens"] = numpy.cumsum([0, *LENGTHS])
    given |= {"d_o": rng.standard_normal((1, T, H, D)), "d_final_state": rng.standard_normal((N, H, D, D))}
    for begin, end in zip(ends[:-1:3], ends[1::3]):
        given["d_o"][:, begin:end] = 0
    given["d_final_state"][1::3] = 0
    return {name: x.astype("i4" if name == "cu_seqlens" else "f4") for name, x in given.items()}


def expected(given, domain):
    wide, ends = {name: x.astype("f8") for name, x in given.items()}, given["cu_seqlens"]
    wanted = {name: numpy.zeros_like(wide[name]) for name in NAMES}
    for n, (begin, end) in enumerate(zip(ends, ends[1:])):
        for h in range(given["v"].shape[2]):
            *rows, gate, d_o = (wide[name][0, begin:end, h] for name in (*NAMES[:5], "d_o"))
            decay = numpy.exp(gate) if domain == "log" else gate
            *found, before = head(*rows, decay, wide["initial_state"][n, h], d_o, wide["d_final_state"][n, h])
            found[4] *= decay if domain == "log" else 1
            for name, part in zip(NAMES, found):
                wanted[name][0, begin:end, h] = part
            wanted["initial_state"][n, h] = before
    return wanted


def parts(ends, gates):
    """Names of parts of dg, and the tokens and heads of each."""
    for kind, name in enumerate(("the final state", "o", "both")):
        spans = list(zip(ends[kind:-1:3], ends[kind + 1 :: 3]))
        every = numpy.concatenate([numpy.arange(*span) for span in spans])
        for which, tokens in (("all", every), ("last", [end - 1 for _, end in spans])):
            for number, gate in enumerate(gates):
                yield f"{which} tokens at {gate:g}, of {name}", tokens, slice(number * HEADS, (number + 1) * HEADS)


def main():
    folder, kind, domain, gates, *tool = sys.argv[1:]
    folder, gates = pathlib.Path(folder), [float(gate) for gate in gates.split(",")]
    folder.mkdir(parents=True, exist_ok=True)
    given = inputs(kind == "channel", gates)
    (folder / "gradients.mlir").write_text(program({name: x.shape for name, x in given.items()}, domain))
    command = [*tool, str(folder / "gradients.mlir"), f"--out-dir={folder / 'got'}"]
    for number, (name, x) in enumerate(given.items()):
        numpy.save(folder / f"{name}.npy", x)
        command.append(f"--arg={number}={folder / name}.npy")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = {name: numpy.load(folder / "got" / f"{i}.npy") for i, name in enumerate(NAMES)}
    wanted = expected(given, domain)
    pairs = {f"d{name}": (found[name], wanted[name]) for name in NAMES if name != "gate"}
    for name, tokens, heads in parts(given["cu_seqlens"], gates):
        pairs[f"dgate, {name}"] = tuple(x["gate"][0, tokens, heads] for x in (found, wanted))
    wrong = False
    for name, (x, y) in pairs.items():
        size = numpy.sqrt(numpy.square(y).mean())
        error = numpy.sqrt(numpy.square(x - y).mean()) / max(size, LEAST)
        wrong |= not error < TOLERANCE
        print(f"{name}: relative rms {error:.1e}{'' if error < TOLERANCE else '  FAIL'}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
