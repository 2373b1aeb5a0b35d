"""What each arithmetic instruction of PTX is in the engine."""

#: Comparisons, as Arithmetic.cpp numbers them.
COMPARE = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5, "lo": 2, "ls": 3, "hi": 4, "hs": 5, "nan": 6}
#: Those that hold for what is no number: the negation of another.
UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "num": "nan"}
#: The width of a type of PTX.
WIDTH = {
    **{f"{kind}{width}": width for kind in "bus" for width in (16, 32, 64)},
    **{"f32": 32, "f64": 64, "pred": 1, "f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32},
}


class Unknown(Exception):
    pass


def _emit(gen, name, result, operands, i=0, j=0):
    """An operation on operands (text, width), whose result (text, width) is written."""
    slots = [gen.operand(*o) for o in operands]
    a, b, c = (slots + [0, 0, 0])[:3]
    gen.emit(name, d=gen.result(*result), a=a, b=b, c=c, i=i, j=j)


def _float(gen, op, parts, a):
    """Arithmetic on f32 and f64; rn and ftz are what the engine does, or as near as makes no difference."""
    kind = parts[-1]
    if set(parts[1:-1]) - ({"rn"} if kind == "f64" else {"rn", "ftz", "approx", "full", "NaN"}):
        raise Unknown
    name = f"{op}nan_{kind}" if "NaN" in parts else f"{op}_{kind}"
    _emit(gen, name, (a[0], WIDTH[kind]), [(x, WIDTH[kind]) for x in a[1:]])


def _packed(gen, op, kind, a):
    name = f"{op}_pair" if op in ("neg", "abs") else f"{op}_{kind}"
    _emit(gen, name, (a[0], 32), [(x, 32) for x in a[1:]])


def _multiply(gen, op, parts, a):
    form, kind = parts[1], parts[-1]
    width, wide = WIDTH[kind], "s32" if kind == "s32" else "u32"
    if form == "wide" and width == 32:
        operands = [(a[1], 32), (a[2], 32)] + ([(a[3], 64)] if op == "mad" else [])
        _emit(gen, f"{op}_wide_{wide}", (a[0], 64), operands)
    elif form == "wide" and kind == "u16" and op == "mul":
        _emit(gen, "mul_wide_u16", (a[0], 32), [(a[1], 16), (a[2], 16)])
    elif form == "hi" and op == "mul":
        _emit(gen, f"mul_hi_{kind}", (a[0], width), [(x, width) for x in a[1:]])
    elif form == "lo":
        _emit(gen, f"{op}_{width}", (a[0], width), [(x, width) for x in a[1:]])
    else:
        raise Unknown


def _integer(gen, op, parts, a):
    kind = parts[-1]
    width = WIDTH[kind]
    signed = f"{'s' if kind[0] == 's' else 'u'}{width}"
    operands = [(x, width) for x in a[1:]]
    if op in ("mul", "mad"):
        _multiply(gen, op, parts, a)
    elif op in ("shl", "shr"):
        _emit(gen, f"shl_{width}" if op == "shl" else f"shr_{signed}", (a[0], width), [(a[1], width), (a[2], 32)])
    elif op in ("min", "max"):
        _emit(gen, f"{op}_{signed}", (a[0], width), operands)
    elif op in ("div", "rem"):
        _emit(gen, f"div_{signed}", (a[0], width), operands, j=op == "rem")
    elif op == "abs":
        _emit(gen, f"abs_s{width}", (a[0], width), operands)
    elif op == "bfe" and width == 32:
        _emit(gen, f"bfe_{signed}", (a[0], 32), operands)
    elif op == "bfe" and kind == "u64" and all(x.isdigit() for x in a[2:]) and int(a[2]) + int(a[3]) <= 64:
        _emit(gen, "bfe_u64", (a[0], 64), operands[:1], i=int(a[2]), j=int(a[3]))
    elif op in ("add", "sub", "and", "or", "xor", "not", "neg", "popc", "clz", "brev") and not parts[1:-1]:
        _emit(gen, f"{op}_{width}", (a[0], width), operands)
    elif op == "prmt" and len(a) == 4:
        _emit(gen, "prmt_32", (a[0], 32), operands)
    else:
        raise Unknown


def _setp(gen, parts, a):
    compare, kind = parts[1], parts[-1]
    extra = parts[2:-1]
    combine = extra[0] if extra and extra[0] in ("and", "or", "xor") else None
    if set(extra) - {"ftz", combine} or "|" in a[0] or kind in ("f16", "bf16", "f16x2", "bf16x2", "pred"):
        raise Unknown
    negated, third = 0, None
    if kind in ("f32", "f64") and compare in UNORDERED:
        compare, negated = UNORDERED[compare], 8
    if kind not in ("f32", "f64") and compare == "nan":
        raise Unknown
    # A number that is not equal is less or greater; one that is no number is none of these.
    how, width = COMPARE[compare], WIDTH[kind]
    operands = [(a[1], width), (a[2], width)]
    flags = negated
    if combine:
        third = a[3].strip()
        flags |= {"and": 1, "or": 2, "xor": 3}[combine] | (4 if third.startswith("!") else 0)
        operands.append((third.lstrip("!"), 1))
    name = f"setp_{kind}" if kind[0] == "f" else f"setp_{'s' if kind[0] == 's' else 'u'}{width}"
    _emit(gen, name, (a[0], 1), operands, i=how, j=flags)


def _mov(gen, parts, a):
    kind = parts[-1]
    half = {"b32": 16, "b64": 32}.get(kind)
    if a[1].startswith("{"):
        low, high = gen.vector(a[1])
        _emit(gen, f"pack_{2 * half}", (a[0], 2 * half), [(low, half), (high, half)])
    elif a[0].startswith("{"):
        for name, register in zip(("low", "high"), gen.vector(a[0])):
            if register != "_":
                _emit(gen, f"{name}_{2 * half}", (register, half), [(a[1], 2 * half)])
    else:
        width = gen.width_of(a[0])
        _emit(gen, f"mov_{width}", (a[0], width), [(a[1], width)])


def _cvt(gen, parts, a):
    to, source = parts[-2:]
    modifiers = parts[1:-2]
    integers = ("u16", "u32", "u64", "s16", "s32", "s64")
    if "sat" in modifiers or "relu" in modifiers:
        raise Unknown
    if to in ("bf16x2", "f16x2") and source == "f32":
        _emit(gen, f"pack_{to[:-2]}", (a[0], 32), [(a[1], 32), (a[2], 32)])
    elif source == "f32" and to in integers and modifiers:
        rounding = ("rni", "rzi", "rmi", "rpi").index(modifiers[0])
        _emit(gen, f"cvt_{to}_f32", (a[0], WIDTH[to]), [(a[1], 32)], i=rounding)
    elif source in integers and to in integers:
        # A wider register has zeros in front.
        _emit(gen, f"cvt_{WIDTH[to]}_{source}", (a[0], WIDTH[to]), [(a[1], WIDTH[source])])
    else:
        _emit(gen, f"cvt_{to}_{source}", (a[0], WIDTH[to]), [(a[1], WIDTH[source])])


def lower(ins, gen):
    """Emits an arithmetic instruction. Raises Unknown, KeyError or IndexError where there is none."""
    parts, a = ins.op.split("."), ins.args
    op, kind = parts[0], parts[-1]
    if op == "setp":
        _setp(gen, parts, a)
    elif op == "selp":
        width = WIDTH[kind]
        _emit(gen, f"selp_{width}", (a[0], width), [(a[1], width), (a[2], width), (a[3], 1)])
    elif op == "mov":
        _mov(gen, parts, a)
    elif op == "cvt":
        _cvt(gen, parts, a)
    elif op == "cvta":
        _emit(gen, "mov_64", (a[0], 64), [(a[1], 64)])
    elif kind in ("f32", "f64"):
        _float(gen, op, parts, a)
    elif kind in ("f16x2", "bf16x2"):
        _packed(gen, op, kind, a)
    elif kind == "pred":
        if op not in ("not", "and", "or", "xor"):
            raise Unknown
        _emit(gen, f"{op}_1", (a[0], 1), [(x, 1) for x in a[1:]])
    elif kind in WIDTH and kind not in ("f16", "bf16"):
        _integer(gen, op, parts, a)
    else:
        raise Unknown
