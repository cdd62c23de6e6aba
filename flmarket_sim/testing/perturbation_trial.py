"""Where a perturbation is tried: gradients of every sort, and many releases of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.perturbation.domains import norms
from flmarket_sim.perturbation.perturbation import Perturbation

Floats = NDArray[np.float64]
SIZES = (1e-100, 1e-6, 1.0, 1e6, 1e100)


@dataclass(frozen=True)
class Trial:
    """A perturbation, and how hard it is tried: `draws` releases of each gradient."""

    perturbation: Perturbation
    dimensions: tuple[int, ...]
    losses: tuple[float, ...]
    clips: tuple[float, ...]
    draws: int
    seed: int

    def rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *key])

    def places(self) -> Iterator[tuple[int, float]]:
        """Pairs of a dimension and a clipping threshold, each of both at least once."""
        most = max(len(self.dimensions), len(self.clips))
        for i in range(most):
            yield self.dimensions[i % len(self.dimensions)], self.clips[i % len(self.clips)]

    def raw(self, dimension: int) -> Floats:
        """(n, D) gradients as models compute them: of all sizes, sparse, dense and empty ones."""
        rng = self.rng(dimension)
        dense = np.concatenate([rng.normal(size=(4, dimension)) * size for size in SIZES])
        axes = np.eye(1, dimension) * np.array([[1.0], [-1.0], [50.0], [1e-3]])
        return np.concatenate([dense, axes, np.ones((1, dimension)), np.zeros((1, dimension))])

    def prepared(self, dimension: int, clip: float) -> dict[str, Floats]:
        """Prepared gradients (D,) in the middle of the domain, at its edge and at its corners."""
        axis, ones = np.eye(1, dimension)[0], np.ones(dimension)
        mixed = self.rng(dimension, 1).normal(size=dimension)
        raw = {
            "no gradient": 0.0 * axis,
            "a long one along an axis": 10 * clip * axis,
            "a short one along an axis": 0.3 * clip * axis,
            "a long one in a corner": -10 * clip * ones,
            "a long one": 10 * clip * mixed / norms(mixed[None], "l2"),
        }
        rows = np.asarray(self.perturbation.prepare(np.stack(list(raw.values())), clip))
        return dict(zip(raw, rows, strict=True))

    def released(self, gradient: Floats, loss: float, clip: float, count: int, *key: int) -> Floats:
        """(count, D) releases of one prepared gradient (D,)."""
        rows, losses = np.tile(gradient, (count, 1)), np.full(count, loss)
        return np.asarray(self.perturbation.release(rows, losses, self.rng(*key), clip))
