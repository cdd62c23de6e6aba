"""PrivUnit and its relatives, against numerical integrals, scans and rejection sampling."""

import mpmath
import numpy as np
import pytest
from scipy.stats import ks_2samp

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.priv_unit import BestCap, PrivUnit, best_cap, release_unit
from flmarket_sim.perturbation.proj_unit import ProjUnit, mean_length, release_projected
from flmarket_sim.perturbation.sphere_caps import (
    cap_mass,
    cap_mean,
    gamma_ratio,
    height_of_tail,
    mean_square_above,
)

LOSSES = (0.1, 0.5, 1.0, 2.0, 4.0, 12.0)


def by_integration(height, dimension):
    """q, a and E[T^2; T >= height] from the density c (1 - t^2)^((k - 3)/2), with 30 digits."""
    with mpmath.workdps(30):
        half = mpmath.mpf(dimension) / 2
        c = mpmath.gamma(half) / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(half - 0.5))
        wide = 40 / mpmath.sqrt(dimension)  # beyond that there is nothing
        steps = [height + (min(1, height + wide) - height) * i / 8 for i in range(9)]

        def integral(power):
            return c * mpmath.quad(lambda t: t**power * (1 - t * t) ** (half - 1.5), steps)

        return [float(integral(power)) for power in (0, 1, 2)]


@pytest.mark.parametrize("dimension", [3, 4, 10, 650, 10**4, 10**6])
@pytest.mark.parametrize("in_deviations", [0.0, 0.4, 1.5])
def test_mass_and_means_of_caps_are_their_integrals(dimension, in_deviations):
    height = in_deviations / np.sqrt(dimension)
    mass, mean, square = by_integration(height, dimension)
    assert cap_mass(height, dimension) == pytest.approx(mass, rel=1e-9)
    assert cap_mean(height, dimension) == pytest.approx(mean, rel=1e-9)
    assert mean_square_above(height, dimension) == pytest.approx(square, rel=1e-7)


def test_caps_of_the_circle_are_arcs():
    for angle in (0.3, 1.0, np.pi / 2):
        assert cap_mass(np.cos(angle), 2) == pytest.approx(angle / np.pi)
        assert cap_mean(np.cos(angle), 2) == pytest.approx(np.sin(angle) / np.pi)


@pytest.mark.parametrize("dimension", [2, 3, 10, 650, 10**6])
def test_heights_invert_the_mass_on_both_sides(dimension):
    tails = np.array([1e-3, 0.01, 0.3, 0.5, 0.7, 0.99])
    heights = height_of_tail(tails, dimension)
    assert (np.diff(heights) < 0).all() and heights[3] == pytest.approx(0.0, abs=1e-9)
    upper = np.where(tails <= 0.5, tails, 1 - tails)
    assert cap_mass(np.abs(heights), dimension) == pytest.approx(upper, rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 10, 651])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_cap_has_a_larger_mean_than_the_best(dimension, loss):
    """m(gamma) = a p/q - a (1 - p)/(1 - q), of every gamma of a fine grid."""
    cap = best_cap(np.array([loss]), dimension)
    height = np.concatenate([np.linspace(0.0, 0.99, 20_001), 1 - np.geomspace(1e-2, 1e-6, 5_001)])
    q, a = cap_mass(height, dimension), cap_mean(height, dimension)
    odds = np.exp(loss) * q / (1 - q)
    p = odds / (1 + odds)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(q > 0, a * p / q - a * (1 - p) / (1 - q), 0.0)
    assert cap.height[0] >= mean.max() * (1 - 1e-12)
    assert cap.height[0] == pytest.approx(mean.max(), rel=1e-5)
    assert cap.height[0] == pytest.approx(height[np.argmax(mean)], abs=2e-2 * cap.height[0] + 1e-4)


@pytest.mark.parametrize("dimension", [2, 3, 10, 651, 10**6])
@pytest.mark.parametrize("loss", LOSSES)
def test_densities_inside_and_outside_the_cap_differ_by_exp_e(dimension, loss):
    cap = best_cap(np.array([loss]), dimension)
    ratio = (cap.chance / cap.mass) / ((1 - cap.chance) / (1 - cap.mass))
    assert ratio == pytest.approx(np.exp(loss), rel=1e-6)


def test_many_losses_have_the_caps_of_each():
    losses = np.tile([0.5, 1.0, 2.0], 50).reshape(50, 3)
    whole = best_cap(losses, 9)
    one = best_cap(losses[0], 9)
    assert all((a == b).all() for a, b in zip(whole, one, strict=True))
    spread = best_cap(np.linspace(0.1, 3, 200), 9)
    assert spread.height[57] == pytest.approx(
        best_cap(np.linspace(0.1, 3, 200)[57:58], 9).height[0], rel=1e-12
    )


def by_rejection(unit, cap, count, rng):
    """Uniform points of the sphere, drawn until they are in the cap, or out of it, by chance."""
    kept = np.empty((0, len(unit)))
    inside = rng.random(count) < cap.chance[0]
    wanted = {True: int(inside.sum()), False: int((~inside).sum())}
    for side, number in wanted.items():
        found = np.empty((0, len(unit)))
        while len(found) < number:
            points = rng.normal(size=(2 * count, len(unit)))
            points /= np.linalg.norm(points, axis=1)[:, None]
            found = np.concatenate([found, points[(points @ unit >= cap.height[0]) == side]])
        kept = np.concatenate([kept, found[:number]])
    return kept


