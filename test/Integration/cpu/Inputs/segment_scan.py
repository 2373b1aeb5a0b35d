"""The scan over segments with decays of channels: `segment_scan.py FOLDER COMMAND...`, where the command is gdn-run
with its options, runs the stage and compares the states before all segments and the final ones with float64. Of
segments that forget what is before them, maps and decays are no numbers: nobody has made them."""

import pathlib
import subprocess
import sys

import numpy

HEADS, K, V, FIRST = 2, 64, 64, (0, 4, 4, 9)
SEGMENTS, SEQUENCES = FIRST[-1], len(FIRST) - 1
TOLERANCE = 1e-3  # Of D and S in 16 bits.


def make_arrays(random):
    """The stage's operands, by name."""
    boundaries = numpy.arange(SEGMENTS + 1, dtype=numpy.int32) * 64
    starts = numpy.repeat(boundaries[:-1, None], HEADS, axis=1)
    starts[2, 0] += 32
    starts[5:7, 1] += 32
    maps = (random.standard_normal((SEGMENTS, HEADS, K, K)) / K).astype(numpy.float16)
    decays = -random.exponential(2, (SEGMENTS, HEADS, K)).astype(numpy.float32)
    forgets = starts > boundaries[:-1, None]
    maps[forgets] = numpy.nan
    decays[forgets] = numpy.nan
    return {
        "map": maps,
        "decay": decays,
        "states": random.standard_normal((SEGMENTS, HEADS, V, K)).astype(numpy.float32),
        "initial_state": random.standard_normal((SEQUENCES, HEADS, V, K)).astype(numpy.float32),
        "first_segments": numpy.array(FIRST, numpy.int32),
        "starts": starts,
        "boundaries": boundaries,
    }


def scan(map, decay, states, initial_state, starts, boundaries, **_):
    """The states [V, K] before all segments, and the final ones."""
    entry, final = numpy.empty(states.shape), numpy.empty(initial_state.shape)
    for sequence, head in numpy.ndindex(SEQUENCES, HEADS):
        state = initial_state[sequence, head].astype(float)
        for s in range(FIRST[sequence], FIRST[sequence + 1]):
            entry[s, head] = state
            if starts[s, head] > boundaries[s]:
                state = states[s, head].astype(float)
            else:
                change = state @ map[s, head].astype(float).T
                state = numpy.exp2(decay[s, head].astype(float)) * state + change + states[s, head]
        final[sequence, head] = state
    return entry, final


def write_program(arrays):
    """A function of the stage alone."""
    def type_of(array):
        element = {"float16": "f16", "float32": "f32", "int32": "i32"}[array.dtype.name]
        return f"tensor<{'x'.join(map(str, array.shape))}x{element}>"

    types = {name: type_of(array) for name, array in arrays.items()}
    uses = " ".join(f"{name}(%{name} : {of})" for name, of in types.items())
    results = f"{types['states']}, {types['initial_state']}"
    return f"""func.func @scan({', '.join(f'%{name}: {of}' for name, of in types.items())}) -> ({results}) {{
  %r:2 = gdn.stage.segment_scan {uses} {{state_layout = #gdn.state_layout<vk>}} -> {results}
  return %r#0, %r#1 : {results}
}}
"""


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    arrays = make_arrays(numpy.random.default_rng(0))
    (folder / "scan.mlir").write_text(write_program(arrays))
    options = [f"--out-dir={folder}"]
    for number, array in enumerate(arrays.values()):
        numpy.save(folder / f"in.{number}.npy", array)
        options += ["--arg", f"{number}={folder}/in.{number}.npy"]
    subprocess.run([*command, folder / "scan.mlir", *options], check=True, stdout=subprocess.DEVNULL)
    for number, expected in enumerate(scan(**arrays)):
        found = numpy.load(folder / f"{number}.npy")
        error = numpy.sqrt(numpy.mean((found - expected) ** 2) / numpy.mean(expected**2))
        if not error <= TOLERANCE:
            sys.exit(f"result {number}: expected an error of at most {TOLERANCE}, got {error}")
    print("entry states and final states agree")


main()
