"""Batches are decided as the definitions decide each market."""

import numpy as np
import pytest

import flmarket_sim as fm
from tests.support.profiles import random_profiles

from .references import REFERENCES, csra, fmore, shapley_values

MARKETS = {"shapley-pay": 6, "stackelberg": 25}


def decided(name, bids, money, **options):
    auction = fm.auctions.create(name, **options)
    return auction.decide(bids, np.asarray(money, float), np.random.default_rng(0))


def tables(bids):
    """The same reports without the valuations that they state."""
    return fm.BidBatch(bids.values, bids.privacy_budget, bids.data_size)


def agree(outcome, bids, money, twin, **options):
    for k in range(len(money)):
        loss, payment = twin(
            bids.values[k], bids.privacy_budget[k], bids.data_size[k], money[k], **options
        )
        assert outcome.privacy_loss[k] == pytest.approx(loss, rel=1e-9, abs=1e-12)
        assert outcome.payment[k] == pytest.approx(payment, rel=1e-9, abs=1e-9 * money[k])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_a_batch_is_decided_as_the_definition_decides_each_market(name, n):
    rng = np.random.default_rng(n)
    count = MARKETS.get(name, 150)
    bids = tables(random_profiles(rng, count, n, ("linear", "quadratic", "sqrt", "step")).bids())
    money = rng.uniform(0.05, 2.0, count) * bids.full_value.sum(axis=1)
    agree(decided(name, bids, money), bids, money, REFERENCES[name])


@pytest.mark.parametrize("name", REFERENCES)
def test_ties_are_broken_as_in_the_definition(name):
    rng = np.random.default_rng(3)
    count = MARKETS.get(name, 100)
    asks = np.repeat(rng.integers(1, 3, (count, 4, 1)), 2, axis=2) * np.array([1.0, 2.0])
    sizes = rng.integers(1, 3, (count, 4)).astype(float)
    bids = fm.BidBatch(asks.astype(float), np.ones((count, 4)), sizes)
    money = rng.uniform(0.1, 1.5, count) * bids.full_value.sum(axis=1)
    agree(decided(name, bids, money), bids, money, REFERENCES[name])


@pytest.mark.parametrize(
    ("name", "twin", "options"),
    [
        ("csra", csra, {"sells": "equal"}),
        ("fmore", fmore, {"payment": "second", "winners": 2}),
        ("fmore", fmore, {"payment": "second", "winners": 6}),
        ("fmore", fmore, {"worth": 2.0, "winners": 3}),
    ],
)
def test_options_do_what_the_definitions_say(name, twin, options):
    rng = np.random.default_rng(4)
    bids = tables(random_profiles(rng, 150, 6).bids())
    money = rng.uniform(0.1, 2.0, 150) * bids.full_value.sum(axis=1)
    agree(decided(name, bids, money, **options), bids, money, twin, **options)


def test_shapley_values_of_a_large_market_are_means_over_the_orders_that_are_drawn():
    truth = random_profiles(np.random.default_rng(5), 2, 6)
    auction = fm.auctions.create("shapley-pay", exact=3, permutations=7)
    outcome = auction.decide(truth.bids(), np.array([10.0, 20.0]), np.random.default_rng(8))
    orders = np.random.default_rng(8).random((2, 7, 6)).argsort(axis=2)
    for k, money in enumerate((10.0, 20.0)):
        value = shapley_values(truth.privacy_budget[k], truth.data_size[k], orders[k].tolist())
        assert outcome.payment[k] == pytest.approx(money * value / value.sum())


def test_many_orders_come_near_the_exact_shapley_values():
    truth = random_profiles(np.random.default_rng(6), 3, 5)
    exact = decided("shapley-pay", truth.bids(), np.ones(3))
    sampled = decided("shapley-pay", truth.bids(), np.ones(3), exact=1, permutations=4000)
    assert sampled.payment == pytest.approx(exact.payment, abs=0.02)
    assert (sampled.payment != exact.payment).all()


def test_shapley_values_follow_the_error_of_the_market():
    """Where noise is all that counts, records do not matter, and privacy budgets do."""
    from flmarket_sim.aggregation.market_error import error_of_kappa

    sizes, budgets = np.array([[1000.0, 10.0]]), np.array([[2.0, 2.2]])
    bids = fm.BidBatch(np.ones((1, 2, 1)), budgets, sizes)
    shares = [
        auction.decide(bids, np.ones(1), np.random.default_rng(0)).payment[0]
        for auction in (
            fm.auctions.create("shapley-pay"),
            fm.auctions.create("shapley-pay").in_market(error_of_kappa(1e6)),
        )
    ]
    assert shares[0][0] > 0.5 and shares[1][1] > 0.5
