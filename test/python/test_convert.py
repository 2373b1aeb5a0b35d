# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What _torch_convert makes of calls that no kernel of a GPU has the form of: the mathematics, on a CPU."""

import functools
import pathlib

import pytest

torch = pytest.importorskip("torch")
from gdn import _explain, _library, _manifest, _torch, _torch_convert  # noqa: E402
from gdn._arguments import Call, factor_on_gpu  # noqa: E402

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
#: Beside the float32 result, relative to the largest element.
TOLERANCE = {F16: 3e-3, BF16: 2e-2, F32: 2e-5}


def make_call(
    D=64, V=None, T=70, dtype=F32, gate="log", beta="value", norm=True, states="none", state_dtype=F32, v_first=False,
    cu=None, scale=None, recurrent=False, other=F32,
):  # fmt: skip
    """A call of 2 heads and 4 value heads; `other` is the type of g and beta."""
    generator = torch.Generator().manual_seed(1)
    random = functools.partial(torch.randn, generator=generator)
    V, B = V or D, 2 if cu is None else 1
    raw = random(B, T, 4)
    g = {"log": -raw.abs(), "linear": (-raw.abs()).exp(), "raw": raw}[gate]
    y = random(B, T, 4)
    domain = ("value", "logit", "doubled_logit").index(beta)
    sequences = B if cu is None else len(cu) - 1
    shape = (sequences, 4, V, D) if v_first else (sequences, 4, D, V)
    initial = random(*shape).to(state_dtype) if states == "both" else None
    final = None if states == "none" else torch.empty(shape, dtype=state_dtype)
    options = _library.pack_options(_library.GATE_DOMAINS[gate], domain, norm, v_first, recurrent)
    q, k, v = random(B, T, 2, D), random(B, T, 2, D) / D**0.5, random(B, T, 4, V)
    return Call(
        q.to(dtype), k.to(dtype), v.to(dtype), g.to(other), (y if domain else y.sigmoid()).to(other),
        random(4).to(other) if gate == "raw" else None, random(4) if gate == "raw" else None,
        initial, None if cu is None else torch.tensor(cu), torch.empty(B, T, 4, V, dtype=dtype), final,
        None, scale, options, final is not None, 0,
    )  # fmt: skip


class Library:
    """The CPU's kernels behind the manifest of a GPU's: refuses what a GPU refuses."""

    def __init__(self, call_library):
        self.call_library, self.served, self.refused = call_library, [], []

    def __call__(self, tensors, scale, options, threads, max_seqlen):
        call = Call(*tensors, scale, options, tensors[10] is not None, max_seqlen)
        # The rules of every call come first.
        described = [None if x is None else _torch.describe(x) for x in tensors]
        blob = b"".join(_explain._pack(x, "cpu") for x in described)
        _library.load().explain(blob, scale, options, 1, max_seqlen)
        if call.out.stride(-1) != 1:
            raise ValueError("out: expected a contiguous last dimension")
        form = _torch_convert._form_of(call)
        known = _torch_convert._CHUNKS | _torch_convert._TOKENS
        adapted = call.g.dtype == call.beta.dtype == F32 and (call.A_log is None or call.A_log.dtype == F32)
        if form.ends == "Both" and (call.final_state is None or call.initial_state.dtype != call.final_state.dtype):
            adapted = False
        default = scale is None or abs(scale * form.k**0.5 - 1) < 1e-6
        if not adapted or not default or not _torch_convert._has(known, form):
            self.refused.append(form)
            raise NotImplementedError("no kernel")
        self.served.append(form)
        self.compute(tensors, scale, options)

    def compute(self, tensors, scale, options):
        """In float32, with outputs rounded once."""
        wide = [x.float() if x is not None and x.is_floating_point() else x for x in tensors]
        self.call_library(tuple(wide), scale, options, 1, 0)
        for given, made in zip(tensors[9:], wide[9:]):
            if given is not None and given is not made:
                given.copy_(made)
        return wide[9:]


#: The kernels of the wheel, though a sample of them may be installed.
MANIFEST = _manifest.read(pathlib.Path(__file__).parents[2] / "python" / "gdn" / "kernels.json")


