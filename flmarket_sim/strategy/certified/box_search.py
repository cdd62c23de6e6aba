"""Branch and bound: an upper bound of a function over a box, refined where the bound is largest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BoundBoxes = Callable[[Floats, Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class BoxEffort:
    """nodes: the boxes that are bounded for one owner at most. at_once: how many are halved in one
    step. tolerance: of an owner's cost, the gap below which the search ends."""

    nodes: int = 2_000
    at_once: int = 64
    tolerance: float = 1e-3


@dataclass(frozen=True)
class Largest:
    """What a search proved: no value in the box is above `bound`."""

    bound: float
    nodes: int


def largest_value(
    bounds: BoundBoxes,
    low: Floats,
    high: Floats,
    *,
    known: float,
    tolerance: float,
    effort: BoxEffort,
) -> Largest:
    """An upper bound of a function over the box [low, high] (D,).

    `bounds(low, high)` gives for boxes (B, D) upper bounds (B,), minus infinity for a box without
    reports, and the influence (B, D) of each coordinate: a box is halved where influence and width
    are largest. `known` is a value that is known to be reached. A box whose bound is within
    `tolerance` of it is left alone. The search ends when there is no other box, or when the nodes
    are used up.
    """
    boxes = _Boxes.of(bounds, low[None], high[None])
    nodes, settled = 1, -np.inf
    while True:
        done = boxes.bound <= known + tolerance
        settled = max(settled, boxes.bound[done].max(initial=-np.inf))
        boxes = boxes.at(~done)
        if not len(boxes.bound) or nodes >= effort.nodes:
            break
        best = np.argsort(-boxes.bound)[: effort.at_once]
        halves = boxes.at(best).halves(bounds)
        nodes += len(halves.bound)
        kept = np.ones(len(boxes.bound), bool)
        kept[best] = False
        boxes = boxes.at(kept).and_also(halves)
    return Largest(float(max(settled, boxes.bound.max(initial=-np.inf))), nodes)


@dataclass(frozen=True)
class _Boxes:
    low: Floats
    high: Floats
    bound: Floats
    influence: Floats

    @classmethod
    def of(cls, bounds: BoundBoxes, low: Floats, high: Floats) -> _Boxes:
        bound, influence = bounds(low, high)
        if np.isnan(bound).any():
            raise ArithmeticError("a bound of a box is not a number")
        return cls(low, high, bound, influence)

    def at(self, index: NDArray[np.bool_] | NDArray[np.int64]) -> _Boxes:
        return _Boxes(*(column[index] for column in vars(self).values()))

    def and_also(self, other: _Boxes) -> _Boxes:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Boxes(*(np.concatenate(pair) for pair in pairs))

    def halves(self, bounds: BoundBoxes) -> _Boxes:
        """Both halves of every box; neither bound is above that of the whole."""
        width = self.high - self.low
        along = np.where(width > 0, _relative(self.influence) + _relative(width), -1.0).argmax(1)
        row = np.arange(len(along))
        middle = (self.low[row, along] + self.high[row, along]) / 2
        lower, upper = self.high.copy(), self.low.copy()
        lower[row, along], upper[row, along] = middle, middle
        found = _Boxes.of(
            bounds, np.concatenate([self.low, upper]), np.concatenate([lower, self.high])
        )
        whole = np.concatenate([self.bound, self.bound])
        return _Boxes(found.low, found.high, np.minimum(found.bound, whole), found.influence)


def _relative(numbers: Floats) -> Floats:
    """Over the largest of each row."""
    return np.asarray(numbers / np.maximum(numbers.max(axis=1, keepdims=True), 1e-300))
