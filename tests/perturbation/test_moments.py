"""Every mechanism is unbiased and has the variance that it states, anywhere in its domain."""

import numpy as np
import pytest

from benchmarks.perturbations import CASES, measured
from flmarket_sim.perturbation.domains import radius
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.plugins.registry import perturbations

LOSSES = (0.5, 1.0, 2.0, 4.0)


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("dimension", [2, 10])
def test_the_mean_is_the_gradient_and_the_variance_is_stated(name, options, dimension):
    for loss in LOSSES:  # of four gradients each
        found = measured(name, options, dimension, loss, draws=25_000)
        assert found.score < 5, (loss, found)
        assert found.share == pytest.approx(1.0, abs=0.01 + 4 * found.share_error), (loss, found)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_both_hold_in_the_dimension_of_digits(name, options):
    for loss in (0.5, 4.0):
        found = measured(name, options, 650, loss, draws=1_500)
        assert found.score < 5.5, (loss, found)
        assert found.share == pytest.approx(1.0, abs=0.01 + 4 * found.share_error), (loss, found)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_variances_keep_the_shape_of_losses_and_rise_without_end(name, options):
    made = perturbations.create(name, **options)
    losses = np.array([[0.0, 0.1], [1.0, 7.0]])
    found = made.variance(losses, 30, 2.0)
    assert found.shape == (2, 2) and found[0, 0] == np.inf
    assert (np.diff(found.ravel()) < 0).all()
    assert made.variance(1.0, 30) == pytest.approx(found[1, 0] / 4)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_error_of_a_market_takes_variance_and_radius_from_the_perturbation(name, options):
    made = perturbations.create(name, **options)
    error = vector_error(made, 20, 1.5)
    assert error.variance(np.array([0.7])) == pytest.approx(made.variance(np.array([0.7]), 20, 1.5))
    assert error.radius == radius(made.domain, 20, 1.5)
