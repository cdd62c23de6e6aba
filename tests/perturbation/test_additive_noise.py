"""Laplace and Gaussian noise: the scale, to the last byte or by its definition."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.gaussian import Gaussian, delta_of_ratio, least_ratio
from flmarket_sim.perturbation.laplace import Laplace, perturb


def test_laplace_is_the_clipped_gradient_plus_noise_of_scale_two_clip_over_the_loss():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    clipped = Laplace().prepare(np.random.default_rng(0).normal(size=(1, 650)), 1.5)
    sent = Laplace().release(clipped, np.array([0.7]), rng, 1.5)
    assert sent.tobytes() == (clipped + twin.laplace(size=(1, 650)) * (2 * 1.5 / 0.7)).tobytes()


def test_every_coordinate_gets_its_unit_noise_times_the_scale_of_its_owner():
    unit, clipped = np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[0.1, 0.2], [0.3, -0.4]])
    found = perturb(clipped, unit, np.array([0.5, 2.0]), clip=1.5)
    assert found == pytest.approx(np.array([[0.1 + 6.0, 0.2 - 12.0], [0.3 + 0.75, -0.4]]))


def test_a_scale_is_float64_whatever_the_loss_is_stored_in():
    assert Laplace().noise_scale(np.array([0.1], np.float32), 1.0).dtype == np.float64
    assert Laplace().noise_scale(0.5, 1.5) == 6.0
    assert Laplace().noise_scale(0.0, 1.0) == Gaussian().noise_scale(0.0) == np.inf


def hockey_stick(ratio, loss):
    """delta by its definition: the integral of what one density has above exp(e) times the other,
    for two normal distributions 1 / ratio apart."""
    apart = 1 / ratio
    above = apart / 2 + loss / apart

    def excess(x):
        return norm.pdf(x, apart) - np.exp(loss) * norm.pdf(x)

    return quad(excess, above, above + 12, epsabs=1e-15, epsrel=1e-10)[0]


@pytest.mark.parametrize("loss", [0.1, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2, 0.3])
def test_gaussian_noise_is_the_least_that_keeps_e_and_delta(loss, delta):
    ratio = least_ratio(loss, delta)
    assert hockey_stick(ratio, loss) == pytest.approx(delta, rel=1e-6)
    assert delta_of_ratio(ratio, loss) <= delta < delta_of_ratio(ratio * (1 - 1e-9), loss)


def test_gaussian_noise_is_less_than_the_textbook_formula_gives():
    textbook = 2 * np.sqrt(2 * np.log(1.25 / 1e-5)) / 0.9
    assert Gaussian().noise_scale(0.9) < textbook
    assert Gaussian(1e-3).noise_scale(1.0, 3.0) == pytest.approx(6 * least_ratio(1.0, 1e-3))


def test_many_losses_have_the_scales_of_each():
    losses = np.array([[0.5, 1.0], [0.0, 0.5]])
    found = Gaussian().noise_scale(losses)
    assert found.shape == (2, 2)
    assert found[0, 0] == found[1, 1] == Gaussian().noise_scale(0.5) and found[1, 0] == np.inf


@pytest.mark.parametrize("delta", [0.0, 0.5, -1.0])
def test_a_delta_that_protects_nobody_is_refused(delta):
    with pytest.raises(InputError, match="delta must lie between"):
        Gaussian(delta)
