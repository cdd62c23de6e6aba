"""The clock really ticks in a slow twin, and no coalition of single-minded owners beats it."""

from itertools import combinations, product

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.errors import InputError
from tests.support.profiles import random_profiles

TICK = 1e-3
REPORTS = tuple(product((1e-6, 0.6, 1.0, 1.4, 3.0), (0.5, 1.0), (0.5, 1.0)))


def decide(auction, bids, money):
    made = auctions.create(auction) if isinstance(auction, str) else auction
    return made.decide(bids, np.asarray(money, float), np.random.default_rng(0))


def ticking(values, amount, money, cap):
    """A clock that ticks: at each price owners leave who are offered less than they ask."""
    left, most = set(range(len(values))), cap * money
    price = 1.1 * max(1.0, money) / min(amount)
    while left:
        offer = {i: min(price * amount[i], most) for i in left}
        leaving = [i for i in left if offer[i] < values[i]]
        if leaving:
            left -= set(leaving)
        elif sum(offer.values()) <= money:
            return offer
        else:
            price *= 1 - TICK
    return {}


@pytest.mark.parametrize("cap", [1.0, 0.7, 0.3])
def test_it_stops_where_a_ticking_clock_stops(cap):
    rng = np.random.default_rng(1)
    truth = random_profiles(rng, 60, 6)
    bids, money = truth.bids(), rng.uniform(0.1, 1.5, 60) * truth.total_value()
    outcome = decide(auctions.create("clock", cap=cap), bids, money)
    same, paid = 0, []
    for k in range(60):
        stayed = ticking(
            bids.full_value[k], bids.data_size[k] * bids.privacy_budget[k], money[k], cap
        )
        won = set(np.flatnonzero(outcome.privacy_loss[k]).tolist())
        same += won == set(stayed)
        if won == set(stayed):
            paid += [outcome.payment[k, i] / stayed[i] for i in won]
    assert same >= 57  # within a tick of a tie it may stop on either side
    assert paid == pytest.approx(np.ones(len(paid)), rel=3 * TICK)


def test_where_nobody_asks_for_much_it_is_proportional_share():
    rng = np.random.default_rng(2)
    truth = random_profiles(rng, 400, 30)
    money = 1.1 * truth.value(truth.privacy_budget).max(axis=1) + 0.5 * truth.total_value()
    clock = decide(auctions.create("clock", cap=1.0), truth.bids(), money)
    share = decide("proportional-share", truth.bids(), money)
    assert (clock.privacy_loss == share.privacy_loss).all()
    assert clock.payment == pytest.approx(share.payment)


def test_an_owner_who_asks_for_more_than_the_cap_leaves_before_the_price_falls():
    bids = fm.BidBatch([[[8.0], [1.0]]], [[1.0, 1.0]], [[16.0, 1.0]])
    assert decide("proportional-share", bids, [10.0]).payment[0, 1] == 0  # 1 a unit is too dear
    assert decide("clock", bids, [10.0]).payment.tolist() == [[0.0, 7.0]]
    assert decide(auctions.create("clock", cap=0.8), bids, [10.0]).payment[0, 0] > 7.9


def test_a_cap_is_a_share():
    for cap in (0.0, 1.5):
        with pytest.raises(InputError, match="cap"):
            auctions.create("clock", cap=cap)


def test_a_large_market_is_decided():
    truth = random_profiles(np.random.default_rng(3), 2, 5000)
    money = 0.3 * truth.total_value()
    outcome = decide("clock", truth.bids(), money)
    assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-9)).all()
    assert (outcome.payment.sum(axis=1) > 0.9 * money).all()


def joint_gains(auction, members, seed, markets=40, owners=5):
    """The largest of the least relative gains of a coalition's members, over joint misreports.

    A number above 0 means that some joint misreport makes every member strictly better off.
    Two members try all pairs of `REPORTS`; more of them try random ones.
    """
    rng = np.random.default_rng(seed)
    truth = random_profiles(rng, markets, owners, ("step",))
    money = rng.uniform(0.15, 1.2, markets) * truth.total_value()
    full, eb, size = truth.value(truth.privacy_budget), truth.privacy_budget, truth.data_size
    honest = decide(auction, truth.bids(1), money)
    base = truth.utility(honest.privacy_loss, honest.payment)
    best = -np.inf
    for group in combinations(range(owners), members):
        if members == 2:
            joint = list(product(range(len(REPORTS)), repeat=2))
        else:
            joint = rng.integers(0, len(REPORTS), (400, members)).tolist()
        factors = np.ones((len(joint), owners, 3))
        factors[:, group] = np.array([[REPORTS[j] for j in each] for each in joint])
        shape = (len(joint) * markets, owners)
        reported = [
            (column[None] * factors[:, None, :, part]).reshape(shape)
            for part, column in enumerate((full, eb, size))
        ]
        reported[2] = np.maximum(np.floor(reported[2]), 1.0)
        bids = fm.BidBatch(reported[0][..., None], reported[1], reported[2])
        outcome = decide(auction, bids, np.tile(money, len(joint)))
        sold = outcome.privacy_loss > 0
        gain = np.where(sold, outcome.payment - np.tile(full, (len(joint), 1)), 0.0)
        gain = (gain - np.tile(base, (len(joint), 1)))[:, group] / np.tile(
            full[:, group], (len(joint), 1)
        )
        best = max(best, float(gain.min(axis=1).max()))
    return best


@pytest.mark.parametrize("members", [2, 3, 4, 5])
@pytest.mark.parametrize("cap", [0.7, 1.0])
def test_no_coalition_makes_all_of_its_members_better_off(members, cap):
    assert joint_gains(auctions.create("clock", cap=cap), members, seed=members) <= 1e-9


@pytest.mark.parametrize("value", ["loss-squared", "precision"])
def test_nor_does_one_where_a_unit_is_something_else(value):
    assert joint_gains(auctions.create("clock", value=value), 2, seed=9) <= 1e-9


@pytest.mark.parametrize("auction", ["all-in", "pay-as-bid", "all-in-critical"])
def test_the_same_search_finds_coalitions_against_other_auctions(auction):
    assert joint_gains(auction, 2, seed=1, markets=60) > 0.1
