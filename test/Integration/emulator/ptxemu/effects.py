"""Instructions with effects beyond registers of the own lane: of the engine, or of the warp's methods."""

import re
from functools import lru_cache

from .ptx import EmulationError, parse_address, parse_vector


#: Instructions that may make a warp wait.
_WAITS = (
    "mbarrier.try_wait",
    "bar.sync",
    "barrier.sync",
    "bar.cta.sync",
    "barrier.cta.sync",
    "barrier.cluster.wait",
    "cp.async.bulk.wait_group",
    "setmaxnreg",
)
#: Instructions that all lanes of a warp execute together.
_WARP = (
    "shfl.sync",
    "bar.",
    "barrier.",
    "elect.sync",
    "redux.sync",
    "vote.sync",
    "wgmma.",
    "ldmatrix",
    "stmatrix",
    "mma.sync",
    "movmatrix",
    "setmaxnreg",
    "match.",
)
#: Instructions without an effect here.
_NOTHING = ("prefetch", "griddepcontrol", "nanosleep", "applypriority", "discard")


def waits(op):
    return op.startswith(_WAITS)


def wants_warp(op):
    return op.startswith(_WARP)


def _mask_is_full(ins, text):
    if int(text, 0) & 0xFFFFFFFF != 0xFFFFFFFF:
        raise EmulationError(f"line {ins.line}: no emulation of a shuffle of some lanes: {ins.text}")


#: What may stand in an access to memory.
_ACCESS = {
    *("ld", "st", "global", "shared", "shared::cta", "param", "nc", "volatile", "relaxed", "weak"),
    *("L1::no_allocate", "L1::evict_last", "L2::128B", "L2::256B", "v2", "v4", "v8"),
    *("acquire", "release", "gpu", "cluster", "cta", "sys"),
}
#: As Memory.cpp and WarpWide.cpp number them.
_ATOMICS = ("add", "max", "min", "exch", "or", "and", "cas", "dec")
_REDUCTIONS = ("add", "min", "max", "smin", "smax", "and", "or", "xor")
_SHUFFLES, _VOTES = ("up", "down", "bfly", "idx"), ("any", "all", "uni")


def _unknown(ins):
    raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")


def _place(gen, text):
    """An address in brackets as the slot of its base, and the offset."""
    base, offset = parse_address(text)
    return gen.operand(base, 64), offset


def _parameter(ins, gen, registers, address, size):
    base, offset = parse_address(address)
    if base not in gen.params:
        _unknown(ins)
    offset += gen.params[base].offset
    signed = ins.op.split(".")[-1][0] == "s"
    for i, r in enumerate(registers):
        gen.emit("ld_param", d=gen.result(r, max(8 * size, 16), signed), i=offset + i * size, j=size)


def _memory(ins, gen):
    parts = ins.op.split(".")
    if set(parts[:-1]) - _ACCESS:
        _unknown(ins)
    kind, size = parts[-1], int(re.sub(r"\D", "", parts[-1])) // 8
    load = parts[0] == "ld"
    address, values = ins.args if not load else reversed(ins.args)
    registers = parse_vector(values)
    if "param" in parts:
        return _parameter(ins, gen, registers, address, size)
    space = "shared" if "shared" in parts or "shared::cta" in parts else "global"
    base, offset = _place(gen, address)
    width, signed = max(8 * size, 16), kind[0] == "s"
    name = f"{parts[0]}_{space}_{'s8' if kind == 's8' else f'u{8 * size}'}"
    slots = [gen.result(r, width, signed) if load else gen.operand(r, width) for r in registers]
    gen.emit(name, a=base, i=offset, b=gen.list_of(slots), j=len(slots))


def _async_store(ins, gen):
    if ins.op.split(".")[-1] not in ("b32", "f32", "u32", "s32") or "complete_tx::bytes" not in ins.op:
        _unknown(ins)
    to, barrier = _place(gen, ins.args[0]), _place(gen, ins.args[2])
    values, line = [gen.operand(r, 32) for r in parse_vector(ins.args[1])], ins.line
    gen.effect(lambda w, lanes: w.async_store(lanes, w.place(to), [w.words(v) for v in values], w.place(barrier), line))


