"""Where the randomness of a release comes from: streams that can be repeated, or the operating
system."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.randomness import Purpose, Streams

Floats = NDArray[np.float64]


class Noise(Protocol):
    """Releases one prepared gradient (D,) of an owner, in a round of a buyer."""

    def release(
        self, prepared: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        """The gradient as it leaves its owner."""
        ...


class SimulationNoise:
    """Randomness from the owner's stream for the round: the same seed gives the same release.

    The stream does not depend on the perturbation, nor on what she sells.
    """

    def __init__(self, perturbation: Perturbation, clip: float, streams: Streams) -> None:
        self.perturbation, self.clip, self.streams = perturbation, clip, streams

    def release(
        self, prepared: Floats, privacy_loss: float, owner: int, round_number: int, buyer: int
    ) -> Floats:
        generator = self.streams.generator(Purpose.NOISE, owner, round_number, buyer)
        loss = np.array([privacy_loss])
        sent = self.perturbation.release(prepared[None], loss, generator, self.clip)
        return np.asarray(sent[0])


def create_noise(name: str, perturbation: Perturbation, clip: float, streams: Streams) -> Noise:
    """The noise of a scenario's privacy.noise. Raises InputError where there is none."""
    if name == "simulation":
        return SimulationNoise(perturbation, clip, streams)
    from flmarket_sim.privacy.hardened import HARDENED, HardenedNoise

    if perturbation.name not in HARDENED:
        names = " and ".join(map(repr, HARDENED))
        raise InputError(
            f"hardened noise exists for the perturbations {names} only, not for "
            f"{perturbation.name!r}"
        )
    return HardenedNoise(perturbation.name, clip)
