"""OptAggr against slow and obvious ways to solve the same problem."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flmarket_sim import aggregation
from flmarket_sim.aggregation import create, error_bound, error_bound_parts


def interior_point(
    loss, size, clip, *, losers_count=True, renormalised=False, variance=None, unit=1.0
):
    """The weights by Clarabel, straight from the definition; errors are divided by `unit`."""
    share = size / size.sum()
    sells = loss > 0
    target = share[sells] / (share[sells].sum() if renormalised else 1.0)
    lost = share[~sells].sum() if losers_count else 0.0
    weight = cp.Variable(int(sells.sum()))
    spread = np.sqrt(8.0) * clip / loss[sells] if variance is None else np.sqrt(variance[sells])
    noise = cp.sum_squares(cp.multiply(spread / np.sqrt(unit), weight))
    bias = clip / np.sqrt(unit) * (cp.norm1(weight - target) + lost)
    problem = cp.Problem(cp.Minimize(noise + cp.square(bias)), [cp.sum(weight) == 1, weight >= 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    found = np.zeros(len(loss))
    found[sells] = weight.value
    return found


def bisection(loss, size, clip):
    """The root of g (docs/theory.md, section 1) by halving, one market at a time."""
    inv, share = loss**2 / (8 * clip**2), size / size.sum()

    def pair(u):
        up = np.maximum(0, u * inv - share).sum()
        return up, u + 4 * clip**2 * up

    low, high = 0.0, 1.0 / inv.sum()
    for _ in range(200):
        u = (low + high) / 2
        up, v = pair(u)
        low, high = (u, high) if up < np.maximum(0, share - v * inv).sum() else (low, u)
    _, v = pair(high)
    return np.maximum(high * inv, np.minimum(share, v * inv))


def instances(count, seed=0):
    """Losers, ties, one owner, equal owners, and sizes from 1 to a million."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        n = int(rng.integers(1, 13))
        loss = rng.uniform(0.02, 3.0, n) * (rng.random(n) < 0.7)
        size = np.floor(np.exp(rng.uniform(0, np.log(1e6), n)))
        if t % 4 == 0:
            loss, size = np.round(loss), np.round(np.log10(size)) + 1
        if t % 7 == 0:
            loss[:], size[:] = 1.0, 10.0
        if not (loss > 0).any():
            loss[rng.integers(n)] = 1.0
        yield loss, size, float(rng.choice([0.1, 1.0, 5.0]))


def test_opt_aggr_is_the_optimum_that_an_interior_point_solver_finds():
    rule = create("opt-aggr")
    for loss, size, clip in instances(60):
        ours = error_bound(
            rule.weights(loss[None], size[None], clip), loss[None], size[None], clip
        )[0]
        theirs = error_bound(interior_point(loss, size, clip)[None], loss[None], size[None], clip)[
            0
        ]
        assert abs(ours - theirs) <= 1e-9 * theirs


VARIANCES = {
    "kappa 8": lambda loss: 8 / loss**2,
    "kappa 4880": lambda loss: 4880 / loss**2,
    "kappa 1e5": lambda loss: 1e5 / loss**2,
    "a mechanism with a floor": lambda loss: 60 / np.expm1(loss) + 12,
    "a mechanism that jumps": lambda loss: 500 / np.ceil(2 * loss),
}


@pytest.mark.parametrize("kind", VARIANCES)
def test_with_variances_opt_aggr_is_the_optimum_that_an_interior_point_solver_finds(kind):
    """The scale of the errors is given to the solver, which else stops too early at kappa 1e5."""
    rule = create("opt-aggr")
    for loss, size, clip in instances(30, seed=5):
        with np.errstate(divide="ignore"):
            variance = np.where(loss > 0, clip**2 * VARIANCES[kind](loss), np.inf)
        market = loss[None], size[None], clip, variance[None]
        weights = rule.weights(*market)
        ours = error_bound(weights, *market)[0]
        solved = interior_point(loss, size, clip, variance=variance, unit=ours)
        assert abs(ours - error_bound(solved[None], *market)[0]) <= 1e-9 * ours
        assert weights[0] == pytest.approx(solved, abs=1e-6)


def bound_by_a_loop(weights, loss, size, clip, variance):
    """The error bound of one market, term by term."""
    noise, bias = 0.0, 0.0
    for weight, d, v in zip(weights, size, variance, strict=True):
        if weight > 0:
            noise += weight**2 * v
        bias += abs(weight - d / sum(size))
    return noise + (clip * bias) ** 2 if max(loss) > 0 else np.inf


