"""The geometric median, by Weiszfeld's and Newton's steps with a bound that proves the result."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from flmarket_sim.aggregation.robust.coordinate_median import HALF
from flmarket_sim.aggregation.robust.distances import squared_distances
from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats, standardised

CHEAP_STEPS = 30  # of Weiszfeld, before steps of Newton are tried, which cost more
SHORTER = (1.0, 0.25, 1 / 16, 1 / 64)  # parts of a step of Newton
ROUNDING = 1e-13  # of a sum of distances


class GeometricMedian:
    """The point x with the least f(x) = sum_i a_i |m_i - x|, with standardised weights a_i.

    Chen, Su and Xu (POMACS 2017) and Pillutla, Kakade and Harchaoui, "Robust Aggregation for
    Federated Learning" (2019) use it for Byzantine owners. At the minimum, x is the mean of the
    messages with the weights a_i / |m_i - x|. In many coordinates an honest message lies s_i from
    x, nearly exactly, so that these are the weights l_i again: standardised, the rule is close to
    the weighted sum if everybody is honest.

    `tolerance` bounds (f(x) - min f) / f(x); the iteration ends when that is proved. After
    `iterations` it ends with the point of the smallest proved bound (`geometric_median` gives it).
    """

    name = "geometric-median"

    def __init__(
        self,
        tolerance: Annotated[float, Field(ge=1e-12, lt=1)] = 1e-7,
        iterations: Annotated[int, Field(ge=1, le=10_000_000)] = 1000,
    ) -> None:
        self.tolerance, self.iterations = tolerance, iterations

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        pull = standardised(weights, variance)
        counts = pull > 0
        found = geometric_median(messages[counts], pull[counts], self.tolerance, self.iterations)
        return found.point

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(standardised(weights, variance), HALF)


class Median(NamedTuple):
    """A point, and what is proved of it: (f(point) - min f) / f(point) is at most `gap`."""

    point: Floats
    gap: float


class _Place(NamedTuple):
    """f around one point x: its value and gradient, and the forces a_i / |p_i - x|."""

    x: Floats
    value: float
    gradient: Floats
    strength: float  # the length of the gradient
    force: Floats


def geometric_median(points: Floats, weights: Floats, tolerance: float, iterations: int) -> Median:
    """The minimum of f(x) = sum_i a_i |p_i - x| for points (n, D) and weights a (n,) > 0.

    f is convex. By the triangle inequality |x - x*| sum(a) <= f(x) + f(x*) <= 2 f(x), therefore

        f(x) - f(x*) <= |gradient of f at x| |x - x*| <= 2 |gradient| f(x) / sum(a),

    and the iteration ends when the last is at most `tolerance` f(x). At a point p_k itself f has no
    gradient; what the others pull with beyond its own weight takes the place of |gradient|
    (Vardi and Zhang, PNAS 2000). The best point is tried first. If it is not the minimum, a step
    from it leads below the values at all points, and since f never rises again
    (Weiszfeld 1937), the iteration meets no point.

    Weiszfeld's steps become short where the minimum is near a point whose weight is just below the
    pull of the others. From `CHEAP_STEPS` on a step of Newton is taken in place of his wherever it
    leads at least as far down.
    """
    apart = np.sqrt(np.maximum(squared_distances(points), 0.0))
    best = int((apart @ weights).argmin())
    offset, distance = points - points[best], apart[best]
    there = distance == 0.0
    own, others, force = weights[there].sum(), offset[~there], weights[~there] / distance[~there]
    pull = force @ others
    strength = np.sqrt(pull @ pull)
    total = float(weights.sum())
    at_best = max(2.0 * float(strength - own) / total, 0.0)
    if at_best <= tolerance:
        return Median(np.array(points[best]), at_best)
    basis = np.linalg.qr(offset.T)[0] if len(points) < points.shape[1] else None
    flat = offset if basis is None else offset @ basis
    x = (1.0 - own / strength) * (pull if basis is None else pull @ basis) / force.sum()
    place = _place(x, flat, weights)
    nearest = place
    for number in range(iterations):
        if 2.0 * nearest.strength <= tolerance * total:
            break
        plain = _place(place.x - place.gradient / place.force.sum(), flat, weights)
        least = nearest.strength
        faster = None if number < CHEAP_STEPS else _newton(place, plain.value, least, flat, weights)
        place = plain if faster is None else faster
        nearest = place if place.strength < least else nearest
    gap = 2.0 * nearest.strength / total
    if not gap < at_best:
        return Median(np.array(points[best]), at_best)
    return Median(points[best] + (nearest.x if basis is None else basis @ nearest.x), gap)


def _place(x: Floats, points: Floats, weights: Floats) -> _Place:
    apart = points - x
    distance = np.sqrt(np.square(apart).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        force = weights / distance
        gradient = -(force @ apart)
    return _Place(
        x, float(weights @ distance), gradient, float(np.sqrt(gradient @ gradient)), force
    )


def _newton(
    place: _Place, enough: float, least: float, points: Floats, weights: Floats
) -> _Place | None:
    """A step of Newton, or a part of it, that leads down to the value `enough`; None without one.

    Near the minimum values differ by less than numbers can show. There a step counts that keeps the
    value and halves the `least` gradient so far; that happens finitely often, and so the steps
    converge as Weiszfeld's do.
    """
    whole = place.force.sum()
    apart = points - place.x
    square = np.square(apart).sum(axis=1)
    curvature = whole * np.eye(len(place.x)) - apart.T @ ((place.force / square)[:, None] * apart)
    curvature[np.diag_indices_from(curvature)] += 4.0 * np.finfo(float).eps * whole
    try:
        step = np.linalg.solve(curvature, -place.gradient)
    except np.linalg.LinAlgError:
        return None
    for part in SHORTER:
        new = _place(place.x + part * step, points, weights)
        steady = new.value <= place.value * (1.0 + ROUNDING) and new.strength <= 0.5 * least
        if np.isfinite(new.strength) and (new.value <= enough or steady):
            return new
    return None
