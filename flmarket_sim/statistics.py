"""Estimates with their 95 % intervals, and the correction for many comparisons.

An interval is of one of two means:

over populations   `estimate`: the mean of the scenario's market, over populations of owners and
                   markets drawn from them. Owners of one population share its fate, so a resample
                   draws whole populations, each with its markets.
over runs          `from_seeds`: the mean over independent runs, each with a population of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 1000
LEVEL = 0.05  # one minus the confidence of every interval
TRIMMED = 0.1  # share of the sample that a trimmed mean drops at each end
NAN = float("nan")
OVER_POPULATIONS = (
    "Intervals are 95 % confidence intervals of the mean over populations of owners and their "
    "markets: another seed draws other populations."
)
OVER_RUNS = (
    "Intervals are 95 % confidence intervals of the mean over runs (Student), each with a seed and "
    "a population of its own."
)


@dataclass(frozen=True)
class Estimate:
    """A mean (or another location) with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


MOST_KEPT = 100_000  # populations of resamples that stay in memory, a byte each
ENTRIES = 5_000_000  # counts that are numbers at once
UNKNOWN = Estimate(NAN, NAN, NAN)


def estimate(
    per_market: Floats,
    population: NDArray[np.int64] | None = None,
    weights: Floats | None = None,
    seed: int = 0,
) -> Estimate:
    """Mean over markets (K,); with `weights`, the ratio sum(per_market) / sum(weights).

    `population` (K,) numbers the population of each market; without it, each market is its own.
    Markets without a number (nan, inf) are left out. The interval is a studentised bootstrap over
    populations, which keeps its coverage for skewed samples. Its ends stay between the least and
    the largest mean of a population, since few populations that differ from the others would
    otherwise send them anywhere. A single population has no interval.
    """
    finite = np.isfinite(per_market)
    sample = np.asarray(per_market[finite], float)
    weight = np.ones(len(sample)) if weights is None else weights[finite]
    if not len(sample) or weight.sum() == 0:
        return UNKNOWN
    tops, bottoms = _sums_by_population(population, finite, sample, weight)
    mean = float(tops.sum() / bottoms.sum())
    if len(tops) < 2:
        return Estimate(mean, NAN, NAN)
    parts = [_ratios(counts, tops, bottoms) for counts in _resamples(len(tops), seed)]
    means, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    error = float(_ratios(np.ones((1, len(tops))), tops, bottoms)[1][0])
    with np.errstate(invalid="ignore", divide="ignore"):
        studentised = (means - mean) / errors
    studentised = studentised[np.isfinite(studentised)]
    if error <= 1e-12 * abs(mean) or not len(studentised):
        return Estimate(mean, mean, mean)
    low, high = np.percentile(studentised, [100 * LEVEL / 2, 100 * (1 - LEVEL / 2)])
    each = tops[bottoms > 0] / bottoms[bottoms > 0]
    ends = np.clip(mean - np.array([high, low]) * error, each.min(), each.max())
    return Estimate(mean, float(ends[0]), float(ends[1]))


