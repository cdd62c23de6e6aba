"""How likely a Laplace message is, if it is the release of a gradient of random direction.

A cheat who sends nothing but noise releases a full gradient of a random direction. Nobody knows
which, so the density of her message is the mean over directions. In units of the noise, with a
message x and K full gradients d_k of random directions,

    log density = log mean_k exp(-|x - d_k|_1)

up to a constant that all gradients share. The directions have a seed of their own, so that a check
is deterministic. Whatever their number is, a test by this density has its level; with more of them
it is nearer to the best one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.simulated_noise import SEED
from flmarket_sim.errors import InputError

Floats = NDArray[np.float64]
MOST, FEWEST = 1000, 64  # directions
NUMBERS = 2**16  # of all directions
ENTRIES = 2**20  # distances in memory
LARGEST = 2**18  # coordinates: the fewest directions take 128 MB there


@lru_cache(maxsize=4)
def random_directions(dimension: int) -> Floats:
    """(K, D) vectors of random direction, of length 1 in the L1 norm; fewer for many coordinates.

    The directions are uniform on the sphere, like those of the cheat `nothing-but-noise`.
    """
    if dimension > LARGEST:
        raise InputError(
            f"noise = 'random-direction' is for models of at most {LARGEST:,} coordinates (this "
            f"one has {dimension:,}); use noise = 'zeros'"
        )
    rng = np.random.default_rng([SEED, dimension, 7])
    count = int(np.clip(NUMBERS // dimension, FEWEST, MOST))
    normal = rng.standard_normal((count, dimension))
    return np.asarray(normal / np.abs(normal).sum(axis=1, keepdims=True))


def log_mean_density(messages: Floats, gradients: Floats) -> Floats:
    """(n,) log mean density of messages (n, D) around gradients (K, D), in units of the noise."""
    from scipy.spatial.distance import cdist

    result = np.empty(len(messages))
    step = max(1, ENTRIES // len(gradients))
    for begin in range(0, len(messages), step):
        rows = slice(begin, begin + step)
        apart = cdist(messages[rows], gradients, "cityblock")
        least = apart.min(axis=1)
        np.exp(np.subtract(least[:, None], apart, out=apart), out=apart)
        result[rows] = np.log(apart.mean(axis=1)) - least
    return result
