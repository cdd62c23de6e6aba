"""The rule `constrained` against slow ways to solve the same problem, and what gives way in it."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from flmarket_sim.aggregation import create, error_bound, sparse_support
from flmarket_sim.aggregation.constrained import Constrained
from flmarket_sim.aggregation.constrained_optimum import exact
from flmarket_sim.errors import InputError
from tests.aggregation.test_convex_rule import markets


def groups(size):
    """(n,) who is in the first group: at most the median data size."""
    return size <= np.median(size)


def constraints(loss, size, cap=1.0, fairness=None, bias=None):
    """Rows A and b with A (l, y) <= b for the constraints, where y_i >= |l_i - W_i|."""
    n, share, sells = len(loss), size / size.sum(), loss > 0
    eye = np.eye(n)
    rows = [np.hstack([eye, -eye]), np.hstack([-eye, -eye])]
    limits = [share, -share]
    if fairness is not None and (sells & groups(size)).any() and (sells & ~groups(size)).any():
        ratio = np.zeros(2 * n)
        for sign, group in ((1, groups(size)), (-1, ~groups(size))):
            ratio[:n] += (
                sign * group * sells[:n] / (share[group & sells].sum() / share[sells].sum())
            )
        rows += [ratio[None], -ratio[None]]
        limits += [[fairness], [fairness]]
    if bias is not None:
        rows.append(np.hstack([np.zeros(n), np.ones(n)])[None])
        limits.append([bias])
    bounds = [(0, cap if sold else 0) for sold in sells] + [(0, None)] * n
    return np.vstack(rows), np.concatenate(limits), bounds


def by_slsqp(loss, size, variance, **how):
    """The error bound of the best weights by a general solver, or None if it finds none."""
    n = len(loss)
    matrix, limits, bounds = constraints(loss, size, **how)
    whole = np.hstack([np.ones(n), np.zeros(n)])
    noise = np.where(loss > 0, variance, 0.0)
    start = linprog(np.zeros(2 * n), matrix, limits, whole[None], [1.0], bounds)
    if not start.success:
        return None
    scale = noise.max() + 1

    def error(x):
        return (noise @ x[:n] ** 2 + x[n:].sum() ** 2) / scale

    def slope(x):
        return np.concatenate([2 * noise * x[:n], np.full(n, 2 * x[n:].sum())]) / scale

    found = minimize(
        error,
        start.x,
        jac=slope,
        bounds=bounds,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: limits - matrix @ x, "jac": lambda x: -matrix},
            {"type": "eq", "fun": lambda x: whole @ x - 1, "jac": lambda x: whole},
        ],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return float(found.fun * scale)


def least(loss, size, what, **how):
    """The least fairness or bias that any weights have, by a linear program."""
    n = len(loss)
    matrix, limits, bounds = constraints(loss, size, **how, **{what: 0.0})
    aim = np.zeros(2 * n + 1)
    aim[-1] = 1.0
    loose = np.zeros(len(limits))
    loose[-2 if what == "fairness" else -1 :] = -1.0
    found = linprog(
        aim,
        np.hstack([matrix, loose[:, None]]),
        limits,
        np.concatenate([np.ones(n), np.zeros(n + 1)])[None],
        [1.0],
        [*bounds, (0, None)],
    )
    return found.fun


def measured(weights, loss, size):
    """Largest weight, difference of the groups' ratios, and sum |l - W| of one market."""
    share, sells, first = size / size.sum(), loss > 0, groups(size)
    parts = [
        weights[g].sum() / (share[g & sells].sum() / share[sells].sum())
        for g in (first, ~first)
        if (g & sells).any()
    ]
    ratio = abs(parts[0] - parts[1]) if len(parts) == 2 else 0.0
    return {"cap": weights.max(), "fairness": ratio, "bias": np.abs(weights - share).sum()}


class BySolver(Constrained):
    """Never takes the short way by the closed form."""

    def _keeps(self, market, weights):
        return False


class Proved(BySolver):
    """Stops where the KKT conditions do not prove that the weights are the optimum."""

    def polished(self, market, weights):
        found = exact(market, self._first_group(market), self._box(market), weights)
        assert found is not None
        return found


class Unpolished(BySolver):
    """The solver's weights as they are."""

    def polished(self, market, weights):
        return weights


@pytest.mark.parametrize("rule", [Constrained, BySolver, Unpolished])
@pytest.mark.parametrize("kappa", [8.0, 1e5])
@pytest.mark.parametrize("n", [2, 10, 30])
def test_without_constraints_it_is_opt_aggr(rule, kappa, n):
    loss, size, variance = markets(12, n, kappa, seed=n)
    best = create("opt-aggr").weights(loss, size, 1.0, variance)
    found = rule().weights(loss, size, 1.0, variance)
    bounds = [error_bound(weights, loss, size, 1.0, variance) for weights in (best, found)]
    assert np.abs(found - best).max() <= 1e-8
    assert np.abs(bounds[1] / bounds[0] - 1).max() <= 1e-8