def simultaneous(
    samples: Sequence[Floats], population: NDArray[np.int64] | None = None, seed: int = 0
) -> list[Estimate]:
    """Means of several numbers (K,) of the same markets, with intervals that hold together.

    With a confidence of 95 %, every interval covers its mean at once, however many there are. All
    means are resampled together, by population: the half width of an interval is its standard error
    times the 95 % quantile of the largest studentised error among the means. Markets without a
    number (nan, inf) are left out of their mean only.
    """
    sums = []
    for sample in samples:
        finite = np.isfinite(sample)
        kept = np.where(finite, sample, 0.0)
        every = np.ones(len(sample), bool)
        sums.append(_sums_by_population(population, every, kept, finite.astype(float)))
    number = len(sums[0][0]) if sums else 0
    counts = np.ones((1, number))
    if number > 1:
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(number, np.full(number, 1 / number), RESAMPLES).astype(float)
        counts = np.concatenate([counts, drawn])
    means, errors, largest = [], [], np.zeros(len(counts) - 1)
    for tops, bottoms in sums:
        if number < 2 or not bottoms.any():
            means.append(float(tops.sum() / bottoms.sum()) if bottoms.any() else NAN)
            errors.append(NAN)
            continue
        ratio, error = _ratios(counts, tops, bottoms)
        means.append(float(ratio[0]))
        errors.append(float(error[0]))
        if error[0] > 1e-12 * abs(ratio[0]):
            with np.errstate(invalid="ignore", divide="ignore"):
                studentised = np.abs((ratio[1:] - ratio[0]) / error[1:])
            studentised[~np.isfinite(studentised)] = 0.0
            largest = np.maximum(largest, studentised)
    critical = float(np.percentile(largest, 100 * (1 - LEVEL))) if len(largest) else NAN
    return [
        Estimate(mean, mean - critical * error, mean + critical * error)
        for mean, error in zip(means, errors, strict=True)
    ]


def share_estimate(happens: NDArray[np.bool_], population: NDArray[np.int64] | None) -> Estimate:
    """The share of markets (K,) in which something happens.

    If it happens never or always, the interval is Clopper and Pearson's for as many independent
    trials as there are populations.
    """
    from scipy.special import betaincinv

    count, total = int(happens.sum()), len(happens)
    if 0 < count < total:
        value = estimate(happens.astype(float), population)
        return Estimate(value.mean, max(value.low, 0.0), min(value.high, 1.0))
    trials = total if population is None else len(np.unique(population))
    far = float(betaincinv(1, trials, 1 - LEVEL / 2))
    return Estimate(0.0, 0.0, far) if count == 0 else Estimate(1.0, 1.0 - far, 1.0)


def median(values: Floats, population: NDArray[np.int64] | None = None) -> Estimate:
    """The median of numbers (K, ...), with a percentile bootstrap over populations."""
    return _robust(values, population, lambda shares, ordered: _quantile(shares, ordered, 0.5))


def trimmed_mean(values: Floats, population: NDArray[np.int64] | None = None) -> Estimate:
    """The mean without the largest and the smallest tenth, with a bootstrap as for `median`."""
    return _robust(values, population, _trimmed)


def from_seeds(sample: Floats) -> Estimate:
    """Mean of a few independent runs with Student's interval; a single run has no interval.

    For a paired comparison of runs, the sample are the differences run by run.
    """
    from scipy.special import stdtrit  # takes 0.2 s, and a run does not need it

    finite = sample[np.isfinite(sample)]
    if len(finite) < 2:
        return Estimate(float(finite[0]) if len(finite) else NAN, NAN, NAN)
    mean = float(finite.mean())
    half = stdtrit(len(finite) - 1, 1 - LEVEL / 2) * finite.std(ddof=1) / np.sqrt(len(finite))
    return Estimate(mean, mean - float(half), mean + float(half))


def p_below(lower: Estimate, upper: Estimate) -> float:
    """The p-value of "the first mean is not below the second", from two intervals.

    It takes the two estimates as independent. Estimates of the same markets mostly rise and fall
    together; for them the p-value is too large, so a claim is confirmed less easily.
    """
    from scipy.special import ndtr, ndtri

    half = float(np.hypot(lower.high - lower.mean, upper.mean - upper.low))
    gap = upper.mean - lower.mean
    if not np.isfinite(gap) or not np.isfinite(half):
        return 1.0
    if half <= 0:
        return 0.0 if gap > 0 else 1.0
    return float(ndtr(-gap / half * ndtri(1 - LEVEL / 2)))


