"""First-best against exhaustive purchases, and its lower bound against the same."""

import itertools

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import coordinate_error
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import first_best
from flmarket_sim.auctions.proved_bound import TOLERANCE, proved_bound
from flmarket_sim.owners import valuation
from tests.support.profiles import random_profiles

DIVISIBLE = ("linear", "quadratic", "sqrt", "exponential")
ALL = (*DIVISIBLE, "step")
PAPER = coordinate_error()


def bound(loss, size, error=PAPER):
    loss = np.atleast_2d(loss)
    size = np.broadcast_to(size, loss.shape)
    weights = weights_in(fm.aggregation.create("opt-aggr"), loss, size, error)
    return error_bound_in(error, weights, loss, size).total


def exhaustive(truth, money, points, error=PAPER):
    """(K,) the least error of a grid: all owners but one sell any of `points` losses from 0 to the
    privacy budget, and that one, each in turn, sells as much as the rest of the money buys."""
    best = np.full(truth.shape[0], np.inf)
    share = np.linspace(0.0, 1.0, points) ** 1.5  # more of the small losses
    n = truth.shape[1]
    for k, last in itertools.product(range(truth.shape[0]), range(n)):
        grid = np.array(list(itertools.product(share, repeat=n - 1)))
        one = truth.take(np.full(len(grid), k))
        loss = np.insert(grid, last, 0.0, axis=1) * one.privacy_budget
        left = money[k] - one.value(loss).sum(axis=1)
        rest = valuation.loss_for_money(
            one.family, one.rate, one.data_size, one.privacy_budget, left[:, None]
        )
        loss[:, last] = rest[:, last]
        loss = loss[(left >= 0) & (loss > 0).any(axis=1)]
        if len(loss):
            best[k] = min(best[k], bound(loss, truth.data_size[k], error).min())
    return best


def best_subset(truth, money, error=PAPER):
    """(K,) the least error of all affordable sets of whole sales."""
    sets = np.array(list(itertools.product([False, True], repeat=truth.shape[1])))[1:]
    price = truth.value(truth.privacy_budget)
    return np.array(
        [
            bound((sets * truth.privacy_budget[k])[sets @ price[k] <= money[k]], size, error).min()
            for k, size in enumerate(truth.data_size)
        ]
    )


