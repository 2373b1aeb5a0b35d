"""What each arithmetic instruction of PTX is in Python: an expression of its operands."""

COMPARE = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
#: The result's storage by the type's name: f32, words, halves, double words.
KIND = {
    "f32": "f",
    "b32": "u",
    "u32": "u",
    "s32": "u",
    "b64": "q",
    "u64": "q",
    "s64": "q",
    "b16": "h",
    "u16": "h",
    "s16": "h",
    "bf16": "h",
    "f16": "h",
    "pred": "p",
    "f16x2": "u",
    "bf16x2": "u",
}
SIGNED = {"s32": "i", "s64": "l", "s16": "g"}


class Unknown(Exception):
    pass


def _float(op, parts, a, x):
    """Arithmetic on f32; rn and ftz are what numpy does, or as near as makes no difference."""
    for modifier in parts[1:-1]:
        if modifier not in ("rn", "ftz", "approx", "full", "NaN"):
            raise Unknown
    f = [x(y, "f") for y in a[1:]]
    simple = {
        "add": "{0} + {1}",
        "sub": "{0} - {1}",
        "mul": "{0} * {1}",
        "fma": "fma({0}, {1}, {2})",
        "neg": "-{0}",
        "abs": "np.abs({0})",
        "max": "np.fmax({0}, {1})",
        "min": "np.fmin({0}, {1})",
        "ex2": "np.exp2({0})",
        "lg2": "np.log2({0})",
        "rcp": "F32(1) / {0}",
        "rsqrt": "F32(1) / np.sqrt({0})",
        "sqrt": "np.sqrt({0})",
        "div": "{0} / {1}",
        "tanh": "np.tanh({0})",
    }
    if op not in simple:
        raise Unknown
    template = simple[op]
    if "NaN" in parts:
        template = {"max": "np.maximum({0}, {1})", "min": "np.minimum({0}, {1})"}[op]
    return [(a[0], template.format(*f), "f")]


def _packed(op, kind, a, x):
    u = ", ".join(x(y, "u") for y in a[1:])
    function = {
        "add": "lambda a, b: a + b",
        "sub": "lambda a, b: a - b",
        "mul": "lambda a, b: a * b",
        "fma": "lambda a, b, c: a * b + c",
        "max": "np.fmax",
        "min": "np.fmin",
    }
    if op == "neg":
        return [(a[0], f"{u} ^ c_signs", "u")]
    if op == "abs":
        return [(a[0], f"{u} & ~c_signs", "u")]
    if op not in function:
        raise Unknown
    return [(a[0], f"pairs('{kind}', {function[op]}, {u})", "u")]