def _atomic(ins, gen):
    parts = ins.op.split(".")
    kind = {"b32": "u32", "b64": "u64"}.get(parts[-1], parts[-1])
    operation = [p for p in parts[1:-1] if p in _ATOMICS]
    if kind not in ("u32", "s32", "f32", "u64") or not operation or kind == "f32" and operation[0] in ("or", "and"):
        _unknown(ins)
    space = "shared" if any(p.startswith("shared") for p in parts) else "global"
    atom, width = parts[0] == "atom", 64 if kind == "u64" else 32
    base, offset = _place(gen, ins.args[1 if atom else 0])
    values = [gen.operand(a, width) for a in ins.args[2 if atom else 1 :]]
    b, c = (values + values)[:2]
    old = gen.result(ins.args[0], width) if atom else -1
    gen.emit(f"atom_{space}_{kind}", d=old, a=base, b=b, c=c, i=offset, j=_ATOMICS.index(operation[0]))


def _shuffle(ins, gen):
    target, value, b, c, members = ins.args
    _mask_is_full(ins, members)
    target, _, valid = target.partition("|")
    operands = [gen.operand(x, 32) for x in (value, b, c)]
    how = _SHUFFLES.index(ins.op.split(".")[2])
    which = gen.result(valid, 1) if valid else -1
    gen.emit("shfl", gen.result(target, 32), *operands, i=how, j=which)


def _warp(ins, gen):
    op, a, parts, line = ins.op, ins.args, ins.op.split("."), ins.line
    if op == "bar.warp.sync":
        _mask_is_full(ins, a[0])
    elif op == "elect.sync":
        _mask_is_full(ins, a[1])
        leader, _, predicate = a[0].partition("|")
        gen.emit("elect", d=gen.result(predicate, 1), a=-1 if leader == "_" else gen.result(leader, 32))
    elif op.startswith("redux.sync"):
        how = ("s" if parts[-1] == "s32" and parts[2] in ("min", "max") else "") + parts[2]
        operands = gen.operand(a[1], 32), gen.operand(a[2], 32)
        gen.emit("redux", gen.result(a[0], 32), *operands, i=_REDUCTIONS.index(how))
    elif op.startswith("vote.sync"):
        _mask_is_full(ins, a[2])
        value = gen.operand(a[1], 1)
        if parts[2] == "ballot":
            gen.emit("ballot", gen.result(a[0], 32), value)
        else:
            gen.emit("vote", gen.result(a[0], 1), value, i=_VOTES.index(parts[2]))
    elif op.startswith("barrier.cluster.arrive"):
        gen.effect(lambda w, lanes: w.cluster_arrive(line))
    elif op.startswith(("bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive")):
        number, count = gen.operand(a[0], 32), gen.operand(a[1], 32)
        gen.effect(lambda w, lanes: w.bar_arrive(w.words(number), w.words(count), line))
    else:
        _unknown(ins)


def _waiting(ins, gen):
    op, a, parts, line = ins.op, ins.args, ins.op.split("."), ins.line
    if op.startswith("mbarrier.try_wait.parity"):
        at, parity, predicate = _place(gen, a[1]), gen.operand(a[2], 32), gen.slot_of(a[0])
        gen.effect(lambda w, lanes: w.try_wait(lanes, predicate, w.place(at), w.words(parity), line))
    elif op.startswith("barrier.cluster.wait"):
        gen.effect(lambda w, lanes: w.cluster_wait(line))
    elif op.startswith("cp.async.bulk.wait_group"):
        count, read = int(a[0]), "read" in parts
        gen.effect(lambda w, lanes: w.bulk_wait(count, read, line))
    elif op.startswith("setmaxnreg"):
        count = int(a[0])
        gen.emit("collective")
        gen.effect(lambda w, lanes: w.set_registers(parts[1], count, line))
    else:
        number, count = gen.operand(a[0], 32), gen.operand(a[1], 32) if len(a) > 1 else None
        gen.effect(lambda w, lanes: w.bar_sync(w.words(number), None if count is None else w.words(count), line))


