"""Markets of many owners in which one has as much data as all others: the shortcuts for long walks,
and what they cost."""

import time

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.auctions import all_in_critical, greedy
from flmarket_sim.auctions.all_in_critical import first_at_most

from .references import REFERENCES


def giant_market(n, seed=0, factor=0.4):
    """One owner has half of all records and asks for more than the money there is; the others fit
    in after her, one by one."""
    rng = np.random.default_rng(seed)
    size = np.floor(rng.lognormal(3.0, 1.0, (1, n))) + 1
    size[0, 0] = size[0, 1:].sum()
    rate = rng.uniform(0.5, 1.5, (1, n))
    rate[0, 0] = 0.8
    truth = fm.Profiles(np.zeros((1, n), int), rate, rng.uniform(0.5, 2.0, (1, n)), size)
    return truth.bids(), factor * truth.total_value()


def decide(name, bids, money):
    return auctions.create(name).decide(bids, money, np.random.default_rng(0))


@pytest.mark.parametrize("steps", [1, 3, 64])
@pytest.mark.parametrize("name", ["all-in", "all-in-critical", "pay-as-bid"])
def test_long_walks_end_where_the_definition_ends_them(name, steps, monkeypatch):
    monkeypatch.setattr(greedy, "STEPS", steps)
    monkeypatch.setattr(all_in_critical, "STEPS", steps)
    for seed in range(12):
        bids, money = giant_market(150 if seed % 2 else 30, seed, factor=0.1 * (1 + seed % 6))
        outcome = decide(name, bids, money)
        loss, payment = REFERENCES[name](
            bids.full_value[0], bids.privacy_budget[0], bids.data_size[0], money[0]
        )
        assert outcome.privacy_loss[0] == pytest.approx(loss)
        assert outcome.payment[0] == pytest.approx(payment)


def test_thresholds_without_walking_are_those_of_the_walks(monkeypatch):
    """Several markets at once, some with long walks and some without."""
    rng = np.random.default_rng(3)
    size = np.floor(rng.lognormal(2.0, 2.5, (40, 400))) + 1
    truth = fm.Profiles(
        rng.integers(0, 4, (40, 400)), rng.uniform(0.5, 1.5, (40, 400)), np.ones((40, 400)), size
    )
    bids, money = truth.bids(), rng.uniform(0.05, 0.9, 40) * truth.total_value()
    far = decide("all-in-critical", bids, money)
    monkeypatch.setattr(all_in_critical, "STEPS", 10**6)
    monkeypatch.setattr(greedy, "STEPS", 10**6)
    walked = decide("all-in-critical", bids, money)
    assert (far.privacy_loss == walked.privacy_loss).all()
    assert far.payment == pytest.approx(walked.payment, rel=1e-12)


def test_the_first_small_value_is_found_as_by_looking():
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 7, 8, 9, 100):
        values = rng.integers(0, 20, n).astype(float)
        begin, most = rng.integers(0, n + 1, 50), rng.integers(-1, 20, 50).astype(float)
        looked = [
            next((j for j in range(b, n) if values[j] <= m), n)
            for b, m in zip(begin, most, strict=True)
        ]
        assert first_at_most(values, begin, most).tolist() == looked


@pytest.mark.parametrize("name", ["all-in", "all-in-critical", "pay-as-bid"])
def test_eight_times_the_bidders_cost_far_less_than_the_square_of_it(name):
    """Processor time of this process alone, best of some; the square would be 64 times. Clocks of
    processor time can tick slowly, so a measurement is of as many decisions as take a while."""

    def cost(n):
        bids, money = giant_market(n)
        found = []
        for _ in range(3):
            began, decisions = time.process_time(), 0
            while (taken := time.process_time() - began) < 0.1:
                decide(name, bids, money)
                decisions += 1
            found.append(taken / decisions)
        return min(found)

    assert cost(64_000) < 16 * cost(8_000)