def _integer(op, parts, a, x):
    kind = parts[-1]
    bits = {"q": 64, "u": 32, "h": 16}[KIND[kind]]
    plain, signed = KIND[kind], SIGNED.get(kind, KIND[kind])
    o = [x(y, plain) for y in a[1:]]
    s = [x(y, signed) for y in a[1:]]
    if op in ("mul", "mad"):
        form = parts[1]
        if form == "wide":
            wide = "I64" if kind in SIGNED else "U64"
            product = f"({s[0]}).astype({wide}) * ({s[1]}).astype({wide})" if bits == 32 else None
            if not product:
                raise Unknown
            product = f"({product}).view(U64)" if kind in SIGNED else product
            return [(a[0], product + (f" + {x(a[3], 'q')}" if op == "mad" else ""), "q")]
        if form == "hi" and kind == "u32":
            return [(a[0], f"mul_hi({o[0]}, {o[1]})", "u")]
        if form == "hi" and kind == "s32":
            return [(a[0], f"(({s[0]}).astype(I64) * ({s[1]}).astype(I64) >> I64(32)).astype(I32).view(U32)", "u")]
        if form == "hi" and kind == "u64":
            return [(a[0], f"mul_hi64({o[0]}, {o[1]})", "q")]
        if form != "lo":
            raise Unknown
        return [(a[0], f"{o[0]} * {o[1]}" + (f" + {o[2]}" if op == "mad" else ""), plain)]
    if op in ("shl", "shr"):
        amount = x(a[2], "u")
        try:
            count = int(a[2], 0)
        except ValueError:
            count = -1
        if 0 <= count < bits:
            value = f"{o[0]} << {x(a[2], plain)}" if op == "shl" else f"{s[0]} >> {x(a[2], signed)}"
        else:
            value = f"shift_left({o[0]}, {amount}, {bits})" if op == "shl" else f"shift_right({s[0]}, {amount}, {bits})"
        return [
            (
                a[0],
                value
                if signed == plain or op == "shl"
                else f"({value}).view({'U32' if bits == 32 else 'U64' if bits == 64 else 'U16'})",
                plain,
            )
        ]
    binary = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
    back = {"u": "U32", "q": "U64", "h": "U16"}[plain]
    if op in binary:
        if parts[1:-1]:
            raise Unknown
        return [(a[0], f"{o[0]} {binary[op]} {o[1]}", plain)]
    if op in ("min", "max"):
        return [(a[0], f"np.{op}imum({s[0]}, {s[1]}).view({back})", plain)]
    if op in ("div", "rem"):
        return [(a[0], f"{'divide' if op == 'div' else 'remainder'}({s[0]}, {s[1]}).view({back})", plain)]
    if op == "not":
        return [(a[0], f"~{o[0]}", plain)]
    if op == "neg":
        return [(a[0], f"(~{o[0]}) + {x('1', plain)}", plain)]
    if op == "abs":
        return [(a[0], f"np.abs({s[0]}).view({back})", plain)]
    if bits == 32 and op == "bfe":
        return [(a[0], f"bit_field({o[0]}, {x(a[2], 'u')}, {x(a[3], 'u')}, {kind in SIGNED})", "u")]
    if kind == "u64" and op == "bfe" and all(y.isdigit() for y in a[2:]) and int(a[2]) + int(a[3]) <= 64:
        return [(a[0], f"({o[0]} >> {x(a[2], 'q')}) & {x(str((1 << int(a[3])) - 1), 'q')}", "q")]
    if bits == 32 and op in ("popc", "clz", "brev"):
        return [(a[0], f"{ {'popc': 'popcount', 'clz': 'leading_zeros', 'brev': 'reverse_bits'}[op] }({o[0]})", "u")]
    if bits == 32 and op == "prmt" and len(a) == 4:
        return [(a[0], f"permute_bytes({', '.join(o)})", "u")]
    raise Unknown


def _predicate(op, a, x):
    o = [x(y, "p") for y in a[1:]]
    binary = {"and": "&", "or": "|", "xor": "^"}
    if op == "not":
        return [(a[0], f"~{o[0]}", "p")]
    if op not in binary:
        raise Unknown
    return [(a[0], f"{o[0]} {binary[op]} {o[1]}", "p")]


def _setp(parts, a, x):
    compare, kind = parts[1], parts[-1]
    extra = parts[2:-1]
    combine = extra[0] if extra and extra[0] in ("and", "or", "xor") else None
    if set(extra) - {"ftz", combine}:
        raise Unknown
    k = SIGNED.get(kind, KIND[kind])
    left, r = x(a[1], k), x(a[2], k)
    if kind == "f32" and compare in ("num", "nan"):
        value = f"np.isnan({left}) | np.isnan({r})"
        value = f"~({value})" if compare == "num" else value
    elif kind == "f32" and compare.endswith("u") and compare[:-1] in COMPARE:
        opposite = {"eq": "!=", "ne": "==", "lt": ">=", "le": ">", "gt": "<=", "ge": "<"}[compare[:-1]]
        value = (
            f"({left} == {left}) & ({r} == {r}) & ({left} == {r})" if compare == "neu" else f"~({left} {opposite} {r})"
        )
        if compare == "neu":
            value = f"{left} != {r}"
        if compare == "equ":
            value = f"({left} == {r}) | ({left} != {left}) | ({r} != {r})"
    elif kind == "f32" and compare == "ne":
        value = f"({left} < {r}) | ({left} > {r})"
    elif kind in ("f32", *KIND) and kind not in ("f16", "bf16", "f16x2", "bf16x2"):
        value = f"{left} {COMPARE[compare]} {r}"
    else:
        raise Unknown
    if combine:
        negated = a[3].startswith("!")
        third = x(a[3].lstrip("!"), "p")
        value = f"({value}) { {'and': '&', 'or': '|', 'xor': '^'}[combine] } {'~' if negated else ''}{third}"
    if "|" in a[0]:
        raise Unknown
    return [(a[0], value, "p")]


