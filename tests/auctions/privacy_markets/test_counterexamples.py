"""Small markets in which what a publication claims does not hold, or holds less far than it
seems."""

import numpy as np
import pytest

import flmarket_sim as fm


def decided(name, bids, money, **options):
    auction = fm.auctions.create(name, **options)
    return auction.decide(bids, np.array([float(money)]), np.random.default_rng(0))


def asks(value, privacy_budget, data_size):
    return fm.BidBatch(np.array([value], float)[..., None], [privacy_budget], [data_size])


def test_csra_pays_the_next_price_to_who_makes_room_for_one_more_winner():
    """Offers of 10, 10 and 10 records at 1, 2 and 10 a record. With 199 the first two cannot be
    paid 10 a record, so the first wins alone and is paid 2. If she offers 9 records, they can."""
    honest = decided("csra", asks([10, 20, 100], [1.0] * 3, [10, 10, 10]), 199)
    assert honest.payment[0].tolist() == pytest.approx([20.0, 0.0, 0.0])
    lying = decided("csra", asks([10, 20, 100], [1.0] * 3, [9, 10, 10]), 199)
    assert lying.payment[0].tolist() == pytest.approx([90.0, 100.0, 0.0])
    assert lying.payment[0, 0] - 10 > honest.payment[0, 0] - 10


def test_csra_is_truthful_in_the_ask_alone():
    rng = np.random.default_rng(0)
    for _ in range(300):
        value, size = rng.uniform(1, 10, 5), rng.integers(1, 20, 5)
        money = rng.uniform(0.2, 2.0) * value.sum()
        honest = decided("csra", asks(value, [1.0] * 5, size), money)
        lie = value.copy()
        lie[0] *= rng.choice([0.01, 0.5, 0.9, 1.1, 2.0, 10.0])
        lying = decided("csra", asks(lie, [1.0] * 5, size), money)
        earned = [
            outcome.payment[0, 0] - value[0] * (outcome.privacy_loss[0, 0] > 0)
            for outcome in (honest, lying)
        ]
        assert earned[1] <= earned[0] + 1e-9


def test_vcg_k_underpays_who_has_no_linear_cost():
    """Both ask 2 for a loss of 2. The first sells half of it for half, which costs her sqrt(2)."""
    truth = fm.Profiles([["sqrt", "linear"]], [[1 / np.sqrt(2), 0.5]], [[2.0, 2.0]], [[1.0, 1.0]])
    outcome = decided("vcg-k", truth.bids(), 100)
    assert outcome.privacy_loss[0].tolist() == [1.0, 0.0]
    assert outcome.payment[0, 0] == pytest.approx(1.0)
    assert truth.utility(outcome.privacy_loss, outcome.payment)[0, 0] == pytest.approx(
        1 - np.sqrt(2)
    )


def test_vcg_k_pays_the_same_for_fewer_records():
    truth = fm.Profiles([["linear", "linear"]], [[1.0, 1.0]], [[1.0, 1.0]], [[10.0, 20.0]])
    lie = fm.Profiles([["linear", "linear"]], [[1.0, 1.0]], [[1.0, 1.0]], [[1.0, 20.0]])
    honest, lying = (decided("vcg-k", reports.bids(), 100) for reports in (truth, lie))
    assert honest.payment[0, 0] == lying.payment[0, 0] == pytest.approx(40.0)
    assert truth.utility(honest.privacy_loss, honest.payment)[0, 0] == pytest.approx(20.0)
    assert truth.utility(lying.privacy_loss, lying.payment, lie.data_size)[0, 0] == pytest.approx(
        38.0
    )


