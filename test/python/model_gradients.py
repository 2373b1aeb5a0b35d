# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of models of Transformers, as they come and exact."""

import copy

import torch
from torch.overrides import TorchFunctionMode


def gradients_of(model, ids, scale=1, **kwargs):
    """Of all parameters. A scale keeps those in float16 above what that rounds to zero."""
    model.zero_grad()
    (scale * model(ids, labels=ids, **kwargs).loss).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


class InFloat64(TorchFunctionMode):
    """Whatever a model's code turns to float32 becomes float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widened(value):
            return torch.float64 if value is torch.float32 else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(widened, args), **{name: widened(value) for name, value in (kwargs or {}).items()})


def exact_gradients_of(model, ids, **kwargs):
    """By torch's own path, in float64, from the parameters as they are."""
    model = copy.deepcopy(model).double()
    model.config._experts_implementation = "eager"  # others have no float64
    with InFloat64():
        return gradients_of(model, ids, **kwargs)


def distance(got, expected):
    """Relative rms."""
    return ((got.double() - expected.double()).norm() / expected.double().norm()).item()


def distance_together(got, expected):
    """That of the gradients of several parameters, as one vector."""
    apart = sum(float((got[name].double() - x.double()).square().sum()) for name, x in expected.items())
    return (apart / sum(float(x.double().square().sum()) for x in expected.values())) ** 0.5
