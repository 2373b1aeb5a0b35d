"""Instructions with effects beyond registers of the own lane, as calls of the warp's methods."""

import re

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


def _memory(ins, gen, mask):
    parts = ins.op.split(".")
    known = {
        "ld",
        "st",
        "global",
        "shared",
        "shared::cta",
        "param",
        "nc",
        "volatile",
        "relaxed",
        "weak",
        "L1::no_allocate",
        "L1::evict_last",
        "L2::128B",
        "L2::256B",
        "v2",
        "v4",
        "v8",
        "acquire",
        "release",
        "gpu",
        "cluster",
        "cta",
        "sys",
        "shared::cluster",
    }
    unknown = set(parts[:-1]) - known
    if unknown:
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
    kind, size = parts[-1], int(re.sub(r"\D", "", parts[-1])) // 8
    load = parts[0] == "ld"
    address, registers = (ins.args[1], parse_vector(ins.args[0])) if load else (ins.args[0], parse_vector(ins.args[1]))
    base, offset = parse_address(address)
    if "param" in parts:
        if base in gen.params:
            offset += gen.params[base].offset
        else:
            raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
        k = {8: "q", 4: "u", 2: "h", 1: "h"}[size]
        values = [f"w.param({offset + i * size}, {size}, '{kind[0]}')" for i in range(len(registers))]
        return "; ".join(gen.assign(r, v, k, mask) for r, v in zip(registers, values))
    space = (
        "cluster_memory"
        if "shared::cluster" in parts
        else "shared"
        if "shared" in parts or "shared::cta" in parts
        else "memory"
    )
    k = {8: "q", 4: "u", 2: "h", 1: "h"}[size]
    where = f"w, {mask}, {gen.operand(base, 'q')}, {offset}, {size}, {len(registers)}, {ins.line}"
    if load:
        extend = ", signed=True" if kind[0] == "s" and size < 4 else ""
        # Into a wider register, where the sign is extended.
        widens = kind == "s32" and gen.kind_of(registers[0]) == "q"
        value, k = ("L[{}].view(I32).astype(I64).view(U64)", "q") if widens else ("L[{}]", k)
        return f"L = w.{space}.load({where}{extend}); " + "; ".join(
            gen.assign(r, value.format(i), k, mask) for i, r in enumerate(registers)
        )
    values = ", ".join(gen.operand(r, k) for r in registers)
    return f"w.{space}.store({where}, ({values},))"


def _async_store(ins, gen, mask):
    parts = ins.op.split(".")
    if parts[-1] not in ("b32", "f32", "u32", "s32") or "complete_tx::bytes" not in ins.op:
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")

    def where(text):
        return f"({gen.operand(parse_address(text)[0], 'q')}, {parse_address(text)[1]})"

    values = ", ".join(gen.operand(r, "u") for r in parse_vector(ins.args[1]))
    return f"w.async_store({mask}, {where(ins.args[0])}, ({values},), {where(ins.args[2])}, {ins.line})"


def _atomic(ins, gen, mask):
    parts = ins.op.split(".")
    kind = parts[-1]
    if kind not in ("u32", "s32", "b32", "f32", "u64", "b64"):
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
    operation = [p for p in parts[1:-1] if p in ("add", "max", "min", "exch", "or", "and", "cas", "inc", "dec")][0]
    space = "shared" if any(p.startswith("shared") for p in parts) else "memory"
    atom = parts[0] == "atom"
    base, offset = parse_address(ins.args[1 if atom else 0])
    k = {"f32": "f", "s32": "i", "u64": "q", "b64": "q"}.get(kind, "u")
    values = ", ".join(gen.operand(a, k) for a in ins.args[2 if atom else 1 :])
    call = f"w.{space}.atomic(w, {mask}, {gen.operand(base, 'q')}, {offset}, '{operation}', ({values},), {ins.line})"
    if not atom:
        return call
    return gen.assign(ins.args[0], call, "u" if k == "i" else k, mask)


def _shuffle(ins, gen, mask):
    mode = ins.op.split(".")[2]
    target, value, b, c, members = ins.args
    _mask_is_full(ins, members)
    target, _, valid = target.partition("|")
    call = f"w.shuffle('{mode}', {gen.operand(value, 'u')}, {gen.operand(b, 'u')}, {gen.operand(c, 'u')})"
    text = f"S, V = {call}; " + gen.assign(target, "S", "u", mask)
    return text + ("; " + gen.assign(valid, "V", "p", mask) if valid else "")


