"""The two mechanisms of the box, against all of their outcomes."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from flmarket_sim.perturbation.duchi_linf import DuchiLinf, _shares, cube_size
from flmarket_sim.perturbation.piecewise import Piecewise, coordinates, one_coordinate

LOSSES = (0.3, 1.0, 2.5)


def corners(dimension):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=dimension)))


def chances_at_a_corner(rounded, loss, ties):
    """P(s) of all corners for a gradient that is a corner itself.

    `ties` says where corners with <s, v> = 0 belong: to the "upper" side, or to "both" as in the
    published algorithm, which first draws a side and then a corner of it.
    """
    heights = corners(len(rounded)) @ rounded
    sides = (heights >= 0, heights < 0 if ties == "upper" else heights <= 0)
    if ties == "both":
        shares = (math.exp(loss) / (math.exp(loss) + 1), 1 / (math.exp(loss) + 1))
    else:
        weight = np.where(sides[0], math.exp(loss), 1.0)
        return weight / weight.sum()
    return sum(share * side / side.sum() for share, side in zip(shares, sides, strict=True))


def chances(gradient, loss):
    """P(s) of all corners for a gradient in [-1, 1]^D: over all of its roundings."""
    total = np.zeros(2 ** len(gradient))
    for rounded in corners(len(gradient)):
        weight = np.prod(0.5 + 0.5 * rounded * gradient)
        total += weight * chances_at_a_corner(rounded, loss, "upper")
    return total


def worst_ratio(dimension, loss, ties):
    found = np.stack([chances_at_a_corner(v, loss, ties) for v in corners(dimension)])
    return (found.max(axis=0) / found.min(axis=0)).max()


@pytest.mark.parametrize("dimension", range(1, 7))
@pytest.mark.parametrize("loss", LOSSES)
def test_no_corner_is_more_than_exp_e_times_as_likely_and_the_mean_is_the_gradient(dimension, loss):
    assert worst_ratio(dimension, loss, "upper") == pytest.approx(math.exp(loss), rel=1e-12)
    size = cube_size(np.array([loss]), dimension, 1.0)[0]
    rng = np.random.default_rng(dimension)
    for gradient in (*corners(dimension)[:2], rng.uniform(-1, 1, dimension), np.zeros(dimension)):
        mean = size * chances(gradient, loss) @ corners(dimension)
        assert mean == pytest.approx(gradient, abs=1e-12)
    upper, likely = _shares(np.array([loss]), dimension)
    first = corners(dimension)[-1]
    side = corners(dimension) @ first >= 0
    assert upper == pytest.approx(side.mean(), rel=1e-12)
    assert likely[0] == pytest.approx(chances_at_a_corner(first, loss, "upper")[side].sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_published_reading_of_ties_tells_more_than_it_promises(loss):
    for dimension in (2, 4, 6):
        assert worst_ratio(dimension, loss, "both") == pytest.approx(math.exp(loss) + 1)
    for dimension in (1, 3, 5):
        assert worst_ratio(dimension, loss, "both") == pytest.approx(math.exp(loss))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_released_corners_come_as_often_as_their_chances_say(dimension):
    gradient, loss, count = np.linspace(-0.4, 0.9, dimension), 1.0, 40_000
    rows = np.tile(gradient, (count, 1))
    sent = DuchiLinf().release(rows, np.full(count, loss), np.random.default_rng(0))
    assert np.abs(sent) == pytest.approx(cube_size(np.array([loss]), dimension, 1.0)[0])
    code = (sent > 0) @ (2 ** np.arange(dimension)[::-1])
    seen = np.bincount(code, minlength=2**dimension)
    assert chisquare(seen, chances(gradient, loss) * count).pvalue > 1e-4


def piecewise_density(x, value, loss):
    """The density of one release by its definition: high near S t, low elsewhere in [-S, S]."""
    z = math.exp(loss / 2)
    size = (z + 1) / (z - 1)
    low = (size + 1) / 2 * value - (size - 1) / 2
    inside = (x >= low) & (x <= low + size - 1)
    return np.where(inside, z / (z + 1) / (size - 1), 1 / (z + 1) / (size + 1)), size


@pytest.mark.parametrize("loss", LOSSES)
def test_densities_of_the_piecewise_mechanism_differ_by_exp_e(loss):
    _, size = piecewise_density(np.zeros(1), 0.0, loss)
    x = np.linspace(-size, size, 4001)
    found = np.stack([piecewise_density(x, t, loss)[0] for t in np.linspace(-1, 1, 21)])
    assert found.max() / found.min() == pytest.approx(math.exp(loss), rel=1e-9)
    assert found.sum(axis=1) * (x[1] - x[0]) == pytest.approx(1.0, rel=5e-3)


@pytest.mark.parametrize("value", [-1.0, 0.3, 1.0])
def test_released_values_follow_the_density(value):
    count, loss = 20_000, 1.0
    sent = one_coordinate(
        np.full(count, value), np.full(count, loss), np.random.default_rng(int(9 + 5 * value))
    )
    _, size = piecewise_density(np.zeros(1), value, loss)
    grid = np.linspace(-size, size, 20_001)
    density, _ = piecewise_density(grid, value, loss)
    cdf = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert kstest(sent, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-4


def test_an_owner_sends_another_coordinate_for_every_two_and_a_half_of_loss():
    losses = np.array([0.1, 2.4, 2.5, 4.9, 5.0, 7.6, 1000.0])
    assert coordinates(losses, 4).tolist() == [1, 1, 1, 1, 2, 3, 4]
    sent = Piecewise().release(np.full((7, 4), 0.5), losses, np.random.default_rng(0))
    assert (sent != 0).sum(axis=1).tolist() == [1, 1, 1, 1, 2, 3, 4]
    assert [Piecewise().message_bytes(650, loss) for loss in (1.0, 5.0)] == [12, 24]


def test_no_more_coordinates_are_sent_than_there_are():
    piecewise = Piecewise()
    assert piecewise.message_bytes(3, 100.0) == 36 and piecewise.message_bytes(50, 6.0) == 24
    corner = np.ones((20_000, 2))
    sent = piecewise.release(corner, np.full(20_000, 9.0), np.random.default_rng(3))
    spread = ((sent - corner) ** 2).sum(axis=1).mean()
    assert spread == pytest.approx(float(piecewise.variance(9.0, 2)), rel=0.1)
