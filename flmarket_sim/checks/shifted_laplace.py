"""The best test of Laplace noise around a known gradient against the noise alone.

In units of the noise, with shifts d_j = |g_j| / b, the log likelihood ratio of the gradient over
zeros is a sum of independent numbers, each between -d_j and d_j:

    S = sum_j |x_j| - |x_j - d_j|,   P(S_j <= s) = 1 - exp(-(s + d_j) / 2) / 2 for -d_j <= s < d_j

for noise alone. For an honest message -S has this distribution. So the test "S <= t" has

    level A(t) = P(S >= -t),   power R(t) = P(S <= t),   and TV = P(S < 0) - P(S > 0).

The distribution is computed on a lattice, once with every number rounded down and once with every
number rounded up. The first has too little level and too much power, the second the reverse, so
that the truth lies between the two. Between two points of the lattice the power is at least that of
tests mixed from both, and at most R(t) + exp(-t) (level - A(t)), the tangent at any t: the slope of
a best test's curve is the likelihood ratio at its threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError

Floats = NDArray[np.float64]
POINTS = 2**20  # of the lattice
ROUNDING = 1e-9  # more than that of the Fourier transforms; added to both ends of an interval


class Bracket(NamedTuple):
    """The ends of an interval that holds the truth."""

    least: Floats
    most: Floats


class Curves(NamedTuple):
    """Thresholds t (N,), and the levels A(t) and powers R(t) of the sum rounded down, or up."""

    threshold: Floats
    level_down: Floats
    power_down: Floats
    level_up: Floats
    power_up: Floats


def one_coordinate_power(level: ArrayLike, shift: float) -> Floats:
    """The best test's power for a gradient with one coordinate: F(F^-1(level) + shift)."""
    alpha = np.asarray(level, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        point = np.where(alpha < 0.5, np.log(2.0 * alpha), -np.log(2.0 * (1.0 - alpha))) + shift
    small = np.exp(-np.abs(point))
    return np.asarray(np.where(point < 0, 0.5 * small, 1.0 - 0.5 * small))


def one_coordinate_distance(shift: float) -> float:
    """The total variation for a gradient with one coordinate: 1 - exp(-shift / 2)."""
    return -math.expm1(-0.5 * shift)


def curves(shifts: ArrayLike, points: int = POINTS) -> Curves:
    """The curves of the best test for a gradient with shifts (D,), on a lattice of `points`."""
    size = np.abs(np.asarray(shifts, np.float64))
    size = size[size > 0]
    if not len(size):
        raise InputError("a gradient of zeros is nothing but noise: there is nothing to test")
    different, count = np.unique(size, return_counts=True)
    step = _step(different, count, points)
    down = _sums(different, count, step, points, up=False)
    up = _sums(different, count, step, points, up=True)
    threshold = np.asarray(step * (np.arange(points) - points // 2), np.float64)
    return Curves(threshold, *_curve(down), *_curve(up))


def distance(of: Curves) -> Bracket:
    """The total variation between honest messages and the noise alone: power - level at t < 0."""
    place = len(of.threshold) // 2 - 1  # the last threshold below zero
    return Bracket(
        np.asarray(max(of.power_up[place] - of.level_up[place] - ROUNDING, 0.0)),
        np.asarray(min(_tangent(of, np.zeros(1), place + 1)[0] + ROUNDING, 1.0)),
    )


def best_power(of: Curves, level: ArrayLike) -> Bracket:
    """The power of the best test at levels (a,)."""
    alpha = np.atleast_1d(np.asarray(level, np.float64))
    levels = np.concatenate([[0.0], of.level_up, [1.0]])
    powers = np.concatenate([[0.0], of.power_up, [1.0]])
    least = np.interp(alpha, np.maximum.accumulate(levels), np.maximum.accumulate(powers))
    with np.errstate(over="ignore"):
        slope = np.exp(-of.threshold)
        fixed = of.power_down - slope * of.level_down
    most = np.array([np.min(fixed + slope * one) for one in alpha])
    return Bracket(
        np.clip(least - ROUNDING, alpha, 1.0), np.clip(np.maximum(most, alpha) + ROUNDING, 0.0, 1.0)
    )


def _tangent(of: Curves, alpha: Floats, place: int) -> Floats:
    """R(t) + exp(-t) (level - A(t)) of the sum rounded down; at t = 0 and level 0 it is TV."""
    slope = math.exp(-of.threshold[place])
    return np.asarray(of.power_down[place] + slope * (alpha - of.level_down[place]))


def _step(different: Floats, count: NDArray[np.int64], points: int) -> float:
    """A step that the commonest shift is a multiple of, with room for the whole sum."""
    commonest = float(different[count.argmax()])
    total = float(different @ count)
    room = points // 2 - 2 * int(count.sum()) - 2
    steps = math.floor(room * commonest / total)
    if steps < 1:
        raise InputError(
            f"a lattice of {points:,} points has no room for {int(count.sum()):,} coordinates of "
            "such different sizes; ask for more points"
        )
    return commonest / steps


def _sums(
    different: Floats, count: NDArray[np.int64], step: float, points: int, up: bool
) -> Floats:
    """(N,) the chances of the sum on the lattice from -N/2 to N/2 - 1."""
    transform = np.ones(points // 2 + 1, np.complex128)
    for shift, number in zip(different.tolist(), count.tolist(), strict=True):
        wide = math.ceil(shift / step - 1e-9)
        place = np.arange(-wide, wide + 1)
        edges = _at_most(step * place, shift, step) if up else _less(step * place, shift, step)
        if up:
            chance = np.diff(edges, prepend=0.0)
        else:
            chance = np.diff(edges, append=1.0)
        whole = np.zeros(points)
        whole[place % points] = chance
        transform *= np.fft.rfft(whole) ** number
    return np.roll(np.fft.irfft(transform, points), points // 2)


def _at_most(value: Floats, shift: float, step: float) -> Floats:
    """P(S_j <= value), with the ends of the range as they are on the lattice."""
    inside = 1.0 - 0.5 * np.exp(-0.5 * (value + shift))
    slack = 1e-9 * step
    return np.where(value < -shift - slack, 0.0, np.where(value >= shift - slack, 1.0, inside))


def _less(value: Floats, shift: float, step: float) -> Floats:
    """P(S_j < value)."""
    inside = 1.0 - 0.5 * np.exp(-0.5 * (value + shift))
    slack = 1e-9 * step
    return np.where(value <= -shift + slack, 0.0, np.where(value > shift + slack, 1.0, inside))


def _curve(chances: Floats) -> tuple[Floats, Floats]:
    """A(t) = P(S >= -t) and R(t) = P(S <= t) at every threshold."""
    power = np.cumsum(chances)
    least = np.cumsum(chances[::-1])[::-1]  # P(S >= value)
    level = np.append(0.0, least[:0:-1])  # the value at place N - i is minus that at place i
    return level, power