def _mbarrier(ins, gen):
    a, parts, line = ins.args, ins.op.split("."), ins.line
    if parts[1] == "init":
        at, count = _place(gen, a[0]), gen.operand(a[1], 32)
        return gen.effect(lambda w, lanes: w.barrier_init(lanes, w.place(at), w.words(count), line))
    if parts[1] == "inval":
        at = _place(gen, a[0])
        return gen.effect(lambda w, lanes: w.barrier_inval(lanes, w.place(at), line))
    if parts[1] not in ("arrive", "expect_tx") or "noComplete" in parts:
        _unknown(ins)
    arrive, expects = parts[1] == "arrive", "expect_tx" in parts
    args = a[1:] if arrive else a
    at = _place(gen, args[0])
    amount = gen.operand(args[1], 32) if len(args) > 1 else gen.constant(1 if arrive and not expects else 0, 32)
    arrivals, count = (gen.constant(arrive, 32), amount) if expects else (amount, gen.constant(0, 32))
    gen.effect(lambda w, lanes: w.arrive(lanes, w.place(at), w.words(arrivals), w.words(count), line))
    if arrive and a[0] != "_":
        zero = gen.constant(0, 64)
        gen.emit("mov_64", gen.result(a[0], 64), zero)


def _bulk(ins, gen):
    op, a, parts, line = ins.op, ins.args, ins.op.split("."), ins.line
    if op == "cp.async.bulk.commit_group":
        return gen.effect(lambda w, lanes: w.bulk_commit())
    if "tensor" in parts:
        return _tensor(ins, gen)
    first = min(i for i, p in enumerate(parts) if p.startswith(("shared", "global")))
    target, source = parts[first], parts[first + 1]
    if "reduce" in parts:
        _unknown(ins)
    barrier = None if "bulk_group" in parts else _place(gen, a[3])
    to, come, count = _place(gen, a[0]), _place(gen, a[1]), gen.operand(a[2], 32)
    gen.effect(
        lambda w, lanes: w.bulk_copy(
            lanes, target, source, w.place(to), w.place(come), w.words(count), barrier and w.place(barrier), line
        )
    )


def _tensor(ins, gen):
    a, parts, line = ins.args, ins.op.split("."), ins.line
    if (
        not {"tile"} & set(parts)
        and any(p in parts for p in ("im2col", "gather4", "scatter4"))
        or "multicast::cluster" in parts
        or "prefetch" in parts
    ):
        _unknown(ins)
    to_shared = parts.index("global") > min(i for i, p in enumerate(parts) if p.startswith("shared"))
    descriptor, coordinates = (a[1] if to_shared else a[0]).strip()[1:-1].split(",", 1)
    descriptor = gen.operand(descriptor.strip(), 64)
    coordinates = [gen.operand(c, 32) for c in parse_vector(coordinates.strip())]
    shared = _place(gen, a[0] if to_shared else a[1])
    barrier = _place(gen, a[2]) if to_shared else None
    gen.effect(
        lambda w, lanes: w.tensor_copy(
            lanes,
            to_shared,
            w.longs(descriptor),
            [w.words(c).view("i4") for c in coordinates],
            w.place(shared),
            barrier and w.place(barrier),
            line,
        )
    )


def _wgmma(ins, gen):
    a, parts = ins.args, ins.op.split(".")
    if ins.op.startswith("wgmma.fence"):
        return gen.emit("wgmma_fence")
    if ins.op.startswith("wgmma.commit_group"):
        return gen.emit("wgmma_commit")
    if ins.op.startswith("wgmma.wait_group"):
        return gen.emit("wgmma_wait", i=int(a[0]))
    shape, result, left, right = parts[4:8]
    match = re.fullmatch(r"m64n(\d+)k16", shape)
    if not match or result != "f32" or left != right or left not in ("bf16", "f16"):
        _unknown(ins)
    accumulators, n = parse_vector(a[0]), int(match[1])
    if len(accumulators) != n // 2:
        raise EmulationError(f"line {ins.line}: expected {n // 2} accumulators, got {len(accumulators)}")
    registers = a[1].startswith("{")
    scale_a, scale_b, *transposed = (int(x) for x in a[4:])
    bits = registers | (8 if scale_a * scale_b < 0 else 0) | (16 if left == "f16" else 0)
    bits |= 2 * transposed[0] + 4 * transposed[1] if not registers else 4 * transposed[0]
    if registers:
        halves = parse_vector(a[1])
        left = gen.list_of([gen.operand(r, 32) for r in halves] + [gen.flagged.get(r, -1) for r in halves])
    else:
        left = gen.operand(a[1], 64)
    results = gen.list_of([gen.slot_of(r) for r in accumulators] + [gen.flagged[r] for r in accumulators])
    gen.emit("wgmma", results, left, gen.operand(a[2], 64), gen.operand(a[3], 1), i=n, j=bits)