OPTIONS = [
    {"cap": 0.3},
    {"fairness": 0.2},
    {"fairness": 0.0},
    {"bias": 0.4},
    {"cap": 0.4, "fairness": 0.3},
    {"cap": 0.5, "bias": 0.7},
    {"fairness": 0.5, "bias": 0.5},
    {"cap": 0.45, "fairness": 0.3, "bias": 0.9},
]


@pytest.mark.parametrize("kappa", [8.0, 1e5])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_weights_are_the_best_that_keep_the_constraints(options, kappa):
    loss, size, variance = markets(15, 6, kappa, seed=4)
    found = Constrained(**options).weights(loss, size, 1.0, variance)
    bounds = error_bound(found, loss, size, 1.0, variance)
    free = error_bound(
        create("opt-aggr").weights(loss, size, 1.0, variance), loss, size, 1.0, variance
    )
    compared = 0
    for k in range(15):
        theirs = by_slsqp(loss[k], size[k], variance[k], **options)
        if theirs is None:
            continue  # a constraint gives way here: see below
        compared += 1
        assert bounds[k] == pytest.approx(theirs, rel=1e-6)
        values = measured(found[k], loss[k], size[k])
        assert all(values[name] <= limit + 1e-9 for name, limit in options.items())
    assert compared >= 3 and (bounds > free * (1 + 1e-6)).any()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_the_solver_finds_is_made_exact_and_proved(options):
    """The error is that of the solver's weights, and each market's optimum is proved."""
    loss, size, variance = markets(15, 8, 300.0, seed=5)
    proved, raw = (
        rule(**options).weights(loss, size, 1.0, variance) for rule in (Proved, Unpolished)
    )
    assert error_bound(proved, loss, size, 1.0, variance) == pytest.approx(
        error_bound(raw, loss, size, 1.0, variance), rel=1e-7
    )
    assert proved == pytest.approx(raw, abs=1e-4)


@pytest.mark.parametrize("cap", [0.2, 0.34])
def test_the_cap_is_never_below_an_equal_share_of_those_who_sell(cap):
    loss = np.array([[1.0, 2.0, 0.0, 0.0], [1.0, 2.0, 0.5, 0.0]])
    size = np.array([[5.0, 1.0, 1.0, 1.0], [5.0, 1.0, 1.0, 1.0]])
    found = create("constrained", cap=cap).weights(loss, size)
    assert found[0] == pytest.approx([0.5, 0.5, 0, 0])
    assert found[1].max() == pytest.approx(max(cap, 1 / 3))


@pytest.mark.parametrize(("cap", "fairness"), [(0.3, 0.0), (0.2, 0.3)])
def test_fairness_gives_way_to_the_cap_as_little_as_possible(cap, fairness):
    loss, size, _ = markets(25, 6, 8.0, seed=6)
    found = create("constrained", cap=cap, fairness=fairness).weights(loss, size)
    gave_way = 0
    for k in range(25):
        most = max(cap, 1 / (loss[k] > 0).sum())
        if (
            not ((loss[k] > 0) & groups(size[k])).any()
            or not ((loss[k] > 0) & ~groups(size[k])).any()
        ):
            continue
        needed = least(loss[k], size[k], "fairness", cap=most + 1e-12)
        values = measured(found[k], loss[k], size[k])
        assert values["cap"] <= most + 1e-9
        assert values["fairness"] <= max(fairness, needed) * (1 + 1e-9) + 1e-7
        gave_way += needed > fairness + 1e-6
    assert gave_way


@pytest.mark.parametrize("kappa", [8.0, 1e5])
def test_a_bias_that_no_weights_have_gives_way_to_the_least_one(kappa):
    loss, size, variance = markets(25, 6, kappa, seed=7)
    found = create("constrained", bias=0.05).weights(loss, size, 1.0, variance)
    gave_way = 0
    for k in range(25):
        needed = least(loss[k], size[k], "bias")
        lost = size[k, loss[k] == 0].sum() / size[k].sum()
        assert needed == pytest.approx(2 * lost, abs=1e-9)
        assert measured(found[k], loss[k], size[k])["bias"] <= max(0.05, needed) + 1e-9
        gave_way += needed > 0.05
        theirs = by_slsqp(loss[k], size[k], variance[k], bias=max(0.05, needed * (1 + 1e-9)))
        if theirs is not None:
            bound = error_bound(found[[k]], loss[[k]], size[[k]], 1.0, variance[[k]])[0]
            assert bound == pytest.approx(theirs, rel=1e-5)
    assert gave_way


def test_a_run_of_many_hard_markets_ends_with_weights_for_all_of_them():
    """Few sellers, giants, ties and caps: whatever cannot be kept gives way."""
    rng = np.random.default_rng(8)
    loss = rng.choice([0.0, 1e-6, 0.02, 0.5, 0.5, 2.0, 50.0], (60, 7))
    size = rng.choice([1.0, 1.0, 10.0, 1e3, 1e6], (60, 7))
    for kappa in (8.0, 1e5):
        with np.errstate(divide="ignore"):
            variance = kappa / loss**2
        rule = create("constrained", cap=0.25, fairness=0.05, bias=0.2)
        found = rule.weights(loss, size, 1.0, variance)
        sells = (loss > 0).any(axis=1)
        assert (found >= 0).all() and found.sum(axis=1) == pytest.approx(1.0)
        assert (found[(loss == 0) & sells[:, None]] == 0).all()
        most = np.maximum(0.25, 1 / np.maximum((loss > 0).sum(axis=1), 1))
        assert (found.max(axis=1) <= most + 1e-9)[sells].all()


