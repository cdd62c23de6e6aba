"""AGN: its definition, what holds in it, and what does not."""

import math

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions.procurement.agn import fractional_sales
from tests.auctions.test_classical import decide
from tests.support.profiles import random_profiles

from . import references


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_batch_is_decided_as_its_definition_decides_each_market(n):
    rng = np.random.default_rng(n)
    truth = random_profiles(rng, 60, n)
    bids, money = truth.bids(), rng.uniform(0.05, 2.0, 60) * truth.total_value()
    outcome = decide("agn", bids, money)
    for k in range(60):
        worth = bids.data_size[k] * bids.privacy_budget[k]
        fraction, payment = references.agn(bids.full_value[k], worth, money[k])
        assert outcome.privacy_loss[k] / bids.privacy_budget[k] == pytest.approx(fraction)
        assert outcome.payment[k] == pytest.approx(payment)


def test_all_of_the_money_is_spent_and_no_more():
    rng = np.random.default_rng(1)
    truth = random_profiles(rng, 300, 8)
    money = rng.uniform(0.01, 3.0, 300) * truth.total_value()
    spent = decide("agn", truth.bids(), money).payment.sum(axis=1)
    assert spent == pytest.approx(money) and (spent <= money * (1 + 1e-12)).all()


@pytest.mark.parametrize("family", ["linear", "quadratic"])
def test_nobody_of_convex_cost_sells_at_a_loss(family):
    rng = np.random.default_rng(2)
    truth = random_profiles(rng, 400, 6, (family,))
    money = rng.uniform(0.05, 2.0, 400) * truth.total_value()
    outcome = decide("agn", truth.bids(), money)
    utility = truth.utility(outcome.privacy_loss, outcome.payment)
    assert (utility >= -1e-9 * outcome.payment).all() and utility.max() > 0


@pytest.mark.parametrize("family", ["sqrt", "step"])
def test_others_can_sell_at_a_loss(family):
    rng = np.random.default_rng(3)
    truth = random_profiles(rng, 100, 6, (family,))
    outcome = decide("agn", truth.bids(), 0.5 * truth.total_value())
    assert (truth.utility(outcome.privacy_loss, outcome.payment) < 0).any()


def test_at_a_fixed_rate_the_payment_is_myersons():
    """The ratio times the fraction, plus the fractions sold at all higher ratios."""
    for ratio in (0.0, 0.4, 1.3, 1.7):
        fraction, payment = references.agn_at(ratio, 1.0)
        higher = np.linspace(ratio, math.e - 1, 20_001)
        sold = [references.agn_at(min(x, math.e - 1), 1.0)[0] for x in higher]
        assert payment == pytest.approx(ratio * fraction + np.trapezoid(sold, higher), abs=1e-8)


def gain_by_asking_more(n):
    """What linear owners of equal ratio gain at most if one of them asks more."""
    asks, worth, money = np.ones((40, n)), np.ones((40, n)), np.full(40, 0.5 * n)
    fraction, payment = fractional_sales(asks, worth, money)
    truth = payment[0, 0] - fraction[0, 0]
    asks[:, 0] = np.linspace(1.0, 1.0 + 1.5 / n, 40)
    fraction, payment = fractional_sales(asks, worth, money)
    return (payment[:, 0] - fraction[:, 0]).max() / truth - 1


def test_asking_more_gains_in_a_small_market_and_next_to_nothing_in_a_large_one():
    assert gain_by_asking_more(3) > 0.01
    assert 0 < gain_by_asking_more(1000) < 1e-5


def test_a_large_market_buys_its_share_of_the_optimum():
    rng = np.random.default_rng(4)
    for costs in (np.ones((3, 2000)), rng.exponential(1.0, (3, 2000)), rng.random((3, 2000))):
        worth, money = rng.uniform(0.5, 1.5, costs.shape), np.array([30.0, 300.0, 900.0])
        fraction, _ = fractional_sales(costs, worth, money)
        for k in range(3):
            best = references.fractional_optimum(costs[k], worth[k], money[k])
            assert (fraction[k] * worth[k]).sum() >= (1 - 1 / math.e) * best * 0.995


def test_without_money_nothing_is_bought_and_equal_owners_get_the_same():
    bids = fm.BidBatch(np.ones((2, 4, 1)), np.ones((2, 4)), np.full((2, 4), 5.0))
    outcome = decide("agn", bids, [0.0, 2.0])
    assert not outcome.privacy_loss[0].any() and not outcome.payment[0].any()
    assert outcome.payment[1] == pytest.approx([0.5] * 4)
