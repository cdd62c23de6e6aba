"""Random numbers that null distributions are integrated with: seeded, drawn once, kept.

A check is deterministic. Where the distribution of an honest message has no formula, it is counted
over draws of these functions, and a share that was counted is made larger by its own uncertainty.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.perturbation.perturbation import Perturbation

Floats = NDArray[np.float64]
SEED = 19
NUMBERS = 2**21  # of one table in memory
FEWEST, MOST = 512, 2**15  # draws
SMOOTH = 2**10  # draws of a mean of smooth chances
COINS = RELEASES = 2**12
MARGIN = 3.0  # standard errors


def draws_for(dimension: int) -> int:
    """How many vectors of a dimension are drawn."""
    return int(np.clip(NUMBERS // max(dimension, 1), FEWEST, MOST))


@lru_cache(maxsize=4)
def exponentials(dimension: int) -> Floats:
    """(M, D) standard exponential numbers."""
    rng = np.random.default_rng([SEED, dimension, 1])
    return rng.standard_exponential((min(SMOOTH, draws_for(dimension)), dimension))


@lru_cache(maxsize=4)
def coin_flips(dimension: int) -> Floats:
    """(M, D) fair signs, each row with its opposite."""
    rng = np.random.default_rng([SEED, dimension, 2])
    count = min(COINS, draws_for(dimension)) // 2
    half = rng.integers(0, 2, (count, dimension)) * 2.0 - 1.0
    return np.concatenate([half, -half])


@lru_cache(maxsize=4)
def laplace_lengths(dimension: int) -> tuple[Floats, Floats]:
    """(M,) a standard Laplace number, and (M,) the sum of the squares of D - 1 more."""
    rng = np.random.default_rng([SEED, dimension, 3])
    first = rng.laplace(size=MOST)
    rest = np.zeros(MOST)
    step = max(1, NUMBERS // dimension)
    for begin in range(0, MOST, step):
        rows = min(step, MOST - begin)
        others = rng.standard_exponential((rows, dimension - 1))
        rest[begin : begin + rows] = np.einsum("ij,ij->i", others, others)
    return first, rest


def releases(perturbation: Perturbation, loss: float, dimension: int, clip: float) -> Floats:
    """(M, D) releases of a gradient of zeros by a perturbation of any kind, kept by its object."""
    key: Any = perturbation  # an object without a hash of its own has that of its identity
    return _releases(key, loss, dimension, clip)


@lru_cache(maxsize=32)
def _releases(perturbation: Any, loss: float, dimension: int, clip: float) -> Floats:
    rng = np.random.default_rng([SEED, dimension, 4])
    count = min(RELEASES, max(FEWEST, draws_for(dimension) // 4))
    zeros = perturbation.prepare(np.zeros((count, dimension)), clip)
    return np.asarray(perturbation.release(zeros, np.full(count, loss), rng, clip))


def counted(hits: ArrayLike, draws: int) -> Floats:
    """An upper confidence limit (three standard errors) of chances, from hits among M draws."""
    share = (np.asarray(hits, np.float64) + 1.0) / (draws + 1.0)
    return np.asarray(np.minimum(1.0, share + MARGIN * np.sqrt(share * (1.0 - share) / draws)))
