"""Auctions against their definitions, their guarantees, and the counterexample that started it
all."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.errors import ContractError, InputError
from tests.support.profiles import random_profiles

from .references import REFERENCES

CLASSICAL = (
    "all-in",
    "all-in-critical",
    "proportional-share",
    "clock",
    "fair-query",
    "posted-price",
    "pay-as-bid",
    "greedy-ii",
    "random-sample",
    "gravin-3",
    "gravin-2",
)


def decide(name, bids, money, **options):
    return auctions.create(name, **options).decide(
        bids, np.asarray(money, float), np.random.default_rng(0)
    )


def step_bids(value, budget, size):
    value = np.asarray(value, float)
    return fm.BidBatch(np.repeat(value[..., None], 4, axis=-1), budget, size)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
def test_a_batch_is_decided_as_its_definition_decides_each_market(name, n):
    rng = np.random.default_rng(n)
    truth = random_profiles(rng, 200, n)
    bids = truth.bids()
    if n == 3:  # ties
        bids = fm.BidBatch(
            np.ones((200, 3, 8)), np.ones((200, 3)), rng.integers(1, 3, (200, 3)).astype(float)
        )
    money = rng.uniform(0.05, 2.0, 200) * bids.full_value.sum(axis=1)
    outcome = decide(name, bids, money)
    for k in range(200):
        loss, payment = REFERENCES[name](
            bids.full_value[k], bids.privacy_budget[k], bids.data_size[k], money[k]
        )
        assert outcome.privacy_loss[k] == pytest.approx(loss)
        assert outcome.payment[k] == pytest.approx(payment)


@pytest.mark.parametrize("name", CLASSICAL)
def test_nobody_is_overdrawn_underpaid_or_overspent(name):
    rng = np.random.default_rng(5)
    for families in (("linear", "quadratic", "sqrt", "exponential"), ("step",)):
        truth = random_profiles(rng, 500, 10, families)
        money = rng.uniform(0.05, 2.0, 500) * truth.total_value()
        outcome = decide(name, truth.bids(), money)
        assert (outcome.privacy_loss <= truth.privacy_budget).all()
        assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-9)).all()
        assert (
            truth.utility(outcome.privacy_loss, outcome.payment) >= -1e-9 * money[:, None]
        ).all()
        assert (outcome.payment[outcome.privacy_loss == 0] == 0).all()


@pytest.mark.parametrize("name", CLASSICAL)
def test_without_money_nothing_is_bought(name):
    outcome = decide(name, random_profiles(np.random.default_rng(6), 4, 5).bids(), np.zeros(4))
    assert not outcome.privacy_loss.any() and not outcome.payment.any()


def test_the_counterexample_pays_under_all_in_and_not_under_all_in_critical():
    """Owner 3 loses by the truth; by asking nothing she pushes owner 2 out and takes half the
    money.

    This is the counterexample of docs/theory.md, section 2.
    """
    budget, size, money = [[1.0, 1.0, 1.0]], [[1.0, 9.0, 1.0]], [10.0]
    truth, lie = step_bids([[1, 9, 1.05]], budget, size), step_bids([[1, 9, 1e-9]], budget, size)
    honest, cheating = decide("all-in", truth, money), decide("all-in", lie, money)
    assert honest.privacy_loss[0, 2] == 0
    assert cheating.payment[0, 2] - 1.05 == pytest.approx(3.95)
    assert decide("all-in-critical", truth, money).payment[0, 2] == 0
    assert decide("all-in-critical", lie, money).payment[0, 2] - 1.05 <= 1e-9


def best_lie(name, truth, money, rng, tries=400):
    """The largest gain of any single-minded owner over many random reports of value, budget and
    size."""
    honest = decide(name, truth.bids(levels=4), money)
    base = truth.utility(honest.privacy_loss, honest.payment)
    full = truth.value(truth.privacy_budget)
    markets, n = truth.shape
    best = np.zeros((markets, n))
    for _ in range(tries):
        i = int(rng.integers(n))
        value, eb, size = full.copy(), truth.privacy_budget.copy(), truth.data_size.copy()
        what = rng.integers(4)
        if what in (0, 3):
            value[:, i] *= rng.choice([1e-6, *rng.uniform(0.2, 3.0, 4)])
        if what in (1, 3):
            eb[:, i] *= rng.uniform(0.1, 1.0)
        if what in (2, 3):
            size[:, i] = np.maximum(1, np.floor(size[:, i] * rng.uniform(0.1, 1.0)))
        outcome = decide(name, step_bids(value, eb, size), money)
        utility = truth.utility(outcome.privacy_loss, outcome.payment, size)
        best[:, i] = np.maximum(best[:, i], (utility - base)[:, i])
    return best / full


@pytest.mark.parametrize("name", ["all-in-critical", "proportional-share", "clock", "posted-price"])
def test_no_lie_of_a_single_minded_owner_pays(name):
    assert auctions.create(name).guarantees["truthful"] == "single-minded"
    rng = np.random.default_rng(7)
    truth = random_profiles(rng, 300, 6, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    assert best_lie(name, truth, money, rng).max() <= 1e-9


@pytest.mark.parametrize("name", ["all-in", "pay-as-bid"])
def test_the_same_search_finds_lies_where_there_are_some(name):
    rng = np.random.default_rng(8)
    truth = random_profiles(rng, 300, 6, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    assert best_lie(name, truth, money, rng).max() > 0.01


def test_posted_price_serves_in_order_while_the_money_lasts():
    bids = fm.Profiles([["linear"] * 4], [[0.5, 2.0, 0.5, 0.5]], [[1.0] * 4], [[10.0] * 4]).bids()
    outcome = decide("posted-price", bids, [35.0], price=2.0)
    assert outcome.privacy_loss[0] == pytest.approx(
        [1.0, 0.0, 0.75, 0.0]
    )  # 2 asks too much, 3 gets what is left
    assert outcome.payment[0] == pytest.approx([20.0, 0.0, 15.0, 0.0])


@pytest.mark.parametrize("money", [[-1.0], [np.nan], [np.inf], [1.0, 2.0]])
def test_impossible_budgets_are_refused(money):
    with pytest.raises(InputError, match="budget"):
        decide("all-in", fm.BidBatch([[[1.0]]], [[1.0]], [[1.0]]), money)


def test_an_outcome_that_breaks_the_contract_is_refused():
    from flmarket_sim.auctions.auction import Outcome, check_outcome

    bids, money = fm.BidBatch([[[1.0]]], [[1.0]], [[1.0]]), np.array([1.0])
    one = np.ones((1, 1))
    for loss, payment, message in (
        (2 * one, one, "more privacy"),
        (one, 2 * one, "spends 2 of a budget of 1"),
        (-one, one, "privacy_loss must be finite"),
        (one, np.nan * one, "payment must be finite"),
        (np.ones(1), one, "shape"),
        (one.astype(np.float32), one, "float64"),
    ):
        with pytest.raises(ContractError, match=message):
            check_outcome("broken", Outcome(loss, payment), bids, money)
