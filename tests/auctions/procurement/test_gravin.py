"""Pruning, and the two mechanisms that follow it."""

import numpy as np
import pytest

from flmarket_sim import auctions
from flmarket_sim.auctions.procurement.gravin_2 import random_prices
from flmarket_sim.auctions.procurement.pruning import Pruned
from tests.auctions.test_classical import decide, step_bids

from . import references

BOTH = ("gravin-3", "gravin-2")


def markets(seed, count, n, whole=False):
    """What owners ask, records, and money; whole numbers for ties."""
    rng = np.random.default_rng(seed)
    if whole:
        asks, size = rng.integers(1, 8, (count, n)), rng.integers(1, 6, (count, n))
        return asks.astype(float), size.astype(float), rng.integers(1, 16, count).astype(float)
    asks, size = rng.lognormal(0, 1, (count, n)), np.ceil(rng.lognormal(2, 1, (count, n)))
    return asks, size, rng.uniform(0.05, 1.5, count) * asks.sum(axis=1)


def decided(name, asks, size, money, seed=0):
    bids = step_bids(asks, np.ones_like(size), size)
    return auctions.create(name).decide(bids, money, np.random.default_rng(seed))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("name", BOTH)
def test_a_batch_is_decided_as_its_definition_decides_each_market(name, n, whole):
    asks, size, money = markets(n, 150, n, whole)
    outcome = decided(name, asks, size, money)
    coin, uniform = np.random.default_rng(0).random((2, 150))
    for k in range(150):
        chance = (coin[k] < 0.5, uniform[k]) if name == "gravin-2" else ()
        paid = references.gravin(asks[k], size[k], money[k], *chance)
        assert (outcome.privacy_loss[k] > 0).tolist() == [pay is not None for pay in paid]
        assert outcome.payment[k] == pytest.approx([pay or 0.0 for pay in paid])


@pytest.mark.parametrize("whole", [False, True])
def test_what_pruning_promises(whole):
    asks, size, money = markets(30, 300, 6, whole)
    pruned = Pruned.of(asks, size, money)
    kept = pruned.major | pruned.minor
    some = kept.any(axis=1)
    assert some.tolist() == (asks <= money[:, None]).any(axis=1).tolist() and some.any()
    assert not (pruned.major & pruned.minor).any()
    price = pruned.price[:, None]
    assert (np.where(kept, asks, 0.0) <= price * size * (1 + 1e-12)).all()
    assert (np.where(kept, size * price, 0.0) <= money[:, None] * (1 + 1e-12)).all()
    total, cost = (size * kept).sum(axis=1), (asks * kept).sum(axis=1)
    largest = np.where(kept, size, 0.0).max(axis=1)
    limit = money / np.where(some, pruned.price, 1.0)
    assert ((total - largest <= limit * (1 + 1e-12)) & (limit <= total * (1 + 1e-12)))[some].all()
    for k in np.flatnonzero(some):
        best = references.fractional_optimum(asks[k], size[k], money[k])
        assert best <= total[k] + (money[k] - cost[k]) / pruned.price[k] + 1e-9


@pytest.mark.parametrize("whole", [False, True])
def test_gravin_3_buys_a_third_of_the_optimum(whole):
    for n in range(1, 8):
        asks, size, money = markets(40 + n, 60, n, whole)
        sold = (decided("gravin-3", asks, size, money).privacy_loss * size).sum(axis=1)
        for k in range(60):
            assert sold[k] * 3 >= references.fractional_optimum(asks[k], size[k], money[k]) - 1e-9
            assert sold[k] * 3 >= references.knapsack(asks[k], size[k], money[k])


def test_to_buy_only_the_more_valuable_group_is_less_than_a_third():
    """Two owners of value 1 who ask next to nothing, two of ratio B / 1.9: {i*} and S without i*
    are worth 1 each, and the fractional optimum is 3.9. The rest of the money buys both."""
    asks = np.array([[1e-9, 1e-9, 1 / 1.9, 1 / 1.9]])
    pruned = Pruned.of(asks, np.ones((1, 4)), np.ones(1))
    assert pruned.major.sum() == pruned.minor.sum() == 1
    assert references.fractional_optimum(asks[0], [1.0] * 4, 1.0) == pytest.approx(3.9)
    assert decided("gravin-3", asks, np.ones((1, 4)), np.ones(1)).privacy_loss.sum() == 2


@pytest.mark.parametrize("whole", [False, True])
def test_gravin_2_buys_half_of_the_optimum_on_average(whole):
    """The mean over both coins and many even places of U is the formula of the docstring."""
    count, places = 120, 2000
    uniform = np.repeat(((np.arange(places) + 0.5) / places)[None], count, axis=0)
    for n in (1, 2, 3, 6):
        asks, size, money = markets(50 + n, count, n, whole)
        pruned = Pruned.of(asks, size, money)
        kept = pruned.major | pruned.minor
        mean, largest = np.zeros(count), np.zeros(count)
        for heads in (False, True):
            for u in uniform.T:
                first, second = random_prices(pruned, np.full(count, heads), u)
                price = np.where(pruned.major, first[:, None], second[:, None])
                sells = kept & (asks / size <= price)
                mean += (size * sells).sum(axis=1) / (2 * places)
                largest = np.maximum(largest, (price * size * kept).sum(axis=1))
        assert (largest <= money * (1 + 1e-12)).all()
        some = kept.any(axis=1)
        bound = (size * kept).sum(axis=1) + np.where(
            some, money - (asks * kept).sum(axis=1), 0.0
        ) / np.where(some, pruned.price, 1.0)
        assert mean == pytest.approx(bound / 2, abs=2e-3 * size.sum(axis=1).max())
        for k in range(count):
            best = references.fractional_optimum(asks[k], size[k], money[k])
            assert mean[k] >= best / 2 - 2e-3 * size[k].sum()


