"""The contract of perturbations: how a gradient is made private before it leaves its owner.

A perturbation brings gradients into a domain, in which any two of them can be told apart by at most
its privacy loss, and releases a random vector whose mean is the gradient there.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.domains import Domain, radius

Floats = NDArray[np.float64]
LARGEST = 500.0  # at larger privacy losses a release has this one: exp of it is still a number


class Perturbation(Protocol):
    """A local randomiser of vectors. Its options are constructor arguments; it keeps no state.

    name, domain   its name, and where it brings gradients: "l1", "l2" and "linf" are balls of
                   radius `clip` in that norm, "sphere" is the L2 sphere (the direction alone)

    For any two prepared gradients, the chance of any set of releases at privacy loss e differs by
    at most a factor exp(e) (pure e-LDP). A perturbation that promises less says so: see `delta_of`.
    """

    name: str
    domain: Domain

    def prepare(self, gradients: Floats, clip: float = 1.0) -> Floats:
        """(n, D) gradients in the domain, in new memory; one that is not finite counts as zeros."""
        ...

    def release(
        self,
        gradients: Floats,
        privacy_loss: ArrayLike,
        rng: np.random.Generator,
        clip: float = 1.0,
    ) -> Floats:
        """(n, D) what leaves the owners of prepared gradients (n, D) who sell losses (n,) > 0."""
        ...

    def variance(self, privacy_loss: ArrayLike, dimension: int, clip: float = 1.0) -> Floats:
        """Total variance of a released vector of `dimension` coordinates, in the shape of
        `privacy_loss`; infinite at 0.

        Where it depends on the gradient, it is the largest in the domain.
        """
        ...


@runtime_checkable
class SaysBytes(Protocol):
    """A perturbation whose messages are not D numbers of eight bytes."""

    def message_bytes(self, dimension: int, privacy_loss: float) -> int: ...


@runtime_checkable
class AddsNoise(Protocol):
    """A perturbation that adds independent noise of one scale to every coordinate."""

    def noise_scale(self, privacy_loss: ArrayLike, clip: float = 1.0) -> Floats: ...


@runtime_checkable
class Approximate(Protocol):
    """A perturbation with another promise: (e, delta), that is e-LDP but for a chance of delta."""

    delta: float


@runtime_checkable
class BoundsVariance(Protocol):
    """A perturbation whose `variance` is an upper bound that no gradient needs to reach."""

    variance_is_bound: bool


def delta_of(perturbation: Perturbation) -> float:
    """The delta of a perturbation's promise; 0 for a pure one."""
    return float(perturbation.delta) if isinstance(perturbation, Approximate) else 0.0


def message_bytes(perturbation: Perturbation, dimension: int, privacy_loss: float) -> int:
    """The size of a message with one released gradient."""
    if isinstance(perturbation, SaysBytes):
        return perturbation.message_bytes(dimension, privacy_loss)
    return 8 * dimension


def vector_error(perturbation: Perturbation, dimension: int, clip: float = 1.0) -> MarketError:
    """The error of whole gradients of `dimension` coordinates under a perturbation."""
    return MarketError(
        "vector",
        lambda loss: perturbation.variance(loss, dimension, clip),
        radius(perturbation.domain, dimension, clip),
    )


def checked_losses(privacy_loss: ArrayLike, count: int, name: str) -> Floats:
    """(n,) losses for a release of n gradients; refuses what no release can have."""
    losses = np.asarray(privacy_loss, np.float64)
    if losses.shape != (count,):
        raise InputError(
            f"perturbation {name!r}: there are {count} gradients, but privacy losses of shape "
            f"{losses.shape}"
        )
    if not ((losses > 0) & np.isfinite(losses)).all():
        wrong = losses[~((losses > 0) & np.isfinite(losses))][0]
        raise InputError(
            f"perturbation {name!r}: a gradient is released at a privacy loss above 0, not {wrong}"
        )
    return losses


def variance_from(losses: ArrayLike, at_positive: Floats) -> Floats:
    """The variances `at_positive` of all losses above 0, infinite at 0, in the shape of losses."""
    loss = np.asarray(losses, np.float64)
    result = np.full(loss.shape, math.inf)
    result[loss > 0] = at_positive
    return result
