"""Effects and split purchases in markets that count other errors than the paper's."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import Outcome
from flmarket_sim.strategy.arbitrage import buy
from flmarket_sim.strategy.market_effects import effects_of
from tests.support.profiles import random_profiles


class HalfOfIt:
    """Sells half of every privacy budget, for as much as there is."""

    name = "half"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def decide(self, bids, budget, rng):
        payment = np.repeat(budget[:, None] / bids.shape[1], bids.shape[1], axis=1)
        return Outcome(0.5 * bids.privacy_budget, payment)


def bound(loss, size, error):
    weights = weights_in(fm.aggregation.create("opt-aggr"), loss, size, error)
    return error_bound_in(error, weights, loss, size).total


@pytest.mark.parametrize("error", [coordinate_error(1.5), error_of_kappa(4920.0)])
def test_the_effects_of_reports_are_counted_in_the_error_of_the_market(error):
    rng = np.random.default_rng(0)
    truth = random_profiles(rng, 10, 5)
    money = 0.5 * truth.total_value()
    auction = fm.auctions.create("pay-as-bid")
    effects = effects_of(auction, truth, truth.bids(), money, error=error)
    loss = auction.decide(truth.bids(), money, rng).privacy_loss
    assert effects.error_bound == pytest.approx(bound(loss, truth.data_size, error))
    assert effects.bound_of_data == pytest.approx(effects.error_bound)


def over_loss(loss):
    with np.errstate(divide="ignore"):
        return 30.0 / np.asarray(loss)


@pytest.mark.parametrize(
    ("error", "as_one_sale_of"),
    [
        (coordinate_error(), np.sqrt(0.5)),  # precisions are squares of losses
        (error_of_kappa(4920.0), np.sqrt(0.5)),
        (MarketError("vector", over_loss), 1.0),  # and here the losses themselves
    ],
)
def test_two_halves_have_the_precision_of_both_sales_together(error, as_one_sale_of):
    truth = random_profiles(np.random.default_rng(1), 10, 5)
    split = buy(HalfOfIt(), truth, truth.total_value(), 2, remember=False, error=error)
    same = bound(as_one_sale_of * truth.privacy_budget, truth.data_size, error)
    assert split.error_bound == pytest.approx(same)
