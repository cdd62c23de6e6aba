"""What counts say about a privacy loss, at the ends and against another library."""

import pytest
from scipy.stats import norm

from flmarket_sim.perturbation.gaussian import least_ratio
from flmarket_sim.privacy.loss_bounds import (
    counts_if_tight,
    gaussian_bound,
    loss_of_distance,
    lower_bound,
    middle_counts,
)


@pytest.mark.parametrize(("loss", "delta"), [(0.5, 1e-5), (2.0, 1e-3)])
def test_the_middle_of_two_gradients_divides_their_releases(loss, delta):
    ratio, draws = least_ratio(loss, delta), 1000
    likely, unlikely = middle_counts(draws, loss, delta)
    assert likely == round(draws * norm.cdf(0.5 / ratio)) > draws / 2
    assert unlikely == round(draws * norm.sf(0.5 / ratio)) < draws / 2


def test_many_draws_at_the_middle_find_the_loss():
    draws = 10**8
    for loss, delta in ((0.5, 1e-5), (1.0, 1e-6)):
        found = gaussian_bound(*middle_counts(draws, loss, delta), draws, 0.999, delta)
        assert 0.99 * loss < found < loss


@pytest.mark.parametrize(("likely", "unlikely"), [(0, 0), (0, 10), (10, 10), (5, 5), (2, 8)])
def test_counts_that_tell_nothing_give_no_bound(likely, unlikely):
    assert gaussian_bound(likely, unlikely, 10, 0.9, 1e-5) == 0.0
    assert lower_bound(likely, unlikely, 10, 0.9) == 0.0


def test_a_single_count_of_all_or_none_still_tells_something():
    assert gaussian_bound(100, 0, 100, 0.9, 1e-5) > 10.0
    assert 0 < gaussian_bound(100, 50, 100, 0.9, 1e-5) < gaussian_bound(100, 40, 100, 0.9, 1e-5)


def test_gradients_that_are_near_enough_keep_delta_alone():
    assert loss_of_distance(1e-3, 0.01) == 0.0
    assert loss_of_distance(0.1, 0.01) > 0.0


def test_tight_counts_differ_by_just_the_loss():
    assert counts_if_tight(600, 1000, 0.0) == (600, 600)
    assert counts_if_tight(600, 1000, 1.0) == (600, round(600 / 2.718281828459045))
    assert counts_if_tight(600, 1000, 1.0, 0.1) == (600, round(500 / 2.718281828459045))
    assert counts_if_tight(50, 1000, 1.0, 0.1) == (50, 0)
