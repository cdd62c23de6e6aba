"""The envelope gradient against finite differences of the exact optimum."""

import numpy as np
import pytest
import torch

from flmarket_sim.aggregation import create, error_bound
from flmarket_sim.aggregation.differentiable import error_bound_under, optimal_error_bound
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.aggregation.rule import weights_in


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


ERRORS = {
    "kappa 4920": error_of_kappa(4920.0, 1.5),
    "no power": MarketError("vector", lambda loss: 20.0 / np.expm1(loss) + 5.0 / loss**2, 1.5),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_under_any_error_the_slope_is_that_of_the_optimum(error):
    rng = np.random.default_rng(1)
    loss, size = rng.uniform(0.3, 2.0, (20, 6)), np.floor(rng.lognormal(3, 1.5, (20, 6))) + 1
    loss[:, 5] = 0.0
    tensor = torch.tensor(loss, requires_grad=True)
    found = optimal_error_bound(tensor, torch.tensor(size), error=error)
    found.sum().backward()

    def optimum(at):
        weights = weights_in(create("opt-aggr"), at, size, error)
        return error_bound_in(error, weights, at, size).total

    assert found.detach().numpy() == pytest.approx(optimum(loss), rel=1e-5)
    for i in range(5):
        step = np.zeros_like(loss)
        step[:, i] = 1e-5
        slope = (optimum(loss + step) - optimum(loss - step)) / 2e-5
        assert tensor.grad[:, i].numpy() == pytest.approx(slope, rel=1e-3, abs=1e-4)
    assert (tensor.grad[:, 5] == 0).all()


def test_the_papers_error_is_the_default():
    loss, size = torch.tensor([[1.0, 0.5]]).double(), torch.tensor([[4.0, 1.0]]).double()
    for rule in ("opt-aggr", "convl-aggr"):
        plain = error_bound_under(rule, loss, size, 1.3)
        assert plain == error_bound_under(rule, loss, size, error=coordinate_error(1.3))
        same = error_bound_under(rule, loss, size, error=error_of_kappa(8.0, 1.3))
        assert float(same) == pytest.approx(float(plain), rel=1e-9)


def test_values_are_those_of_numpy_and_infinite_where_nobody_sells():
    loss, size = np.array([[1.0, 0.5], [0.0, 0.0]]), np.array([[4.0, 1.0], [1.0, 1.0]])
    for rule in ("opt-aggr", "convl-aggr"):
        expected = error_bound(create(rule).weights(loss, size), loss, size)
        found = error_bound_under(rule, torch.tensor(loss), torch.tensor(size)).numpy()
        assert found[0] == pytest.approx(expected[0]) and np.isinf(found[1])
