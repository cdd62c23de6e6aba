"""The geometric median, by Weiszfeld's iteration with a stopping rule that proves the result."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.aggregation.robust.coordinate_median import HALF
from flmarket_sim.aggregation.robust.distances import squared_distances
from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats, standardised
from flmarket_sim.errors import ContractError


class GeometricMedian:
    """The point x with the least f(x) = sum_i a_i |m_i - x|, with standardised weights a_i.

    Chen, Su and Xu (POMACS 2017) and Pillutla, Kakade and Harchaoui, "Robust Aggregation for
    Federated Learning" (2019) use it for Byzantine owners. At the minimum, x is the mean of the
    messages with the weights a_i / |m_i - x|. In many coordinates an honest message lies s_i from
    x, nearly exactly, so that these are the weights l_i again: standardised, the rule is close to
    the weighted sum if everybody is honest.

    `tolerance` bounds (f(x) - min f) / f(x); the iteration ends when that is proved.
    """

    name = "geometric-median"

    def __init__(
        self,
        tolerance: Annotated[float, Field(ge=1e-12, lt=1)] = 1e-7,
        iterations: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000,
    ) -> None:
        self.tolerance, self.iterations = tolerance, iterations

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        pull = standardised(weights, variance)
        counts = pull > 0
        return geometric_median(messages[counts], pull[counts], self.tolerance, self.iterations)

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(standardised(weights, variance), HALF)


def geometric_median(points: Floats, weights: Floats, tolerance: float, iterations: int) -> Floats:
    """(D,) the minimum of f(x) = sum_i a_i |p_i - x| for points (n, D) and weights a (n,) > 0.

    f is convex. By the triangle inequality |x - x*| sum(a) <= f(x) + f(x*) <= 2 f(x), therefore

        f(x) - f(x*) <= |gradient of f at x| |x - x*| <= 2 |gradient| f(x) / sum(a),

    and the iteration ends when the last is at most `tolerance` f(x). At a point p_k itself f has no
    gradient; what the others pull with beyond its own weight takes the place of |gradient|
    (Vardi and Zhang, PNAS 2000). The best point is tried first. If it is not the minimum, a step
    from it leads below the values at all points, and since f never rises again
    (Weiszfeld 1937), the iteration meets no point.
    """
    apart = np.sqrt(np.maximum(squared_distances(points), 0.0))
    best = int((apart @ weights).argmin())
    offset, distance = points - points[best], apart[best]
    there = distance == 0.0
    own, others, force = weights[there].sum(), offset[~there], weights[~there] / distance[~there]
    pull = force @ others
    strength = np.sqrt(pull @ pull)
    if 2.0 * (strength - own) <= tolerance * weights.sum():
        return np.array(points[best])
    x = (1.0 - own / strength) * pull / force.sum()
    for _ in range(iterations):
        distance = np.sqrt(np.square(offset - x).sum(axis=1))
        force = weights / distance
        target = force @ offset / force.sum()
        gradient = force.sum() * np.sqrt(np.square(target - x).sum())
        if 2.0 * gradient <= tolerance * weights.sum():
            return np.asarray(points[best] + target)
        x = target
    raise ContractError(
        f"robust rule 'geometric-median': after {iterations:,} iterations the sum of distances "
        f"may still be {2.0 * gradient / weights.sum():.1e} of itself above the minimum, but "
        f"`tolerance` is {tolerance:g}; allow more of either"
    )
