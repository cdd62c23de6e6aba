"""OptAggr by the paper's own route: Problem 3 as a quadratic program, solved by SCS.

For the k owners who sell, with weights x and distances y from the data shares W,

    minimise 1/2 (x, y)^T Q (x, y)    with Q = diag(V) for x, and C^2 everywhere for y,
    where sum(x) = 1,  x - y <= W,  -x - y <= -W.

The reading is that of the authors' code: W is renormalised over those who sell, which is the
problem of `opt-aggr-winners`. Their code gives the solver no tolerances, so SCS stops at its own
(1e-4, absolute and relative), and where SCS fails they end with the weights of `var-opt`. Their
losers have no weight, and neither the problem nor the variances are scaled, except for variances
that are beyond 1e200 or below 1e-200. The rule is here for
reproduction and comparison: `opt-aggr-winners` solves the same problem exactly.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.lazy_cvxpy import cvxpy
from flmarket_sim.aggregation.rule import Floats, check_inputs, noise_and_radius, normalised

SCS_TOLERANCES = {"eps_abs": 1e-4, "eps_rel": 1e-4, "max_iters": 100_000}


@dataclass(frozen=True)
class QuadraticProgram:
    """Problem 3 for k owners who sell; deviation is sqrt(V), and radius is C."""

    problem: Any
    both: Any
    deviation: Any
    radius: Any
    share: Any


class OptAggrScs:
    """The authors' route: Problem 3 by SCS, to its tolerance of 1e-4. For reproduction."""

    name = "opt-aggr-scs"

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        loss, size = check_inputs(privacy_loss, data_size, clip)
        noise, radius = noise_and_radius(variance, loss, clip)
        scores = np.zeros_like(loss)
        for k in np.flatnonzero((loss > 0).any(axis=1)):
            sells = loss[k] > 0
            scores[k, sells] = self._solved(noise[k, sells], size[k, sells], float(radius[k]))
        return normalised(scores, size)

    def _solved(self, variance: Floats, size: Floats, radius: float) -> Floats:
        """(k,) the weights of those who sell, before they are made to sum to 1."""
        cp = cvxpy()

        k = len(size)
        if k not in self._programs:
            self._programs[k] = quadratic_program(k)
        program = self._programs[k]
        program.deviation.value = np.sqrt(variance)
        program.radius.value = radius
        program.share.value = size / size.sum()
        try:
            with warnings.catch_warnings():  # where SCS reaches its last step, the authors go on
                warnings.filterwarnings("ignore", "Solution may be inaccurate")
                program.problem.solve(solver=cp.SCS, warm_start=False, **SCS_TOLERANCES)
            found = program.both.value
        except (cp.error.SolverError, ValueError):  # it gave up, or met numbers beyond its range
            found = None
        if found is None or not np.isfinite(found).all() or found[:k].max() <= 0:
            return np.asarray(variance.min() / variance)
        return np.asarray(np.maximum(found[:k], 0.0))

    @cached_property
    def _programs(self) -> dict[int, QuadraticProgram]:
        return {}


def quadratic_program(k: int) -> QuadraticProgram:
    """Problem 3 for k owners, compiled once."""
    cp = cvxpy()

    both = cp.Variable(2 * k)
    deviation, share = cp.Parameter(k, nonneg=True), cp.Parameter(k, nonneg=True)
    radius = cp.Parameter(nonneg=True)
    weight, distance = both[:k], both[k:]
    noise = cp.sum_squares(cp.multiply(deviation, weight))
    bias = cp.square(radius * cp.sum(distance))
    problem = cp.Problem(
        cp.Minimize(0.5 * (noise + bias)),
        [cp.sum(weight) == 1, weight - distance <= share, -weight - distance <= -share],
    )
    return QuadraticProgram(problem, both, deviation, radius, share)
