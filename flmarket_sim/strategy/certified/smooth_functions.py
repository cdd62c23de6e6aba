"""The functions of the networks and of their inputs, with bounds of their second derivatives."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from flmarket_sim.strategy.certified.linear_bounds import Enclosed


def tanh(x: Enclosed) -> Enclosed:
    def curvature(low: Tensor, high: Tensor) -> Tensor:
        near, far = _nearest(low, high), torch.maximum(low.abs(), high.abs())
        return (2 * torch.tanh(far) * (1 - torch.tanh(near) ** 2)).clamp(max=0.77)

    return x.smooth(torch.tanh, curvature)


def silu(x: Enclosed) -> Enclosed:
    """x / (1 + exp(-x)), of second derivative at most 1/2 and at most (2 + |x|) exp(-|x|)."""

    def curvature(low: Tensor, high: Tensor) -> Tensor:
        near = _nearest(low, high)
        return ((2 + near) * torch.exp(-near)).clamp(max=0.5)

    return x.smooth(nn.functional.silu, curvature, monotone=False)


def exponential(x: Enclosed, least: float = -300.0, most: float = 300.0) -> Enclosed:
    """exp(x) for x between `least` and `most`."""
    return x.smooth(torch.exp, lambda _, high: torch.exp(high), domain=(least, most))


def softplus(x: Enclosed) -> Enclosed:
    """log(1 + exp(x))."""
    return x.smooth(
        lambda t: torch.logaddexp(t, torch.zeros_like(t)), lambda low, _: torch.full_like(low, 0.25)
    )


def log_with_floor(x: Enclosed, floor: float) -> Enclosed:
    """log(exp(x) + floor)."""
    return softplus(x + -math.log(floor)) + math.log(floor)


def log_of_rest(x: Enclosed, most: float) -> Enclosed:
    """log(1 - exp(x)) for x at most `most` < 0."""

    def curvature(_: Tensor, high: Tensor) -> Tensor:
        return torch.exp(high) / (1 - torch.exp(high)) ** 2

    return x.smooth(lambda t: torch.log(-torch.expm1(t)), curvature, domain=(-math.inf, most))


def layers(network: nn.Module, x: Enclosed, symbols: bool = False) -> Enclosed:
    """A chain of Linear, SiLU and Tanh; anything else is refused. With `symbols`, the
    errors of its activations become symbols (see `with_symbols`)."""
    for layer in network.children():
        if isinstance(layer, nn.Linear):
            x = x.linear(layer.weight.double(), layer.bias.double())
        elif isinstance(layer, nn.SiLU):
            x = silu(x).with_symbols() if symbols else silu(x)
        elif isinstance(layer, nn.Tanh):
            x = tanh(x).with_symbols() if symbols else tanh(x)
        else:
            raise TypeError(f"there are no bounds for a layer {type(layer).__name__}")
    return x


def _nearest(low: Tensor, high: Tensor) -> Tensor:
    """The least |x| between two ends."""
    inside = (low <= 0) & (high >= 0)
    return torch.where(inside, torch.zeros_like(low), torch.minimum(low.abs(), high.abs()))
