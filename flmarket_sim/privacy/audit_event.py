"""Which two gradients an audit releases, and which event it counts.

A perturbation that knows its worst pair says so. For others, and where no threshold is known, a
pilot looks for the pair and the threshold that show most. Its draws are not counted afterwards, so
a bound from other draws holds whatever the pilot chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.perturbation.worst_pair import FAR, KnowsWorstPair, WorstPair

Floats = NDArray[np.float64]
Numbers = tuple[float, ...]
Draw = Callable[[Floats, int, int], Floats]  # gradient (D,), count, stream -> releases (count, D)
SPREAD = 40  # candidate thresholds of a pilot
FEWEST = 10  # hits without which a threshold shows nothing
LEAST_PILOT = 200  # draws of a gradient
DOUBT = 2.0  # standard deviations by which a pilot mistrusts its own counts
SURE = 3.0  # standard deviations between a count and its bound
SMALL = 0.01  # times the threshold: a gradient well inside the domain


@dataclass(frozen=True)
class AuditEvent:
    """Two raw gradients, and "<release, direction> >= threshold", as plain numbers.

    `middle` is the threshold half-way between the two, where releases are the gradient plus
    Gaussian noise; None elsewhere.
    """

    first: Numbers
    second: Numbers
    direction: Numbers
    threshold: float
    middle: float | None = None

    def hits(self, released: Floats) -> tuple[int, int]:
        """How many releases (n, D) have the event, and how many are beyond the middle."""
        heights = released @ np.array(self.direction)
        middle = 0 if self.middle is None else int((heights >= self.middle).sum())
        return int((heights >= self.threshold).sum()), middle


def choose_event(
    pairs: list[WorstPair], delta: float, draws: int, pilot_draws: int, draw: Draw
) -> AuditEvent:
    """The event to count in `draws` releases of two gradients each.

    A single pair with a known threshold needs no pilot. Else half of `pilot_draws` is divided over
    all pairs, each tried in both orders, and half looks for the threshold of the best of them.
    """
    best = pairs[0]
    if len(pairs) > 1:
        each = max(pilot_draws // (2 * len(pairs)), LEAST_PILOT)
        tried = [_tried(pair, delta, draws, each, draw, i) for i, pair in enumerate(pairs)]
        best = max(tried, key=lambda one: one[0])[1]
    elif best.threshold is not None:
        return _event(best, best.threshold)
    rest = max(pilot_draws // 2, LEAST_PILOT)
    _, pair, threshold = _tried(best, delta, draws, rest, draw, len(pairs))
    return _event(pair, threshold)


def _tried(
    pair: WorstPair, delta: float, draws: int, pilot_draws: int, draw: Draw, stream: int
) -> tuple[float, WorstPair, float]:
    """What a pair shows in the better of its two orders, that order, and its best threshold."""
    likely, unlikely = (
        draw(gradient, pilot_draws, 2 * stream + which) @ pair.direction
        for which, gradient in enumerate((pair.first, pair.second))
    )
    turned = replace(pair, first=pair.second, second=pair.first, direction=-pair.direction)
    there, back = (
        _best_threshold(*heights, draws, delta)
        for heights in ((likely, unlikely), (-unlikely, -likely))
    )
    return (there[0], pair, there[1]) if there[0] >= back[0] else (back[0], turned, back[1])


def worst_pairs(
    perturbation: Perturbation, privacy_loss: float, dimension: int, clip: float
) -> list[WorstPair]:
    """The pair that the perturbation names, or else candidates."""
    if isinstance(perturbation, KnowsWorstPair):
        return [perturbation.worst_pair(privacy_loss, dimension, clip)]
    return list(candidates(perturbation, dimension, clip))


def candidates(perturbation: Perturbation, dimension: int, clip: float) -> Iterator[WorstPair]:
    """Pairs that are far apart in one norm or another.

    The statistic is the height of a release along the difference of the two prepared gradients.
    """
    axes = FAR * clip * np.eye(dimension)
    ones = np.full(dimension, FAR * clip)
    slope = FAR * clip * np.linspace(1.0, 2.0, dimension) * (-1.0) ** np.arange(dimension)
    pairs = [(axes[0], -axes[0]), (axes[0], SMALL * axes[0] / FAR), (np.zeros(dimension), axes[0])]
    if dimension > 1:
        pairs += [(ones, -ones), (slope, -slope), (axes[0], axes[1])]
    for one, other in pairs:
        prepared = perturbation.prepare(np.stack([one, other]), clip)
        difference = np.asarray(prepared[0] - prepared[1], np.float64)
        length = float(np.linalg.norm(difference))
        if length > 0 and np.isfinite(length):
            yield WorstPair(one, other, difference / length, None)


def _event(pair: WorstPair, threshold: float) -> AuditEvent:
    first, second, direction = (
        tuple(map(float, part)) for part in (pair.first, pair.second, pair.direction)
    )
    return AuditEvent(first, second, direction, threshold, 0.0 if pair.gaussian else None)


def _best_threshold(
    likely: Floats, unlikely: Floats, draws: int, delta: float
) -> tuple[float, float]:
    """The bound that `draws` releases would show at the best threshold, and the threshold.

    Chances are taken from the pilot's heights, pessimistically, since the best of many looks better
    than it is.
    """
    both = np.sort(np.concatenate([likely, unlikely]))
    places = np.unique(np.geomspace(FEWEST, len(both) - 1, SPREAD).astype(int))
    thresholds = np.unique(np.concatenate([both[-places], both[places]]))
    low = _pessimistic(likely, thresholds, -1.0, len(likely))
    high = _pessimistic(unlikely, thresholds, 1.0, len(unlikely))
    low -= SURE * np.sqrt(low * (1.0 - low) / draws)
    high += SURE * np.sqrt(high * (1.0 - high) / draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(low > delta, np.log((low - delta) / high), -np.inf)
    best = int(np.argmax(shown))
    return float(shown[best]), float(thresholds[best])


def _pessimistic(heights: Floats, thresholds: Floats, sign: float, count: int) -> Floats:
    """(t,) chances of heights at or above thresholds, moved by some standard deviations."""
    share = 1.0 - np.searchsorted(np.sort(heights), thresholds, "left") / count
    moved = share + sign * DOUBT * np.sqrt(np.maximum(share * (1.0 - share), 1.0 / count) / count)
    return np.asarray(np.clip(moved, 0.0, 1.0))
