"""Laplace noise that is fit for a release, by OpenDP.

Floating-point Laplace noise leaks through the gaps between the numbers it can reach (Mironov 2012). OpenDP samples exactly on a lattice
and rounds afterwards, from a cryptographic generator that the operating system seeds: no seed of ours can repeat it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.privacy.laplace import noise_scale

Floats = NDArray[np.float64]
ATTEMPTS = 8  # at a scale whose proven loss is not above the claim; each is a unit in the last place larger, or more


def opendp() -> Any:
    """The library, ready for use."""
    try:
        import opendp.prelude as library
    except ImportError as error:
        raise InputError(
            f"hardened noise needs OpenDP, which is not installed ({error}): pip install 'flmarket-sim[privacy]', "
            "or use noise = 'simulation'"
        ) from None
    library.enable_features("contrib")
    return library


@lru_cache(maxsize=16)
def measurement(dimension: int, privacy_loss: float, clip: float) -> tuple[Any, float]:
    """OpenDP's Laplace mechanism on gradients (D,), and its scale.

    Two clipped gradients are at most 2 L apart in L1. The library proves a loss for that distance, rounded up; the scale is 2 L / e, and
    larger by a few units in the last place where the proven loss would otherwise be above e.
    """
    library = opendp()
    space = (
        library.vector_domain(library.atom_domain(T=float, nan=False), size=dimension),
        library.l1_distance(T=float),
    )
    scale, distance = float(noise_scale(privacy_loss, clip)), 2.0 * clip
    for attempt in range(ATTEMPTS):
        made = library.m.make_laplace(*space, scale=scale)
        if made.map(distance) <= privacy_loss:
            return made, scale
        scale *= 1.0 + 2.0 ** (attempt - 52)
    raise FlmarketError(
        f"OpenDP proves no privacy loss of {privacy_loss} for {dimension} parameters and clip {clip}"
    )


class HardenedNoise:
    """Fresh noise for every gradient. Owner, round and buyer make no difference: nothing is repeated."""

    def __init__(self, clip: float) -> None:
        opendp()
        self.clip = clip

    def add(
        self, clipped: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        if not np.isfinite(clipped).all():
            raise FlmarketError(
                f"the gradient of owner {owner} in round {round_number} is not finite"
            )
        made, _ = measurement(len(clipped), float(privacy_loss), self.clip)
        return np.array(made(clipped.tolist()), dtype=np.float64)
