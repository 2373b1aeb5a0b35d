# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on a GPU that the library converts, for package_checks.py: they have the bits of calls whose tensors torch has
converted. Gates and logits that both compute differ by an ulp of float32 here and there, and results by little."""

from package_cases import TOLERANCE, error_of


class Converted:
    """A call as it is, and as torch converts it; `changes` makes the first of the second's arguments."""

    def __init__(self, torch, gdn, name="chunk_gated_delta_rule", tokens=300, K=128, V=None, dtype="bfloat16", **changes):
        self.torch, self.gdn, self.function = torch, gdn, getattr(gdn, name)
        self.dtype, self.changes, self.sizes = getattr(torch, dtype), changes, (K, V or K)
        random = torch.Generator("cuda").manual_seed(0)

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=random)

        H, HV = 4, 8
        keys = [torch.nn.functional.normalize(normal(2, tokens, H, K), dim=-1).to(self.dtype) for _ in range(2)]
        self.raw, self.logits = normal(2, tokens, HV), normal(2, tokens, HV)
        self.A_log, self.dt_bias = normal(HV), normal(HV)
        self.inputs = {
            "q": keys[0], "k": keys[1], "v": normal(2, tokens, HV, self.sizes[1]).to(self.dtype),
            "g": -self.raw.abs(), "beta": self.logits.sigmoid(), "output_final_state": True,
            "initial_state": normal(2, HV, *self.sizes),
        }  # fmt: skip

    def given(self):
        """The arguments of the call as it is, and of the one that torch converts."""
        given, wanted = dict(self.inputs), dict(self.inputs)
        for change in self.changes:
            getattr(self, f"_{change}")(given, wanted, self.changes[change])
        return given, wanted

    def _cast(self, given, wanted, names):
        """Arguments in another type, which torch widens."""
        for name, dtype in names.items():
            given[name] = given[name].to(getattr(self.torch, dtype))
            wanted[name] = given[name].float()

    def _absent(self, given, wanted, names):
        """Arguments that stand for so much."""
        for name, value in names.items():
            given[name], wanted[name] = None, self.torch.full_like(wanted[name], value)

    def _gate(self, given, wanted, domain):
        """Gates in another domain than logarithms."""
        torch, given["gate_domain"] = self.torch, domain
        if domain == "linear":
            given["g"] = (-self.raw.abs()).exp()
            wanted["g"] = given["g"].double().log().float()
            return
        given.update(g=self.raw, A_log=self.A_log, dt_bias=self.dt_bias)
        soft = torch.nn.functional.softplus(self.raw.double() + self.dt_bias, threshold=40.0)
        wanted["g"] = (-self.A_log.double().exp() * soft).float()

    def _beta(self, given, wanted, factor):
        """Logits."""
        given.update(beta=self.logits, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=factor == 2)
        wanted["beta"] = (factor * self.logits.double().sigmoid()).float()

    def _pad(self, given, wanted, channels):
        """Channels that kernels have, with zeros."""
        pad = self.torch.nn.functional.pad
        K, V = self.sizes
        for name, size in (("q", K), ("k", K), ("v", V)):
            wanted[name] = pad(given[name], (0, channels - size))
        wanted["initial_state"] = pad(given["initial_state"], (0, channels - V, 0, channels - K))

    def _scale(self, given, wanted, scale):
        """A factor of what the kernel gives: torch rounds o once more."""
        given["scale"] = scale

    def check(self, exact):
        given, wanted = self.given()
        if not (answer := self.gdn.supported(**given)):
            return f"refused: {answer.reasons[0]}", None
        o, state = self.function(**given)
        want_o, want_state = self.function(**wanted)
        K, V = self.sizes
        if "scale" in self.changes or "pad" in self.changes:
            made = wanted["q"].shape[3] ** -0.5
            factor = given.get("scale", K**-0.5) / made
            want_o = (want_o[..., :V].float() * factor).to(o.dtype)
        errors = [
            0.0 if self.torch.equal(got, want) else error_of(got, want)
            for got, want in ((o, want_o), (state, want_state[:, :, :K, :V]))
        ]
        what = [x.what for x in self.gdn.explain(**given).conversions]
        if not what:
            return "nothing is converted", False
        return "  ".join(f"{e:.1e}" for e in errors), max(errors) <= (0.0 if exact else TOLERANCE / 10)


#: Names of cases, what they change, and whether bits are equal.
CASES = {
    "gates and beta in 16 bits": ({"cast": {"g": "bfloat16", "beta": "float16"}}, True),
    "states in float16": ({"cast": {"initial_state": "float16"}}, True),
    "no gate": ({"absent": {"g": 0.0}}, True),
    "no beta": ({"absent": {"beta": 1.0}}, True),
    "no initial state, 64 channels": ({"absent": {"initial_state": 0.0}, "K": 64, "tokens": 20}, True),
    "linear gates, logits": ({"gate": "linear", "beta": 1}, False),
    "raw gates, values": ({"gate": "raw"}, False),
    "doubled logits": ({"beta": 2}, False),
    "K = V = 96": ({"K": 96, "pad": 128}, True),
    "K = 50, V = 100, float16": ({"K": 50, "V": 100, "pad": 128, "dtype": "float16"}, True),
    "a scale": ({"scale": 0.7}, True),
    "a scale of 96 channels": ({"K": 96, "pad": 128, "scale": 0.7}, True),
    "tokens, float16 in float32": ({"name": "fused_recurrent_gated_delta_rule", "dtype": "float16", "gate": "raw"}, False),
}  # fmt: skip


def graph_check(torch, gdn):
    """A captured call converts what its memory holds then."""
    call = Converted(torch, gdn, cast={"g": "bfloat16"}, K=96, pad=128)
    given, _ = call.given()
    call.function(**given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, _ = call.function(**given)
    given["v"].copy_(given["v"].flip(1))
    graph.replay()
    return "", torch.equal(o, call.function(**given)[0])


def output_check(torch, gdn):
    """Outputs that no kernel writes in place."""
    call = Converted(torch, gdn, cast={"g": "bfloat16"})
    given, _ = call.given()
    want, want_state = call.function(**given)
    turned = torch.empty_like(want.permute(0, 2, 3, 1).contiguous()).permute(0, 3, 1, 2)
    shifted = want.new_empty(want.numel() + 1)[1:].view(want.shape)
    half = torch.empty_like(want_state, dtype=torch.bfloat16)
    right = True
    for out in (turned, shifted):
        o, state = call.function(**given, out=out, final_state=half)
        right &= o is out and torch.equal(o, want) and torch.equal(state, want_state.bfloat16())
    return "", right


def conversion_runs(torch, gdn):
    """What run_all takes: names and functions."""

    def run(changes, exact):
        return lambda: Converted(torch, gdn, **changes).check(exact)

    runs = [(name, run(changes, exact)) for name, (changes, exact) in CASES.items()]
    return [
        *runs,
        ("a graph", lambda: graph_check(torch, gdn)),
        ("outputs of other strides", lambda: output_check(torch, gdn)),
    ]
