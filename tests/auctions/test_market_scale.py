"""Auctions that rank owners decide by ratios: a market of any size is decided as one near 1."""

import numpy as np
import pytest

import flmarket_sim as fm

RANKING = [
    "all-in", "all-in-critical", "proportional-share", "clock", "greedy-ii", "gravin-3", "gravin-2",
]  # fmt: skip


def decided(name, bids, budget):
    with np.errstate(all="raise", under="ignore"):
        return fm.auctions.create(name).decide(bids, np.array(budget), np.random.default_rng(0))


def bids_of(value, privacy_budget, data_size):
    value = np.asarray(value, float)[:, None]
    return fm.BidBatch(value[None], np.array([privacy_budget]), np.array([data_size]))


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("power", [-900, -300, 300, 900])
def test_a_market_in_another_scale_has_the_same_bits(name, power):
    rng = np.random.default_rng(3)
    value, loss, size = rng.lognormal(size=(3, 8))
    plain = decided(name, bids_of(value, loss, np.ceil(size)), [4.0])
    money = np.ldexp(1.0, power)
    scaled = decided(name, bids_of(value * money, loss, np.ceil(size)), [4.0 * money])
    assert (scaled.privacy_loss == plain.privacy_loss).all() and plain.payment.any()
    assert (scaled.payment == plain.payment * money).all()
    loss_scaled = decided(name, bids_of(value, np.ldexp(loss, -power), np.ceil(size)), [4.0])
    assert (loss_scaled.payment == plain.payment).all()


@pytest.mark.parametrize("name", RANKING)
def test_a_tiny_owner_alone_is_paid_no_more_than_the_budget(name):
    outcome = decided(name, bids_of([1e-318], [2e-316], [49.0]), [2.7e98])
    assert 0 < outcome.payment[0, 0] <= 2.7e98 and outcome.privacy_loss[0, 0] == 2e-316


@pytest.mark.parametrize("name", RANKING)
def test_beside_others_an_owner_of_next_to_nothing_sells_nothing(name):
    outcome = decided(name, bids_of([1e-320, 1.0], [1e-320, 1.0], [1.0, 10.0]), [5.0])
    assert outcome.privacy_loss[0].tolist() == [0.0, 1.0] and outcome.payment[0, 0] == 0


def test_a_threshold_follows_the_decisions_of_the_auction_to_the_last_bit():
    """r x = B up to rounding: the second wins, so the first is not paid as if she were alone."""
    profiles = fm.Profiles(
        [["exponential", "step", "quadratic"]],
        [[5.39006860447787e-79, 1.2382968106637513, 0.680402150031343]],
        [[2.5006022540606467e-98, 1.0643491830514709, 0.8619457788071749]],
        [[1.0, 17.0, 288.0]],
    )
    budget = 22.40566337968849
    outcome = decided("all-in-critical", profiles.bids(1), [budget])
    assert outcome.payment.sum() <= budget * (1 + 1e-9) and outcome.payment[0, 1] > 0
