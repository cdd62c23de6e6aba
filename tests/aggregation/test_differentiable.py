"""The envelope gradient against finite differences of the exact optimum."""

import numpy as np
import pytest
import torch

from flmarket_sim.aggregation import create, error_bound
from flmarket_sim.aggregation.differentiable import error_bound_under, optimal_error_bound


def test_the_envelope_gradient_is_the_slope_of_the_optimum():
    rng = np.random.default_rng(0)
    loss, size = rng.uniform(0.3, 2.0, (20, 6)), np.floor(rng.lognormal(3, 1.5, (20, 6))) + 1
    loss[:, 5] = 0.0
    tensor = torch.tensor(loss, requires_grad=True)
    optimal_error_bound(tensor, torch.tensor(size), clip=1.5).sum().backward()

    def optimum(at):
        return error_bound(create("opt-aggr").weights(at, size, 1.5), at, size, 1.5)

    for i in range(5):
        step = np.zeros_like(loss)
        step[:, i] = 1e-6
        slope = (optimum(loss + step) - optimum(loss - step)) / 2e-6
        assert tensor.grad[:, i].numpy() == pytest.approx(slope, rel=1e-4, abs=1e-7)
    assert (tensor.grad[:, 5] == 0).all()


def test_values_are_those_of_numpy_and_infinite_where_nobody_sells():
    loss, size = np.array([[1.0, 0.5], [0.0, 0.0]]), np.array([[4.0, 1.0], [1.0, 1.0]])
    for rule in ("opt-aggr", "convl-aggr"):
        expected = error_bound(create(rule).weights(loss, size), loss, size)
        found = error_bound_under(rule, torch.tensor(loss), torch.tensor(size)).numpy()
        assert found[0] == pytest.approx(expected[0]) and np.isinf(found[1])
