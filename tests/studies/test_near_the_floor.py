"""The study of errors over the second-best floor."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.errors import FlmarketError
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.owners.rate_prior import rate_prior
from flmarket_sim.studies.study_run import find_out
from tests.support.paths import ROOT

SMALL = [
    "study.profiles=20",
    "study.kappas=[8.0]",
    'study.auctions=["all-in-critical", "all-in-critical by precision"]',
]


@pytest.fixture(scope="module")
def scenario():
    return fm.load_scenario(ROOT / "scenarios/studies/second-best.toml", SMALL)


@pytest.fixture(scope="module")
def found(scenario):
    return find_out(scenario)


def row(found, auction, factors="0.1 to 2"):
    (one,) = [r for r in found.rows if (r["auction"], r["budget_factor"]) == (auction, factors)]
    return one


def test_ratios_are_mean_errors_over_the_mean_floor_of_the_same_markets(scenario, found):
    truth, factor = draw_markets(scenario, 20, None, scenario.seed)
    prior = rate_prior(scenario)
    budget = public_budget(truth, factor, prior)
    floor = second_best(truth, budget, prior, seed=scenario.seed).floor
    auction = fm.auctions.create("all-in-critical")
    loss = auction.decide(truth.bids(), budget, np.random.default_rng(0)).privacy_loss
    weights = fm.aggregation.create("opt-aggr").weights(loss, truth.data_size)
    error = fm.aggregation.error_bound(weights, loss, truth.data_size)
    one = row(found, "all-in-critical")
    assert one["floor"] == pytest.approx(floor.mean())
    assert one["over_floor"] == pytest.approx(error.mean() / floor.mean())
    best = fm.auctions.first_best(truth, budget).error_bound
    assert one["over_first_best"] == pytest.approx(error.mean() / best.mean())
    assert row(found, "first-best")["over_first_best"] == pytest.approx(1.0)
    assert 0.0 <= one["floor_gap"] < 0.03


def test_its_sentence_names_the_auction_nearest_to_the_floor(found):
    rows = [r for r in found.rows if r["budget_factor"] == "0.1 to 2"]
    best = min(rows[1:], key=lambda r: r["over_floor"])
    (sentence,) = found.sentences
    assert f"{best['auction']} is nearest to the floor, at {best['over_floor']:.3f} [" in sentence
    assert f"{best['floor_gap']:.1%} too high" in sentence


def test_an_auction_that_is_not_there_is_refused():
    with pytest.raises(FlmarketError, match="nonsense"):
        fm.load_scenario(
            ROOT / "scenarios/studies/second-best.toml", ['study.auctions=["nonsense"]']
        )