def test_vcg_k_keeps_its_claims_for_linear_costs_and_certified_records():
    rng = np.random.default_rng(1)
    for _ in range(300):
        columns = rng.uniform(0.5, 1.5, (1, 5)), rng.uniform(0.1, 2.0, (1, 5))
        size = rng.integers(1, 50, (1, 5))
        truth = fm.Profiles([["linear"] * 5], *columns, size)
        money = rng.uniform(0.05, 1.0) * truth.total_value()[0]
        honest = decided("vcg-k", truth.bids(), money)
        earned = truth.utility(honest.privacy_loss, honest.payment)[0]
        assert (earned >= -1e-9 * money).all()
        rate, budget = (column.copy() for column in columns)
        rate[0, 0] *= rng.choice([0.01, 0.5, 0.9, 1.0, 1.1, 2.0])
        budget[0, 0] *= rng.choice([0.01, 0.5, 0.9, 1.0])
        lying = decided("vcg-k", fm.Profiles([["linear"] * 5], rate, budget, size).bids(), money)
        gained = truth.utility(lying.privacy_loss, lying.payment)[0, 0] - earned[0]
        assert gained <= 1e-9 * money


@pytest.mark.parametrize("name", ["mfg-pricing", "shapley-pay"])
def test_shares_of_the_money_underpay_a_dear_owner(name):
    bids = asks([90.0, 10.0], [1.0, 1.0], [10, 10])
    outcome = decided(name, bids, 100)
    assert outcome.payment[0].tolist() == pytest.approx([50.0, 50.0])
    assert (outcome.privacy_loss == 1).all()


def test_fmore_pays_who_asks_more():
    """Under the first score, a higher ask that still wins is paid."""
    honest, lying = (
        decided("fmore", asks([ask, 3.0], [1.0, 1.0], [1, 1]), 100, winners=1) for ask in (1.0, 2.0)
    )
    assert honest.payment[0].tolist() == [1.0, 0.0] and lying.payment[0].tolist() == [2.0, 0.0]


def test_fmore_serves_who_asks_less_before_the_money_ends():
    """Under the second score payments do not depend on a winner's own ask: the two winners get 3.
    There is money for one of them, and asking less than her cost of 2 makes the second the first.
    """
    options = {"winners": 2, "payment": "second"}
    honest = decided("fmore", asks([1.0, 2.0, 3.0], [1.0] * 3, [1] * 3), 3, **options)
    assert honest.payment[0].tolist() == [3.0, 0.0, 0.0]
    lying = decided("fmore", asks([1.0, 0.5, 3.0], [1.0] * 3, [1] * 3), 3, **options)
    assert lying.payment[0].tolist() == [0.0, 3.0, 0.0]


def test_a_stackelberg_price_rises_when_a_large_owner_holds_back():
    """Linear owners of 90 and 10 records. By offering a third of her privacy the large one pushes
    the price from 1 to 2.5 for a unit, and earns more with less."""
    truth = fm.Profiles([["linear"] * 2], [[0.25] * 2], [[1.0] * 2], [[90.0, 10.0]])
    lie = fm.Profiles([["linear"] * 2], [[0.25] * 2], [[1 / 3, 1.0]], [[90.0, 10.0]])
    honest, lying = (decided("stackelberg", reports.bids(3), 100) for reports in (truth, lie))
    assert honest.payment[0].tolist() == pytest.approx([90.0, 10.0])
    assert lying.payment[0].tolist() == pytest.approx([75.0, 25.0])
    earned = [
        truth.utility(outcome.privacy_loss, outcome.payment)[0, 0] for outcome in (honest, lying)
    ]
    assert earned == pytest.approx([45.0, 60.0])


def test_a_stackelberg_price_buys_nothing_from_owners_who_tie_for_too_much():
    """Two single-minded owners ask 1 for a unit and have 10 records each. The money pays for one of
    them, and a price above 1 would bring both."""
    asked = asks([10.0, 10.0], [1.0, 1.0], [10, 10])
    poor, rich = (decided("stackelberg", asked, money) for money in (15, 30))
    assert poor.privacy_loss.sum() == poor.payment.sum() == 0.0
    assert rich.payment[0].tolist() == pytest.approx([15.0, 15.0])
