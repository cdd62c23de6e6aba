"""Learned auctions decide markets that are far beyond anything that they were trained for."""

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned.level_outcome import ReportTensors, outcome_of
from flmarket_sim.auctions.learned.menu_network import FARTHEST, MenuNetwork, readable
from flmarket_sim.auctions.learned.paper_network import PaperNetwork

NAMES = ("regretnet", "m-regretnet", "dm-regretnet")


def extreme(privacy_budget, data_size, rate):
    families = [["linear"] * len(rate)]
    return fm.Profiles(families, [rate], [privacy_budget], [data_size]).bids(8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "bids",
    [
        extreme([1e26, 7e25, 1e26], [557.0, 1695.0, 3.0], [1e-202, 1e-203, 1e-202]),
        extreme([1e200, 1e-300, 1e160], [1.0, 1e90, 4.0], [1e-220, 1e10, 1e-250]),
        extreme([1.0, 2.0, 5e-324], [1.7e308, 1.7e308, 1.0], [5e-324, 5e-324, 1.0]),
    ],
    ids=["large budgets", "every size", "giants"],
)
def test_losses_and_payments_are_numbers_within_the_budget(name, bids):
    auction = fm.auctions.create(name)
    for money in (0.0, 5e-324, 1e-100, 1.0, 1e150, 1e300):
        outcome = auction.decide(bids, np.array([money]), np.random.default_rng(0))
        assert np.isfinite(outcome.privacy_loss).all() and np.isfinite(outcome.payment).all()
        assert outcome.payment.min() >= 0 and outcome.payment.sum() <= money * (1 + 1e-12)
        chance, payment = auction.expected(bids, np.array([money]))
        assert np.isfinite(chance).all() and np.isfinite(payment).all()


@pytest.mark.parametrize("made", [MenuNetwork(2, 12), PaperNetwork(3, 2, 12)])
def test_networks_of_every_kind_read_extreme_reports(made):
    rng = np.random.default_rng(1)
    markets, n = 300, 3
    with torch.inference_mode():
        for deterministic in (False, True):
            values = np.sort(10.0 ** rng.uniform(-300, 300, (markets, n, 2)), axis=2)
            budget, size = (10.0 ** rng.uniform(-300, high, (markets, n)) for high in (300, 100))
            money = 10.0 ** rng.uniform(-300, 300, markets)
            facts = (np.full(markets, 8.0), np.zeros(markets))
            columns = (values, budget, size, money, *facts)
            reports = ReportTensors(*(torch.from_numpy(column) for column in columns))
            outcome = outcome_of(made, reports, deterministic=deterministic)
            assert outcome.chance.isfinite().all() and outcome.payment.isfinite().all()


def test_facts_within_reach_are_read_as_they_are():
    facts = torch.tensor([[-FARTHEST, -1.5, 0.0, 1e-300, 0.1, FARTHEST]], dtype=torch.float64)
    assert torch.equal(readable(facts, torch.float64), facts)
    wild = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e300])
    assert readable(wild, torch.float32).tolist() == pytest.approx(
        [0.0, FARTHEST, -FARTHEST, FARTHEST]
    )