@pytest.mark.parametrize(("dimension", "count"), [(2, 8000), (3, 8000), (10, 8000), (650, 1000)])
def test_points_are_distributed_as_by_rejection(dimension, count):
    rng = np.random.default_rng(dimension)
    unit = rng.normal(size=dimension)
    unit /= np.linalg.norm(unit)
    across = np.roll(unit, 1) - unit * (np.roll(unit, 1) @ unit)
    cap = best_cap(np.array([1.5]), dimension)
    tiled = BestCap(*(np.repeat(column, count) for column in cap))
    sent = release_unit(np.tile(unit, (count, 1)), tiled, rng)
    assert np.linalg.norm(sent, axis=1) == pytest.approx(1.0)
    twin = by_rejection(unit, cap, count, rng)
    for direction in (unit, across, np.eye(dimension)[0]):
        assert ks_2samp(sent @ direction, twin @ direction).pvalue > 1e-4


def by_subspace(unit, size, cap, count, rng):
    """S^T x with a basis S made by the QR decomposition: the definition of proj-unit."""
    sent = np.empty((count, len(unit)))
    for row in range(count):
        basis = np.linalg.qr(rng.normal(size=(len(unit), size)))[0].T
        inside = basis @ unit
        point = release_unit((inside / np.linalg.norm(inside))[None], cap, rng)[0]
        sent[row] = point @ basis
    return sent


@pytest.mark.parametrize(("size", "dimension"), [(2, 3), (2, 10), (7, 10), (16, 40)])
def test_points_of_a_random_subspace_need_no_subspace(size, dimension):
    rng, count = np.random.default_rng(size), 2000
    unit = rng.normal(size=dimension)
    unit /= np.linalg.norm(unit)
    cap = best_cap(np.array([2.0]), size)
    tiled = BestCap(*(np.repeat(column, count) for column in cap))
    sent = release_projected(np.tile(unit, (count, 1)), size, tiled, rng)
    assert np.linalg.norm(sent, axis=1) == pytest.approx(1.0)
    twin = by_subspace(unit, size, cap, count, rng)
    other = rng.normal(size=dimension)
    for direction in (unit, other, other - unit * (other @ unit)):
        assert ks_2samp(sent @ direction, twin @ direction).pvalue > 1e-4
    assert ks_2samp(np.abs(sent).max(axis=1), np.abs(twin).max(axis=1)).pvalue > 1e-4
    pairs = [(points[::2] * points[1::2]).sum(axis=1) for points in (sent, twin)]
    assert ks_2samp(*pairs).pvalue > 1e-4, "two releases are as near to each other"


def test_the_mean_length_of_a_projection_is_that_of_drawn_ones():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(50_000, 20))
    lengths = np.linalg.norm(normal[:, :6], axis=1) / np.linalg.norm(normal, axis=1)
    assert mean_length(6, 20) == pytest.approx(lengths.mean(), abs=5 * lengths.std() / 223)
    assert mean_length(20, 20) == mean_length(30, 20) == 1.0


def test_few_bytes_cost_little_accuracy():
    """32 numbers instead of 650 raise the variance by a few percent."""
    for loss in (0.5, 1.0, 2.0):
        whole = PrivUnit("unit").variance(loss, 650)
        few = ProjUnit(32, "unit").variance(loss, 650)
        assert 1.0 < few / whole < 1.08
    assert ProjUnit(32).message_bytes(650, 1.0) == 33 * 8
    assert ProjUnit(32).message_bytes(20, 1.0) == 21 * 8


@pytest.mark.parametrize("length", ["kept", "unit"])
def test_dimensions_without_a_sphere_are_refused(length):
    assert np.isfinite(PrivUnit(length).variance(1.0, 1))
    with pytest.raises(InputError, match="takes gradients of 1 to"):
        PrivUnit(length).variance(1.0, 10**6 + 2)
    with pytest.raises(InputError, match="size must be at least 2"):
        ProjUnit(1)


def test_a_direction_of_one_coordinate_is_sent_by_randomised_response():
    rows, losses = np.ones((20_000, 1)), np.full(20_000, 1.0)
    sent = PrivUnit("unit").release(rows, losses, np.random.default_rng(0))[:, 0]
    assert np.abs(sent) == pytest.approx(1 / np.tanh(0.5))
    assert (sent > 0).mean() == pytest.approx(np.e / (np.e + 1), abs=0.015)


@pytest.mark.parametrize("z", [0.5, 3.0, 99.5, 100.0, 100.5, 137.0, 4000.0])
def test_the_ratio_of_gammas_is_that_of_forty_digits_on_both_sides_of_the_series(z):
    with mpmath.workdps(40):
        exact = float(mpmath.gamma(mpmath.mpf(z) + 0.5) / mpmath.gamma(z))
    assert gamma_ratio(z) == pytest.approx(exact, rel=3e-13)
