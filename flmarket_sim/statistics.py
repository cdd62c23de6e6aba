"""Estimates with their 95 % intervals: bootstrap over markets, Student over runs, standard errors.

Owners of one market share its fate, so the bootstrap draws markets, not owners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 1000
NAN = float("nan")


@dataclass(frozen=True)
class Estimate:
    """A mean with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(per_market: Floats, seed: int = 0, weights: Floats | None = None) -> Estimate:
    """Mean over markets (K,); with `weights`, the ratio sum(per_market) / sum(weights).

    Markets without a number (nan) are left out. The interval is a percentile bootstrap, which is
    somewhat narrow for samples with heavy tails.
    """
    finite = np.isfinite(per_market)
    sample = per_market[finite]
    weight = np.ones(len(sample)) if weights is None else weights[finite]
    if not len(sample) or weight.sum() == 0:
        return Estimate(NAN, NAN, NAN)
    rng = np.random.default_rng(seed)
    share = np.full(len(sample), 1 / len(sample))
    counts = rng.multinomial(len(sample), share, RESAMPLES).astype(float)
    totals = counts @ weight
    ratios = (counts @ sample)[totals > 0] / totals[totals > 0]
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Estimate(float(sample.sum() / weight.sum()), float(low), float(high))


def from_seeds(sample: Floats) -> Estimate:
    """Mean of a few independent runs with Student's interval; a single run has no interval.

    For a paired comparison of runs, the sample are the differences run by run.
    """
    from scipy.special import stdtrit  # takes 0.2 s, and a run does not need it

    finite = sample[np.isfinite(sample)]
    if len(finite) < 2:
        return Estimate(float(finite[0]) if len(finite) else NAN, NAN, NAN)
    mean = float(finite.mean())
    half = float(stdtrit(len(finite) - 1, 0.975) * finite.std(ddof=1) / np.sqrt(len(finite)))
    return Estimate(mean, mean - half, mean + half)


def standard_error(sample: Floats) -> Floats:
    """Of the mean over the first axis."""
    return np.asarray(sample.std(axis=0, ddof=1) / np.sqrt(len(sample)))


def half_width(sample: Floats) -> float:
    """Of the 95 % interval of the mean of many numbers (n,), by the normal distribution."""
    if len(sample) < 2:
        return NAN
    return float(1.96 * sample.std(ddof=1) / np.sqrt(len(sample)))
