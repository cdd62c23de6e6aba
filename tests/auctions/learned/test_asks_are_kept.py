"""No seller is paid below her ask, also where her table is next to that of a family."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions.auction import records_sold
from flmarket_sim.owners.stated_valuation import TABLE, StatedValuations
from flmarket_sim.owners.valuation import unit_value

LEARNED = {
    "seq-price, certified": ("seq-price", {}),
    "seq-price, reported": ("seq-price", {"size": "reported"}),
    "record-price": ("record-price", {}),
    "dm-regretnet": ("dm-regretnet", {}),
}
IN_TURN = [label for label in LEARNED if label != "dm-regretnet"]
MARKETS, LEVELS = 1500, 8


def auction(label):
    name, options = LEARNED[label]
    return fm.auctions.create(name, **options)


def next_to_families(seed):
    """Single bidders whose tables leave their families at one level, by 1e-15 to 1e-6 of its value,
    at all scales; or at the low levels, by next to nothing of the highest value. Her money is near
    what a loss for sale costs."""
    rng = np.random.default_rng(seed)
    shape = (MARKETS, 1)
    truth = fm.Profiles(
        rng.integers(0, 5, shape),
        10.0 ** (rng.uniform(-2, 2, shape) * rng.choice([1.0, 140.0], shape)),
        rng.uniform(0.3, 3.0, shape) * rng.choice([1.0, 13.0], shape),
        np.ceil(rng.lognormal(2.0, 1.0, shape)),
    )
    bids = truth.bids(LEVELS)
    values, at = bids.values.copy(), (np.arange(MARKETS), 0, rng.integers(LEVELS, size=MARKETS))
    values[at] *= 1.0 + rng.choice([-1.0, 1.0], MARKETS) * 10.0 ** rng.uniform(-15, -6, MARKETS)
    lifted = np.arange(MARKETS) % 3 == 0
    floor = values[..., -1:] * 10.0 ** rng.uniform(-15, -6, (MARKETS, 1, 1))
    values = np.where(lifted[:, None, None], np.maximum(values, floor), values)
    values = np.maximum.accumulate(values, axis=2)
    reports = fm.BidBatch(values, bids.privacy_budget, bids.data_size, bids.stated)
    loss = np.minimum(rng.uniform(0.2, 2.0, shape), bids.privacy_budget)
    money = truth.value(loss)[:, 0] * 10.0 ** rng.uniform(-0.5, 1.5, MARKETS)
    return reports, money


def says_its_family(reports, k):
    """Level by level, in plain numbers."""
    family, scale = reports.stated.family[k, 0], reports.stated.scale[k, 0]
    for m in range(LEVELS):
        loss = reports.privacy_budget[k, 0] * (m + 1) / LEVELS
        worth, asked = float(scale * unit_value(family, loss)), reports.values[k, 0, m]
        if abs(worth - asked) > 1.000001e-9 * asked:
            return False
    return True


@pytest.mark.parametrize("label", LEARNED)
def test_no_seller_is_paid_less_than_her_table(label):
    """A table that is its family's at every level is worth what the family says in between; any
    other is at least as much as the straight line between its levels."""
    reports, money = next_to_families(1)
    outcome = auction(label).decide(reports, money, np.random.default_rng(0))
    sold, paid = outcome.privacy_loss[:, 0], outcome.payment[:, 0]
    part = records_sold(outcome, reports)[:, 0] / reports.data_size[:, 0]
    straight = reports.value_at(outcome.privacy_loss)[:, 0]
    below = np.floor(sold / reports.privacy_budget[:, 0] * LEVELS + 1e-9).astype(int)
    padded = np.concatenate([np.zeros((MARKETS, 1)), reports.values[:, 0]], axis=1)
    family, scale = reports.stated.family[:, 0], reports.stated.scale[:, 0]
    stated = scale * unit_value(family, sold) * np.where(family == 4, 1.0, part)
    sellers = np.flatnonzero(sold)
    assert len(sellers) > 100
    counts = {True: 0, False: 0}
    for k in sellers:
        in_family = label in IN_TURN and says_its_family(reports, k)
        counts[in_family] += 1
        ask = stated[k] if in_family else straight[k]
        assert paid[k] >= ask * (1 - 1e-9)
        assert paid[k] >= padded[k, below[k]] * (part[k] if in_family else 1) * (1 - 2e-9)
    assert counts[False] > 20 and (counts[True] > 20 or label not in IN_TURN)


@pytest.mark.parametrize("size", ["certified", "reported"])
def test_an_ask_that_is_small_beside_the_highest_is_kept(size):
    """She asks 233 for the first level and next to 2.4e14 for the last: nobody buys for 26."""
    values = 1e-3 * np.maximum(np.expm1(5.0 * np.arange(1, 9)), 0.99e-12 * np.expm1(40.0))
    stated = StatedValuations(np.array([[3]], np.int8), np.array([[1e-3]]))
    bids = fm.BidBatch(values[None, None], [[40.0]], [[1.0]], stated)
    seq_price = fm.auctions.create("seq-price", size=size)
    assert seq_price.reading(bids).stated.family[0, 0] == TABLE
    outcome = seq_price.decide(bids, np.array([26.0]), np.random.default_rng(0))
    assert outcome.privacy_loss[0, 0] == 0 == outcome.payment[0, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", LEARNED)
def test_numbers_next_to_the_largest_and_the_least_overflow_nowhere(label):
    mechanism = auction(label)
    every = [
        (family, scale, budget)
        for family in ("linear", "quadratic", "sqrt", "exponential", "step")
        for scale in (5e-324, 1e-310, 1e300, 1e308)
        for budget in (1e-3, 0.3, 2.0)
        if max(budget, float(np.expm1(budget)), 2 * budget**0.5) < 1.5e308 / scale
    ]
    family, scale, budget = (np.array(column)[:, None] for column in zip(*every, strict=True))
    beside = np.ones_like(scale)
    for records in (1.0, 1e6):
        truth = fm.Profiles(
            np.hstack([family, family]),
            np.hstack([np.maximum(scale / records, 5e-324), beside]),
            np.hstack([budget, budget]),
            np.full((len(every), 2), records),
        )
        for money in (0.0, 5e-324, 1e-35, 1.0, 1.7e308):
            outcome = mechanism.decide(
                truth.bids(4), np.full(len(every), money), np.random.default_rng(0)
            )
            assert np.isfinite(outcome.privacy_loss).all() and np.isfinite(outcome.payment).all()
            assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-12)).all()
