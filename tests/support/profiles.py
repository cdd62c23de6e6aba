"""Random owners for tests of auctions, rules and searches."""

import numpy as np

import flmarket_sim as fm


def random_profiles(
    rng: np.random.Generator,
    markets: int,
    n: int,
    families=("linear", "quadratic", "sqrt", "exponential"),
) -> fm.Profiles:
    """Profiles like the paper's, with heavy-tailed data sizes."""
    return fm.Profiles(
        rng.choice(list(families), (markets, n)),
        rng.uniform(0.5, 1.5, (markets, n)),
        rng.uniform(0.5, 2.0, (markets, n)),
        np.floor(rng.lognormal(3.0, 1.5, (markets, n))) + 1,
    )
