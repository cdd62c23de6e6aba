"""What the league measures, against a slow obvious way to measure it."""

import numpy as np
import pytest

from flmarket_sim import auctions
from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.league import measures
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.league_rows import WHOLE, market_row, whole_row
from flmarket_sim.strategy.probe import probe

EVERYBODY = "tests.support.mechanisms:Everybody"
NOBODY = "tests.support.mechanisms:Nobody"


def decided(card, name, market="plain"):
    return measures.decisions(name, card, card.market(market), card.sizes["full"])


def test_decisions_market_by_market(small_card):
    row = decided(small_card, "proportional-share")
    truth, budget = draws(small_card, small_card.market("plain"))
    auction = auctions.create("proportional-share")
    errors, spent, surplus, short, cost = [], [], [], 0.0, 0.0
    for k in range(6):
        one = truth.take([k])
        outcome = auction.decide(one.bids(8), budget[[k]], np.random.default_rng(0))
        loss, paid = outcome.privacy_loss, outcome.payment
        weights = OptAggr().weights(loss, one.data_size)
        errors.append(error_bound(weights, loss, one.data_size)[0])
        value = one.value(loss)
        spent.append(paid.sum() / budget[k])
        surplus.append((paid - value).sum() / budget[k])
        least = np.maximum(value, one.value(one.privacy_budget / 8))
        short += np.maximum(value - paid, 0.0).sum()
        cost += least.sum()
    assert row["spent"] == pytest.approx(np.mean(spent))
    assert row["surplus"] == pytest.approx(np.mean(surplus))
    assert row["underpaid"] == pytest.approx(short / cost, abs=1e-12)
    np.testing.assert_allclose(row["errors"], errors)
    assert row["error"] == pytest.approx(np.mean([e for e in errors if np.isfinite(e)]))


def test_buying_nothing_is_invalid_everywhere(small_card):
    row = decided(small_card, NOBODY)
    assert row["invalid"] == 1.0
    assert np.isnan(row["error"])
    assert row["spent"] == row["surplus"] == row["underpaid"] == 0.0


def test_owners_who_are_paid_less_than_their_cost(small_card):
    """Everybody splits the budget in equal parts, so owners with high costs lose."""
    row = decided(small_card, EVERYBODY)
    truth, budget = draws(small_card, small_card.market("plain"))
    value = truth.value(truth.privacy_budget)
    short = np.maximum(value - budget[:, None] / 4, 0.0).sum() / value.sum()
    assert short > 0.01
    assert row["underpaid"] == pytest.approx(short)
    assert row["spent"] == pytest.approx(1.0)


def test_gains_are_summed_before_they_are_divided(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.lies("pay-as-bid", small_card, market, sizes)
    truth, budget = draws(small_card, market, 2)
    found = probe(auctions.create("pay-as-bid"), truth, budget, seed=1, effort="quick")
    assert row["gain"] == pytest.approx(found.gain.sum() / found.cost.sum())
    assert row["gain"] > 0.1
    assert 0 < row["gaining"] <= 1


def test_lies_gain_nothing_where_prices_do_not_follow_reports(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.lies("seq-price", small_card, market, sizes)
    assert row["gain"] == pytest.approx(0.0, abs=1e-9)
    assert measures.rest("seq-price", small_card, market, sizes)["rest_error"] == pytest.approx(1.0)


def test_names_gain_where_everybody_gets_the_same(small_card):
    """Two names get two shares of five, in place of one of four."""
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.together(EVERYBODY, small_card, market, sizes)
    assert row["names_gain"] > 0.01
    assert row["coalition_gain"] >= -1e-9


def test_liars_leave_an_error_behind(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    ended = measures.rest(EVERYBODY, small_card, market, sizes)
    assert ended["rest_error"] > 10.0  # she is paid her share for next to no privacy loss
    assert ended["invalid_at_rest"] == 0.0


def test_a_mechanism_that_cannot_play_says_why(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.attempted(measures.together, "gravin-2", small_card, market, sizes)
    assert list(row) == ["why_not"]
    assert "draws numbers" in row["why_not"]


def test_the_model_is_trained_by_the_market(small_card):
    row = measures.trained("all-in-critical", small_card, 0)
    assert 0.0 < row["accuracy"] <= 1.0
    assert row == measures.trained("all-in-critical", small_card, 0)


def test_errors_are_held_against_the_same_draws(small_card):
    market = small_card.market("plain")
    found = [{"errors": [2.0, 4.0, np.inf]}, {"gain": 0.5}, {"why_not": "a reason"}]
    row = market_row("mine", market, found)
    assert row["over_floor"] == pytest.approx(3.0)  # the yardsticks of the small card are one
    assert row["gain"] == 0.5
    assert row["why_not"] == "a reason"
    assert "errors" not in row


def test_the_whole_card_is_the_mean_of_its_markets():
    first = {"over_floor": 1.0, "over_floor_low": 0.7, "over_floor_high": 1.4, "error": 1.0}
    second = {"over_floor": 2.0, "over_floor_low": 1.6, "over_floor_high": 2.3, "error": 1.0}
    rows = [first, second, {"why_not": "it cannot play here"}]
    whole = whole_row("mine", rows, [0.6, 0.8])
    assert whole["market"] == WHOLE
    assert whole["over_floor"] == pytest.approx(1.5)
    assert whole["over_floor_low"] == pytest.approx(1.5 - 0.5 / 2)
    assert whole["over_floor_high"] == pytest.approx(1.5 + 0.5 / 2)
    assert whole["accuracy"] == pytest.approx(0.7)
    assert (whole["played"], whole["markets"]) == (2, 3)
