"""The floor under all mechanisms, against a general-purpose optimiser and exhaustive purchases."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import flmarket_sim as fm
from flmarket_sim.auctions import first_best
from flmarket_sim.owners import valuation
from tests.support.profiles import random_profiles


def bound(loss, size):
    loss = np.atleast_2d(loss)
    size = np.broadcast_to(size, loss.shape)
    return fm.aggregation.error_bound(
        fm.aggregation.create("opt-aggr").weights(loss, size), loss, size
    )


def test_it_is_within_half_a_percent_of_slsqp_from_many_starts():
    rng = np.random.default_rng(0)
    truth = random_profiles(rng, 4, 4)
    money = rng.uniform(0.2, 0.9, 4) * truth.total_value()
    found = first_best(truth, money)
    for k in range(4):
        one = truth.take([k])
        price = one.value(one.privacy_budget)[0]

        def error(share, one=one, price=price, cash=money[k]):
            spend = np.minimum(np.abs(share) * cash, price)[None]
            loss = valuation.loss_for_money(
                one.family, one.rate, one.data_size, one.privacy_budget, spend
            )
            return float(np.log(bound(np.maximum(loss, 1e-9), one.data_size)[0]))

        tries = [
            minimize(
                error,
                rng.dirichlet(np.ones(4)),
                bounds=[(0, 1)] * 4,
                constraints={"type": "ineq", "fun": lambda s: 1 - s.sum()},
            )
            for _ in range(8)
        ]
        affordable = [
            t.fun for t in tries if t.x.sum() <= 1 + 1e-6
        ]  # SLSQP now and then stops outside of its constraint
        assert affordable and found.error_bound[k] <= np.exp(min(affordable)) * 1.005


def test_step_owners_are_bought_whole_and_nearly_as_well_as_the_best_subset():
    rng = np.random.default_rng(1)
    truth = random_profiles(rng, 10, 6, ("step",))
    money = rng.uniform(0.3, 0.8, 10) * truth.total_value()
    found = first_best(truth, money)
    assert set(np.unique(found.privacy_loss / truth.privacy_budget)) <= {0.0, 1.0}
    ratios = []
    for k in range(10):
        price = truth.value(truth.privacy_budget)[k]
        best = min(
            float(bound(np.where(take, truth.privacy_budget[k], 0), truth.data_size[k])[0])
            for take in itertools.product([False, True], repeat=6)
            if any(take) and price[list(take)].sum() <= money[k]
        )
        ratios.append(found.error_bound[k] / best)
    assert min(ratios) >= 1 - 1e-9 and np.mean(ratios) <= 1.05


def test_it_never_spends_more_than_there_is_and_no_mechanism_beats_it():
    rng = np.random.default_rng(2)
    for n, families in (
        (10, ("linear", "quadratic", "sqrt", "exponential")),
        (2, ("step", "linear")),
        (3, ("step", "linear")),
    ):
        truth = random_profiles(rng, 300, n, families)
        money = rng.uniform(0.1, 2.0, 300) * truth.total_value()
        floor = first_best(truth, money)
        assert (floor.spending <= money * (1 + 1e-9)).all()
        for name in (
            "all-in",
            "all-in-critical",
            "proportional-share",
            "pay-as-bid",
            "posted-price",
        ):
            outcome = fm.auctions.create(name).decide(truth.bids(), money, rng)
            assert (
                bound(outcome.privacy_loss, truth.data_size) >= floor.error_bound * (1 - 1e-6)
            ).all(), name


def test_enough_money_buys_everything():
    truth = random_profiles(np.random.default_rng(3), 3, 5)
    assert first_best(truth, truth.total_value()).privacy_loss == pytest.approx(
        truth.privacy_budget
    )
