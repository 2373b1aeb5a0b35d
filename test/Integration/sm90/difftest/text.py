"""A program of program.py as MLIR text: the gdn_tile.program and the function that launches it."""

from .program import Loop

STEP = "gdn_tile.step"


def tile_type(shape, dtype):
    return f"tensor<{'x'.join(map(str, [*shape, dtype]))}>"


def quoted(names):
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def schedule_text(schedule):
    roles = []
    for role in schedule.roles:
        text = (f'<name = "{role.name}", warps = {role.warps}, registers = {role.registers}, '
                f'steps = {quoted(role.steps)}')
        for key, value in role.options.items():
            shown = quoted(value) if isinstance(value, list) else str(value).lower()
            text += f", {key} = {shown}"
        roles.append(text + ">")
    channels = [f'<name = "{c.name}", depth = {c.depth}, from = {quoted(c.sources)}, to = {quoted(c.to)}'
                + (", slot_per_chunk = true>" if c.per_chunk else ">") for c in schedule.channels]
    persistent = "persistent = true, " if schedule.persistent else ""
    return (f"#gdn_warp.schedule<chunks_per_iteration = {schedule.chunks}, v_tiles = {schedule.v_tiles}, {persistent}"
            "roles = [\n  " + ",\n  ".join(roles) + "],\n  channels = [" + ",\n  ".join(channels) + "]>")


