"""The Laplace mechanism on clipped gradients.

Two clipped gradients differ by at most 2 L in L1, so Laplace noise of scale 2 L / e on every
coordinate is e-locally private. This noise consists of ordinary floating-point numbers: it is good
for a simulation, and not fit for a release (Mironov 2012).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.randomness import Purpose, Streams

Floats = NDArray[np.float64]


def noise_scale(privacy_loss: Floats | float, clip: float) -> Floats:
    """Scale of the Laplace noise of one coordinate: 2 L / e."""
    return np.asarray(2.0 * clip / np.asarray(privacy_loss, float))


def unit_noise(
    streams: Streams, dimension: int, owner: int, round_number: int, buyer: int
) -> Floats:
    """(D,) standard Laplace noise of an owner in a round; it does not depend on what she sells."""
    return streams.generator(Purpose.NOISE, owner, round_number, buyer).laplace(size=dimension)


def perturb(clipped: Floats, unit: Floats, privacy_loss: Floats | float, clip: float) -> Floats:
    """The gradient as it leaves its owner: clipped (…, D) plus unit noise times the scale."""
    scale = noise_scale(privacy_loss, clip)
    return np.asarray(clipped + unit * (scale[..., None] if scale.ndim else scale))
