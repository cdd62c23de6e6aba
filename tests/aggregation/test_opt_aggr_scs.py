"""The paper's own route against the exact solution of the same problem."""

import numpy as np
import pytest

from flmarket_sim.aggregation import create, error_bound


def paper_markets(count, seed=0):
    rng = np.random.default_rng(seed)
    loss = rng.uniform(0.1, 2.0, (count, 10)) * (rng.random((count, 10)) < 0.8)
    return loss, np.floor(rng.lognormal(3, 2, (count, 10))) + 1


@pytest.mark.parametrize("kappa", [None, 1e3])
def test_scs_finds_the_weights_of_the_authors_problem_to_its_accuracy(kappa):
    loss, size = paper_markets(40)
    with np.errstate(divide="ignore"):
        variance = None if kappa is None else kappa / loss**2
    route = create("opt-aggr-scs").weights(loss, size, 1.0, variance)
    exact = create("opt-aggr-winners").weights(loss, size, 1.0, variance)
    assert np.abs(route - exact).max() <= 1e-3
    assert (route >= 0).all() and route.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    bounds = [error_bound(weights, loss, size, 1.0, variance) for weights in (route, exact)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)
    assert (np.abs(route - exact).max() > 1e-9) or kappa  # it is a solver, and not the closed form


def test_it_reads_the_problem_as_the_authors_code_and_not_as_the_paper():
    """Data shares over the winners: the losers' share of the bias is gone."""
    loss, size = np.array([[1.0, 2.0, 0.0]]), np.array([[5.0, 1.0, 6.0]])
    route = create("opt-aggr-scs").weights(loss, size)
    assert route == pytest.approx(create("opt-aggr-winners").weights(loss, size), abs=1e-3)
    assert np.abs(route - create("opt-aggr-paper").weights(loss, size)).max() > 0.01


def test_where_scs_fails_the_weights_are_those_of_the_least_variance():
    loss, size = np.array([[1e-90, 2e-90, 0.0]]), np.ones((1, 3))
    route = create("opt-aggr-scs").weights(loss, size)
    assert route == pytest.approx(create("var-opt").weights(loss, size))


def test_nobody_sells_and_one_owner_sells():
    loss, size = np.array([[0.0, 0.0], [0.0, 0.5]]), np.array([[1.0, 3.0], [1.0, 3.0]])
    route = create("opt-aggr-scs").weights(loss, size)
    assert route[0].tolist() == [0.25, 0.75]
    assert route[1] == pytest.approx([0.0, 1.0])
