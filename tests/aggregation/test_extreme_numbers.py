"""Weights are numbers that sum to 1 however small, large or different privacy losses are."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from flmarket_sim.aggregation import create

OPTIMAL = ("opt-aggr", "opt-aggr-paper", "opt-aggr-winners")
SMALLEST = 5e-324


def slowly(loss, size):
    """The weights of `opt-aggr` by halving (docs/theory.md, section 1), with 450 digits."""
    with localcontext() as context:
        context.prec = 450
        loss, size = ([Decimal(float(x)) for x in column] for column in (loss, size))
        square = sum(e * e for e in loss)
        inv, share = [e * e / square for e in loss], [d / sum(size) for d in size]
        low, high = Decimal(0), Decimal(1)
        for _ in range(900):
            u = (low + high) / 2
            up = sum(max(Decimal(0), u * x - w) for x, w in zip(inv, share, strict=True))
            v = u + square * up / 2
            weights = [max(u * x, min(w, v * x)) for x, w in zip(inv, share, strict=True)]
            low, high = (u, high) if sum(weights) < 1 else (low, u)
        return np.array([float(weight) for weight in weights])


@pytest.mark.parametrize("name", OPTIMAL)
def test_an_owner_who_sells_alone_has_the_whole_weight(name):
    for loss in (SMALLEST, 4e-323, 1e-200, 1e-160, 1e100):
        for clip in (1e-100, 1.0, 1e100):
            weights = create(name).weights([[0.0, loss]], [[38.0, 1e90]], clip)
            assert weights.tolist() == [[0.0, 1.0]]


def test_weights_do_not_depend_on_the_unit_of_losses_that_are_next_to_worthless():
    loss, size = np.array([[1.0, 2.0, 0.0, 3.0]]), np.array([[7.0, 5.0, 100.0, 1.0]])
    expected = [[1 / 14, 4 / 14, 0.0, 9 / 14]]
    for unit in (1e-12, 1e-155, 1e-200, 1e-300):
        found = create("opt-aggr").weights(loss * unit, size)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_weights_do_not_depend_on_the_clip_whatever_it_is():
    loss, size = np.array([[1e100, 1e99, 0.0]]), np.array([[1.0, 2.0, 3.0]])
    for unit in (1.0, 1e-100):
        expected = create("opt-aggr").weights(loss * unit, size)
        for clip in (1e-100, 1e100):
            found = create("opt-aggr").weights(loss * unit, size, clip)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMAL)
@pytest.mark.parametrize("least", [SMALLEST, 1e-300, 1e-100])
def test_variances_may_be_as_small_as_numbers_are(name, least):
    weights = create(name).weights([[1.0, 1.0]], [[1.0, 1.0]], variance=[[least, 1e200]])
    assert weights == pytest.approx(np.array([[1.0, 0.0]]))
    alike = create(name).weights([[1.0, 1.0]], [[1.0, 3.0]], variance=[[least, least]])
    assert alike == pytest.approx(np.array([[0.25, 0.75]]))


def test_winners_next_to_a_giant_who_lost_share_by_their_own_sizes():
    size = [[1e-300, 3e-300, 1e100]]
    weights = create("opt-aggr-winners").weights([[1e50, 1e50, 0.0]], size)
    assert weights == pytest.approx(np.array([[0.25, 0.75, 0.0]]))


@pytest.mark.parametrize("together", [False, True])
def test_weights_are_those_of_a_slow_solution_with_many_digits(together):
    rng = np.random.default_rng(2)
    rows = 6
    loss = 10.0 ** rng.uniform(
        [[-170], [-20], [0], [4], [6], [60]], [[-150], [20], [9], [19], [8], [99]], (rows, 4)
    )
    loss *= rng.random((rows, 4)) < 0.9
    size = np.floor(rng.lognormal(4.0, 1.5, (rows, 4))) + 1.0
    rule = create("opt-aggr")
    found = (
        rule.weights(loss, size)
        if together
        else np.vstack([rule.weights(loss[[k]], size[[k]]) for k in range(rows)])
    )
    expected = np.stack([slowly(loss[k], size[k]) for k in range(rows)])
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("name", OPTIMAL)
def test_weights_of_any_numbers_are_numbers_that_sum_to_one(name):
    rng, rule = np.random.default_rng(7), create(name)
    for trial in range(120):
        shape = int(rng.choice([1, 20])), int(rng.integers(1, 8))
        low, high = np.sort(rng.uniform(-330, 100, 2))
        loss = np.maximum(10.0 ** rng.uniform(low, high, shape), SMALLEST)
        loss *= rng.random(shape) < 0.8
        size = 10.0 ** rng.uniform(-300, 100, shape) if trial % 2 else np.full(shape, 5.0)
        weights = rule.weights(loss, size, 10.0 ** rng.uniform(-100, 100))
        assert (np.isfinite(weights) & (weights >= 0)).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
        assert (weights[(loss == 0) & (loss > 0).any(axis=1, keepdims=True)] == 0).all()


@pytest.mark.parametrize("name", ["constrained", "opt-aggr-scs"])
def test_rules_with_a_solver_have_weights_where_a_variance_is_beyond_all_numbers(name):
    rule, size = create(name), np.array([[7.0, 5.0, 100.0, 1.0]])
    loss = np.array([[1.0, 2.0, 0.0, 3.0]])
    for unit in (1e-160, 1e-200, 1e-320):
        weights = rule.weights(loss * unit, size)
        assert weights == pytest.approx(np.array([[1 / 14, 4 / 14, 0.0, 9 / 14]]), abs=2e-3)
    for tiny in (SMALLEST, 1e-250):
        weights = rule.weights([[1.0, tiny]], [[1.0, 1.0]])
        assert weights == pytest.approx(np.array([[1.0, 0.0]]), abs=1e-3)
    small = rule.weights([[1.0, 1.0]], [[1.0, 3.0]], variance=[[SMALLEST, SMALLEST]])
    assert np.isfinite(small).all() and small.sum() == pytest.approx(1.0)


def test_constraints_hold_where_a_variance_is_beyond_all_numbers():
    weights = create("constrained", cap=0.6).weights([[1e-200, 3e-200, 2e-200]], [[1.0, 1.0, 1.0]])
    assert weights == pytest.approx(np.array([[0.08, 0.6, 0.32]]), abs=1e-6)