def _tensor_core(ins, gen):
    op, a, parts = ins.op, ins.args, ins.op.split(".")
    if op.startswith("wgmma."):
        return _wgmma(ins, gen)
    if op.startswith("mma.sync.aligned."):
        match = re.fullmatch(r"mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.f32\.(bf16|f16|tf32)\.\2\.f32", op)
        d, *operands = (parse_vector(x) for x in a)
        per_register = 4 if match and match[2] == "tf32" else 8
        if not match or len(operands[1]) * per_register != int(match[1]):
            _unknown(ins)
        lists = [gen.list_of([gen.operand(r, 32) for r in v]) for v in operands]
        results = gen.list_of([gen.result(r, 32) for r in d])
        return gen.emit("mma", results, *lists, i=("bf16", "f16", "tf32").index(match[2]), j=int(match[1]))
    if op.startswith("movmatrix.sync.aligned.m8n8.trans.b16"):
        value = gen.operand(a[1], 32)
        return gen.emit("movmatrix", gen.result(a[0], 32), value)
    load = op.startswith("ldmatrix")
    registers = parse_vector(a[0] if load else a[1])
    if "m8n8" not in parts or parts[-1] != "b16":
        _unknown(ins)
    base, offset = _place(gen, a[1] if load else a[0])
    slots = [gen.result(r, 32) if load else gen.operand(r, 32) for r in registers]
    how = len(slots) | (8 if "trans" in parts else 0)
    gen.emit("ldmatrix" if load else "stmatrix", a=base, i=offset, b=gen.list_of(slots), j=how)


def _map_address(ins, gen):
    operands = gen.operand(ins.args[1], 64), gen.operand(ins.args[2], 32)
    gen.emit("mapa", gen.result(ins.args[0], 64), *operands)


def _fence(ins, gen):
    if "proxy.async" in ins.op:
        gen.emit("fence")


#: By the start of an instruction's name, in order.
_LOWERINGS = (
    (_NOTHING, lambda ins, gen: None),
    (_WAITS, _waiting),
    (("wgmma.", "mma.", "ldmatrix", "stmatrix", "movmatrix"), _tensor_core),
    ("shfl", _shuffle),
    (_WARP, _warp),
    ("mbarrier.", _mbarrier),
    (("cp.async.bulk", "cp.reduce.async.bulk"), _bulk),
    ("st.async.", _async_store),
    (("ld.", "st."), _memory),
    (("atom.", "red."), _atomic),
    ("mapa.shared::cluster", _map_address),
    (("fence.", "membar."), _fence),
    ("activemask.b32", lambda ins, gen: gen.emit("activemask", gen.result(ins.args[0], 32))),
    ("trap", lambda ins, gen: gen.emit("trap")),
)
#: The first words of their names, and of a read of a clock.
_HEADS = {"mov"}
for _starts, _ in _LOWERINGS:
    _HEADS |= {start.split(".")[0] for start in ((_starts,) if isinstance(_starts, str) else _starts)}
_CLOCKS = ("%clock", "%clock64", "%globaltimer")


@lru_cache(None)
def _find_lowering(op):
    if op.split(".")[0] in _HEADS:
        for start, function in _LOWERINGS:
            if op.startswith(start):
                return function
    return None


def lower(ins, gen):
    """Emits an instruction with effects; False for arithmetic."""
    if function := _find_lowering(ins.op):
        function(ins, gen)
        return True
    if ins.op.startswith("mov") and ins.args[1] in _CLOCKS:
        width = 64 if "64" in ins.op else 32
        gen.emit(f"mov_{width}", gen.result(ins.args[0], width), gen.constant(0, width))
        return True
    return False
