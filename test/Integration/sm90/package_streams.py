# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many streams at once on a GPU, for python.py: each has a pool of its own, over which a prefill, tokens one at a time, and
speculated tokens follow each other, of Gated DeltaNet on every other stream and of Kimi Delta Attention on the others. All are
begun by several threads of the host, and have the bits of the same calls alone, in every round."""

import faulthandler
import threading
import time

#: Rows of a pool, sequences, tokens of a prefill, and heads of keys and of values.
STATES, LENGTHS, HEADS, VALUE_HEADS = 24, (70, 3, 40, 1), 4, 8


class Program:
    """The calls of one stream."""

    def __init__(self, torch, gdn, is_kda, seed):
        self.torch = torch
        random = torch.Generator("cuda").manual_seed(seed)
        rule, heads = ("kda", VALUE_HEADS) if is_kda else ("gated_delta_rule", HEADS)
        self.chunk, self.recurrent = getattr(gdn, f"chunk_{rule}"), getattr(gdn, f"fused_recurrent_{rule}")

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=random)

        def tokens(rows, count):
            gates = (rows, count, VALUE_HEADS, *[128] * is_kda)
            shapes = {"q": (rows, count, heads, 128), "k": (rows, count, heads, 128), "v": (rows, count, VALUE_HEADS, 128)}
            shapes |= {"g": gates, "beta": gates[:3]}
            drawn = {name: normal(*shape).bfloat16() for name, shape in shapes.items()}
            return drawn | {"out": torch.zeros_like(drawn["v"])}

        integers = lambda values: torch.tensor(values, dtype=torch.int32, device="cuda")  # noqa: E731
        self.words = {
            "A_log": normal(VALUE_HEADS), "dt_bias": normal(VALUE_HEADS * (128 if is_kda else 1)), "state_layout": "vk",
            "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True, "first_state": 1,
            **({"lower_bound": -5.0} if is_kda else {}),
        }  # fmt: skip
        self.start = normal(STATES, VALUE_HEADS, 128, 128)
        self.pool = self.start.clone()
        ends = [0]
        for length in LENGTHS:
            ends.append(ends[-1] + length)
        rows = torch.randperm(STATES - 1, generator=random, device="cuda")[: 4 * len(LENGTHS)].int() + 1
        rows = rows.reshape(len(LENGTHS), 4)
        has = torch.tensor([False, True, False, True], device="cuda")
        pool = {"initial_state": self.pool, "final_state": self.pool}
        first = {**pool, "state_indices": rows[:, 0].contiguous()}
        count = len(LENGTHS)
        self.calls = [(self.chunk, {**tokens(1, ends[-1]), **first, "cu_seqlens": integers(ends), "has_initial_state": has})]
        self.calls += [(self.recurrent, {**tokens(count, 1), **first}) for _ in range(2)]
        accepted = integers([1, 3, 2, 4])
        self.calls += [
            (self.recurrent, {**tokens(count, 4), **pool, "state_indices": rows, "num_accepted_tokens": accepted}) for _ in range(2)
        ]
        self.results = [words["out"] for _, words in self.calls] + [self.pool]
        self.faults, self.wanted = torch.zeros((), dtype=torch.int64, device="cuda"), None
        self.stream = torch.cuda.Stream()
        torch.cuda.synchronize()

    def run(self):
        """All calls from the first states; behind them, whether a bit differs from those of the first time."""
        with self.torch.cuda.stream(self.stream):
            self.pool.copy_(self.start)
            for function, words in self.calls:
                function(**words, **self.words)
            if self.wanted is None:
                self.wanted = [x.clone() for x in self.results]
                return
            for x, wanted in zip(self.results, self.wanted):
                self.faults += (x != wanted).any()


def streams(options, count=200, hosts=8):
    """Runs so many programs until the time is over."""
    import torch

    import gdn

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gdn {gdn.__version__}")
    programs = [Program(torch, gdn, n % 2 == 1, n) for n in range(count)]
    for program in programs:
        # Alone.
        program.run()
        torch.cuda.synchronize()
    errors, rounds = [], [0] * hosts
    # A hang ends the process with its traceback.
    faulthandler.dump_traceback_later(options.seconds + 60, exit=True)
    end = time.monotonic() + options.seconds

    def work(host):
        try:
            while time.monotonic() < end:
                for program in programs[host::hosts]:
                    program.run()
                rounds[host] += 1
                # Queues stay short.
                programs[host].stream.synchronize()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(host,)) for host in range(hosts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    faulthandler.cancel_dump_traceback_later()
    errors += [f"stream {n}: {faults} differ" for n, program in enumerate(programs) if (faults := int(program.faults))]
    nothing = all(bool(x.float().abs().sum() > 0) for program in programs for x in program.wanted)
    errors += [] if nothing else ["a call wrote zeros alone"]
    print(f"{count} streams, {hosts} threads, {options.seconds} s, {sum(rounds) / hosts:.0f} rounds: {'; '.join(errors[:3]) or 'ok'}")
    return 1 if errors else 0
