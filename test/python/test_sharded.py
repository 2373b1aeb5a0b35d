# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DTensors: batch rows and heads on several devices. One process stands for each in turn, and talks to nobody."""

import contextlib

import pytest

import gdn

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("torch.distributed.tensor")
fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")

import torch.distributed as dist  # noqa: E402

Replicate, Shard = distributed.Replicate, distributed.Shard
FUNCTIONS = [gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule]
#: The dimension of a tensor that is cut by rows, and by heads.
CUTS = {
    "rows": {"A_log": None, "dt_bias": None},
    "heads": {"A_log": 0, "dt_bias": 0, "initial_state": 1, "final_state": 1},
}


@contextlib.contextmanager
def mesh_of(*sizes, rank=0):
    count = 1
    for size in sizes:
        count *= size
    dist.init_process_group("fake", store=fake.FakeStore(), rank=rank, world_size=count)
    try:
        yield distributed.init_device_mesh("cpu", sizes)
    finally:
        dist.destroy_process_group()


def make(B=4, T=20, H=2, HV=4, K=32):
    torch.manual_seed(0)
    q, k, v = torch.randn(B, T, H, K), torch.randn(B, T, H, K) / K**0.5, torch.randn(B, T, HV, K)
    return {
        "q": q, "k": k, "v": v, "g": torch.randn(B, T, HV), "beta": torch.rand(B, T, HV), "A_log": torch.randn(HV),
        "dt_bias": torch.randn(HV), "initial_state": torch.randn(B, HV, K, K),
    }  # fmt: skip


def placements(name, cuts):
    dims = [CUTS[cut].get(name, {"rows": 0, "heads": 2}[cut]) if cut else None for cut in cuts]
    return [Replicate() if dim is None else Shard(dim) for dim in dims]


def distribute(tensors, mesh, cuts):
    """Without a message: each device has all and takes its part."""
    return {
        name: distributed.distribute_tensor(x, mesh, placements(name, cuts), src_data_rank=None)
        for name, x in tensors.items()
    }


def part_of(whole, name, mesh, cuts):
    return distributed.distribute_tensor(whole, mesh, placements(name, cuts), src_data_rank=None).to_local()


WORDS = {"gate_domain": "raw", "output_final_state": True}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sizes,cuts", [
    ((2,), ("rows",)), ((2,), ("heads",)), ((2,), (None,)), ((2, 2), ("rows", "heads")), ((3,), ("rows",)),
])  # fmt: skip
def test_values_and_gradients(function, sizes, cuts):
    """Of each part are those of a call on one device."""
    words, tensors = WORDS, make()
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    o, state = function(**leaves, **words)
    weights = {"out": torch.randn_like(o), "final_state": torch.randn_like(state)}
    ((o * weights["out"]).sum() + (state * weights["final_state"]).sum()).backward()
    wanted = {"out": o.detach(), "final_state": state.detach()}
    sums = {}
    for rank in range(torch.tensor(sizes).prod()):
        with mesh_of(*sizes, rank=rank) as mesh:
            given = {name: x.requires_grad_() for name, x in distribute(tensors, mesh, cuts).items()}
            found = dict(zip(wanted, function(**given, **words)))
            for name, x in found.items():
                assert x.shape == wanted[name].shape and x.stride() == wanted[name].stride()
                assert list(x.placements) == placements(name, cuts)
                torch.testing.assert_close(x.to_local(), part_of(wanted[name], name, mesh, cuts))
            parts = distribute(weights, mesh, cuts)
            loss = sum((x.to_local() * parts[name].to_local()).sum() for name, x in found.items())
            for name, gradient in zip(given, torch.autograd.grad(loss, list(given.values()))):
                if "rows" in cuts and name in ("A_log", "dt_bias"):
                    # Rows have parts of it, which are added up; the process that stands for all adds nothing.
                    assert gradient.placements[0] == Replicate()
                    part = mesh.get_coordinate()[-1] if len(sizes) > 1 else 0
                    sums.setdefault((name, part), []).append(gradient.to_local())
                else:
                    torch.testing.assert_close(gradient.to_local(), part_of(leaves[name].grad, name, mesh, cuts))
    for (name, at), local in sums.items():
        whole = leaves[name].grad
        torch.testing.assert_close(sum(local), whole if len(sizes) == 1 else whole.chunk(sizes[1])[at])


