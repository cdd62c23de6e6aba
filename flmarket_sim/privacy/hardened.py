"""Releases that are fit for the world, by OpenDP: of `laplace` and of `duchi-l2`.

Floating-point Laplace noise leaks through the gaps between the numbers it can reach (Mironov 2012).
OpenDP samples exactly on a lattice and rounds afterwards. Its generator is cryptographic and seeded
by the operating system, so no seed of a scenario can repeat it.

A half of a sphere needs no lattice: of a gradient it tells one bit, and OpenDP tosses the coin that
hides it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.perturbation.duchi_l2 import DuchiL2
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


@lru_cache(maxsize=16)
def coin(privacy_loss: float) -> Any:
    """OpenDP's randomised response on a bit.

    It keeps the bit with the chance exp(e) / (1 + exp(e)), or with a little less if the proven loss
    would otherwise be above e.
    """
    library = opendp()
    kept = 1.0 / (1.0 + np.exp(-privacy_loss))
    for attempt in range(ATTEMPTS):
        made = library.m.make_randomized_response_bool(prob=float(kept)) if kept < 1.0 else None
        if made is not None and made.map(1) <= privacy_loss:
            return made
        kept -= 2.0 ** (attempt - 53)
    raise FlmarketError(f"OpenDP does not prove a privacy loss of {privacy_loss} for one bit")


def release_laplace(prepared: Floats, privacy_loss: float, clip: float) -> Floats:
    made, _ = measurement(len(prepared), privacy_loss, clip)
    return np.array(made(prepared.tolist()), dtype=np.float64)


def release_half_sphere(prepared: Floats, privacy_loss: float, clip: float) -> Floats:
    """A point of a sphere or its opposite; only the secret coin stands between them.

    The point is drawn without the gradient, so it may be known to everybody, and neither its
    rounding nor its generator tells anything. One bit depends on the gradient: which of the two is
    on its side. That bit leaves through randomised response, so the loss is the coin's, however the
    side was computed.
    """
    agrees = np.array([bool(coin(privacy_loss)(True))])
    rng = np.random.default_rng()  # seeded by the operating system
    loss = np.array([privacy_loss])
    sent = DuchiL2().on_side(prepared[None], loss, rng.random(1), agrees, rng, clip)
    return np.asarray(sent[0])


HARDENED: dict[str, Callable[[Floats, float, float], Floats]] = {
    Laplace.name: release_laplace,
    DuchiL2.name: release_half_sphere,
}


class HardenedNoise:
    """Fresh noise for every gradient, independent of owner, round and buyer."""

    def __init__(self, perturbation: str, clip: float) -> None:
        opendp()
        self.perturbation, self.clip = perturbation, clip

    def release(
        self, prepared: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        if not np.isfinite(prepared).all():
            raise FlmarketError(
                f"the gradient of owner {owner} in round {round_number} is not finite"
            )
        return HARDENED[self.perturbation](prepared, float(privacy_loss), self.clip)
