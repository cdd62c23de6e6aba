"""First-best in markets that count other errors than the paper's: brute force, and its bound."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error, error_of_kappa
from flmarket_sim.auctions import first_best
from flmarket_sim.auctions.proved_bound import proved_bound
from tests.auctions.test_first_best import ALL, DIVISIBLE, best_subset, bound, exhaustive
from tests.support.profiles import random_profiles


def like_a_sphere(privacy_loss):
    """A variance that is no power of e: about 1 / e^2 for small losses, falling faster later."""
    loss = np.asarray(privacy_loss, np.float64)
    with np.errstate(divide="ignore"):
        return 40.0 / np.expm1(0.7 * loss) ** 2 + 3.0 / loss


NO_POWER = MarketError("vector", like_a_sphere, 1.5)
ERRORS = {"kappa 8": error_of_kappa(8.0), "kappa 4920": error_of_kappa(4920.0), "odd": NO_POWER}


def scarce(rng, truth, low=0.05):
    price = truth.value(truth.privacy_budget)
    share = rng.uniform(low, 1.0, truth.shape[0])
    return np.maximum(share * price.sum(1), price.min(1) * 1.001)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize(("markets", "n", "points"), [(40, 2, 200), (20, 3, 25)])
def test_in_small_markets_the_optimum_lies_between_the_lower_bound_and_the_purchase(
    error, markets, n, points
):
    rng = np.random.default_rng(n)
    truth = random_profiles(rng, markets, n, ALL)
    money = scarce(rng, truth)
    found = first_best(truth, money, bound=True, error=error)
    reference = exhaustive(truth, money, points, error)
    assert (found.spending <= money * (1 + 1e-9)).all()
    assert (found.error_bound <= reference * 1.005).all()
    assert (found.lower_bound <= reference).all()
    assert (found.gap >= 0).all() and found.gap.max() <= 0.02
    assert (first_best(truth, money, error=error).lower_bound <= reference).all()


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_the_error_of_a_purchase_is_that_of_opt_aggr_in_the_market(error):
    rng = np.random.default_rng(3)
    truth = random_profiles(rng, 8, 5, ALL)
    found = first_best(truth, scarce(rng, truth), error=error)
    again = bound(found.privacy_loss, truth.data_size, error)
    assert found.error_bound == pytest.approx(again, rel=1e-12)


def test_a_whole_vector_with_the_papers_variance_is_bought_as_the_paper_counts():
    rng = np.random.default_rng(4)
    truth = random_profiles(rng, 10, 6, DIVISIBLE)
    money = scarce(rng, truth, 0.3)
    paper = first_best(truth, money, 1.7, bound=True)
    same = first_best(truth, money, bound=True, error=error_of_kappa(8.0, 1.7))
    told = first_best(truth, money, bound=True, error=coordinate_error(1.7))
    assert same.error_bound == pytest.approx(paper.error_bound, rel=1e-6)
    assert same.lower_bound == pytest.approx(paper.lower_bound, rel=2e-2)
    for column in ("privacy_loss", "spending", "error_bound", "lower_bound"):
        assert (getattr(told, column) == getattr(paper, column)).all()


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_step_owners_are_bought_as_well_as_the_best_subset(error):
    rng = np.random.default_rng(5)
    truth = random_profiles(rng, 20, 7, ("step",))
    money = scarce(rng, truth)
    found = first_best(truth, money, error=error)
    assert found.error_bound == pytest.approx(best_subset(truth, money, error), rel=1e-12)


def test_with_more_than_14_step_owners_the_sets_are_searched_under_noise_too():
    rng = np.random.default_rng(6)
    truth = random_profiles(rng, 4, 15, ("step",))
    money = rng.uniform(0.2, 0.8, 4) * truth.total_value()
    error = error_of_kappa(4920.0)
    found, best = first_best(truth, money, error=error), best_subset(truth, money, error)
    assert (found.error_bound <= best * 1.005).all() and (found.lower_bound <= best).all()


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_ten_owners_are_bought_within_two_percent_of_the_proved_bound(error):
    rng = np.random.default_rng(7)
    truth = random_profiles(rng, 8, 10, DIVISIBLE)
    found = first_best(truth, rng.uniform(0.1, 0.9, 8) * truth.total_value(), 1.0, True, error)
    assert (found.gap >= 0).all() and found.gap.max() <= 0.02


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_the_proved_bound_holds_whatever_purchase_it_is_given(error):
    rng = np.random.default_rng(8)
    truth = random_profiles(rng, 12, 3, ALL)
    money = scarce(rng, truth, 0.2)
    price = truth.value(truth.privacy_budget)
    cheapest = price.argmin(1)[:, None] == np.arange(3)
    poor = np.where(cheapest, 0.5 * truth.privacy_budget, 0.0)
    proved = proved_bound(truth, money, poor, most_nodes=40, error=error)
    best = exhaustive(truth, money, 20, error)
    assert (proved <= best).all()
    assert np.mean(proved / best) >= 0.85  # and it says something


def test_without_noise_the_buyer_wants_much_data_and_under_much_noise_many_cheap_owners():
    """A large owner, or four small ones of the same privacy budget for less money."""
    size = np.array([[1000.0, 240.0, 240.0, 240.0, 240.0]])
    truth = fm.Profiles(np.full((1, 5), "step"), np.ones((1, 5)), np.ones((1, 5)), size)
    money = np.array([1000.0])
    little, much = (first_best(truth, money, error=error_of_kappa(k)) for k in (0.01, 4920.0))
    assert little.privacy_loss.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]
    assert much.privacy_loss.tolist() == [[0.0, 1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("variance", "message"),
    [(lambda e: e, "must fall as the privacy loss rises"), (lambda e: 0 * e, "must be positive")],
)
def test_a_variance_that_is_none_is_refused(variance, message):
    truth = random_profiles(np.random.default_rng(9), 2, 3)
    with pytest.raises(fm.errors.InputError, match=message):
        first_best(truth, [1.0, 1.0], error=MarketError("vector", variance))
