"""Menus in a market that runs: owners answer for themselves, by their true valuations."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.strategy.certified.certified_gain import certified_gain
from tests.support.profiles import random_profiles

MENUS = ("contract-menu", "virtual-cost")


@pytest.mark.parametrize("name", MENUS)
def test_everybody_takes_her_best_offer_in_a_running_market(name, tmp_path):
    """Levels of a bid are coarse here, and no answer is worse for that."""
    scenario = build_scenario(
        {
            "rounds": 4,
            "data": {"name": "synthetic", "records": 600, "features": 3, "classes": 2},
            "owners": {"count": 12},
            "market": {"bidders": 6, "levels": 2},
            "budget": {"factor": [0.3, 1.0]},
            "model": {"name": "none"},
            "auction": {"name": name},
        }
    )
    run = fm.run(scenario, tmp_path / "run").path
    owners = {row["owner"]: row for row in fm.read_owners(run).to_pylist()}
    turns = fm.sql(
        run,
        """SELECT o.receiver AS owner, o.money, o.privacy_losses, o.payments, a.privacy_loss,
           a.payment FROM offer o JOIN allocation a
           ON a.round = o.round AND a.receiver = o.receiver""",
    ).to_pylist()
    assert len(turns) == 24 and any(turn["payment"] > 0 for turn in turns)
    for turn in turns:
        owner = owners[turn["owner"]]
        columns = ([[owner[key]]] for key in ("family", "rate", "privacy_budget", "data_size"))
        types = fm.Profiles(*columns)
        loss, payment = np.array(turn["privacy_losses"]), np.array(turn["payments"])
        assert (payment <= turn["money"]).all() and np.isfinite(payment).all()
        utility = [
            types.utility(np.array([[e]]), np.array([[p]]))[0, 0]
            for e, p in zip(loss, payment, strict=True)
        ]
        taken = types.utility(np.array([[turn["privacy_loss"]]]), np.array([[turn["payment"]]]))
        assert taken[0, 0] == pytest.approx(max(0.0, *utility), abs=1e-9 * turn["money"])


@pytest.mark.parametrize("name", MENUS)
def test_it_is_certified_that_no_report_gains(name):
    rng = np.random.default_rng(2)
    truth = random_profiles(rng, 3, 3, ("linear", "quadratic", "sqrt", "exponential", "step"))
    money = rng.uniform(0.2, 1.0, 3) * truth.total_value()
    proved = certified_gain(fm.auctions.create(name), truth, money)
    assert proved.method == "menu"
    assert np.abs(proved.utility_bound - proved.truthful_utility).max() <= 1e-9 * money.max()
