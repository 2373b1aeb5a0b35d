"""Where segments forget, with a gate a channel: `segment_starts.py FOLDER COMMAND...`, where the command is gdn-run
with its options, runs the stage and compares what it finds with the two bounds of spec 6.3 in float64. Where a
segment is said to forget, the norm of the product of its tokens' matrices is below the tolerance, too. Each head has
gates of another kind."""

import pathlib
import subprocess
import sys

import numpy

CHUNK, WALKED, PACE, TOLERANCE = 32, 96, 32, 6.1442123533282e-06
LENGTHS, KEY_HEADS, HEADS = (0, 1, 5, 37, 96, 300, 64), 3, 6
BOUNDARIES = numpy.cumsum((0, *LENGTHS), dtype=numpy.int32)
TOKENS = int(BOUNDARIES[-1])


def draw_gates(random, channels):
    """Log gates [T, HEADS, K]: none in the last 40 tokens, equal ones, a model's, a slow channel beside fast ones, weak
    and strong."""
    gates = numpy.empty((TOKENS, HEADS, channels))
    left = numpy.concatenate([numpy.arange(length)[::-1] for length in LENGTHS])
    gates[:, 0] = numpy.where(left < 40, 0, -5)[:, None]
    gates[:, 1] = -0.3
    gates[:, 2] = -random.exponential(2.5, gates[:, 2].shape)
    gates[:, 3] = numpy.where(numpy.arange(channels) == 5, 0, -5)
    gates[:, 4] = -random.exponential(0.2, gates[:, 4].shape)
    gates[:, 5] = -random.exponential(1, gates[:, 5].shape)
    return gates


def find_start(keys, betas, gates, begin, end):
    """The start of a segment of a head, whose keys are of the length that the rule takes."""
    columns, slowest, part = numpy.ones(keys.shape[1]), 1.0, PACE / WALKED
    for t in range(end - 1, max(begin, end - WALKED) - 1, -1):
        # Tokens are walked over in groups.
        if end - 1 - t >= PACE and (end - 1 - t) % (1024 // max(keys.shape[1], 128)) == 0:
            left = numpy.linalg.norm(columns) / numpy.sqrt(keys.shape[1])
            if left > (TOLERANCE / numpy.sqrt(keys.shape[1])) ** part and slowest > TOLERANCE**part:
                return begin
        token = numpy.abs(numpy.eye(keys.shape[1]) - betas[t] * numpy.outer(keys[t], keys[t]))
        columns = numpy.exp(gates[t]) * (token @ columns)
        slowest *= numpy.exp(gates[t].max())
        if min(numpy.linalg.norm(columns), slowest) <= TOLERANCE:
            return begin + (t - begin) // CHUNK * CHUNK
    return begin


def is_sound(keys, betas, gates, start, end):
    """Whether the tokens from `start` on forget the state before them."""
    product = numpy.eye(keys.shape[1])
    for t in range(start, end):
        product = numpy.exp(gates[t])[:, None] * product
        product -= betas[t] * numpy.outer(keys[t], keys[t] @ product)
    return numpy.linalg.norm(product, 2) <= TOLERANCE


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def make_case(random, raw):
    """The arrays of a call, the attributes of the stage, and keys, betas and gates as the rule takes them."""
    channels = 128 if raw else 64
    keys = random.standard_normal((TOKENS, KEY_HEADS, channels)).astype(numpy.float32)
    lengths = numpy.linalg.norm(keys, axis=-1, keepdims=True)
    betas = random.uniform(-3, 3, (TOKENS, HEADS)).astype(numpy.float32)
    gates = draw_gates(random, channels).astype(numpy.float32)
    arrays, attributes = {}, []
    if raw:
        attributes = ["qk_l2norm", "beta_domain = #gdn.beta_domain<doubled_logit>",
                      "gate_domain = #gdn.gate_domain<bounded>", "lower_bound = -5.0 : f64"]
        rates = random.uniform(-1, 1, HEADS).astype(numpy.float32)
        biases = random.standard_normal((HEADS, channels)).astype(numpy.float32)
        arrays = {"a_log": rates, "dt_bias": biases}
        gates *= 4
        rule = (keys.astype(float) / lengths, 2 * sigmoid(betas.astype(float)),
                -5 * sigmoid(numpy.exp(rates, dtype=float)[:, None] * (gates.astype(float) + biases)))
    else:
        keys, betas = keys / lengths, numpy.abs(betas) / 3
        rule = keys.astype(float), betas.astype(float), gates.astype(float)
    arrays = {"k": keys[None], "beta": betas[None], "gate": gates[None], "cu_seqlens": BOUNDARIES, **arrays}
    return arrays, attributes, rule


def write_program(arrays, attributes):
    """A function of the stage alone."""
    def type_of(array):
        return f"tensor<{'x'.join(map(str, array.shape))}x{'i32' if array.dtype == numpy.int32 else 'f32'}>"

    types = {name: type_of(array) for name, array in arrays.items()}
    uses = " ".join(f"{name}(%{name} : {of})" for name, of in types.items())
    attributes = ", ".join([*attributes, f"chunk_size = {CHUNK} : i64", f"tolerance = {TOLERANCE}"])
    result = f"tensor<{len(LENGTHS)}x{HEADS}xi32>"
    return f"""func.func @find({', '.join(f'%{name}: {of}' for name, of in types.items())}) -> {result} {{
  %r = gdn.stage.segment_starts {uses} {{{attributes}}} -> {result}
  return %r : {result}
}}
"""


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(0)
    forgotten = 0
    for raw in (False, True):
        arrays, attributes, (keys, betas, gates) = make_case(random, raw)
        (folder / "find.mlir").write_text(write_program(arrays, attributes))
        options = [f"--out-dir={folder}"]
        for number, array in enumerate(arrays.values()):
            numpy.save(folder / f"in.{number}.npy", array)
            options += ["--arg", f"{number}={folder}/in.{number}.npy"]
        subprocess.run([*command, folder / "find.mlir", *options], check=True, stdout=subprocess.DEVNULL)
        found = numpy.load(folder / "0.npy").astype(int)
        for segment, head in numpy.ndindex(found.shape):
            begin, end = BOUNDARIES[segment : segment + 2]
            of_head = keys[:, head // (HEADS // KEY_HEADS)], betas[:, head], gates[:, head]
            expected = find_start(*of_head, begin, end)
            if found[segment, head] != expected:
                sys.exit(f"{raw=} {segment=} {head=}: expected {expected}, got {found[segment, head]}")
            if expected > begin:
                forgotten += 1
                if not is_sound(*of_head, expected, end):
                    sys.exit(f"{raw=} {segment=} {head=}: expected segments of small norm to be forgotten alone")
    print(f"{forgotten} segments and heads forget")


main()
