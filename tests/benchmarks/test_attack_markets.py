"""The attack by extreme markets: it finds what is planted, and nothing in plain markets."""

import numpy as np
import pytest

import flmarket_sim as fm
from benchmarks.attack import extreme_markets, markets
from benchmarks.attack.extreme_markets import ExtremeMarkets
from benchmarks.attack.market_checks import REFUSED, check_auction, check_rule, check_truthful
from flmarket_sim.auctions import Outcome
from flmarket_sim.errors import InputError

CLASSICAL = (
    "all-in", "all-in-critical", "proportional-share", "clock", "fair-query", "posted-price",
    "pay-as-bid", "agn", "greedy-ii", "random-sample", "gravin-3", "gravin-2",
)  # fmt: skip
PRIVACY_MARKETS = (
    "vcg-k", "csra", "mfg-pricing", "stackelberg", "contract-menu", "shapley-pay", "fmore",
    "virtual-cost",
)  # fmt: skip
THREE = ExtremeMarkets(
    fm.Profiles([["linear", "step", "sqrt"]], [[1.0, 1.0, 1.0]], [[1.0, 2.0, 1.0]], [[5, 6, 7]]),
    np.array([100.0]),
    levels=2,
)


class Planted:
    """Buys everything, and spoils the outcome in one way."""

    name = "planted"
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "any"}

    def __init__(self, spoil):
        self.spoil = spoil

    def decide(self, bids, budget, rng):
        outcome = Outcome(bids.privacy_budget.copy(), bids.full_value.copy())
        return self.spoil(outcome) or outcome


def _raises(error):
    raise error


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (lambda outcome: outcome.payment.__setitem__((0, 1), np.nan), "not a number"),
        (lambda outcome: outcome.payment.__imul__(1e9) is None, "beyond the budget"),
        (lambda outcome: outcome.payment.__imul__(1 - 1e-8) is None, "a sale at a loss"),
        (lambda outcome: outcome.privacy_loss.__imul__(1.1) is None, "beyond a privacy budget"),
        (lambda outcome: _raises(ZeroDivisionError("planted")), "an exception"),
        (lambda outcome: _raises(InputError("market 0 is too large")), REFUSED),
    ],
)
def test_a_planted_violation_is_found_by_its_name(spoil, check):
    found = [violation.check for violation in check_auction(Planted(spoil), THREE)]
    assert check in found and set(found) <= {check, "a sale at a loss"}


def test_an_outcome_that_keeps_all_promises_is_not_complained_about():
    assert not list(check_auction(Planted(lambda outcome: None), THREE))


def test_a_misreport_that_pays_is_found_where_truth_is_declared(monkeypatch):
    auction = fm.auctions.create("pay-as-bid")  # who asks more gets more
    many = THREE.take([0] * 50)
    assert not list(check_truthful(auction, many, np.random.default_rng(0)))
    monkeypatch.setattr(auction, "guarantees", Planted.guarantees, raising=False)
    found = list(check_truthful(auction, many, np.random.default_rng(0)))
    assert {violation.check for violation in found} == {"a misreport that pays"}


def test_weights_that_are_wrong_are_found():
    class Rule:
        name = "planted"

        def weights(self, loss, size):
            return np.array([[0.5, 0.5], [0.5, 0.4], [np.nan, 1.0]])

    loss = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    found = {one.market: one.check for one in check_rule(Rule(), loss, np.ones((3, 2)))}
    assert found == {0: "a weight for nothing", 1: "weights do not sum to one", 2: "not a number"}


def test_the_markets_reach_both_ends_and_are_the_same_each_time():
    once, again = (extreme_markets.draw(np.random.default_rng(3), 300) for _ in range(2))
    assert once.bids().values.tobytes() == again.bids().values.tobytes()
    rates = np.concatenate(
        [extreme_markets.draw(np.random.default_rng(i), 50).truth.rate.ravel() for i in range(6)]
    )
    assert rates.min() < 1e-300 and rates.max() > 1e100


def test_nothing_is_wrong_in_plain_markets(monkeypatch):
    monkeypatch.setattr(extreme_markets, "KINDS", (extreme_markets._plain,))
    trial = markets.MarketTrials(seed=0, batch=40, names=(*CLASSICAL, *PRIVACY_MARKETS))
    trial.rules = [rule for rule in trial.rules if rule.name not in markets.SOLVERS]
    assert [found for index in range(6) for found in trial(index).violations] == []


def test_nothing_is_wrong_in_extreme_markets_of_privacy():
    trial = markets.MarketTrials(seed=0, batch=25, names=PRIVACY_MARKETS)
    trial.rules = []
    assert [found for index in range(12) for found in trial(index).violations] == []


def test_a_violation_comes_with_python_that_shows_it_in_the_smallest_market():
    trial = markets.MarketTrials(seed=0, batch=1, names=("all-in",))
    auction = Planted(lambda outcome: outcome.payment.__setitem__((0, 0), np.inf))
    (found,) = trial._of_auction(auction, THREE, np.random.default_rng(0))[:1]
    assert found[1] == "not a number"
    bids = found[3].partition(".decide(")[2].partition(", np.array")[0]
    assert eval(bids, {"fm": fm}).shape == (1, 1)
