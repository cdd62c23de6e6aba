"""Laplace noise that is fit for a release, by OpenDP.

Floating-point Laplace noise leaks through the gaps between the numbers it can reach (Mironov 2012).
OpenDP samples exactly on a lattice and rounds afterwards. Its generator is cryptographic and seeded
by the operating system, so no seed of a scenario can repeat it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.perturbation.laplace import Laplace

Floats = NDArray[np.float64]
ATTEMPTS = 8  # to find a scale with a proven loss within the claim, each slightly larger


def opendp() -> Any:
    """The library, ready for use."""
    try:
        import opendp.prelude as library
    except ImportError as error:
        raise InputError(
            f"hardened noise needs OpenDP, which is not installed ({error}): "
            "pip install 'flmarket-sim[privacy]', or use noise = 'simulation'"
        ) from None
    library.enable_features("contrib")
    return library


@lru_cache(maxsize=16)
def measurement(dimension: int, privacy_loss: float, clip: float) -> tuple[Any, float]:
    """OpenDP's Laplace mechanism on gradients (D,), and its scale.

    Two clipped gradients are at most 2 L apart in L1. The library proves a loss for that distance
    and rounds it up. The scale is 2 L / e, or larger by a few units in the last place if the proven
    loss would otherwise be above e.
    """
    library = opendp()
    space = (
        library.vector_domain(library.atom_domain(T=float, nan=False), size=dimension),
        library.l1_distance(T=float),
    )
    scale, distance = float(Laplace().noise_scale(privacy_loss, clip)), 2.0 * clip
    for attempt in range(ATTEMPTS):
        made = library.m.make_laplace(*space, scale=scale)
        if made.map(distance) <= privacy_loss:
            return made, scale
        scale *= 1.0 + 2.0 ** (attempt - 52)
    raise FlmarketError(
        f"OpenDP does not prove a privacy loss of {privacy_loss} for {dimension} parameters "
        f"and clip {clip}"
    )


class HardenedNoise:
    """Fresh Laplace noise for every gradient, independent of owner, round and buyer."""

    perturbation = Laplace.name

    def __init__(self, clip: float) -> None:
        opendp()
        self.clip = clip

    def release(
        self, prepared: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        if not np.isfinite(prepared).all():
            raise FlmarketError(
                f"the gradient of owner {owner} in round {round_number} is not finite"
            )
        made, _ = measurement(len(prepared), float(privacy_loss), self.clip)
        return np.array(made(prepared.tolist()), dtype=np.float64)