def _warp(ins, gen, mask):
    op, a, parts = ins.op, ins.args, ins.op.split(".")
    if op == "bar.warp.sync":
        _mask_is_full(ins, a[0])
        return f"w.sync_warp({ins.line})"
    if op == "elect.sync":
        _mask_is_full(ins, a[1])
        leader, _, predicate = a[0].partition("|")
        return (
            gen.assign(predicate, "w.first_lane", "p", mask)
            + "; "
            + gen.assign(leader, gen.constant(0, "u"), "u", mask)
        )
    if op.startswith("redux.sync"):
        k = "i" if parts[-1] == "s32" else "u"
        return gen.assign(a[0], f"w.reduce('{parts[2]}', {gen.operand(a[1], k)}, {gen.operand(a[2], 'u')})", "u", mask)
    if op.startswith("vote.sync"):
        _mask_is_full(ins, a[2])
        return gen.assign(
            a[0], f"w.vote('{parts[2]}', {gen.operand(a[1], 'p')})", "u" if parts[2] == "ballot" else "p", mask
        )
    if op.startswith(("barrier.cluster.arrive",)):
        return f"w.cluster_arrive({'relaxed' in parts}, {ins.line})"
    if op.startswith(("bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive")):
        return f"w.bar_arrive({gen.operand(a[0], 'u')}, {gen.operand(a[1], 'u')}, {ins.line})"
    raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")


def _waiting(ins, gen, mask):
    op, a, parts = ins.op, ins.args, ins.op.split(".")
    if op.startswith("mbarrier.try_wait.parity"):
        where = gen.operand(parse_address(a[1])[0], "q"), parse_address(a[1])[1]
        p = gen.number(a[0])
        gen.kind_of(a[0])
        return f"w.try_wait({mask}, {p}, {where[0]}, {where[1]}, {gen.operand(a[2], 'u')}, {ins.line})"
    if op.startswith("barrier.cluster.wait"):
        return f"w.cluster_wait({ins.line})"
    if op.startswith("cp.async.bulk.wait_group"):
        return f"w.bulk_wait({mask}, {int(a[0])}, {'read' in parts}, {ins.line})"
    if op.startswith("setmaxnreg"):
        return f"w.set_registers('{parts[1]}', {int(a[0])}, {ins.line})"
    count = gen.operand(a[1], "u") if len(a) > 1 else None
    return f"w.bar_sync({gen.operand(a[0], 'u')}, {count}, {ins.line})"


def _mbarrier(ins, gen, mask):
    a, parts = ins.args, ins.op.split(".")
    if parts[1] == "init":
        base, offset = parse_address(a[0])
        return f"w.barrier_init({mask}, {gen.operand(base, 'q')}, {offset}, {gen.operand(a[1], 'u')}, {ins.line})"
    if parts[1] == "inval":
        base, offset = parse_address(a[0])
        return f"w.barrier_inval({mask}, {gen.operand(base, 'q')}, {offset}, {ins.line})"
    if parts[1] not in ("arrive", "expect_tx") or "noComplete" in parts:
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
    arrive = parts[1] == "arrive"
    args = a[1:] if arrive else a
    base, offset = parse_address(args[0])
    amount = (
        gen.operand(args[1], "u")
        if len(args) > 1
        else gen.constant(1 if arrive and "expect_tx" not in parts else 0, "u")
    )
    expects = "expect_tx" in parts
    arrivals, bytes_ = (gen.constant(1 if arrive else 0, "u"), amount) if expects else (amount, gen.constant(0, "u"))
    call = (
        f"w.arrive({mask}, {gen.operand(base, 'q')}, {offset}, {arrivals}, {bytes_}, "
        f"{'shared::cluster' in parts}, {'relaxed' in parts}, {ins.line})"
    )
    if arrive and a[0] != "_":
        return call + "; " + gen.assign(a[0], gen.constant(0, "q"), "q", mask)
    return call


def _bulk(ins, gen, mask):
    op, a, parts = ins.op, ins.args, ins.op.split(".")
    if op == "cp.async.bulk.commit_group":
        return f"w.bulk_commit({mask}, {ins.line})"

    def where(text):
        return f"({gen.operand(parse_address(text)[0], 'q')}, {parse_address(text)[1]})"

    if "tensor" in parts:
        if (
            not {"tile"} & set(parts)
            and any(p in parts for p in ("im2col", "gather4", "scatter4"))
            or "multicast::cluster" in parts
            or "prefetch" in parts
        ):
            raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
        to_shared = parts.index("global") > min(i for i, p in enumerate(parts) if p.startswith("shared"))
        tensor = a[1] if to_shared else a[0]
        descriptor, coordinates = tensor.strip()[1:-1].split(",", 1)
        coordinates = ", ".join(gen.operand(c, "i") for c in parse_vector(coordinates.strip()))
        shared = a[0] if to_shared else a[1]
        barrier = where(a[2]) if to_shared else None
        return (
            f"w.tensor_copy({mask}, {to_shared}, {gen.operand(descriptor.strip(), 'q')}, "
            f"({coordinates},), {where(shared)}, {barrier}, {ins.line})"
        )
    first = min(i for i, p in enumerate(parts) if p.startswith(("shared", "global")))
    target, source = parts[first], parts[first + 1]
    bulk_group = "bulk_group" in parts
    barrier = None if bulk_group else where(a[3])
    reduce = "reduce" in parts
    if reduce:
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
    return (
        f"w.bulk_copy({mask}, '{target}', '{source}', {where(a[0])}, {where(a[1])}, "
        f"{gen.operand(a[2], 'u')}, {barrier}, {ins.line})"
    )