@pytest.fixture
def library(monkeypatch):
    found = Library(_torch._call_library)
    monkeypatch.setattr(_torch_convert, "_CHUNKS", _manifest.gpu_forms(MANIFEST, "gdn.chunk_gated_delta_rule"))
    monkeypatch.setattr(_torch_convert, "_TOKENS", _manifest.gpu_forms(MANIFEST, "gdn.recurrent_gated_delta_rule"))
    _torch_convert._find_target.cache_clear()
    monkeypatch.setattr(_torch, "_call_library", found)
    monkeypatch.setattr(_torch, "_ADAPTED", set())
    monkeypatch.setattr(_torch_convert, "_refused", {})
    yield found
    _torch_convert._find_target.cache_clear()


def run(call):
    """As on a GPU."""
    *tensors, scale, options, _, longest = call
    _torch._compute_on_gpu(*tensors, scale, options, longest)


def expect(library, call, tolerance):
    """Runs the call as on a GPU, and in float32 on the CPU."""
    outputs = [x if x is None else torch.empty_like(x, dtype=F32) for x in call[9:11]]
    library.compute((*call[:9], *outputs, None), call.scale, call.options)
    run(call)
    for got, expected in zip((call.out, call.final_state), outputs):
        if got is not None:
            assert (got.float() - expected).abs().max() <= tolerance * expected.abs().max()


FORMS = {
    "f16 of 64 channels": {"dtype": F16, "norm": False},
    "bf16 of 64 without states": {"dtype": BF16},
    "heads of 60 and 100": {"D": 60, "V": 100, "dtype": BF16, "states": "both"},
    "heads of 100 and 32": {"D": 100, "V": 32, "states": "both", "v_first": True},
    "heads of 32, packed": {"D": 32, "states": "both", "cu": [0, 30, 30, 60], "T": 70},
    "raw gates, values": {"D": 128, "gate": "raw"},
    "linear gates, doubled logits": {"gate": "linear", "beta": "doubled_logit"},
    "raw gates, logits, all in bf16": {"gate": "raw", "beta": "logit", "other": BF16, "dtype": BF16, "states": "both"},
    "a final state in bf16": {"D": 128, "states": "final", "state_dtype": BF16},
    "states in f16": {"D": 64, "states": "both", "state_dtype": F16, "gate": "linear"},
    "a scale of its own": {"D": 60, "scale": 0.5, "states": "final"},
    "heads of 256 in f16": {"D": 256, "V": 200, "dtype": F16},
}


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_conversions_change_no_result(library, name, recurrent):
    call = make_call(**FORMS[name], recurrent=recurrent)
    types = [call.q.dtype, *(x.dtype for x in (call.g, call.final_state) if x is not None)]
    expect(library, call, max(TOLERANCE[dtype] for dtype in types))
    assert len(library.served) == 1


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_the_function_of_tokens_computes_in_float32(library, dtype):
    """q, k and v in 16 bits are widened where there is no kernel: o is rounded once, the state not at all."""
    call = make_call(D=60, dtype=dtype, states="both", recurrent=True, beta="doubled_logit")
    o, state = torch.empty_like(call.out, dtype=F32), torch.empty_like(call.final_state)
    library.compute((*call[:9], o, state, None), None, call.options)
    run(call)
    if library.served[0].q == "float32":
        assert (call.out.float() - o).abs().max() <= torch.finfo(dtype).eps * o.abs().max()
    assert (call.final_state - state).abs().max() <= 1e-5 * state.abs().max()


def test_states_in_place(library):
    """final_state may be initial_state, in 16 bits, too."""
    call = make_call(D=60, states="both", state_dtype=F16)
    call = call._replace(final_state=call.initial_state)
    expected = make_call(D=60, states="both", state_dtype=F16)
    expect(library, expected, TOLERANCE[F16])
    run(call)
    assert torch.equal(call.initial_state, expected.final_state) and torch.equal(call.out, expected.out)


def test_a_refusal_is_asked_for_once(library):
    for count in (1, 2, 3):
        expect(library, make_call(D=60), TOLERANCE[F32])
        # As the call came, with its arguments adapted, and then never again.
        assert len(library.refused) == 2 and len(library.served) == count
    # Another form with these options.
    expect(library, make_call(D=64, states="both"), TOLERANCE[F32])
    assert len(library.served) == 4


