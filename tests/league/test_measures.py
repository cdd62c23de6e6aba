"""What the league measures, against a slow obvious way to measure it."""

import numpy as np
import pytest

from flmarket_sim import auctions
from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.errors import ContractError
from flmarket_sim.league import measures
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.league_rows import WHOLE, market_row, whole_row
from flmarket_sim.strategy.coalitions import false_names
from flmarket_sim.strategy.market_effects import effects_of
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.rest_points import best_response_dynamics

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
    assert row["underpaid_owners"] == pytest.approx((value > budget[:, None] / 4).mean())
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
    assert measures.names(EVERYBODY, small_card, market, sizes)["names_gain"] > 0.01
    assert measures.coalitions(EVERYBODY, small_card, market, sizes)["coalition_gain"] >= 0


def test_a_second_name_counts_for_what_it_adds_to_a_lie(small_card):
    """Whoever is paid what she asks gains by a lie under one name, and a second one adds little."""
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    truth, budget = draws(small_card, market, 2)
    first = np.zeros(2, np.int64)
    auction = auctions.create("pay-as-bid")
    found = false_names(auction, truth, budget, first, 2, effort="quick", seed=1, levels=8)
    more = [
        max(many - max(lie, true), 0.0)
        for many, lie, true in zip(
            found.many_lying, found.one_lying, found.one_truthful, strict=True
        )
    ]
    row = measures.names("pay-as-bid", small_card, market, sizes)
    assert row["names_gain"] == pytest.approx(sum(more) / found.cost.sum())
    assert found.one_lying.sum() > found.one_truthful.sum() + 0.1  # the lie is not in it


def test_names_that_cannot_be_measured_leave_coalitions_alone(small_card):
    """The cost of a single-minded owner cannot be split; three of them can report as one."""
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    steps = market.model_copy(update={"changes": {"owners.families": ["step"]}})
    changed_card = small_card.model_copy(update={"markets": [steps]})
    asked = (EVERYBODY, changed_card, steps, sizes)
    assert "why_not" in measures.attempted(measures.names, *asked)
    assert "coalition_gain" in measures.attempted(measures.coalitions, *asked)


def test_the_truth_has_the_same_error_in_both_columns(small_card):
    """Under truth underpaid owners sell, in the error over the floor and in that at rest."""
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    truth, budget = draws(small_card, market, 2)
    outcome = auctions.create("mfg-pricing").decide(truth.bids(8), budget, np.random.default_rng(0))
    weights = OptAggr().weights(outcome.privacy_loss, truth.data_size)
    before = error_bound(weights, outcome.privacy_loss, truth.data_size)
    ended = best_response_dynamics(
        auctions.create("mfg-pricing"), truth, budget, effort="quick", seed=1, max_sweeps=10,
        levels=8,
    )  # fmt: skip
    end = effects_of(auctions.create("mfg-pricing"), truth, ended.reports, budget).bound_of_data
    row = measures.rest("mfg-pricing", small_card, market, sizes)
    valid = np.isfinite(end)
    assert row["rest_error"] == pytest.approx(end[valid].sum() / before[valid].sum())
    assert row["resting"] == pytest.approx((ended.ending == 0).mean())


def test_the_error_at_rest_counts_records_that_were_not_bought(small_card):
    """No lie gains anything, so the market ends where it began."""
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.rest("record-price", small_card, market, sizes)
    assert row["rest_error"] == pytest.approx(1.0)
    assert row["resting"] == 1.0


@pytest.mark.parametrize("broken", ["Overspends", "BeyondTheBudget", "NotANumber"])
def test_a_mechanism_that_breaks_the_contract_is_refused(small_card, broken):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    name = f"tests.support.mechanisms:{broken}"
    with pytest.raises(ContractError, match=f"(?i){broken}"):
        measures.attempted(measures.decisions, name, small_card, market, sizes)


def test_liars_leave_an_error_behind(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    ended = measures.rest(EVERYBODY, small_card, market, sizes)
    assert ended["rest_error"] > 10.0  # she is paid her share for next to no privacy loss
    assert ended["invalid_at_rest"] == 0.0


def test_a_mechanism_that_cannot_play_says_why(small_card):
    market, sizes = small_card.market("plain"), small_card.sizes["full"]
    row = measures.attempted(measures.names, "gravin-2", small_card, market, sizes)
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
    first = {"spent": 0.2, "spent_low": 0.1, "spent_high": 0.4, "error": 1.0, "invalid": 0.0}
    second = {"spent": 0.6, "spent_low": 0.4, "spent_high": 0.7, "error": 1.0, "invalid": 0.3}
    first, second = first | {"gain": 0.1}, second | {"gain": 0.5}
    whole = whole_row("mine", [first, second, {"why_not": "it cannot play here"}], [0.6, 0.8])
    assert whole["market"] == WHOLE
    assert whole["spent"] == pytest.approx(0.4)
    assert whole["spent_low"] == pytest.approx(0.4 - np.hypot(0.1, 0.2) / 2)
    assert whole["spent_high"] == pytest.approx(0.4 + np.hypot(0.2, 0.1) / 2)
    assert whole["accuracy"] == pytest.approx(0.7)
    assert (whole["played"], whole["markets"]) == (2, 3)
    assert (whole["most_invalid"], whole["gain_least"], whole["gain_most"]) == (0.3, 0.1, 0.5)


def test_ratios_of_errors_have_a_geometric_mean():
    """An error of 100 floors in one market of four is not 25 floors over the card."""
    rows = [{"over_floor": over, "error": over} for over in (1.0, 1.0, 1.0, 100.0)]
    whole = whole_row("mine", rows, [])
    assert whole["over_floor"] == pytest.approx(100.0**0.25)
    assert "over_floor_low" not in whole  # no market has an interval
    ends = [{"over_floor": 2.0, "over_floor_low": 1.0, "over_floor_high": 8.0, "error": 1.0}] * 2
    whole = whole_row("mine", ends, [])
    assert np.log(whole["over_floor_low"]) == pytest.approx(np.log(2) - np.log(2) / np.sqrt(2))
    assert np.log(whole["over_floor_high"]) == pytest.approx(np.log(2) + np.log(4) / np.sqrt(2))
