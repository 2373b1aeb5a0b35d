"""The body of a random tile program: what it loads, one or two loops over chunks, what it stores."""

from .program import Loop
from .tiles import ROWS, Tiles


class Body(Tiles):
    """Draws the ops of a program."""

    def write(self):
        self.types = ["f16"] if self.chance(0.2) else ["bf16"]
        self.late = self.shape.kind != "one" and self.chance(0.4)
        self.outer()
        inits = self.loop(self.initial())
        if self.chance(0.25):
            inits = self.loop(inits or self.initial())
        for value in inits:
            if self.chance(0.8):
                self.store(value, "state", late=False)

    def dtype(self):
        return self.draw.choice(self.types)

    #===--------------------------------------------------------------------===#
    # Around the loops
    #===--------------------------------------------------------------------===#

    def outer(self):
        """Values from before the loops that they may take."""
        if not self.chance(0.15):
            return
        if self.chance(0.5):
            self.load("load", [ROWS, self.shape.width], "vk", self.dtype())
        else:
            tile = self.load("load", [ROWS, self.shape.width], "vk", self.dtype())
            wide = self.emit("extf", [tile], tile.shape, "f32", "state", tile.bound, tile.rms, tile.axes,
                             **{"from": tile.dtype})
            self.unary(wide, "state")

    def initial(self):
        """What a loop carries first: nothing, zeros, ones or a tile from an array."""
        if self.chance(0.25):
            return []
        return [self.initial_tile() for _ in range(self.draw.choice([1, 1, 1, 2]))]

    def initial_tile(self):
        shape = [ROWS, self.draw.choice([self.shape.width, self.shape.width, self.shape.chunk])]
        if self.shape.odd and self.chance(0.4):
            shape[0] = self.draw.choice([32, 128, 16])
        if self.chance(0.5):
            value = self.load("state", shape, "vk", self.draw.choice(["f32", "f32", "bf16"]), scale=1.0)
            if value.dtype != "f32":
                value = self.emit("extf", [value], shape, "f32", "state", 1.0, value.rms, "vk", **{"from": value.dtype})
            return value
        value = self.constant(self.draw.choice([0.0, 0.0, 1.0]), shape, "state")
        value.axes, value.constant = "vk", True
        return value

    def loop(self, inits):
        """A loop that carries tiles of these; the values that it leaves."""
        outer_block, outer_values = self.block, list(self.values)
        self.block, arguments = [], []
        for value in inits:
            name = self.name("s")
            argument = type(value)(name, value.shape, "f32", "state", 4.0, 1.0, value.axes, carried=True,
                                   of_tile=value.of_tile or self.shape.tiles > 1)
            arguments.append(argument)
            self.values.append(argument)
        self.first_value, self.products = len(outer_values), set()
        self.loads()
        if self.has_vectors():
            self.vectors()
        self.work("scores", self.draw.choice([1, 2, 3] if "prepare" in self.shape.kind else [0, 0, 1]))
        self.work("state", self.draw.choice([2, 3, 4, 5, 6]))
        carried, results = [], []
        for init, argument in zip(inits, arguments):
            following = self.advance(argument)
            result = self.name("r")
            carried.append([argument.name, init.name, following.name, result])
            results.append(type(init)(result, init.shape, "f32", "state", 16.0, max(1.0, following.rms), "vk",
                                      of_tile=argument.of_tile or following.of_tile))
        self.stores()
        form = self.draw.choices(["forward", "reverse", "counted"], [6, 3, 1])[0]
        outer_block.append(Loop(self.block, carried, form == "reverse", form == "counted"))
        self.block, self.values = outer_block, outer_values + results
        return results

    def has_vectors(self):
        return "vectors" in self.shape.kind or self.chance(0.25)

    def loads(self):
        """Tiles of tokens, of V and of states that are copied to shared memory."""
        chunk, width = self.shape.chunk, self.shape.width
        step = "state" if self.shape.kind == "one" and self.chance(0.7) else "load"
        for _ in range(self.draw.choice([1, 2, 2, 3])):
            kind = self.draw.choice(["tk", "tk", "vt", "vt", "vk", "tv"])
            if kind == "tk":
                self.load(step, [chunk, width], kind, self.dtype())
            elif kind == "vt":
                self.load(step, [ROWS, chunk], kind, self.dtype())
            elif kind == "tv":
                self.load(step, [chunk, ROWS], kind, self.dtype())
            else:
                rows = self.draw.choice([32, 128, 48]) if self.shape.odd and self.chance(0.5) else ROWS
                self.load(step, [rows, width], kind, self.dtype())

    def vectors(self):
        """A number a token: loaded, summed, exponentials of it."""
        value = self.load_vector("gates", *self.draw.choice([(-0.5, 0.0), (0.0, 1.0), (-1.0, 1.0)]))
        for _ in range(self.draw.choice([0, 1, 2])):
            kind = self.draw.choice(["scan", "exp2", "unary", "binary"])
            if kind == "scan" and value.bound <= 4:
                value = self.scan(value, "gates")
            elif kind == "exp2":
                value = self.exp2(value, "gates")
            elif kind == "binary":
                other = self.load_vector("gates", 0.0, 1.0)
                value = self.binary(self.draw.choice(["addf", "mulf", "subf"]), value, other, "gates")
            else:
                value = self.unary(value, "gates")
        if self.shape.tiles == 1 and self.chance(0.2):
            self.store(value, "gates", late=False)

    #===--------------------------------------------------------------------===#
    # Inside
    #===--------------------------------------------------------------------===#

    def work(self, step, count):
        """`count` ops of a role of warpgroups."""
        kinds = {"product": 6, "binary": 4, "unary": 2, "scale rows": 4, "causal": 1, "reduce": 1, "diagonal": 0.3,
                 "row": 0.3, "scan": 0.7, "hand on": 2 if step == "scores" else 0.3}
        for _ in range(count):
            kind = self.draw.choices(list(kinds), list(kinds.values()))[0]
            getattr(self, "draw_" + kind.replace(" ", "_"))(step)
        if step == "scores":
            self.draw_hand_on(step)

    def draw_binary(self, step):
        left = self.registers(step)
        right = left and self.registers(step, left.shape)
        if right:
            self.tamed(self.binary(self.draw.choice(["addf", "subf", "mulf"]), left, right, step), step)

    def draw_unary(self, step):
        value = self.registers(step)
        if value:
            self.unary(value, step)

    def draw_scale_rows(self, step):
        """A tile and a vector along one of its axes."""
        tile = self.registers(step)
        vectors = tile and [v for v in self.visible(step, 1, ("f32",)) if v.shape[0] in tile.shape]
        if not vectors:
            return
        vector = self.pick(vectors)
        if vector.rms > 4:
            return
        wide = self.broadcast(vector, tile, step)
        self.tamed(self.binary(self.draw.choice(["mulf", "mulf", "addf", "subf"]), tile, wide, step), step)

    def draw_causal(self, step):
        square = [v for v in self.visible(step, 2, ("f32",)) if v.shape[0] == v.shape[1] and self.fits_registers(v)]
        value = self.pick(square)
        if value:
            self.emit("causal", [value], value.shape, "f32", step, value.bound, value.rms, value.axes,
                      strict=self.chance(0.5))

    def draw_diagonal(self, step):
        square = [v for v in self.visible(step, 2, ("f32",)) if v.shape[0] == v.shape[1] and self.fits_registers(v)
                  and self.is_own(v, step)]
        value = self.pick(square)
        if value:
            self.emit("diagonal", [value], value.shape[:1], "f32", step, value.bound, value.rms, value.axes[0])

    def draw_row(self, step):
        value = self.pick([v for v in self.visible(step, 2) if v.kind == "load"] or self.visible(step, 2, ("f32",)))
        if value:
            row = self.row(value, step)
            if row.dtype != "f32":
                self.emit("extf", [row], row.shape, "f32", step, row.bound, row.rms, row.axes, **{"from": row.dtype})

    def draw_reduce(self, step):
        value = self.registers(step)
        if value:
            dim = 0 if self.shape.odd and self.chance(0.3) else 1
            reduced = self.reduce(value, step, dim)
            self.tamed(reduced, step)

    def draw_scan(self, step):
        value = self.registers(step)
        if value and value.rms < 2 and (self.shape.odd or self.chance(0.4)):
            self.tamed(self.scan(value, step, self.draw.choice([0, 0, 1])), step)

    def draw_hand_on(self, step):
        """A tile in 16 bits: an operand of products, or for the role behind."""
        value = self.registers(step)
        if value and value.dtype == "f32":
            self.rounded(self.tamed(value, step), self.dtype(), step)

    def draw_product(self, step):
        """A product with a right operand from shared memory; made if there is none."""
        found = self.operands(step)
        if not found:
            return None
        left, right, turn_left, turn_right = found
        rows = left.shape[1] if turn_left else left.shape[0]
        columns = right.shape[0] if turn_right else right.shape[1]
        into, taken = None, (left.name, right.name, turn_left, turn_right)
        # ptxas makes one of two products that are the same, and then waits where nobody asked it to.
        if taken in self.products:
            return None
        self.products.add(taken)
        if self.chance(0.3):
            into = self.pick([v for v in self.visible(step, 2, ("f32",)) if v.shape == [rows, columns]
                              and self.is_own(v, step)])
        return self.tamed(self.contract(left, right, turn_left, turn_right, into, step), step)

    def operands(self, step):
        """Left, right and whether each is turned."""
        own = 0.5 if self.shape.kind == "one" else 0.1
        rights = [v for v in self.visible(step, 2, ("bf16", "f16"))
                  if (not self.is_own(v, step) or self.chance(own)) and min(v.shape) >= 16]
        right = self.pick(rights)
        if not right:
            return None
        turn_right = self.chance(0.5)
        depth = right.shape[1] if turn_right else right.shape[0]
        choices = []
        for v in self.visible(step, 2):
            allowed = self.shape.odd or v.shape[0] == ROWS
            typed = v.dtype == right.dtype or (v.dtype == "f32" and self.is_own(v, step))
            if allowed and v.shape[1] == depth and typed:
                choices.append((v, False))
            turned = self.shape.odd or v.shape[1] == ROWS
            if turned and v.shape[0] == depth and v.dtype == right.dtype and not self.is_own(v, step):
                choices.append((v, True))
        if not choices:
            return None
        left, turn_left = self.draw.choice(choices[-8:])
        if left.dtype == "f32":
            left = self.tamed(left, step, 0.5)
            if left.carried:
                left = self.scaled(left, 0.125, step)
            left = self.rounded(left, right.dtype, step)
        return left, right, turn_left, turn_right

    #===--------------------------------------------------------------------===#
    # Ends of an iteration
    #===--------------------------------------------------------------------===#

    def advance(self, state):
        """The tile that the next iteration begins with: it decays, and something is added."""
        start = state
        if self.chance(0.8):
            rows = [v for v in self.visible("state", 1, ("f32",)) if v.shape[0] in state.shape and 0 < v.rms <= 1.0
                    and v.bound <= 1.0]
            if rows and self.chance(0.5):
                start = self.binary("mulf", state, self.broadcast(self.pick(rows), state, "state"), "state")
            else:
                start = self.scaled(state, self.draw.choice([0.5, 0.75, 0.875]), "state")
        if self.chance(0.6):
            product = self.into_state(start)
            if product:
                return product
        addends = [v for v in self.visible("state", 2, ("f32",)) if v.shape == state.shape and v.name != state.name
                   and v.rms <= 2 and not v.constant]
        added = self.pick(addends) or self.registers("state", state.shape)
        if added.name == start.name:
            added = self.constant(0.25, state.shape, "state")
        if added.carried:
            added = self.scaled(added, 0.25, "state")
        return self.binary("addf", start, added, "state")

    def into_state(self, start):
        """A product that is added to the state, or None."""
        for _ in range(4):
            found = self.operands("state")
            if not found:
                return None
            left, right, turn_left, turn_right = found
            rows = left.shape[1] if turn_left else left.shape[0]
            columns = right.shape[0] if turn_right else right.shape[1]
            if [rows, columns] == start.shape and (left.name, right.name, turn_left, turn_right) not in self.products:
                return self.contract(left, right, turn_left, turn_right, start, "state")
        return None

    def stores(self):
        """Stores of what the iteration made, rather of what nobody took yet."""
        taken = {name for op in self.block for name in op.operands}
        made = [v for v in self.values[self.first_value:] if not v.constant and v.step in ("state", "scores")
                and not v.carried or v.name not in taken and v.step in ("state", "scores") and not v.constant]
        made = [v for v in made if len(v.shape) == 2 or self.shape.tiles == 1 or v.of_tile]
        loose = [v for v in made if v.name not in taken]
        for value in loose[-3:] or made[-1:]:
            late = self.late and len(value.shape) == 2 and value.step == "state"
            if self.chance(0.85):
                self.store(value, value.step, late)