SMALL = [
    (number, n, points, families)
    for n, points, markets in ((2, 300, 60), (3, 30, 30), (4, 10, 12))
    for number, families in ((markets, DIVISIBLE), (markets, ALL), (markets // 3, ("sqrt", "step")))
]


@pytest.mark.parametrize(("markets", "n", "points", "families"), SMALL)
def test_in_small_markets_the_optimum_lies_between_the_lower_bound_and_the_purchase(
    markets, n, points, families
):
    rng = np.random.default_rng(n)
    truth = random_profiles(rng, markets, n, families)
    price = truth.value(truth.privacy_budget)
    money = np.maximum(rng.uniform(0.05, 1.0, markets) * price.sum(1), price.min(1) * 1.001)
    found = first_best(truth, money, bound=True)
    reference = exhaustive(truth, money, points)
    assert (found.spending <= money * (1 + 1e-9)).all()
    assert (found.error_bound <= reference * 1.005).all()
    assert (found.lower_bound <= reference).all()
    assert (found.lower_bound <= found.error_bound).all()
    assert found.gap.max() <= 0.02


def test_the_proved_bound_holds_whatever_purchase_it_is_given():
    rng = np.random.default_rng(4)
    for families in (DIVISIBLE, ALL):
        truth = random_profiles(rng, 20, 3, families)
        price = truth.value(truth.privacy_budget)
        money = np.maximum(rng.uniform(0.2, 0.8, 20) * price.sum(1), price.min(1) * 1.001)
        best = exhaustive(truth, money, 25)
        cheapest = price.argmin(1)[:, None] == np.arange(3)
        poor = np.where(cheapest, 0.5 * truth.privacy_budget, 0.0)
        proved = proved_bound(truth, money, poor, most_nodes=40)
        assert (proved <= best).all()
        assert np.mean(proved / best) >= 0.9  # and it says something


def test_the_crude_lower_bound_holds_too():
    rng = np.random.default_rng(5)
    truth = random_profiles(rng, 60, 3, ALL)
    price = truth.value(truth.privacy_budget)
    money = np.maximum(rng.uniform(0.05, 1.0, 60) * price.sum(1), price.min(1) * 1.001)
    assert (first_best(truth, money).lower_bound <= exhaustive(truth, money, 20)).all()


def test_ten_owners_are_bought_within_a_percent_of_the_proved_bound():
    rng = np.random.default_rng(6)
    for families in (DIVISIBLE, ALL):
        truth = random_profiles(rng, 12, 10, families)
        found = first_best(truth, rng.uniform(0.1, 0.9, 12) * truth.total_value(), bound=True)
        assert (found.gap >= 0).all() and found.gap.max() <= 0.01
        assert np.median(found.gap) <= TOLERANCE * 1.001


def test_step_owners_are_bought_whole_and_as_well_as_the_best_subset():
    rng = np.random.default_rng(1)
    for n in (1, 2, 6, 9):
        truth = random_profiles(rng, 40, n, ("step",))
        price = truth.value(truth.privacy_budget)
        money = np.maximum(rng.uniform(0.1, 0.9, 40) * price.sum(1), price.min(1))
        found = first_best(truth, money)
        assert set(np.unique(found.privacy_loss / truth.privacy_budget)) <= {0.0, 1.0}
        assert found.error_bound == pytest.approx(best_subset(truth, money), rel=1e-12)
        assert (found.gap == 0).all()


def test_a_set_of_step_owners_may_cost_exactly_the_budget():
    truth = random_profiles(np.random.default_rng(2), 30, 5, ("step",))
    price = truth.value(truth.privacy_budget)
    found = first_best(truth, price[:, 0] + price[:, 2] + price[:, 3])
    bought = np.array([1, 0, 1, 1, 0]) * truth.privacy_budget
    assert (found.error_bound <= bound(bought, truth.data_size) * (1 + 1e-12)).all()


def test_with_more_than_14_step_owners_the_sets_are_searched():
    rng = np.random.default_rng(3)
    truth = random_profiles(rng, 4, 15, ("step",))
    money = rng.uniform(0.2, 0.8, 4) * truth.total_value()
    found, best = first_best(truth, money, bound=True), best_subset(truth, money)
    assert (found.spending <= money).all()
    assert (found.error_bound <= best * 1.005).all() and (found.lower_bound <= best).all()


def test_a_purchase_does_not_depend_on_the_other_markets():
    rng = np.random.default_rng(7)
    truth = random_profiles(rng, 6, 6, ALL)
    money = 0.4 * truth.total_value()
    together = first_best(truth, money)
    alone = [first_best(truth.take([k]), money[[k]]).error_bound[0] for k in range(6)]
    assert together.error_bound == pytest.approx(alone, rel=1e-6)


def test_the_error_grows_with_the_square_of_the_clipping_threshold():
    truth = random_profiles(np.random.default_rng(8), 5, 4)
    one, three = (first_best(truth, 0.3 * truth.total_value(), c, bound=True) for c in (1.0, 3.0))
    assert three.error_bound == pytest.approx(9 * one.error_bound, rel=1e-6)
    assert three.lower_bound == pytest.approx(9 * one.lower_bound, rel=1e-3)


def test_it_never_spends_more_than_there_is_and_no_mechanism_beats_it():
    rng = np.random.default_rng(2)
    for n, families in ((10, DIVISIBLE), (2, ("step", "linear")), (3, ("step", "linear"))):
        truth = random_profiles(rng, 100, n, families)
        money = rng.uniform(0.1, 2.0, 100) * truth.total_value()
        best = first_best(truth, money)
        assert (best.spending <= money * (1 + 1e-9)).all()
        for name in (
            "all-in",
            "all-in-critical",
            "proportional-share",
            "pay-as-bid",
            "posted-price",
        ):
            outcome = fm.auctions.create(name).decide(truth.bids(), money, rng)
            assert (
                bound(outcome.privacy_loss, truth.data_size) >= best.error_bound * (1 - 1e-6)
            ).all(), name


def test_enough_money_buys_everything():
    truth = random_profiles(np.random.default_rng(3), 3, 5)
    found = first_best(truth, truth.total_value())
    assert found.privacy_loss == pytest.approx(truth.privacy_budget)
    assert (found.gap == 0).all()


def test_no_money_buys_nothing():
    truth = random_profiles(np.random.default_rng(4), 3, 5, ALL)
    found = first_best(truth, np.zeros(3), bound=True)
    assert (found.privacy_loss == 0).all() and (found.spending == 0).all()
    assert np.isinf(found.error_bound).all() and (found.gap == 0).all()


def test_a_wrong_budget_is_refused():
    truth = random_profiles(np.random.default_rng(4), 3, 5)
    with pytest.raises(fm.errors.InputError, match=r"of shape \(3,\)"):
        first_best(truth, [1.0, 2.0])