@pytest.mark.parametrize("sizes", [(2,), (1,)])
def test_whole_tensors_follow(sizes):
    """What lies whole on each device is cut as the others are; outputs of the caller's are written."""
    tensors = {name: x for name, x in make(B=1).items() if name not in ("A_log", "dt_bias")}
    boundaries = torch.tensor([0, 5, 20])
    tensors["initial_state"] = torch.randn(2, 4, 32, 32)
    expected, states = gdn.chunk_gated_delta_rule(**tensors, cu_seqlens=boundaries, output_final_state=True)
    with mesh_of(*sizes, rank=sizes[0] - 1) as mesh, torch.no_grad():
        given = distribute(tensors, mesh, [None])
        given["v"] = distribute({"v": tensors["v"]}, mesh, ["heads"])["v"]
        outputs = {"out": torch.zeros_like(expected), "final_state": torch.zeros_like(states)}
        outputs = distribute(outputs, mesh, ["heads"])
        o, state = gdn.chunk_gated_delta_rule(**given, cu_seqlens=boundaries, **outputs)
        assert o is outputs["out"] and state is outputs["final_state"]
        torch.testing.assert_close(o.to_local(), part_of(expected, "out", mesh, ["heads"]))
        torch.testing.assert_close(state.to_local(), part_of(states, "final_state", mesh, ["heads"]))


def test_a_compiled_call():
    tensors = {name: x for name, x in make().items() if name in ("q", "k", "v", "g", "beta")}
    expected = gdn.chunk_gated_delta_rule(**tensors)[0]
    with mesh_of(2, rank=1) as mesh:
        run = torch.compile(gdn.chunk_gated_delta_rule, backend="aot_eager", fullgraph=True)
        o, _ = run(**distribute(tensors, mesh, ["heads"]))
        torch.testing.assert_close(o.to_local(), part_of(expected, "out", mesh, ["heads"]))
    torch._dynamo.reset()


#: A way to change a call whose tensors are cut by heads, and what is said.
WRONG = {
    "tokens": (lambda x, mesh: {"q": cut(x["q"], mesh, 1)}, NotImplementedError, "q: expected a DTensor of Shard"),
    "channels": (lambda x, mesh: {"v": cut(x["v"], mesh, 3)}, NotImplementedError, "v: expected a DTensor of Shard"),
    "both": (lambda x, mesh: {"v": cut(x["v"], mesh, 0)}, NotImplementedError, "v: expected a DTensor of Shard"),
    "a state": (
        lambda x, mesh: {"initial_state": cut(torch.zeros(4, 4, 32, 32), mesh, 0)}, NotImplementedError,
        "initial_state: expected a DTensor of Shard",
    ),
    "a plain tensor": (
        lambda x, mesh: {"g": x["g"]}, TypeError, "g: expected a DTensor as other tensors are, got Tensor"
    ),
    "heads": (
        lambda x, mesh: {name: cut(x[name][:, :, :1], mesh, None) for name in "qk"}, ValueError,
        "q: expected a multiple of 2 heads",
    ),
    "out": (lambda x, mesh: {"out": cut(x["v"], mesh, None)}, ValueError, "out: expected a DTensor of"),
    "rows and boundaries": (
        lambda x, mesh: {**{name: cut(x[name], mesh, 0) for name in x}, "cu_seqlens": torch.tensor([0, 20])},
        NotImplementedError, "q: expected a DTensor that is cut by heads",
    ),
}  # fmt: skip


def cut(tensor, mesh, dim):
    placement = Replicate() if dim is None else Shard(dim)
    return distributed.distribute_tensor(tensor, mesh, [placement], src_data_rank=None)


@pytest.mark.parametrize("change,error,message", WRONG.values(), ids=WRONG)
def test_other_placements(change, error, message):
    """Are refused by name, with the way out."""
    tensors = {name: x for name, x in make().items() if name in ("q", "k", "v", "g", "beta")}
    with mesh_of(2) as mesh:
        given = {**distribute(tensors, mesh, ["heads"]), **change(tensors, mesh)}
        with pytest.raises(error, match=f"^{message}.*to_local.*local_map") as found:
            gdn.chunk_gated_delta_rule(**given)
        assert gdn.supported(**given).reasons == (str(found.value),)


def test_explain():
    """Explains the call on the part that lies here; nothing is sent for that."""
    tensors = {name: x for name, x in make(B=8).items() if name in ("q", "k", "v", "g", "beta")}
    part = gdn.explain(**{name: x[:, :, : x.shape[2] // 2] for name, x in tensors.items()})
    with mesh_of(2) as mesh:
        given = distribute(tensors, mesh, ["heads"])
        given["v"] = distributed.DTensor.from_local(tensors["v"], mesh, [distributed.Partial()], run_check=False)
        assert gdn.explain(**given) == part


def test_operators():
    """Take parts, and say so."""
    q, k, v, g, beta = (x for name, x in make().items() if name in ("q", "k", "v", "g", "beta"))
    with mesh_of(2) as mesh:
        arguments = [cut(x, mesh, 2) for x in (q, k, v, g, beta)]
        with pytest.raises(NotImplementedError, match="^q: expected a tensor of one device .*to_local"):
            torch.ops.gdn.gated_delta_rule(*arguments, None, None, None, None, 1.0, 0, 0, False)