def test_the_bound_with_variances_is_that_of_an_obvious_loop():
    rng = np.random.default_rng(6)
    loss = rng.uniform(0.1, 2.0, (40, 5)) * (rng.random((40, 5)) < 0.7)
    size = np.floor(rng.lognormal(3, 1, (40, 5))) + 1
    variance = np.where(loss > 0, rng.uniform(1, 1e5, (40, 5)), np.inf)
    for name in ("opt-aggr", "convl-aggr", "uniform"):
        weights = create(name).weights(loss, size)
        found = error_bound_parts(weights, loss, size, 2.0, variance)
        for k in range(40):
            slow = bound_by_a_loop(weights[k], loss[k], size[k], 2.0, variance[k])
            assert found.total[k] == pytest.approx(slow, rel=1e-12)
            assert found.total[k] == found.variance[k] + found.squared_bias[k]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("opt-aggr-paper", {"losers_count": False}),
        ("opt-aggr-winners", {"renormalised": True, "losers_count": False}),
    ],
)
def test_the_published_variants_solve_the_published_problems(name, how):
    for loss, size, clip in instances(30, seed=1):
        found = create(name).weights(loss[None], size[None], clip)[0]
        assert found == pytest.approx(interior_point(loss, size, clip, **how), abs=1e-6)


def test_a_batch_gives_what_single_markets_give_by_bisection():
    rng = np.random.default_rng(2)
    loss = rng.uniform(0.01, 2.0, (300, 10)) * (rng.random((300, 10)) < 0.8)
    loss[loss.max(axis=1) == 0, 0] = 1.0
    size = np.floor(rng.lognormal(3, 2, (300, 10))) + 1
    together = create("opt-aggr").weights(loss, size, 1.0)
    for k in range(300):
        assert together[k] == pytest.approx(bisection(loss[k], size[k], 1.0), abs=1e-12)
        assert together[k] == pytest.approx(
            create("opt-aggr").weights(loss[k : k + 1], size[k : k + 1])[0], abs=1e-14
        )


def test_no_small_change_of_the_weights_helps():
    rng = np.random.default_rng(3)
    for loss, size, clip in instances(20, seed=3):
        weight = create("opt-aggr").weights(loss[None], size[None], clip)
        best = error_bound(weight, loss[None], size[None], clip)[0]
        for _ in range(50):
            other = weight + 1e-3 * rng.normal(size=weight.shape) * (loss > 0)
            other = np.maximum(other, 0)
            other /= other.sum()
            assert error_bound(other, loss[None], size[None], clip)[0] >= best * (1 - 1e-12)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1e-6, 0.3, 1.0, 1.0, 50.0]), st.integers(1, 10**7)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_weights_of_every_rule_sum_to_one_over_those_who_sell(owners, clip):
    loss, size = (
        np.array([o[0] for o in owners])[None],
        np.array([o[1] for o in owners], float)[None],
    )
    for name in aggregation.names():
        weight = create(name).weights(loss, size, clip)
        assert weight.sum() == pytest.approx(1.0) and (weight >= 0).all()
        if (loss > 0).any():
            assert (weight[loss == 0] == 0).all()
            best = create("opt-aggr").weights(loss, size, clip)
            assert error_bound(best, loss, size, clip) <= error_bound(weight, loss, size, clip) * (
                1 + 1e-9
            )


def test_nobody_sells_nothing_to_aggregate():
    weight = create("opt-aggr").weights(np.zeros((2, 3)), np.array([[1.0, 1.0, 2.0]] * 2))
    assert weight[0].tolist() == [0.25, 0.25, 0.5]
    assert np.isinf(error_bound(weight, np.zeros((2, 3)), np.ones((2, 3)))).all()


def test_a_market_of_a_hundred_thousand_owners_is_one_solve():
    rng = np.random.default_rng(4)
    loss, size = rng.uniform(0.5, 2, (1, 10**5)), np.floor(rng.lognormal(3, 2, (1, 10**5))) + 1
    weight = create("opt-aggr").weights(loss, size)
    assert weight.sum() == pytest.approx(1.0, abs=1e-12)
    assert weight[0] == pytest.approx(bisection(loss[0], size[0], 1.0), rel=1e-6, abs=1e-12)


def test_the_parts_of_the_bound_are_its_definition():
    loss, size, weight = (
        np.array([[1.0, 2.0, 0.0]]),
        np.array([[1.0, 1.0, 2.0]]),
        np.array([[0.4, 0.6, 0.0]]),
    )
    parts = error_bound_parts(weight, loss, size, clip=2.0)
    assert parts.variance[0] == pytest.approx(0.16 * 32 / 1 + 0.36 * 32 / 4)
    assert parts.squared_bias[0] == pytest.approx((2 * (0.15 + 0.35 + 0.5)) ** 2)
    assert parts.total == pytest.approx(parts.variance + parts.squared_bias)


@pytest.mark.parametrize("loss", [[[-1.0]], [[np.nan]], [1.0], [[1.0, 2.0]]])
def test_impossible_losses_are_refused(loss):
    with pytest.raises(Exception, match="privacy_loss"):
        create("opt-aggr").weights(loss, [[1.0]])


def test_the_formulas_of_the_simple_rules():
    loss, size = np.array([[1.0, 2.0, 0.0]]), np.array([[3.0, 1.0, 9.0]])
    assert create("convl-aggr").weights(loss, size)[0] == pytest.approx([0.75, 0.25, 0])
    assert create("var-opt").weights(loss, size)[0] == pytest.approx([0.2, 0.8, 0])
    assert create("uniform").weights(loss, size)[0] == pytest.approx([0.5, 0.5, 0])
