"""The source of a gradient's noise: streams that can be repeated, or the operating system."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.privacy.laplace import perturb, unit_noise
from flmarket_sim.randomness import Streams

Floats = NDArray[np.float64]


class Noise(Protocol):
    """Laplace noise of scale 2 L / e on every coordinate of a clipped gradient (D,)."""

    def add(
        self, clipped: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        """The gradient as it leaves its owner."""
        ...


class SimulationNoise:
    """Noise from the owner's stream for the round: the same seed gives the same noise."""

    def __init__(self, clip: float, streams: Streams) -> None:
        self.clip, self.streams = clip, streams

    def add(
        self, clipped: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        unit = unit_noise(self.streams, len(clipped), owner, round_number, buyer)
        return perturb(clipped, unit, privacy_loss, self.clip)


def create_noise(name: str, clip: float, streams: Streams) -> Noise:
    """The noise of a scenario's privacy.noise. Raises InputError if OpenDP is missing."""
    if name == "simulation":
        return SimulationNoise(clip, streams)
    from flmarket_sim.privacy.hardened import HardenedNoise

    return HardenedNoise(clip)


def require_noise(name: str) -> None:
    """Raises InputError if noise of this name is not installed; called before a run starts."""
    create_noise(name, 1.0, Streams(0))