@pytest.mark.parametrize("whole", [False, True])
def test_the_stated_chances_and_payments_are_the_means_of_draws(whole):
    asks, size, money = markets(55, 30, 4, whole)
    auction, draws = auctions.create("gravin-2"), 4000
    bids = step_bids(asks, np.ones_like(size), size)
    chance, payment = auction.expected(bids, money)
    assert chance.sum(axis=2) == pytest.approx(1) and (payment >= 0).all()
    many = bids.take(np.repeat(np.arange(30), draws))
    drawn = auction.decide(many, np.repeat(money, draws), np.random.default_rng(1))
    sold = (drawn.privacy_loss > 0).reshape(30, draws, 4).mean(axis=1)
    paid = drawn.payment.reshape(30, draws, 4).mean(axis=1)
    assert chance[..., 1] == pytest.approx(sold, abs=0.04)
    assert chance[..., 1] * payment[..., 1] / money[:, None] == pytest.approx(
        paid / money[:, None], abs=0.04
    )


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("whole", [False, True])
def test_every_winner_is_paid_the_most_that_she_could_have_asked(name, whole):
    """The twin of the payments: bisection on what one owner asks, until she no longer wins."""
    asks, size, money = markets(60, 80, 5, whole)
    if whole:
        asks += 1e-3 * np.random.default_rng(1).random(asks.shape)  # values are tied, asks are not
    outcome = decided(name, asks, size, money)
    for i in range(5):
        low, high = asks[:, i].copy(), money + 1.0
        for _ in range(60):
            other = asks.copy()
            other[:, i] = (low + high) / 2
            wins = decided(name, other, size, money).privacy_loss[:, i] > 0
            low, high = np.where(wins, other[:, i], low), np.where(wins, high, other[:, i])
        won = outcome.privacy_loss[:, i] > 0
        assert won.any() and outcome.payment[won, i] == pytest.approx(low[won], rel=1e-9)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("whole", [False, True])
def test_no_false_price_pays_whatever_the_draw(name, whole):
    asks, size, money = markets(70, 300, 5, whole)
    rng = np.random.default_rng(2)
    for seed in range(3):
        honest = decided(name, asks, size, money, seed)
        base = np.where(honest.privacy_loss > 0, honest.payment - asks, 0.0)
        for _ in range(60):
            i, other = int(rng.integers(5)), asks.copy()
            other[:, i] *= rng.choice([1e-6, 0.5, 1.5, *rng.uniform(0.2, 3.0, 3)])
            if rng.random() < 0.3:
                other[:, i] = asks[:, (i + 1) % 5]  # a tie
            lie = decided(name, other, size, money, seed)
            gain = np.where(lie.privacy_loss > 0, lie.payment - asks, 0.0) - base
            assert (gain[:, i] <= 1e-9 * money).all()


def test_an_understated_value_can_pay():
    """Owner 3 is the most valuable one by the truth and gets what the others leave, which is
    nothing. With fewer records she is one of the others."""
    asks, money = np.array([[104.0, 26.0, 88.0]]), np.array([700.0])
    assert decided("gravin-3", asks, np.array([[104.0, 20.0, 110.0]]), money).payment[0, 2] == 0
    lie = decided("gravin-3", asks, np.array([[104.0, 20.0, 88.0]]), money)
    assert lie.payment[0, 2] > 5 * asks[0, 2]
    assert auctions.create("gravin-3").guarantees["truthful"] == "none"


@pytest.mark.parametrize("name", BOTH)
def test_no_draw_overspends_or_underpays(name):
    for whole in (False, True):
        asks, size, money = markets(80, 300, 7, whole)
        for seed in range(10):
            outcome = decided(name, asks, size, money, seed)
            assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-9)).all()
            sells = outcome.privacy_loss > 0
            assert (outcome.payment[sells] >= asks[sells] * (1 - 1e-12)).all() and sells.any()
            assert not outcome.payment[~sells].any()


def test_one_owner_sells_for_all_of_the_money_and_without_money_nobody_sells():
    assert decide("gravin-3", step_bids([[2.0]], [[1.0]], [[3.0]]), [5.0]).payment.tolist() == [[5]]
    for name in BOTH:
        assert not decide(name, step_bids([[2.0]], [[1.0]], [[3.0]]), [1.9]).payment.any()
        assert not decide(name, step_bids([[2.0, 1.0]], [[1, 1]], [[3, 1]]), [0.0]).payment.any()


def test_the_value_of_a_sale_is_an_option():
    asks, size, money = markets(90, 40, 6)
    bids = step_bids(asks, np.random.default_rng(3).uniform(0.5, 2.0, asks.shape), size)
    for name in ("agn", "greedy-ii", "random-sample", *BOTH):
        plain = decide(name, bids, money)
        squared = decide(name, bids, money, value="loss-squared")
        assert (plain.payment != squared.payment).any()
        same = step_bids(asks, bids.privacy_budget, np.ones_like(size))
        assert (decide(name, same, money, value="loss-squared").payment == squared.payment).all()