def _tensor_core(ins, gen, mask):
    op, a, parts = ins.op, ins.args, ins.op.split(".")

    def numbers(text):
        return "(" + "".join(f"{gen.number(r)}, " for r in parse_vector(text)) + ")"

    if op.startswith("wgmma.fence"):
        return f"w.wgmma_fence({ins.line})"
    if op.startswith("wgmma.commit_group"):
        return f"w.wgmma_commit({ins.line})"
    if op.startswith("wgmma.wait_group"):
        return f"w.wgmma_wait({int(a[0])}, {ins.line})"
    if op.startswith("wgmma.mma_async.sync.aligned."):
        shape, result, left, right = parts[4], parts[5], parts[6], parts[7]
        for r in parse_vector(a[0]):
            gen.kind_of(r)
        registers = a[1].startswith("{")
        source = (
            "(" + ", ".join(gen.operand(r, "u") for r in parse_vector(a[1])) + ")"
            if registers
            else gen.operand(a[1], "q")
        )
        which = numbers(a[1]) if registers else None
        flags = ", ".join(f"{int(x)}" for x in a[4:])
        return (
            f"w.wgmma('{shape}', '{result}', '{left}', '{right}', {numbers(a[0])}, {source}, "
            f"{which}, {gen.operand(a[2], 'q')}, {gen.operand(a[3], 'p')}, ({flags}), "
            f"{ins.line})"
        )
    if op.startswith("mma.sync.aligned."):
        d, A, B, c = (parse_vector(x) for x in a)

        def words(v, k):
            return "(" + ", ".join(gen.operand(r, k) for r in v) + ",)"

        call = f"L = w.mma('{op}', {words(A, 'u')}, {words(B, 'u')}, {words(c, 'f')}, {ins.line}); "
        return call + "; ".join(gen.assign(r, f"L[{i}]", "f", mask) for i, r in enumerate(d))
    if op.startswith("movmatrix.sync.aligned.m8n8.trans.b16"):
        return gen.assign(a[0], f"w.movmatrix({gen.operand(a[1], 'u')})", "u", mask)
    load = op.startswith("ldmatrix")
    registers = parse_vector(a[0] if load else a[1])
    base, offset = parse_address(a[1] if load else a[0])
    if "m8n8" not in parts or parts[-1] != "b16":
        raise EmulationError(f"line {ins.line}: no emulation of {ins.text}")
    where = f"{gen.operand(base, 'q')}, {offset}, {'trans' in parts}, {ins.line}"
    if load:
        return f"L = w.ldmatrix({len(registers)}, {where}); " + "; ".join(
            gen.assign(r, f"L[{i}]", "u", mask) for i, r in enumerate(registers)
        )
    return f"w.stmatrix(({', '.join(gen.operand(r, 'u') for r in registers)},), {where})"


def translate(ins, gen, mask):
    """The statement for an instruction with effects, or None for arithmetic."""
    op, a = ins.op, ins.args
    if op.startswith(_NOTHING):
        return "pass"
    if op.startswith(_WAITS):
        return _waiting(ins, gen, mask)
    if op.startswith(("wgmma.", "mma.", "ldmatrix", "stmatrix", "movmatrix")):
        return _tensor_core(ins, gen, mask)
    if op.startswith("shfl"):
        return _shuffle(ins, gen, mask)
    if op.startswith(_WARP):
        return _warp(ins, gen, mask)
    if op.startswith("mbarrier."):
        return _mbarrier(ins, gen, mask)
    if op.startswith(("cp.async.bulk", "cp.reduce.async.bulk")):
        return _bulk(ins, gen, mask)
    if op.startswith("st.async."):
        return _async_store(ins, gen, mask)
    if op.startswith(("ld.", "st.")):
        return _memory(ins, gen, mask)
    if op.startswith(("atom.", "red.")):
        return _atomic(ins, gen, mask)
    if op.startswith("mapa.shared::cluster"):
        return gen.assign(
            a[0], f"w.map_address({gen.operand(a[1], 'q')}, {gen.operand(a[2], 'u')}, {ins.line})", "q", mask
        )
    if op.startswith(("fence.", "membar.")):
        return f"w.fence({mask}, '{op}', {ins.line})"
    if op == "activemask.b32":
        return gen.assign(a[0], f"w.active({mask})", "u", mask)
    if op == "trap":
        return f"w.trap({ins.line})"
    if op.startswith("mov") and a[1] in ("%clock", "%clock64", "%globaltimer"):
        return gen.assign(a[0], gen.constant(0, "q" if "64" in op else "u"), "q" if "64" in op else "u", mask)
    return None