#: What a conversion would hide, by the argument that is at fault.
WRONG = {
    "q": lambda x: x.int(),
    "k": lambda x: x.double(),
    "k channels": lambda x: x[..., :40].contiguous(),
    "v": lambda x: x.int(),
    "g": lambda x: x.double(),
    "A_log": lambda x: x.double(),
    "A_log heads": lambda x: x[:1].contiguous(),
    "dt_bias heads": lambda x: x[:1].contiguous(),
    "initial_state channels": lambda x: x[..., :40, :40].contiguous(),
    "out": lambda x: x.float(),
    "out channels": lambda x: x.new_empty(*x.shape[:3], 100),
    "out heads": lambda x: x[:, :, :, :1].contiguous(),
    "out memory": lambda x: x[..., :1].expand(x.shape),
    "final_state channels": lambda x: x[..., :50].contiguous(),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_rules_hold_behind_a_call_that_was_converted(library, name):
    """A call like one that was converted, but for one argument."""
    call = make_call(D=60, dtype=BF16, states="both", gate="raw")
    run(call)
    field = name.split()[0]
    wrong = call._replace(**{field: WRONG[name](getattr(call, field))})
    with pytest.raises((TypeError, ValueError), match="expected"):
        run(wrong)


def test_strided_outputs_of_a_call_that_is_converted(library):
    """The library looks at strides first."""
    call = make_call(D=60, states="both")
    strided = torch.empty(2, 4, 60, 70).permute(0, 3, 1, 2)
    expect(library, call._replace(out=strided), TOLERANCE[F32])


def test_outputs_that_overlap():
    """Strides that the package makes up for do not hide what it cannot."""
    call = make_call(D=128, states="both")
    within = torch.empty(400_000).as_strided(call.out.shape, (70 * 4 * 128, 4, 1, 4))
    buffer = torch.empty(2 * 4 * 128 * 128 + 4)
    o = torch.empty(2, 70, 4, 128).transpose(2, 3).contiguous().transpose(2, 3)
    beside = {"out": buffer[: o.numel()].as_strided(o.shape, o.stride()), "final_state": buffer[4:].view(2, 4, 128, 128)}
    for wrong in ({"out": within}, beside):
        with pytest.raises(ValueError, match="out: expected (a tensor whose elements have memory of their own|memory apart)"):
            run(call._replace(**wrong))


def test_refusals_do_not_pile_up(library, monkeypatch):
    monkeypatch.setattr(_torch_convert, "_MOST_REFUSED", 2)
    for T in range(1, 6):
        run(make_call(D=60, T=T))
    assert [len(known) for known in _torch_convert._refused.values()] == [1]


def test_options_do_not_pile_up(library, monkeypatch):
    """A segment_length is a part of them."""
    monkeypatch.setattr(_torch, "MOST_OPTIONS", 2)
    monkeypatch.setattr(_torch_convert, "MOST_OPTIONS", 2)
    call = make_call(D=60, T=2, dtype=BF16)
    for length in (32, 64, 96, 128, 160):
        run(call._replace(options=call.options | _library.pack_segment_length(length)))
    assert len(_torch._ADAPTED) <= 2
    assert len(_torch_convert._refused) <= 2


def test_what_is_served_is_not_converted(library, monkeypatch):
    monkeypatch.setattr(_torch_convert, "_convert_and_run", None)
    expect(library, make_call(D=128, dtype=BF16, states="both", norm=False), TOLERANCE[BF16])
    assert not library.refused


def test_nothing_is_left_to_convert(library, monkeypatch):
    """The library's own refusal is raised."""
    call = make_call(D=128)
    monkeypatch.setattr(_torch_convert, "_CHUNKS", frozenset())
    monkeypatch.setattr(_torch_convert, "_TOKENS", frozenset())
    _torch_convert._find_target.cache_clear()
    with pytest.raises(NotImplementedError, match="no kernel"):
        run(call)
    _torch_convert._find_target.cache_clear()


def test_channels_have_a_scale():
    """The scale of a padded head is that of the caller's."""
    assert factor_on_gpu(torch.Size((1, 1, 1, 128)), 60**-0.5) == pytest.approx((128 / 60) ** 0.5)
