"""Gradients are brought into the domain of a perturbation, and nothing else happens to them."""

from fractions import Fraction

import numpy as np
import pytest

from flmarket_sim.perturbation.domains import in_domain, norms, radius

ORDER = {"l1": 1, "l2": 2, "linf": np.inf, "sphere": 2}


@pytest.mark.parametrize("domain", list(ORDER))
def test_no_gradient_is_longer_than_the_threshold_afterwards(domain):
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(200, 50)) * rng.choice([1e-6, 1.0, 1e6], (200, 1))
    before = gradients.copy()
    prepared = in_domain(gradients, domain, 0.7)
    length = np.linalg.norm(prepared, ORDER[domain], axis=1)
    assert (length <= 0.7 * (1 + 1e-12)).all()
    assert (gradients == before).all() and not np.shares_memory(gradients, prepared)
    assert norms(gradients, domain) == pytest.approx(
        np.linalg.norm(before, ORDER[domain], axis=1), rel=1e-12
    )
    if domain == "sphere":
        assert length == pytest.approx(0.7)
    else:
        small = np.linalg.norm(before, ORDER[domain], axis=1) < 0.69
        assert small.any() and (prepared[small] == before[small]).all()


@pytest.mark.parametrize("domain", ["l1", "l2", "sphere"])
def test_clipping_is_joint_and_keeps_the_direction(domain):
    gradients = np.random.default_rng(1).normal(size=(20, 9)) * 100
    prepared = in_domain(gradients, domain, 0.7)
    unit = gradients / np.linalg.norm(gradients, ORDER[domain], axis=1)[:, None]
    assert prepared == pytest.approx(0.7 * unit, rel=1e-6)


def test_in_the_box_each_coordinate_is_cut_off_by_itself():
    assert in_domain(np.array([[3.0, -0.2, -9.0]]), "linf", 0.5).tolist() == [[0.5, -0.2, -0.5]]


def test_no_gradient_stays_none_and_has_the_first_axis_for_its_direction():
    for domain in ("l1", "l2", "linf"):
        assert (in_domain(np.zeros((1, 3)), domain, 1.0) == 0).all()
    assert in_domain(np.zeros((1, 3)), "sphere", 2.0).tolist() == [[2.0, 0.0, 0.0]]


def test_float32_gradients_are_clipped_in_float64():
    for domain in ("l1", "l2"):
        prepared = in_domain(np.full((1, 10**6), 0.1, np.float32), domain, 1.0)
        assert prepared.dtype == np.float64
        assert np.linalg.norm(prepared, ORDER[domain], axis=1) <= 1.0


def test_the_radius_is_the_length_of_the_longest_gradient():
    assert radius("l1", 16, 0.5) == radius("l2", 16, 0.5) == radius("sphere", 16, 0.5) == 0.5
    assert radius("linf", 16, 0.5) == 2.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", list(ORDER))
def test_gradients_that_are_not_finite_are_prepared_as_zeros(domain):
    bad = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, np.inf], [0.2, np.nan]])
    alone = in_domain(np.zeros((1, 2)), domain, 0.7)
    assert (in_domain(bad, domain, 0.7) == alone).all()
    beside = in_domain(np.concatenate([bad, [[0.1, -0.2]]]), domain, 0.7)
    assert (beside[-1] == in_domain(np.array([[0.1, -0.2]]), domain, 0.7)[0]).all()
    assert (norms(bad, domain) == np.inf).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", ["l1", "l2", "sphere"])
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-160, 1e160, 1e300, 1.7e308])
def test_squares_that_are_no_numbers_lose_no_direction(domain, size):
    """As numbers with as many digits as it takes would give."""
    gradient = np.array([[1.0, -0.5, 0.0, 0.25]]) * size
    exact = [Fraction(number) for number in gradient[0].tolist()]
    largest = max(abs(number) for number in exact)
    unit = np.array([float(number / largest) for number in exact])
    expected = 0.7 * unit / np.linalg.norm(unit, ORDER[domain])
    if size < 1 and domain != "sphere":
        expected = gradient[0]
    assert in_domain(gradient, domain, 0.7)[0] == pytest.approx(expected, rel=1e-8)
