"""Auctions that rank by other values: their definitions, their promises, and what is refused."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.aggregation.market_error import MarketError, error_of_kappa
from flmarket_sim.auctions.auction import KnowsTheError, auction_in
from flmarket_sim.auctions.ranking_value import VALUES
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.testing import check_auction
from tests.support.profiles import random_profiles

from .references import REFERENCES

HERE = "tests.auctions.test_ranking_value"
RANKING = ("all-in", "all-in-critical", "proportional-share", "clock")


def steep(loss):
    with np.errstate(divide="ignore"):
        return 300.0 / np.expm1(loss) ** 2


STEEP = MarketError("vector", steep, 1.0)


def shrinking(privacy_budget, data_size):
    """Records count, with falling returns."""
    return np.sqrt(data_size) * privacy_budget**1.5


def nothing(privacy_budget, data_size):
    return 0.0 * data_size


def endless(privacy_budget, data_size):
    return data_size / 0.0


def one_number(privacy_budget, data_size):
    return 1.0


def failing(privacy_budget, data_size):
    raise KeyError("no such owner")


AMOUNTS = {
    "records-loss": lambda eb, d: d * eb,
    "loss-squared": lambda eb, d: eb**2,
    "precision": lambda eb, d: np.expm1(eb) ** 2 / 300.0,
    "tempered": lambda eb, d: eb * np.sqrt(d * np.sqrt(d)),
    f"{HERE}:shrinking": shrinking,
}


def with_value(name, value):
    """The auction, set for the market STEEP."""
    return auction_in(auctions.create(name, value=value), STEEP)


def market(seed, markets, n, families=("step",)):
    rng = np.random.default_rng(seed)
    truth = random_profiles(rng, markets, n, families)
    return truth, rng.uniform(0.05, 2.0, markets) * truth.total_value()


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("value", AMOUNTS)
@pytest.mark.parametrize("n", [1, 3, 10, 80])
def test_a_batch_is_decided_as_its_definition_decides_each_market(name, value, n):
    truth, money = market(n, 60, n)
    bids = truth.bids()
    outcome = with_value(name, value).decide(bids, money, np.random.default_rng(0))
    for k in range(60):
        budget, size = bids.privacy_budget[k], bids.data_size[k]
        amount = np.asarray(AMOUNTS[value](budget, size), float)
        loss, payment = REFERENCES[name](bids.full_value[k], budget, size, money[k], amount)
        assert outcome.privacy_loss[k] == pytest.approx(loss)
        assert outcome.payment[k] == pytest.approx(payment)


@pytest.mark.parametrize("name", ["all-in-critical", "proportional-share"])
@pytest.mark.parametrize("value", AMOUNTS)
def test_every_winner_is_paid_the_most_that_she_could_have_asked(name, value):
    """The twin of the payments: bisection on what one owner asks, until she no longer wins."""
    truth, money = market(17, 40, 5)
    auction, bids, rng = with_value(name, value), truth.bids(1), np.random.default_rng(0)
    outcome = auction.decide(bids, money, rng)
    for i in range(5):
        low, high = np.zeros(40), 2.0 * money
        for _ in range(60):
            middle = 0.5 * (low + high)
            asked = bids.values.copy()
            asked[:, i, 0] = middle
            other = fm.BidBatch(asked, bids.privacy_budget, bids.data_size)
            wins = auction.decide(other, money, rng).privacy_loss[:, i] > 0
            low, high = np.where(wins, middle, low), np.where(wins, high, middle)
        won = outcome.privacy_loss[:, i] > 0
        assert won.any() and outcome.payment[won, i] == pytest.approx(low[won], rel=1e-9)


@pytest.mark.parametrize("name", ["all-in-critical", "proportional-share", "clock"])
@pytest.mark.parametrize("value", VALUES)
def test_the_promises_hold_with_every_value(name, value):
    report = check_auction(with_value(name, value), markets=25)
    assert report.passed and report.verdict("truthful", "single-minded").held


def test_records_count_by_default_and_a_precision_knows_the_papers_error_first():
    truth, money = market(3, 50, 6)
    bids, rng = truth.bids(), np.random.default_rng(0)
    for name in RANKING:
        plain, named, squared, precision, tempered = (
            auctions.create(name, **options).decide(bids, money, rng)
            for options in ({}, *({"value": value} for value in VALUES))
        )
        assert (plain.payment == named.payment).all()
        assert precision.payment == pytest.approx(squared.payment)  # V = 8 / e^2
        assert (squared.payment != plain.payment).any()
        assert (tempered.payment != plain.payment).any()


def test_an_auction_is_set_for_a_market_and_stays_as_it_is():
    auction = auctions.create("proportional-share", value="precision")
    assert isinstance(auction, KnowsTheError)
    there = auction_in(auction, STEEP)
    assert there is not auction and auction.error.kappa == 8.0 and there.error is STEEP
    deaf = auctions.create("pay-as-bid")
    assert not isinstance(deaf, KnowsTheError) and auction_in(deaf, STEEP) is deaf


def test_next_to_no_privacy_has_a_value_too():
    bids = fm.BidBatch([[[1.0], [1.0]]], [[1e-200, 1.0]], [[5.0, 5.0]])
    for value in VALUES:
        outcome = with_value("all-in-critical", value).decide(
            bids, np.array([3.0]), np.random.default_rng(0)
        )
        assert outcome.privacy_loss[0, 1] == 1.0 and np.isfinite(outcome.payment).all()


def test_a_value_that_ranks_by_squared_losses_buys_a_smaller_error_under_much_noise():
    scenario = fm.load_scenario("scenarios/paper/iid.toml")
    truth = fm.draw_profiles(scenario, 300, seed=1)
    money, error = 0.3 * truth.total_value(), error_of_kappa(4920.0)
    mean = {}
    for value in ("records-loss", "precision"):
        auction = auction_in(auctions.create("proportional-share", value=value), error)
        loss = auction.decide(truth.bids(), money, np.random.default_rng(0)).privacy_loss
        variance = error.variance(loss)
        weights = fm.aggregation.create("opt-aggr").weights(
            loss, truth.data_size, variance=variance
        )
        bound = fm.aggregation.error_bound(weights, loss, truth.data_size, variance=variance)
        mean[value] = np.median(bound)
    assert mean["precision"] < 0.9 * mean["records-loss"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("presicion", "there is no value 'presicion'; did you mean 'precision'"),
        ("tests.no_such_module:value", "cannot be imported"),
        (f"{HERE}:no_such_function", "has no 'no_such_function'"),
    ],
)
def test_a_value_that_does_not_exist_is_refused(value, message):
    with pytest.raises(InputError, match=message):
        auctions.create("all-in-critical", value=value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (nothing, "positive and finite; for a privacy budget of"),
        (endless, "positive and finite"),
        (one_number, "must give numbers of shape"),
        (failing, "fails: KeyError"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_values_that_no_ranking_can_use_are_refused(function, message):
    truth, money = market(4, 2, 3)
    auction = auctions.create("all-in-critical", value=f"{HERE}:{function.__name__}")
    with pytest.raises(ContractError, match=message):
        auction.decide(truth.bids(), money, np.random.default_rng(0))