def holm(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which of several hypotheses Holm's procedure rejects.

    The chance to reject any true hypothesis is at most `level`, however many there are.
    """
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        if p_values[place] > level / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected


def standard_error(sample: Floats) -> Floats:
    """Of the mean over the first axis."""
    return np.asarray(sample.std(axis=0, ddof=1) / np.sqrt(len(sample)))


def _sums_by_population(
    population: NDArray[np.int64] | None, kept: NDArray[np.bool_], sample: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """(P,) sums of the numbers and of the weights of each population; without one, of markets."""
    if population is None:
        return sample, weight
    _, place = np.unique(population[kept], return_inverse=True)
    return np.bincount(place, sample).astype(float), np.bincount(place, weight).astype(float)


def _resamples(populations: int, seed: int) -> Iterator[Floats]:
    """(R, P) how often each population is in each resample, in blocks of resamples.

    A page has many estimates over the same rounds: what was drawn for one is kept for the next.
    """
    step = max(1, ENTRIES // populations)
    if populations <= MOST_KEPT:
        counts = _kept(populations, seed)
        yield from (counts[at : at + step].astype(float) for at in range(0, RESAMPLES, step))
        return
    rng, share = np.random.default_rng(seed), np.full(populations, 1 / populations)
    for at in range(0, RESAMPLES, step):
        yield rng.multinomial(populations, share, min(step, RESAMPLES - at)).astype(float)


@lru_cache(maxsize=1)
def _kept(populations: int, seed: int) -> NDArray[np.uint8]:
    """All resamples. That a population is in one of them 256 times has no chance that counts."""
    rng, share = np.random.default_rng(seed), np.full(populations, 1 / populations)
    step = max(1, ENTRIES // populations)
    blocks = (
        rng.multinomial(populations, share, min(step, RESAMPLES - at)).astype(np.uint8)
        for at in range(0, RESAMPLES, step)
    )
    counts = np.concatenate(list(blocks))
    counts.flags.writeable = False
    return counts


def _ratios(counts: Floats, tops: Floats, bottoms: Floats) -> tuple[Floats, Floats]:
    """(R,) ratios of resamples with counts (R, P), and their linearised standard errors."""
    total = counts @ bottoms
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (counts @ tops) / total
        residual = tops - ratio[:, None] * bottoms
        square = (counts * residual**2).sum(axis=1) * len(tops) / (len(tops) - 1)
        return ratio, np.sqrt(square) / total


def _robust(
    values: Floats,
    population: NDArray[np.int64] | None,
    location: Callable[[Floats, Floats], Floats],
) -> Estimate:
    markets = len(values)
    if not values.size:
        return UNKNOWN
    owner = (
        np.arange(markets) if population is None else np.unique(population, return_inverse=True)[1]
    )
    flat = values.reshape(markets, -1)
    order = np.argsort(flat, axis=None, kind="stable")
    ordered = flat.ravel()[order]
    place = np.repeat(owner, flat.shape[1])[order]
    number = int(owner.max()) + 1
    here = float(location(np.full((1, len(ordered)), 1 / len(ordered)), ordered)[0])
    if number < 2:
        return Estimate(here, NAN, NAN)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(0, RESAMPLES, 50):
        counts = rng.multinomial(number, np.full(number, 1 / number), 50).astype(float)
        weight = counts[:, place]
        found.append(location(weight / weight.sum(axis=1, keepdims=True), ordered))
    low, high = np.percentile(np.concatenate(found), [100 * LEVEL / 2, 100 * (1 - LEVEL / 2)])
    return Estimate(here, float(low), float(high))


def _quantile(shares: Floats, ordered: Floats, level: float) -> Floats:
    """(R,) the smallest number with at least `level` of the mass at or below it."""
    below = np.cumsum(shares, axis=1) >= level - 1e-12
    return np.asarray(ordered[below.argmax(axis=1)])


def _trimmed(shares: Floats, ordered: Floats) -> Floats:
    """(R,) means of the mass between the quantiles TRIMMED and 1 - TRIMMED."""
    end = np.cumsum(shares, axis=1)
    inside = np.clip(end, TRIMMED, 1 - TRIMMED) - np.clip(end - shares, TRIMMED, 1 - TRIMMED)
    return np.asarray((inside * ordered).sum(axis=1) / inside.sum(axis=1))
