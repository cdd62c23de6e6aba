"""Enclosures hold at every point of their boxes, and close in on the value as boxes shrink.

The slow twin of an enclosure is the quantity itself, computed at many points of the box.
"""

import numpy as np
import pytest
import torch
from torch import nn

from flmarket_sim.strategy.certified import smooth_functions as f
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, joined, stacked

POINTS = 400


def chain():
    torch.manual_seed(0)
    layers = [nn.Linear(3, 9), nn.SiLU(), nn.Linear(9, 8), nn.Tanh(), nn.Linear(8, 4)]
    network = nn.Sequential(*layers).double()
    for layer in network[::2]:
        nn.init.normal_(layer.weight, std=1.0)
    return network


def log_sum(x):
    return x.log_sum_exp() if isinstance(x, Enclosed) else torch.logsumexp(x, -1)


def either(enclosed, plain):
    return lambda x: enclosed(x) if isinstance(x, Enclosed) else plain(x)


NETWORK = chain()
FUNCTIONS = {
    "tanh": either(f.tanh, torch.tanh),
    "silu": either(f.silu, nn.functional.silu),
    "exponential": either(f.exponential, torch.exp),
    "softplus": either(f.softplus, lambda x: torch.logaddexp(x, torch.zeros_like(x))),
    "log with floor": either(
        lambda x: f.log_with_floor(x, 1e-2), lambda x: torch.log(torch.exp(x) + 1e-2)
    ),
    "log of rest": either(
        lambda x: f.log_of_rest(x + -9.0, -0.1), lambda x: torch.log(1 - torch.exp(x - 9.0))
    ),
    "clamp": lambda x: x.clamp(-0.5, 0.7),
    "log sum exp": log_sum,
    "largest": either(lambda x: x.largest(0), lambda x: x.amax(-1)),
    "sum of products": either(lambda x: x.times(-2.0).sum(), lambda x: -2.0 * x.sum(-1)),
    "product": either(
        lambda x: f.exponential(x).product(f.softplus(x)),
        lambda x: torch.exp(x) * torch.logaddexp(x, torch.zeros_like(x)),
    ),
    "chain": either(lambda x: f.layers(NETWORK, x), NETWORK),
    "chain with symbols": either(lambda x: f.layers(NETWORK, x, symbols=True), NETWORK),
    "difference of parts": either(
        lambda x: joined([x, stacked([x.at(0), x.at(2)])]) - x.at(1).expand(5),
        lambda x: torch.cat([x, x[..., [0, 2]]], -1) - x[..., 1:2],
    ),
}  # fmt: skip


def boxes(width):
    """Ten boxes of three coordinates, and points (10, POINTS, 3) in them, corners among them."""
    rng = np.random.default_rng(1)
    center = torch.from_numpy(rng.normal(0.0, 1.5, (10, 1, 3)))
    place = rng.uniform(-1.0, 1.0, (10, POINTS, 3))
    place[:, : POINTS // 2] = np.sign(place[:, : POINTS // 2])
    points = center + width * torch.from_numpy(place)
    return Enclosed.of_boxes((center - width)[:, 0], (center + width)[:, 0]), points


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("width", [1.5, 0.3, 0.01])
def test_no_point_of_a_box_lies_outside_the_enclosure(name, width):
    box, points = boxes(width)
    with torch.inference_mode():
        low, high = FUNCTIONS[name](box).bounds()
        values = FUNCTIONS[name](points)
    slack = 1e-9
    assert (values >= low[:, None] - slack).all() and (values <= high[:, None] + slack).all()


@pytest.mark.parametrize("name", ["silu", "log sum exp", "product", "chain", "chain with symbols"])
def test_what_is_not_linear_falls_with_the_square_of_the_width(name):
    with torch.inference_mode():
        radius = [FUNCTIONS[name](boxes(width)[0]).radius.max() for width in (1e-2, 1e-3)]
        if name == "chain with symbols":
            slopes = [FUNCTIONS[name](boxes(width)[0]).slope[:, 3:] for width in (1e-2, 1e-3)]
            radius = [slope.abs().sum(1).max() for slope in slopes]
    assert 0 < radius[1] < radius[0] / 50


def test_symbols_never_make_a_chain_wider_than_slopes_alone():
    box, _ = boxes(0.3)
    with torch.inference_mode():
        plain = f.layers(NETWORK, box).deviation()
        better = f.layers(NETWORK, box, symbols=True).deviation()
    assert (better <= plain * (1 + 1e-9)).float().mean() > 0.9


def test_two_networks_on_one_input_meet_without_their_symbols():
    box, points = boxes(0.3)
    with torch.inference_mode():
        one = f.layers(NETWORK, box, symbols=True).without_symbols(3)
        two = f.layers(NETWORK[:-1], box, symbols=True).without_symbols(3).at(slice(0, 4))
        low, high = (one - two).bounds()
        values = NETWORK(points) - NETWORK[:-1](points)[..., :4]
    assert (values >= low[:, None] - 1e-9).all() and (values <= high[:, None] + 1e-9).all()


def test_a_layer_without_bounds_is_refused():
    with pytest.raises(TypeError, match="no bounds for a layer ReLU"):
        f.layers(nn.Sequential(nn.ReLU()), boxes(0.1)[0])