class Writer:
    """Writes one program."""

    def __init__(self, program):
        self.program, self.lines, self.constants = program, [], {}
        self.sizes = program.sizes()
        self.token_input = next((a for a in program.inputs() if "T" in a.dims), None)

    def extents(self, array):
        known = lambda dim: not self.program.is_dynamic(dim) or (dim == "T" and self.token_input is None)
        return [str(self.sizes.get(dim, dim)) if known(dim) else "?" for dim in array.dims]

    def tensor(self, array):
        return f"tensor<{'x'.join([*self.extents(array), array.dtype])}>"

    def memref(self, array):
        strides = ", ".join(["?"] * (len(array.dims) - 1) + ["1"])
        return f"memref<{'x'.join([*self.extents(array), array.dtype])}, strided<[{strides}], offset: ?>>"

    def index(self, number):
        self.constants[number] = f"%number{number} = arith.constant {number} : index"
        return f"%number{number}"

    def emit(self, line):
        self.lines.append(line)

    def offset(self, place, loop):
        """The SSA name of an offset of a load or store."""
        if isinstance(place, int):
            return self.index(place)
        return {"batch": "%batch", "n": "%n", "h": "%h", "half h": "%hq", "v": "%v0", "t": f"%t{loop}",
                "c": f"%chunk{loop}"}[place]

    def access(self, op, loop):
        array = self.program.array(op.facts["array"])
        offsets = ", ".join(self.offset(place, loop) for place in op.facts["at"])
        end = f" until(%end, dim = {op.facts['end']})" if op.facts.get("end") is not None else ""
        return f"%{array.name}[{offsets}] axes {op.facts['axes']}{end} {self.label(op)}", self.memref(array)

    @staticmethod
    def label(op):
        return f'{{{STEP} = "{op.step}"}}'

    def op(self, op, loop):
        """Writes an op; `loop` is the number of the loop that it stands in."""
        kind, made = op.kind, tile_type(op.shape, op.dtype)
        taken = ["%" + self.alias.get(name, name) for name in op.operands]
        if kind == "load":
            place, memref = self.access(op, loop)
            self.emit(f"%{op.result} = gdn_tile.load {place} : {memref} -> {made}")
        elif kind == "store":
            place, memref = self.access(op, loop)
            self.emit(f"gdn_tile.store {taken[0]}, {place} : {made} -> {memref}")
        elif kind == "constant":
            self.emit(f"%{op.result} = arith.constant {self.label(op)} dense<{op.facts['value']:.8e}> : {made}")
        elif kind in ("extf", "truncf"):
            source = tile_type(op.shape, op.facts["from"])
            self.emit(f"%{op.result} = arith.{kind} {taken[0]} {self.label(op)} : {source} to {made}")
        elif kind in ("exp2", "negf"):
            dialect = "math" if kind == "exp2" else "arith"
            self.emit(f"%{op.result} = {dialect}.{kind} {taken[0]} {self.label(op)} : {made}")
        elif kind in ("addf", "subf", "mulf", "maximumf", "minimumf"):
            flags = " fastmath<contract>" if op.facts.get("contract") else ""
            self.emit(f"%{op.result} = arith.{kind} {', '.join(taken)}{flags} {self.label(op)} : {made}")
        elif kind == "scan":
            reverse = " reverse" if op.facts["reverse"] else ""
            self.emit(f"%{op.result} = gdn_tile.scan {taken[0]} axis {op.facts['axis']}{reverse} {self.label(op)} "
                      f": {made}")
        elif kind == "causal":
            strict = "strict " if op.facts["strict"] else ""
            self.emit(f"%{op.result} = gdn_tile.causal {strict}{taken[0]} {self.label(op)} : {made}")
        elif kind == "diagonal":
            source = tile_type(op.shape * 2, op.dtype)
            self.emit(f"%{op.result} = gdn_tile.diagonal {taken[0]} {self.label(op)} : {source} -> {made}")
        else:
            getattr(self, kind)(op, taken, made)

    def broadcast(self, op, taken, made):
        dim = op.facts["dim"]
        source = tile_type([op.shape[1 - dim]], op.dtype)
        self.emit(f"%{op.result}_empty = tensor.empty() {self.label(op)} : {made}")
        self.emit(f"%{op.result} = linalg.broadcast ins({taken[0]} : {source}) outs(%{op.result}_empty : {made}) "
                  f"dimensions = [{dim}] {self.label(op)}")

    def reduce(self, op, taken, made):
        source = tile_type(op.facts["source"], op.dtype)
        self.emit(f"%{op.result}_zero = arith.constant {self.label(op)} dense<0.0> : {made}")
        self.emit(f"%{op.result} = linalg.reduce {{ arith.addf }} ins({taken[0]} : {source}) "
                  f"outs(%{op.result}_zero : {made}) dimensions = [{op.facts['dim']}] {self.label(op)}")

    def row(self, op, taken, made):
        columns = op.shape[0]
        source = tile_type(op.facts["source"], op.dtype)
        self.emit(f"%{op.result} = tensor.extract_slice {taken[0]}[{op.facts['row']}, 0] [1, {columns}] [1, 1] "
                  f"{self.label(op)} : {source} to {made}")

    def contract(self, op, taken, made):
        (m, n), k = op.shape, op.facts["depth"]
        left = "(d2, d0)" if op.facts["transpose_left"] else "(d0, d2)"
        right = "(d1, d2)" if op.facts["transpose_right"] else "(d2, d1)"
        maps = ", ".join(f"affine_map<(d0, d1, d2) -> {results}>" for results in (left, right, "(d0, d1)"))
        a = tile_type([k, m] if op.facts["transpose_left"] else [m, k], op.facts["from"])
        b = tile_type([n, k] if op.facts["transpose_right"] else [k, n], op.facts["from"])
        self.emit(f"%{op.result} = linalg.contract indexing_maps = [{maps}] {self.label(op)} "
                  f"ins({taken[0]}, {taken[1]} : {a}, {b}) outs({taken[2]} : {made}) -> {made}")

    def loop(self, loop, number):
        """Writes a loop: over tokens, or back from the last chunk."""
        step, chunk = self.index(self.program.chunk), f"%chunk{number}"
        results = f"%loop{number}" + (f":{len(loop.carried)}" if len(loop.carried) > 1 else "")
        head = f"{results} = " if loop.carried else ""
        kinds = []
        for argument, init, _, result in loop.carried:
            kinds.append(self.types[init])
            self.types[argument] = self.types[result] = self.types[init]
        carried = ""
        if loop.carried:
            inits = ", ".join(f"%{argument} = %{self.alias.get(init, init)}" for argument, init, _, _ in loop.carried)
            carried = f" iter_args({inits}) -> ({', '.join(kinds)})"
        if loop.counted:
            self.emit(f"{head}scf.for {chunk} = {self.index(0)} to %chunks step {self.index(1)}{carried} {{")
            self.emit(f"%from{number} = arith.muli {chunk}, {step} : index")
            self.emit(f"%t{number} = arith.addi %begin, %from{number} : index")
        elif loop.reverse:
            self.emit(f"{head}scf.for %i{number} = {self.index(0)} to %upper step {step}{carried} {{")
            self.emit(f"%last{number} = arith.subi %upper, {step} : index")
            self.emit(f"%from{number} = arith.subi %last{number}, %i{number} : index")
            self.emit(f"%t{number} = arith.addi %begin, %from{number} : index")
        else:
            self.emit(f"{head}scf.for %t{number} = %begin to %end step {step}{carried} {{")
            self.emit(f"%from{number} = arith.subi %t{number}, %begin : index")
        if not loop.counted:
            self.emit(f"{chunk} = arith.divui %from{number}, {step} : index")
        for op in loop.body:
            self.op(op, number)
        if loop.carried:
            yielded = ", ".join("%" + self.alias.get(entry[2], entry[2]) for entry in loop.carried)
            self.emit(f"scf.yield {yielded} : {', '.join(kinds)}")
        self.emit("}")
        for place, entry in enumerate(loop.carried):
            self.alias[entry[3]] = f"loop{number}" + (f"#{place}" if len(loop.carried) > 1 else "")

    def body(self):
        """The lines of the program, and the constants that they take."""
        self.alias = {}
        self.types = {op.result: tile_type(op.shape, op.dtype) for op in self.program.ops() if op.result}
        if any(loop.reverse or loop.counted for loop in self.program.loops()):
            self.emit("%length = arith.subi %end, %begin : index")
            self.emit(f"%chunks = arith.ceildivui %length, {self.index(self.program.chunk)} : index")
            self.emit(f"%upper = arith.muli %chunks, {self.index(self.program.chunk)} : index")
        if self.program.tiles > 1:
            self.emit(f"%v0 = arith.muli %p, {self.index(64)} : index")
        else:
            self.emit("%v0 = arith.constant 0 : index")
        if any("half h" in op.facts.get("at", []) for op in self.program.ops()):
            self.emit(f"%hq = arith.divui %h, {self.index(2)} : index")
        number = 0
        for item in self.program.items:
            if isinstance(item, Loop):
                self.loop(item, number)
                number += 1
                continue
            self.op(item, None)
        return self.lines

    def function(self):
        """The function that launches the program on tensors."""
        program, sizes = self.program, self.sizes
        inputs, outputs = program.inputs(), program.outputs()
        parameters = [f"%{a.name}: {self.tensor(a)}" for a in inputs]
        bounds = "tensor<?xi32>" if program.dynamic else f"tensor<{sizes['N'] + 1}xi32>"
        if program.packed:
            parameters.append(f"%cu: {bounds}")
        kinds = ", ".join(self.tensor(a) for a in outputs)
        lines = [f"func.func @{program.name}({', '.join(parameters)}) -> ({kinds}) {{"]
        constant = lambda name, value: lines.append(f"%{name} = arith.constant {value} : index")
        for value in sorted({0, 1, program.heads, program.tiles}):
            constant(f"c{value}", value)
        if self.token_input and program.dynamic:
            place = self.token_input.dims.index("T")
            constant("dim", place)
            lines.append(f"%T = tensor.dim %{self.token_input.name}, %dim : {self.tensor(self.token_input)}")
        else:
            constant("T", sizes["T"])
        if program.packed and program.dynamic:
            lines.append(f"%bounds = tensor.dim %cu, %c0 : {bounds}")
            lines.append("%N = arith.subi %bounds, %c1 : index")
        else:
            constant("N", sizes["N"])
        for a in outputs:
            dynamic = [f"%{dim}" for dim, extent in zip(a.dims, self.extents(a)) if extent == "?"]
            lines.append(f"%{a.name} = tensor.empty({', '.join(dynamic)}) : {self.tensor(a)}")
        results = "%r" + (f":{len(outputs)}" if len(outputs) > 1 else "")
        packed = f" cu_seqlens(%cu : {bounds})" if program.packed else ""
        names = lambda arrays: ", ".join(f"%{a.name}" for a in arrays)
        types = lambda arrays: ", ".join(self.tensor(a) for a in arrays)
        taken = f" ins({names(inputs)} : {types(inputs)})" if inputs else ""
        lines.append(f"{results} = gdn_tile.launch @{program.name}_tile grid(%N, %c{program.heads}, %c{program.tiles}) "
                     f"tokens(%T){packed}{taken} outs({names(outputs)} : {types(outputs)}) -> {kinds}")
        returned = [f"%r#{i}" for i in range(len(outputs))] if len(outputs) > 1 else ["%r"]
        lines += [f"return {', '.join(returned)} : {kinds}", "}"]
        return lines

    def write(self):
        program = self.program
        body = self.body()
        shown = lambda arrays: ", ".join(f"%{a.name}: {self.memref(a)}" for a in arrays)
        head = (f"gdn_tile.program @{program.name}_tile({shown(program.inputs())}) outs({shown(program.outputs())}) "
                "work_item(%n, %h, %p) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {")
        lines = [f"#schedule = {schedule_text(program.schedule)}", head, *self.constants.values(), *body, "}"]
        return "\n".join(lines + self.function()) + "\n"


def text(program):
    return Writer(program).write()
