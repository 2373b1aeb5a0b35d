"""Gates a channel of two heads: `channel_gates.py FOLDER` writes FOLDER/log.npy [1, 113, 2, 128], log gates, and raw.npy
[2, 100, 2, 128], what a bound of -5 makes others of, with a_log.npy and dt_bias.npy. The first head forgets; every 16th
channel of the second one keeps its state."""

import pathlib
import sys

import numpy

HEADS, CHANNELS, BOUND = 2, 128, 5


def draw(random, batch, tokens):
    keeps = numpy.arange(CHANNELS) % 16 == 5
    gates = -random.exponential(2.5, (batch, tokens, HEADS, CHANNELS))
    gates[:, :, 1] = numpy.where(keeps, gates[:, :, 1] * 1e-3, gates[:, :, 1])
    return gates


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
generator = numpy.random.default_rng(0)
part = numpy.clip(-draw(generator, 2, 100) / BOUND, 1e-5, 0.99)
arrays = {
    "log": draw(generator, 1, 113),
    "raw": numpy.log(part / (1 - part)),
    "a_log": numpy.zeros(HEADS),
    "dt_bias": numpy.zeros((HEADS, CHANNELS)),
}
for name, array in arrays.items():
    numpy.save(folder / f"{name}.npy", array.astype(numpy.float32))
