"""The second-best floor: no truthful mechanism is below it, and its search is near exact."""

import itertools

import numpy as np
import pytest
import scipy.stats

import flmarket_sim as fm
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import coordinate_error, error_of_kappa
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.penalised_purchase import penalised_purchase
from flmarket_sim.auctions.proved_bound import proved_penalised_bound
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.errors import InputError
from flmarket_sim.owners.rate_prior import DistributionRates, UniformRates, rate_prior

PRIOR = UniformRates(0.5, 1.5)


def markets(count, n, seed=0, families=4):
    rng = np.random.default_rng(seed)
    shape = (count, n)
    return fm.Profiles(
        rng.integers(0, families, shape),
        rng.uniform(0.5, 1.5, shape),
        rng.uniform(0.5, 2.0, shape),
        np.ceil(rng.lognormal(3.0, 1.5, shape)),
    )


def error_of(loss, truth, error):
    weights = weights_in(fm.aggregation.create("opt-aggr"), loss, truth.data_size, error)
    return error_bound_in(error, weights, loss, truth.data_size).total


@pytest.mark.parametrize("kappa", [8.0, 500.0])
@pytest.mark.parametrize("families", [4, 5])
def test_the_search_finds_what_trying_every_purchase_finds(kappa, families):
    """Three owners, twenty-five losses each, tried one by one."""
    error = error_of_kappa(kappa)
    truth = markets(12, 3, 1, families)
    everything = error_of(truth.privacy_budget, truth, error)
    price = np.linspace(0.1, 2.0, 12) * everything / truth.total_value()
    loss, value = penalised_purchase(truth, price, NoiseCurve.of(error, 2.0))
    assert value == pytest.approx(
        error_of(loss, truth, error) + price * truth.value(loss).sum(axis=1)
    )
    share = np.array(list(itertools.product(np.arange(25) / 24, repeat=3)))[1:]
    for k in range(12):
        tried = truth.take(np.full(len(share), k))
        losses = share * tried.privacy_budget
        least = (error_of(losses, tried, error) + price[k] * tried.value(losses).sum(axis=1)).min()
        assert value[k] <= least * 1.002
        assert value[k] >= 0.97 * least  # a grid of 25 losses is not far from all of them


@pytest.mark.parametrize("kappa", [8.0, 4880.0])
def test_the_proved_bound_is_below_the_search_and_near_it(kappa):
    error = error_of_kappa(kappa)
    truth = markets(16, 6, 2, 5)
    price = 0.5 * error_of(truth.privacy_budget, truth, error) / truth.total_value()
    loss, value = penalised_purchase(truth, price, NoiseCurve.of(error, 2.0))
    lower = proved_penalised_bound(truth, price, loss, error=error)
    assert (lower <= value * (1 + 1e-9)).all()
    assert (1 - lower / value).mean() < 0.01


def test_the_proved_bound_cannot_be_above_a_better_purchase():
    """Given a bad purchase, it still does not exceed the optimum."""
    error = coordinate_error()
    truth = markets(12, 4, 3)
    price = 0.3 * error_of(truth.privacy_budget, truth, error) / truth.total_value()
    _, value = penalised_purchase(truth, price, NoiseCurve.of(error, 2.0))
    lower = proved_penalised_bound(truth, price, truth.privacy_budget, error=error)
    assert (lower <= value * (1 + 1e-9)).all()


def test_rents_of_a_uniform_prior_are_those_of_the_general_formula():
    rate = np.linspace(0.55, 1.45, 7)
    general = DistributionRates(scipy.stats.uniform(0.5, 1.0))
    for slope in (0.0, -2.0, 0.7, 1e-8):
        slopes = np.full(7, slope)
        assert PRIOR.rent(rate, slopes) == pytest.approx(general.rent(rate, slopes), rel=1e-6)
    assert PRIOR.rent(rate, np.zeros(7)) == pytest.approx(rate - 0.5)
    assert general.mean == pytest.approx(PRIOR.mean)


def test_rents_of_another_prior_are_the_integral():
    prior = DistributionRates(scipy.stats.beta(2.0, 3.0, loc=0.5, scale=1.0))
    for rate, slope in ((0.7, 0.0), (1.1, -1.5), (1.3, 2.0)):
        points = np.linspace(0.5, rate, 200_001)
        inside = np.exp(slope * (points - rate)) * prior.distribution.pdf(points)
        expected = np.trapezoid(inside, points) / prior.distribution.pdf(rate)
        found = prior.rent(np.array([rate]), np.array([slope]))[0]
        assert found == pytest.approx(expected, rel=1e-5)


