"""Which two gradients an audit releases, and which event it counts.

A perturbation that knows its worst pair says so. For others, and where no threshold is known, a
pilot looks for the pair and the threshold that show most. Its draws are not counted afterwards, so
a bound from other draws holds whatever the pilot chose.
"""

from __future__ import annotations

import math
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
PILOT = 3.0  # standard deviations by which a pilot mistrusts its own counts
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

    A single pair with a known threshold needs no pilot. Else `pilot_draws` releases are divided
    over the gradients of all pairs, and each pair is tried in both orders.
    """
    if len(pairs) == 1 and pairs[0].threshold is not None:
        return _event(pairs[0], pairs[0].threshold)
    each = max(pilot_draws // len(pairs), 100)
    best, chosen = -math.inf, _event(pairs[0], 0.0)
    for number, pair in enumerate(pairs):
        likely, unlikely = (
            draw(gradient, each, 2 * number + which) @ pair.direction
            for which, gradient in enumerate((pair.first, pair.second))
        )
        turned = replace(pair, first=pair.second, second=pair.first, direction=-pair.direction)
        for one, heights in ((pair, (likely, unlikely)), (turned, (-unlikely, -likely))):
            shown, threshold = _best_threshold(*heights, draws, delta)
            if shown > best:
                best, chosen = shown, _event(one, threshold)
    return chosen


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
    low -= PILOT * np.sqrt(low * (1.0 - low) / draws)
    high += PILOT * np.sqrt(high * (1.0 - high) / draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(low > delta, np.log((low - delta) / high), -np.inf)
    best = int(np.argmax(shown))
    return float(shown[best]), float(thresholds[best])


def _pessimistic(heights: Floats, thresholds: Floats, sign: float, count: int) -> Floats:
    """(t,) chances of heights at or above thresholds, moved by a standard deviation."""
    share = 1.0 - np.searchsorted(np.sort(heights), thresholds, "left") / count
    moved = share + sign * np.sqrt(np.maximum(share * (1.0 - share), 1.0 / count) / count)
    return np.asarray(np.clip(moved, 0.0, 1.0))
