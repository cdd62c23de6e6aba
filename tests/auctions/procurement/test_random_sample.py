"""Greedy-II and RandomSample as auctions."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.auctions.procurement.posted_rule import PostedRule
from flmarket_sim.auctions.procurement.random_sample import sample_sales
from flmarket_sim.auctions.procurement.stacked_draws import StackedDraws
from flmarket_sim.errors import InputError
from tests.auctions.test_classical import best_lie, decide, step_bids
from tests.support.profiles import random_profiles

from . import references


@pytest.mark.parametrize("purse", ["halves", "shared"])
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_random_sample_is_decided_as_its_definition_decides_each_market(n, purse):
    rng = np.random.default_rng(n)
    asks, worth = rng.lognormal(0, 1, (2, 50, n))
    money = rng.uniform(0.1, 2.0, 50) * asks.sum(axis=1)
    draws = StackedDraws.of([np.random.default_rng(7)], asks.shape)
    sells, payment = sample_sales(asks, worth, money, draws, purse)
    drawn = np.random.default_rng(7)
    order, coin = drawn.random((50, n)).argsort(axis=1), drawn.random((50, n))
    for k in range(50):
        paid = references.random_sample(
            asks[k], worth[k], money[k], order[k].tolist(), coin[k], purse == "shared"
        )
        assert sells[k].tolist() == [pay is not None for pay in paid]
        assert payment[k] == pytest.approx([pay or 0.0 for pay in paid])


def test_greedy_ii_is_decided_as_its_definition_decides_each_market():
    rng = np.random.default_rng(1)
    asks, size = rng.lognormal(0, 1, (50, 6)), np.ceil(rng.lognormal(1, 1, (50, 6)))
    money = rng.uniform(0.1, 2.0, 50) * asks.sum(axis=1)
    outcome = decide("greedy-ii", step_bids(asks, np.ones((50, 6)), size), money)
    drawn = np.random.default_rng(0)
    order, coin = drawn.random((50, 6)).argsort(axis=1), drawn.random((50, 6))
    for k in range(50):
        _, (low, high, chance) = references.best_rule(asks[k], size[k], money[k])
        posted = np.where(coin[k] < chance, high, low)
        paid = references.sell_in_turn(asks[k], size[k], posted, money[k], order[k])
        assert outcome.payment[k] == pytest.approx([pay or 0.0 for pay in paid])


@pytest.mark.parametrize("options", [{}, {"purse": "shared"}, None])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_many_draws_at_once_are_those_that_come_one_by_one(options, n):
    truth, budget = random_profiles(np.random.default_rng(3), 5, n), np.linspace(1.0, 400.0, 5)
    auction = (
        auctions.create("greedy-ii")
        if options is None
        else auctions.create("random-sample", **options)
    )
    rngs = [np.random.default_rng([4, draw]) for draw in range(6)]
    many = auction.decide_draws(truth.bids(), budget, rngs)
    for draw, outcome in enumerate(many):
        alone = auction.decide(truth.bids(), budget, np.random.default_rng([4, draw]))
        assert (outcome.privacy_loss == alone.privacy_loss).all()
        assert (outcome.payment == alone.payment).all()
    assert n == 1 or sum(outcome.payment.sum() for outcome in many) > 0


def test_greedy_ii_buys_nearly_what_its_rule_buys_on_average():
    rng = np.random.default_rng(2)
    asks, size = rng.exponential(20.0, (100, 400)), np.ones((100, 400))
    money = np.full(100, 8000.0)
    outcome = decide("greedy-ii", step_bids(asks, size, size), money)
    promised = PostedRule.best(asks, size, money).sold.mean()
    bought = outcome.privacy_loss.sum(axis=1).mean()
    assert 0.985 * promised < bought < promised * 1.003


@pytest.mark.parametrize("name", ["greedy-ii", "random-sample"])
def test_no_draw_overspends_or_underpays(name):
    rng = np.random.default_rng(5)
    truth = random_profiles(rng, 100, 8, ("linear", "sqrt", "step"))
    money = rng.uniform(0.05, 2.0, 100) * truth.total_value()
    auction, bids = auctions.create(name), truth.bids()
    for seed in range(20):
        outcome = auction.decide(bids, money, np.random.default_rng(seed))
        assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-9)).all()
        utility = truth.utility(outcome.privacy_loss, outcome.payment)
        assert (utility >= -1e-9 * money[:, None]).all()
        assert ((outcome.payment > 0) == (outcome.privacy_loss > 0)).all()
    assert outcome.payment.any()


def test_no_lie_of_a_single_minded_owner_pays_in_random_sample():
    assert auctions.create("random-sample").guarantees["truthful"] == "single-minded"
    rng = np.random.default_rng(7)
    truth = random_profiles(rng, 300, 6, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    assert best_lie("random-sample", truth, money, rng).max() <= 1e-9


def test_the_same_search_finds_lies_in_greedy_ii():
    rng = np.random.default_rng(8)
    truth = random_profiles(rng, 300, 6, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    assert auctions.create("greedy-ii").guarantees["truthful"] == "none"
    assert best_lie("greedy-ii", truth, money, rng).max() > 0.01


def test_in_a_shared_purse_the_second_half_gains_by_a_lower_price_for_the_first():
    """Who asks less makes a cheaper rule for the first half, and it leaves more money."""
    shared = auctions.create("random-sample", purse="shared")
    assert shared.guarantees["truthful"] == "none"
    rng = np.random.default_rng(9)
    truth = random_profiles(rng, 300, 4, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    full, size = truth.value(truth.privacy_budget), truth.data_size
    best = 0.0
    honest = shared.decide(truth.bids(1), money, np.random.default_rng(0))
    base = truth.utility(honest.privacy_loss, honest.payment)
    for factor in (0.01, 0.5, 0.8):
        for i in range(4):
            asks = full.copy()
            asks[:, i] *= factor
            lie = step_bids(asks, truth.privacy_budget, size)
            outcome = shared.decide(lie, money, np.random.default_rng(0))
            gain = truth.utility(outcome.privacy_loss, outcome.payment) - base
            best = max(best, (gain / full)[:, i].max())
    assert best > 0.01


def test_halves_without_owners_post_nothing_and_no_money_buys_nothing():
    alone = step_bids([[1.0]], [[1.0]], [[1.0]])
    assert not decide("random-sample", alone, [100.0]).payment.any()
    assert decide("greedy-ii", alone, [100.0]).payment.tolist() == [[1.0]]
    bids = random_profiles(np.random.default_rng(6), 4, 5).bids()
    for name in ("greedy-ii", "random-sample"):
        outcome = decide(name, bids, np.zeros(4))
        assert not outcome.privacy_loss.any() and not outcome.payment.any()


def test_an_unknown_purse_is_refused():
    with pytest.raises(InputError, match="purse"):
        fm.auctions.create("random-sample", purse="mine")