def test_a_solver_that_finds_nothing_does_not_stop_a_run():
    loss, size, variance = markets(6, 5, 100.0, seed=11)
    rule, without = create("constrained", cap=0.45), create("constrained", cap=0.45)
    without.solver = "a solver that nobody has"
    expected = rule.weights(loss, size, 1.0, variance)
    assert without.weights(loss, size, 1.0, variance) == pytest.approx(expected, abs=1e-12)


def test_owners_of_the_same_size_are_one_group_and_nothing_is_compared():
    loss, size = np.array([[0.5, 1.0, 2.0]]), np.full((1, 3), 7.0)
    found = create("constrained", fairness=0.0).weights(loss, size)
    assert found == pytest.approx(create("opt-aggr").weights(loss, size))


def brute_force(loss, size, variance, k, rule):
    """The least error over all supports of k sellers; the others are treated like losers."""
    best = np.inf
    for support in combinations(np.flatnonzero(loss > 0), k):
        part = np.where(np.isin(np.arange(len(loss)), support), loss, 0.0)
        noise = np.where(part > 0, variance, np.inf)
        weights = rule.weights(part[None], size[None], 1.0, noise[None])
        best = min(best, error_bound(weights, part[None], size[None], 1.0, noise[None])[0])
    return best


@pytest.mark.parametrize("kappa", [8.0, 1e5])
@pytest.mark.parametrize("others", [{}, {"cap": 0.4}], ids=str)
def test_few_owners_carry_the_weight_as_well_as_the_best_few(kappa, others):
    count = 4 if others else 8
    loss, size, variance = markets(count, 7, kappa, seed=9)
    for k in (3,) if others else (2, 3, 4):
        found = create("constrained", sparsity=k, **others).weights(loss, size, 1.0, variance)
        bounds = error_bound(found, loss, size, 1.0, variance)
        assert ((found > 0).sum(axis=1) <= k).all()
        for m in range(count):
            if (loss[m] > 0).sum() > k:
                rule = create("constrained", **others)
                best = brute_force(loss[m], size[m], variance[m], k, rule)
                assert bounds[m] == pytest.approx(best, rel=1e-9)


def test_elimination_in_large_markets_is_close_to_the_best_support(monkeypatch):
    """Backward elimination with exchanges, in markets in which all supports can still be tried."""
    for kappa in (8.0, 1e5):
        loss, size, variance = markets(30, 10, kappa, seed=10)
        bounds = {}
        for supports in (5_000, 0):
            monkeypatch.setattr(sparse_support, "ENUMERATED", supports)
            weights = create("constrained", sparsity=4).weights(loss, size, 1.0, variance)
            bounds[supports] = error_bound(weights, loss, size, 1.0, variance)
        gap = bounds[0] / bounds[5_000] - 1
        assert gap.min() >= -1e-9 and gap.max() <= 0.01


def test_sparse_supports_keep_fairness_where_they_can():
    loss, size = np.ones((1, 6)), np.array([[1.0, 1.0, 1.0, 50.0, 60.0, 70.0]])
    found = create("constrained", sparsity=2, fairness=0.1).weights(loss, size)[0]
    assert measured(found, loss[0], size[0])["fairness"] <= 0.1 + 1e-9
    assert (found[:3] > 0).sum() == 1 and (found[3:] > 0).sum() == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cap": 0.0}, "cap must be above 0 and at most 1, got 0.0"),
        ({"cap": 1.5}, "cap must be above 0 and at most 1, got 1.5"),
        ({"cap": "much"}, "cap: Input should be a valid number"),
        ({"fairness": -0.1}, "fairness must be at least 0, got -0.1"),
        ({"groups": "colour"}, "groups: Input should be 'size'"),
        ({"sparsity": 0}, "sparsity must be at least 1, got 0"),
        ({"sparsity": 2.5}, "sparsity: Input should be a valid integer"),
        ({"bias": 0.0}, "bias must be above 0 and at most 2, got 0.0"),
        ({"bias": 3.0}, "bias must be above 0 and at most 2, got 3.0"),
        ({"cap": 0.3, "sparsity": 3}, r"raise cap to 0\.3333, or sparsity to 4"),
        ({"caps": 0.3}, "options: cap, fairness, groups, sparsity, bias"),
    ],
    ids=str,
)
def test_bad_options_are_refused_in_one_sentence(options, why):
    with pytest.raises(InputError, match=why):
        create("constrained", **options)


def test_a_cap_that_a_few_owners_exactly_fill_is_no_contradiction():
    loss, size = np.ones((1, 4)), np.array([[5.0, 1.0, 1.0, 1.0]])
    found = create("constrained", cap=1 / 3, sparsity=3).weights(loss, size)[0]
    assert sorted(found) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
