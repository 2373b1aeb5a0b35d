# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile and torch.export: one graph, without recompiling for lengths."""

import numpy as np
import pytest
from fresh import fresh
from test_torch import tensors

import gdn

torch = pytest.importorskip("torch")


def layer(q, k, v, g, beta, **kwargs):
    """Operations of torch around the call, as in a model."""
    o, state = gdn.chunk_gated_delta_rule(
        q.sigmoid(), k, v, g, beta, output_final_state=True, use_qk_l2norm_in_kernel=True, **kwargs
    )
    return o * 2, state + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compile_full_graph(backend):
    arguments = tensors()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    for got, expected in zip(compiled(*arguments), layer(*arguments)):
        torch.testing.assert_close(got, expected)


def test_compile_first():
    """A process whose first call is a compiled one."""
    program = """
import torch, gdn
q, g = torch.randn(1, 20, 2, 64), -torch.rand(1, 20, 2)
compiled = torch.compile(gdn.chunk_gated_delta_rule, fullgraph=True, backend="eager")
o, _ = compiled(q, q, q, g, g)
assert torch.equal(o, gdn.chunk_gated_delta_rule(q, q, q, g, g)[0])
"""
    run = fresh(program)
    assert run.returncode == 0, run.stderr


def test_compile_is_not_repeated_for_lengths():
    """One graph for all T, and one for all N."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, backend=counter, dynamic=True)
    # No number that is also one of heads or channels: torch would take the two for one.
    for T in (70, 100, 7, 333):
        arguments = tensors(T=T)
        torch.testing.assert_close(compiled(*arguments), layer(*arguments))
    assert counter.frame_count == 1
    for N in (5, 9, 13):
        boundaries = torch.tensor(np.linspace(0, 333, N + 1).astype(np.int64))
        torch.testing.assert_close(
            compiled(*arguments, cu_seqlens=boundaries), layer(*arguments, cu_seqlens=boundaries)
        )
    assert counter.frame_count == 2


def test_compile_with_given_outputs():
    def step(q, k, v, g, beta, out):
        gdn.chunk_gated_delta_rule(q, k, v, g, beta, out=out)
        return out + 1

    arguments = tensors()
    out, expected = torch.zeros(1, 70, 4, 64), torch.zeros(1, 70, 4, 64)
    result = torch.compile(step, fullgraph=True)(*arguments, out)
    assert torch.equal(result, step(*arguments, expected)) and torch.equal(out, expected)


def test_export():
    class Layer(torch.nn.Module):
        def forward(self, *arguments):
            return layer(*arguments)

    arguments = tensors()
    program = torch.export.export(Layer(), arguments)
    torch.testing.assert_close(program.module()(*arguments), layer(*arguments))


def test_compiled_autocast():
    arguments = tensors()
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(torch.compile(layer, fullgraph=True)(*arguments), layer(*arguments))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("compiles", [False, True], ids=["eager forward", "compiled forward"])
def test_compiled_autograd(backend, compiles):
    """A backward that is compiled as one graph, of a forward that was compiled or not."""
    arguments = tensors()

    def gradients(run, backward):
        leaves = [argument.clone().requires_grad_() for argument in arguments]
        o, state = run(*leaves)
        backward(o.square().sum() + state.sum())
        return [leaf.grad for leaf in leaves]

    expected = gradients(layer, torch.Tensor.backward)
    run = torch.compile(layer, backend=backend) if compiles else layer
    with torch._dynamo.config.patch(compiled_autograd=True):
        found = gradients(run, torch.compile(lambda loss: loss.backward(), backend=backend))
    torch._dynamo.reset()
    for got, wanted in zip(found, expected):
        torch.testing.assert_close(got, wanted)
