# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to ask torch for gradients, of which each must give those that `torch.autograd.grad` gives: `loss` takes the
arguments, and `inputs` makes them for a number of tokens and a type."""

import torch
from torch._functorch import config as functorch
from torch._inductor import config as inductor
from torch.utils.checkpoint import checkpoint


def gradients_of(loss, arguments):
    return torch.autograd.grad(loss(*arguments), arguments)


def equal(got, expected):
    return all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


# A cache of torch's may have the graph of another version. Other caches are of what torch asks the C++ compiler.
@inductor.patch(fx_graph_cache=False)
@functorch.patch(enable_autograd_cache=False)
def check_compiled_step(loss, inputs, backend, dtype):
    """One graph forward, one backward; other lengths need no new one."""
    torch.compiler.reset()
    gradients_of(loss, inputs(T=1))  # the first call of a process finds what serves torch
    step = torch.compile(loss, fullgraph=True, dynamic=True, backend=backend)
    for tokens in (70, 50, 129):
        arguments = inputs(T=tokens, dtype=dtype)
        with torch.compiler.set_stance("default" if tokens == 70 else "fail_on_recompile"):
            got = gradients_of(step, arguments)
        assert equal(got, gradients_of(loss, arguments))


def check_checkpoint(loss, arguments, reentrant):
    expected = gradients_of(loss, arguments)
    checkpoint(loss, *arguments, use_reentrant=reentrant).backward()
    assert equal([argument.grad for argument in arguments], expected)


def check_function_transforms(loss, arguments):
    """One level, and two of which the inner one follows another tensor."""
    expected, bare = gradients_of(loss, arguments), [argument.detach() for argument in arguments]
    every = tuple(range(len(arguments)))
    assert equal(torch.func.grad(loss, argnums=every)(*bare), expected)
    assert equal(torch.func.vjp(loss, *bare)[1](torch.tensor(1.0)), expected)

    def scaled(*arguments):
        return torch.func.grad(lambda factor: factor * loss(*arguments))(torch.tensor(2.0))

    assert equal(torch.func.grad(scaled, argnums=every)(*bare), expected)
    assert equal(gradients_of(scaled, arguments), expected)