def _mov(parts, a, x, gen):
    kind = parts[-1]
    if a[1].startswith("{"):
        values = gen.vector(a[1])
        if kind == "b32" and len(values) == 2:
            return [(a[0], f"pack({x(values[1], 'h')}.astype(U32), {x(values[0], 'h')}.astype(U32))", "u")]
        if kind == "b64" and len(values) == 2:
            return [(a[0], f"{x(values[0], 'u')}.astype(U64) | ({x(values[1], 'u')}.astype(U64) << U64(32))", "q")]
        raise Unknown
    if a[0].startswith("{"):
        low, high = gen.vector(a[0])
        if kind == "b32":
            parts = (f"{x(a[1], 'u')}.astype(U16)", f"({x(a[1], 'u')} >> U32(16)).astype(U16)", "h")
        elif kind == "b64":
            parts = (f"{x(a[1], 'q')}.astype(U32)", f"({x(a[1], 'q')} >> U64(32)).astype(U32)", "u")
        else:
            raise Unknown
        return [(d, value, parts[2]) for d, value in ((low, parts[0]), (high, parts[1])) if d != "_"]
    stored = gen.kind_of(a[0])
    return [(a[0], x(a[1], stored), stored)]


def _cvt(parts, a, x):
    to, source = parts[-2:]
    modifiers = parts[1:-2]
    if "sat" in modifiers or "relu" in modifiers:
        raise Unknown
    if to in ("bf16x2", "f16x2") and source == "f32":
        bits = f"{to[:-2]}_bits"
        return [(a[0], f"pack({bits}({x(a[1], 'f')}), {bits}({x(a[2], 'f')}))", "u")]
    if to in ("bf16", "f16") and source == "f32":
        return [(a[0], f"{to}_bits({x(a[1], 'f')}).astype(U16)", "h")]
    if to == "f32" and source == "bf16":
        return [(a[0], f"({x(a[1], 'h')}.astype(U32) << U32(16)).view(F32)", "f")]
    if to == "f32" and source == "f16":
        return [(a[0], f"{x(a[1], 'h')}.view(F16).astype(F32)", "f")]
    if to == "f32" and source in KIND and source not in ("f32", "pred"):
        return [(a[0], f"{x(a[1], SIGNED.get(source, KIND[source]))}.astype(F32)", "f")]
    dtypes = {"u16": "U16", "u32": "U32", "u64": "U64", "s16": "np.int16", "s32": "I32", "s64": "I64"}
    if source == "f32" and to in dtypes and modifiers:
        return [
            (a[0], f"to_integer({x(a[1], 'f')}, {dtypes[to]}, '{modifiers[0]}').view({dtypes['u' + to[1:]]})", KIND[to])
        ]
    if to in dtypes and source in dtypes:
        value = f"{x(a[1], SIGNED.get(source, KIND[source]))}.astype({dtypes[to]})"
        return [(a[0], value if to[0] == "u" else f"{value}.view({dtypes['u' + to[1:]]})", KIND[to])]
    raise Unknown


def translate(ins, gen):
    """The registers that an instruction writes: (name, expression, kind of storage). Raises Unknown."""
    parts, a, x = ins.op.split("."), ins.args, gen.operand
    op, kind = parts[0], parts[-1]
    if op == "setp":
        return _setp(parts, a, x)
    if op == "selp":
        k = KIND.get(kind, None)
        stored = gen.kind_of(a[0]) if k in ("u", "f") else k
        return [(a[0], f"np.where({x(a[3], 'p')}, {x(a[1], stored)}, {x(a[2], stored)})", stored)]
    if op == "mov":
        return _mov(parts, a, x, gen)
    if op == "cvt":
        return _cvt(parts, a, x)
    if op == "cvta":
        return [(a[0], x(a[1], "q"), "q")]
    if kind == "f32":
        return _float(op, parts, a, x)
    if kind in ("f16x2", "bf16x2"):
        return _packed(op, kind, a, x)
    if kind == "pred":
        return _predicate(op, a, x)
    if kind in KIND and kind not in ("f16", "bf16"):
        return _integer(op, parts, a, x)
    raise Unknown