def test_the_floor_of_one_owner_is_that_of_the_formula():
    """One linear owner: the inner minimum by a fine grid, the price by trying many."""
    size, budget = 10.0, 12.0
    count = 200
    rates = PRIOR.quantile((np.arange(count)[:, None] + 0.5) / count)
    truth = fm.Profiles(
        np.zeros((count, 1), int), rates, np.full((count, 1), 2.0), np.full((count, 1), size)
    )
    found = second_best(truth, np.full(count, budget), PRIOR, holds="on average")
    grid = np.linspace(0.01, 2.0, 400)
    cost = 2.0 * size * grid * (2.0 * rates - 0.5)
    best = max(
        float((8.0 / grid**2 + price * cost).min(axis=1).mean() - price * budget)
        for price in np.geomspace(0.1, 100.0, 80)
    )
    assert found.floor.mean() == pytest.approx(best, rel=0.03)
    assert found.floor.mean() <= best * 1.01


def posted(truth, budget, level, share):
    """Mean error of a truthful mechanism: everybody in turn is offered `share` of the money left
    for `level` of the largest loss."""
    loss, left = np.zeros(truth.shape), budget.copy()
    for i in range(truth.shape[1]):
        wanted = np.minimum(level * 2.0, truth.privacy_budget[:, i])
        offer = share * left
        cost = truth.types.at((slice(None), i)).value(wanted)
        sells = (offer >= cost) & (level * 2.0 <= truth.privacy_budget[:, i])
        loss[:, i] = np.where(sells, wanted, 0.0)
        left = left - np.where(sells, offer, 0.0)
    return loss


@pytest.mark.parametrize("kappa", [8.0, 4880.0])
@pytest.mark.parametrize("holds", ["every time", "on average"])
def test_no_truthful_mechanism_is_below_the_floor(kappa, holds):
    truth = markets(80, 4, 7)
    error = error_of_kappa(kappa)
    budget = public_budget(truth, np.random.default_rng(1).uniform(0.2, 2.0, 80), PRIOR)
    floor = second_best(truth, budget, PRIOR, error, holds=holds).floor.mean()
    seq = fm.auctions.auction_in(fm.auctions.create("seq-price"), error)
    losses = [seq.decide(truth.bids(), budget, None).privacy_loss]
    losses += [posted(truth, budget, level, share) for level in (0.25, 0.5) for share in (0.2, 0.6)]
    for loss in losses:
        found = error_of(loss, truth, error)
        found = np.where(np.isfinite(found), found, 10 * kappa)  # nothing sold is worse than that
        assert found.mean() > floor


def test_the_floor_is_between_everything_and_nothing():
    truth = markets(24, 5, 8)
    everything = error_of(truth.privacy_budget, truth, coordinate_error()).mean()
    rich, poor = (
        second_best(truth, public_budget(truth, factor, PRIOR), PRIOR).floor.mean()
        for factor in (50.0, 0.2)
    )
    assert rich == pytest.approx(everything, rel=0.01)
    assert poor > 1.5 * everything


def test_a_floor_for_budgets_that_hold_every_time_is_not_below_the_other():
    truth = markets(60, 3, 9)
    budget = public_budget(truth, 0.4, PRIOR)
    average, always = (
        second_best(truth, budget, PRIOR, holds=holds) for holds in ("on average", "every time")
    )
    assert always.floor.mean() > 0.99 * average.floor.mean()
    assert average.slope == 0.0
    assert average.price_of_money.min() > 0


def test_without_secrets_the_floor_is_below_first_best_and_near_it():
    truth = markets(24, 4, 10)
    known = UniformRates(1.0, 1.0)
    same = fm.Profiles(truth.family, np.ones(truth.shape), truth.privacy_budget, truth.data_size)
    budget = public_budget(same, 0.5, known)
    found = second_best(same, budget, known, prove=True)
    best = fm.auctions.first_best(same, budget).error_bound
    assert found.floor.mean() <= best.mean() * (1 + 1e-6)
    assert found.floor.mean() > 0.85 * best.mean()  # its budget holds on average over markets
    assert (found.lower_bound <= found.floor * (1 + 1e-9)).all()
    assert 0.0 <= found.gap < 0.05


def test_the_prior_is_the_scenarios():
    prior = rate_prior(fm.load_scenario("paper/iid", ["owners.rate=[0.2,0.8]"]))
    assert (prior.low, prior.high, prior.mean) == (0.2, 0.8, 0.5)


def test_what_is_no_market_is_refused():
    truth = markets(3, 2)
    with pytest.raises(InputError, match="positive"):
        second_best(truth, np.zeros(3), PRIOR)
    with pytest.raises(InputError, match="low <= high"):
        UniformRates(2.0, 1.0)
    with pytest.raises(InputError, match="bounded"):
        DistributionRates(scipy.stats.norm(1.0, 0.1))
