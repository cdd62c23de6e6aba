"""Confidence intervals by bootstrap over markets: owners of one market share its fate, so markets are drawn, not owners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]
RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A mean with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(per_market: Floats, seed: int = 0, weights: Floats | None = None) -> Estimate:
    """Mean over markets (K,), or the ratio of two sums where `weights` are given: sum(per_market) / sum(weights).

    Markets without a number (nan) are left out. Percentile bootstrap; with heavy tails such intervals are somewhat narrow.
    """
    kept = np.isfinite(per_market)
    sample = per_market[kept]
    weight = np.ones(len(sample)) if weights is None else weights[kept]
    if not len(sample) or weight.sum() == 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(sample), np.full(len(sample), 1 / len(sample)), RESAMPLES).astype(
        float
    )
    totals = counts @ weight
    ratios = (counts @ sample)[totals > 0] / totals[totals > 0]
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Estimate(float(sample.sum() / weight.sum()), float(low), float(high))


def from_seeds(sample: Floats) -> Estimate:
    """Mean of a few independent runs with Student's interval; without an interval for a single run."""
    kept = sample[np.isfinite(sample)]
    if len(kept) < 2:
        mean = float(kept[0]) if len(kept) else float("nan")
        return Estimate(mean, float("nan"), float("nan"))
    mean, half = (
        float(kept.mean()),
        float(stdtrit(len(kept) - 1, 0.975) * kept.std(ddof=1) / np.sqrt(len(kept))),
    )
    return Estimate(mean, mean - half, mean + half)
