"""Gates a channel that just keep a bound of -5: gate_blocks.py FILE HEADS LENGTH... writes log gates [1, T, HEADS, 128] of packed
sequences. In each block of 8 tokens of a sequence they sum up to -39.9 or more: by one token, which is another one in each
channel, by two, by all, or not at all."""

import sys

import numpy

file, heads, *lengths = sys.argv[1:]
random, BLOCK, CHANNELS = numpy.random.default_rng(5), 8, 128


def block():
    gates = -0.05 * random.random((BLOCK, int(heads), CHANNELS))
    channels = numpy.arange(CHANNELS)
    for head in range(int(heads)):
        gates[random.integers(BLOCK, size=CHANNELS), head, channels] = random.choice([-0.05, -20, -39.5], CHANNELS)
        gates[random.integers(BLOCK, size=CHANNELS), head, channels] = -0.2
        pairs = random.choice(CHANNELS, 24, replace=False)
        gates[:, head, pairs] = 0
        for channel in pairs:
            gates[random.choice(BLOCK, 2, replace=False), head, channel] = [-19.9, -20]
        gates[:, head, random.choice(CHANNELS, 24, replace=False)] = -4.98
    return gates


def sequence(tokens):
    return numpy.concatenate([block() for _ in range(-(-tokens // BLOCK))] or [block()[:0]])[:tokens]


gates = numpy.concatenate([sequence(int(length)) for length in lengths])
numpy.save(file, gates[None].astype("float32"))
